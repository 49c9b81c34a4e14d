"""Settings of rail NICs: QoS, firmware and NCCL's environment."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host
from netkit.design.traffic import LosslessProfile

PRIORITIES = range(8)


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
    adaptive: str
    """The value to force in the register ROCE_ACCL; empty: unchanged."""


def nic_qos(lossless: LosslessProfile, *, is_adaptive: bool) -> NicQos:
    """Build the NIC's part of a lossless profile."""
    algorithm = {traffic.priority: "strict" if traffic.is_strict else "ets" for traffic in lossless.classes}
    weight = {traffic.priority: 0 if traffic.is_strict else traffic.weight for traffic in lossless.classes}
    pauses = {traffic.priority for traffic in lossless.classes if traffic.is_lossless}
    return NicQos(
        priority=lossless.roce.priority,
        pfc=_pairs(int(priority in pauses) for priority in PRIORITIES),
        dscp_map=_pairs(lossless.dscp_to_priority),
        priority_to_class=_pairs(lossless.priority_to_class),
        class_algorithm=_pairs(algorithm.get(number, "ets") for number in PRIORITIES),
        class_weight=_pairs(weight.get(number, 0) for number in PRIORITIES),
        classes_in_use=" ".join(f"{number}:{algorithm[number]}:{weight[number]}" for number in sorted(algorithm)),
        cnp_dscp=lossless.cnp_dscp,
        cnp_priority=lossless.cnp.priority,
        tos=lossless.tos,
        adaptive="0x00000001" if is_adaptive else "",
    )


def is_adaptive(fabric: Fabric) -> bool:
    """Whether any switch uses adaptive routing."""
    return any(switch.adaptive_routing for switch in fabric.switches)


def _pairs(values: Iterable[object]) -> str:
    return " ".join(f"{index}:{value}" for index, value in enumerate(values))


def nv_settings(fabric: Fabric) -> tuple[Setting, ...]:
    """Build the settings in NIC firmware."""
    lossless = fabric.lossless
    settings = [
        Setting("LINK_TYPE_P1", "2", "Ethernet"),
        Setting(
            "ROCE_CC_PRIO_MASK_P1",
            str(1 << lossless.roce.priority),
            f"congestion control on priority {lossless.roce.priority} only",
        ),
        Setting("CNP_DSCP_P1", str(lossless.cnp_dscp), "the DSCP the switches put into the strict queue"),
        Setting("CNP_802P_PRIO_P1", str(lossless.cnp.priority), "the same for tagged frames"),
        Setting(
            "ROCE_ADAPTIVE_ROUTING_EN", str(int(is_adaptive(fabric))), "as on the switches: on everywhere or nowhere"
        ),
    ]
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
    """Return the GPU next to a rail's NIC; without a source, the one with the number of the rail."""
    gpus = host.model.rail_gpus
    known = gpus[rail] if rail < len(gpus) else None
    return rail if known is None else known
