"""Routers outside the fabric: FRR in a namespace, which peers with a switch and announces a default route."""

from collections.abc import Iterator

from netkit.lab import routing
from netkit.lab.layout import OUTSIDE_INTERFACE, OutsidePeer
from netkit.lab.program_runner import ProgramRunner

UNWANTED = "198.18.0.0/15"
"""Announced too, as a route that switches have to reject (RFC 2544)."""


def start(node: ProgramRunner, peer: OutsidePeer, bfd_interval_ms: int) -> None:
    """Configure the link of a router, and start its FRR."""
    port = peer.port
    length = port.address.partition("/")[2]
    for command in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{port.peer}/{length}", "dev", OUTSIDE_INTERFACE),
        ("link", "set", OUTSIDE_INTERFACE, "mtu", str(port.mtu_bytes), "up"),
    ):
        done = node.run("ip", *command)
        if done.exit_code != 0:
            raise OSError(f"{peer.name}: ip {' '.join(command)}: {done.stderr.strip()}")
    routing.load(node, routing.slower_bfd("\n".join((*_configuration(peer), "")), bfd_interval_ms))


def _configuration(peer: OutsidePeer) -> Iterator[str]:
    port = peer.port
    switch = port.own_address
    yield from ("frr defaults traditional", f"hostname {peer.name}", "no zebra nexthop kernel enable")
    yield f"router bgp {port.peer_asn}"
    yield f" bgp router-id {port.peer}"
    yield " no bgp ebgp-requires-policy"
    yield " no bgp network import-check"
    yield f" neighbor {switch} remote-as {peer.switch.asn}"
    # When both ends open a session at once, FRR 8.4 may end up without BFD at one of them.
    yield f" neighbor {switch} passive"
    yield f" neighbor {switch} update-source {port.peer}"
    if port.has_bfd:
        yield f" neighbor {switch} bfd"
        yield f" neighbor {switch} bfd profile fabric"
    yield from (" !", " address-family ipv4 unicast")
    yield from (f"  network {prefix}" for prefix in dict.fromkeys((*port.accepted, UNWANTED)))
    yield from (" exit-address-family", "exit", "!")
    yield from (
        "bfd",
        " profile fabric",
        "  transmit-interval 300",
        "  receive-interval 300",
        " exit",
        " !",
        "exit",
        "!",
    )
