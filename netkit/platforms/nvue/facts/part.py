"""A part of the tree of every port: asked of all at once where the release can, else port by port.

Releases take the parts they are to show by `--view include=` (Cumulus Linux user guide: NVUE CLI, Show Command View
Include and Omit Options), as REST does by `include`. No document says that it reaches every part: where it shows none,
each port is asked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from netkit.facts import Absent, Facts
from netkit.platforms.nvue.facts.json_access import Shown, document, tree, under, unread
from netkit.platforms.view import View

Parts = Mapping[str, Shown]
"""Port → what it shows."""


@dataclass(frozen=True, slots=True)
class PortPart:
    """What is asked, beside commands of the whole switch, and how it is read."""

    path: str
    kinds: frozenset[str]
    parse: Callable[[Parts, Sequence[str]], Facts]
    """What ports show, and the texts of the commands beside → facts."""
    beside: tuple[str, ...] = ()


def view(part: PortPart, ports: Sequence[str], *, has_include: bool) -> View:
    """Return the view of a part."""
    each = _each(part, ports)
    return _at_once(part, ports, each) if has_include else each


def _each(part: PortPart, ports: Sequence[str]) -> View:
    commands = tuple(f"nv show interface {port} {part.path} -o json" for port in ports)

    def parse(*texts: str) -> Facts:
        own = texts[len(part.beside) :]
        found = ((port, tree(text)) for port, text in zip(ports, own, strict=True))
        shown = {port: one for port, one in found if one is not None}
        return part.parse(shown, texts) if shown else _all(part.kinds, unread(commands[0], own[0]))

    return View((*part.beside, *commands), part.kinds, parse, is_costly=True)


def _at_once(part: PortPart, ports: Sequence[str], each: View) -> View:
    path = part.path.split()
    command = f'nv show interface --view="include=/*/{"/".join(path)}" -o json'

    def parse(*texts: str) -> Facts:
        whole = tree(texts[-1])
        shown = {port: one for port in ports if (one := under(whole, port, *path))}
        return part.parse(shown, texts) if shown else _all(part.kinds, _untold(command, texts[-1]))

    return View((*part.beside, command), part.kinds, parse, is_costly=True, otherwise=each)


def _all(kinds: Iterable[str], why: Absent) -> Facts:
    return Facts(**dict.fromkeys(kinds, why))


def _untold(command: str, text: str) -> Absent:
    is_other = isinstance(document(text), dict) and document(text) != {}
    return Absent(f"{command}: shows it of no port") if is_other else unread(command, text)
