"""GPU hosts: rail addresses and routes, stable names, kernel and NIC settings, each with its place on the host."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Nic
from netkit.design.hosts import OIF_RULE_PRIORITY, RULE_PRIORITY, RoutePlan
from netkit.render.artifact import Artifact
from netkit.render.views.host_settings import Setting, nccl_settings, nic_qos, nv_settings

UNIT = "netkit-nic-qos@{interface}.service"


@dataclass(frozen=True, slots=True)
class Rail:
    """A rail NIC of one host as the templates need it. Route prefixes are shared between NICs alike."""

    interface: str
    pci: str
    rdma: str
    macs: tuple[str, ...]
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
    """Where a rail NIC sits, and the name it gets; `new_rdma` holds the RDMA name to give, if any."""

    interface: str
    pci: str
    new_rdma: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Install:
    """Where a rendered file goes on the host."""

    mode: str
    file: str
    target: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Priorities of the two rules that choose a NIC's own table."""

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
TEMPLATES = {
    "70-netkit-rails.rules": "host/udev.rules.j2",
    "90-netkit-rails.conf": "host/sysctl.conf.j2",
    "netkit-nic-qos": "host/nic-qos.sh.j2",
    "netkit-nic-qos@.service": "host/nic-qos.service.j2",
    "nccl.conf": "host/nccl.conf.j2",
}
RELOAD = ("udevadm control --reload", "systemctl daemon-reload", "sysctl -p /etc/sysctl.d/90-netkit-rails.conf")


def views(fabric: Fabric) -> Callable[[Host], Iterator[Artifact]]:
    """Return the function that yields the files of a host; what hosts share is worked out once."""
    return _Views(fabric).artifacts


class _Views:
    """The files of every host of one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._plan = RoutePlan(fabric)
        self._qos = nic_qos(fabric.lossless)
        self._nv = nv_settings(fabric)
        self._fabric = fabric
        self._backends = {"netplan": self._netplan, "networkd": self._networkd}

    def artifacts(self, host: Host) -> Iterator[Artifact]:
        """Yield every file of a host, and last the list of where each goes."""
        rails = tuple(self._rail(nic) for nic in host.nics)
        context = {
            "host": host,
            "rails": rails,
            "names": tuple(_names(host)),
            "sysctls": SYSCTLS,
            "rules": RULES,
            "qos": self._qos,
            "settings": nccl_settings(self._fabric, host),
        }
        installs = []
        for install, artifact in self._backends[host.backend](rails, context):
            installs.append(install)
            yield artifact
        for install in COMMON:
            installs.append(install)
            yield Artifact(install.file, TEMPLATES[install.file], context)
        if host.model.nic.startswith(MELLANOX):
            installs.append(Install("0644", "mlxconfig.conf", "/etc/netkit/mlxconfig.conf"))
            yield Artifact("mlxconfig.conf", "host/mlxconfig.conf.j2", {**context, "settings": self._nv})
        steps = (*RELOAD, *_activation(host))
        yield Artifact("install.txt", "host/install.txt.j2", {"host": host, "installs": installs, "steps": steps})

    def _rail(self, nic: Nic) -> Rail:
        plan = self._plan
        return Rail(
            interface=nic.interface,
            pci=nic.pci,
            rdma=nic.rdma,
            macs=(nic.mac,) if nic.mac else (),
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

    def _netplan(self, rails: tuple[Rail, ...], context: dict[str, object]) -> Iterator[tuple[Install, Artifact]]:
        target = "/etc/netplan/60-netkit-rails.yaml"
        yield Install("0600", "netplan.yaml", target), Artifact("netplan.yaml", "host/netplan.yaml.j2", context)
        for rail in rails:
            folder = f"10-netplan-{rail.interface}.network.d"
            file = f"{folder}-oif.conf"
            install = Install("0644", file, f"{NETWORKD}/{folder}/oif.conf")
            yield install, Artifact(file, "host/oif.conf.j2", {"rail": rail, "rules": RULES})

    def _networkd(self, rails: tuple[Rail, ...], context: dict[str, object]) -> Iterator[tuple[Install, Artifact]]:
        for rail in rails:
            for kind in ("network", "link"):
                file = f"10-{rail.interface}.{kind}"
                shown = {"rail": rail, "rules": RULES, "host": context["host"]}
                yield Install("0644", file, f"{NETWORKD}/{file}"), Artifact(file, f"host/rail.{kind}.j2", shown)


def _names(host: Host) -> Iterator[RailName]:
    """Yield the names of the rail NICs. RDMA devices whose name the model knows keep it."""
    known = {nic.rdma for nic in host.model.rails}
    for nic in host.nics:
        yield RailName(nic.interface, nic.pci, () if nic.rdma in known else (nic.rdma,))


def _activation(host: Host) -> Iterator[str]:
    """Yield how a host takes its new files over, once the interfaces have their names."""
    yield {"netplan": "netplan apply", "networkd": "networkctl reload"}[host.backend]
    units = " ".join(UNIT.format(interface=nic.interface) for nic in host.nics)
    yield f"systemctl restart {units}"
