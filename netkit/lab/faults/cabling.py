"""Swapped cables: the switch ends of two cables change places, with all their settings, and nothing else notices.

The ends of a host's cables are on its leaves, so they move between two namespaces; the two ports of one switch only
change names. A port keeps its MAC, MTU, addresses and VLAN, since those belong to the device and not to the cable.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from netkit.design.fabric import Fabric, Host
from netkit.lab.faults.bench import BreakStep, RunningNode, do, step
from netkit.lab.faults.fault import InjectedFault
from netkit.lab.faults.fit import other_port
from netkit.lab.traffic.marking import TABLE

ASIDE = "nkswap"
OUT_S = 2
"""How long the cables are out: long enough for daemons to see it."""


@dataclass(frozen=True, slots=True)
class Jack:
    """A switch port that a cable is pulled from, and how the kernel had it set."""

    node: RunningNode
    interface: str
    settings: Mapping[str, Any]
    aside: str


def swap(fault: InjectedFault, fabric: Fabric, nodes: Mapping[str, RunningNode]) -> None:
    """Swap the cables of the fault's port and of the other one; doing so again plugs them in where they belong."""
    _exchange(*_jacks(fault, fabric, nodes))


def _exchange(one: Jack, other: Jack) -> None:
    marking = {jack.node.name: (jack.node, _marking(jack.node)) for jack in (one, other)}
    for jack in (one, other):
        do(jack.node, _pull(jack))
    do(one.node, [step(f"sleep {OUT_S}")])
    for jack, source in ((one, other), (other, one)):
        do(source.node, [_plug(source, jack)])
    for jack in (one, other):
        do(jack.node, _settle(jack))
    for node, text in marking.values():
        do(node, [BreakStep(("nft", "-f", "-"), text)])


def _jacks(fault: InjectedFault, fabric: Fabric, nodes: Mapping[str, RunningNode]) -> tuple[Jack, Jack]:
    device = fabric.device(fault.device)
    names = (fault.port, other_port(fabric, fault))
    ends = [(fault.device, name) for name in names]
    if isinstance(device, Host):
        nics = {nic.interface: nic for nic in device.nics}
        ends = [(nics[name].leaf, nics[name].leaf_port) for name in names]
    one, other = (_jack(nodes[switch], port, index) for index, (switch, port) in enumerate(ends))
    return one, other


def _jack(node: RunningNode, port: str, index: int) -> Jack:
    interface = node.kernel_names[port]
    (settings,) = json.loads(do(node, [step(f"ip -j addr show dev {interface}")]))
    return Jack(node, interface, settings, f"{ASIDE}{index}")


def _pull(jack: Jack) -> Iterable[BreakStep]:
    yield step(f"ip link set dev {jack.interface} down")
    yield step(f"ip link set dev {jack.interface} nomaster")
    yield step(f"ip addr flush dev {jack.interface}")
    yield step(f"ip link set dev {jack.interface} name {jack.aside}")


def _plug(source: Jack, target: Jack) -> BreakStep:
    move = "" if source.node is target.node else f" netns {target.node.holder.network}"
    return step(f"ip link set dev {source.aside}{move} name {target.interface}")


def _settle(jack: Jack) -> Iterable[BreakStep]:
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


def _marking(node: RunningNode) -> str:
    """Return the ruleset that marks congestion, which hangs on the ports that are about to move."""
    done = node.run("nft", "list", "table", "netdev", TABLE)
    return f"delete table netdev {TABLE}\n{done.stdout}" if done.exit_code == 0 else ""
