"""The distribution's systemd-networkd in a node: its message bus, its units from netplan, its folders."""

import os
import pwd
import re
import shutil
import time
from pathlib import Path

from netkit.lab.node import Node, ProgramResult

NAME = "systemd-networkd"
BUS = "dbus"
PROGRAM = "/lib/systemd/systemd-networkd"
GENERATORS = ("/usr/libexec/netplan/generate", "/lib/netplan/generate")
NETWORKCTL = "/run/netkit/networkctl"
"""A copy of the real program, whose path has a stand-in."""
NO_DAEMON = "was not provided by any .service files"
TRIES, PAUSE_S = 50, 0.2
BUS_CONFIG = "/run/netkit/dbus.conf"
BUS_TEXT = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="method_call"/>
    <allow receive_type="method_call"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""
VOLATILE = ("/run/dbus", "/run/systemd", "/run/udev")
UNIT_FOLDERS = ("/etc/systemd/network", "/run/systemd/network")
PERMANENT_MAC = re.compile(r"^PermanentMACAddress=(\S+)$", re.MULTILINE)
ACCOUNT = "systemd-network"
BRIDGE_PREFIX = "05-lab-"
"""The prefix of units that replace those of a bond."""
BOND = re.compile(r"^\[Bond\]\n(?:[^\[].*\n)*", re.MULTILINE)
OWN_MAC = "Kind=bridge\nMACAddress=none"
"""The bridge has the address of a NIC; networkd would derive it from the machine ID, which hosts of a lab share."""
BRIDGE = "[Bridge]\nSTP=yes\nForwardDelaySec=2\nHelloTimeSec=1\nMaxAgeSec=6\n"


def start(node: Node) -> None:
    """Run netplan's generator and start the message bus and the daemon."""
    for folder in VOLATILE:
        shutil.rmtree(node.file(folder), ignore_errors=True)
    for folder in ("/run/dbus", "/run/systemd/network", "/run/systemd/netif"):
        node.file(folder).mkdir(parents=True, exist_ok=True)
    for kind in ("links", "leases", "lldp"):
        node.file(f"/run/systemd/netif/{kind}").mkdir(exist_ok=True)
    _chown_state(node)
    node.file(BUS_CONFIG).write_text(BUS_TEXT, encoding="utf-8")
    node.spawn(BUS, "dbus-daemon", "--nofork", "--nopidfile", f"--config-file={BUS_CONFIG}")
    generate(node)
    restart(node)


def generate(node: Node) -> ProgramResult:
    """Have netplan write its networkd units."""
    if not any(node.file("/etc/netplan").glob("*.yaml")):
        return ProgramResult(0, "", "")
    result = node.run(generator())
    if result.exit_code != 0:
        node.log(f"netplan generate: {result.stderr.strip()}")
    return result


def generator() -> str:
    """The path of netplan's generator, which differs between releases."""
    return next((path for path in GENERATORS if Path(path).exists()), GENERATORS[0])


def restart(node: Node) -> None:
    _translate(node)
    node.spawn(NAME, PROGRAM)


def stop(node: Node) -> None:
    """Stop the daemon; its configuration stays in the kernel."""
    node.end(NAME)


def control(node: Node, *arguments: str) -> ProgramResult:
    """Run the real `networkctl`."""
    _translate(node)
    for _ in range(TRIES):
        result = node.run(NETWORKCTL, *arguments)
        if NO_DAEMON not in result.stderr:
            break
        # systemd would start the daemon, and the bus would wait for it.
        if not node.is_running(NAME):
            restart(node)
        time.sleep(PAUSE_S)
    return result


def _translate(node: Node) -> None:
    """Give networkd units that a namespace of the lab can have."""
    match_by_present_mac(node)
    _bridge_for_lag(node)


def _bridge_for_lag(node: Node) -> None:
    """Make a bridge of a LAG, as the kernel may lack bonding: a spanning tree keeps one of its NICs open."""
    folder = node.file("/run/systemd/network")
    for stale in folder.glob(f"{BRIDGE_PREFIX}*"):
        stale.unlink()
    for unit in sorted(node.file("/etc/systemd/network").glob("*")):
        text = unit.read_text(encoding="utf-8") if unit.is_file() else ""
        if unit.suffix == ".netdev" and "Kind=bond" in text:
            text = BOND.sub(BRIDGE, text.replace("Kind=bond", OWN_MAC))
        elif unit.suffix == ".network" and "\nBond=" in text:
            text = text.replace("\nBond=", "\nBridge=")
        else:
            continue
        (folder / f"{BRIDGE_PREFIX}{unit.name}").write_text(text, encoding="utf-8")
        (folder / f"{BRIDGE_PREFIX}{unit.name}").chmod(0o644)


def match_by_present_mac(node: Node) -> None:
    """Make PermanentMACAddress= match the current MAC address: the lab's interfaces have no permanent one."""
    for folder in UNIT_FOLDERS:
        for unit in sorted(node.file(folder).glob("*.network")):
            macs = PERMANENT_MAC.findall(unit.read_text(encoding="utf-8"))
            drop_in = node.file(f"/run/systemd/network/{unit.name}.d/99-lab.conf")
            if macs:
                drop_in.parent.mkdir(parents=True, exist_ok=True)
                drop_in.write_text(f"[Match]\nPermanentMACAddress=\nMACAddress={' '.join(macs)}\n", encoding="utf-8")
                drop_in.chmod(0o644)
            else:
                drop_in.unlink(missing_ok=True)


def _chown_state(node: Node) -> None:
    """Give the state folders to the daemon's account; in an unprivileged lab make that account root instead."""
    try:
        account = pwd.getpwnam(ACCOUNT)
        top = node.file("/run/systemd/netif")
        for path in (top, *top.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)
    except (KeyError, OSError):
        for file in ("/etc/passwd", "/etc/group"):
            path = node.file(file)
            lines = path.read_text(encoding="utf-8").splitlines()
            fields = "x:0:0::/run:/bin/false" if file.endswith("passwd") else "x:0:"
            others = [line for line in lines if line.partition(":")[0] != ACCOUNT]
            path.write_text("\n".join([*others, f"{ACCOUNT}:{fields}"]) + "\n", encoding="utf-8")
