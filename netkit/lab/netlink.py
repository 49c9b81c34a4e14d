"""Links and nftables counters of a network namespace over netlink, `ip -batch` input, and loopback networks.

Netlink replaces running `ip` and `nft` and parsing their JSON, which dominated the time of reading many nodes at once.
Constants are those of the kernel's headers rtnetlink.h, if_link.h and nf_tables.h.
"""

import fcntl
import json
import os
import secrets
import socket
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from netkit.errors import LabError, Problem
from netkit.lab import namespace_holder
from netkit.lab.state import SwitchState

_HEAD, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_LINK, _FAMILY = struct.Struct("=BxHiII"), struct.Struct("=BBH")
_NUMBER, _STATS, _COUNT = struct.Struct("=I"), struct.Struct("=8Q"), struct.Struct(">Q")
_REQUEST, _DUMP, _INTERRUPTED = 0x001, 0x300, 0x010
_ERROR, _DONE = 2, 3
_MOST_BYTES = 1 << 18
_TRIES = 5
_KIND = 0x3FFF
"""Attributes carry two flags beside their kind."""

_ROUTE, _GET_LINK = 0, 18
_IFF_UP, _IFF_LOWER_UP = 1 << 0, 1 << 16
_ADDRESS, _NAME, _MTU, _STATS64, _CARRIER_CHANGES = 1, 3, 4, 23, 35

_NETFILTER, _GET_OBJECT, _NETDEV = 12, (10 << 8) | 19, 5
_OBJECT_TABLE, _OBJECT_NAME, _OBJECT_TYPE, _OBJECT_DATA = 1, 2, 3, 4
_COUNTER = 1
_COUNTER_BYTES, _COUNTER_PACKETS = 1, 2


class InterruptedDumpError(OSError):
    """The kernel's tables changed during every attempt to dump them."""


@dataclass(frozen=True, slots=True)
class KernelLink:
    """One link as the kernel reports it."""

    is_enabled: bool
    has_carrier: bool
    mac: str
    mtu_bytes: int
    carrier_changes: int
    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_errors: int
    tx_errors: int
    rx_dropped: int
    tx_dropped: int


def links(namespace: str) -> Mapping[str, KernelLink]:
    """The links of a namespace, given by its file such as /proc/1/ns/net."""
    found = {}
    for body in _dumped(namespace, _ROUTE, _GET_LINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        _, _, _, flags, _ = _LINK.unpack_from(body)
        attributes = dict(_attributes(body[_LINK.size :]))
        name = attributes.get(_NAME, b"").rstrip(b"\0").decode(errors="replace")
        found[name] = KernelLink(
            bool(flags & _IFF_UP),
            bool(flags & _IFF_LOWER_UP),
            attributes.get(_ADDRESS, b"").hex(":"),
            _unpacked(_NUMBER, attributes.get(_MTU)),
            _unpacked(_NUMBER, attributes.get(_CARRIER_CHANGES)),
            *_STATS.unpack_from(attributes.get(_STATS64, bytes(_STATS.size))),
        )
    return found


def counters(namespace: str, table: str) -> Mapping[str, tuple[int, int]]:
    """Packets and bytes of each named counter in a netdev table; empty without the table."""
    request = _attribute(_OBJECT_TABLE, table.encode() + b"\0") + _attribute(_OBJECT_TYPE, _COUNTER.to_bytes(4, "big"))
    found = {}
    for body in _dumped(namespace, _NETFILTER, _GET_OBJECT, _FAMILY.pack(_NETDEV, 0, 0) + request):
        attributes = dict(_attributes(body[_FAMILY.size :]))
        data = dict(_attributes(attributes.get(_OBJECT_DATA, b"")))
        packets, size = (_unpacked(_COUNT, data.get(kind)) for kind in (_COUNTER_PACKETS, _COUNTER_BYTES))
        found[attributes[_OBJECT_NAME].rstrip(b"\0").decode()] = (packets, size)
    return found


def _dumped(namespace: str, protocol: int, kind: int, body: bytes) -> list[bytes]:
    """Dump all objects of a kind; retry if the dump was interrupted by a change."""
    with _opened(namespace, protocol) as line:
        for sequence in range(1, _TRIES + 1):
            line.send(_HEAD.pack(_HEAD.size + len(body), kind, _REQUEST | _DUMP, sequence, 0) + body)
            messages = list(_messages(line))
            if not any(flags & _INTERRUPTED for flags, _ in messages):
                return [body for _, body in messages]
    raise InterruptedDumpError(namespace)


def _messages(line: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield flags and body of each message until the last."""
    while True:
        datagram, at = line.recv(_MOST_BYTES), 0
        while at < len(datagram):
            size, kind, flags, _, _ = _HEAD.unpack_from(datagram, at)
            body = datagram[at + _HEAD.size : at + size]
            if kind == _ERROR:
                number = -int.from_bytes(body[:4], "little", signed=True)
                raise OSError(number, os.strerror(number))
            if kind == _DONE:
                return
            yield flags, body
            at += _aligned(size)


def _opened(namespace: str, protocol: int) -> socket.socket:
    """A netlink socket in a namespace.

    A separate thread enters the namespace and ends: without root a thread cannot return to the machine's network.
    """

    def inside() -> socket.socket:
        with Path(namespace).open("rb") as file:
            namespace_holder.setns(file.fileno(), namespace_holder.CLONE_NEWNET)
        line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _MOST_BYTES)
        return line

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(inside).result()


def _attributes(payload: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(payload):
        size, kind = _ATTRIBUTE.unpack_from(payload, at)
        yield kind & _KIND, payload[at + _ATTRIBUTE.size : at + size]
        at += _aligned(max(size, _ATTRIBUTE.size))


def _attribute(kind: int, body: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(body)
    return _ATTRIBUTE.pack(size, kind) + body + bytes(_aligned(size) - size)


def _aligned(size: int) -> int:
    return size + 3 & ~3


def _unpacked(number: struct.Struct, payload: bytes | None) -> int:
    return int(number.unpack(payload)[0]) if payload else 0


DOWN_MTU = 1500
PEER_INTERFACE = "peerlink.4094"
SPANNING_TREE = "stp_state 1 forward_delay 200 hello_time 100 max_age 600"
"""As fast as the kernel allows: a port forwards after 4 s."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """One kernel interface."""

    is_up: bool = False
    mtu_bytes: int = DOWN_MTU
    addresses: frozenset[str] = frozenset()
    bridge: str = ""


@dataclass(frozen=True, slots=True)
class KernelState:
    """All interfaces of a node: its ports, its bridges (one for each VLAN) and its loopback."""

    links: Mapping[str, LinkState] = field(default_factory=dict)
    bridges: Mapping[str, int] = field(default_factory=dict)
    """Each bridge with the priority of its spanning tree; 0: it has none."""


def wanted(state: SwitchState, kernel_names: Mapping[str, str], beside: Collection[str] = ()) -> KernelState:
    """The kernel state that implements a switch's configuration."""
    bridge_of = {vlan.number: vlan.interface for vlan in state.vlans}
    configured = {port.name: port for port in state.ports}
    links = {"lo": LinkState(is_up=True, mtu_bytes=0, addresses=frozenset(state.loopback_addresses))}
    for vlan in state.vlans:
        links[vlan.interface] = LinkState(vlan.is_enabled, vlan.mtu_bytes, frozenset(vlan.addresses))
    for name, interface in kernel_names.items():
        port = configured.get(name)
        if port is None:
            links[interface] = LinkState()
            continue
        bridge = bridge_of.get(port.access_vlan, "")
        links[interface] = LinkState(port.is_enabled, port.mtu_bytes, frozenset(port.addresses), bridge)
        for number in port.tagged_vlans:
            if (tagged := f"{interface}.{number}") in beside and number in bridge_of:
                links[tagged] = LinkState(port.is_enabled, port.mtu_bytes, bridge=bridge_of[number])
    for name in beside:
        is_between = state.has_peer and name == PEER_INTERFACE
        addresses = frozenset(state.peer_addresses if is_between else ())
        links.setdefault(name, LinkState(is_up=is_between, addresses=addresses))
    return KernelState(links, {vlan.interface: vlan.stp_priority for vlan in state.vlans})


def steps(node: str, before: KernelState, after: KernelState) -> Iterator[str]:
    """Yield the `ip -batch` lines that change one kernel state of a node into another."""
    gone = before.bridges.keys() - after.bridges.keys()
    for bridge in sorted(gone):
        yield f"link del {bridge}"
    for bridge, priority in sorted(after.bridges.items()):
        if before.bridges.get(bridge) != priority:
            verb = "set" if bridge in before.bridges else f"add address {_bridge_mac(node, bridge)} name"
            tree = f"{SPANNING_TREE} priority {priority}" if priority else "forward_delay 0 stp_state 0"
            yield f"link {verb} {bridge} type bridge {tree} mcast_snooping 0"
    ordered = sorted(after.links, key=lambda name: (name in after.bridges, name))  # a bridge's MTU follows its ports'
    for name in ordered:
        yield from _link(name, before.links.get(name, LinkState()), after.links[name], gone)


def _bridge_mac(node: str, bridge: str) -> str:
    """A bridge's own address: without one it has that of a port, and hosts lose their gateway when the port leaves."""
    return "02:00:" + zlib.crc32(f"{node} {bridge}".encode()).to_bytes(4).hex(":")


def going_down(before: KernelState, after: KernelState) -> frozenset[str]:
    """The interfaces that are up in one kernel state and not in the other."""
    return frozenset(
        name for name, link in before.links.items() if link.is_up and not after.links.get(name, LinkState()).is_up
    )


def _link(name: str, before: LinkState, after: LinkState, gone: Collection[str]) -> Iterator[str]:
    for address in sorted(before.addresses - after.addresses):
        yield f"addr del {address} dev {name}"
    was_bridge = "" if before.bridge in gone else before.bridge
    if was_bridge != after.bridge:
        yield f"link set {name} nomaster" if not after.bridge else f"link set {name} master {after.bridge}"
    if after.mtu_bytes and before.mtu_bytes != after.mtu_bytes:
        yield f"link set {name} mtu {after.mtu_bytes}"
    if before.is_up != after.is_up:
        yield f"link set {name} {'up' if after.is_up else 'down'}"
    for address in sorted(after.addresses - before.addresses):
        yield f"addr add {address} dev {name}"


BLOCKS = range(64, 120)
PREFIX = "netkit-lab-127."


def claim(lab: str) -> tuple[str, socket.socket]:
    """A free loopback network such as `127.64`, and a socket that reserves it while open."""
    holder = socket.socket(socket.AF_UNIX)
    first = zlib.crc32(lab.encode()) % len(BLOCKS)
    for offset in range(len(BLOCKS)):
        number = BLOCKS[(first + offset) % len(BLOCKS)]
        try:
            holder.bind(f"\0{PREFIX}{number}")
        except OSError:
            continue
        return f"127.{number}", holder
    raise LabError(Problem("every loopback network for labs is in use", "end a lab: netkit lab down"))


@contextmanager
def announced() -> Iterator[None]:
    """Count as a lab while one is starting, before it has its own network."""
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(f"\0{PREFIX}start-{secrets.token_hex(8)}")
        yield


def any_claimed() -> bool:
    """Whether any user's lab runs or starts on this machine."""
    return f"@{PREFIX}" in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")


KEYS = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
PLACES = tuple(f"{family}/{key}" for family in ("ipv4", "ipv6") for key in KEYS)
ENTRIES_PER_CABLE = 5
ROOM = 3  # times what is needed, where it costs nothing
SAVED = Path("/run/netkit-neighbor-table.json")


def needed(cables: int, neighbors: int = 0) -> Mapping[str, int]:
    """Thresholds for a number of cables: both ends learn each other, by IPv4 and IPv6."""
    most = max(1024, (cables * ENTRIES_PER_CABLE + neighbors) * (ROOM if os.geteuid() == 0 else 1))
    return {"gc_thresh1": most // 4, "gc_thresh2": most // 2, "gc_thresh3": most}


def make_room(cables: int) -> None:
    """Raise the thresholds, and save the values from before the first lab."""
    wanted = needed(cables)
    now = {place: _read(place) for place in PLACES}
    short = {place: wanted[place.partition("/")[2]] for place in now if now[place] < wanted[place.partition("/")[2]]}
    if os.geteuid() != 0:
        short = {place: value for place, value in short.items() if place.endswith("gc_thresh3")}
    if not short:
        return
    if os.geteuid() != 0:
        limit = min(now["ipv4/gc_thresh3"], now["ipv6/gc_thresh3"])
        raise LabError(
            Problem(
                f"{cables} cables need a larger neighbour table than this machine's ({limit} entries)",
                f"as root: sysctl net.ipv4.neigh.default.gc_thresh3={wanted['gc_thresh3']} "
                f"net.ipv6.neigh.default.gc_thresh3={wanted['gc_thresh3']}, or run the lab as root",
            )
        )
    with _alone():
        if not SAVED.exists():
            SAVED.write_text(json.dumps({place: _read(place) for place in PLACES}), encoding="utf-8")
        for place in sorted(short, reverse=True):  # the highest first: the kernel wants them in order
            _write(place, max(short[place], _read(place)))


def give_back() -> None:
    """Restore the thresholds once no lab is left on this machine, of any user."""
    if os.geteuid() != 0:
        return
    with _alone():
        if not SAVED.exists() or any_claimed():
            return
        for place, value in sorted(json.loads(SAVED.read_text(encoding="utf-8")).items()):
            _write(place, value)
        SAVED.unlink()


@contextmanager
def _alone() -> Iterator[None]:
    """Exclude labs of other folders, which have another lock of all labs."""
    folder = os.open(SAVED.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _place(place: str) -> Path:
    family, _, key = place.partition("/")
    return Path(f"/proc/sys/net/{family}/neigh/default/{key}")


def _read(place: str) -> int:
    return int(_place(place).read_text(encoding="ascii"))


def _write(place: str, value: int) -> None:
    _place(place).write_text(str(value), encoding="ascii")
