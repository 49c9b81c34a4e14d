"""Values for the templates of GPU hosts: rail addresses and routes, names, kernel and NIC settings, file paths."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from netkit.design.clusters import operated
from netkit.design.fabric import Attachment, Fabric, Host, Nic
from netkit.design.hosts import OIF_RULE_PRIORITY, RULE_PRIORITY, RoutePlan
from netkit.platforms.linux.install import BESIDE
from netkit.platforms.linux.view_nic import (
    NicQos,
    Setting,
    driver_of,
    is_adaptive,
    nccl_settings,
    nic_qos,
    nicctl_settings,
    nv_settings,
)
from netkit.render.output import Artifact

Context = Mapping[str, object]

UNIT = "netkit-nic-qos@{interface}.service"


@dataclass(frozen=True, slots=True)
class HostRailIpv6:
    """What a rail NIC has of IPv6, named as what it has of IPv4."""

    cidr: str
    address: str
    gateway: str
    connected: str
    own_rail: tuple[str, ...]
    other_rails: tuple[str, ...]
    unreachable: tuple[str, ...]


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
    ipv6: HostRailIpv6 | None


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
class Rules:
    """Priorities of the two policy rules that select a NIC's own table."""

    source: int
    interface: int


RULES = Rules(RULE_PRIORITY, OIF_RULE_PRIORITY)
NETWORKD = "/etc/systemd/network"
SYSCTLS = (
    Setting("arp_ignore", "1", "answer ARP only on the NIC that has the address"),
    Setting("arp_announce", "2", "ask with the address of the NIC that asks"),
    Setting("rp_filter", "2", "loose: the way back is checked, but may be any NIC"),
)
COMMON = (
    Install("0644", "70-netkit-rails.rules", "/etc/udev/rules.d/70-netkit-rails.rules"),
    Install("0644", "90-netkit-rails.conf", "/etc/sysctl.d/90-netkit-rails.conf"),
)
NIC_QOS = (
    Install("0755", "netkit-nic-qos", "/usr/local/sbin/netkit-nic-qos"),
    Install("0644", "netkit-nic-qos@.service", "/etc/systemd/system/netkit-nic-qos@.service"),
)
NCCL = Install("0644", "nccl.conf", "/etc/nccl.conf")
FIRMWARE = Install("0644", "mlxconfig.conf", "/etc/netkit/mlxconfig.conf")
NICCTL = Install("0644", "nicctl.conf", "/etc/netkit/nicctl.conf")
TEMPLATES = {
    "70-netkit-rails.rules": "host/udev.rules.j2",
    "90-netkit-rails.conf": "host/sysctl.conf.j2",
    "netkit-nic-qos": "host/nic-qos.sh.j2",
    "netkit-nic-qos@.service": "host/nic-qos.service.j2",
    "nccl.conf": "host/nccl.conf.j2",
}
RELOAD = ("udevadm control --reload", "systemctl daemon-reload", "sysctl -p /etc/sysctl.d/90-netkit-rails.conf")


def views(fabric: Fabric) -> Callable[[Host], Iterator[Artifact]]:
    """A function that yields the files of a host; values that hosts share are computed once."""
    return _Views(fabric).artifacts


class _Views:
    """The files of every host of one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._plan = RoutePlan(fabric)
        self._plan_v6 = RoutePlan(fabric, 6) if fabric.host_pool_v6 else None
        self._qos: dict[str, NicQos] = {}
        self._operated = operated(fabric)
        self._fabric = fabric

    def artifacts(self, host: Host) -> Iterator[Artifact]:
        """Yield every file of a host, and last the list of where each goes."""
        rails = tuple(self._rail(nic) for nic in host.nics)
        known = {nic.rdma for nic in host.model.rails}
        owns_nics = host.name not in self._operated
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
            "qos": self._qos_of(driver_of(host)),
            "owns_nics": owns_nics,
            "settings": nccl_settings(self._fabric, host),
        }
        if host.backend == "netplan":
            yield Artifact("netplan.yaml", "host/netplan.yaml.j2", context)
            yield Artifact("oif.conf", "host/oif.conf.j2", context)
        else:
            for rail in rails:
                for kind in ("network", "link"):
                    yield Artifact(f"10-{rail.interface}.{kind}", f"host/rail.{kind}.j2", {**context, "rail": rail})
        for attachment in host.attachments:
            for file, template in _attachment_files(attachment):
                yield Artifact(file, template, {**context, "attachment": attachment})
        for install in _common(owns_nics=owns_nics):
            yield Artifact(install.file, TEMPLATES[install.file], context)
        if owns_nics and has_firmware_settings(host):
            yield Artifact(
                FIRMWARE.file, "host/mlxconfig.conf.j2", {**context, "settings": nv_settings(self._fabric, host)}
            )
        if owns_nics and driver_of(host) == "ionic":
            commands = tuple(nicctl_settings(self._fabric.lossless, host))
            yield Artifact(NICCTL.file, "host/nicctl.conf.j2", {**context, "settings": commands})
        units = " ".join(UNIT.format(interface=nic.interface) for nic in host.nics)
        reload = "netplan apply" if host.backend == "netplan" else "networkctl reload"
        if host.attachments and host.backend == "netplan":
            reload = f"{reload}; networkctl reload"
        steps = (*RELOAD, reload, f"systemctl restart {units}") if owns_nics else (*RELOAD, reload)
        installs = tuple(_installs(host, owns_nics=owns_nics))
        yield Artifact("install.txt", "host/install.txt.j2", {**context, "installs": installs, "steps": steps})

    def _qos_of(self, driver: str) -> NicQos:
        if driver not in self._qos:
            found = nic_qos(self._fabric.lossless, driver, is_adaptive=is_adaptive(self._fabric))
            self._qos[driver] = found
        return self._qos[driver]

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
            ipv6=_ipv6(self._plan_v6, nic) if self._plan_v6 else None,
        )


def _attachment_files(attachment: Attachment) -> Iterator[tuple[str, str]]:
    """Yield the files of an attachment, of networkd with either backend, and their templates."""
    # The name of the interface is in the name of each file, so that all are changed in one step.
    file = f"{BESIDE}{attachment.interface}"
    if attachment.members:
        yield f"{file}.netdev", "host/attachment.netdev.j2"
        yield f"{file}-members.network", "host/attachment-members.network.j2"
    yield f"{file}.network", "host/attachment.network.j2"


def _ipv6(plan: RoutePlan, nic: Nic) -> HostRailIpv6:
    return HostRailIpv6(
        cidr=f"{nic.address_v6}/{nic.prefix_length_v6}",
        address=nic.address_v6,
        gateway=nic.gateway_v6,
        connected=plan.connected(nic),
        own_rail=plan.own_rail(nic),
        other_rails=plan.other_rails(nic),
        unreachable=plan.unreachable(nic),
    )


def has_firmware_settings(host: Host) -> bool:
    return driver_of(host) == "mlx5"


def _common(*, owns_nics: bool) -> tuple[Install, ...]:
    """What all hosts get; those whose NICs the operator of a cluster sets up get nothing that does it too."""
    return (*COMMON, *NIC_QOS, NCCL) if owns_nics else (*COMMON, NCCL)


def _installs(host: Host, *, owns_nics: bool) -> Iterator[Install]:
    """Yield the path of each file; one file may have several."""
    names = [nic.interface for nic in host.nics]
    if host.backend == "netplan":
        yield Install("0600", "netplan.yaml", "/etc/netplan/60-netkit-rails.yaml")
        yield from (Install("0644", "oif.conf", f"{NETWORKD}/10-netplan-{name}.network.d/oif.conf") for name in names)
    else:
        files = (f"10-{name}.{kind}" for name in names for kind in ("network", "link"))
        yield from (Install("0644", file, f"{NETWORKD}/{file}") for file in files)
    files = (file for one in host.attachments for file, _ in _attachment_files(one))
    yield from (Install("0644", file, f"{NETWORKD}/{file}") for file in files)
    yield from _common(owns_nics=owns_nics)
    if owns_nics and has_firmware_settings(host):
        yield FIRMWARE
    if owns_nics and driver_of(host) == "ionic":
        yield NICCTL
