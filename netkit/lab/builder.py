"""Builds the nodes of a lab, and records how other commands reach and authenticate them."""

import socket
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from netkit.design.fabric import Host, Switch
from netkit.errors import LabError, Problem
from netkit.lab import entry, namespace_holder, routing
from netkit.lab.agents.gnmi import GnmiAgent, GnmiListener
from netkit.lab.agents.snmp_agent import SnmpAgent
from netkit.lab.entry import serve_commands
from netkit.lab.faults.incident import ManagedNode
from netkit.lab.layout import OUTSIDE_INTERFACE, PERSONALITY_OF_HOSTS, OutsidePeer
from netkit.lab.live import FLASH_BYTES, LiveNode
from netkit.lab.namespace_holder import Holder, ProgramRunner, hold
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities import personality
from netkit.lab.personality import Personality
from netkit.lab.proof import Shortfall
from netkit.lab.world import SNMP_PORT, SSH_PORT, World
from netkit.private import without_secrets

UNWANTED = "198.18.0.0/15"
"""Announced too, as a route that switches have to reject (RFC 2544)."""


def start(node: ProgramRunner, peer: OutsidePeer, bfd_interval_ms: int) -> None:
    """Configure the link of a router, and start its FRR."""
    port = peer.port
    length = port.address.partition("/")[2]
    for command in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{port.peer}/{length}", "dev", OUTSIDE_INTERFACE),
        ("link", "set", OUTSIDE_INTERFACE, "mtu", str(port.mtu_bytes), "up"),
    ):
        done = node.run("ip", *command)
        if done.exit_code != 0:
            raise OSError(f"{peer.name}: ip {' '.join(command)}: {done.stderr.strip()}")
    routing.load(node, routing.slower_bfd("\n".join((*_configuration(peer), "")), bfd_interval_ms))


def _configuration(peer: OutsidePeer) -> Iterator[str]:
    port = peer.port
    switch = port.own_address
    yield from ("frr defaults traditional", f"hostname {peer.name}", "no zebra nexthop kernel enable")
    yield f"router bgp {port.peer_asn}"
    yield f" bgp router-id {port.peer}"
    yield " no bgp ebgp-requires-policy"
    yield " no bgp network import-check"
    yield f" neighbor {switch} remote-as {peer.switch.asn}"
    # When both ends open a session at once, FRR 8.4 may end up without BFD at one of them.
    yield f" neighbor {switch} passive"
    yield f" neighbor {switch} update-source {port.peer}"
    if port.has_bfd:
        yield f" neighbor {switch} bfd"
        yield f" neighbor {switch} bfd profile fabric"
    yield from (" !", " address-family ipv4 unicast")
    yield from (f"  network {prefix}" for prefix in dict.fromkeys((*port.accepted, UNWANTED)))
    yield from (" exit-address-family", "exit", "!")
    yield from (
        "bfd",
        " profile fabric",
        "  transmit-interval 300",
        "  receive-interval 300",
        " exit",
        " !",
        "exit",
        "!",
    )


NOWHERE = "Host *\n  ProxyCommand false\n"
"""Refuses a name that is not a device of the lab before it is resolved."""


def write(world: World) -> None:
    """Write lab.json, known_hosts and ssh_config."""
    devices = {name: _device(world, name) for name in world.layout.nodes}
    folder = world.folder
    known = [f"[{d['address']}]:{d['port']} {world.host_keys.get(name, '')}" for name, d in devices.items()]
    known += [f"{d['address']} {world.host_keys.get(name, '')}" for name, d in devices.items()]
    (folder.path / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
    entries = [
        f"Host {name}\n  HostName {device['address']}\n  Port {device['port']}\n  User {device['login']}\n"
        f"  IdentityFile {folder.key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder.path / 'known_hosts'}\n  StrictHostKeyChecking yes\n"
        "  ProxyCommand none\n"
        for name, device in devices.items()
    ]
    folder.ssh_config.write_text("".join([*entries, NOWHERE]), encoding="utf-8")
    record = {"lab": folder.name, "fabric": world.fabric_folder, "block": world.block, "devices": devices}
    folder.write({**record, "is_rendered": world.is_rendered})


def _device(world: World, name: str) -> Mapping[str, Any]:
    spec, agent = world.layout.nodes[name], world.nodes[name].gnmi
    kind, gnmi = personality(spec.personality), agent.state if agent else None
    return {
        "address": spec.address,
        "port": world.port(SSH_PORT),
        "snmp_port": world.port(SNMP_PORT),
        "https_port": world.port(kind.https_port) if kind.https_port else 0,
        "certificate": world.certificates.get(name, ""),
        "gnmi_port": agent.port if agent and gnmi else 0,
        "gnmi_certificate": world.certificates.get(name, "") if gnmi and gnmi.has_tls else "",
        "personality": spec.personality,
        "login": kind.login,
        "pid": world.nodes[name].holder.pid,
    }


BUILDERS = 4
Progress = Callable[[str, int, int], None]
"""Called with (step, done, total)."""


class Builder:
    """Builds the nodes of one lab, and restarts single ones."""

    def __init__(self, world: World, files: Mapping[str, Mapping[str, str]], progress: Progress) -> None:
        self.world = world
        self._files = files
        self._progress = progress
        self._is_recorded = False
        self._public_key = (world.folder.path / "key.pub").read_text(encoding="utf-8")
        self._client = Path(__file__).with_name("client.pl").read_text(encoding="utf-8")

    def build(self) -> list[Shortfall]:
        """Bring every node up; return what failed."""
        world = self.world
        specs = tuple(world.layout.nodes.values())
        holders: dict[str, Holder] = {}
        for count, spec in enumerate(specs):
            self._progress("namespaces", count, len(specs))
            holders[spec.name] = hold(spec.name, is_host=spec.personality == PERSONALITY_OF_HOSTS)
        outside = {peer.name: hold(peer.name, is_host=False) for peer in world.layout.outside}
        servers = {server.name: hold(server.name, is_host=False) for server in world.layout.servers}
        self._connect({**holders, **outside, **servers})
        for spec in specs:
            flash = world.folder.path / "nodes" / spec.name
            flash.mkdir()
            options = f"mode=755,size={FLASH_BYTES}"
            namespace_holder.mount("flash", str(flash), "tmpfs", namespace_holder.MS_NOSUID, options)
            log = world.folder.path / f"{spec.name}.log"
            world.nodes[spec.name] = LiveNode(spec, holders[spec.name], flash, log, world.services)
        for peer in world.layout.outside:
            node = ProgramRunner(outside[peer.name], world.folder.path / f"{peer.name}.log")
            world.outside[peer.name] = node
            start(node, peer, world.services.bfd_interval_ms)
        for server in world.layout.servers:
            world.outside[server.name] = ProgramRunner(servers[server.name], world.folder.path / f"{server.name}.log")
            for link in server.links:
                world.outside[server.name].run("ip", "link", "set", link.right_interface, "up")
        shortfalls = self._boot_all()
        write(world)
        self._is_recorded = True
        world.services.start_traffic({name: holder.network for name, holder in holders.items()})
        return shortfalls

    def restart(self, name: str) -> None:
        """Power-cycle a node and boot it from its flash; raise ConfigRefusedError if it does not boot."""
        node, nos = self.world.nodes[name], self.world.personalities[name]
        with node.lock:
            nos.stop()
            node.kill_all()
            node.forget()
        self.world.services.model.rebooted(name, time.monotonic())
        self._boot(node, nos)

    def _boot(self, node: LiveNode, nos: Personality) -> None:
        """Boot a node, then start its sshd. The node is not locked: programs a boot runs may call the keeper."""
        nos.boot()
        self.world.host_keys[node.name] = entry.host_key(node.holder.root, node.saved)
        config = entry.sshd_config(node.spec.address, self.world.port(SSH_PORT))
        node.file("/etc/ssh/sshd_config").write_text(config, encoding="utf-8")
        self._start_sshd(node)
        self.world.apply_nic_settings(node)
        if isinstance(node.device, Host):
            node.lldp.apply()

    def _connect(self, holders: Mapping[str, Holder]) -> None:
        """Create the veth pairs that stand for cables."""
        links = self.world.layout.links
        self._progress("cables", 0, len(links))
        lines = [
            f"link add {link.left_interface} netns {holders[link.left].pid} type veth "
            f"peer name {link.right_interface} netns {holders[link.right].pid}\n"
            for link in links
        ]
        if not lines:
            return
        words = [*next(iter(holders.values())).enter(), "ip", "-batch", "-"]
        done = subprocess.run(  # noqa: S603
            words, env=without_secrets(), input="".join(lines), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LabError(Problem(f"cannot create the cables: {done.stderr.strip()}"))

    def _boot_all(self) -> list[Shortfall]:
        nodes = self.world.nodes.values()
        shortfalls = []
        with ThreadPoolExecutor(BUILDERS) as pool:
            for count, (name, problem) in enumerate(pool.map(self._first_boot, nodes)):
                self._progress("devices", count, len(nodes))
                if problem:
                    shortfalls.append(Shortfall(name, problem))
        return shortfalls

    def _first_boot(self, node: LiveNode) -> tuple[str, str]:
        """Provision and boot a node; return its name and what went wrong."""
        try:
            nos = self._equip(node)
            if files := self._files.get(node.name, {}):
                nos.provision(files)
            self._boot(node, nos)
        except ConfigRefusedError as error:
            return node.name, str(error)
        except Exception as error:  # a node that fails must not stop the others
            traceback.print_exc()
            return node.name, f"{type(error).__name__}: {error}"
        return node.name, ""

    def _equip(self, node: LiveNode) -> Personality:
        """Give a node its personality, its commands, and its management servers."""
        world, kind = self.world, personality(node.spec.personality)
        nos = world.personalities[node.name] = kind(node)
        nos.rdma = world.services.rdma
        entry.furnish(
            node.holder.root,
            public_key=self._public_key,
            prompt=kind.prompt.format(user=kind.login, host=node.name),
            programs=nos.installed(),
            client=self._client,
        )
        world.incidents.add(ManagedNode(node, nos, self._start_sshd, world.apply_nic_settings))
        serve_commands(node, nos, world.incidents.answer)
        if kind.https_port:
            world.certificates[node.name] = entry.make_certificate(node)
            entry.serve_https(
                node, nos, world.port(kind.https_port), world.password, world.incidents.gate, world.incidents.cut
            )
        if isinstance(node.device, Switch):
            node.agent = SnmpAgent(node, node.spec.address, world.port(SNMP_PORT), node.lldp.state)
            node.gnmi = GnmiAgent(node, self._gnmi_listener(node), nos.gnmi)
        return nos

    def _gnmi_listener(self, node: LiveNode) -> GnmiListener:
        world = self.world

        def certificate() -> tuple[Path, Path]:
            world.certificates[node.name] = entry.make_certificate(node)
            return node.saved / entry.TLS_CERTIFICATE, node.saved / entry.TLS_KEY

        def record() -> None:
            if self._is_recorded:
                write(world)

        return GnmiListener(node.spec.address, world.password, world.incidents.gate, certificate, record)

    def _start_sshd(self, node: LiveNode) -> None:
        """Start sshd and wait until it listens, unless a fault makes the device unreachable."""
        if self.world.services.faults.of("unreachable", node.name) or "ssh" in node.refused:
            return
        # -r: do not execute sshd again for each connection, which is half the cost of one.
        node.spawn("sshd", "/usr/sbin/sshd", "-D", "-e", "-r", "-f", "/etc/ssh/sshd_config", network=False)
        address = (node.spec.address, self.world.port(SSH_PORT))

        def listens() -> bool:
            if not node.is_running("sshd"):
                raise ConfigRefusedError(f"sshd of {node.name} exited at once; see its log")
            with socket.socket() as connection:
                return connection.connect_ex(address) == 0

        routing.wait(listens, f"sshd of {node.name} does not listen")
