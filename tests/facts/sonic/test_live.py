"""Facts of SONiC switches of a running lab, of an old and a new release, also with a failing management plane."""

from collections.abc import Callable, Iterator

import pytest

from netkit.design import Fabric
from netkit.design.expectation import expectations
from netkit.design.fabric import Switch
from netkit.errors import AccessError
from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS
from netkit.facts.optic import Lane
from netkit.facts.qos import Ecn, Watchdog
from netkit.observe import assemble, subject
from netkit.platforms.sonic.driver import SonicDriver
from netkit.platforms.sonic.facts import COUNTERS, DISK, ROUTES, SESSIONS, views
from netkit.platforms.view import Reply
from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.platforms.sonic_driver.switch import opened

pytestmark = [needs_lab, pytest.mark.whole]
NOT_TOLD = {"adaptive_routing", "lookups", "probes", "nics", "host", "lags", "mlag"}
SWITCHES = ("leaf01", "spine01")
SHORT_S = 6
Break = Callable[..., None]


def values() -> dict[str, object]:
    found = on_platform("sonic", intent(), version="202411")
    found["switches"]["spine"]["version"] = "202511"
    return found


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return intents.fabric(values())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values()), name="f") as booted:
        yield booted


@pytest.fixture
def driver(lab: RunningLab) -> Iterator[SonicDriver]:
    found = opened(lab, "leaf01")
    yield found
    found.close()


@pytest.fixture
def breaking(lab: RunningLab) -> Iterator[Break]:
    """Inject faults; all are healed at the end."""

    def broken(*fault: str) -> None:
        done = lab.lab("break", *fault)
        assert done.returncode == 0, done.stderr

    yield broken
    assert lab.lab("heal", "--all").returncode == 0


def commands(fabric: Fabric, device: str) -> tuple[str, ...]:
    asked = views(subject(fabric, fabric.switch(device)))
    return tuple(dict.fromkeys(command for view in asked for command in view.commands))


def replies(driver: SonicDriver, fabric: Fabric, device: str) -> dict[str, Reply]:
    asked = commands(fabric, device)
    return dict(zip(asked, driver.ask(asked), strict=True))


def look(lab: RunningLab, fabric: Fabric, device: str) -> Facts:
    driver = opened(lab, device)
    try:
        found = replies(driver, fabric, device)
    finally:
        driver.close()
    assert [reply.failure for reply in found.values() if reply.failure] == []
    return assemble.facts(views(subject(fabric, fabric.switch(device))), found)


@pytest.fixture(scope="module", params=SWITCHES)
def seen(request: pytest.FixtureRequest, lab: RunningLab, fabric: Fabric) -> tuple[Switch, Facts]:
    def has_bfd() -> bool:
        sessions = look(lab, fabric, request.param).sessions
        return not isinstance(sessions, Absent) and all(session.is_bfd_up for session in sessions.values())

    until(has_bfd, "BFD is up on every session")
    return fabric.switch(request.param), look(lab, fabric, request.param)


def test_a_healthy_switch_reports_everything_sonic_supports(seen: tuple[Switch, Facts]) -> None:
    _, facts = seen
    assert {kind for kind in KINDS if not isinstance(getattr(facts, kind), Absent)} == set(KINDS) - NOT_TOLD
    assert facts.adaptive_routing == Absent("community SONiC has no adaptive routing")


def test_the_system_is_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.system, Absent)
    assert (facts.system.hostname, facts.system.version, facts.system.model) == (
        switch.name,
        switch.version,
        switch.model.name,
    )
    assert facts.system.serial
    assert facts.system.boot
    assert facts.system.uptime_s


def test_ports_are_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.interfaces, Absent)
    assert {
        name: (one.is_up, one.is_enabled, one.speed_gbps, one.mtu_bytes, one.fec, one.description)
        for name, one in facts.interfaces.items()
    } == {
        port.name: (True, True, port.speed_gbps, port.profile.mtu_bytes, port.profile.fec, port.description)
        for port in switch.ports
    }


def test_neighbours_are_those_of_the_cables(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.neighbors, Absent)
    assert {name: [one.system for one in ends] for name, ends in facts.neighbors.items()} == {
        port.name: [port.peer] for port in switch.ports
    }


def test_modules_have_the_lanes_of_their_port(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.modules, Absent)
    assert set(facts.modules) == {port.name for port in switch.ports}
    for module in facts.modules.values():
        assert (module.kind, set(module.lanes), len(module.limits)) == ("optic", {1, 2, 3, 4}, 5)
        assert all(None not in _values(lane) and not lane.has_rx_loss for lane in module.lanes.values())
        assert module.serial


def _values(lane: Lane) -> tuple[object, ...]:
    return lane.rx_dbm, lane.tx_dbm, lane.bias_ma, lane.has_rx_loss, lane.has_tx_fault


def test_bit_errors_are_few(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.lines, Absent)
    assert {name: line.fec for name, line in facts.lines.items()} == {port.name: "rs" for port in switch.ports}
    assert all(line.ber is not None and 0 < line.ber < 1e-7 for line in facts.lines.values())


def test_sessions_and_routes_are_as_designed(seen: tuple[Switch, Facts], fabric: Fabric) -> None:
    switch, facts = seen
    wanted = expectations(fabric)[switch.name]
    assert not isinstance(facts.sessions, Absent)
    assert {name: (one.is_established, one.peer_asn, one.is_draining) for name, one in facts.sessions.items()} == {
        port.name: (True, port.peer_asn, False) for port in switch.fabric_ports
    }
    assert set(wanted.sessions) == set(facts.sessions)
    assert not isinstance(facts.routes, Absent)
    assert {prefix: len(facts.routes[prefix]) for prefix in wanted.widths} == wanted.widths


def test_qos_is_as_designed(seen: tuple[Switch, Facts], fabric: Fabric) -> None:
    switch, facts = seen
    roce = fabric.lossless.roce.priority
    assert not isinstance(facts.qos, Absent)
    assert set(facts.qos) == {port.name for port in switch.ports}
    for port in switch.ports:
        qos, ecn = facts.qos[port.name], port.profile.ecn
        assert (qos.trust, qos.pfc_rx, qos.pfc_tx) == ("dscp", frozenset({roce}), frozenset({roce}))
        assert qos.dscp_to_priority is not None
        assert qos.dscp_to_priority[fabric.lossless.data_dscp] == roce
        assert qos.ecn == {roce: Ecn(True, ecn.min_bytes, ecn.max_bytes, ecn.probability_percent)}
        assert port.profile.headroom is not None
        assert qos.headroom_bytes == {roce: port.profile.headroom.xoff_bytes}
        assert qos.weights == {one.priority: one.weight for one in fabric.lossless.classes if not one.is_strict}
        assert qos.strict is not None
        assert fabric.lossless.cnp.priority in qos.strict


def test_every_lossless_queue_has_a_watchdog(seen: tuple[Switch, Facts], fabric: Fabric) -> None:
    switch, facts = seen
    roce = fabric.lossless.roce.priority
    assert not isinstance(facts.watchdogs, Absent)
    assert set(facts.watchdogs) == {f"{port.name}/{roce}" for port in switch.ports}
    assert set(facts.watchdogs.values()) == {Watchdog(is_on=True, detection_ms=300, restoration_ms=600, action="drop")}


def test_counters_are_those_of_the_release(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.counters, Absent)
    marks = {"queue_ecn_marked", "ecn_marked"}
    assert marks & set(facts.counters) == (marks if switch.version == "202511" else set())
    ports = {port.name for port in switch.ports}
    for name in ("rx_bytes", "carrier_changes", "fec_corrected"):
        assert set(facts.counters[name]) == ports
    for name in ("rx_pause", "tx_pause", "rx_pause_us", "queue_drops", "buffer_drops"):
        assert set(facts.counters[name]) == {f"{port}/{number}" for port in ports for number in range(8)}


FAULTS = (
    ("hot-optic", "leaf01:Ethernet0", "celsius=76"),
    ("dirty-lane", "leaf01:Ethernet256", "lane=3"),
    ("watchdog-trip", "leaf01:Ethernet4", "pauses_per_s=2500"),
    ("wrong-mtu", "leaf01:Ethernet260", "bytes=1500"),
)


def test_faults_are_visible_where_they_are(lab: RunningLab, breaking: Break, fabric: Fabric) -> None:
    for fault in FAULTS:
        breaking(*fault)
    until(lambda: shown(look(lab, fabric, "leaf01")) == WANTED, "all faults show on their ports and nowhere else")


def test_routes_return_with_the_cables(lab: RunningLab, breaking: Break, fabric: Fabric) -> None:
    breaking("wrong-cable", "leaf01:Ethernet256")
    until(lambda: heard(lab, fabric) == ["spine02", "spine01"], "the neighbours have changed places")
    assert lab.lab("heal", "--all").returncode == 0
    widths = expectations(fabric)["leaf01"].widths

    def is_routed() -> bool:
        routes = look(lab, fabric, "leaf01").routes
        return not isinstance(routes, Absent) and {name: len(routes.get(name, ())) for name in widths} == widths

    until(is_routed, "every leaf is reached over all ports")


def heard(lab: RunningLab, fabric: Fabric) -> list[str]:
    neighbors = look(lab, fabric, "leaf01").neighbors
    assert not isinstance(neighbors, Absent)
    return [one.system for port in ("Ethernet256", "Ethernet260") for one in neighbors.get(port, ())]


WANTED = {
    "hot": {"Ethernet0", "Ethernet4"},
    "dark": {("Ethernet256", 3)},
    "erring": {"Ethernet256"},
    "stormed": {"Ethernet4/3"},
    "narrow": {"Ethernet260"},
}


def shown(facts: Facts) -> dict[str, set[object]]:
    """What is wrong with a switch, by simple thresholds."""
    assert not isinstance(facts.modules, Absent)
    assert not isinstance(facts.lines, Absent)
    assert not isinstance(facts.watchdogs, Absent)
    assert not isinstance(facts.interfaces, Absent)
    lanes = [(name, number, lane) for name, one in facts.modules.items() for number, lane in one.lanes.items()]
    return {
        "hot": {name for name, one in facts.modules.items() if (one.temperature_c or 0) > 70},
        "dark": {(name, number) for name, number, lane in lanes if (lane.rx_dbm or 0) < -2},
        "erring": {name for name, line in facts.lines.items() if (line.ber or 0) > 1e-6},
        "stormed": {at for at, watchdog in facts.watchdogs.items() if watchdog.is_stormed},
        "narrow": {name for name, one in facts.interfaces.items() if one.mtu_bytes == 1500},
    }


def test_a_drain_is_visible_until_it_ends(lab: RunningLab, driver: SonicDriver, fabric: Fabric) -> None:
    for change, is_draining in ((driver.drain, True), (driver.undrain, False)):
        change()
        sessions = look(lab, fabric, "leaf01").sessions
        assert not isinstance(sessions, Absent)
        assert {session.is_draining for session in sessions.values()} == {is_draining}


def test_hanging_commands_do_not_affect_the_others(lab: RunningLab, breaking: Break, fabric: Fabric) -> None:
    breaking("hangs", "leaf01")
    hasty = opened(lab, "leaf01", timeout_s=SHORT_S)
    found = replies(hasty, fabric, "leaf01")
    hasty.close()
    answered = {command for command, reply in found.items() if not reply.failure}
    assert answered == {ROUTES, SESSIONS, *DISK.commands}
    assert found[COUNTERS].failure == "does not end"


def test_garbage_is_absent_and_not_a_netkit_error(breaking: Break, driver: SonicDriver, fabric: Fabric) -> None:
    breaking("garbage", "leaf01")
    found = replies(driver, fabric, "leaf01")
    facts = assemble.facts(views(subject(fabric, fabric.switch("leaf01"))), found)
    for kind in ("interfaces", "modules", "qos", "counters", "neighbors"):
        assert isinstance(getattr(facts, kind), Absent), kind


def test_a_slow_switch_still_answers(breaking: Break, driver: SonicDriver, fabric: Fabric) -> None:
    breaking("slow", "leaf01", "seconds=0.3")
    assert [reply.failure for reply in replies(driver, fabric, "leaf01").values()] == [""] * 9


def test_a_lost_switch_is_an_access_error(driver: SonicDriver, fabric: Fabric) -> None:
    driver.close()
    with pytest.raises(AccessError):
        replies(driver, fabric, "leaf01")
