"""The files of a Linux switch with FRR: paths, owners, and how they take effect."""

from collections.abc import Iterable
from dataclasses import dataclass

FRR_CONF, DAEMONS, NETPLAN, SYSCTL = "frr.conf", "daemons", "netplan.yaml", "sysctl.conf"
RELOAD = "/usr/lib/frr/frr-reload.py"


@dataclass(frozen=True, slots=True)
class FileTarget:
    """Path and permissions of a file, and the service to restart."""

    path: str
    mode: int = 0o644
    owner: str = ""
    restart: str = ""


PLACES = {
    NETPLAN: FileTarget("/etc/netplan/60-netkit.yaml", 0o600),
    SYSCTL: FileTarget("/etc/sysctl.d/90-netkit.conf"),
    DAEMONS: FileTarget("/etc/frr/daemons", 0o640, "frr:frr"),
    FRR_CONF: FileTarget("/etc/frr/frr.conf", 0o640, "frr:frr"),
    "lldpd.conf": FileTarget("/etc/lldpd.d/netkit.conf", restart="lldpd"),
    "chrony.conf": FileTarget("/etc/chrony/chrony.conf", restart="chrony"),
    "rsyslog.conf": FileTarget("/etc/rsyslog.conf", restart="rsyslog"),
    "snmpd.conf": FileTarget("/etc/snmp/snmpd.conf", 0o600, restart="snmpd"),
}
"""In the order they are applied: the interfaces before the routing."""


def in_order(files: Iterable[str]) -> tuple[str, ...]:
    """Sort files in the order they are applied."""
    wanted = set(files)
    return tuple(file for file in PLACES if file in wanted)
