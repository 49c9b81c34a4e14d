"""Values for the templates of GPU hosts: rail addresses and routes, names, kernel and NIC settings, file paths."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Nic
from netkit.design.hosts import OIF_RULE_PRIORITY, RULE_PRIORITY, RoutePlan
from netkit.design.traffic import LosslessProfile
from netkit.render.artifact import Artifact

Context = Mapping[str, object]

PRIORITIES = range(8)
UNIT = "netkit-nic-qos@{interface}.service"


@dataclass(frozen=True, slots=True)
class HostRailView:
    """A rail NIC of one host. Route prefixes are shared between similar NICs."""

    interface: str
    pci: str
    mac: str
    cidr: str
    address: str
    gateway: str
    connected: str
    table: int
    own_rail: tuple[str, ...]
    other_rails: tuple[str, ...]
    unreachable: tuple[str, ...]
    leaf: str
    leaf_port: str


@dataclass(frozen=True, slots=True)
class RailName:
    """PCI address and name of a rail NIC; `new_rdma` is the RDMA name to assign, if any."""

    interface: str
    pci: str
    new_rdma: str | None


@dataclass(frozen=True, slots=True)
class Install:
    """Path and mode of a rendered file on the host."""

    mode: str
    file: str
    target: str


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


@dataclass(frozen=True, slots=True)
class Rules:
    """Priorities of the two policy rules that select a NIC's own table."""

    source: int
    interface: int


RULES = Rules(RULE_PRIORITY, OIF_RULE_PRIORITY)
NETWORKD = "/etc/systemd/network"
MELLANOX = ("ConnectX", "BlueField")
SYSCTLS = (
    Setting("arp_ignore", "1", "answer ARP only on the NIC that has the address"),
    Setting("arp_announce", "2", "ask with the address of the NIC that asks"),
    Setting("rp_filter", "2", "loose: the way back is checked, but may be any NIC"),
)
COMMON = (
    Install("0644", "70-netkit-rails.rules", "/etc/udev/rules.d/70-netkit-rails.rules"),
    Install("0644", "90-netkit-rails.conf", "/etc/sysctl.d/90-netkit-rails.conf"),
    Install("0755", "netkit-nic-qos", "/usr/local/sbin/netkit-nic-qos"),
    Install("0644", "netkit-nic-qos@.service", "/etc/systemd/system/netkit-nic-qos@.service"),
    Install("0644", "nccl.conf", "/etc/nccl.conf"),
)
FIRMWARE = Install("0644", "mlxconfig.conf", "/etc/netkit/mlxconfig.conf")
TEMPLATES = {
    "70-netkit-rails.rules": "host/udev.rules.j2",
    "90-netkit-rails.conf": "host/sysctl.conf.j2",
    "netkit-nic-qos": "host/nic-qos.sh.j2",
    "netkit-nic-qos@.service": "host/nic-qos.service.j2",
    "nccl.conf": "host/nccl.conf.j2",
}
RELOAD = ("udevadm control --reload", "systemctl daemon-reload", "sysctl -p /etc/sysctl.d/90-netkit-rails.conf")


def views(fabric: Fabric) -> Callable[[Host], Iterator[Artifact]]:
    """Return a function that yields the files of a host; values that hosts share are computed once."""
    return _Views(fabric).artifacts


class _Views:
    """The files of every host of one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._plan = RoutePlan(fabric)
        self._qos = nic_qos(fabric.lossless, is_adaptive=is_adaptive(fabric))
        self._nv = nv_settings(fabric)
        self._fabric = fabric

    def artifacts(self, host: Host) -> Iterator[Artifact]:
        """Yield every file of a host, and last the list of where each goes."""
        rails = tuple(self._rail(nic) for nic in host.nics)
        known = {nic.rdma for nic in host.model.rails}
        context: Context = {
            "fabric": self._fabric,
            "host": host,
            "rails": rails,
            # RDMA devices keep names that the model knows.
            "names": tuple(
                RailName(one.interface, one.pci, None if one.rdma in known else one.rdma) for one in host.nics
            ),
            "sysctls": SYSCTLS,
            "rules": RULES,
            "qos": self._qos,
            "settings": nccl_settings(self._fabric, host),
        }
        if host.backend == "netplan":
            yield Artifact("netplan.yaml", "host/netplan.yaml.j2", context)
            yield Artifact("oif.conf", "host/oif.conf.j2", context)
        else:
            for rail in rails:
                for kind in ("network", "link"):
                    yield Artifact(f"10-{rail.interface}.{kind}", f"host/rail.{kind}.j2", {**context, "rail": rail})
        for install in COMMON:
            yield Artifact(install.file, TEMPLATES[install.file], context)
        if _has_firmware_settings(host):
            yield Artifact(FIRMWARE.file, "host/mlxconfig.conf.j2", {**context, "settings": self._nv})
        units = " ".join(UNIT.format(interface=nic.interface) for nic in host.nics)
        reload = "netplan apply" if host.backend == "netplan" else "networkctl reload"
        steps = (*RELOAD, reload, f"systemctl restart {units}")
        installs = tuple(_installs(host))
        yield Artifact("install.txt", "host/install.txt.j2", {**context, "installs": installs, "steps": steps})

    def _rail(self, nic: Nic) -> HostRailView:
        plan = self._plan
        return HostRailView(
            interface=nic.interface,
            pci=nic.pci,
            mac=nic.mac,
            cidr=f"{nic.address}/{nic.prefix_length}",
            address=nic.address,
            gateway=nic.gateway,
            connected=plan.connected(nic),
            table=nic.table,
            own_rail=plan.own_rail(nic),
            other_rails=plan.other_rails(nic),
            unreachable=plan.unreachable(nic),
            leaf=nic.leaf,
            leaf_port=nic.leaf_port,
        )


def _has_firmware_settings(host: Host) -> bool:
    return host.model.nic.startswith(MELLANOX)


def _installs(host: Host) -> Iterator[Install]:
    """Yield the path of each file; one file may have several."""
    names = [nic.interface for nic in host.nics]
    if host.backend == "netplan":
        yield Install("0600", "netplan.yaml", "/etc/netplan/60-netkit-rails.yaml")
        yield from (Install("0644", "oif.conf", f"{NETWORKD}/10-netplan-{name}.network.d/oif.conf") for name in names)
    else:
        files = (f"10-{name}.{kind}" for name in names for kind in ("network", "link"))
        yield from (Install("0644", file, f"{NETWORKD}/{file}") for file in files)
    yield from COMMON
    if _has_firmware_settings(host):
        yield FIRMWARE


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
