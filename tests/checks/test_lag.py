"""Checks of LAGs of hosts and of MLAG pairs of switches."""

from typing import Any

import pytest

from netkit.facts import Absent, Facts
from netkit.facts.device import Lag, Mlag
from tests import intents
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric(networks=[intents.storage()], management={"pool": "192.0.2.0/24", "gateway": "192.0.2.1"})
WHOLE = {"nic0": True, "nic1": True}
UP = Mlag(is_peer_alive=True, is_backup_active=True, role="primary", peer_role="secondary")


def texts(check: str, device: str, **facts: Any) -> list[tuple[str, str, str]]:
    seen = scene(BUILT, observation(device, Facts(**facts)))
    found = [*said(seen, check), *(("skipped", *one) for one in skipped(seen, check))]
    return [(verdict, place, text) for verdict, name, place, text in found if name == device]


@pytest.mark.parametrize(
    ("lags", "reported"),
    [
        ({"bond0": Lag(True, WHOLE, "44:38:39:ff:00:01")}, []),
        ({"bond0": Lag(True, {**WHOLE, "nic1": False})}, [("fail", "nic1", "carries nothing of bond0")]),
        ({"bond0": Lag(True, {"nic0": True})}, [("fail", "nic1", "is not in bond0")]),
        (
            {"bond0": Lag(False, {"nic0": False, "nic1": False})},
            [
                ("fail", name, "carries nothing of bond0; no NIC does: the host cannot reach storage")
                for name in ("nic0", "nic1")
            ],
        ),
        (
            {},
            [
                ("fail", name, "is not in bond0; no NIC does: the host cannot reach storage")
                for name in ("nic0", "nic1")
            ],
        ),
        (Absent("cut off"), [("skipped", "bond0", "LAGs are not known: cut off")]),
    ],
)
def test_every_member_nic_of_a_lag_is_active(lags: Any, reported: list[tuple[str, str, str]]) -> None:
    assert texts("lag.members", "gpu01", lags=lags) == reported


@pytest.mark.parametrize(
    ("lags", "reported"),
    [
        ({"1": Lag(True), "2": Lag(True)}, []),
        ({"1": Lag(True), "2": Lag(False)}, [("fail", "swp2", "LAG 2 to gpu02 is down")]),
        ({"2": Lag(True)}, [("fail", "swp1", "LAG 1 to gpu01 is down")]),
        (
            {"1": Lag(True), "2": Lag()},
            [("skipped", "swp2", "LAG 2 is not known: the device does not report its state")],
        ),
    ],
)
def test_every_lag_of_a_switch_towards_a_host_is_up(lags: Any, reported: list[tuple[str, str, str]]) -> None:
    assert texts("lag.ports", "storage01", lags=lags) == reported


@pytest.mark.parametrize(
    ("mlag", "reported"),
    [
        (UP, []),
        (Mlag(is_peer_alive=False, is_backup_active=True), [("fail", "", "MLAG does not see storage02")]),
        (
            Mlag(is_peer_alive=True, is_backup_active=True, role="primary", peer_role="primary"),
            [("fail", "", "both it and storage02 are primary")],
        ),
        (
            Mlag(is_peer_alive=True, is_backup_active=False),
            [("warn", "", "storage02 does not answer at its management address 192.0.2.251")],
        ),
        (Mlag(), [("skipped", "", "MLAG is not known: the device reports nothing of it")]),
        (Absent("cut off"), [("skipped", "", "MLAG is not known: cut off")]),
    ],
)
def test_both_switches_of_a_pair_see_each_other(mlag: Any, reported: list[tuple[str, str, str]]) -> None:
    assert texts("lag.pair", "storage01", mlag=mlag) == reported


def test_without_networks_nothing_is_judged() -> None:
    built = fabric()
    seen = (observation(name) for name in built.names)
    assert said(scene(built, *seen), "lag") == []
