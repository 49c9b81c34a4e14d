"""Reading what a host printed, whatever it is: nothing here raises."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from netkit.platforms.json_access import parsed
from netkit.platforms.view import SubjectNic

COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WHOLE = re.compile(r"[0-9]{1,20}\Z")
NUMBER = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,4})?\Z")
BEGIN, END = "#@ ", "#= "
MOST = 2**64
NOTHING: Mapping[str, Any] = {}


def whole(told: object) -> int | None:
    """Return a count or an index; None when that is not what was told."""
    if isinstance(told, str) and WHOLE.match(told.strip()):
        told = int(told)
    is_count = isinstance(told, int) and not isinstance(told, bool)
    return told if is_count and isinstance(told, int) and 0 <= told < MOST else None


def number(told: object) -> float | None:
    """Return a measured value; None when that is not what was told."""
    if isinstance(told, str):
        return number(float(told)) if NUMBER.match(told.strip()) else None
    if isinstance(told, bool) or not isinstance(told, int | float) or abs(told) >= MOST:
        return None
    return float(told) if math.isfinite(told) else None


def plain(text: str) -> str:
    """Return a text without the colours of a terminal."""
    return COLOUR.sub("", text)


def document(text: str) -> Any:
    """Return the JSON that a command printed; None when it is none."""
    return parsed(text)


def members(found: object) -> tuple[Mapping[str, Any], ...]:
    """Return the objects in a list; an object alone counts as one."""
    listed = found if isinstance(found, list) else [found]
    return tuple(one for one in listed if isinstance(one, dict))


def member(found: object, key: str) -> Mapping[str, Any]:
    """Return an object inside another one; empty when there is none."""
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else NOTHING


def word(found: Mapping[str, Any], key: str) -> str:
    """Return a text inside an object; empty when there is none."""
    told = found.get(key)
    return told.strip() if isinstance(told, str) else ""


def sections(text: str) -> dict[str, str]:
    """Return what one command printed about each NIC, of those it ended well for."""
    found: dict[str, str] = {}
    name, rows = "", list[str]()
    for line in text.splitlines():
        if line.startswith(BEGIN):
            name, rows = line.removeprefix(BEGIN).strip(), []
        elif line.startswith(END):
            if name and line.removeprefix(END).strip() == "0" and any(row.strip() for row in rows):
                found[name] = "\n".join(rows)
            name = ""
        elif name:
            rows.append(line)
    return found


def pairs(text: str, separator: str = ":") -> Iterator[tuple[str, str]]:
    """Yield keys and values of lines; lines without a separator are left out."""
    for line in plain(text).splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip():
            yield key.strip(), value.strip()


PCI = "/sys/bus/pci/devices"
LAST = "/end"
"""Stands for a file after the last one: what was cut off before it is not the tree."""
CONF = "/proc/sys/net/ipv4/conf"
SYSCTLS = ("rp_filter", "arp_ignore", "arp_announce")
SLOT = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
PF_PORT = re.compile(r"p\d+\Z")


@dataclass(frozen=True, slots=True)
class Tree:
    """Texts by path."""

    files: Mapping[str, str]

    def text(self, path: str) -> str:
        """Return what a file holds; empty when it is not there."""
        return self.files.get(path, "").strip()

    def below(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the files below a folder, by the path from there."""
        head = f"{folder}/"
        for path, text in self.files.items():
            if path.startswith(head):
                yield path.removeprefix(head), text.strip()


@dataclass(frozen=True, slots=True)
class Card:
    """A NIC as it stands in the tree."""

    interface: str
    pci: str
    rdma: str
    folder: str

    @property
    def net(self) -> str:
        """Return the folder of its interface."""
        return f"{self.folder}/net/{self.interface}"

    @property
    def port(self) -> str:
        """Return the folder of its RDMA port."""
        return f"{self.folder}/infiniband/{self.rdma}/ports/1"


def parse(text: str) -> Tree:
    """Return what `grep -aZ` printed: path, NUL, a line of the file; nothing when the end is missing."""
    found: dict[str, list[str]] = {}
    for line in text.split("\n"):
        path, mark, rest = line.partition("\0")
        if mark and path.startswith("/"):
            found.setdefault(path, []).append(rest.rstrip("\r"))
    is_whole = found.pop(LAST, None) is not None
    return Tree({path: "\n".join(lines) for path, lines in found.items()} if is_whole else {})


def cards(tree: Tree, nics: tuple[SubjectNic, ...]) -> tuple[Card, ...]:
    """Return the NICs that are at the addresses the design knows, by the interface each really has."""
    found = {}
    for nic in nics:
        folder = f"{PCI}/{nic.pci}"
        names = sorted({path.split("/")[1] for path, _ in tree.below(folder) if path.startswith("net/")})
        rdmas = sorted({path.split("/")[1] for path, _ in tree.below(folder) if path.startswith("infiniband/")})
        if names:
            name = nic.interface if nic.interface in names else _own(tree, folder, names)
            found[name] = Card(name, nic.pci, nic.rdma if nic.rdma in rdmas else next(iter(rdmas), ""), folder)
    return tuple(found.values())


def _own(tree: Tree, folder: str, names: list[str]) -> str:
    """Return the interface that is the port itself: representors of functions stand beside it."""
    ports = (name for name in names if PF_PORT.match(tree.text(f"{folder}/net/{name}/phys_port_name")))
    return next(ports, names[0])


def settings(text: str, quotes: str = "\"'") -> dict[str, str]:
    """Return a file of `KEY=value` lines; comments and what is none are left out."""
    rows = (line.strip().partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip().strip(quotes) for key, found, value in rows if found and key.strip()}
