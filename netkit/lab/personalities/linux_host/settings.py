"""How a NIC is set in all: by its tools, by files below /sys, and by what its firmware keeps."""

from collections.abc import Iterator, Mapping

from netkit.lab.model.inputs import NicSettings
from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import Card, Machine
from netkit.lab.personalities.linux_host.nic import PRIORITIES
from netkit.lab.personalities.linux_host.tree import Tree


def nic_settings(machine: Machine, tree: Tree, card: Card) -> NicSettings:
    """Return what the hardware model and the traffic between hosts need to know of a NIC."""
    ecn, state = sysfs.ecn_folder(card), card.state
    told = tree.files.texts(_names(ecn))
    return NicSettings(
        pfc_priorities=frozenset(number for number, on in enumerate(state.pfc) if on),
        priority_of_dscp=state.priority_of_dscp if state.trust == "dscp" else (),
        np_enabled=_enabled(told, f"{ecn}/roce_np/enable"),
        rp_enabled=_enabled(told, f"{ecn}/roce_rp/enable"),
        cnp_dscp=number(told[f"{ecn}/roce_np/cnp_dscp"], 63),
        cnp_priority=number(told[f"{ecn}/roce_np/cnp_802p_prio"], PRIORITIES - 1),
        adaptive_retransmission=state.adaptive_retransmission,
        roce_adaptive_routing=bool(machine.firmware.current(card.pci, "ROCE_ADAPTIVE_ROUTING_EN")),
    )


def traffic_class(tree: Tree, card: Card) -> int:
    """Return the traffic class every queue pair of a NIC gets from the kernel; 0 when none was set.

    What was written to its file is shown in the driver's own words from then on.
    """
    file = sysfs.traffic_class_file(card)
    text = tree.files.read(file)
    if text.isdecimal():
        tree.files.write([(file, f"{sysfs.TRAFFIC_CLASS_PREFIX}{text}")], is_forced=True)
    return number(text.removeprefix(sysfs.TRAFFIC_CLASS_PREFIX), 255)


def number(text: str, high: int) -> int:
    """Return the number a file holds; 0 when the driver would not have taken what was written."""
    return int(text) if text.isdecimal() and int(text) <= high else 0


def _names(ecn: str) -> Iterator[str]:
    for side in ("roce_np", "roce_rp"):
        yield from (f"{ecn}/{side}/enable/{priority}" for priority in range(PRIORITIES))
    yield from (f"{ecn}/roce_np/{name}" for name in ("cnp_dscp", "cnp_802p_prio"))


def _enabled(told: Mapping[str, str], folder: str) -> frozenset[int]:
    return frozenset(priority for priority in range(PRIORITIES) if told[f"{folder}/{priority}"] == "1")
