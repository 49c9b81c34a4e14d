"""One switch and its hosts in network namespaces, with only addresses and the marking ruleset on the switch.

The namespaces have no name and no uplink, and end with the `with` block or, if that never ends, by themselves.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from netkit.lab import netlink
from netkit.lab.model.wiring import NicSettings
from netkit.lab.state import EcnState, PortState, QosState, SwitchState
from netkit.lab.traffic import marking
from netkit.lab.traffic.engine import TrafficProcess
from netkit.lab.traffic.flow import FlowEnd, NicAddress, NicConfig, TrafficFlow
from netkit.lab.traffic.marking import PortMarks

DEADLINE_S = 90.0
LIFETIME_S = 900
RAIL = "rail0"
QOS = QosState(
    priority_of_dscp=tuple(dscp >> 3 for dscp in range(64)),
    pfc_priorities=frozenset({3}),
    ecn={3: EcnState(10_000_000, 20_000_000, 100)},  # the longest burst, because a busy machine bunches packets
)
NIC = NicConfig(
    NicSettings(
        pfc_priorities=frozenset({3}),
        priority_of_dscp=tuple(dscp >> 3 for dscp in range(64)),
        np_enabled=frozenset({3}),
        rp_enabled=frozenset({3}),
        cnp_dscp=48,
        cnp_priority=6,
    )
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make network namespaces")


def until(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail if it does not."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:.0f} s: {what}"
        time.sleep(0.05)


@contextmanager
def namespace() -> Iterator[str]:
    """Open a network namespace; yield its file."""
    process = subprocess.Popen(["unshare", "--net", "sleep", str(LIFETIME_S)])
    path, mine = Path(f"/proc/{process.pid}/ns/net"), Path("/proc/self/ns/net").readlink()
    try:
        until("a network namespace", lambda: path.readlink() != mine)
        yield str(path)
    finally:
        process.kill()
        process.wait()


def inside(where: str, *command: str, text: str = "") -> str:
    """Run a command in a namespace."""
    done = subprocess.run(
        ["nsenter", f"--net={where}", *command], input=text, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Scene:
    """The switch with its ports p1, p2, …, a host h1, h2, … at each, and the traffic process."""

    switch: str
    hosts: Mapping[str, str]
    traffic: TrafficProcess
    state: SwitchState
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> Mapping[str, str]:
        return {port.name: port.name for port in self.state.ports}

    def mark(self, above_pps: int, qos: QosState = QOS) -> None:
        """Mark above a rate, on every port."""
        speed_gbps = above_pps * marking.GBPS_PER_PPS
        ports = tuple(replace(port, qos=qos, speed_gbps=speed_gbps) for port in self.state.ports)
        text = marking.ruleset(replace(self.state, ports=ports), self.names)
        inside(self.switch, "nft", "-f", "-", text=text)

    def marks(self, port: str) -> PortMarks:
        """A port's counters of marked and dropped packets."""
        return marking.marks(netlink.counters(self.switch, marking.TABLE), self.names)[port]

    def configure(self, config: NicConfig) -> None:
        """Configure all NICs equally."""
        for host in self.hosts:
            self.traffic.configure(FlowEnd(host, RAIL), config)

    def flow(self, source: str, destination: str, rate_pps: float, duration_s: float = 600) -> TrafficFlow:
        """A flow between two hosts."""
        return TrafficFlow(
            f"{source}-{destination}",
            FlowEnd(source, RAIL),
            FlowEnd(destination, RAIL),
            rate_pps,
            duration_s=duration_s,
        )

    def count(self, host: str, name: str) -> int:
        """One counter of a host's NIC."""
        return int(getattr(self.traffic.traffic(host)[RAIL], name))

    def settle(self, source: str, port: str, destination: str) -> None:
        """Stop all flows, and wait until each packet one host sent was dropped or has arrived at the other."""
        self.traffic.stop_all()
        sent = self.count(source, "tx_roce_packets")
        until(
            f"{sent} packets arrived or dropped",
            lambda: self.count(destination, "rx_roce_packets") + self.marks(port).dropped_packets == sent,
        )


@contextmanager
def scene(hosts: int = 2, *, is_bridged: bool = False) -> Iterator[Scene]:
    """Build a switch and hosts: each at its own routed port, or all in one VLAN."""
    with ExitStack() as stack:
        switch = stack.enter_context(namespace())
        names = [f"h{number}" for number in range(1, hosts + 1)]
        where = {name: stack.enter_context(namespace()) for name in names}
        inside(switch, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        inside(switch, "ip", "-batch", "-", text="\n".join(_switch_lines(where, is_bridged=is_bridged)) + "\n")
        addresses = {}
        for number, name in enumerate(names, 1):
            addresses[name] = f"10.7.0.{number}" if is_bridged else f"10.7.{number}.1"
            length, gateway = (24, "10.7.0.254") if is_bridged else (31, f"10.7.{number}.0")
            lines = [
                "link set lo up",
                f"addr add {addresses[name]}/{length} dev {RAIL}",
                f"link set {RAIL} up",
                f"route add default via {gateway} dev {RAIL}",
            ]
            inside(where[name], "ip", "-batch", "-", text="\n".join(lines) + "\n")
        traffic = stack.enter_context(TrafficProcess())
        for name, path in where.items():
            traffic.attach(name, path, [NicAddress(RAIL, addresses[name])])
        state = SwitchState("switch", tuple(PortState(f"p{number}") for number in range(1, hosts + 1)))
        made = Scene(switch, where, traffic, state, addresses)
        made.configure(NIC)
        until("a way through", lambda: all(_reaches(path, addresses["h1"]) for path in where.values()))
        yield made


def _switch_lines(hosts: Mapping[str, str], *, is_bridged: bool) -> Iterator[str]:
    if is_bridged:
        yield "link add vlan10 type bridge forward_delay 0 stp_state 0"
        yield "addr add 10.7.0.254/24 dev vlan10"
        yield "link set vlan10 up"
    for number, path in enumerate(hosts.values(), 1):
        yield f"link add p{number} type veth peer name {RAIL} netns {path.split('/')[2]}"
        yield f"link set p{number} master vlan10" if is_bridged else f"addr add 10.7.{number}.0/31 dev p{number}"
        yield f"link set p{number} up"


def _reaches(where: str, address: str) -> bool:
    command = ["nsenter", f"--net={where}", "ping", "-c", "1", "-W", "1", address]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def counters(where: str) -> Mapping[str, int]:
    """The named nftables counters of a namespace."""
    listing = json.loads(inside(where, "nft", "-j", "list", "counters"))["nftables"]
    return {item["counter"]["name"]: item["counter"]["packets"] for item in listing if "counter" in item}
