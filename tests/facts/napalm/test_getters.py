"""Facts from the getters of NAPALM drivers, of which each driver has some."""

import json
import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from napalm.base import NetworkDriver
from napalm.base.exceptions import ConnectionException

from netkit.errors import AccessError
from netkit.facts import Absent, Facts
from netkit.facts.device import Interface, Neighbor, System
from netkit.facts.host import BgpSession
from netkit.facts.optic import Lane, Module
from netkit.observe import CollectOptions, Target, assemble, collect
from netkit.platforms.napalm.driver import GetterViewer
from netkit.platforms.napalm.facts import GETTERS, NEIGHBORS, OPTICS, SESSIONS, counters, views
from netkit.platforms.view import View, ViewSubject
from tests.facts.hostile import STRANGE, changed
from tests.lanes import examples

PORTS = ("Ethernet1/1", "swp1s0")
VIEWS = views(ViewSubject("leaf01", ports=PORTS))
UNTOLD = {"routes", "qos", "lines", "watchdogs", "buffers", "adaptive_routing", "file_systems"}
NOT_ASKED = {one.name for one in fields(Facts)} - {kind for view in VIEWS for kind in view.yields}
PACKETS = {f"{way}_{kind}_packets": 1 for way in ("rx", "tx") for kind in ("unicast", "multicast", "broadcast")}
LIGHT = {"instant": -1.5, "avg": 0.0, "min": 0.0, "max": 0.0}
DARK = {**LIGHT, "instant": -30.0}
TOLD: Mapping[str, Any] = {
    "get_facts": {
        "uptime": 12.5,
        "vendor": "Arista",
        "os_version": "4.35.1F",
        "serial_number": "S1",
        "model": "DCS",
        "hostname": "leaf01",
        "fqdn": "leaf01.lab",
        "interface_list": ["Ethernet1/1"],
    },
    "get_interfaces": {
        "Ethernet1/1": {
            "is_up": True,
            "is_enabled": True,
            "description": "to gpu01",
            "last_flapped": 1.0,
            "speed": 400000.0,
            "mtu": 9214,
            "mac_address": "02:00:00:00:00:0A",
        },
        "swp1s0": {"is_up": False, "is_enabled": True, "description": "", "speed": -1.0, "mtu": -1, "mac_address": ""},
        "Management1": {"is_up": True, "is_enabled": True, "speed": 1000.0, "mtu": 1500, "mac_address": ""},
    },
    "get_interfaces_counters": {
        "Ethernet1/1": {
            "rx_octets": 2**40,
            "tx_octets": 5,
            "rx_errors": 0,
            "tx_errors": 1,
            "rx_discards": 2,
            "tx_discards": -1,
            **PACKETS,
        },
        "swp1s0": {**PACKETS, "rx_broadcast_packets": -1, "tx_unicast_packets": -1},
        "Management1": {"rx_octets": 1},
    },
    "get_lldp_neighbors_detail": {
        "Ethernet1/1": [
            {
                "parent_interface": "",
                "remote_port": "0200.0000.000A",
                "remote_port_description": "rail0",
                "remote_chassis_id": "02:00:00:00:00:09",
                "remote_system_name": "gpu01",
                "remote_system_description": "",
                "remote_system_capab": [],
                "remote_system_enable_capab": [],
            }
        ]
    },
    "get_lldp_neighbors": {
        "Ethernet1/1": [{"hostname": "gpu01", "port": "0200.0000.000A"}],
        "swp1s0": [{"hostname": "spine01", "port": "swp3"}],
    },
    "get_bgp_neighbors": {
        "global": {
            "router_id": "10.0.0.1",
            "peers": {
                "swp1s0": {
                    "local_as": 1,
                    "remote_as": 4200000001,
                    "is_up": True,
                    "is_enabled": True,
                    "uptime": 60,
                    "address_family": {
                        "ipv4": {"received_prefixes": 3, "accepted_prefixes": 3, "sent_prefixes": 2},
                        "ipv6": {"received_prefixes": -1, "accepted_prefixes": -1, "sent_prefixes": -1},
                    },
                },
                "Ethernet1/1": {"remote_as": -1, "is_up": False, "uptime": -1, "address_family": {}},
                "fe80::1": {"is_up": True},
            },
        }
    },
    "get_optics": {
        "Ethernet1/1": {
            "physical_channels": {
                "channel": [
                    {
                        "index": 0,
                        "state": {"input_power": LIGHT, "output_power": DARK, "laser_bias_current": {"instant": 7.5}},
                    },
                    {"index": 1, "state": {"input_power": DARK, "laser_bias_current": {"instant": 0.0}}},
                ]
            }
        }
    },
}


class Driver(NetworkDriver):  # type: ignore[misc]
    """A third-party driver with some of the getters."""

    def __init__(self, output: Mapping[str, Any], refusal: str = "") -> None:
        self.output, self.refusal = output, refusal

    def open(self) -> None:
        if self.refusal:
            raise ConnectionException(self.refusal)

    def close(self) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("get_") and name in object.__getattribute__(self, "output"):
            found = self.output[name]
            return lambda: _raised(found) if isinstance(found, Exception) else found
        return object.__getattribute__(self, name)


def _raised(error: Exception) -> None:
    raise error


def look(output: Mapping[str, Any]) -> Facts:
    viewer = GetterViewer("leaf01", Driver(output))
    viewer.open()
    asked = tuple(dict.fromkeys(command for view in VIEWS for command in view.commands))
    return assemble.facts(VIEWS, dict(zip(asked, viewer.ask(asked), strict=True)))


def parsed(view: View, *texts: str) -> Facts:
    found: Facts = view.parse(*texts)
    assert {one.name for one in fields(found) if getattr(found, one.name) != getattr(Facts(), one.name)} <= view.yields
    return found


def test_every_getter_is_called() -> None:
    assert {command for view in VIEWS for command in view.commands} == GETTERS == set(TOLD)


def test_getters_report_system_ports_neighbours_sessions_optics_and_counters() -> None:
    found = look(TOLD)
    assert found.system == System("leaf01", "4.35.1F", "DCS", "S1", uptime_s=12.5)
    assert found.interfaces == {
        "Ethernet1/1": Interface(True, True, 400.0, 9214, mac="02:00:00:00:00:0a", description="to gpu01"),
        "swp1s0": Interface(False, True),
    }
    assert found.neighbors == {
        "Ethernet1/1": (Neighbor("gpu01", "02:00:00:00:00:0a", "rail0"),),
        "swp1s0": (Neighbor("spine01", "swp3"),),
    }
    assert found.sessions == {
        "swp1s0": BgpSession(True, "", 4200000001, 3, 2, 60.0),
        "Ethernet1/1": BgpSession(False),
    }
    assert found.modules == {
        "Ethernet1/1": Module(kind="optic", lanes={1: Lane(-1.5, -40.0, 7.5), 2: Lane(-40.0, None, None)})
    }
    assert found.counters == {
        "rx_bytes": {"Ethernet1/1": 2**40},
        "tx_bytes": {"Ethernet1/1": 5},
        "rx_errors": {"Ethernet1/1": 0},
        "tx_errors": {"Ethernet1/1": 1},
        "rx_drops": {"Ethernet1/1": 2},
        "rx_packets": {"Ethernet1/1": 3, "swp1s0": 2},
        "tx_packets": {"Ethernet1/1": 3},
    }
    assert {one.name for one in fields(found) if isinstance(getattr(found, one.name), Absent)} == UNTOLD | NOT_ASKED


def test_a_missing_getter_is_absent_and_the_rest_is_reported() -> None:
    found = look({name: output for name, output in TOLD.items() if name not in {OPTICS, SESSIONS}})
    assert found.modules == Absent("get_optics: the NAPALM driver does not implement it")
    assert found.sessions == Absent("get_bgp_neighbors: the NAPALM driver does not implement it")
    assert not isinstance(found.interfaces, Absent)


def test_optical_power_filled_in_with_zeros_is_not_reported() -> None:
    zero = {"instant": 0.0, "avg": 0.0, "min": 0.0, "max": 0.0}
    copper = {"input_power": zero, "output_power": zero, "laser_bias_current": zero}
    half = {"input_power": zero, "output_power": LIGHT, "laser_bias_current": zero}
    shown = {
        name: {"physical_channels": {"channel": [{"index": 0, "state": state}]}}
        for name, state in (("Ethernet1/1", copper), ("swp1s0", half))
    }
    found = look({**TOLD, OPTICS: shown}).modules
    assert found == {"swp1s0": Module(kind="optic", lanes={1: Lane(None, -1.5, None)})}


def test_a_getter_that_raises_is_reported_and_fails_alone() -> None:
    found = look({**TOLD, OPTICS: KeyError("media"), SESSIONS: {"global": {1: object()}}})
    assert found.modules == Absent("get_optics: the NAPALM driver fails: KeyError: 'media'")
    assert isinstance(found.sessions, Absent)
    assert found.sessions.reason.startswith("get_bgp_neighbors: the NAPALM driver fails: TypeError")


def test_a_lost_connection_ends_the_collection() -> None:
    gone = AccessError.__new__(AccessError)
    with pytest.raises(AccessError):
        GetterViewer("leaf01", Driver({NEIGHBORS: gone})).ask([NEIGHBORS])


def test_a_driver_that_cannot_open_reports_why() -> None:
    with pytest.raises(
        AccessError, match="leaf01: its NAPALM driver cannot connect: ConnectionException: nobody there"
    ):
        GetterViewer("leaf01", Driver({}, "nobody there")).open()


def test_sessions_of_unknown_addresses_are_not_assigned() -> None:
    output = {"global": {"peers": {"10.0.0.2": {"is_up": True}}}}
    found = look({**TOLD, SESSIONS: output}).sessions
    assert found == Absent("get_bgp_neighbors lists no session of the fabric")


class Endless(Driver):
    """A driver that neither answers nor closes until it is released."""

    def __init__(self, output: Mapping[str, Any]) -> None:
        super().__init__(output)
        self.let_go, self.began = threading.Event(), threading.Event()

    def get_optics(self) -> Any:
        self.began.set()
        assert self.let_go.wait(60)

    def close(self) -> None:
        assert self.let_go.wait(60)


def test_a_hanging_driver_is_abandoned_and_its_facts_so_far_are_kept() -> None:
    driver = Endless({name: output for name, output in TOLD.items() if name != OPTICS})
    looked = Target("leaf01", "eos", VIEWS, has_config=False)
    found = collect("f", [looked], lambda name: GetterViewer(name, driver), CollectOptions(deadline_s=3.0))
    was_waited_for = driver.let_go.is_set()
    driver.let_go.set()
    seen = found.snapshot.devices["leaf01"]
    assert (driver.began.is_set(), was_waited_for) == (True, False)
    assert (seen.failure, seen.facts.modules) == (
        "no answer within 3 s",
        Absent("get_optics: the connection was closed"),
    )
    assert isinstance(seen.facts.system, System)


def test_only_getters_are_called() -> None:
    (reply,) = GetterViewer("leaf01", Driver(TOLD)).ask(["cli"])
    assert reply.failure == "not a getter"


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("view", VIEWS, ids=[view.commands[0] for view in VIEWS])
def test_an_unparsable_answer_is_absent_with_a_reason(view: View, text: str) -> None:
    found = parsed(view, *(text for _ in view.commands))
    if text in {"", "null"}:
        assert all(isinstance(getattr(found, kind), Absent) for kind in view.yields)


@settings(max_examples=examples(150))
@given(st.data())
def test_an_answer_may_have_another_type_anywhere(data: st.DataObject) -> None:
    view = data.draw(st.sampled_from(VIEWS))
    texts = [json.dumps(TOLD[command]) for command in view.commands]
    at = data.draw(st.integers(0, len(texts) - 1))
    texts[at] = data.draw(changed(texts[at]))
    parsed(view, *texts)


@pytest.mark.parametrize(("broadcasts", "total"), [(1, 3), (-1, 2), (None, None), ("?", None)])
def test_a_packet_total_lacking_a_counter_reported_elsewhere_is_unknown(broadcasts: object, total: int | None) -> None:
    shown = {"swp1": {"rx_octets": 5, **PACKETS, "rx_broadcast_packets": broadcasts}}
    found = counters(json.dumps(shown), ()).counters
    assert not isinstance(found, Absent)
    assert found.get("rx_packets") == (None if total is None else {"swp1": total})
