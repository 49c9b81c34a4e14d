"""What `lspci -vv` and the PCI tree tell: links, ordering, access control, and who sits beside whom."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netkit.platforms.linux.facts.tree import SLOT, Card

GPUS, END = "#@ gpus", "#= end"
HEAD = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.*)")
READ_REQUEST = re.compile(r"MaxReadReq ([0-9]{2,5}) bytes")
ORDERING = re.compile(r"RlxdOrd([+-])")
PART = re.compile(r"\[PN\] Part number: *(\S+)")
ACCESS = re.compile(r"ACSCtl:.*\b(?:ReqRedir|CmpltRedir|UpstreamFwd)\+")


@dataclass(frozen=True, slots=True)
class Device:
    """One PCI device; None where it does not tell."""

    title: str = ""
    part: str = ""
    read_request_bytes: int | None = None
    has_relaxed_ordering: bool | None = None
    redirects: bool = False
    """Whether it sends what its devices say to each other up to the root."""


def devices(text: str) -> dict[str, Device]:
    """Return what `lspci -D -vv` printed, by address; nothing when the end is missing."""
    if END not in text:
        return {}
    blocks: dict[str, list[str]] = {}
    address = ""
    for line in text.splitlines():
        match = HEAD.match(line)
        address = match[1] if match else address if line.startswith(("\t", " ")) else ""
        if address:
            blocks.setdefault(address, []).append(line)
    return {address: _device("\n".join(lines)) for address, lines in blocks.items()}


def _device(text: str) -> Device:
    request, ordering, part = READ_REQUEST.search(text), ORDERING.search(text), PART.search(text)
    return Device(
        title=text.partition("\n")[0].partition(" ")[2],
        part=part[1] if part else "",
        read_request_bytes=int(request[1]) if request else None,
        has_relaxed_ordering=ordering[1] == "+" if ordering else None,
        redirects=ACCESS.search(text) is not None,
    )


@dataclass(frozen=True, slots=True)
class Topology:
    """How PCI devices hang together."""

    above: Mapping[str, tuple[str, ...]]
    """Device → the bridges above it, from the root down."""
    gpus: tuple[str, ...]


def topology(text: str) -> Topology:
    """Return the real paths of all devices, and the GPUs among them; nothing when the end is missing."""
    paths, _, rest = text.partition(GPUS)
    gpus, end, _ = rest.partition(END)
    if not end:
        return Topology({}, ())
    above = {address: bridges for *bridges, address in map(_slots, paths.splitlines()) if address}
    return Topology(
        {address: tuple(bridges) for address, bridges in above.items()},
        tuple(sorted({slot for line in gpus.splitlines() for slot in _slots(line) if slot})),
    )


def _slots(path: str) -> list[str]:
    """Return the addresses in a path; one that is empty when there are none."""
    return [part for part in path.strip().split("/") if SLOT.match(part)] or [""]


def bridges_with_access_control(
    told: Mapping[str, Device], topology: Topology, concerned: Iterable[str]
) -> tuple[str, ...] | None:
    """Return the bridges that redirect, of those above NICs and GPUs where the tree is known, else of all."""
    if not told:
        return None
    known = {bridge for address in concerned for bridge in topology.above.get(address, ())}
    return tuple(sorted(name for name, one in told.items() if one.redirects and (not known or name in known)))


def nearest(topology: Topology, cards: Sequence[Card]) -> dict[str, str]:
    """Return the interface of the NIC behind the same PCIe switch as each GPU: the one that shares most bridges.

    A GPU that shares as much with several, or with none but the root port, is nearest to none.
    """
    found = {}
    for gpu in topology.gpus:
        shared = sorted(((_shared(topology.above, gpu, card.pci), card.interface) for card in cards), reverse=True)
        is_alone = len(shared) == 1 or (len(shared) > 1 and shared[0][0] > shared[1][0])
        if shared and shared[0][0] > 1 and is_alone:
            found[gpu] = shared[0][1]
    return found


def _shared(above: Mapping[str, tuple[str, ...]], one: str, other: str) -> int:
    """Return how many bridges are above both."""
    count = 0
    for own, others in zip(above.get(one, ()), above.get(other, ()), strict=False):
        if own != others:
            break
        count += 1
    return count
