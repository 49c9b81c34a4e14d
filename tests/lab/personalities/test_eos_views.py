"""EOS: the output of `show` from hardware, FRR and lldpd."""

import json
import re
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from netkit.lab.personalities.eos import Eos, show
from netkit.lab.reading import SwitchPortReading, TransceiverReading
from tests.conftest import Golden
from tests.lab.personalities import eos_node
from tests.lab.personalities.eos_node import RecordedNode, errors, result, switch_on, texts

SHAPES = (
    "show version",
    "show hostname",
    "show interfaces",
    "show interfaces flow-control",
    "show interfaces transceiver",
    "show interfaces transceiver dom thresholds",
    "show interfaces phy detail",
    "show interfaces error-correction",
    "show priority-flow-control counters detail",
    "show priority-flow-control counters watchdog",
    "show qos interfaces ecn counters queue",
    "show interfaces counters queue detail",
    "show ip bgp summary vrf all",
    "show bgp neighbors vrf all",
    "show bfd peers",
    "show lldp neighbors",
    "show lldp neighbors detail",
    "show ip route",
    "show maintenance",
    "show configuration sessions detail",
    "show vlan",
    "show users accounts",
)
TEXTS = (
    "show priority-flow-control",
    "show qos maps",
    "show interfaces counters queue",
    "show interfaces transceiver hardware",
    "show ip hardware fib load-balance distribution",
    "show platform trident mmu queue status",
    "show ntp associations",
)
MOVING = re.compile(
    r'"(?:uptime|bootupTimestamp|counterRefreshTime|lastUpdateTimestamp|updateTime|lastChange|tablesLastChangeTime'
    r'|lastStatusChangeTimestamp|lastUp|upDownTime|establishedTime)": [\d.e+-]+'
)
FAR = {"bgpNeighborAddr": "fe80::1", "remoteAs": 4200000001, "localAs": 4200010000, "peerGroup": "SPINES"}
SUMMARY = {
    "routerId": "10.255.0.1",
    "peers": {
        "et33_1": {"pfxRcd": 3, "pfxSnt": 2, "msgRcvd": 15, "msgSent": 13, "inq": 0, "outq": 0},
        "et33_5": {"pfxRcd": 0},
    },
}
DETAIL = {
    "et33_1": {
        **FAR,
        "bgpState": "Established",
        "remoteRouterId": "10.255.128.1",
        "bgpTimerUpEstablishedEpoch": 1_700_000_000,
        "bgpTimerHoldTimeMsecs": 9000,
        "bgpTimerKeepAliveIntervalMsecs": 3000,
        "peerBfdInfo": {"status": "Up"},
        "addressFamilyInfo": {
            "ipv4Unicast": {
                "routeMapForIncomingAdvertisements": "RM-FABRIC",
                "routeMapForOutgoingAdvertisements": "RM-LOCAL",
            }
        },
    },
    "et33_5": {**FAR, "bgpNeighborAddr": "none", "bgpState": "Idle"},
}
ROUTES = {
    "10.128.0.0/29": [
        {"protocol": "bgp", "selected": True, "installed": True, "distance": 200, "nexthops": [{"blackhole": True}]}
    ],
    "10.128.128.0/29": [
        {
            "protocol": "bgp",
            "selected": True,
            "installed": True,
            "distance": 20,
            "metric": 0,
            "nexthops": [
                {"fib": True, "ip": "fe80::1", "afi": "ipv6", "interfaceName": "et33_1"},
                {"fib": True, "ip": "fe80::2", "afi": "ipv6", "interfaceName": "et33_5"},
            ],
        },
        {"protocol": "static", "nexthops": [{"interfaceName": "et1_1"}]},
    ],
    "10.255.0.1/32": [
        {
            "protocol": "connected",
            "selected": True,
            "installed": True,
            "nexthops": [{"fib": True, "directlyConnected": True, "interfaceName": "lo"}],
        }
    ],
}
BFD = [{"peer": "fe80::1", "interface": "et33_1", "status": "up", "id": 1, "remote-id": 2, "uptime": 5}]


def _heard(interface: str, name: str, kind: str, port: str) -> dict[str, Any]:
    chassis = {"id": [{"type": "mac", "value": "02:00:00:00:00:09"}], "name": [{"value": name}]}
    return {"name": interface, "chassis": [chassis], "port": [{"id": [{"type": kind, "value": port}]}]}


HEARD = [_heard("et1_1", "", "mac", "02:00:00:00:00:0a"), _heard("et33_1", "spine01", "ifname", "Ethernet1/1")]
LLDP = {"lldp": [{"interface": HEARD}]}


def connected(folder: Path) -> tuple[Eos, RecordedNode]:
    """A switch whose daemons answer."""
    eos, node = switch_on(folder)
    node.answers = {
        "bgpd: show bgp ipv4 unicast summary json": json.dumps(SUMMARY),
        "bgpd: show bgp neighbors json": json.dumps(DETAIL),
        "bfdd: show bfd peers json": json.dumps(BFD),
        "zebra: show ip route json": json.dumps(ROUTES),
        "lldpcli -f json0 show neighbors details": json.dumps(LLDP),
    }
    return eos, node


def test_views_have_the_structure_of_the_switch(tmp_path: Path, golden: Golden) -> None:
    eos, _ = connected(tmp_path)
    shown = {form: result(eos, form)[0] for form in SHAPES}
    text = json.dumps(shown, indent=1, sort_keys=True)
    golden("lab/eos-views.json", MOVING.sub(lambda match: f"{match[0].partition(':')[0]}: 0", text) + "\n")


def test_views_without_json_have_their_text(tmp_path: Path, golden: Golden) -> None:
    eos, _ = connected(tmp_path)
    golden("lab/eos-views.txt", "".join(f"> {form}\n{texts(eos, form)[0]}\n" for form in TEXTS))


def test_every_view_answers_in_text(tmp_path: Path) -> None:
    eos, _ = connected(tmp_path)
    for form in show.VIEWS:
        command = form.replace("<ports>", "Ethernet1/1").replace("<count> <unit>", "2 hours")
        assert isinstance(texts(eos, command)[0], str), command


def test_a_view_without_json_reports_that(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    assert errors(eos, "show qos maps")[0] == 1003


def test_an_uncounted_value_is_not_zero(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    lines = ("qos profile ROCE-400G", "uc-tx-queue 3", "no random-detect ecn count")
    result(eos, "configure session job", *lines, "commit")
    (found,) = result(eos, "show qos interfaces ecn counters queue")
    assert set(found["intfQueueCounters"]["Ethernet1/1"]["queueCounters"].values()) == {"-"}


def test_a_port_silently_ignores_a_missing_profile(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    result(eos, "configure session job", "interface Ethernet1/1", "service-profile NOSUCH", "commit")
    assert node.state.ports[0].qos.pfc_priorities == frozenset()


def module_of(**changes: Any) -> TransceiverReading:
    return replace(eos_node.MODULE, **changes)


@pytest.mark.parametrize(
    ("module", "summary", "lanes"),
    [
        (None, None, None),
        (module_of(lanes=(), kind="copper"), {"details": {}, "mediaType": "800G-2xDR4", "vendorSn": "AC0001"}, False),
        (module_of(), -1.0, True),
        (module_of(lanes=(replace(eos_node.MODULE.lanes[0], rx_dbm=-40.0),)), -30.0, True),
    ],
    ids=["empty cage", "copper", "light", "dark"],
)
def test_cages_show_their_modules(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: TransceiverReading | None,
    summary: object,
    lanes: bool | None,
) -> None:
    eos, node = switch_on(tmp_path)
    ports: tuple[SwitchPortReading, ...] = tuple(replace(port, module=module) for port in node.ports())
    monkeypatch.setattr(node, "ports", lambda: ports)
    (found,) = result(eos, "show interfaces transceiver")
    one = found["interfaces"].get("Ethernet1/1")
    assert (one["rxPower"] if isinstance(summary, float) else one) == summary
    (found,) = result(eos, "show interfaces transceiver dom thresholds")
    assert ("parameters" in found["interfaces"]["Ethernet1/1"] if module else None) == lanes


def test_without_bgp_there_is_nothing_to_show(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    result(eos, "configure session job", "no ip routing", "commit")
    assert errors(eos, "show ip bgp summary vrf all") == (1000, ["BGP inactive"])


def test_counters_are_cleared_where_they_are_counted(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    result(eos, "clear counters", "clear counters Ethernet1/1")
    assert node.cleared == ["", "Ethernet1/1"]


def test_the_log_reports_link_changes_with_their_times(tmp_path: Path) -> None:
    """Times are zebra's, in the configured format and zone, within the requested period."""
    eos, node = switch_on(tmp_path)
    came_s = time.time() - 3
    socket = node.file("/run/frr/zebra.vty")
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.touch()
    reported = {key: stamp(came_s - ago_s) for key, ago_s in (("lastLinkDown", 45), ("lastLinkUp", 0))}
    node.answers["zebra: show interface json"] = json.dumps({"et33_1": reported, "et1_1": {"linkUps": 0}, "lo": {}})
    head, tail = "leaf01 Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface", "changed state to"
    shown, clock = texts(eos, "show logging last 1 days | grep LINEPROTO", "show clock")
    for line, ago_s, way in zip(shown.splitlines(), (45, 0), ("down", "up"), strict=True):
        assert line.endswith(f" {head} Ethernet33/1 (spine01:Ethernet1/1), {tail} {way}")
        assert abs(datetime.fromisoformat(line.split()[0]).timestamp() - came_s + ago_s) < 0.1
    assert clock.splitlines()[0] in {clock_at(came_s + ago_s, "UTC") for ago_s in range(3, 30)}
    assert texts(eos, "show logging last 1 days | grep BGP") == [""]
    assert len(texts(eos, "show logging last 20 seconds")[0].splitlines()) == 1
    assert errors(eos, "show logging last 20 moons")[0] == errors(eos, "show logging last one days")[0] == 1002
    lines = ("clock timezone Asia/Tokyo", "no logging format timestamp high-resolution")
    result(eos, "configure session job", *lines, "interface Ethernet33/1", "no description", "commit")
    first = texts(eos, "show logging last 1 days")[0].splitlines()[0]
    went = datetime.fromtimestamp(came_s - 45, ZoneInfo("Asia/Tokyo"))
    assert first == f"{went:%b %e %H:%M:%S} {head} Ethernet33/1, {tail} down"
    assert texts(eos, "show clock")[0].splitlines()[0] in {
        clock_at(came_s + ago_s, "Asia/Tokyo") for ago_s in range(3, 30)
    }


def test_without_zebra_nothing_is_logged(tmp_path: Path) -> None:
    eos, node = switch_on(tmp_path)
    node.answers["zebra: show interface json"] = "zebra is not running"
    assert texts(eos, "show logging last 1 days") == [""]


def clock_at(at_s: float, zone: str) -> str:
    return f"{datetime.fromtimestamp(at_s, ZoneInfo(zone)):%a %b %e %H:%M:%S %Y}"


def stamp(at_s: float) -> str:
    """Format a time as zebra does, in this machine's zone."""
    return time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(at_s)) + f".{int(at_s % 1 * 100):02}"


def test_filters_apply_to_text(tmp_path: Path) -> None:
    eos, _ = switch_on(tmp_path)
    assert texts(eos, "show running-config | include router-id") == ["   router-id 10.255.0.1\n"]
    assert texts(eos, "show running-config | section router bfd") == [
        "router bfd\n   interval 300 min-rx 300 multiplier 3 default\n"
    ]
    assert errors(eos, "show version | wc")[0] == 1002
    assert json.loads(texts(eos, "show hostname | json")[0])["hostname"] == "leaf01"
