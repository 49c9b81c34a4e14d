"""The parts of one running lab."""

import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.design.fabric import Fabric, Host
from netkit.lab import entry, netlink
from netkit.lab.faults.incident import Incidents
from netkit.lab.folder import LabFolder
from netkit.lab.layout import LabLayout, lay_out
from netkit.lab.live import LiveNode
from netkit.lab.model.wiring import NicSettings
from netkit.lab.namespace_holder import ProgramRunner
from netkit.lab.personality import Personality
from netkit.lab.services import LabServices

SSH_PORT, SNMP_PORT = 22, 161
LOW_PORTS = 1023


@dataclass
class World:
    """A running lab as its keeper sees it; nodes are added one by one."""

    fabric: Fabric
    fabric_folder: str
    folder: LabFolder
    layout: LabLayout
    block: str
    claim: socket.socket
    """Reserves the loopback network while it is open."""
    low_port_shift: int
    """Added to privileged ports if the keeper may not bind them."""
    password: str
    services: LabServices
    incidents: Incidents
    nodes: dict[str, LiveNode] = field(default_factory=dict)
    outside: dict[str, ProgramRunner] = field(default_factory=dict)
    """Routers outside the fabric; they are not devices."""
    personalities: dict[str, Personality] = field(default_factory=dict)
    host_keys: dict[str, str] = field(default_factory=dict)
    certificates: dict[str, str] = field(default_factory=dict)
    is_rendered: bool = False
    """See LabJob."""

    def port(self, number: int) -> int:
        """Shift a privileged port if the keeper may not bind it."""
        return number + self.low_port_shift if number <= LOW_PORTS else number

    def settings(self, host: str) -> Mapping[str, NicSettings]:
        node, nos = self.nodes[host], self.personalities[host]
        nics = node.device.nics if isinstance(node.device, Host) else ()
        found = ((nic.interface, nos.settings(nic.interface)) for nic in nics)
        return {interface: settings for interface, settings in found if settings is not None}

    def apply_nic_settings(self, node: LiveNode) -> None:
        """Pass the settings of a host's NICs to the model and to the traffic."""
        if isinstance(node.device, Host):
            nos = self.personalities[node.name]
            tos = {nic.interface: nos.data_tos(nic.interface) for nic in node.device.nics}
            self.services.configure_host(node.device, self.settings(node.name), tos)


def begin(fabric: Fabric, fabric_folder: str, folder: LabFolder) -> World:
    """A lab without nodes yet: its loopback network, its keys, its services."""
    network, claim = netlink.claim(folder.name)
    services = LabServices(fabric)
    entry.make_key(folder.path)
    password = secrets.token_urlsafe(18)
    file = entry.password_file(folder.path)
    file.touch(mode=0o600)
    file.write_text(f"{password}\n", encoding="utf-8")
    return World(
        fabric,
        fabric_folder,
        folder,
        lay_out(fabric, network),
        network,
        claim,
        _low_port_shift(network),
        password,
        services,
        Incidents(services.faults),
    )


def _low_port_shift(network: str) -> int:
    with socket.socket() as trial:
        try:
            trial.bind((f"{network}.255.254", SSH_PORT))
        except PermissionError:
            return 8000
        return 0
