"""`nv config …`: staging, comparing, applying and saving the configuration.

Unverified, as no switch output was available: the text printed while a revision waits for its confirmation, when
exactly `apply` asks (here always), and the JSON of `history`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from netkit.lab.personalities.nvue.command_line import USAGE_EXIT, Words, read, words
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.system import (
    NvueCommandError,
    NvueRevision,
    NvueSystem,
    UnknownRevisionError,
    history_text,
)
from netkit.lab.personalities.nvue.tree import Tree, difference, dump, hidden, leaves
from netkit.lab.personality import Call

DEFAULT_CONFIRM_S = 600
UNITS = {"s": 1, "m": 60, "h": 3600, "": 1}
OUTPUTS = ("-o", "--output")
MESSAGES = ("-m", "--message")
WARNING = "Warning: applying this can interrupt traffic.\n"


def config(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if verb not in VERBS:
        raise NvueCommandError(f"Error: invalid choice: '{verb}' (choose from {', '.join(VERBS)})\n", USAGE_EXIT)
    try:
        return VERBS[verb](system, call, rest)
    except UnknownRevisionError as error:
        raise NvueCommandError(f"Error: revision {error} does not exist\n") from error


def _patch(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    changes = read(system, _file(call, arguments))
    revision, is_new = system.open_revision(call.user)
    changed = system.store.change(system.store.change(revision, changes.unset), changes.set)
    if is_new:
        call.out(f"created [rev_id: {changed.number}]\n")
    return 0


def _replace(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    changes = read(system, _file(call, arguments))
    revision, _ = system.open_revision(call.user)
    changed = system.store.change(revision, changes.set, from_empty=True)
    call.out(f"created [rev_id: {changed.number}]\n")
    return 0


def _file(call: Call, arguments: Sequence[str]) -> str:
    places = words(arguments, (), ()).places
    if len(places) != 1:
        raise NvueCommandError("Error: one file is required\n", USAGE_EXIT)
    try:
        return call.stdin() if places[0] == "-" else call.file(places[0]).read_text(encoding="utf-8")
    except OSError as error:
        raise NvueCommandError(f"Error: {places[0]}: {error.strerror}\n") from error
    except UnicodeDecodeError as error:
        raise NvueCommandError(f"Error: {places[0]} is not text\n") from error


def _diff(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    line = words(arguments, ("--expand", "--verbose"), OUTPUTS)
    if len(line.places) > 2:
        raise NvueCommandError("Error: at most two revisions can be compared\n", USAGE_EXIT)
    left, right = (*line.places, *("applied", "pending")[len(line.places) :])
    running, intended = (hidden(system.store.tree(name, call.user)) for name in (left, right))
    found = difference(running, intended)
    items = [{verb: tree} for verb, tree in (("unset", found.removed), ("set", found.added)) if tree]
    _print(call, line, items, commands=lambda: _commands("unset", found.removed) + _commands("set", found.added))
    return 0


def _show(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    line = words(arguments, ("--all", "--expand"), (*OUTPUTS, "-r", "--rev"))
    if line.places:
        raise NvueCommandError(f"Error: unrecognized arguments: {' '.join(line.places)}\n", USAGE_EXIT)
    tree = hidden(system.store.tree(line.option("-r", "--rev", default="applied"), call.user))
    header = {
        "model": system.chassis.model.name.lower(),
        "nvue-api-version": "nvue_v1",
        "rev-id": "1.0",
        "version": f"Cumulus Linux {system.chassis.release}",
    }
    _print(call, line, [{"header": header}, {"set": tree}], commands=lambda: _commands("set", tree))
    return 0


def _print(call: Call, line: Words, items: list[dict[str, Tree]] | object, commands: Callable[[], str]) -> None:
    form = line.option(*OUTPUTS, default="yaml")
    if form == "commands":
        call.out(commands())
    elif form == "json":
        call.out(json.dumps(items, indent=2) + "\n")
    elif form in {"yaml", "auto"}:
        call.out(dump(items) if items else "")
    else:
        raise NvueCommandError(f"Error: argument -o/--output: invalid choice: '{form}'\n", USAGE_EXIT)


def _commands(verb: str, tree: Tree) -> str:
    def line(path: tuple[str, ...], value: object) -> str:
        end = [] if value is None or value == {} else [str(value)]
        quoted = [word if re.fullmatch(r"[\w@%+=:,./$-]+", word) else f"'{word}'" for word in (*path, *end)]
        return f"nv {verb} {' '.join(quoted)}\n"

    return "".join(line(path, value) for path, value in leaves(tree))


def duration_s(text: str) -> float:
    """Parse a duration such as 3m."""
    found = re.fullmatch(r"(\d{1,6})([smh]?)", text)
    if not found or int(found[1]) == 0:
        raise NvueCommandError(
            f"Error: argument --confirm: '{text}' is not a duration such as 30s, 3m or 1h\n", USAGE_EXIT
        )
    return float(int(found[1]) * UNITS[found[2]])


def _apply(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    flags = ("-y", "--assume-yes", "--assume-no", "--confirm-yes", "--confirm-no", "--confirm-status")
    line = words(arguments, flags, MESSAGES, maybe="--confirm")
    if line.flag("--confirm-yes", "--confirm-no", "--confirm-status"):
        return _answer_confirmation(system, call, line)
    if len(line.places) > 1:
        raise NvueCommandError("Error: only one revision can be applied\n", USAGE_EXIT)
    revision = _find_or_begin(system, call.user, line.places[0] if line.places else "pending")
    confirm_s = 0.0
    if "--confirm" in line.options:
        duration = line.options["--confirm"]
        confirm_s = duration_s(duration) if duration else DEFAULT_CONFIRM_S
    if not line.flag("-y", "--assume-yes"):
        call.out(WARNING)
        if line.flag("--assume-no") or call.ask("Are you sure? [y/N] ").strip().lower() not in {"y", "yes"}:
            call.err(f"Aborted apply after warnings [rev_id: {revision.number}]\n")
            return 1
    return _print_outcome(system, call, system.applier.apply(revision, line.option(*MESSAGES), confirm_s))


def _find_or_begin(system: NvueSystem, user: str, name: str) -> NvueRevision:
    found = system.store.find(name, user)
    if found and name != "applied":
        return found
    if name == "pending":
        raise NvueCommandError("Error: there is no pending revision to apply\n")
    tree = system.store.tree(name, user)
    fresh = system.store.begin(user)
    return system.store.change(fresh, tree, from_empty=True)


def _print_outcome(system: NvueSystem, call: Call, revision: NvueRevision) -> int:
    tag = f"[rev_id: {revision.number}]"
    issues = "".join(f"  {issue.message}\n" for issue in revision.issues)
    if revision.state == "invalid":
        call.err(f"Invalid config {tag}\n{issues}")
        return 1
    if revision.state == "ignore_fail":
        call.out(f"Failure during apply {tag}\n{issues}")
        return 0 if system.applier.fails_quietly else 1
    if revision.state == "ays" and system.applier.confirmation:
        left = system.applier.confirmation.left_s
        call.out(
            f"applied {tag}\nThe revision is reverted in {left} s unless confirmed: nv config apply --confirm-yes\n"
        )
        return 0
    call.out(f"{revision.state} {tag}\n")
    return 0


NOTHING_WAITS = "Error: no revision waits for confirmation\n"


def _answer_confirmation(system: NvueSystem, call: Call, line: Words) -> int:
    waiting = system.applier.confirmation
    if line.flag("--confirm-status"):
        if not waiting:
            raise NvueCommandError(NOTHING_WAITS)
        call.out(f"revision {waiting.number} is reverted in {waiting.left_s} s\n")
        return 0
    revision = system.applier.confirm() if line.flag("--confirm-yes") else system.applier.revert()
    if not revision:
        raise NvueCommandError(NOTHING_WAITS)
    call.out(f"{revision.state if line.flag('--confirm-yes') else 'reverted'} [rev_id: {revision.number}]\n")
    return 0


def _save(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    words(arguments, (), ())
    if system.applier.confirmation:
        raise NvueCommandError(f"Error: revision {system.applier.confirmation.number} waits for confirmation\n")
    system.applier.save()
    call.out(f"saved [rev_id: {system.store.applied}]\n")
    return 0


def _detach(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    words(arguments, (), ())
    system.store.pending.pop(call.user, None)
    return 0


def _verify(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    if system.chassis.version < (5, 17):
        raise NvueCommandError("Error: invalid choice: 'verify'\n", USAGE_EXIT)
    words(arguments, (), ())
    revision = _find_or_begin(system, call.user, "pending")
    issues = broken(system.store.rebased(revision), system.chassis)
    if issues:
        text = "".join(f"  {issue.message}\n" for issue in issues)
        call.err(f"Invalid config [rev_id: {revision.number}]\n{text}")
        return 1
    call.out(f"dry_run_complete [rev_id: {revision.number}]\n")
    return 0


def _history(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    line = words(arguments, (), OUTPUTS)
    call.out(history_text(system.store, line.option(*OUTPUTS), line.places[0] if line.places else ""))
    return 0


VERBS: Mapping[str, Callable[[NvueSystem, Call, Sequence[str]], int]] = {
    "apply": _apply,
    "detach": _detach,
    "diff": _diff,
    "history": _history,
    "patch": _patch,
    "replace": _replace,
    "revision": _history,
    "save": _save,
    "show": _show,
    "verify": _verify,
}
