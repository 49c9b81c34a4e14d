"""Facts of NVUE switches of a running lab: as designed, over both transports, and with a failing management plane."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from netkit.design import Fabric
from netkit.design.expectation import expectations
from netkit.design.fabric import Switch
from netkit.errors import AccessError
from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS
from netkit.facts.optic import Limits
from netkit.facts.qos import Ecn, Watchdog
from netkit.observe import assemble, subject
from netkit.platforms.nvue.driver import NvueDriver
from netkit.platforms.nvue.facts import DISK, KERNEL, interface, routing, views
from netkit.platforms.view import Reply
from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric
from tests.platforms.nvue.switch import TRANSPORTS, opened

VALUES = intent()
VALUES["switches"]["spine"]["version"] = "5.14.0"
FABRIC = intents.fabric(VALUES)
pytestmark = needs_lab
NOT_TOLD = {"lookups", "probes", "nics", "host", "lags", "mlag"}
LINUX = {KERNEL, interface.OUTAGES, routing.NEXTHOPS, *DISK.commands}
"""What REST cannot report."""
SHORT_S = 9.0


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES), name="v") as booted:
        until(lambda: all(_has_bfd(look(booted, name)) for name in ("leaf01", "spine01")), "BFD is up")
        yield booted


def _has_bfd(facts: Facts) -> bool:
    return not isinstance(facts.sessions, Absent) and all(one.is_bfd_up for one in facts.sessions.values())


def commands(name: str) -> tuple[str, ...]:
    asked = views(subject(FABRIC, FABRIC.switch(name)))
    return tuple(dict.fromkeys(command for view in asked for command in view.commands))


def parsed(name: str, replies: dict[str, Reply]) -> Facts:
    return assemble.facts(views(subject(FABRIC, FABRIC.switch(name))), replies)


@contextmanager
def driven(lab: RunningLab, transport: str = "ssh", name: str = "leaf01") -> Iterator[NvueDriver]:
    driver = opened(lab, name, transport, timeout_s=SHORT_S)
    try:
        yield driver
    finally:
        driver.close()


def replies(driver: NvueDriver, name: str = "leaf01") -> dict[str, Reply]:
    asked = commands(name)
    return dict(zip(asked, driver.ask(asked), strict=True))


def look(lab: RunningLab, name: str, transport: str = "ssh") -> Facts:
    driver = opened(lab, name, transport)
    try:
        found = replies(driver, name)
    finally:
        driver.close()
    assert {command for command, reply in found.items() if reply.failure} == (LINUX if transport != "ssh" else set())
    assert all(reply.at_s > 0 for reply in found.values() if not reply.failure)
    return parsed(name, found)


@pytest.fixture(scope="module", params=["leaf01", "spine01"])
def seen(request: pytest.FixtureRequest, lab: RunningLab) -> tuple[Switch, Facts]:
    return FABRIC.switch(request.param), look(lab, request.param)


@pytest.fixture
def fabric() -> Fabric:
    return FABRIC


def test_a_healthy_switch_reports_every_kind(seen: tuple[Switch, Facts]) -> None:
    _, facts = seen
    assert {kind for kind in KINDS if not isinstance(getattr(facts, kind), Absent)} == set(KINDS) - NOT_TOLD


def test_the_system_is_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.system, Absent)
    known = (facts.system.hostname, facts.system.version, facts.system.model)
    assert known == (switch.name, switch.version, switch.model.name)
    assert all((facts.system.serial, facts.system.boot, facts.system.kernel, facts.system.uptime_s))


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
    assert facts.adaptive_routing == dict.fromkeys(facts.interfaces, False)


def test_neighbours_are_those_of_the_cables(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.neighbors, Absent)
    ends = {name: [one.system for one in found] for name, found in facts.neighbors.items()}
    assert ends == {port.name: [port.peer] for port in switch.ports}


def test_modules_have_the_lanes_of_their_port(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.modules, Absent)
    assert set(facts.modules) == {port.name for port in switch.ports}
    for module in facts.modules.values():
        assert (module.is_present, module.kind, set(module.lanes), len(module.limits)) == (
            True,
            "optic",
            {1, 2, 3, 4},
            5,
        )
        assert all(None not in (lane.rx_dbm, lane.tx_dbm, lane.bias_ma) for lane in module.lanes.values())
        assert Limits() not in module.limits.values()
        assert all((module.serial, module.part, module.firmware, module.temperature_c, module.voltage_v))


def test_bit_errors_are_few(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.lines, Absent)
    assert set(facts.lines) == {port.name for port in switch.ports}
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
        assert (len(qos.dscp_to_priority), qos.dscp_to_priority[fabric.lossless.data_dscp]) == (64, roce)
        assert qos.priority_to_class is not None
        assert qos.ecn is not None
        marking = Ecn(True, ecn.min_bytes, ecn.max_bytes, ecn.probability_percent)
        assert qos.ecn[qos.priority_to_class[roce]] == marking
        assert qos.weights is not None
        assert sum(qos.weights.values()) == 100
        assert qos.strict == frozenset({qos.priority_to_class[fabric.lossless.cnp.priority]})
        assert qos.cable_m


def test_every_lossless_queue_has_a_watchdog(seen: tuple[Switch, Facts], fabric: Fabric) -> None:
    switch, facts = seen
    places = {f"{port.name}/{fabric.lossless.roce.priority}" for port in switch.ports}
    calm = Watchdog(is_on=True, detection_ms=300, restoration_ms=100, action="drop")
    assert facts.watchdogs == dict.fromkeys(places, calm)
    assert not isinstance(facts.buffers, Absent)
    assert set(facts.buffers) == places


def test_every_port_priority_and_queue_has_counters(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.counters, Absent)
    ports = {port.name for port in switch.ports}
    for name in ("rx_bytes", "tx_drops", "carrier_changes", "ecn_marked", "received_bits", "fec_corrected"):
        assert set(facts.counters[name]) == ports, name
    assert ("link_downs" in facts.counters) == (switch.role == "leaf")  # reported since 5.15
    for name in ("rx_pause", "tx_pause_us", "buffer_drops", "queue_drops", "queue_tx_bytes", "queue_ecn_marked"):
        assert set(facts.counters[name]) == {f"{port}/{number}" for port in ports for number in range(8)}, name


def test_rest_reports_the_same(lab: RunningLab) -> None:
    over_ssh, over_rest = (look(lab, "leaf02", transport) for transport in TRANSPORTS)
    for kind in ("qos", "routes", "watchdogs", "adaptive_routing"):
        assert getattr(over_ssh, kind) == getattr(over_rest, kind), kind
    assert not isinstance(over_ssh.interfaces, Absent)
    assert all(one.outage_s is not None for one in over_ssh.interfaces.values())
    assert over_rest.interfaces == {
        name: replace(one, outage_s=None, outage_ended_ago_s=None) for name, one in over_ssh.interfaces.items()
    }
    for kind in ("neighbors", "modules", "lines", "sessions", "counters", "buffers"):
        assert set(getattr(over_ssh, kind)) == set(getattr(over_rest, kind)), kind
    assert not isinstance(over_ssh.system, Absent)
    assert not isinstance(over_rest.system, Absent)
    assert over_rest.system == replace(over_ssh.system, boot="", kernel="", uptime_s=over_rest.system.uptime_s)


@pytest.fixture
def trouble(lab: RunningLab) -> Iterator[RunningLab]:
    yield lab
    assert lab.lab("heal", "--all").returncode == 0


def make(lab: RunningLab, *fault: str) -> None:
    assert lab.lab("break", *fault).returncode == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_hanging_command_does_not_affect_the_others(trouble: RunningLab, transport: str) -> None:
    with driven(trouble, transport) as driver:
        make(trouble, "hangs", "leaf01")
        found = replies(driver)
    answered = {command for command, reply in found.items() if not reply.failure}
    assert answered == ({*LINUX, routing.ROUTES} if transport == "ssh" else set())
    facts = parsed("leaf01", found)
    assert isinstance(facts.routes, Absent) == (transport != "ssh")
    assert isinstance(facts.interfaces, Absent)


def test_output_before_a_hang_is_kept(trouble: RunningLab) -> None:
    with driven(trouble) as driver:
        make(trouble, "hangs", "leaf01", "after=3")
        facts = parsed("leaf01", replies(driver))
    assert not isinstance(facts.system, Absent)
    assert not isinstance(facts.interfaces, Absent)
    assert facts.neighbors == Absent("nv show interface lldp -o json: does not end")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_garbage_is_absent_and_not_a_netkit_error(trouble: RunningLab, transport: str) -> None:
    with driven(trouble, transport) as driver:
        make(trouble, "garbage", "leaf01")
        facts = parsed("leaf01", replies(driver))
    assert {kind for kind in KINDS if not isinstance(getattr(facts, kind), Absent)} == set()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_slow_switch_still_answers(trouble: RunningLab, transport: str) -> None:
    few = commands("leaf01")[:4]
    with driven(trouble, transport) as driver:
        make(trouble, "slow", "leaf01", "seconds=0.3")
        found = dict(zip(few, driver.ask(few), strict=True))
    assert {command for command, reply in found.items() if reply.failure} == set(few) & (
        LINUX if transport != "ssh" else set()
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_lost_switch_is_an_access_error(lab: RunningLab, transport: str) -> None:
    driver = opened(lab, "leaf01", transport)
    driver.close()
    with pytest.raises(AccessError):
        replies(driver)
