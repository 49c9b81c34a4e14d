"""Settings of rail NICs: QoS, firmware and NCCL's environment."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Nic
from netkit.design.traffic import LosslessProfile

PRIORITIES = range(8)
DRIVERS = {"15b3": "mlx5", "14e4": "bnxt", "1dd8": "ionic"}
"""PCI vendor → family of the driver."""
STRICT_LIMIT = 10
NAMES = {"ConnectX": "mlx5", "BlueField": "mlx5", "BCM": "bnxt", "Pollara": "ionic"}
"""How the NIC of a host model begins → the same."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A key with its value and the reason for it."""

    key: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class NicQos:
    """QoS settings of a rail NIC. Maps are written as `index:value` pairs."""

    priority: int
    pfc: str
    dscp_map: str
    priority_to_class: str
    class_algorithm: str
    class_weight: str
    classes_in_use: str
    cnp_dscp: int
    cnp_priority: int
    tos: int
    data_dscp: int
    adaptive: str
    """The value to force in the register ROCE_ACCL; empty: unchanged."""
    is_broadcom: bool
    is_pollara: bool
    """Set with nicctl; see `nicctl_settings`."""


def driver_of(host: Host) -> str:
    """The family of the driver of a host's NICs: mlx5, bnxt, ionic; empty if unknown."""
    known = DRIVERS.get(host.model.nic_pci_id.partition(":")[0])
    return known or next((driver for name, driver in NAMES.items() if host.model.nic.startswith(name)), "")


def nic_qos(lossless: LosslessProfile, driver: str, *, is_adaptive: bool) -> NicQos:
    """Build the NIC's part of a lossless profile.

    A class of traffic has the number of its priority, but bnxt has three classes and counts them through.
    """
    number = {traffic.priority: traffic.priority for traffic in lossless.classes}
    if driver == "bnxt":
        number = {priority: count for count, priority in enumerate(sorted(number))}
    algorithm = {number[one.priority]: "strict" if one.is_strict else "ets" for one in lossless.classes}
    weight = {number[one.priority]: 0 if one.is_strict else one.weight for one in lossless.classes}
    classes = sorted(algorithm) if driver == "bnxt" else PRIORITIES
    pauses = {traffic.priority for traffic in lossless.classes if traffic.is_lossless}
    return NicQos(
        priority=lossless.roce.priority,
        pfc=_pairs(int(priority in pauses) for priority in PRIORITIES),
        dscp_map=_pairs(lossless.dscp_to_priority),
        priority_to_class=_pairs(number[priority] for priority in lossless.priority_to_class),
        class_algorithm=_pairs(algorithm.get(one, "ets") for one in classes),
        class_weight=_pairs(weight.get(one, 0) for one in classes),
        classes_in_use=" ".join(f"{one}:{algorithm[one]}:{weight[one]}" for one in sorted(algorithm)),
        cnp_dscp=lossless.cnp_dscp,
        cnp_priority=lossless.cnp.priority,
        tos=lossless.tos,
        data_dscp=lossless.data_dscp,
        adaptive="0x00000001" if is_adaptive and driver == "mlx5" else "",
        is_broadcom=driver == "bnxt",
        is_pollara=driver == "ionic",
    )


def nicctl_settings(lossless: LosslessProfile, host: Host) -> Iterator[Setting]:
    """Yield commands that set AMD's NICs up, with their reasons."""
    qos = "nicctl update qos"
    yield Setting("nicctl update port --all --pause-type pfc --rx-pause enable --tx-pause enable", "", "PFC, no 802.3x")
    yield Setting(f"{qos} --classification-type dscp", "", "trust DSCP")
    by_priority: dict[int, list[int]] = {}
    for dscp, priority in enumerate(lossless.dscp_to_priority):
        by_priority.setdefault(priority, []).append(dscp)
    for priority, dscps in sorted(by_priority.items()):
        why = f"DSCPs of priority {priority}"
        yield Setting(f"{qos} dscp-to-priority --dscp {_runs(dscps)} --priority {priority}", "", why)
    for priority in lossless.lossless_priorities:
        yield Setting(f"{qos} pfc --priority {priority} --no-drop enable", "", "the lossless class")
    classes = sorted(lossless.classes, key=lambda one: one.priority)
    priorities = ",".join(str(one.priority) for one in classes)
    weights = ",".join("0" if one.is_strict else str(one.weight) for one in classes)
    limits = ",".join(str(STRICT_LIMIT) if one.is_strict else "0" for one in classes)
    why = f"shares of the classes; the strict one gets at most {STRICT_LIMIT}, as in AMD's recipe"
    yield Setting(f"{qos} scheduling --priority {priorities} --dwrr {weights} --rate-limit {limits}", "", why)
    for nic in host.nics:
        yield Setting(f"nicctl update dcqcn -r {nic.rdma} -i 1 --cnp-dscp {lossless.cnp_dscp}", "", "DSCP of its CNPs")


def _runs(numbers: list[int]) -> str:
    """Write sorted numbers as runs: 0-25,27."""
    starts = [one for one in numbers if one - 1 not in numbers]
    ends = [one for one in numbers if one + 1 not in numbers]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def is_adaptive(fabric: Fabric) -> bool:
    """Whether any switch uses adaptive routing."""
    return any(switch.adaptive_routing for switch in fabric.switches)


def _pairs(values: Iterable[object]) -> str:
    return " ".join(f"{index}:{value}" for index, value in enumerate(values))


def port_of(nic: Nic) -> int:
    """The number of a NIC's port on its card: function 0 of the PCI device has the first, 1 the second."""
    return 2 if nic.pci.endswith(".1") else 1


def nv_settings(fabric: Fabric, host: Host | None = None) -> tuple[Setting, ...]:
    """Build the settings in NIC firmware; a card has some for each of its ports."""
    lossless, two = fabric.lossless, "the same for the second port"
    last = max((port_of(nic) for nic in host.nics), default=1) if host else 1
    of_port = (
        Setting("LINK_TYPE", "2", "Ethernet"),
        Setting(
            "ROCE_CC_PRIO_MASK",
            str(1 << lossless.roce.priority),
            f"congestion control on priority {lossless.roce.priority} only",
        ),
        Setting("CNP_DSCP", str(lossless.cnp_dscp), "the DSCP the switches put into the strict queue"),
        Setting("CNP_802P_PRIO", str(lossless.cnp.priority), "the same for tagged frames"),
    )
    settings = [
        Setting(f"{one.key}_P{port}", one.value, one.why if port == 1 else two)
        for one in of_port
        for port in range(1, last + 1)
    ]
    settings.append(
        Setting(
            "ROCE_ADAPTIVE_ROUTING_EN", str(int(is_adaptive(fabric))), "as on the switches: on everywhere or nowhere"
        )
    )
    if is_adaptive(fabric):
        settings.append(
            Setting(
                "PCI_WR_ORDERING", "1", "packets arrive out of order with adaptive routing: let PCIe writes overtake"
            )
        )
    return tuple(settings)


def nccl_settings(fabric: Fabric, host: Host) -> tuple[Setting, ...]:
    """Build NCCL's environment on a host."""
    devices = ",".join(nic.rdma for nic in host.nics)
    why_hca = "the rails in order; = matches whole names, or mlx5_1 would take mlx5_10 too"
    why_tc = "DSCP and ECT(0) of RoCE data; the default of 0 is not lossless"
    settings = [
        Setting("NCCL_IB_HCA", f"={devices}", why_hca),
        Setting("NCCL_IB_TC", str(fabric.lossless.tos), why_tc),
        Setting(
            "NCCL_SOCKET_IFNAME",
            f"={host.management_interface}",
            "bootstrap over the management network, never over a rail",
        ),
    ]
    if fabric.cross_rail == "blocked":
        why_rail = "no way leads from rail to rail: rings and trees stay on one"
        settings.append(Setting("NCCL_CROSS_NIC", "0", why_rail))
    return tuple(settings)


def nccl_tuning(fabric: Fabric) -> Iterator[Setting]:
    """Yield settings that no file of a host has: a job that measures sets them, and others may choose their own."""
    if is_adaptive(fabric):
        pairs, why = "1", "switches spread the packets of one queue pair over all uplinks"
    else:
        pairs = "4"
        why = "ECMP keeps a queue pair on one uplink: several spread a connection, at the cost of state in the NIC"
    yield Setting("NCCL_IB_QPS_PER_CONNECTION", pairs, why)
    why = "PXN: data for another rail goes over NVLink to the GPU next to that NIC, so traffic stays on its rail"
    yield Setting("NCCL_PXN_DISABLE", "0", why)


def nearest_gpu(host: Host, rail: int) -> int:
    """The GPU next to a rail's NIC; without a source, the one with the number of the rail."""
    gpus = host.model.rail_gpus
    known = gpus[rail] if rail < len(gpus) else None
    return rail if known is None else known
