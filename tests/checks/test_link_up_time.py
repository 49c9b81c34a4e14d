"""How long links took to come up: NICs report it; between two switches it is the last outage."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from netkit.facts import Absent, Facts, Observation
from netkit.facts.device import Interface, System
from netkit.facts.host import BgpSession
from netkit.intent.model import Thresholds
from netkit.judge import CheckContext
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric, observation, scene

CHECK = "links.link-up-time"
BUILT = fabric()
NEAR, FAR = "leaf01", "spine01"
PORT, PEER_PORT = next((port.name, port.peer_port) for port in BUILT.switch(NEAR).ports if port.peer == FAR)
UP = Interface(is_up=True, outage_s=0.0)
SLOW = replace(UP, outage_s=45.0, outage_ended_ago_s=600.0)
DAYS_S = 864_000.0
NONE: Mapping[str, Interface] = {}
NO_SESSIONS: Mapping[str, BgpSession] = {}
TEXT = f"was without a link for 45 s, until 10 min before this reading; {FAR}:{PEER_PORT} is at the other end"


def switch(
    name: str,
    ports: Mapping[str, Interface] = NONE,
    uptime_s: float | None = DAYS_S,
    sessions: Mapping[str, BgpSession] = NO_SESSIONS,
) -> Observation:
    """A switch whose ports had no outage except for some."""
    found = {port.name: UP for port in BUILT.switch(name).ports} | dict(ports)
    return observation(name, Facts(system=System(uptime_s=uptime_s), interfaces=found, sessions=sessions))


def cable(
    near: Interface, far: Interface, session: BgpSession | None = None, /, **changes: float | None
) -> CheckContext:
    """Facts of all switches, with these outages at both ends of one cable."""
    uptimes: dict[str, float | None] = {NEAR: DAYS_S, FAR: DAYS_S, **changes}
    ends = {NEAR: {PORT: near}, FAR: {PEER_PORT: far}}
    sessions = {NEAR: {PORT: session}, FAR: {PEER_PORT: session}} if session else {}
    seen = [
        switch(one.name, ends.get(one.name, NONE), uptimes.get(one.name, DAYS_S), sessions.get(one.name, NO_SESSIONS))
        for one in BUILT.switches
    ]
    return scene(BUILT, *seen)


@pytest.mark.parametrize(("near", "far"), [(SLOW, SLOW), (SLOW, UP), (UP, SLOW), (Interface(is_up=True), SLOW),
                                           (SLOW, replace(SLOW, outage_s=1.0))])  # fmt: skip
def test_one_slow_cable_is_one_warning(near: Interface, far: Interface) -> None:
    """At its lower end, whichever end saw it: a port that was disabled gets its link as soon as it is enabled."""
    assert said(cable(near, far), CHECK) == [("warn", NEAR, PORT, TEXT)]


def test_of_two_ends_that_lost_the_link_together_the_first_one_up_counts() -> None:
    """zebra updates the timestamp of an up link at any other change of it, usually at one end."""
    stamped = replace(SLOW, outage_s=85.0, outage_ended_ago_s=560.0)
    short = replace(SLOW, outage_s=2.0, outage_ended_ago_s=640.0)
    instant = replace(SLOW, outage_s=0.0, outage_ended_ago_s=645.0)
    for near, far in ((stamped, SLOW), (SLOW, stamped)):
        assert said(cable(near, far), CHECK) == [("warn", NEAR, PORT, TEXT)]
    for near, far in ((stamped, short), (short, stamped), (stamped, instant), (instant, stamped)):
        assert said(cable(near, far), CHECK) == []


def test_a_disabled_end_saw_only_a_short_outage() -> None:
    """zebra records another down of a port that is enabled, a hundredth of a second before its link comes up."""
    moment = replace(SLOW, outage_s=0.01)
    short = replace(SLOW, outage_s=12.0)
    for near, far in ((moment, short), (short, moment)):
        found = replace(cable(near, far), limits=Thresholds(link_up_warn_s=6))
        ((_, _, _, text),) = said(found, CHECK)
        assert text.startswith("was without a link for 12 s")


@pytest.mark.parametrize(
    "last",
    [
        UP,
        replace(SLOW, outage_s=30.0),
        replace(SLOW, outage_s=301.0),
        replace(SLOW, outage_ended_ago_s=86_401.0),
    ],
    ids=["never", "short", "manual work", "long ago"],
)
def test_outages_not_caused_by_a_slow_module_are_not_judged(last: Interface) -> None:
    found = cable(last, last)
    assert said(found, CHECK) == []
    assert skipped(found, CHECK) == skipped(cable(UP, UP), CHECK)


@pytest.mark.parametrize(
    ("session", "verdict"),
    [
        (BgpSession(True, uptime_s=605.0), "warn"),  # asked for later
        (BgpSession(True, uptime_s=643.0), ""),
        (BgpSession(True, uptime_s=DAYS_S), ""),
        (BgpSession(True, uptime_s=30.0), "warn"),
        (BgpSession(True), "warn"),
        (BgpSession(False, uptime_s=643.0), "warn"),
    ],
    ids=["right after", "long before", "no outage", "much later", "not reported", "down"],
)
def test_a_session_over_the_port_proves_its_link_was_up(session: BgpSession, verdict: str) -> None:
    """zebra updates the timestamp of an up link at any other change of it."""
    assert [found[0] for found in said(cable(SLOW, SLOW, session), CHECK)] == ([verdict] if verdict else [])


def test_an_outage_that_a_session_ended_is_reported_with_its_length() -> None:
    longer = replace(UP, outage_s=250.0, outage_ended_ago_s=400.0)
    found = said(cable(longer, UP, BgpSession(True, uptime_s=605.0)), CHECK)
    assert found == [("warn", NEAR, PORT, TEXT)]


@pytest.mark.parametrize("name", [NEAR, FAR])
def test_a_switch_reboot_in_between_explains_it(name: str) -> None:
    assert said(cable(SLOW, SLOW, **{name: 640.0}), CHECK) == []
    assert said(cable(SLOW, SLOW, **{name: 650.0}), CHECK) == [("warn", NEAR, PORT, TEXT)]
    gone = "was without a link for 45 s"
    unknown = (NEAR, PORT, f"{gone}; whether {name} started meanwhile is not known")
    assert unknown in skipped(cable(SLOW, SLOW, **{name: None}), CHECK)


@pytest.mark.parametrize("name", [NEAR, FAR])
def test_a_switch_that_lost_all_its_links_explains_them(name: str) -> None:
    """Its port daemon restarted; it reports that itself, or only its neighbors do, which were read later."""
    ports = {port.name: SLOW for port in BUILT.switch(name).ports if port.role != "host"}
    assert len(ports) > 1
    others = [switch(one.name) for one in BUILT.switches if one.name != name]
    assert said(scene(BUILT, switch(name, ports), *others), CHECK) == []
    for odd in (UP, replace(SLOW, outage_ended_ago_s=900.0), replace(SLOW, outage_s=1.0)):
        but_one = {**ports, list(ports)[-1]: odd}
        assert said(scene(BUILT, switch(name, but_one), *others), CHECK) != []
    later = replace(SLOW, outage_ended_ago_s=610.0)
    seen_by = [
        switch(one.name, {port.name: later for port in one.ports if port.peer == name and port.role != "host"})
        for one in BUILT.switches
        if one.name != name
    ]
    assert said(scene(BUILT, switch(name), *seen_by), CHECK) == []


@pytest.mark.parametrize(
    ("others", "is_told"),
    [
        ((SLOW, SLOW, SLOW), False),
        ((SLOW, SLOW, replace(SLOW, outage_s=1.0, outage_ended_ago_s=20.0)), False),
        ((SLOW, SLOW, Interface(is_up=False)), False),
        ((SLOW, Interface(is_up=False), Interface(is_up=False)), False),
        ((SLOW, UP, UP), True),
        ((SLOW, UP, Interface(is_up=False)), True),
    ],
    ids=["all", "one went again", "one is down", "all but the dead", "a module of two ports", "half of the living"],
)
def test_most_links_of_a_switch_explain_each_other(others: tuple[Interface, ...], is_told: bool) -> None:
    """A reload takes all down; which one was down before, or went down again since, does not matter."""
    built = fabric(switches={"spine": {"slots": 4}})
    ports = [port for port in built.switch(NEAR).ports if port.role == "up"]
    reported = dict(zip((port.name for port in ports), (SLOW, *others), strict=True))
    seen = [observation(NEAR, Facts(system=System(uptime_s=DAYS_S), interfaces=reported))]
    for port in ports:
        interfaces = {one.name: UP for one in built.switch(port.peer).ports} | {port.peer_port: reported[port.name]}
        seen.append(observation(port.peer, Facts(system=System(uptime_s=DAYS_S), interfaces=interfaces)))
    found = [place for _, device, place, _ in said(scene(built, *seen), CHECK) if device == NEAR]
    assert (ports[0].name in found) == is_told


@pytest.mark.parametrize(
    ("others", "is_told"),
    [
        ((UP, replace(UP, outage_ended_ago_s=601.0), UP), False),
        ((replace(UP, outage_ended_ago_s=600.0), UP, UP), False),
        ((UP, replace(UP, outage_ended_ago_s=640.0), UP), True),
        ((UP, SLOW, UP), True),
        ((UP, UP, UP), True),
    ],
    ids=["two modules", "one module", "not together", "not disabled", "alone"],
)
def test_a_switch_that_enabled_several_ports_explains_them(others: tuple[Interface, ...], is_told: bool) -> None:
    """A new leaf waits for its links until each spine is configured; half of the spine's leaves may be new."""
    built = fabric(switches={"spine": {"slots": 4}})
    ports = [port for port in built.switch(NEAR).ports if port.role == "up"]
    own = dict(zip((port.name for port in ports), (replace(UP, outage_ended_ago_s=600.0), *others), strict=True))
    seen = [observation(NEAR, Facts(system=System(uptime_s=DAYS_S), interfaces=own))]
    for port in ports:
        waited = SLOW if own[port.name] != UP else UP
        interfaces = {one.name: UP for one in built.switch(port.peer).ports} | {port.peer_port: waited}
        seen.append(observation(port.peer, Facts(system=System(uptime_s=DAYS_S), interfaces=interfaces)))
    found = [place for _, device, place, _ in said(scene(built, *seen), CHECK) if device == NEAR]
    assert (ports[0].name in found) == is_told


def test_a_cable_is_judged_at_the_end_that_reports_its_ports() -> None:
    deaf = observation(NEAR, Facts(system=System(uptime_s=DAYS_S), interfaces=Absent("cannot be read")))
    found = scene(BUILT, deaf, switch(FAR, {PEER_PORT: SLOW}), switch("leaf02"), switch("spine02"))
    text = TEXT.replace(f"{FAR}:{PEER_PORT}", f"{NEAR}:{PORT}")
    assert said(found, CHECK) == [("warn", FAR, PEER_PORT, text)]
    alone = scene(BUILT, switch(NEAR, {PORT: SLOW}))
    reported = f"was without a link for 45 s; whether {FAR} started meanwhile is not known"
    assert (NEAR, PORT, reported) in skipped(alone, CHECK)


def test_each_cable_between_switches_is_judged_once() -> None:
    found = results(cable(UP, UP), CHECK)
    between = sum(link.kind != "host" for link in BUILT.links())
    assert sum(result.examined for result in found.values()) == between
    silent = cable(Interface(is_up=True), Interface(is_up=True))
    assert (NEAR, PORT, "neither end reports when the link was gone") in skipped(silent, CHECK)


def test_a_port_to_a_host_is_judged_by_its_nic_only() -> None:
    """Hosts reboot; their NICs report how long the link took."""
    port = next(port for port in BUILT.switch(NEAR).ports if port.role == "host")
    nic = Interface(is_up=True, link_up_s=45.0, outage_s=45.0, outage_ended_ago_s=600.0)
    host = observation(port.peer, Facts(interfaces={port.peer_port: nic}))
    found = scene(BUILT, switch(NEAR, {port.name: SLOW}), host)
    text = f"took 45 s to come up; {NEAR}:{port.name} is at the other end"
    assert said(found, CHECK) == [("warn", port.peer, port.peer_port, text)]
    assert (NEAR, port.name, "the device does not report how long the link took") in skipped(found, CHECK)


@pytest.mark.parametrize(("ago_s", "text"), [(3.0, "3 s"), (119.0, "119 s"), (7000.0, "117 min"), (80_000.0, "22 h")])
def test_the_age_of_an_outage_has_a_suitable_unit(ago_s: float, text: str) -> None:
    last = replace(SLOW, outage_ended_ago_s=ago_s)
    ((_, _, _, found),) = said(cable(last, last), CHECK)
    assert f"until {text} before this reading" in found


def test_links_with_a_common_short_outage_explain_a_longer_one() -> None:
    """A change of a switch takes all of its links down, and each comes back in its own time."""
    others = [port.name for port in BUILT.switch(NEAR).ports if port.role == "up" and port.name != PORT]
    last = replace(SLOW, outage_s=33.0)
    for lasted_s, is_told in ((28.0, False), (4.0, True)):
        beside = dict.fromkeys(others, replace(SLOW, outage_s=lasted_s))
        seen = [switch(one.name, {PORT: last, **beside} if one.name == NEAR else NONE) for one in BUILT.switches]
        assert bool(said(scene(BUILT, *seen), CHECK)) == is_told


@pytest.mark.parametrize(("ended_ago_s", "count"), [(600.0, 0), (615.0, 0), (555.0, 2), (645.0, 2)])
def test_consecutive_outages_of_one_switch_do_not_explain_each_other(ended_ago_s: float, count: int) -> None:
    """It reports both at one moment, so no tolerance for different reading times is needed."""
    down = [port for port in BUILT.switch(FAR).ports if port.role != "host"]
    other = replace(SLOW, outage_ended_ago_s=ended_ago_s)
    ports = dict(zip((port.name for port in down), (SLOW, other), strict=True))
    seen = [switch(one.name, ports if one.name == FAR else NONE) for one in BUILT.switches]
    assert len(said(scene(BUILT, *seen), CHECK)) == count
