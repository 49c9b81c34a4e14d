"""Hand-written routing configuration: each case is a text and its parsed result, line by line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.platforms.compare import MODELS
from netkit.platforms.routing import Router

FOLDER = Path(__file__).parent / "routing_lines"
FILES = {"eos": "eos.cfg", "frr": "frr.conf", "nvue": "startup.yaml", "sonic": "config_db.json"}
CASES = [
    pytest.param(file.stem, case, id=f"{file.stem}: {case['case']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for case in yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
]


@pytest.mark.parametrize(("platform", "case"), CASES)
def test_hand_written_lines_are_parsed(platform: str, case: dict[str, Any]) -> None:
    model = MODELS[platform]
    assert model.router is not None
    assert sorted(reported(model.router(model.parse({FILES[platform]: case["text"]})))) == sorted(
        case["reads"].splitlines()
    )


def reported(router: Router) -> Iterator[str]:
    """The parsed router as lines, without its AS number and interface kinds."""
    for name, rules in router.prefix_lists.items():
        shown = (
            f"{rule.number} {'permit' if rule.is_permit else 'deny'} {rule.prefix} {rule.shortest}-{rule.longest}"
            for rule in rules
        )
        yield f"list {name}: {', '.join(shown)}"
    for name, clauses in router.route_maps.items():
        for clause in clauses:
            words = [str(clause.number), "permit" if clause.is_permit else "deny", *clause.prefix_lists]
            words += [f"if on {clause.interface}"] if clause.interface else []
            words += ["if leaving"] if clause.matches_graceful_shutdown else []
            words += ["leaving"] if clause.has_graceful_shutdown else []
            words += [f"preference {clause.local_preference}"] if clause.local_preference is not None else []
            words += [f"prepends {clause.prepends}"] if clause.prepends else []
            words += [f"repeats {clause.repeats}"] if clause.repeats else []
            words += [f"unknown {line}" for line in clause.unknown]
            yield f"map {name}: {' '.join(words)}"
    for one in (*router.neighbors, *router.external):
        words = [one.interface, str(one.remote_asn or "external"), "up" if one.is_active else "off"]
        words += [f"in {one.inbound}"] if one.inbound else []
        words += [f"out {one.outbound}"] if one.outbound else []
        words += [f"own AS {one.allowas_in}"] if one.allowas_in else []
        words += ["leaving"] if one.is_drained else []
        yield f"neighbor {' '.join(words)}"
    yield from (f"aggregate {one.prefix}{' alone' if one.is_summary_only else ''}" for one in router.aggregates)
    yield from (f"network {one}" for one in router.networks)
    for route in router.static:
        yield f"static {route.prefix} {route.via or 'dropped'}{' after BGP' if route.is_floating else ''}"
    if router.redistributed is not None:
        yield f"redistributes {router.redistributed}".rstrip()
    yield from (f"speed {name} {gbps}" for name, gbps in router.speeds.items())
    yield from (f"unknown {line}" for line in router.unknown)
