from dataclasses import replace

import pytest

from netkit.facts import Facts
from netkit.facts.host import BgpSession
from netkit.judge import CheckContext
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
PORTS = tuple(port for port in BUILT.switch("leaf01").ports if port.role == "up")
PORT = PORTS[0]
WELL = {
    port.name: BgpSession(True, "Established", port.peer_asn, 3, uptime_s=60.0, is_bfd_up=True, is_draining=False)
    for port in PORTS
}


def leaf(**otherwise: object) -> CheckContext:
    """Facts in which one session of a leaf is changed."""
    changed = replace(WELL[PORT.name], **otherwise)  # type: ignore[arg-type]
    return scene(BUILT, observation("leaf01", Facts(sessions={**WELL, PORT.name: changed})))


@pytest.mark.parametrize("name", ["bgp.sessions", "bgp.prefixes", "bgp.bfd", "bgp.drained"])
def test_sessions_as_designed_pass(name: str) -> None:
    assert (said(leaf(), name), skipped(leaf(), name)) == ([], [])


@pytest.mark.parametrize(
    ("name", "otherwise", "verdict", "text"),
    [
        ("bgp.sessions", {"is_established": False, "state": "Idle"}, "fail", f"BGP to {PORT.peer} is Idle"),
        ("bgp.sessions", {"peer_asn": 7}, "fail", f"BGP speaks to AS 7, not to AS {PORT.peer_asn} of {PORT.peer}"),
        ("bgp.prefixes", {"received_prefixes": 0}, "fail", f"{PORT.peer} announces nothing"),
        ("bgp.bfd", {"is_bfd_up": False}, "warn", f"BFD to {PORT.peer} is down"),
        ("bgp.bfd", {"is_bfd_up": False, "uptime_s": None}, "warn", f"BFD to {PORT.peer} is down"),
        ("bgp.drained", {"is_draining": True}, "fail", f"asks {PORT.peer} to go around it"),
    ],
)
def test_a_changed_session_is_reported_at_its_port(
    name: str, otherwise: dict[str, object], verdict: str, text: str
) -> None:
    assert said(leaf(**otherwise), name) == [(verdict, "leaf01", PORT.name, text)]


def test_bfd_of_a_young_session_is_not_judged() -> None:
    young = leaf(is_bfd_up=False, uptime_s=4.2)
    why = f"BGP to {PORT.peer} is up for 4 s only: BFD may be on its way"
    assert (said(young, "bgp.bfd"), skipped(young, "bgp.bfd")) == ([], [("leaf01", PORT.name, why)])
    assert said(leaf(is_bfd_up=True, uptime_s=4.2), "bgp.bfd") == []


def test_a_missing_session_is_reported() -> None:
    without = {name: session for name, session in WELL.items() if name != PORT.name}
    seen = scene(BUILT, observation("leaf01", Facts(sessions=without)))
    assert said(seen, "bgp.sessions") == [("fail", "leaf01", PORT.name, f"no BGP session to {PORT.peer}")]
    assert said(seen, "bgp.bfd") == []
