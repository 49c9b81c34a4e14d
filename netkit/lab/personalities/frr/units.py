"""The services of a Linux switch: what systemd would do when one is started, stopped or reloaded."""

from collections.abc import Callable

from netkit.lab.node import RefusedError
from netkit.lab.personalities.frr.engine import Engine
from netkit.lab.personalities.linux_host.unit_file import UnitError
from netkit.lab.personalities.linux_host.units import DEAD, RUNNING, Runner, State, Units

FRR = "frr.service"
APPLIED = ("snmpd.service", "systemd-networkd.service")
"""Starting one of these makes the switch what their files say."""
ACCEPTED = ("lldpd.service", "chrony.service", "rsyslog.service")
"""lldpd is the lab's; time and syslog servers do not exist here."""
ACTING = ("restart", "try-restart", "reload", "reload-or-restart")
FAILED = State("failed", "failed", "exit-code", 1)


class SwitchUnits(Units):
    """Units of a switch; transient ones of `systemd-run` are those of every Linux."""

    def __init__(self, engine: Engine, runner: Runner) -> None:
        super().__init__(engine.node, runner)
        self._engine = engine

    def is_switchs_own(self, name: str) -> bool:
        """Whether a unit is one that only switches have."""
        return name in {FRR, *APPLIED, *ACCEPTED}

    def act(self, verb: str, name: str) -> State:
        """Restart or reload one of the switch's own units; raises UnitError."""
        if verb == "try-restart" and self.state(name).active != "active":
            return self.state(name)
        return self.reload_unit(name) if verb.startswith("reload") else self.restart(name)

    def is_known(self, name: str) -> bool:
        """Whether there is such a unit."""
        return self.is_switchs_own(name) or super().is_known(name)

    def state(self, name: str) -> State:
        """Return what became of a unit."""
        if name == FRR:
            return RUNNING if self._engine.node.is_running("zebra") else self._states.get(name, DEAD)
        if name in APPLIED or name in ACCEPTED:
            return self._states.get(name, RUNNING)
        return super().state(name)

    def restart(self, name: str) -> State:
        """Start a unit anew."""
        if name == FRR:
            return self._try(name, self._engine.restart_routing)
        if name in APPLIED:
            return self._try(name, self._engine.apply)
        if name in ACCEPTED:
            self._states[name] = RUNNING
            return RUNNING
        return super().restart(name)

    def reload_unit(self, name: str) -> State:
        """Have a unit read its configuration again."""
        if name != FRR:
            return self.restart(name)
        done = self._engine.reload_routing()
        if done.exit_code != 0:
            raise UnitError(f"Reload failed: {(done.stderr or done.stdout).strip()[-500:]}")
        return RUNNING

    def stop(self, name: str) -> None:
        """Stop a unit."""
        if name == FRR:
            self._engine.stop_routing()
        if self.is_switchs_own(name):
            self._states[name] = DEAD
            return
        super().stop(name)

    def _try(self, name: str, act: Callable[[], None]) -> State:
        try:
            if not self._engine.fails_quietly:
                act()
        except RefusedError as error:
            self._engine.node.log(f"{name}: {error}")
            self._states[name] = FAILED
            return FAILED
        self._states[name] = RUNNING
        return RUNNING
