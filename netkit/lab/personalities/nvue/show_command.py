"""`nv show …`: a view of the running switch, or a part of a configuration."""

import json
from collections.abc import Iterator, Mapping, Sequence

from netkit.lab.personalities.nvue.revision import UnknownRevisionError
from netkit.lab.personalities.nvue.secret import hidden
from netkit.lab.personalities.nvue.show.include import included
from netkit.lab.personalities.nvue.show.look import MISSING, Look
from netkit.lab.personalities.nvue.show.views import ASPECTS, find
from netkit.lab.personalities.nvue.system import CommandError, System
from netkit.lab.personalities.nvue.tree import Tree, child, dump
from netkit.lab.personalities.nvue.usage import USAGE_EXIT, words
from netkit.lab.personality import Call

REVISIONS = ("--applied", "--operational", "--pending", "--startup")
INCLUDE = "include="
INCLUDE_SINCE = (5, 13)
FORMS = ("auto", "json", "yaml", "native")


def show(system: System, call: Call, given: Sequence[str]) -> int:
    """Answer one `nv show` command."""
    line = words(given, (*REVISIONS, "--expand"), ("-o", "--output", "--rev", "--view"))
    form = line.option("-o", "--output", default="auto")
    if form not in FORMS:
        raise CommandError(f"Error: argument -o/--output: invalid choice: '{form}'\n", USAGE_EXIT)
    chosen = line.option("--rev") or next((flag[2:] for flag in REVISIONS if line.flag(flag)), "operational")
    try:
        found = look_up(system, line.places, chosen, line.option("--view"), call.user)
    except UnknownRevisionError as error:
        raise CommandError(f"Error: revision {error} does not exist\n") from error
    if form == "json":
        call.out(json.dumps(found, indent=2) + "\n")
    elif form == "yaml":
        call.out(dump(json.loads(json.dumps(found))))
    else:
        call.out("".join(_lines(found)) or "No Data\n")
    return 0


def look_up(system: System, path: Sequence[str], revision: str, view: str, user: str) -> object:
    """Return what stands at a path; raises CommandError when nothing can."""
    if view.startswith(INCLUDE) and system.chassis.version >= INCLUDE_SINCE:
        patterns = view.removeprefix(INCLUDE).split(",")
        return included(system, path, patterns, lambda: look_up(system, path, revision, "", user))
    if view and view not in ASPECTS.get(" ".join(path), ()):
        raise CommandError(f"Error: argument --view: invalid choice: '{view}'\n", USAGE_EXIT)
    if revision != "operational":
        return _configured(system, hidden(system.store.tree(revision, user)), path)
    found = find(path, system.chassis.version)
    if found:
        answer, names = found
        return answer(Look(system, names, view))
    return _configured(system, hidden(system.applied), path)


def _configured(system: System, tree: Tree, path: Sequence[str]) -> object:
    """Return what is configured at a path the release knows; nothing configured is an empty object."""
    known = system.known
    for word in path:
        step = known.step(word)
        if step is None:
            raise CommandError(MISSING)
        known = step[1]
    if not path:
        return tree
    found = child(tree, *path[:-1]).get(path[-1])
    if found is None and not known.kinds and not _is_named(system, path):
        return {}
    if found is None:
        raise CommandError(MISSING)
    return found


def _is_named(system: System, path: Sequence[str]) -> bool:
    """Whether a path ends in the name of a thing, which then must be there."""
    known = system.known
    for word in path[:-1]:
        step = known.step(word)
        known = step[1] if step else known
    return path[-1] not in known.children


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
