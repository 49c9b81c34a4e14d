"""Facts of Linux switches of a running lab: as designed, with faults, and with a failing management plane."""

from collections.abc import Iterator

import pytest

from netkit.design import Fabric
from netkit.design.expectation import expectations
from netkit.design.fabric import Switch
from netkit.errors import AccessError
from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS
from netkit.platforms.frr.facts import CHIP
from tests import intents
from tests.facts.live_switch import ask, broken, look, misplaced
from tests.lab.running import RunningLab, intent, needs_lab, on_platform, running, until, write_fabric
from tests.platforms import driven

pytestmark = [needs_lab, pytest.mark.whole]
OF_OTHERS, VIRTUAL = {"lookups", "nics", "host", "probes", "lags", "mlag"}, {"modules", "lines"}
NOT_TOLD = {*CHIP, *OF_OTHERS, *VIRTUAL}
SWITCHES = ("leaf01", "spine01")
COUNTED = {
    *(f"{way}_{what}" for way in ("rx", "tx") for what in ("bytes", "packets", "errors", "drops")),
    "carrier_changes",
    "link_downs",
}
SHORT_S = 3.0


def values() -> dict[str, object]:
    return {**on_platform("frr", intent(), version="8.4.4"), "purpose": "lab"}


FABRIC: Fabric = intents.fabric(values())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values()), name="f") as booted:
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


def test_a_healthy_switch_reports_everything_linux_can(seen: tuple[Switch, Facts]) -> None:
    _, facts = seen
    assert {kind for kind in KINDS if isinstance(getattr(facts, kind), Absent)} == NOT_TOLD


def test_system_ports_and_neighbours_are_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    assert not isinstance(facts.system, Absent)
    assert not isinstance(facts.interfaces, Absent)
    assert not isinstance(facts.neighbors, Absent)
    assert (facts.system.hostname, facts.system.version) == (switch.name, switch.version)
    assert all((facts.system.boot, facts.system.kernel, facts.system.uptime_s))
    assert {
        name: (one.is_up, one.is_enabled, one.speed_gbps, one.mtu_bytes, one.description)
        for name, one in facts.interfaces.items()
    } == {port.name: (True, True, None, port.profile.mtu_bytes, port.description) for port in switch.ports}
    assert {name: [one.system for one in ends] for name, ends in facts.neighbors.items()} == {
        port.name: [port.peer] for port in switch.ports
    }


def test_sessions_and_routes_are_as_designed(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    wanted = expectations(FABRIC)[switch.name]
    assert not isinstance(facts.sessions, Absent)
    assert not isinstance(facts.routes, Absent)
    assert {name: (one.is_established, one.peer_asn, one.is_draining) for name, one in facts.sessions.items()} == {
        port.name: (True, port.peer_asn, False) for port in switch.fabric_ports
    }
    assert {prefix: len(facts.routes[prefix]) for prefix in wanted.widths} == wanted.widths


def test_counters_have_known_names_and_ports_in_use(seen: tuple[Switch, Facts]) -> None:
    switch, facts = seen
    ports = {port.name for port in switch.ports}
    assert misplaced(facts, ports) == set()
    assert not isinstance(facts.counters, Absent)
    assert {name: set(counts) for name, counts in facts.counters.items()} == dict.fromkeys(COUNTED, ports)


def test_faults_are_visible_where_they_are(lab: RunningLab) -> None:
    def shown() -> tuple[set[str], set[str], set[tuple[str, ...]]]:
        facts = look(lab, FABRIC, "leaf01")
        assert not isinstance(facts.interfaces, Absent)
        assert not isinstance(facts.sessions, Absent)
        assert not isinstance(facts.routes, Absent)
        narrow = {name for name, one in facts.interfaces.items() if one.mtu_bytes == 1500}
        lost = {name for name, one in facts.sessions.items() if not one.is_established}
        return narrow, lost, {facts.routes[prefix] for prefix in expectations(FABRIC)["leaf01"].widths}

    with broken(lab, ("wrong-mtu", "leaf01:swp1s1"), ("bgp-session-down", "leaf01:swp33s1")):
        until(lambda: shown() == ({"swp1s1"}, {"swp33s1"}, {("swp33s0",)}), "faults show on their ports and no others")


def test_a_drain_is_visible_until_it_ends(lab: RunningLab) -> None:
    with driven.driver(lab, "spine02", "frr") as opened:
        for change, is_draining in ((opened.drain, True), (opened.undrain, False)):
            change()
            sessions = look(lab, FABRIC, "spine02").sessions
            assert not isinstance(sessions, Absent)
            assert {one.is_draining for one in sessions.values()} == {is_draining}


def test_a_slow_switch_still_answers(lab: RunningLab) -> None:
    with broken(lab, ("slow", "spine02", "seconds=1")):
        facts = look(lab, FABRIC, "spine02")
    assert {kind for kind in KINDS if isinstance(getattr(facts, kind), Absent)} == NOT_TOLD


def test_disks_are_those_of_the_switch_and_not_of_the_machine(lab: RunningLab) -> None:
    def room() -> dict[str, int | None]:
        found = look(lab, FABRIC, "spine01").file_systems
        assert not isinstance(found, Absent)
        assert {one.is_read_only for one in found.values()} == {False}
        return {name: one.free_bytes for name, one in found.items()}

    assert all(room().values())
    assert set(room()) == {"/etc", "/tmp", "/var/log"}  # noqa: S108 - names only
    with broken(lab, ("disk-full", "spine01")):
        assert room()["/etc"] == 0
    assert all(room().values())
    assert [line.split()[0] for line in lab.shell("spine01", "df -t tmpfs / .; df").splitlines()[1:3]] == ["lab"] * 2
    assert "/dev/" not in lab.shell("spine01", "df; df -h /usr; df -P -B 1 /var/lib")


@pytest.mark.parametrize("fault", ["hangs", "garbage"])
def test_facts_that_a_failing_switch_does_not_report_are_absent(lab: RunningLab, fault: str) -> None:
    with broken(lab, (fault, "spine02")):
        facts = look(lab, FABRIC, "spine02", timeout_s=SHORT_S)
    assert {kind for kind in KINDS if isinstance(getattr(facts, kind), Absent)} == set(KINDS)


@pytest.mark.parametrize("fault", ["unreachable", "refuses-auth"])
def test_a_refused_login_is_an_access_error(lab: RunningLab, fault: str) -> None:
    with broken(lab, (fault, "spine02")), pytest.raises(AccessError, match="spine02"):
        look(lab, FABRIC, "spine02")


def test_a_lost_connection_is_an_access_error(lab: RunningLab) -> None:
    with driven.driver(lab, "spine02", "frr") as opened:
        opened.close()
        with pytest.raises(AccessError, match="the connection is lost"):
            ask(opened, FABRIC, "spine02")
