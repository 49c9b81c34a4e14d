"""Facts of EOS switches of a running lab, of two releases: as designed, and with faults."""

import threading
from collections.abc import Iterator

import pytest

from netkit.design import Fabric
from netkit.design.expectation import expectations
from netkit.design.fabric import Switch
from netkit.errors import AccessError
from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS
from netkit.facts.qos import Ecn, Watchdog
from netkit.platforms.eos.facts.interface import IN_WORDS
from tests import intents
from tests.facts.live_switch import ask, broken, look, misplaced, views
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.platforms import driven

pytestmark = [needs_lab, pytest.mark.whole]
NOT_TOLD = {"buffers", "lookups", "probes", "nics", "host", "lags", "mlag"}
SWITCHES = ("leaf01", "spine01")


def values() -> dict[str, object]:
    found = on_platform("eos", intent(), model="DCS-7060X6-64PE", version="4.35.1F")
    found["switches"]["spine"]["version"] = "4.32.3F"
    return found


FABRIC: Fabric = intents.fabric(values())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values()), name="e") as booted:
        yield booted


@pytest.fixture(scope="module", params=SWITCHES)
def seen(request: pytest.FixtureRequest, lab: RunningLab) -> tuple[Switch, Facts]:
    def has_all() -> bool:
        facts = look(lab, FABRIC, request.param)
        assert not isinstance(facts.sessions, Absent)
        assert not isinstance(facts.neighbors, Absent)
        return all(one.is_bfd_up for one in facts.sessions.values()) and len(facts.neighbors) == len(switch.ports)

    switch = FABRIC.switch(request.param)
    until(has_all, "BFD is up on every session, and LLDP knows every neighbour")
    return switch, look(lab, FABRIC, request.param)


def test_a_healthy_switch_reports_all_but_queue_lengths(seen: tuple[Switch, Facts]) -> None:
    _, facts = seen
    assert {kind for kind in KINDS if isinstance(getattr(facts, kind), Absent)} == NOT_TOLD


def test_the_system_is_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    found = facts.system
    assert not isinstance(found, Absent)
    assert (found.hostname, found.version, found.model) == (switch.name, switch.version, switch.model.name)
    assert found.serial
    assert found.boot == ""
    assert found.uptime_s


def test_flash_and_root_are_writable_with_free_space(seen: tuple[Switch, Facts]) -> None:
    _, facts = seen
    assert not isinstance(facts.file_systems, Absent)
    assert {name: one.is_read_only for name, one in facts.file_systems.items()} == {"file:": False, "flash:": False}
    assert all(one.free_bytes and one.size_bytes and one.kind for one in facts.file_systems.values())


def test_ports_and_neighbours_are_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.interfaces, Absent)
    assert not isinstance(facts.neighbors, Absent)
    assert {
        name: (one.is_up, one.is_enabled, one.speed_gbps, one.mtu_bytes, one.fec, one.description)
        for name, one in facts.interfaces.items()
    } == {
        port.name: (True, True, port.speed_gbps, port.profile.mtu_bytes, port.profile.fec, port.description)
        for port in switch.ports
    }
    assert {name: [one.system for one in ends] for name, ends in facts.neighbors.items()} == {
        port.name: [port.peer] for port in switch.ports
    }


def test_modules_have_the_lanes_of_their_port_and_few_bit_errors(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.modules, Absent)
    assert not isinstance(facts.lines, Absent)
    names = {port.name for port in switch.ports}
    assert set(facts.modules) == set(facts.lines) == names
    for module in facts.modules.values():
        assert (module.kind, set(module.lanes), len(module.limits)) == ("optic", {1, 2, 3, 4}, 5)
        assert all(None not in (one.rx_dbm, one.tx_dbm, one.bias_ma) for one in module.lanes.values())
        assert all((module.serial, module.part, module.vendor, module.firmware, module.temperature_c))
    assert all(line.fec == "rs" and line.ber and line.ber < 1e-7 for line in facts.lines.values())


def test_sessions_and_routes_are_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    wanted = expectations(FABRIC)[switch.name]
    assert not isinstance(facts.sessions, Absent)
    assert {name: (one.is_established, one.peer_asn, one.is_draining) for name, one in facts.sessions.items()} == {
        port.name: (True, port.peer_asn, False) for port in switch.fabric_ports
    }
    assert not isinstance(facts.routes, Absent)
    assert {prefix: len(facts.routes[prefix]) for prefix in wanted.widths} == wanted.widths


def test_qos_is_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    lossless = FABRIC.lossless
    roce = lossless.roce.priority
    assert not isinstance(facts.qos, Absent)
    assert set(facts.qos) == {port.name for port in switch.ports}
    for port in switch.ports:
        qos, ecn = facts.qos[port.name], port.profile.ecn
        assert (qos.trust, qos.pfc_rx, qos.pfc_tx) == ("dscp", frozenset({roce}), frozenset({roce}))
        assert qos.dscp_to_priority is not None
        assert qos.dscp_to_priority[lossless.data_dscp] == roce
        assert {qos.dscp_to_priority[dscp] for dscp in lossless.cnp.dscps} == {lossless.cnp.priority}
        assert qos.ecn == {roce: Ecn(True, ecn.min_bytes, ecn.max_bytes, ecn.probability_percent)}
        assert qos.headroom_bytes is not None
        assert qos.headroom_bytes[roce] > 0
        assert qos.weights == {one.priority: one.weight for one in lossless.classes if not one.is_strict}
        assert qos.strict is not None
        assert lossless.cnp.priority in qos.strict
        assert qos.is_global_pause is False


def test_every_lossless_priority_has_a_watchdog(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.watchdogs, Absent)
    assert set(facts.watchdogs) == {f"{port.name}/{FABRIC.lossless.roce.priority}" for port in switch.ports}
    assert set(facts.watchdogs.values()) == {Watchdog(is_on=True, detection_ms=300, restoration_ms=600, action="drop")}


def test_counters_have_known_names_and_ports_in_use(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    ports = {port.name for port in switch.ports}
    assert misplaced(facts, ports) == set()
    assert not isinstance(facts.counters, Absent)
    for name in ("rx_bytes", "carrier_changes", "fec_corrected", "fec_symbol_errors", "port_buffer_drops"):
        assert set(facts.counters[name]) == ports
    for name in ("rx_pause", "tx_pause", "queue_drops", "queue_tx_bytes"):
        assert set(facts.counters[name]) == {f"{port}/{number}" for port in ports for number in range(8)}
    lossless = {f"{port}/{FABRIC.lossless.roce.priority}" for port in ports}
    for name in ("watchdog_detected", "watchdog_restored", "queue_ecn_marked"):
        assert facts.counters[name] == dict.fromkeys(lossless, 0)


FAULTS = (
    ("hot-optic", "leaf01:Ethernet1/1", "celsius=76"),
    ("dirty-lane", "leaf01:Ethernet33/1", "lane=3"),
    ("mixed-optic-firmware", "leaf01:Ethernet33/5", "firmware=46.110.8"),
    ("watchdog-trip", "leaf01:Ethernet1/5"),
    ("wrong-mtu", "leaf01:Ethernet33/5", "bytes=1500"),
    ("adaptive-routing-half-on", "leaf01:Ethernet33/1"),
)
WANTED = {
    "hot": {"Ethernet1/1", "Ethernet1/5"},
    "dark": {("Ethernet33/1", 3)},
    "erring": {"Ethernet33/1"},
    "odd": {"Ethernet33/1", "Ethernet33/5"},
    "stormed": {"Ethernet1/5/3"},
    "narrow": {"Ethernet33/5"},
    "adaptive": {"Ethernet33/1"},
}


def test_faults_are_visible_where_they_are(lab: RunningLab) -> None:
    with broken(lab, *FAULTS):
        until(lambda: shown(look(lab, FABRIC, "leaf01")) == WANTED, "faults show on their ports and nowhere else")


def shown(facts: Facts) -> dict[str, set[object]]:
    """What is wrong with a switch, by simple thresholds."""
    assert not isinstance(facts.modules, Absent)
    assert not isinstance(facts.lines, Absent)
    assert not isinstance(facts.watchdogs, Absent)
    assert not isinstance(facts.interfaces, Absent)
    assert not isinstance(facts.adaptive_routing, Absent)
    lanes = [(name, number, lane) for name, one in facts.modules.items() for number, lane in one.lanes.items()]
    return {
        "hot": {name for name, one in facts.modules.items() if (one.temperature_c or 0) > 70},
        "dark": {(name, number) for name, number, lane in lanes if (lane.rx_dbm or 0) < -2},
        "erring": {name for name, line in facts.lines.items() if (line.ber or 0) > 1e-6},
        "odd": {name for name, one in facts.modules.items() if one.firmware == "46.110.8"},
        "stormed": {at for at, watchdog in facts.watchdogs.items() if watchdog.is_stormed},
        "narrow": {name for name, one in facts.interfaces.items() if one.mtu_bytes == 1500},
        "adaptive": {name for name, is_on in facts.adaptive_routing.items() if is_on},
    }


def test_a_drain_is_visible_until_it_ends(lab: RunningLab) -> None:
    with driven.driver(lab, "leaf01", "eos") as opened:
        for change, is_draining in ((opened.drain, True), (opened.undrain, False)):
            change()
            sessions = look(lab, FABRIC, "leaf01").sessions
            assert not isinstance(sessions, Absent)
            assert {one.is_draining for one in sessions.values()} == {is_draining}


def test_a_refused_command_loses_only_its_own_facts(lab: RunningLab) -> None:
    with driven.driver(lab, "leaf01", "eos") as opened:
        first, refused, *_, last = opened.ask(("show version", "show nonsense", *IN_WORDS, "show hostname"))
    assert "4.35.1F" in first.text
    assert (refused.text, refused.failure) == ("", "Invalid input (at token 1: 'nonsense')")
    assert "leaf01" in last.text


def test_a_slow_switch_still_answers(lab: RunningLab) -> None:
    with broken(lab, ("slow", "leaf01", "seconds=0.5")):
        facts = look(lab, FABRIC, "leaf01")
    assert {kind for kind in KINDS if isinstance(getattr(facts, kind), Absent)} == NOT_TOLD


@pytest.mark.parametrize("fault", ["unreachable", "hangs", "garbage", "refuses-auth"])
def test_a_wrong_password_is_an_access_error(lab: RunningLab, fault: str) -> None:
    with driven.driver(lab, "leaf01", "eos") as opened:
        with broken(lab, (fault, "leaf01")), pytest.raises(AccessError, match="leaf01"):
            ask(opened, FABRIC, "leaf01")
        assert not any(reply.failure for reply in ask(opened, FABRIC, "leaf01").values())


def test_closing_ends_a_request_of_another_thread(lab: RunningLab) -> None:
    failures: list[Exception] = []

    def wait() -> None:
        try:
            ask(opened, FABRIC, "leaf01")
        except AccessError as error:
            failures.append(error)

    with driven.driver(lab, "leaf01", "eos") as opened, broken(lab, ("slow", "leaf01", "seconds=60")):
        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: opened.device.connection.transport.sock is not None, "the question is on its way")
        opened.close()
        waiting.join(50)
    assert len(failures) == 1


def test_a_closed_driver_gets_no_answer(lab: RunningLab) -> None:
    with driven.driver(lab, "leaf01", "eos") as opened:
        opened.close()
        with pytest.raises(AccessError, match="the connection was closed"):
            ask(opened, FABRIC, "leaf01")
        opened.open()
        assert set(ask(opened, FABRIC, "leaf01")) == {
            command for view in views(FABRIC, "leaf01") for command in view.commands
        }
