"""A running SONiC switch: CONFIG_DB, flash, and how changes reach the node."""

import copy
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from netkit.design.fabric import Switch
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.linux_host.units import Units
from netkit.lab.personalities.sonic.schema import Schema, branch_of, refuse_invalid, schema
from netkit.lab.personalities.sonic.switch import OWN_FILE_MODES, SonicDeclaredState, declared_state
from netkit.lab.personalities.sonic.tables import (
    CONFIG,
    SonicFlash,
    Tables,
    Value,
    factory,
    parse,
    text,
    with_image_rows,
)
from netkit.lab.personalities.sonic.updater import Permissions, UpdaterChange, change, patched, permissions
from netkit.lab.personality import Personality
from netkit.lab.reading import SwitchPortReading

CONFIG_FILES = frozenset({"config_db.json", "frr.conf"})
READ_BY_ROUTING = ("docker_routing_config_mode", "frr_mgmt_framework_config")
READ_AT_START = (*READ_BY_ROUTING, "buffer_model")
"""Leaves that containers read at their start only, so that a patch takes effect with their next restart."""
FIRST_BOOT_FILES = frozenset({"ztp_config_db.json", "ztp.sh"})
DOWN_S = 1.0
"""How long flapping ports stay down; longer on a real switch.

A host's networkd permanently loses routes if its link comes back before it has removed them.
"""
RunningState = tuple[Tables, str, dict[str, Value | None]]
"""Tables, FRR's configuration, and the leaves the containers read at their start."""


MIN_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class SonicPortRate:
    """The traffic rate of a port."""

    rx_bytes_per_s: float = 0.0
    tx_bytes_per_s: float = 0.0


class Rates:
    """Computes rates from successive readings."""

    def __init__(self) -> None:
        self._previous: dict[str, tuple[float, int, int]] = {}
        self._rates: dict[str, SonicPortRate] = {}

    def of(self, reading: SwitchPortReading) -> SonicPortRate:
        """The rate since the previous reading at least one second ago."""
        now_s, traffic = time.monotonic(), reading.traffic
        then_s, rx_bytes, tx_bytes = self._previous.get(reading.name, (0.0, 0, 0))
        passed_s = now_s - then_s
        if reading.name not in self._previous or passed_s >= MIN_INTERVAL_S:
            self._previous[reading.name] = (now_s, traffic.rx_bytes, traffic.tx_bytes)
            if then_s and traffic.rx_bytes >= rx_bytes and traffic.tx_bytes >= tx_bytes:
                rx, tx = (traffic.rx_bytes - rx_bytes) / passed_s, (traffic.tx_bytes - tx_bytes) / passed_s
                self._rates[reading.name] = SonicPortRate(rx, tx)
        return self._rates.get(reading.name, SonicPortRate())


class SonicSystem(Personality):
    """A running switch. Its faults are set from outside."""

    fail_apply_quietly = False
    """A patch, rollback or reload exits with 0 and changes nothing; only a line of its output shows it."""
    refuse_rollback = False
    """Every rollback to a checkpoint fails."""
    fail_after_steps: int | None = None
    """The updater fails after this many steps and leaves the switch half changed."""
    step_delay_s = 0.0
    """How long each step of the updater takes: seconds on a real switch."""

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
        return schema(self.branch)

    @property
    def permissions(self) -> Permissions:
        """The generic updater's rules for this model."""
        return permissions(self.branch, text(self.running, "DEVICE_METADATA", "localhost", "hwsku"))

    def provision(self, files: Mapping[str, str]) -> None:
        """Save rendered files."""
        unknown = set(files) - CONFIG_FILES - FIRST_BOOT_FILES
        if unknown:
            raise ConfigRefusedError(f"SONiC does not use a file {', '.join(sorted(unknown))}")
        tables = parse(files.get("config_db.json", "{}"))
        refuse_invalid(tables, self.schema)
        has_own_file = text(tables, "DEVICE_METADATA", "localhost", "docker_routing_config_mode") in OWN_FILE_MODES
        if has_own_file != ("frr.conf" in files):
            raise ConfigRefusedError("frr.conf is required in split mode and refused in the other modes")
        self.flash.install(files)

    def boot(self) -> None:
        """Load the saved configuration, or the factory's."""
        self.flash.prepare()
        self.units.power_up()
        self._without_ipv6 = None
        self.running = {}
        self.reload(self.saved())

    def saved(self) -> Tables:
        if not self.flash.has_config():
            return factory(self.switch, self.branch)
        return parse(self.flash.text(CONFIG))

    def reload(self, tables: Tables) -> None:
        """Restart all services with new tables, as a boot or `config reload` does."""
        found = with_image_rows(tables, self.switch, self.branch)
        mode = self.flash.golden_mode()
        if mode:
            found.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {})["docker_routing_config_mode"] = mode
        refuse_invalid(found, self.schema)
        if self.running:
            self._shut([port.name for port in self._declared_state().state.ports])
        before = self._running_state()
        self.running, self.frr_conf = found, self.flash.frr_conf()
        self._started = {leaf: found["DEVICE_METADATA"]["localhost"].get(leaf) for leaf in READ_AT_START}
        self._realise_or_restore(before)

    def restart_routing(self) -> None:
        """Restart the routing container, which then reads its mode and frr.conf."""
        before, metadata = self._running_state(), self.running["DEVICE_METADATA"]["localhost"]
        self._started = {**self._started, **{leaf: metadata.get(leaf) for leaf in READ_BY_ROUTING}}
        self.frr_conf = self.flash.frr_conf()
        self._realise_or_restore(before)

    def load_routing(self, frr_conf: str) -> None:
        """Load an FRR configuration; if FRR refuses it, nothing changes."""
        before = self._running_state()
        self.frr_conf = frr_conf
        self._realise_or_restore(before)

    def write(self, tables: Tables) -> None:
        """Apply tables at once, as a command that writes to CONFIG_DB does."""
        refuse_invalid(tables, self.schema)
        self._become(tables)

    def edited(self) -> Tables:
        return copy.deepcopy(self.running)

    def planned(self, intended: Tables) -> UpdaterChange:
        """Plan the updater's steps to some tables; raise ConfigRefusedError if they are not permitted."""
        return change(self.running, intended, self.schema, self.permissions)

    def apply(self, planned: UpdaterChange) -> bool:
        """Run the planned steps; return whether they took effect."""
        time.sleep(self.step_delay_s * len(planned.steps))
        if self.fail_after_steps is not None and self.fail_after_steps < len(planned.steps):
            done = [step.as_json() for step in planned.steps[: self.fail_after_steps]]
            self.write(patched(self.running, done))
            raise ConfigRefusedError("After applying patch to config, there are still some parts not updated")
        if self.fail_apply_quietly or not planned.steps:
            return not planned.steps
        if planned.flapping_ports:
            self._shut(planned.flapping_ports)
        self._become(copy.deepcopy(planned.intended))
        return True

    def _become(self, tables: Tables) -> None:
        before = self._running_state()
        self.running = tables
        self._realise_or_restore(before)

    def _running_state(self) -> RunningState:
        return self.running, self.frr_conf, self._started

    def _realise_or_restore(self, before: RunningState) -> None:
        """Realise the current state; on failure restore the previous one completely."""
        try:
            self._realise(self._declared_state())
        except ConfigRefusedError:
            self.running, self.frr_conf, self._started = before
            if self.running:
                self._realise(self._declared_state())
            raise

    def _declared_state(self) -> SonicDeclaredState:
        metadata = {**self.running.get("DEVICE_METADATA", {}).get("localhost", {})}
        for leaf, value in self._started.items():
            metadata.pop(leaf, None)
            metadata |= {} if value is None else {leaf: value}
        tables = {**self.running, "DEVICE_METADATA": {"localhost": metadata}}
        return declared_state(tables, self.frr_conf, self.branch)

    def _shut(self, ports: Iterable[str]) -> None:
        """Take ports down briefly, long enough for the far end to drop what depends on the link."""
        shut = frozenset(ports)
        found = self._declared_state()
        states = (replace(port, is_enabled=port.is_enabled and port.name not in shut) for port in found.state.ports)
        self._realise(replace(found, state=replace(found.state, ports=tuple(states))))
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
