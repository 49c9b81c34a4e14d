"""Tolerant parsing of a host's output: nothing here raises, whatever the input."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from netkit.platforms.json_access import parsed
from netkit.platforms.view import SubjectNic, ViewSubject

ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
MOST_DIGITS = 20
NUMBER = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,4})?\Z")
LONGEST_NUMBER = 48
BEGIN, END = "#@ ", "#= "
MOST = 2**64
RECENT = 64
"""Outputs that are kept parsed, since several views read the same: twice as many as devices are read at a time."""
NOTHING: Mapping[str, Any] = {}


def whole(value: object) -> int | None:
    """Convert a count or an index, a string included; None for anything else."""
    if isinstance(value, str):
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
            return None
        value = int(digits)
    return value if type(value) is int and 0 <= value < MOST else None


def number(value: object) -> float | None:
    """Convert a measured value, a string included; None for anything else."""
    if isinstance(value, str):
        digits = value.strip()
        return _number(digits) if len(digits) <= LONGEST_NUMBER else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < MOST else None  # NaN is not below it


@lru_cache(maxsize=4096)
def _number(digits: str) -> float | None:
    """Parse a measured value: many ports measure the same."""
    return number(float(digits)) if NUMBER.match(digits) else None


def plain(text: str) -> str:
    """Remove terminal colours."""
    return COLOUR.sub("", text) if ESCAPE in text else text


def document(text: str) -> Any:
    """Parse JSON; None if it is invalid."""
    return parsed(text)


def members(found: object) -> tuple[Mapping[str, Any], ...]:
    """The objects of a list; a single object counts as a list of one."""
    listed = found if isinstance(found, list) else [found]
    return tuple(one for one in listed if isinstance(one, dict))


def member(found: object, key: str) -> Mapping[str, Any]:
    """An object inside another one; empty if there is none."""
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else NOTHING


def word(found: Mapping[str, Any], key: str) -> str:
    """A text inside an object; empty if there is none."""
    value = found.get(key)
    return value.strip() if isinstance(value, str) else ""


def sections(text: str) -> dict[str, str]:
    """Split output by NIC; NICs for which the command failed are dropped."""
    lines = "\n".join(text.splitlines()) if "\r" in text else text
    found = {}
    for part in f"\n{lines}".split(f"\n{BEGIN}")[1:]:
        head, _, rest = part.partition("\n")
        rows, mark, end = f"\n{rest}".partition(f"\n{END}")
        if mark and (name := head.strip()) and end.partition("\n")[0].strip() == "0" and rows.strip():
            found[name] = rows[1:]
    return found


def pairs(text: str, separator: str = ":") -> Iterator[tuple[str, str]]:
    """Yield the key and value of each line that has a separator."""
    for line in plain(text).splitlines():
        key, found, value = line.partition(separator)
        if found and (name := key.strip()):
            yield name, value.strip()


PCI = "/sys/bus/pci/devices"
CLASS = "/sys/class"
AFTER = chr(ord("/") + 1)
"""What sorts right behind the paths in a folder."""
LAST = "/end"
"""A marker after the last file, which truncated output lacks."""
CONF = "/proc/sys/net/ipv4/conf"
SYSCTLS = ("rp_filter", "arp_ignore", "arp_announce")
CONF_V6 = "/proc/sys/net/ipv6/conf"
PROBE_INTERVAL = "router_probe_interval"
LINE = re.compile(r"^(/[^\0\n]*)\0(.*)", re.MULTILINE)
SLOT = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
PF_PORT = re.compile(r"p\d+\Z")


@dataclass(frozen=True, eq=False)
class Tree:
    """Files of a host: path → text."""

    files: Mapping[str, str]

    @cached_property
    def _paths(self) -> Sequence[str]:
        return sorted(self.files)

    def text(self, path: str) -> str:
        """The text of a file; empty if it does not exist."""
        return self.files.get(path, "").strip()

    def below(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the files below a folder, by relative path."""
        head = f"{folder}/"
        for path in islice(self._paths, bisect_left(self._paths, head), None):
            if not path.startswith(head):
                return
            yield path.removeprefix(head), self.files[path].strip()

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted."""
        head, paths, found = f"{folder}/", self._paths, list[str]()
        at = bisect_left(paths, head)
        while at < len(paths) and paths[at].startswith(head):
            found.append(paths[at].removeprefix(head).partition("/")[0])
            at = bisect_left(paths, f"{head}{found[-1]}{AFTER}", at + 1)
        return sorted(found)


@dataclass(frozen=True, slots=True)
class Card:
    """A NIC of a `Tree`."""

    interface: str
    pci: str
    rdma: str
    folder: str

    @property
    def net(self) -> str:
        """The folder of its interface."""
        return f"{self.folder}/net/{self.interface}"

    @property
    def port(self) -> str:
        """The folder of its RDMA port."""
        return f"{self.folder}/infiniband/{self.rdma}/ports/1"


@lru_cache(maxsize=RECENT)
def parse(text: str) -> Tree:
    """Parse the output of `grep -aZ`: path, NUL, a line of the file; empty if it is truncated."""
    found: dict[str, str] = {}
    further: dict[str, list[str]] = {}
    for path, line in LINE.findall(text):
        if path in found:
            further.setdefault(path, []).append(line.rstrip("\r"))
        else:
            found[path] = line.rstrip("\r")
    is_whole = found.pop(LAST, None) is not None
    found |= {path: "\n".join((found[path], *lines)) for path, lines in further.items() if path in found}
    return Tree(found if is_whole else {})


@lru_cache(maxsize=RECENT)
def cards(tree: Tree, nics: tuple[SubjectNic, ...]) -> tuple[Card, ...]:
    """Find the NICs at the PCI addresses of the design, each with its actual interface."""
    found = {}
    for nic in nics:
        folder = f"{PCI}/{nic.pci}"
        names, rdmas = tree.names(f"{folder}/net"), tree.names(f"{folder}/infiniband")
        if names:
            # Representors of functions are listed beside the port itself.
            ports = (one for one in names if PF_PORT.match(tree.text(f"{folder}/net/{one}/phys_port_name")))
            name = nic.interface if nic.interface in names else next(ports, names[0])
            found[name] = Card(name, nic.pci, nic.rdma if nic.rdma in rdmas else next(iter(rdmas), ""), folder)
    return tuple(found.values())


def beside(subject: ViewSubject) -> tuple[Card, ...]:
    """The NICs of networks beside the rails, which the design knows by interface alone."""
    return tuple(Card(name, "", "", CLASS) for name in subject.beside)


def settings(text: str, quotes: str = "\"'") -> dict[str, str]:
    """Parse `KEY=value` lines; comments and other lines are skipped."""
    rows = (line.strip().partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip(quotes) for key, found, value in rows if found and key.strip()}
