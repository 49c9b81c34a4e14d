"""The fabric of the speed budget through pyavd, as its user would do it. It runs under `.bench-venv`, not `.venv`.

Inputs are AVD's own: unnumbered eBGP between leaves and spines, routed host ports, one QoS profile with PFC, its
watchdog, ECN and a strict queue on every port. `--inputs own` gives every device a copy of the group's variables,
validated and loaded, which is what AVD's Ansible roles do; `--inputs shared` loads them once for all devices.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyavd import (  # type: ignore[import-not-found]  # it lives in a virtual environment of its own
    get_avd_facts,
    get_device_config,
    get_device_structured_config,
    validate_inputs,
)
from pyavd.api.schemas import AVDDesign  # type: ignore[import-not-found]  # the same

RAILS = 8
SPEED = "400g-4"
ROCE = {
    "name": "ROCE",
    "trust": "dscp",
    "priority_flow_control": {
        "enabled": True,
        "watchdog": {
            "enabled": True,
            "action": "drop",
            "timer": {"timeout": "0.2", "polling_interval": "0.1", "recovery_time": "0.2", "forced": True},
        },
        "priorities": [{"priority": 3, "no_drop": True}],
    },
    "uc_tx_queues": [
        {"id": 0, "bandwidth_percent": 10},
        {
            "id": 3,
            "bandwidth_percent": 90,
            "random_detect": {
                "ecn": {
                    "count": True,
                    "threshold": {"units": "kbytes", "min": 2000, "max": 10000, "max_probability": 5},
                }
            },
        },
        {"id": 6, "priority": "priority strict", "shape": {"rate": "10 percent"}},
    ],
}


def ports(first_cage: int, count: int) -> list[str]:
    """The names of 400G ports, two per cage."""
    return [f"Ethernet{first_cage + index // 2}/{1 + 4 * (index % 2)}" for index in range(count)]


def variables(leaves: int, spines: int, hosts: int) -> dict[str, Any]:
    names = [f"spine{slot:02}" for slot in range(1, spines + 1)]
    downlinks = ports(1, leaves)
    return {
        "fabric_name": "BENCH",
        "underlay_routing_protocol": "ebgp",
        "overlay_routing_protocol": "none",
        "underlay_rfc5549": True,
        "p2p_uplinks_mtu": 9214,
        "p2p_uplinks_qos_profile": ROCE["name"],
        "bgp_peer_groups": {"ipv4_underlay_peers": {"bfd": True}},
        "l3_interface_profiles": [{"profile": "HOST", "speed": SPEED, "qos_profile": ROCE["name"]}],
        "custom_structured_configuration_qos_profiles": [ROCE],
        "custom_structured_configuration_qos": {
            "map": {"dscp": ["26 to traffic-class 3", "48 to traffic-class 6"]},
            "random_detect": {"ecn": {"allow_non_ect": {"enabled": True}}},
        },
        "default_node_types": [
            {"node_type": "spine", "match_hostnames": ["spine.*"]},
            {"node_type": "l3leaf", "match_hostnames": ["leaf.*"]},
        ],
        "mgmt_gateway": "198.18.0.1",
        "ntp_settings": {"servers": [{"name": "198.18.0.2"}, {"name": "198.18.0.3"}]},
        "spine": {
            "defaults": {"platform": "7060X6", "loopback_ipv4_pool": "10.255.2.0/24", "bgp_as": "4200000001"},
            "nodes": [
                {"name": name, "id": slot, "mgmt_ip": f"198.18.2.{slot + 9}/22"} for slot, name in enumerate(names, 1)
            ],
        },
        "l3leaf": {
            "defaults": {
                "platform": "7060X6",
                "vtep": False,
                "loopback_ipv4_pool": "10.255.0.0/24",
                "uplink_switches": names,
                "uplink_interfaces": ports(33, spines),
                "uplink_interface_speed": SPEED,
            },
            "nodes": [leaf(number, [downlinks[number]] * spines, hosts) for number in range(leaves)],
        },
    }


def leaf(number: int, uplinks: list[str], hosts: int) -> dict[str, Any]:
    unit, rail = number // RAILS + 1, number % RAILS
    return {
        "name": f"leaf-u{unit:02}-r{rail}",
        "id": number + 1,
        "bgp_as": str(4_200_010_000 + number),
        "mgmt_ip": f"198.18.0.{number + 10}/22",
        "uplink_switch_interfaces": uplinks,
        "l3_interfaces": [
            {
                "profile": "HOST",
                "name": name,
                "description": f"gpu-u{unit:02}-{slot + 1:02}:rail{rail}",
                "ip_address": f"10.128.{number // 4}.{number % 4 * 64 + 2 * slot}/31",
                "peer": f"gpu-u{unit:02}-{slot + 1:02}",
                "peer_interface": f"rail{rail}",
            }
            for slot, name in enumerate(ports(1, hosts))
        ],
    }


def load(values: Mapping[str, Any]) -> Any:
    """Validate variables as pyavd requires, and load them."""
    result = validate_inputs(values)
    if result.validated_data is None:
        raise SystemExit(f"pyavd refuses the inputs: {result.validation_result.violations[:3]}")
    # pyavd documents that inputs belong in an AVDDesign, and has no public way to make one; its own roles do this.
    # The public way, handing over plain dictionaries, loads each of them twice and is slower.
    return AVDDesign._from_dict(result.validated_data)  # noqa: SLF001


def main() -> None:
    """Write the configuration of every switch."""
    parser = argparse.ArgumentParser()
    for name in ("--leaves", "--spines", "--hosts"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--inputs", choices=("own", "shared"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    values = variables(given.leaves, given.spines, given.hosts)
    devices = [node["name"] for role in ("l3leaf", "spine") for node in values[role]["nodes"]]
    shared = load(values) if given.inputs == "shared" else None
    inputs = {device: shared or load(values) for device in devices}
    facts = get_avd_facts(inputs)
    for device in devices:
        text = get_device_config(get_device_structured_config(device, inputs[device], facts))
        folder = given.out / device
        folder.mkdir(parents=True)
        (folder / "eos.cfg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
