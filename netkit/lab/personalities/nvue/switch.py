"""A switch of the lab that speaks NVUE."""

import os
from collections.abc import Iterator, Mapping

from netkit.design.fabric import Switch
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.nvue import gnmi
from netkit.lab.personalities.nvue.apply import Applier
from netkit.lab.personalities.nvue.command_line import action, change, show
from netkit.lab.personalities.nvue.config_command import config
from netkit.lab.personalities.nvue.document import read
from netkit.lab.personalities.nvue.factory import factory
from netkit.lab.personalities.nvue.rest import answer
from netkit.lab.personalities.nvue.revision import RevisionStore
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import CumulusSwitch, merged, schema
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueSystem
from netkit.lab.personalities.nvue.tree import Tree, child
from netkit.lab.personality import Call, Elem, Personality, Told

VERBS = {"action": action, "config": config, "set": change("set"), "show": show, "unset": change("unset")}


class Nvue(Personality):
    """Cumulus Linux as NVUE presents it."""

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
        """Whether an apply fails and still exits with 0, as switches have done."""
        return self.system.applier.fails_quietly

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_wanted: bool) -> None:
        self.system.applier.fails_quietly = is_wanted

    def provision(self, files: Mapping[str, str]) -> None:
        """Make startup.yaml, over what the factory set, the saved configuration.

        Such a switch was set up before: of eth0 it keeps nothing of the factory's, which had it ask a DHCP server.
        """
        system = self.system
        system.store.load(self.factory)
        try:
            changes = read(system, files["startup.yaml"])
        except NvueCommandError as error:
            raise ConfigRefusedError(str(error).strip()) from error
        is_given = bool(child(changes.set, "interface", "eth0"))
        base: Tree = {**self.factory, **({"interface": {"eth0": {"type": "eth"}}} if is_given else {})}
        tree = merged(system.known, base, changes.set)
        issues = broken(tree, system.chassis)
        if issues:
            raise ConfigRefusedError("\n".join(issue.message for issue in issues))
        system.store.provision(tree)

    def boot(self) -> None:
        """Run what is saved."""
        self.system.store.load(self.factory)
        self.system.applier.boot()

    def run(self, call: Call) -> int:
        """Answer `nv`."""
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
        """Answer a request to the REST interface."""
        return answer(self.system, method, path, headers, body, user or self.login)

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[Told]:
        """Yield what is streamed below a path."""
        del target  # there is one tree
        yield from gnmi.told(self.node, path)

    def stop(self) -> None:
        """Forget a pending confirmation, as a switch that goes down does."""
        self.system.applier.stop()
