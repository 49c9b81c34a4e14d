"""The health gate of a deploy; the parts that read facts are loaded only for changes that affect traffic."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from netkit.deploy import Gate, GateAnswer, GateQuestion, SessionGate
from netkit.deploy.gate import HostGate
from netkit.deploy.reach_gate import ReachGate
from netkit.platforms.change import Risk
from netkit.platforms.driver import Driver, RailReader, RailState, Reader
from netkit.platforms.view import View
from netkit.project.connections import Connections
from netkit.project.project import Project
from netkit.project.reading import OnlyReading


def reader_of(devices: Connections) -> Callable[[str], Reader]:
    """A function that opens devices read-only."""
    return lambda name: OnlyReading(devices.connect(name))


def gate_of(project: Project, devices: Connections) -> Gate:
    """Build the health gate: sessions, rails, the hosts behind a leaf, lossless counters, pairs, and CNPs."""
    sessions = HostGate(project.fabric, SessionGate(project.fabric, reader_of(devices)))
    return LazyGate(sessions, lambda: _whole(project, devices, sessions))


class OnlyRails:
    """A host's driver reduced to reading its rails."""

    def __init__(self, driver: Driver) -> None:
        self.open, self.close, self._driver = driver.open, driver.close, driver

    def rail_states(self, far: Mapping[str, Sequence[str]], mtu_bytes: int = 0) -> tuple[RailState, ...]:
        """The state of the rails; empty for a switch."""
        return self._driver.rail_states(far, mtu_bytes) if isinstance(self._driver, RailReader) else ()


class LazyGate:
    """Uses a gate of sessions for changes without traffic impact; builds the full gate for the first other change."""

    def __init__(self, sessions: Gate, make: Callable[[], Gate]) -> None:
        self._sessions, self._make, self._making = sessions, make, Lock()
        self._whole: Gate | None = None

    def __call__(self, question: GateQuestion) -> GateAnswer:
        if question.risk is Risk.NONE:
            return self._sessions(question)
        with self._making:  # one gate for all devices: it keeps state
            self._whole = self._whole or self._make()
        return self._whole(question)


def _whole(project: Project, devices: Connections, sessions: Gate) -> Gate:
    # Slow to import, and most changes only affect descriptions.
    from netkit.gate.cnp import CnpGate, CnpWatch  # noqa: PLC0415 (see above)
    from netkit.gate.health import HealthGate  # noqa: PLC0415 (see above)
    from netkit.gate.pair import PairGate  # noqa: PLC0415 (see above)
    from netkit.project.observing import OnlyViewing, looked_at  # noqa: PLC0415 (see above)

    def views(name: str) -> Sequence[View]:
        return () if (device := project.fabric.device(name)) is None else looked_at(project.fabric, device).views

    limits = project.intent.thresholds
    reach = ReachGate(project.fabric, sessions, lambda name: OnlyRails(devices.connect(name)))
    vitals = HealthGate(project.fabric, reach, views, trend_db=limits.light_trend_db)
    watch = CnpWatch(project.fabric, lambda name: OnlyViewing(devices.viewer(name)), views)
    pairs = PairGate(project.fabric, vitals, views, lambda name: OnlyViewing(devices.viewer(name)))
    return CnpGate(project.fabric, pairs, watch, limits)
