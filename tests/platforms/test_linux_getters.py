"""Output of Linux switches in the form of NAPALM getters."""

import json

import pytest

from netkit.platforms import linux_getters

ADDRESSES: list[linux_getters.Row] = [
    {"ifname": "lo", "addr_info": [{"family": "inet", "local": "10.255.0.1", "prefixlen": 32}]},
    {"ifname": "swp1s0", "addr_info": [{"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"}]},
    {"ifname": "swp2s0", "addr_info": []},
]
NEIGHBORS: list[linux_getters.Row] = [
    {"dst": "10.128.0.2", "dev": "swp1s0", "lladdr": "0c:42:a1:00:00:01", "updated": 30, "state": ["REACHABLE"]},
    {"dst": "10.128.0.6", "dev": "swp2s0", "state": ["FAILED"]},
]
ENTRIES: list[linux_getters.Row] = [
    {"mac": "0c:42:a1:00:00:01", "ifname": "swp1s0", "vlan": 10, "master": "br_default", "flags": [], "state": ""},
    {"mac": "44:38:39:00:00:01", "ifname": "br_default", "master": "br_default", "state": "permanent"},
    {"mac": "33:33:00:00:00:01", "ifname": "eth0", "flags": ["self"], "state": "permanent"},
]
ROUTES = {
    "10.255.0.9/32": [
        {
            "prefix": "10.255.0.9/32",
            "protocol": "bgp",
            "vrfName": "default",
            "selected": True,
            "distance": 20,
            "metric": 0,
            "uptime": "01:02:03",
            "nexthops": [
                {"fib": True, "ip": "fe80::2", "afi": "ipv6", "interfaceName": "swp33s0", "active": True},
                {"ip": "fe80::3", "afi": "ipv6", "interfaceName": "swp33s1"},
            ],
        }
    ]
}
ENVIRONMENT = """\
cpu  100 0 100 700 100 0 0 0 0 0
cpu  140 0 120 820 120 0 0 0 0 0
MemTotal:       16000000 kB
MemAvailable:   12000000 kB
hwmon0/name:coretemp
hwmon1/name:fan_ctrl
hwmon0/temp1_label:Package id 0
hwmon0/temp1_input:81000
hwmon0/temp1_max:80000
hwmon0/temp1_crit:100000
hwmon0/temp2_input:40500
hwmon1/fan1_input:9000
hwmon1/fan2_input:0
"""
PING = """\
PING 10.255.0.9 (10.255.0.9) 100(128) bytes of data.
108 bytes from 10.255.0.9: icmp_seq=1 ttl=63 time=0.500 ms
108 bytes from 10.255.0.9: icmp_seq=3 ttl=63 time=0.700 ms

--- 10.255.0.9 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 2030ms
rtt min/avg/max/mdev = 0.500/0.600/0.700/0.100 ms
"""


def test_addresses_are_by_interface_and_family() -> None:
    assert linux_getters.interfaces_ip(ADDRESSES) == {
        "lo": {"ipv4": {"10.255.0.1": {"prefix_length": 32}}},
        "swp1s0": {"ipv6": {"fe80::1": {"prefix_length": 64}}},
    }


def test_neighbors_without_an_address_are_left_out() -> None:
    assert linux_getters.arp_table(NEIGHBORS) == [
        {"interface": "swp1s0", "mac": "0C:42:A1:00:00:01", "ip": "10.128.0.2", "age": 30.0}
    ]


def test_entries_of_a_bridge_are_learned_or_static() -> None:
    found = linux_getters.mac_address_table(ENTRIES)
    assert [(one["mac"], one["interface"], one["vlan"], one["static"]) for one in found] == [
        ("0C:42:A1:00:00:01", "swp1s0", 10, False),
        ("44:38:39:00:00:01", "br_default", 0, True),
    ]


def test_each_next_hop_of_a_route_is_an_entry() -> None:
    hops = linux_getters.routes(json.dumps(ROUTES), "")["10.255.0.9/32"]
    assert [(hop["next_hop"], hop["selected_next_hop"], hop["inactive_reason"]) for hop in hops] == [
        ("fe80::2", True, ""),
        ("fe80::3", False, "inactive"),
    ]
    assert {(hop["protocol"], hop["age"], hop["preference"], hop["routing_table"]) for hop in hops} == {
        ("bgp", 3723, 20, "default")
    }
    assert linux_getters.routes(json.dumps(ROUTES), "static") == {}


@pytest.mark.parametrize(("uptime", "seconds"), [("1d02h03m", 93_780), ("01w2d03h", 788_400), ("", -1), ("never", -1)])
def test_the_age_of_a_route_is_in_seconds(uptime: str, seconds: int) -> None:
    route = {**ROUTES["10.255.0.9/32"][0], "uptime": uptime}
    hops = linux_getters.routes(json.dumps({"10.255.0.9/32": [route]}), "bgp")["10.255.0.9/32"]
    assert {hop["age"] for hop in hops} == {seconds}


def test_environment_has_the_kernels_values() -> None:
    found = linux_getters.environment(ENVIRONMENT)
    assert found["cpu"] == {0: {"%usage": 30.0}}
    assert found["memory"] == {"available_ram": 16_000_000, "used_ram": 4_000_000}
    assert found["temperature"] == {
        "coretemp Package id 0": {"temperature": 81.0, "is_alert": True, "is_critical": False},
        "coretemp temp2": {"temperature": 40.5, "is_alert": False, "is_critical": False},
    }
    assert found["fans"] == {"fan_ctrl fan1": {"status": True}, "fan_ctrl fan2": {"status": False}}


def test_a_ping_counts_lost_packets() -> None:
    found = linux_getters.ping_result(PING)["success"]
    assert (found["probes_sent"], found["packet_loss"]) == (3, 1)
    assert (found["rtt_min"], found["rtt_avg"], found["rtt_max"], found["rtt_stddev"]) == (0.5, 0.6, 0.7, 0.1)
    assert found["results"] == [{"ip_address": "10.255.0.9", "rtt": 0.5}, {"ip_address": "10.255.0.9", "rtt": 0.7}]


def test_a_ping_that_sends_nothing_is_an_error() -> None:
    said = "ping: nowhere: Name or service not known\n"
    assert linux_getters.ping_result(said) == {"error": "ping: nowhere: Name or service not known"}


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "3"])
def test_garbage_gives_nothing(text: str) -> None:
    assert linux_getters.routes(text, "") == {}


class Recorded(linux_getters.LinuxGetters):
    """Records the requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _printed(self, command: str) -> str:
        self.asked.append(command)
        return ""


def test_arguments_of_a_caller_are_never_a_command() -> None:
    device = Recorded()
    assert device.get_arp_table(vrf="a; reboot") == []
    assert device.ping("h; reboot", source="$(x)", count=1, vrf="v v") == {"error": "ping printed nothing"}
    assert device.get_route_to("10.0.0.1/24") == {}
    assert device.asked == [
        "ip -4 -j -s neighbour show vrf 'a; reboot'",
        "ip vrf exec 'v v' ping -n -c1 -t255 -W2 -s100 -I '$(x)' -- 'h; reboot' 2>&1; true",
        "vtysh -c 'show ip route 10.0.0.0/24 json'",
    ]
    with pytest.raises(ValueError, match="does not appear to be"):
        device.get_route_to("10.0.0.1\nconfigure")
