"""Writes down what other commands need to find the nodes of a lab, and to trust them."""

from collections.abc import Mapping
from typing import Any

from netkit.lab.folder import LabFolder
from netkit.lab.personalities import personality
from netkit.lab.world import SNMP_PORT, SSH_PORT, World

NOWHERE = "Host *\n  ProxyCommand false\n"
"""With this a name that is no device of the lab is not even looked up."""


def write(world: World) -> None:
    """Write lab.json, known_hosts and ssh_config."""
    devices = {name: _device(world, name) for name in world.layout.seats}
    folder = world.folder
    known = [f"[{d['address']}]:{d['port']} {world.host_keys.get(name, '')}" for name, d in devices.items()]
    known += [f"{d['address']} {world.host_keys.get(name, '')}" for name, d in devices.items()]
    (folder.path / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
    entries = [_ssh_entry(folder, name, device) for name, device in devices.items()]
    folder.ssh_config.write_text("".join([*entries, NOWHERE]), encoding="utf-8")
    folder.write({"lab": folder.name, "fabric": world.fabric_folder, "block": world.block, "devices": devices})


def _device(world: World, name: str) -> Mapping[str, Any]:
    seat, agent = world.layout.seats[name], world.nodes[name].gnmi
    kind, gnmi = personality(seat.personality), agent.state if agent else None
    return {
        "address": seat.address,
        "port": world.port(SSH_PORT),
        "snmp_port": world.port(SNMP_PORT),
        "https_port": world.port(kind.https_port) if kind.https_port else 0,
        "certificate": world.certificates.get(name, ""),
        "gnmi_port": agent.port if agent and gnmi else 0,
        "gnmi_certificate": world.certificates.get(name, "") if gnmi and gnmi.has_tls else "",
        "personality": seat.personality,
        "login": kind.login,
        "pid": world.nodes[name].holder.pid,
    }


def _ssh_entry(folder: LabFolder, name: str, device: Mapping[str, Any]) -> str:
    return (
        f"Host {name}\n  HostName {device['address']}\n  Port {device['port']}\n  User {device['login']}\n"
        f"  IdentityFile {folder.key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder.path / 'known_hosts'}\n  StrictHostKeyChecking yes\n"
        "  ProxyCommand none\n"
    )
