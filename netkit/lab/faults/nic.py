"""The faults of a host's NICs: some are how its tools set it, some are what the card does whatever it was told."""

from collections.abc import Iterator, Mapping

from netkit.design.fabric import Fabric, Host
from netkit.errors import LabError, Problem
from netkit.lab.faults import Faults, InjectedFault
from netkit.lab.model.inputs import NicSettings
from netkit.lab.node import Node
from netkit.lab.traffic.flow import Loss

PRIORITIES = 8
LOSSES: dict[str, Loss] = {"sent": "sent", "received": "received"}


def loss(faults: Faults, host: str, interface: str) -> Loss:
    """Return which CNPs a NIC swallows."""
    fault = faults.of("cnp-loss", host, interface)
    return LOSSES[fault.text("direction")] if fault else ""


def commands(fault: InjectedFault, fabric: Fabric, host: Host) -> Iterator[tuple[str, ...]]:
    """Yield the commands that make a fault which lies in a NIC's settings."""
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
    """Yield the commands that restore what the settings were before."""
    for nic in host.nics:
        before = settings[nic.interface]
        if fault.port in {"", nic.interface}:
            if fault.name == "pfc-off":
                yield "mlnx_qos", "-i", nic.interface, "--pfc", _bits(before.pfc_priorities)
            elif fault.name == "wrong-dscp-map" and before.priority_of_dscp:
                dscp = fabric.lossless.data_dscp
                yield "mlnx_qos", "-i", nic.interface, "--dscp2prio", f"set,{dscp},{before.priority_of_dscp[dscp]}"


def run(node: Node, words: tuple[str, ...]) -> None:
    """Run a NIC tool on a host; it must not complain."""
    done = node.run(*words)
    if done.exit_code != 0:
        raise LabError(Problem(f"{node.name}: {' '.join(words)}: {(done.stderr or done.stdout).strip()}"))


def _bits(priorities: frozenset[int]) -> str:
    return ",".join("1" if number in priorities else "0" for number in range(PRIORITIES))
