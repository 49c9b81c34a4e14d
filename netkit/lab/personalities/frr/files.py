"""The files of a Linux switch: where each belongs, and what each line may be where its program does not run here."""

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping

from netkit.lab.node import ConfigRefusedError, Node

FRR_CONF = "/etc/frr/frr.conf"
DAEMONS = "/etc/frr/daemons"
NETPLAN = "/etc/netplan/60-netkit.yaml"
SYSCTL = "/etc/sysctl.d/90-netkit.conf"
SNMPD = "/etc/snmp/snmpd.conf"
LLDPD = "/etc/lldpd.d/netkit.conf"
CHRONY = "/etc/chrony/chrony.conf"
RSYSLOG = "/etc/rsyslog.conf"
PLACES: Mapping[str, str] = {
    "frr.conf": FRR_CONF,
    "daemons": DAEMONS,
    "netplan.yaml": NETPLAN,
    "sysctl.conf": SYSCTL,
    "snmpd.conf": SNMPD,
    "lldpd.conf": LLDPD,
    "chrony.conf": CHRONY,
    "rsyslog.conf": RSYSLOG,
}

ADDRESS = r"[0-9a-fA-F.:]+"
NAME = r"[A-Za-z0-9._-]+"
LINES: Mapping[str, str] = {
    CHRONY: rf"""
        server {NAME}( iburst| prefer)*
        bindacqdevice {NAME}
        driftfile /\S+
        makestep \d+(\.\d+)? -?\d+
        rtcsync
        port 0
    """,
    LLDPD: rf"""
        configure system hostname {NAME}
        configure system ip management pattern \S+
        configure lldp portidsubtype (ifname|macaddress)
        configure lldp tx-interval \d+
    """,
    RSYSLOG: rf"""
        module\(load="[a-z]+"\)
        global\(workDirectory="/\S+" localHostname="{NAME}"\)
        \*\.info action\(type="omfile" file="/\S+"\)
        \*\.info action\(
        type="omfwd" target="{ADDRESS}" port="\d+" protocol="(udp|tcp)"
        device="{NAME}"
        queue\.type="LinkedList" queue\.size="\d+" action\.resumeRetryCount="-?\d+"
        \)
    """,
    SNMPD: rf"""
        agentAddress \S+
        sysName {NAME}
        sysLocation .+
        sysContact .+
        createUser \S+ SHA "[^"]+" AES "[^"]+"
        rouser \S+ priv
    """,
    DAEMONS: r"""
        [a-z0-9]+=(yes|no)
        vtysh_enable=(yes|no)
        frr_profile="(traditional|datacenter)"
        [a-z0-9]+_options="[^"]*"
    """,
    SYSCTL: r"-?[a-z0-9_.]+ *= *\S+",
}
"""The lines a file may have. FRR and netplan look at theirs themselves."""


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a file that say something."""
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#;":
            yield line


def complaints(place: str, text: str) -> Iterator[str]:
    """Yield the lines of a file its program would not take."""
    if place not in LINES:
        return
    forms = re.compile("|".join(f"(?:{form.strip()})" for form in LINES[place].strip().splitlines()), re.ASCII)
    for line in lines(text):
        if not forms.fullmatch(line):
            yield f"{place}: {line!r} is not understood"


def read(node: Node, place: str) -> str:
    """Return a file of the node; empty when it is not there."""
    path = node.file(place)
    return path.read_text(encoding="utf-8") if path.is_file() and not path.is_symlink() else ""


def install(node: Node, files: Mapping[str, str]) -> None:
    """Put rendered files where they belong; raises RefusedError with every reason not to."""
    wrong = [f"{name}: a Linux switch has no such file" for name in sorted(set(files) - set(PLACES))]
    for name, place in PLACES.items():
        wrong += complaints(place, files.get(name, ""))
    if wrong:
        raise ConfigRefusedError("\n".join(wrong))
    for name, text in files.items():
        path = node.file(PLACES[name])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link to the machine's own, which must stay as it is
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600 if path.suffix == ".yaml" else 0o640)
        if PLACES[name].startswith("/etc/frr/"):
            with contextlib.suppress(OSError, LookupError):  # an unprivileged lab has no such account
                shutil.chown(path, "frr", "frr")
