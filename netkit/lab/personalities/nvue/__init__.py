"""NVIDIA Cumulus Linux 5.x as NVUE presents it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from netkit.design.fabric import Switch
from netkit.lab.agents import gnmi
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.nvue.command_line import action, change, show
from netkit.lab.personalities.nvue.config_command import config
from netkit.lab.personalities.nvue.document import read
from netkit.lab.personalities.nvue.rest import answer
from netkit.lab.personalities.nvue.revision import RevisionStore
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import BREAK, CumulusSwitch, Issue, NvueSchemaNode, checked, merged, schema
from netkit.lab.personalities.nvue.system import Applier, NvueCommandError, NvueSystem
from netkit.lab.personalities.nvue.tree import Tree, child, load
from netkit.lab.personality import Call, Elem, GnmiLeaf, Personality
from netkit.lab.reading import SwitchPortReading

SOURCE = Path(__file__).with_name("factory.yaml")


def factory(known: NvueSchemaNode, chassis: CumulusSwitch) -> Tree:
    """The factory configuration of a release."""
    items = load(SOURCE.read_text(encoding="utf-8"))
    base = items[0]["set"] if isinstance(items, list) else {}
    on: Tree = {"state": "enabled"} if chassis.version >= BREAK else {"enable": "on"}
    dhcp: Tree = (
        {"ipv4": {"dhcp-client": {"state": "enabled", "set-hostname": "enabled"}}, "vrf": "mgmt"}
        if chassis.version >= BREAK
        else {"ip": {"address": {"dhcp": {}}, "vrf": "mgmt"}}
    )
    of_release: Tree = {
        "interface": {"eth0": dhcp},
        "system": {"api": on, "config": {"auto-save": on}, "ssh-server": on},
    }
    issues: list[Issue] = []
    tree = checked(known, base, issues)
    if issues or not isinstance(tree, dict):
        raise ValueError(f"{SOURCE.name}: {'; '.join(issue.message for issue in issues)}")
    return merged(known, tree, of_release)


def _port_leaves(reading: SwitchPortReading) -> Iterator[GnmiLeaf]:
    name, traffic = reading.name, reading.traffic
    packets = {"in-pkts": traffic.rx_packets, "out-pkts": traffic.tx_packets, "out-discards": traffic.tx_dropped}
    counters = {**gnmi.counters(reading), **packets}
    yield from gnmi.leaves(gnmi.interface(name, "state", "counters"), counters)
    changes = {"carrier-transitions": reading.carrier_changes}
    yield from gnmi.leaves(gnmi.interface(name, "ethernet", "state", "counters"), changes)
    blocks = {"rs-fec-uncorrectable-blocks": reading.fec.uncorrectable_codewords}
    yield from gnmi.leaves(gnmi.interface(name, "ethernet", "phy", "state"), blocks)
    for number, queue in enumerate(reading.queues):
        more = {"ecn-marked-pkts": queue.ecn_marked_packets, "no-buffer-uc-dropped-pkts": queue.dropped_packets}
        yield from gnmi.leaves(gnmi.queue(name, number), {**gnmi.queue_counters(queue), **more})
    for number, priority in enumerate(reading.priorities):
        at: Elem = ("switch-priority", {"name": str(number)})
        path = gnmi.qos_interface(name, ("state", {}), at, ("counters", {}))
        pauses = {"in-pause-pkts": priority.rx_pause, "out-pause-pkts": priority.tx_pause}
        yield from gnmi.leaves(path, pauses)


VERBS = {"action": action, "config": config, "set": change("set"), "show": show, "unset": change("unset")}


class Nvue(Personality):
    """Cumulus Linux with NVUE."""

    programs = ("nv",)
    login = "cumulus"
    prompt = "{user}@{host}:mgmt:~$ "
    https_port = 8765

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        if not isinstance(node.device, Switch):
            raise TypeError(f"{node.name} is not a switch")
        chassis = CumulusSwitch(node.device.model, node.device.version)
        known = schema(chassis.version)
        store = RevisionStore(node.saved / "nvue", known)
        self.system = NvueSystem(node, chassis, known, store, Applier(node, chassis, store))
        self.factory = factory(known, chassis)

    @property
    def fail_apply_quietly(self) -> bool:
        """Lab fault: an apply fails but exits with 0, as real switches have done."""
        return self.system.applier.fails_quietly

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_on: bool) -> None:
        self.system.applier.fails_quietly = is_on

    def provision(self, files: Mapping[str, str]) -> None:
        """Save startup.yaml over the factory configuration.

        The factory's DHCP client on eth0 is dropped if the file configures eth0, as on a switch that was set up before.
        """
        system = self.system
        system.store.load(self.factory)
        try:
            changes = read(system, files["startup.yaml"])
        except NvueCommandError as error:
            raise ConfigRefusedError(str(error).strip()) from error
        base = dict(self.factory)
        if child(changes.set, "interface", "eth0"):
            base["interface"] = {"eth0": {"type": "eth"}}
        tree = merged(system.known, base, changes.set)
        issues = broken(tree, system.chassis)
        if issues:
            raise ConfigRefusedError("\n".join(issue.message for issue in issues))
        system.store.provision(tree)

    def boot(self) -> None:
        self.system.store.load(self.factory)
        self.system.applier.boot()

    def run(self, call: Call) -> int:
        verb, rest = (call.arguments[0], call.arguments[1:]) if call.arguments else ("", ())
        if verb not in VERBS:
            call.err(f"usage: nv {{{','.join(VERBS)}}} …\nError: invalid choice: '{verb}'\n")
            return 2
        try:
            return VERBS[verb](self.system, call, rest)
        except NvueCommandError as error:
            call.err(str(error))
            return error.exit_code
        except OSError as error:
            call.err(f"Error: {os.strerror(error.errno or 0)}\n")
            return 1

    def https(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, user: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        return answer(self.system, method, path, headers, body, user or self.login)

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
        del target  # there is one tree
        yield from gnmi.below((leaf for reading in self.node.ports() for leaf in _port_leaves(reading)), path)

    def stop(self) -> None:
        """Cancel a pending confirmation, as a power-off does."""
        self.system.applier.stop()


PERSONALITY = Nvue
