"""A SONiC switch that runs: its CONFIG_DB, what is on its flash, and the one way a change reaches the node."""

import copy
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from netkit.design.fabric import Switch
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.linux_host.units import Units
from netkit.lab.personalities.sonic.port_tables import Rates
from netkit.lab.personalities.sonic.schema import Schema, branch_of, schema
from netkit.lab.personalities.sonic.switch import OWN_FILE_MODES, SonicDeclaredState, told
from netkit.lab.personalities.sonic.tables import (
    CONFIG,
    SonicFlash,
    Table,
    Tables,
    Value,
    factory,
    parse,
    text,
    with_image_rows,
)
from netkit.lab.personalities.sonic.updater import Permissions, UpdaterChange, change, patched, permissions
from netkit.lab.personalities.sonic.validate import refuse_invalid
from netkit.lab.personality import Personality

TAKEN_FILES = frozenset({"config_db.json", "frr.conf"})
READ_BY_ROUTING = ("docker_routing_config_mode", "frr_mgmt_framework_config")
READ_AT_START = (*READ_BY_ROUTING, "buffer_model")
"""What containers read when they start, and a patch does not change before that."""
FIRST_BOOT_FILES = frozenset({"ztp_config_db.json", "ztp.sh"})
DOWN_S = 1.0
"""How long ports stay down that are shut on the way; on a switch it is longer.

The networkd of a host loses routes for good when its link comes back before it has let go of them.
"""
Taken = tuple[Tables, str, dict[str, Value | None]]
"""What runs: tables, the text FRR was brought to, and what containers read when they started."""


class SonicSystem(Personality):
    """What the commands of a switch act on. Its faults are set from outside."""

    fail_apply_quietly = False
    """A patch, rollback or reload ends well and changed nothing; a line among its output tells."""
    refuse_rollback = False
    """The updater finds no way back to any checkpoint."""
    fail_after_steps: int | None = None
    """The updater gives up after so many steps, and leaves the switch there."""
    step_delay_s = 0.0
    """How long each step of the updater takes; on a switch it is seconds."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        assert isinstance(node.device, Switch)  # noqa: S101
        self.switch = node.device
        self.branch = branch_of(self.switch.version)
        self.flash = SonicFlash(node)
        self.running: Tables = {}
        self.frr_conf = ""
        self.rates = Rates()
        self.units = Units(node, lambda command: node.run(*command))
        self._started: dict[str, Value | None] = {}
        self._without_ipv6: frozenset[str] | None = None

    @property
    def schema(self) -> Schema:
        """Return the schema of the running branch."""
        return schema(self.branch)

    @property
    def permissions(self) -> Permissions:
        """Return what the updater lets in on this model."""
        return permissions(self.branch, text(self.running, "DEVICE_METADATA", "localhost", "hwsku"))

    def provision(self, files: Mapping[str, str]) -> None:
        """Make rendered files the saved configuration."""
        strange = set(files) - TAKEN_FILES - FIRST_BOOT_FILES
        if strange:
            raise ConfigRefusedError(f"SONiC knows no file {', '.join(sorted(strange))}")
        tables = parse(files.get("config_db.json", "{}"))
        refuse_invalid(tables, self.schema)
        has_own_file = text(tables, "DEVICE_METADATA", "localhost", "docker_routing_config_mode") in OWN_FILE_MODES
        if has_own_file != ("frr.conf" in files):
            raise ConfigRefusedError("frr.conf belongs to split mode, and only there it is needed")
        self.flash.install(files)

    def boot(self) -> None:
        """Become what is saved, or a new switch when nothing is."""
        self.flash.prepare()
        self.units.power_up()
        self._without_ipv6 = None
        self.running = {}
        self.reload(self.saved())

    def saved(self) -> Tables:
        """Return the saved configuration, or the factory's."""
        if not self.flash.has_config():
            return factory(self.switch, self.branch)
        return parse(self.flash.text(CONFIG))

    def reload(self, tables: Tables) -> None:
        """Start all services anew with tables, as a boot or `config reload` does."""
        found = with_image_rows(tables, self.switch, self.branch)
        mode = self.flash.golden_mode()
        if mode:
            found.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {})["docker_routing_config_mode"] = mode
        refuse_invalid(found, self.schema)
        if self.running:
            self._shut([port.name for port in self._told().state.ports])
        before = self._taken()
        self.running, self.frr_conf = found, self.flash.frr_conf()
        self._started = {leaf: found["DEVICE_METADATA"]["localhost"].get(leaf) for leaf in READ_AT_START}
        self._realise_or(before)

    def restart_routing(self) -> None:
        """Start the routing container anew: it reads its mode, and its file if it has one."""
        before, metadata = self._taken(), self.running["DEVICE_METADATA"]["localhost"]
        self._started = {**self._started, **{leaf: metadata.get(leaf) for leaf in READ_BY_ROUTING}}
        self.frr_conf = self.flash.frr_conf()
        self._realise_or(before)

    def load_routing(self, frr_conf: str) -> None:
        """Bring FRR to a text; where it does not take it, FRR stays as it was."""
        before = self._taken()
        self.frr_conf = frr_conf
        self._realise_or(before)

    def write(self, tables: Tables) -> None:
        """Make tables the running ones at once, as a command does that writes into CONFIG_DB."""
        refuse_invalid(tables, self.schema)
        self._become(tables)

    def edited(self) -> Tables:
        """Return a copy of the running tables to edit."""
        return copy.deepcopy(self.running)

    def planned(self, intended: Tables) -> UpdaterChange:
        """Return how the updater would go to tables, or raise RefusedError."""
        return change(self.running, intended, self.schema, self.permissions)

    def apply(self, planned: UpdaterChange) -> bool:
        """Do what the updater planned; returns whether it took effect."""
        time.sleep(self.step_delay_s * len(planned.steps))
        if self.fail_after_steps is not None and self.fail_after_steps < len(planned.steps):
            done = [step.as_json() for step in planned.steps[: self.fail_after_steps]]
            self.write(patched(self.running, done))
            raise ConfigRefusedError("After applying patch to config, there are still some parts not updated")
        if self.fail_apply_quietly or not planned.steps:
            return not planned.steps
        if planned.flapping_ports:
            self._shut(planned.flapping_ports, planned.intended.get("PORT", {}))
        self._become(copy.deepcopy(planned.intended))
        return True

    def _become(self, tables: Tables) -> None:
        before = self._taken()
        self.running = tables
        self._realise_or(before)

    def _taken(self) -> Taken:
        return self.running, self.frr_conf, self._started

    def _realise_or(self, before: Taken) -> None:
        """Become what the switch is told; what cannot be done leaves it as it was, in all of its parts."""
        try:
            self._realise(self._told())
        except ConfigRefusedError:
            self.running, self.frr_conf, self._started = before
            if self.running:
                self._realise(self._told())
            raise

    def _told(self) -> SonicDeclaredState:
        metadata = {**self.running.get("DEVICE_METADATA", {}).get("localhost", {})}
        for leaf, value in self._started.items():
            metadata.pop(leaf, None)
            metadata |= {} if value is None else {leaf: value}
        return told({**self.running, "DEVICE_METADATA": {"localhost": metadata}}, self.frr_conf, self.branch)

    def _shut(self, ports: Iterable[str], later: Table | None = None) -> None:
        """Take ports down for a moment: who is at their other ends needs one to let go of what went with the link.

        FRR loses its neighbors on those that are down `later` as well, see `netkit.lab.routing.part`; until its own
        file leaves them out it is told them again.
        """
        stay = ports if later is None else [one for one in ports if later.get(one, {}).get("admin_status") == "up"]
        self._realise(_with_ports_down(self._told(), ports, frozenset(ports) - frozenset(stay)))
        time.sleep(DOWN_S)

    def _realise(self, found: SonicDeclaredState) -> None:
        self.node.realise(found.state)
        settings = {name: name in found.ports_without_ipv6 for name in self.node.kernel_names}
        if self._without_ipv6 is not None:
            settings = {name: off for name, off in settings.items() if off != (name in self._without_ipv6)}
        words = [
            f"net.ipv6.conf.{self.node.kernel_names[name]}.disable_ipv6={int(off)}" for name, off in settings.items()
        ]
        if words:
            self.node.run("sysctl", "-q", "-w", *words)
        self._without_ipv6 = found.ports_without_ipv6


def _with_ports_down(found: SonicDeclaredState, names: Iterable[str], gone: frozenset[str]) -> SonicDeclaredState:
    shut = frozenset(names)
    lines = found.state.frr.splitlines(keepends=True)
    frr = "".join(line for line in lines if not gone.intersection(line.split()[1:2] if "neighbor" in line else ()))
    ports = tuple(replace(port, is_enabled=port.is_enabled and port.name not in shut) for port in found.state.ports)
    return replace(found, state=replace(found.state, ports=ports, frr=frr))
