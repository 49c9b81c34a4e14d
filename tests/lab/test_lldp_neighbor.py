"""Parsing lldpcli output, complete and broken."""

import json

from hypothesis import given
from hypothesis import strategies as st

from netkit.lab.agents.lldp_daemon import Announcement, LldpChassis, LldpNeighbor, chassis, config, neighbors, platform

SHOWN = {
    "lldp": [
        {
            "interface": [
                {
                    "name": "swp1s0",
                    "via": "LLDP",
                    "chassis": [
                        {
                            "id": [{"type": "mac", "value": "02:00:00:00:00:01"}],
                            "name": [{"value": "spine01"}],
                            "descr": [{"value": "a switch"}],
                        }
                    ],
                    "port": [{"id": [{"type": "ifname", "value": "swp9s0"}], "descr": [{"value": "to leaf01"}]}],
                },
                {"name": "swp2s0"},
                {"via": "LLDP"},
            ]
        }
    ]
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lldp", "interface", "name", "chassis", "id", "value", "type", "local-chassis", "config"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def test_neighbors_are_parsed_with_missing_values_left_empty() -> None:
    assert neighbors(json.dumps(SHOWN)) == (
        LldpNeighbor(
            "swp1s0", LldpChassis("mac", "02:00:00:00:00:01", "spine01", "a switch"), "ifname", "swp9s0", "to leaf01"
        ),
        LldpNeighbor("swp2s0", LldpChassis(), "", "", ""),
    )


@given(st.text() | JSON.map(json.dumps))
def test_no_output_breaks_the_parsers(text: str) -> None:
    assert all(neighbor.interface for neighbor in neighbors(text))
    assert isinstance(chassis(text), LldpChassis)
    assert isinstance(platform(text), str)


def test_a_port_name_is_listed_only_if_it_differs_from_the_interface() -> None:
    ports = (Announcement("et1_1", "Ethernet1/1", 'a "b" \\'), Announcement("swp1", "swp1"), Announcement("rail0"))
    assert config("leaf", ports, 5).splitlines() == [
        'configure system hostname "leaf"',
        "configure lldp tx-interval 5",
        "configure lldp portidsubtype ifname",
        'configure ports et1_1 lldp portidsubtype local "Ethernet1/1"',
        'configure ports et1_1 lldp portdescription "a \\"b\\" \\\\"',
    ]
    assert config("gpu", (Announcement("rail0"),), 5).splitlines()[2:] == []
