"""Files below /sys, /proc and /etc, as one command printed them all."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.platforms.view import SubjectNic

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
