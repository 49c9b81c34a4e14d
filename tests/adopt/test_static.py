"""Static routes of switches are adopted; those that no intent expresses are left as they run."""

from pathlib import Path
from typing import Any

import pytest

from netkit.project.adopting import adopted
from tests import intents
from tests.adopt.test_round_trip import files_of
from tests.test_ipv6 import RELEASES, values

ROUTES: list[dict[str, Any]] = [
    {"prefix": "198.18.0.0/16", "discard": True},
    {"prefix": "198.19.0.0/16", "discard": True, "devices": "role=spine"},
    {"prefix": "203.0.113.0/24", "via": "10.128.0.1", "devices": "leaf01"},
]


@pytest.mark.parametrize("name", sorted(RELEASES.keys() - {"nvue-old"}))
def test_static_routes_are_adopted(name: str) -> None:
    files = files_of(intents.fabric(values(name, routing={"static": ROUTES})))
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values["routing"]
    assert isinstance(routing, dict)
    assert routing["static"] == ROUTES
    assert (found.leave, found.remaining) == ((), {})


def test_a_route_into_the_fabric_is_left() -> None:
    files = dict(files_of(intents.fabric(values("frr", routing={"static": ROUTES}))))
    strange = "ip route 10.128.0.0/9 10.128.0.1"
    files["leaf01"] = {
        **files["leaf01"],
        "frr.conf": files["leaf01"]["frr.conf"].replace("ip route 203", f"{strange}\nip route 203"),
    }
    found = adopted("again", files, {}, Path())
    routing = found.proposal.values["routing"]
    assert isinstance(routing, dict)
    assert routing["static"] == ROUTES
    assert [rule["path"] for rule in found.leave] == [f"frr.conf / {strange}"]
    (guess,) = (text for section, text in found.proposal.guesses if section == "routing")
    assert guess == (
        "1 static routes are left as they run, such as: 10.128.0.0/9 overlaps pools.loopbacks:"
        " packets to it would not take the paths of the fabric"
    )
    assert found.remaining == {}
