"""The command line of NVUE: patch files, `nv show`, `nv set`, `nv unset`, `nv action` and `nv config`.

Unverified, as no switch output was available: the text printed while a revision waits for its confirmation, when
exactly `apply` asks (here always), and the JSON of `history`.
"""

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import BREAK, PORT, SVI, CumulusSwitch, Issue, NvueSchemaNode, checked, merged
from netkit.lab.personalities.nvue.show import ASPECTS, find, found_below, included
from netkit.lab.personalities.nvue.system import (
    MISSING,
    NvueCommandError,
    NvueRevision,
    NvueShowContext,
    NvueSystem,
    UnknownRevisionError,
    complaint,
    history_text,
)
from netkit.lab.personalities.nvue.tree import (
    Path,
    Tree,
    Value,
    child,
    difference,
    dump,
    hidden,
    leaves,
    load,
    overlay,
    revealed,
)
from netkit.lab.personality import Call

COMMANDS = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*nv ")
LINES_SINCE = (5, 13)
BOTH_SINCE = (5, 16)


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """Changes to a configuration: `unset` is applied before `set`."""

    unset: Tree
    set: Tree


def read(system: NvueSystem, text: str) -> DocumentChanges:
    """Parse a patch file; raise NvueCommandError with every problem."""
    if COMMANDS.match(text):
        if system.chassis.version < LINES_SINCE:
            raise NvueCommandError("Error: a file of commands needs Cumulus Linux 5.13\n")
        changes = _patch_lines(system, text)
    else:
        changes = _document(system.known, text)
    if system.chassis.version < BOTH_SINCE:
        unset = {path for path, _ in leaves(changes.unset)}
        for path, _ in leaves(changes.set):
            if any(path[: len(other)] == other or other[: len(path)] == path for other in unset):
                where = " ".join(path)
                raise NvueCommandError(
                    f"Error: set and unset of the same object in one patch is not supported: {where}\n"
                )
    return DocumentChanges(changes.unset, opened(system, changes.set))


def opened(system: NvueSystem, tree: Tree) -> Tree:
    """Replace the tokens in a tree by their secrets."""
    unknown: list[str] = []
    result = revealed(tree, system.secrets(), unknown)
    if unknown:
        raise NvueCommandError(f"Error: the encrypted value of {unknown[0]} is not from this switch\n")
    return result


def _document(known: NvueSchemaNode, text: str) -> DocumentChanges:
    try:
        items = load(text)
    except ValueError as error:
        raise NvueCommandError(f"Error: the file is not YAML: {error}\n") from error
    if not isinstance(items, list) or not items:
        raise NvueCommandError("Error: the file must be a list of 'set' and 'unset'\n")
    issues: list[Issue] = []
    changes = DocumentChanges({}, {})
    for item in items:
        changes = _with_item(known, changes, item, issues)
    if issues:
        raise complaint(issues)
    return changes


def _with_item(known: NvueSchemaNode, changes: DocumentChanges, item: object, issues: list[Issue]) -> DocumentChanges:
    if not isinstance(item, dict) or len(item) != 1 or not set(item) <= {"set", "unset", "header"}:
        issues.append(Issue("", "each item of the list must be one of 'set', 'unset' and 'header'", "schema"))
        return changes
    if "set" in item:
        tree = checked(known, item["set"], issues)
        return DocumentChanges(changes.unset, merged(known, changes.set, tree if isinstance(tree, dict) else {}))
    if "unset" in item:
        tree = checked(known, _nulls(known, item["unset"]), issues)
        return DocumentChanges({**changes.unset, **(tree if isinstance(tree, dict) else {})}, changes.set)
    return changes


def _nulls(known: NvueSchemaNode, value: object) -> object:
    """Convert an `unset` to a tree with null at each end."""
    if isinstance(value, str) and not known.kinds:
        return {value: None}
    if not isinstance(value, dict) or not value:
        return None
    result: dict[object, object] = {}
    for key, below in value.items():
        step = known.step(key) if isinstance(key, str) else None
        result[key] = _nulls(step[1], below) if step else below
    return result


def _patch_lines(system: NvueSystem, text: str) -> DocumentChanges:
    changes = DocumentChanges({}, {})
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise NvueCommandError(f"Error: line {number}: {error}\n") from error
        if not words:
            continue
        if words[0] != "nv" or words[1:2] not in (["set"], ["unset"]):
            raise NvueCommandError(f"Error: line {number}: only nv set and nv unset are accepted\n")
        more = parse_change(system.known, words[1], words[2:])
        changes = DocumentChanges(overlay(changes.unset, more.unset), merged(system.known, changes.set, more.set))
    return changes


def parse_change(known: NvueSchemaNode, verb: str, words: Sequence[str]) -> DocumentChanges:
    """Parse the path of one `nv set` or `nv unset`."""
    if not words:
        raise NvueCommandError(f"Error: nv {verb} needs a path\n")
    issues: list[Issue] = []
    value = _value(known, list(words), verb == "unset", (), issues)
    tree = value if isinstance(value, dict) else {}
    if issues:
        raise complaint(issues)
    return DocumentChanges(tree, {}) if verb == "unset" else DocumentChanges({}, tree)


def _value(known: NvueSchemaNode, words: list[str], is_unset: bool, path: Path, issues: list[Issue]) -> Value:
    if known.kinds:
        return _leaf(known, words, is_unset=is_unset, path=path, issues=issues)
    if not words:
        return None if is_unset else {}
    steps = known.steps(words[0])
    if not steps:
        checked(known, {words[0]: {}}, issues, path)
    return {name: _value(below, words[1:], is_unset, (*path, name), issues) for name, below in steps}


def _leaf(known: NvueSchemaNode, words: list[str], *, is_unset: bool, path: Path, issues: list[Issue]) -> Value:
    if is_unset and not words:
        return None
    if len(words) != 1:
        reason = f"'{words[1]}' is one word too many" if words else "takes one value"
        issues.append(Issue(".".join(path), reason, "schema"))
        return None
    value = checked(known, words[0], issues, path)
    return None if is_unset else value


USAGE_EXIT = 2


@dataclass(frozen=True, slots=True)
class Words:
    """A parsed command line."""

    places: tuple[str, ...]
    flags: frozenset[str]
    options: Mapping[str, str]

    def flag(self, *names: str) -> bool:
        return bool(self.flags & set(names))

    def option(self, *names: str, default: str = "") -> str:
        return next((self.options[name] for name in names if name in self.options), default)


def words(arguments: Sequence[str], flags: Collection[str], options: Collection[str], maybe: str = "") -> Words:
    """Parse a command line; `maybe` names an option with an optional value."""
    places, seen, values = [], set(), {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not name.startswith("-"):
            places.append(name + equals + value)
        elif name in flags:
            seen.add(name)
        elif name == maybe:
            is_next = bool(rest) and rest[0][:1].isdigit()
            values[name] = value or (rest.pop(0) if is_next else "")
        elif name in options:
            if not equals and not rest:
                raise NvueCommandError(f"Error: argument {name}: expected one argument\n", USAGE_EXIT)
            values[name] = value if equals else rest.pop(0)
        else:
            raise NvueCommandError(f"Error: unrecognized arguments: {name}\n", USAGE_EXIT)
    return Words(tuple(places), frozenset(seen), values)


TYPES = {"eth0": "eth", "lo": "loopback"}


def completed(known: NvueSchemaNode, chassis: CumulusSwitch, typed: Tree) -> Tree:
    """Add what NVUE derives from a typed line: types, VLAN numbers, RoCE and watchdog defaults."""
    added: Tree = {}
    interfaces: Tree = {}
    for name, value in child(typed, "interface").items():
        derived: Tree = {"type": TYPES.get(name, "swp")}
        if SVI.fullmatch(name):
            derived = {"type": "svi", "vlan": int(name.removeprefix("vlan"))}
        if isinstance(value, dict) and child(value, "qos").get("pfc-watchdog") == {}:
            derived["qos"] = {"pfc-watchdog": {"state": "enable"}}
        interfaces[name] = derived
    if interfaces:
        added["interface"] = interfaces
    neighbors = child(typed, "vrf", "default", "router", "bgp", "neighbor")
    kinds: Tree = {name: {"type": "unnumbered" if PORT.fullmatch(name) else "numbered"} for name in neighbors}
    if kinds:
        added["vrf"] = {"default": {"router": {"bgp": {"neighbor": kinds}}}}
    roce = child(typed, "qos").get("roce")
    if roce == {} or (isinstance(roce, dict) and "mode" in roce):
        on: Tree = {"state": "enabled"} if chassis.version >= BREAK else {"enable": "on"}
        added["qos"] = {"roce": {**on, "mode": "lossless"}}
    return merged(known, added, typed)


REVISIONS = ("--applied", "--operational", "--pending", "--startup")
INCLUDE = "include="
INCLUDE_SINCE = (5, 13)
FORMS = ("auto", "json", "yaml", "native")


def show(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    line = words(arguments, (*REVISIONS, "--expand"), ("-o", "--output", "--rev", "--view"))
    form = line.option("-o", "--output", default="auto")
    if form not in FORMS:
        raise NvueCommandError(f"Error: argument -o/--output: invalid choice: '{form}'\n", USAGE_EXIT)
    revision = line.option("--rev") or next((flag[2:] for flag in REVISIONS if line.flag(flag)), "operational")
    try:
        found = look_up(system, line.places, revision, line.option("--view"), call.user)
    except UnknownRevisionError as error:
        raise NvueCommandError(f"Error: revision {error} does not exist\n") from error
    if form == "json":
        call.out(json.dumps(found, indent=2) + "\n")
    elif form == "yaml":
        call.out(dump(json.loads(json.dumps(found))))
    else:
        call.out("".join(_lines(found)) or "No Data\n")
    return 0


def look_up(system: NvueSystem, path: Sequence[str], revision: str, view: str, user: str) -> object:
    """The value at a path; raise NvueCommandError if there is none."""
    if view.startswith(INCLUDE) and system.chassis.version >= INCLUDE_SINCE:
        patterns = view.removeprefix(INCLUDE).split(",")
        return included(system, path, patterns, lambda: look_up(system, path, revision, "", user))
    if view and view not in ASPECTS.get(" ".join(path), ()):
        raise NvueCommandError(f"Error: argument --view: invalid choice: '{view}'\n", USAGE_EXIT)
    if revision != "operational":
        return _configured(system, hidden(system.store.tree(revision, user)), path)
    found = find(path, system.chassis.version)
    if found:
        answer, names = found
        return answer(NvueShowContext(system, names, view))
    shown = found_below(system, path)
    if shown is not None:
        return shown
    return _configured(system, hidden(system.applied), path)


def _configured(system: NvueSystem, tree: Tree, path: Sequence[str]) -> object:
    """The configuration at a path; an empty object where the schema has one but nothing is set."""
    if not path:
        return tree
    parent = known = system.known
    for word in path:
        step = known.step(word)
        if step is None:
            raise NvueCommandError(MISSING)
        parent, known = known, step[1]
    found = child(tree, *path[:-1]).get(path[-1])
    if found is not None:
        return found
    is_instance = path[-1] not in parent.children
    if known.kinds or is_instance:
        raise NvueCommandError(MISSING)
    return {}


def _lines(found: object, indent: str = "") -> Iterator[str]:
    if not isinstance(found, Mapping):
        yield f"{indent}{found}\n"
        return
    width = max((len(key) for key in found), default=0)
    for key, value in found.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}\n"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{key:<{width}}  {value if not isinstance(value, Mapping) else ''}".rstrip() + "\n"


def change(verb: str) -> Callable[[NvueSystem, Call, Sequence[str]], int]:
    """The handler of `nv set` or `nv unset`."""

    def run(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
        changes = parse_change(system.known, verb, arguments)
        typed = opened(system, changes.set)
        revision, is_new = system.open_revision(call.user)
        patch = completed(system.known, system.chassis, typed) if typed else changes.unset
        changed = system.store.change(revision, patch)
        if is_new:
            call.out(f"created [rev_id: {changed.number}]\n")
        return 0

    return run


CLEARED = (
    "counters",
    "counters qos",
    "qos roce counters",
    "qos pfc-watchdog deadlock-count",
    "qos buffer",
)


def action(system: NvueSystem, call: Call, arguments: Sequence[str]) -> int:
    if tuple(arguments) == ("clear", "interface", "counters"):
        system.node.clear_counters()
    elif tuple(arguments[:2]) == ("clear", "interface") and " ".join(arguments[3:]) in CLEARED:
        if arguments[2] not in NvueShowContext(system).ports:
            raise NvueCommandError(MISSING)
        system.node.clear_counters(arguments[2])
    else:
        raise NvueCommandError(f"Error: invalid choice: '{' '.join(arguments)}'\n", USAGE_EXIT)
    call.out("Action succeeded\n")
    return 0


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
