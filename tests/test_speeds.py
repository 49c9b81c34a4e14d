"""Units whose hosts have NICs of another speed: their leaves split cages in another way."""

from typing import Any

import pytest

from netkit.errors import NetkitError
from netkit.render import Engine, render
from tests import intents
from tests.plan.scenes import VERSIONS

PCI = ["0000:05:00.0", "0000:1d:00.0"]
FASTER: dict[str, Any] = {
    "unit": 2,
    "hosts": 2,
    "host_model": "hgx-b300-generic",
    "host_breakout": "1x800G",
    "host_media": "800G-DR8",
}
MIXED: dict[str, Any] = {
    "units": [{"unit": 1, "hosts": 2}, FASTER],
    "hosts": {"pci_by_model": {"hgx-b300-generic": PCI}},
}


@pytest.mark.parametrize("platform", ["nvue", "sonic", "eos"])
def test_leaves_of_a_unit_have_host_ports_of_their_own_speed(platform: str) -> None:
    version = VERSIONS[platform]
    usual = intents.fabric(intents.on_platform(platform, version))
    fabric = intents.fabric(intents.on_platform(platform, version, MIXED))
    leaves, before = fabric.tier("leaf"), usual.tier("leaf")
    assert leaves[:2] == before[:2]
    assert fabric.tier("spine") == usual.tier("spine")
    for leaf, was in zip(leaves[2:], before[2:], strict=True):
        found = [port for port in leaf.ports if port.role == "host"]
        assert [(port.cage, port.speed_gbps, port.profile.cable.media) for port in found] == [
            (1, 800, "800G-DR8"),
            (2, 800, "800G-DR8"),
        ]
        assert [port for port in leaf.ports if port.role == "up"] == [port for port in was.ports if port.role == "up"]
    host = fabric.hosts[2]
    assert [(nic.pci, nic.leaf_port) for nic in host.nics] == [
        (PCI[0], leaves[2].ports[0].name),
        (PCI[1], leaves[3].ports[0].name),
    ]
    assert all(device.files for device in render(fabric, (*fabric.switches, *fabric.hosts), Engine()))


def test_a_leaf_with_a_model_of_its_own_splits_cages_as_its_unit() -> None:
    row = {"role": "leaf", "unit": 2, "rail": 0, "model": "SN5610"}
    fabric = intents.fabric(intents.values({**MIXED, "tables": {"devices": [row]}}))
    own, other = fabric.tier("leaf")[2:]
    assert (own.model.name, other.model.name) == ("SN5610", "SN5600")
    assert {port.speed_gbps for leaf in (own, other) for port in leaf.ports if port.role == "host"} == {800}


def test_a_cable_of_a_unit_has_media_of_its_speed() -> None:
    def media(name: str) -> str:
        row = {"device": "gpu05", "port": "rail0", "peer": "leaf03", "media": name}
        changes = {**MIXED, "ceilings": {"hosts_per_unit": 4}, "tables": {"cables": [row]}}
        port = intents.fabric(intents.values(changes)).switch("leaf03").ports[0]
        return port.profile.cable.media

    assert media("800G-DR8") == "800G-DR8"
    with pytest.raises(NetkitError) as refused:
        media("800G-2xDR4")
    assert [problem.message for problem in refused.value.problems] == [
        "800G-2xDR4 is for cages of 2x400G, this one is split as 1x800G"
    ]


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ({"host_breakout": "1x25G"}, "SN5600 has no breakout 1x25G"),
        ({"host_media": "800G-2xDR4"}, "800G-2xDR4 carries 400G a port, the link runs at 800G"),
        ({"host_media": None}, "800G-2xDR4 carries 400G a port, the link runs at 800G"),
        ({"host_media": "800G-DR9"}, "no media '800G-DR9'"),
        ({"host_cable_m": 2000}, "800G-DR8 reaches 500 m, the cable is 2000 m"),
        ({"host_model": None}, "the NICs of dgx-h100 run at 400G, the leaves' host ports at 800G"),
        (
            {"host_breakout": None, "host_media": None},
            "the NICs of hgx-b300-generic run at 800G, the leaves' host ports at 400G",
        ),
    ],
)
def test_what_does_not_fit_a_unit_is_refused_at_the_unit(unit: dict[str, Any], message: str) -> None:
    own = {key: value for key, value in (FASTER | unit).items() if value is not None}
    changes = {**MIXED, "units": [{"unit": 1, "hosts": 2}, own]}
    if "host_model" not in own:
        changes["hosts"] = {}
    with pytest.raises(NetkitError) as refused:
        intents.fabric(intents.values(changes))
    assert [problem.message for problem in refused.value.problems] == [message]
    assert all(problem.path[:2] == ("units", 1) for problem in refused.value.problems)
