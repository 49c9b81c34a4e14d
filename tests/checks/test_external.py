"""Checks of peers outside the fabric."""

from dataclasses import replace
from typing import Any

import pytest

from netkit.design import Fabric
from netkit.design.external import takers
from netkit.facts import Facts
from netkit.facts.host import BgpSession
from tests import intents
from tests.checks.judging import said
from tests.judge.scenes import observation, scene

UP = BgpSession(is_established=True, state="Established", peer_asn=64512, received_prefixes=1, uptime_s=60.0)
PEER = {
    "name": "isp-a",
    "device": "spine01",
    "port": "swp60s0",
    "address": "203.0.113.1/31",
    "peer": "203.0.113.0",
    "asn": 64512,
    "announce": ["10.128.0.0/16"],
    "bfd": True,
}
WIDE = {
    "topology": "three-tier",
    "ceilings": {"pods": 2, "units": 4, "hosts_per_unit": 4, "spines": 4, "cores": 2},
    "units": [{"pod": "1-2", "unit": 1, "hosts": 2}],
    "switches": {
        "spine": {"uplink_breakout": "2x400G"},
        "core": {
            "model": "SN5600",
            "platform": "nvue",
            "version": "5.16.1",
            "breakout": "2x400G",
            "slots": 1,
            "planes": 2,
        },
    },
    "cables": {"core": {"media": "800G-2xDR4", "length_m": 40}},
    "names": {"spine": "spine{number:02}", "core": "core{number:02}"},
}


def fabric(changes: dict[str, Any] | None = None, **peer: Any) -> Fabric:
    return intents.fabric(intents.values({**(changes or {}), "external": [{**PEER, **peer}]}))


@pytest.mark.parametrize(
    ("session", "reported"),
    [
        (UP, []),
        (replace(UP, is_bfd_up=True), []),
        (replace(UP, is_bfd_up=False), [("warn", "BFD to isp-a is down")]),
        (replace(UP, is_bfd_up=False, uptime_s=3.0), []),
        (replace(UP, is_established=False, state="Active"), [("fail", "BGP to isp-a is Active")]),
        (replace(UP, peer_asn=64513), [("fail", "isp-a is AS 64513, not AS 64512")]),
        (replace(UP, received_prefixes=0), [("fail", "isp-a announces nothing that is accepted")]),
        (replace(UP, received_prefixes=95), [("warn", "isp-a announces 95 prefixes; 100 are the limit")]),
        (None, [("fail", "no BGP session to isp-a")]),
    ],
)
def test_an_external_session_is_judged(session: BgpSession | None, reported: list[tuple[str, str]]) -> None:
    facts = Facts(sessions={"203.0.113.0": session} if session else {})
    found = said(scene(fabric(), observation("spine01", facts)), "external.sessions")
    assert found == [(verdict, "spine01", "swp60s0", text) for verdict, text in reported]


def test_a_missing_default_route_is_found_where_it_is_expected() -> None:
    routes: dict[str, dict[str, tuple[str, ...]]] = {
        "leaf01": {"0.0.0.0/0": ("swp33s0",)},
        "leaf02": {},
        "spine02": {},
    }
    seen = scene(fabric(), *(observation(name, Facts(routes=found)) for name, found in routes.items()))
    assert said(seen, "external.default") == [("fail", "leaf02", "", "no default route")]


def test_an_external_route_goes_down_and_across_the_core_to_other_pods() -> None:
    assert takers(fabric(), "0.0.0.0/0") == {"spine01", "leaf01", "leaf02", "leaf03", "leaf04"}
    assert takers(fabric(), "198.51.100.0/24") == frozenset()
    wide = fabric(WIDE)
    found = takers(wide, "0.0.0.0/0")
    pods = {switch.name: switch.pod for switch in wide.switches}
    assert {name for name in found if name.startswith("spine") and pods[name] == 1} == {"spine01"}
    assert {pods[name] for name in found if name.startswith("leaf")} == {1, 2}
