"""The files a switch is to have: the intended ones, with what on the switch is not netkit's kept."""

from collections.abc import Iterable, Iterator

from netkit.platforms.change import Change
from netkit.platforms.compare import apply
from netkit.platforms.config import Files
from netkit.platforms.frr.files import DAEMONS, FRR_CONF
from netkit.platforms.frr.model import GRAMMAR, MODEL
from netkit.platforms.written import ConfigLine, lines

# What FRR prints of itself and of the kernel: nobody's configuration.
STATE = ("frr version", "frr defaults", "ip forwarding", "ipv6 forwarding", "no ip forwarding", "no ipv6 forwarding")
CLOSERS = {"address-family": "exit-address-family", "vrf": "exit-vrf"}


def merged(changes: Iterable[Change], running: Files, intended: Files) -> dict[str, str | None]:
    """Return the files that change, whole; None for one that is not to be there."""
    changes = tuple(changes)
    changed = {change.path[0] for change in changes}
    if DAEMONS in changed:  # FRR starts anew, from its file
        changed.add(FRR_CONF)
    files: dict[str, str | None] = {file: intended.get(file) for file in changed}
    for file in files:
        if file == FRR_CONF:
            routing = intended.get(file, "")
            files[file] = routing + "".join(_foreign(running.get(file, ""), routing))
        elif _has_foreign(file, running, intended):
            only = apply(MODEL.parse({file: running[file]}), (one for one in changes if one.path[0] == file))
            files[file] = MODEL.text(only).get(file, "" if file in intended else None)
    return files


def _has_foreign(file: str, running: Files, intended: Files) -> bool:
    """Whether there is something in a file that netkit was not told of and does not own."""
    have, want = (MODEL.parse({file: files[file]} if file in files else {}) for files in (running, intended))
    ours = MODEL.ownership.restrict(have, MODEL.ownership.claims(want))
    return bool(have.keys() - ours.keys() - want.keys())


def _foreign(running: str, intended: str) -> Iterator[str]:
    """Yield the lines of a running configuration that are not netkit's, with the sections they stand in."""
    wanted = {path for line in lines(intended, GRAMMAR, (FRR_CONF,)) for path in line.paths}
    every = tuple(lines(running, GRAMMAR, (FRR_CONF,)))
    sections = {line.headers for line in every}
    above: tuple[str, ...] = ()
    for line in every:
        if (*line.headers, line.text) in sections or not _is_foreign(line, wanted):
            continue
        yield from _moved(above, line.headers)
        yield f"{' ' * len(line.headers)}{line.text}\n"
        above = line.headers
    yield from _moved(above, ())


def _is_foreign(line: ConfigLine, wanted: set[tuple[str, ...]]) -> bool:
    is_ours = any(MODEL.ownership.standing(path) >= 0 or path in wanted for path in line.paths)
    return bool(line.paths) and not is_ours and not line.text.startswith(STATE)


def _moved(above: tuple[str, ...], headers: tuple[str, ...]) -> Iterator[str]:
    """Yield what leads from one section to another."""
    if above == headers:
        return
    for depth in reversed(range(len(above))):
        yield f"{' ' * depth}{CLOSERS.get(above[depth].split(' ')[0], 'exit')}\n"
    for depth, header in enumerate(headers):
        yield f"{' ' * depth}{header}\n"
