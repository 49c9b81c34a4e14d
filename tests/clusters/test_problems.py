"""Invalid clusters are refused, with place and remedy."""

from typing import Any

import pytest

from netkit.errors import DesignError
from tests import intents

WIDE = {"units": 4, "hosts_per_unit": 4, "spines": 4, "addresses_per_nic": 9}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "shared host": (
        {"clusters": {"kubernetes": {"unit": 1}, "slurm": {}}, "ceilings": WIDE},
        "clusters.slurm.unit: gpu01 is a node of kubernetes too; list different units for each cluster",
    ),
    "unit without hosts": (
        {"clusters": {"slurm": {"unit": "1-3"}}},
        "clusters.slurm.unit: unit 3 has no hosts; name those of units",
    ),
    "one name for all rails": (
        {"clusters": {"kubernetes": {"network": "fast"}}, "ceilings": WIDE},
        "clusters.kubernetes.network: all rails would share this name; put {rail} into it",
    ),
    "no such rail": (
        {"clusters": {"kubernetes": {"rail_modes": {7: "macvlan"}}}, "ceilings": WIDE},
        "clusters.kubernetes.rail_modes[7]: there is no rail 7; use 0 to 1",
    ),
    "subnets of two units": (
        {"clusters": {"kubernetes": {}}, "ceilings": WIDE, "attachment": "vlan"},
        (
            "clusters.kubernetes.unit: each of 2 units has its own subnet on a rail, but an address pool"
            " has one gateway; use attachment: p2p, where each node has its own, or name one unit"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_cluster_is_refused(case: str) -> None:
    changes, message = REFUSED[case]
    with pytest.raises(DesignError) as refused:
        intents.fabric(intents.values(changes))
    assert [str(problem) for problem in refused.value.problems] == [message]
