"""Builds the nodes of a lab, and writes down what other commands need to find and to trust them."""

import socket
import subprocess
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from netkit.design.fabric import Host, Switch
from netkit.environment import without_secrets
from netkit.errors import LabError, Problem
from netkit.lab import routing
from netkit.lab.agents.gnmi import GnmiAgent, GnmiListener
from netkit.lab.agents.snmp_agent import SnmpAgent
from netkit.lab.entry import https, shell
from netkit.lab.entry.commands import serve
from netkit.lab.faults.incident import ManagedNode
from netkit.lab.folder import LabFolder
from netkit.lab.layout import PERSONALITY_OF_HOSTS, Seat
from netkit.lab.live import FLASH_BYTES, LiveNode
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities import personality
from netkit.lab.personality import Personality
from netkit.lab.proof import Shortfall
from netkit.lab.system import namespace_holder
from netkit.lab.system.namespace_holder import Holder, hold
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


BUILDERS = 4
Tell = Callable[[str, int, int], None]
"""(step, done, total): how far it is."""


class Builder:
    """Builds the nodes of one lab, and restarts single ones."""

    def __init__(self, world: World, files: Mapping[str, Mapping[str, str]], tell: Tell) -> None:
        self.world = world
        self._files = files
        self._tell = tell
        self._is_recorded = False
        self._public_key = (world.folder.path / "key.pub").read_text(encoding="utf-8")
        self._client = Path(__file__).with_name("client.pl").read_text(encoding="utf-8")

    def build(self) -> list[Shortfall]:
        """Bring every node up; return what failed."""
        seats = tuple(self.world.layout.seats.values())
        holders: dict[str, Holder] = {}
        for count, seat in enumerate(seats):
            self._tell("namespaces", count, len(seats))
            holders[seat.name] = hold(seat.name, is_host=seat.personality == PERSONALITY_OF_HOSTS)
        self._lay_cables(holders)
        for seat in seats:
            self.world.nodes[seat.name] = self._node(seat, holders[seat.name])
        shortfalls = self._boot_all()
        write(self.world)
        self._is_recorded = True
        self.world.services.start_traffic({name: holder.network for name, holder in holders.items()})
        return shortfalls

    def restart(self, name: str) -> None:
        """Power-cycle a node and boot it from its flash; raise ConfigRefusedError if it does not boot."""
        node, mind = self.world.nodes[name], self.world.personalities[name]
        with node.lock:
            mind.stop()
            node.kill_all()
            node.forget()
        self.world.services.rebooted(name)
        self._boot(node, mind)

    def _boot(self, node: LiveNode, mind: Personality) -> None:
        """Boot a node, then start its sshd. The node is not locked: programs a boot runs may call the keeper."""
        mind.boot()
        self.world.host_keys[node.name] = shell.host_key(node.holder.root, node.saved)
        config = shell.sshd_config(node.seat.address, self.world.port(SSH_PORT))
        node.file("/etc/ssh/sshd_config").write_text(config, encoding="utf-8")
        self._start_sshd(node)
        self.world.tell_settings(node)
        if isinstance(node.device, Host):
            node.lldp.apply()

    def _node(self, seat: Seat, holder: Holder) -> LiveNode:
        flash = self.world.folder.path / "nodes" / seat.name
        flash.mkdir()
        namespace_holder.mount("flash", str(flash), "tmpfs", namespace_holder.MS_NOSUID, f"mode=755,size={FLASH_BYTES}")
        return LiveNode(seat, holder, flash, self.world.folder.path / f"{seat.name}.log", self.world.services)

    def _lay_cables(self, holders: Mapping[str, Holder]) -> None:
        strands = self.world.layout.strands
        self._tell("cables", 0, len(strands))
        lines = [
            f"link add {strand.left_interface} netns {holders[strand.left].pid} type veth "
            f"peer name {strand.right_interface} netns {holders[strand.right].pid}\n"
            for strand in strands
        ]
        if not lines:
            return
        words = [*next(iter(holders.values())).enter(), "ip", "-batch", "-"]
        done = subprocess.run(  # noqa: S603
            words, env=without_secrets(), input="".join(lines), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LabError(Problem(f"the cables could not be laid: {done.stderr.strip()}"))

    def _boot_all(self) -> list[Shortfall]:
        nodes = self.world.nodes.values()
        shortfalls = []
        with ThreadPoolExecutor(BUILDERS) as pool:
            for count, (name, problem) in enumerate(pool.map(self._first_boot, nodes)):
                self._tell("devices", count, len(nodes))
                if problem:
                    shortfalls.append(Shortfall(name, problem))
        return shortfalls

    def _first_boot(self, node: LiveNode) -> tuple[str, str]:
        """Provision and boot a node; return its name and what went wrong."""
        try:
            mind = self._furnish(node)
            if files := self._files.get(node.name, {}):
                mind.provision(files)
            self._boot(node, mind)
        except ConfigRefusedError as error:
            return node.name, str(error)
        except Exception as error:  # one node that fails must not take the others with it
            traceback.print_exc()
            return node.name, f"{type(error).__name__}: {error}"
        return node.name, ""

    def _furnish(self, node: LiveNode) -> Personality:
        """Give a node its personality, its commands, and its management servers."""
        world, kind = self.world, personality(node.seat.personality)
        mind = world.personalities[node.name] = kind(node)
        shell.furnish(
            node.holder.root,
            public_key=self._public_key,
            prompt=kind.prompt.format(user=kind.login, host=node.name),
            programs=kind.programs,
            client=self._client,
        )
        world.incidents.add(ManagedNode(node, mind, self._start_sshd, world.tell_settings))
        serve(node, mind, world.incidents.answer)
        if kind.https_port:
            world.certificates[node.name] = https.make_certificate(node)
            https.serve(
                node, mind, world.port(kind.https_port), world.password, world.incidents.gate, world.incidents.cut
            )
        if isinstance(node.device, Switch):
            node.agent = SnmpAgent(node, node.seat.address, world.port(SNMP_PORT), node.lldp.state)
            node.gnmi = GnmiAgent(node, self._door(node), mind.gnmi)
        return mind

    def _door(self, node: LiveNode) -> GnmiListener:
        def certificate() -> tuple[Path, Path]:
            self.world.certificates[node.name] = https.make_certificate(node)
            return node.saved / https.CERTIFICATE, node.saved / https.KEY

        return GnmiListener(
            node.seat.address, self.world.password, self.world.incidents.gate, certificate, self._write_down
        )

    def _write_down(self) -> None:
        if self._is_recorded:
            write(self.world)

    def _start_sshd(self, node: LiveNode) -> None:
        """Start sshd, unless a fault makes the device unreachable."""
        if not self.world.services.faults.of("unreachable", node.name):
            # -r: no new image for each connection, which is half of what one costs.
            node.spawn("sshd", "/usr/sbin/sshd", "-D", "-e", "-r", "-f", "/etc/ssh/sshd_config", network=False)
            place = (node.seat.address, self.world.port(SSH_PORT))
            routing.wait(lambda: _answers(node, place), f"sshd of {node.name} does not answer")


def _answers(node: LiveNode, place: tuple[str, int]) -> bool:
    if not node.is_running("sshd"):
        raise ConfigRefusedError(f"sshd of {node.name} ended at once; its log says why")
    with socket.socket() as line:
        return line.connect_ex(place) == 0
