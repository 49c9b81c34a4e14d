"""Injects and heals the faults of a lab, those that exist in the kernel and in FRR by commands on the nodes."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from netkit.design.fabric import Fabric, Host
from netkit.errors import LabError, Problem
from netkit.lab import faults
from netkit.lab.faults.fault import InjectedFault, is_at_host, other_port, port_of, switch_end
from netkit.lab.model.wiring import NicSettings
from netkit.lab.node import Node, ProgramResult
from netkit.lab.traffic.marking import EXEMPT_MARK, TABLE
from netkit.lab.world import World

FOLDER = "/run/netkit/faults"


class Namespaces(Protocol):
    """The namespaces of a node."""

    @property
    def network(self) -> str:
        """The file of the network namespace."""


class RunningNode(Protocol):
    """The part of a node that faults act on."""

    name: str
    kernel_names: Mapping[str, str]

    @property
    def holder(self) -> Namespaces: ...

    def file(self, path: str) -> Path: ...

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult: ...

    def spawn(self, name: str, *command: str) -> None: ...

    def end(self, name: str) -> None: ...


class BreakStep(NamedTuple):
    """A command to run on a node, with its standard input."""

    command: tuple[str, ...]
    stdin: str = ""


def step(text: str) -> BreakStep:
    """Split a command line into a step without input."""
    return BreakStep(tuple(text.split()))


def do(node: RunningNode, steps: Iterable[BreakStep]) -> str:
    """Run steps on a node and return their output; raise LabError if one fails."""
    printed = ""
    for next_step in steps:
        done = node.run(*next_step.command, stdin=next_step.stdin)
        if done.exit_code != 0:
            what = f"{node.name}: {' '.join(next_step.command)} failed: {done.stderr.strip() or done.exit_code}"
            raise LabError(Problem(what, "see netkit lab logs"))
        printed += done.stdout
    return printed


def note(node: RunningNode, fault: InjectedFault, steps: Iterable[BreakStep]) -> None:
    """Save on the node the steps that heal a fault; a restart discards both."""
    file = _file(node, fault)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(list(steps)), encoding="utf-8")


def noted(node: RunningNode, fault: InjectedFault) -> list[BreakStep]:
    """The saved steps that heal a fault, and delete them."""
    file = _file(node, fault)
    if not file.exists():
        return []
    steps = [BreakStep(tuple(command), stdin) for command, stdin in json.loads(file.read_text(encoding="utf-8"))]
    file.unlink()
    return steps


def label(fault: InjectedFault) -> str:
    """A name for a fault that is valid for files, processes and nftables."""
    words = f"fault_{fault.name}_{fault.device}_{fault.port}".lower()
    return "".join(char if char.isalnum() and char.isascii() else "_" for char in words).strip("_")


def _file(node: RunningNode, fault: InjectedFault) -> Path:
    return node.file(f"{FOLDER}/{label(fault)}")


ASIDE = "nkswap"
OUT_S = 2
"""How long the cables are unplugged: long enough for daemons to notice."""


@dataclass(frozen=True, slots=True)
class Jack:
    """A switch port whose cable is unplugged, with its kernel settings before."""

    node: RunningNode
    interface: str
    settings: Mapping[str, Any]
    aside: str


def swap(fault: InjectedFault, fabric: Fabric, nodes: Mapping[str, RunningNode]) -> None:
    """Swap the cables of the fault's two ports; doing it again restores them."""
    first, second = jacks = _jacks(fault, fabric, nodes)
    rulesets = {}
    for jack in jacks:
        # The ruleset that marks congestion is bound to the ports about to move.
        listed = jack.node.run("nft", "list", "table", "netdev", TABLE)
        delete = f"delete table netdev {TABLE}\n"
        rulesets[jack.node.name] = delete + listed.stdout if listed.exit_code == 0 else ""
    for jack in jacks:
        interface = jack.interface
        do(
            jack.node,
            [
                step(f"ip link set dev {interface} down"),
                step(f"ip link set dev {interface} nomaster"),
                step(f"ip addr flush dev {interface}"),
                step(f"ip link set dev {interface} name {jack.aside}"),
            ],
        )
    do(first.node, [step(f"sleep {OUT_S}")])
    for jack, source in ((first, second), (second, first)):
        move = "" if source.node is jack.node else f" netns {jack.node.holder.network}"
        do(source.node, [step(f"ip link set dev {source.aside}{move} name {jack.interface}")])
    for jack in jacks:
        do(jack.node, _restored(jack))
    for name, ruleset in rulesets.items():
        do(nodes[name], [BreakStep(("nft", "-f", "-"), ruleset)])


def _jacks(fault: InjectedFault, fabric: Fabric, nodes: Mapping[str, RunningNode]) -> list[Jack]:
    names = (fault.port, other_port(fabric, fault))
    ends = [switch_end(fabric, fault.device, name) for name in names]
    jacks = []
    for index, (switch, port) in enumerate(ends):
        node = nodes[switch]
        interface = node.kernel_names[port]
        (settings,) = json.loads(do(node, [step(f"ip -j addr show dev {interface}")]))
        jacks.append(Jack(node, interface, settings, f"{ASIDE}{index}"))
    return jacks


def _restored(jack: Jack) -> Iterable[BreakStep]:
    name, settings = jack.interface, jack.settings
    yield step(f"ip link set dev {name} address {settings['address']}")
    yield step(f"ip link set dev {name} mtu {settings['mtu']}")
    if "master" in settings:
        yield step(f"ip link set dev {name} master {settings['master']}")
    if "UP" in settings["flags"]:
        yield step(f"ip link set dev {name} up")
    for address in settings["addr_info"]:
        if address["scope"] != "link":
            yield step(f"ip addr replace {address['local']}/{address['prefixlen']} dev {name}")


PRIORITIES = 8


def commands(fault: InjectedFault, fabric: Fabric, host: Host) -> Iterator[tuple[str, ...]]:
    """Yield the commands that change a NIC's settings for a fault."""
    for nic in host.nics:
        if fault.port in {"", nic.interface}:
            if fault.name == "pfc-off":
                yield "mlnx_qos", "-i", nic.interface, "--pfc", _bits(frozenset())
            elif fault.name == "wrong-dscp-map":
                dscp, priority = fabric.lossless.data_dscp, int(fault.number("priority"))
                yield "mlnx_qos", "-i", nic.interface, "--dscp2prio", f"set,{dscp},{priority}"


def remedies(
    fault: InjectedFault, fabric: Fabric, host: Host, settings: Mapping[str, NicSettings]
) -> Iterator[tuple[str, ...]]:
    """Yield the commands that restore a NIC's settings."""
    for nic in host.nics:
        before = settings[nic.interface]
        if fault.port in {"", nic.interface}:
            if fault.name == "pfc-off":
                yield "mlnx_qos", "-i", nic.interface, "--pfc", _bits(before.pfc_priorities)
            elif fault.name == "wrong-dscp-map" and before.priority_of_dscp:
                dscp = fabric.lossless.data_dscp
                yield "mlnx_qos", "-i", nic.interface, "--dscp2prio", f"set,{dscp},{before.priority_of_dscp[dscp]}"


def run(node: Node, words: tuple[str, ...]) -> None:
    """Run a NIC tool on a host; raise LabError if it fails."""
    done = node.run(*words)
    if done.exit_code != 0:
        raise LabError(Problem(f"{node.name}: {' '.join(words)}: {(done.stderr or done.stdout).strip()}"))


def _bits(priorities: frozenset[int]) -> str:
    return ",".join("1" if number in priorities else "0" for number in range(PRIORITIES))


Nodes = Mapping[str, RunningNode]
Plan = tuple[list[BreakStep], list[BreakStep]]
"""Steps that make a fault, and steps that heal it."""
BGP_PORT = 179
ROCE_PORT = 4791
SWAP_S = 1
"""How long a healthy module takes to come up, and how long daemons have to notice a state."""
SETTLED_S = 2
"""How long networkd takes to react to a link that came back."""


def make(fault: InjectedFault, fabric: Fabric, nodes: Nodes) -> None:
    """Inject a fault that exists in the kernel."""
    if fault.name == "wrong-cable":
        swap(fault, fabric, nodes)
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
        swap(fault, fabric, nodes)
        return
    node = nodes[device_of(fault, fabric)]
    if fault.name in CARRIER:
        node.end(label(fault))
    do(node, noted(node, fault))
    if fault.name in CARRIER:
        # Reconfigure a host's NIC: networkd loses routes for good if a link comes back before it has removed them.
        port = port_of(fabric, fault)
        if is_at_host(port):
            command = f"sleep {SETTLED_S}; networkctl reconfigure {port.peer_port} || :"
            do(nodes[port.peer], [BreakStep(("sh", "-c", command))])
    if fault.name == "wrong-mtu":
        # Flush path MTUs that routers reported to hosts, which would be kept for ten minutes.
        for host in fabric.hosts:
            do(nodes[host.name], [step("ip route flush cache")])


def device_of(fault: InjectedFault, fabric: Fabric) -> str:
    """The device a fault acts on. Links of hosts are cut at the leaf, so that the host keeps its settings."""
    if fault.name in CARRIER:
        return _carrier_end(fault, fabric)[0]
    return fault.device


def _carrier_end(fault: InjectedFault, fabric: Fabric) -> tuple[str, str]:
    return switch_end(fabric, fault.device, fault.port)


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
    down, up = f"ip link set dev {interface} down", f"ip link set dev {interface} up"
    swap = () if is_at_host(port_of(fabric, fault)) else (f"sleep {SWAP_S}", down, f"sleep {SWAP_S}", up)
    note(node, fault, [step(command) for command in (up, *swap)])
    node.spawn(label(fault), "/bin/sh", "-c", f"{down}; sleep {fault.number('seconds'):g}; {up}")


def _wrong_mtu(fault: InjectedFault, _fabric: Fabric, node: RunningNode) -> Plan:
    interface = node.kernel_names[fault.port]
    (link,) = json.loads(do(node, [step(f"ip -j link show dev {interface}")]))
    command = f"ip link set dev {interface} mtu"
    return [step(f"{command} {int(fault.number('bytes'))}")], [step(f"{command} {link['mtu']}")]


def _missing_host_route(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> Plan:
    """Delete the routes to a prefix, or to the first one with a gateway, in every table."""
    names = [fault.port] if fault.port else [nic.interface for nic in _host(fabric, fault).nics]
    deleted = []
    for name in names:
        lines = do(node, [step(f"ip -4 route show table all dev {node.kernel_names[name]}")]).splitlines()
        routes = [line.split() for line in lines if " via " in line]
        prefix = fault.text("prefix") or (routes[0][0] if routes else "")
        deleted += [f"{' '.join(words)} dev {name}" for words in routes if words[0] == prefix]
    if not deleted:
        raise LabError(Problem(f"{fault.place} has no such route with a gateway", "give prefix=, as ip route shows it"))
    heal_steps = [step(f"ip route replace {route}") for route in deleted]
    return [step(f"ip route del {route}") for route in deleted], heal_steps


def _wrong_source_route(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> Plan:
    nics = {nic.interface: nic for nic in _host(fabric, fault).nics}
    own, other = nics[fault.port], nics[other_port(fabric, fault, "as")]
    rules = json.loads(do(node, [step("ip -j rule show")]))
    found = [rule for rule in rules if rule.get("src") == own.address]
    if not found:
        raise LabError(
            Problem(f"{fault.place} has no source-based rule", "only hosts with source-based routing have this fault")
        )
    breaking, healing = [], []
    for rule in found:
        match = f"from {own.address} priority {rule['priority']} protocol {rule.get('protocol', 'static')}"
        right, wrong = (f"ip rule {{}} {match} table {table}" for table in (rule["table"], other.table))
        breaking += [step(right.format("del")), step(wrong.format("add"))]
        healing += [step(wrong.format("del")), step(right.format("add"))]
    return breaking, healing


def _filter(fault: InjectedFault, fabric: Fabric, node: RunningNode) -> Plan:
    """Steps that add and remove rules on one port or on all, in an nftables table of the fault's own."""
    hook, priority, rules = _rules(fault, fabric)
    table = label(fault)
    lines = [f"table netdev {table} {{"]
    for port in [fault.port] if fault.port else list(node.kernel_names):
        name = node.kernel_names[port]
        lines.append(
            f'  chain at_{name} {{ type filter hook {hook} device "{name}" priority {priority}; policy accept;'
        )
        lines += [*(f"    {rule}" for rule in rules), "  }"]
    remove = f"table netdev {table} {{ }}\ndelete table netdev {table}\n"
    add = "\n".join([*lines, "}", ""])
    return [BreakStep(("nft", "-f", "-"), remove + add)], [BreakStep(("nft", "-f", "-"), remove)]


def _rules(fault: InjectedFault, fabric: Fabric) -> tuple[str, int, list[str]]:
    """Hook, priority and rules. Marking decides at priority 0; a mark before that exempts a packet from it."""
    match fault.name:
        case "lossy":
            last = max(1, round(10 * fault.number("percent"))) - 1
            length = int(fault.number("above_bytes"))
            return "egress", 20, [f"ip length > {length} numgen random mod 1000 <= {last} drop"]
        case "ecn-unmarked":
            return "egress", -10, [f"meta mark set meta mark or {EXEMPT_MARK}"]
        case "cnp-remarked":
            dscp, other = fabric.lossless.cnp_dscp, int(fault.number("dscp"))
            return "egress", 10, [f"udp dport {ROCE_PORT} ip dscp {dscp} ip dscp set {other}"]
        case "bgp-session-down":
            return "ingress", -10, [f"tcp dport {BGP_PORT} drop", f"tcp sport {BGP_PORT} drop"]
    raise ValueError(fault.name)


def _host(fabric: Fabric, fault: InjectedFault) -> Host:
    device = fabric.device(fault.device)
    if not isinstance(device, Host):
        raise TypeError(f"{fault.device} is not a host")
    return device


CARRIER: Mapping[str, Callable[[InjectedFault, Fabric, RunningNode], None]] = {
    "link-flap": _flap,
    "slow-link-up": _train,
}
"""Faults that run in a process, which ends with the fault or with the lab."""
PLANS: Mapping[str, Callable[[InjectedFault, Fabric, RunningNode], Plan]] = {
    "wrong-mtu": _wrong_mtu,
    "lossy": _filter,
    "missing-host-route": _missing_host_route,
    "wrong-source-route": _wrong_source_route,
    "ecn-unmarked": _filter,
    "cnp-remarked": _filter,
    "bgp-session-down": _filter,
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
                raise LabError(Problem(f"{fault.name} at {fault.place} is active already", "heal it first"))
            active.add(fault)
        try:
            self._inject(fault)
        except (RuntimeError, LabError, OSError) as error:
            active.heal(fault.name, fault.device, fault.port, now_s=time.monotonic())
            raise LabError(Problem(f"cannot inject {fault.name} at {fault.place}: {error}")) from error
        return fault

    def heal(self, name: str, place: str) -> tuple[faults.InjectedFault, ...]:
        """Heal a fault, or without a name all faults of a place; return what was healed."""
        device, port = faults.locate(self._world.fabric, place)
        if name:
            faults.known(name)
        healed = self._world.services.faults.heal(name, device, port, now_s=time.monotonic())
        for fault in reversed(healed):
            self._undo(fault)
        return healed

    def _inject(self, fault: faults.InjectedFault) -> None:
        maker = faults.known(fault.name).maker
        if maker == "management":
            self._world.incidents.begin(fault)
        elif maker == "kernel":
            make(fault, self._world.fabric, self._world.nodes)
            self._announce(fault)
        elif maker == "nic" and isinstance(host := self._world.nodes[fault.device].device, Host):
            self._before[fault.name, fault.place] = self._world.settings(host.name)
            for words in commands(fault, self._world.fabric, host):
                run(self._world.nodes[host.name], words)
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
            for words in remedies(fault, self._world.fabric, host, before):
                run(self._world.nodes[host.name], words)
            self._world.apply_nic_settings(self._world.nodes[host.name])

    def _announce(self, fault: faults.InjectedFault) -> None:
        """Restore the LLDP port names on switches whose cables moved."""
        device = self._world.fabric.device(fault.device)
        if fault.name == "wrong-cable" and device is not None:
            ports = (fault.port, other_port(self._world.fabric, fault))
            names = {switch_end(self._world.fabric, device.name, port)[0] for port in ports}
            for name in sorted(names):
                self._world.nodes[name].lldp.repeat()
