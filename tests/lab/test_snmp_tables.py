"""The tables of the lab's SNMP agents: their objects, types and values."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.design.fabric import Switch
from netkit.lab.agents import snmp_mibs
from netkit.lab.agents.lldp_daemon import LldpChassis, LldpNeighbor, LldpState
from netkit.lab.agents.snmp_mibs import mibs
from netkit.lab.agents.snmp_objects import (
    Mib,
    MibRow,
    MibTree,
    Oid,
    SmiType,
    SnmpSnapshot,
    counter64,
    interface_index,
    snapshot,
)
from netkit.lab.state import EcnState, PortState, QosState, SwitchState
from tests import intents
from tests.lab.agent_node import port

VERSIONS = {"nvue": "5.16.1", "sonic": "202411", "eos": "4.33.1F", "frr": "10.2"}
NAMES = {
    "nvue": ("swp1s0", "swp1s1", "swp2s0"),
    "sonic": ("Ethernet0", "Ethernet4", "Ethernet8"),
    "eos": ("Ethernet1/1", "Ethernet1/5", "Ethernet2/1"),
    "frr": ("swp1s0", "swp1s1", "swp2s0"),
}
PLATFORMS = sorted(VERSIONS)
NOBODY = LldpState({}, LldpChassis(), ())


def leaf(platform: str) -> Switch:
    return intents.fabric(intents.on_platform(platform, VERSIONS[platform])).tier("leaf")[0]


def shown(platform: str) -> SnmpSnapshot:
    """A switch with an optic, a second optic that shares its module, and a copper cable that is down."""
    first, second, third = NAMES[platform]
    readings = (port(first, 1), port(second, 3, first_lane=5), port(third, 2, kind="copper"))
    reported = PortState(first, description="to gpu01", qos=QosState(ecn={3: EcnState(1, 2, 3)}), alias="etp1a")
    if platform != "sonic":
        reported = PortState(reported.name, description=reported.description, qos=reported.qos)
    return snapshot(leaf(platform), SwitchState("leaf", (reported,)), readings)


def by_oid(rows: Iterable[MibRow]) -> dict[Oid, int | bytes | Oid]:
    listed = list(rows)
    found = {row.oid: row.value for row in listed}
    assert len(found) == len(listed), "an object stands twice"
    return found


def tree(platform: str, around: LldpState = NOBODY) -> MibTree:
    return MibTree(mibs(platform, lambda: shown(platform), lambda: around), fresh_s=math.inf)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_walk_yields_every_object_of_every_mib_once_and_in_order(platform: str) -> None:
    walked: list[Oid] = []
    whole = tree(platform)
    at: Oid = ()
    while (row := whole.next(at)) is not None:
        assert row.oid > at
        assert whole.get(row.oid) == row
        at = row.oid
        walked.append(at)
    drawn = [row.oid for mib in whole.mibs for row in mib.draw()]
    assert walked == sorted(drawn)
    assert len(set(walked)) == len(walked) > 100


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_object_lies_in_the_subtree_its_mib_registers_and_no_subtree_in_another(platform: str) -> None:
    roots = [mib.root for mib in tree(platform).mibs]
    for mib in tree(platform).mibs:
        assert all(row.oid[: len(mib.root)] == mib.root for row in mib.draw())
    for root in roots:
        assert [other for other in roots if other[: len(root)] == root] == [root]


OIDS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


@given(st.dictionaries(OIDS, st.integers(0, 9)), OIDS | st.just(()), OIDS | st.just(()), st.booleans())
def test_next_is_the_first_object_of_a_linear_search(
    values: dict[Oid, int], start: Oid, end: Oid, is_included: bool
) -> None:
    below: dict[int, list[MibRow]] = {}
    for oid, value in values.items():
        below.setdefault(oid[0], []).append(counter64(oid, value))
    small = MibTree([Mib((first,), lambda rows=rows: rows) for first, rows in below.items()], fresh_s=math.inf)  # type: ignore[misc]
    wanted = sorted(oid for oid in values if (oid > start or (is_included and oid == start)) and (not end or oid < end))
    found = small.next(start, is_included=is_included, end=end)
    assert (found.oid if found else None) == (wanted[0] if wanted else None)
    got = small.get(start)
    assert (got.value if got else None) == values.get(start)


def test_counters_wrap_at_their_width_and_speed_is_the_models() -> None:
    rows = by_oid(snmp_mibs.interface_rows(shown("nvue"))) | by_oid(snmp_mibs.extended_rows(shown("nvue")))
    assert rows[(*snmp_mibs.INTERFACE_TABLE, 10, 3)] == (2**33 + 1) % 2**32
    assert rows[(*snmp_mibs.X_TABLE, 6, 3)] == 2**33 + 1
    assert rows[(*snmp_mibs.INTERFACE_TABLE, 5, 3)] == 2**32 - 1
    assert rows[(*snmp_mibs.X_TABLE, 15, 3)] == 400_000
    assert rows[(*snmp_mibs.X_TABLE, 18, 3)] == b"to gpu01"
    assert [rows[(*snmp_mibs.INTERFACE_TABLE, 8, index)] for index in (3, 4, 5)] == [1, 1, 2]
    assert rows[snmp_mibs.NUMBER] == 3


@pytest.mark.parametrize(
    ("platform", "name", "position", "index"),
    [
        ("nvue", "swp1s0", 0, 3),
        ("frr", "swp7s1", 9, 12),
        ("sonic", "Ethernet0", 0, 1),
        ("sonic", "Ethernet252", 63, 253),
        ("eos", "Ethernet49/1", 5, 49001),
        ("eos", "Ethernet3/2/1", 5, 3002001),
    ],
)
def test_port_indexes_follow_the_nos(platform: str, name: str, position: int, index: int) -> None:
    assert interface_index(platform, name, position) == index


def test_sonic_names_a_port_by_its_alias() -> None:
    rows = by_oid(snmp_mibs.extended_rows(shown("sonic")))
    assert [rows[(*snmp_mibs.X_TABLE, 1, index)] for index in (1, 5, 9)] == [b"etp1a", b"Ethernet4", b"Ethernet8"]


def test_pause_frames_are_in_the_mib_of_each_vendor() -> None:
    sent, received = sum(200 + at for at in range(8)), sum(100 + at for at in range(8))
    for platform, index in (("nvue", 3), ("sonic", 1), ("eos", 1001)):
        rows = by_oid(snmp_mibs.pfc_rows(shown(platform)))
        assert (rows[(*snmp_mibs.PFC_TABLE, 2, index)], rows[(*snmp_mibs.PFC_TABLE, 3, index)]) == (sent, received)
    cumulus = by_oid(snmp_mibs.cumulus_rows(shown("nvue")))
    assert (cumulus[(*snmp_mibs.PFC, 10, 3)], cumulus[(*snmp_mibs.PFC, 11, 3)]) == (103, 203)
    sonic = by_oid(snmp_mibs.cisco_pfc_rows(shown("sonic")))
    assert sonic[(*snmp_mibs.PFC_OF_PORT, 1, 1)] == sonic[(*snmp_mibs.PFC_OF_PRIORITY, 2, 1, 3)] == 203
    assert sonic[(*snmp_mibs.PFC_OF_PRIORITY, 3, 1, 7)] == 107
    arista = by_oid(snmp_mibs.arista_rows(shown("eos")))
    assert (arista[(*snmp_mibs.PFC_PRIORITY, 3, 1001, 0)], arista[(*snmp_mibs.PFC_PRIORITY, 4, 1001, 0)]) == (
        200,
        100,
    )
    assert arista[(*snmp_mibs.PFC_WATCHDOG, 4, 1001, 0, 3)] == 8


def test_queues_are_in_the_mib_of_each_vendor() -> None:
    cumulus = by_oid(snmp_mibs.cumulus_rows(shown("nvue")))
    assert [cumulus[(*snmp_mibs.CLASSES, column, 3, 2)] for column in (3, 4, 5, 7)] == [1002, 2002, 3002, 4002]
    assert cumulus[(*snmp_mibs.DISCARDS, 6, 3)] == sum(3000 + at for at in range(8))
    assert [cumulus[(*snmp_mibs.UP_DOWN, column, 3)] for column in (2, 3, 4)] == [2, 1, 3]
    sonic = by_oid(snmp_mibs.cisco_queue_rows(shown("sonic")))
    assert [sonic[(*snmp_mibs.QUEUES, 1, 2, 3, column)] for column in (1, 2, 5)] == [1002, 2002, 3002]
    arista = by_oid(snmp_mibs.arista_rows(shown("eos")))
    assert [arista[(*snmp_mibs.EGRESS_QUEUE, column, 1001, 2, 0)] for column in (4, 5, 6)] == [1002, 2002, 3002]
    assert arista[(*snmp_mibs.ECN_QUEUE, 4, 1001, 2)] == 4002
    assert [arista[(*snmp_mibs.ECN_QUEUE, 3, 1001, queue)] for queue in (2, 3)] == [2, 1]


def test_sensors_have_value_scale_and_precision() -> None:
    rows = by_oid(snmp_mibs.sensor_rows(shown("sonic")))
    base = 10**9 + 100

    def value(index: int) -> tuple[object, ...]:
        return tuple(rows[(*snmp_mibs.SENSOR, column, index)] for column in (1, 2, 3, 4))

    assert value(base + 10) == (8, 9, 6, 45_500_000)
    assert value(base + 21) == (6, 8, 4, 10_000)
    assert value(base + 31) == (6, 8, 4, 6310)
    assert value(base + 44) == (5, 8, 3, 75_250)
    assert value(base + 50) == (4, 9, 4, 33_000)


@given(st.floats(-40, 10))
def test_optical_power_survives_the_conversion_to_milliwatts(dbm: float) -> None:
    shown_value = snmp_mibs.scaled(snmp_mibs.RX_POWER, dbm, 4)
    assert shown_value >= 1
    assert 10 ** (dbm / 10) == pytest.approx(shown_value / 10**4, abs=0.00005)


def test_each_transceiver_is_an_entity_and_copper_measures_nothing() -> None:
    rows = by_oid(snmp_mibs.entity_rows(shown("sonic")))
    described = {oid[-1]: value for oid, value in rows.items() if oid[:-1] == (*snmp_mibs.PHYSICAL, 2)}
    first, second, third = (10**9 + 100 * index for index in (1, 5, 9))
    assert described[first] == b"OSFP for etp1a"
    assert described[first + 31] == b"DOM RX Power Sensor for etp1a/1"
    assert described[second + 35] == b"DOM RX Power Sensor for Ethernet4/5"
    assert [index for index in described if third <= index < third + 100] == [third]
    assert rows[(*snmp_mibs.PHYSICAL, 4, first + 31)] == first
    assert [rows[(*snmp_mibs.PHYSICAL, column, first)] for column in (8, 9, 11, 12, 13)] == [
        b"A1",
        b"1.2.3",
        b"S0001",
        b"Lightworks",
        b"LW-800",
    ]


def test_eos_names_lanes_as_ports_and_has_the_modules_own_thresholds() -> None:
    rows = by_oid(snmp_mibs.entity_rows(shown("eos")))
    second = 10**9 + 100 * 1005
    assert rows[(*snmp_mibs.PHYSICAL, 2, second + 36)] == b"DOM RX Power Sensor for Ethernet1/6"
    assert rows[(*snmp_mibs.PHYSICAL, 7, second + 36)] == b""
    limits = by_oid(snmp_mibs.arista_rows(shown("eos")))
    temperature = 10**9 + 100 * 1001 + 10
    assert [limits[(*snmp_mibs.SENSOR_LIMITS, column, temperature)] for column in range(1, 6)] == [
        0,
        -50,
        700,
        750,
        b"ok",
    ]
    assert by_oid(snmp_mibs.sensor_rows(shown("eos")))[(*snmp_mibs.SENSOR, 4, temperature)] == 455


@pytest.mark.parametrize(
    ("temperature_c", "status"),
    [(-5.1, b"critical"), (-1.0, b"warning"), (0.0, b"ok"), (70.0, b"ok"), (70.1, b"warning"), (75.1, b"critical")],
)
def test_the_state_of_a_sensor_follows_the_modules_thresholds(temperature_c: float, status: bytes) -> None:
    reading = port("Ethernet1/1")
    assert reading.module is not None
    warm = replace(reading, module=replace(reading.module, temperature_c=temperature_c))
    rows = by_oid(snmp_mibs.arista_rows(snapshot(leaf("eos"), SwitchState("leaf"), (warm,))))
    assert rows[(*snmp_mibs.SENSOR_LIMITS, 5, 10**9 + 100 * 1001 + 10)] == status


def test_lldp_lists_neighbors_by_the_index_of_the_port() -> None:
    beside = LldpNeighbor(
        "et1_5", LldpChassis("mac", "02:00:00:00:00:09", "gpu01", "linux"), "mac", "02:00:00:00:00:0a", "rail0"
    )
    elsewhere = LldpNeighbor("br0", LldpChassis(), "ifname", "x", "")
    kernel = {"Ethernet1/1": "et1_1", "Ethernet1/5": "et1_5", "Ethernet2/1": "et2_1"}
    around = LldpState(kernel, LldpChassis("mac", "02:00:00:00:00:01", "leaf", "a switch"), (beside, elsewhere))
    rows = by_oid(snmp_mibs.lldp_rows(shown("eos"), around))
    assert rows[(*snmp_mibs.LOCAL, 2, 0)] == bytes.fromhex("020000000001")
    assert (rows[(*snmp_mibs.LOCAL_PORT, 2, 1001)], rows[(*snmp_mibs.LOCAL_PORT, 3, 1001)]) == (7, b"Ethernet1/1")
    remote = {oid[len(snmp_mibs.REMOTE) :]: value for oid, value in rows.items() if oid[:-4] == snmp_mibs.REMOTE}
    assert remote == {
        (4, 0, 1005, 1): 4,
        (5, 0, 1005, 1): bytes.fromhex("020000000009"),
        (6, 0, 1005, 1): 3,
        (7, 0, 1005, 1): bytes.fromhex("02000000000a"),
        (8, 0, 1005, 1): b"rail0",
        (9, 0, 1005, 1): b"gpu01",
        (10, 0, 1005, 1): b"linux",
    }


def test_a_port_known_by_its_kernel_name_has_that_subtype() -> None:
    around = LldpState({"swp1s0": "swp1s0"}, LldpChassis(), ())
    rows = by_oid(snmp_mibs.lldp_rows(shown("nvue"), around))
    assert rows[(*snmp_mibs.LOCAL_PORT, 2, 3)] == 5


def test_values_are_computed_again_once_they_are_old() -> None:
    drawn: list[int] = []

    def draw() -> list[MibRow]:
        drawn.append(1)
        return [MibRow((1, 1), SmiType.COUNTER64, len(drawn))]

    kept, fresh = MibTree([Mib((1,), draw)], math.inf), MibTree([Mib((1,), draw)], 0)
    assert [kept.next(()), kept.get((1, 1))] == [MibRow((1, 1), SmiType.COUNTER64, 1)] * 2
    kept.forget()
    assert kept.get((1, 1)) == MibRow((1, 1), SmiType.COUNTER64, 2)
    assert [fresh.get((1, 1)), fresh.get((1, 1))] == [MibRow((1, 1), SmiType.COUNTER64, at) for at in (3, 4)]
