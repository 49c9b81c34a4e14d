"""The CONFIG_DB checker itself: it accepts the rendered file, and detects each error introduced into it."""

from collections.abc import Callable

import pytest

from netkit.render import Engine, render
from tests import intents
from tests.schema import sonic
from tests.schema.sonic import Tables


def leaf() -> Tables:
    fabric = intents.fabric(intents.on_platform("sonic", "202411"))
    (device,) = render(fabric, [fabric.switch("leaf01")], Engine())
    return sonic.parse(device.files["config_db.json"])


def remove(table: str, key: str) -> Callable[[Tables], object]:
    return lambda found: found[table].pop(key)


def put(table: str, key: str, **fields: str) -> Callable[[Tables], object]:
    return lambda found: found.setdefault(table, {}).setdefault(key, {}).update(fields)


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (put("QOS", "x"), "QOS: unknown table"),
        (put("PORT", "Ethernet0", colour="red"), "PORT|Ethernet0: unknown field colour"),
        (put("PORT", "Ethernet0", mtu="9217"), "PORT|Ethernet0: mtu: '9217' does not fit"),
        (lambda found: found["PORT"]["Ethernet0"].pop("lanes"), "PORT|Ethernet0: lanes is missing"),
        (put("PORT", "Ethernet0", alias="etp1b"), "PORT: alias etp1b stands twice"),
        (put("PORT", "Ethernet0", admin_status="down"), "PORT|Ethernet0: down, but in use"),
        (
            put("PORT_QOS_MAP", "Ethernet0", tc_to_queue_map="X"),
            "PORT_QOS_MAP|Ethernet0: tc_to_queue_map: 'X' does not fit",
        ),
        (put("QUEUE", "Ethernet0|3", wred_profile="X"), "QUEUE|Ethernet0|3: wred_profile: 'X' does not fit"),
        (put("BUFFER_PG", "Ethernet0|3", profile="X"), "BUFFER_PG|Ethernet0|3: profile: 'X' does not fit"),
        (
            put("BUFFER_PG", "Ethernet0|3", profile="ingress_lossy_profile"),
            "Ethernet0: priority 3 is lossless, but its priority group has no headroom",
        ),
        (
            put("PORT_QOS_MAP", "Ethernet0", pfc_enable="3,4"),
            "Ethernet0: priority 4 is lossless, but queue 4 marks no ECN",
        ),
        (put("PFC_WD", "GLOBAL", POLL_INTERVAL="400"), "PFC_WD|Ethernet0: faster than the poll interval"),
        (put("PFC_WD", "GLOBAL", POLL_INTERVAL="50"), "PFC_WD|GLOBAL: POLL_INTERVAL: '50' does not fit"),
        (remove("PFC_WD", "GLOBAL"), "PFC_WD: the GLOBAL row is missing; without it no row can be added back"),
        (remove("PFC_WD", "Ethernet0"), "Ethernet0: the watchdog has no times"),
        (
            lambda found: found["DSCP_TO_TC_MAP"]["AZURE"].pop("63"),
            "DSCP_TO_TC_MAP|AZURE: not every value is mapped",
        ),
        (
            put("TC_TO_QUEUE_MAP", "AZURE", **{"0": "5"}),
            "Ethernet0: DSCP 0 goes to queue 5, which has no scheduler",
        ),
        (put("VLAN_MEMBER", "Vlan100|Ethernet0", tagging_mode="untagged"), "VLAN_MEMBER: Ethernet0 is a routed port"),
        (put("SCHEDULER", "scheduler.control", weight="5"), "SCHEDULER|scheduler.control: type: 'STRICT' does not fit"),
        (remove("CABLE_LENGTH", "AZURE"), "CABLE_LENGTH: empty table"),
        (remove("MGMT_VRF_CONFIG", "vrf_global"), "MGMT_VRF_CONFIG: empty table"),
        (put("BGP_NEIGHBOR", "default|Ethernet0", asn="1"), "BGP_NEIGHBOR|default|Ethernet0: no such key"),
    ],
)
def test_schema_refuses(harm: Callable[[Tables], object], problem: str) -> None:
    found = leaf()
    found["VLAN"] = {"Vlan100": {"vlanid": "100"}}
    assert sonic.problems(found, 202411) == []
    harm(found)
    assert problem in sonic.problems(found, 202411)
