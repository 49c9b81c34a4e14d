"""A branch of the tree below every port: read for all ports at once if the release can, else port by port.

Releases select branches by `--view include=` (Cumulus Linux user guide: NVUE CLI, Show Command View Include and Omit
Options), as REST does by `include`. It is not documented that this covers every branch: if it shows nothing, each port
is read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from netkit.facts import Absent, Facts
from netkit.platforms.nvue.facts.json_access import Shown, tree, under, unread
from netkit.platforms.view import View

Parts = Mapping[str, Shown]
"""Port → the branch."""


@dataclass(frozen=True, slots=True)
class PortPart:
    """One branch of the tree below each port, with its parser."""

    path: str
    kinds: frozenset[str]
    parse: Callable[[Parts, Sequence[str]], Facts]
    """(branches of the ports, output of the commands in `beside`) → facts."""
    beside: tuple[str, ...] = ()


def view(part: PortPart, ports: Sequence[str], *, has_include: bool) -> View:
    """Read the branch of all ports at once, and fall back to port by port; without `has_include`, only the latter."""
    port_by_port = _port_by_port(part, ports)
    if not has_include:
        return port_by_port
    path = part.path.split()
    command = f'nv show interface --view="include=/*/{"/".join(path)}" -o json'

    def parse(*texts: str) -> Facts:
        text = texts[-1]
        tree_of_ports = tree(text)
        shown = {port: branch for port in ports if (branch := under(tree_of_ports, port, *path))}
        if shown:
            return part.parse(shown, texts)
        return _absent(part, Absent(f"{command}: shows it for no port") if tree_of_ports else unread(command, text))

    return View((*part.beside, command), part.kinds, parse, is_costly=True, otherwise=port_by_port)


def _port_by_port(part: PortPart, ports: Sequence[str]) -> View:
    commands = tuple(f"nv show interface {port} {part.path} -o json" for port in ports)

    def parse(*texts: str) -> Facts:
        own = texts[len(part.beside) :]
        shown: dict[str, Shown] = {}
        for port, text in zip(ports, own, strict=True):
            branch = tree(text)
            if branch is not None:
                shown[port] = branch
        return part.parse(shown, texts) if shown else _absent(part, unread(commands[0], own[0]))

    return View((*part.beside, *commands), part.kinds, parse, is_costly=True)


def _absent(part: PortPart, why: Absent) -> Facts:
    return Facts(**dict.fromkeys(part.kinds, why))
