"""Acts out the faults that are real in the kernel and FRR, and turns faults of a lab on and off."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from netkit.design.fabric import Fabric, Host
from netkit.errors import LabError, Problem
from netkit.lab import faults
from netkit.lab.faults import bench
from netkit.lab.faults import bench as nic_faults
from netkit.lab.faults.bench import BreakStep, RunningNode, do, label, note, noted, step
from netkit.lab.faults.fault import InjectedFault, other_port, port_of
from netkit.lab.model.wiring import NicSettings
from netkit.lab.traffic.marking import UNHEEDED_MARK
from netkit.lab.world import World

Nodes = Mapping[str, RunningNode]
Plan = tuple[list[BreakStep], list[BreakStep]]
"""Steps that make a fault, and steps that heal it."""
BGP_PORT = 179
ROCE_PORT = 4791
SWAP_S = 1
"""How long a module that is well takes to come up, and how long daemons have to see what was before."""
SETTLED_S = 2
"""After so long networkd has done what a link that came back asks for."""


def make(fault: InjectedFault, fabric: Fabric, nodes: Nodes) -> None:
    """Inject a fault that exists in the kernel."""
    if fault.name == "wrong-cable":
        bench.swap(fault, fabric, nodes)
        return
    node = nodes[device_of(fault, fabric)]
    if fault.name in CARRIER:
        CARRIER[fault.name](fault, fabric, node)
        return
    breaking, healing = PLANS[fault.name](fault, fabric, node)
    note(node, fault, healing)
    do(node, breaking)


def heal(fault: InjectedFault, fabric: Fabric, nodes: Nodes) -> None:
    """Undo `make`; after a restart of the node there is nothing to undo."""
    if fault.name == "wrong-cable":
        bench.swap(fault, fabric, nodes)
        return
    node = nodes[device_of(fault, fabric)]
    if fault.name in CARRIER:
        node.end(label(fault))
    do(node, noted(node, fault))
    if fault.name in CARRIER:
        # Have a host set up its NIC anew: networkd loses routes for good when a link is back before it let go of
        # them.
        port = port_of(fabric, fault)
        if port.role == "host":
            command = f"sleep {SETTLED_S}; networkctl reconfigure {port.peer_port} || :"
            do(nodes[port.peer], [BreakStep(("sh", "-c", command))])
    if fault.name == "wrong-mtu":
        # Let hosts forget what a router told them of a smaller MTU; by themselves they remember for ten minutes.
        for host in fabric.hosts:
            do(nodes[host.name], [step("ip route flush cache")])


def device_of(fault: InjectedFault, fabric: Fabric) -> str:
    """Return the device a fault acts on. Links of hosts are cut at the leaf, so that the host keeps its settings."""
    if fault.name in CARRIER:
        return _carrier_end(fault, fabric)[0]
    return fault.device


def _carrier_end(fault: InjectedFault, fabric: Fabric) -> tuple[str, str]:
    if isinstance(fabric.device(fault.device), Host):
        port = port_of(fabric, fault)
        return next(nic.leaf for nic in _host(fabric, fault).nics if nic.interface == fault.port), port.name
    return fault.device, fault.port


def _flap(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> None:
    """Take a link down and up in a loop; the process ends with the fault or with the lab."""
    interface = node.kernel_names[_carrier_end(fault, fabric)[1]]
    up_s, down_s = fault.number("up_s"), fault.number("down_s")
    note(node, fault, [step("sleep 0.5"), step(f"ip link set dev {interface} up")])  # after its last command
    loop = (
        f"while :; do ip link set dev {interface} down; sleep {down_s:g}; "
        f"ip link set dev {interface} up; sleep {up_s:g}; done"
    )
    node.spawn(label(fault), "/bin/sh", "-c", loop)


def _train(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> None:
    """Take a link down once, for as long as it takes to come up; replacing a module takes a second.

    Host NICs report how long the link took, so healing replaces nothing there.
    """
    interface = node.kernel_names[_carrier_end(fault, fabric)[1]]
    down, up = (f"ip link set dev {interface} {way}" for way in ("down", "up"))
    swap = () if port_of(fabric, fault).role == "host" else (f"sleep {SWAP_S}", down, f"sleep {SWAP_S}", up)
    note(node, fault, [step(one) for one in (up, *swap)])
    node.spawn(label(fault), "/bin/sh", "-c", f"{down}; sleep {fault.number('seconds'):g}; {up}")


def _wrong_mtu(fault: InjectedFault, _fabric: Fabric, node: RunningNode) -> Plan:
    interface = node.kernel_names[fault.port]
    (link,) = json.loads(do(node, [step(f"ip -j link show dev {interface}")]))
    command = f"ip link set dev {interface} mtu"
    return [step(f"{command} {int(fault.number('bytes'))}")], [step(f"{command} {link['mtu']}")]


def _lossy(fault: InjectedFault, _fabric: Fabric, node: RunningNode) -> Plan:
    last = max(1, round(10 * fault.number("percent"))) - 1
    rule = f"ip length > {int(fault.number('above_bytes'))} numgen random mod 1000 <= {last} drop"
    return _filter(fault, node, "egress", 20, rule)


def _missing_host_route(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> Plan:
    names = [fault.port] if fault.port else [nic.interface for nic in _host(fabric, fault).nics]
    lost = [
        f"{route} dev {name}"
        for name in names
        for route in _routes(node, node.kernel_names[name], fault.text("prefix"))
    ]
    if not lost:
        raise LabError(Problem(f"{fault.place} has no such route with a gateway", "give prefix=, as ip route shows it"))
    return [step(f"ip route del {route}") for route in lost], [step(f"ip route replace {route}") for route in lost]


def _routes(node: RunningNode, interface: str, prefix: str) -> list[str]:
    """Return the routes to a prefix, or to the first one with a gateway, in every table."""
    lines = do(node, [step(f"ip -4 route show table all dev {interface}")]).splitlines()
    routes = [line.split() for line in lines if " via " in line]
    wanted = prefix or (routes[0][0] if routes else "")
    return [" ".join(words) for words in routes if words[0] == wanted]


def _wrong_source_route(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> Plan:
    nics = {nic.interface: nic for nic in _host(fabric, fault).nics}
    own, other = nics[fault.port], nics[other_port(fabric, fault, "as")]
    rules = json.loads(do(node, [step("ip -j rule show")]))
    found = [rule for rule in rules if rule.get("src") == own.address]
    if not found:
        raise LabError(
            Problem(f"{fault.place} has no rule by its source", "only hosts that route by source can lose it")
        )
    breaking, healing = [], []
    for rule in found:
        match = f"from {own.address} priority {rule['priority']} protocol {rule.get('protocol', 'static')}"
        right, wrong = (f"ip rule {{}} {match} table {table}" for table in (rule["table"], other.table))
        breaking += [step(right.format("del")), step(wrong.format("add"))]
        healing += [step(wrong.format("del")), step(right.format("add"))]
    return breaking, healing


def _ecn_unmarked(fault: InjectedFault, _fabric: Fabric, node: RunningNode) -> Plan:
    """Set a packet mark that exempts from ECN, just before the decision whether to set CE."""
    return _filter(fault, node, "egress", -10, f"meta mark set meta mark or {UNHEEDED_MARK}")


def _cnp_remarked(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> Plan:
    dscp, other = fabric.lossless.cnp_dscp, int(fault.number("dscp"))
    return _filter(fault, node, "egress", 10, f"udp dport {ROCE_PORT} ip dscp {dscp} ip dscp set {other}")


def _bgp_session_down(fault: InjectedFault, _fabric: Fabric, node: RunningNode) -> Plan:
    return _filter(fault, node, "ingress", -10, f"tcp dport {BGP_PORT} drop", f"tcp sport {BGP_PORT} drop")


def _filter(fault: InjectedFault, node: RunningNode, hook: str, priority: int, *rules: str) -> Plan:
    """Return steps that add and remove rules on one port or on all, in a table of the fault's own."""
    table = label(fault)
    ports = [fault.port] if fault.port else list(node.kernel_names)
    lines = [line for port in ports for line in _chain(node.kernel_names[port], hook, priority, rules)]
    text = "\n".join([f"table netdev {table} {{", *lines, "}", ""])
    gone = f"table netdev {table} {{ }}\ndelete table netdev {table}\n"
    return [BreakStep(("nft", "-f", "-"), gone + text)], [BreakStep(("nft", "-f", "-"), gone)]


def _chain(interface: str, hook: str, priority: int, rules: tuple[str, ...]) -> Iterator[str]:
    yield f'  chain at_{interface} {{ type filter hook {hook} device "{interface}" priority {priority}; policy accept;'
    yield from (f"    {rule}" for rule in rules)
    yield "  }"


def _host(fabric: Fabric, fault: InjectedFault) -> Host:
    device = fabric.device(fault.device)
    if not isinstance(device, Host):
        raise TypeError(f"{fault.device} is not a host")
    return device


CARRIER: Mapping[str, Callable[[InjectedFault, Fabric, RunningNode], None]] = {
    "link-flap": _flap,
    "slow-link-up": _train,
}
"""Faults that go on by themselves, in a process that ends with the fault or with the lab."""
PLANS: Mapping[str, Callable[[InjectedFault, Fabric, RunningNode], Plan]] = {
    "wrong-mtu": _wrong_mtu,
    "lossy": _lossy,
    "missing-host-route": _missing_host_route,
    "wrong-source-route": _wrong_source_route,
    "ecn-unmarked": _ecn_unmarked,
    "cnp-remarked": _cnp_remarked,
    "bgp-session-down": _bgp_session_down,
}


class Breaker:
    """Injects and heals the faults of one lab."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._before: dict[tuple[str, str], Mapping[str, NicSettings]] = {}

    def make(self, name: str, place: str, options: Sequence[str]) -> faults.InjectedFault:
        """Inject a fault; raise LabError if it cannot be injected."""
        given = faults.parse_options(options)
        fault = faults.check(self._world.fabric, name, place, given, time.monotonic())
        active = self._world.services.faults
        with self._lock:
            if active.of(fault.name, fault.device, fault.port):
                raise LabError(Problem(f"{fault.name} at {fault.place} is there already", "heal it first"))
            active.add(fault)
        try:
            self._act(fault)
        except (RuntimeError, LabError, OSError) as error:
            active.heal(fault.name, fault.device, fault.port, now_s=time.monotonic())
            raise LabError(Problem(f"{fault.name} at {fault.place} could not be made: {error}")) from error
        return fault

    def heal(self, name: str, place: str) -> tuple[faults.InjectedFault, ...]:
        """Heal a fault, or without a name all faults of a place; return what was healed."""
        device, port = faults.locate(self._world.fabric, place)
        if name:
            faults.known(name)
        gone = self._world.services.faults.heal(name, device, port, now_s=time.monotonic())
        for fault in reversed(gone):
            self._undo(fault)
        return gone

    def _act(self, fault: faults.InjectedFault) -> None:
        maker = faults.known(fault.name).maker
        if maker == "management":
            self._world.incidents.begin(fault)
        elif maker == "kernel":
            make(fault, self._world.fabric, self._world.nodes)
            self._announce(fault)
        elif maker == "nic" and isinstance(host := self._world.nodes[fault.device].device, Host):
            self._before[fault.name, fault.place] = self._world.settings(host.name)
            for words in nic_faults.commands(fault, self._world.fabric, host):
                nic_faults.run(self._world.nodes[host.name], words)
            self._world.apply_nic_settings(self._world.nodes[host.name])

    def _undo(self, fault: faults.InjectedFault) -> None:
        maker = faults.known(fault.name).maker
        if maker == "management":
            self._world.incidents.end(fault)
        elif maker == "kernel":
            heal(fault, self._world.fabric, self._world.nodes)
            self._announce(fault)
        elif maker == "nic" and isinstance(host := self._world.nodes[fault.device].device, Host):
            before = self._before.pop((fault.name, fault.place), {})
            for words in nic_faults.remedies(fault, self._world.fabric, host, before):
                nic_faults.run(self._world.nodes[host.name], words)
            self._world.apply_nic_settings(self._world.nodes[host.name])

    def _announce(self, fault: faults.InjectedFault) -> None:
        """Restore the LLDP port names on switches whose cables moved."""
        device = self._world.fabric.device(fault.device)
        if fault.name == "wrong-cable" and device is not None:
            names = {nic.leaf for nic in device.nics} if isinstance(device, Host) else {device.name}
            for name in sorted(names):
                self._world.nodes[name].lldp.repeat()
