"""NVUE in the lab: `nv show` from readings and from real answers of FRR and lldpd."""

import json
import os
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from netkit.lab.personalities.nvue.show import ASPECTS, VIEWS
from netkit.lab.personalities.nvue.show_ports import ber
from tests.conftest import UPDATE
from tests.lab.personalities.nvue.bench import Desk, desk

FOLDER = Path(__file__).parent / "nvue"
NAMES = {"interface": "swp33s0", "platform": "swp33s0", "vrf": "swp33s0"}
PASSING = ("uptime", "kernel")


def asked(terminal: Desk) -> Iterator[str]:
    """Yield the path of every view of the release, with a name in place of `*`."""
    for said, _ in VIEWS:
        pattern, *limits = said.split(" @")
        is_new = terminal.switch.system.chassis.version >= (5, 15)
        if all(limit.startswith(">=") == is_new for limit in limits):
            yield pattern.replace("*", NAMES.get(pattern.split()[0], "-"))


def answering(folder: Path, version: str) -> Desk:
    """A switch on which FRR and lldpd answer."""
    terminal = desk(folder, version, attachment="vlan")
    answers = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
    terminal.node.answers = {command: json.dumps(answer) for command, answer in answers.items()}
    return terminal


@pytest.mark.parametrize("version", ["5.9.2", "5.16.1"])
def test_views_match_the_golden_files(version: str, tmp_path: Path) -> None:
    terminal = answering(tmp_path, version)
    shown = {path: terminal.show(path) for path in asked(terminal)}
    for path, aspects in ((path, aspects) for path, aspects in ASPECTS.items() if path in shown):
        shown |= {f"{path} --view {aspect}": terminal.show(f"{path} --view {aspect}") for aspect in sorted(aspects)}
    for path in [path for path in shown if path.partition(" --")[0] in {"interface", "interface lldp"}]:
        shown[path] = {name: shown[path][name] for name in ("lo", "swp33s0", "swp33", "vlan100") if name in shown[path]}
    shown["platform transceiver"] = {"swp33s0": shown["platform transceiver"]["swp33s0"]}
    for key in PASSING:
        shown["system"].pop(key, None)
    file = FOLDER / "views" / f"{version}.json"
    if os.environ.get(UPDATE):
        file.write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")
    assert shown == json.loads(file.read_text(encoding="utf-8"))


PARTS = ("qos/pfc-watchdog", "counters/qos", "link/phy/health", "link/mtu")


def test_details_of_all_ports_are_shown_at_once(tmp_path: Path) -> None:
    terminal = answering(tmp_path, "5.16.1")
    for part in PARTS:
        shown = terminal.show(f"interface --view=include=/*/{part}")
        *place, last = part.split("/")
        whole = terminal.show(
            " ".join(("interface swp33s0", *place, last) if last != "mtu" else ("interface swp33s0",))
        )
        found = reduce(dict.get, part.split("/"), shown["swp33s0"])
        assert found == (whole["link"]["mtu"] if last == "mtu" else whole), part
    both = terminal.show(f"interface --view=include=/*/{PARTS[0]},/*/{PARTS[3]}")["swp33s0"]
    assert (set(both), set(both["link"])) == ({"qos", "link"}, {"mtu"})


def test_older_releases_show_no_details(tmp_path: Path) -> None:
    code, printed = answering(tmp_path, "5.9.2").type("nv show interface --view=include=/*/counters/qos -o json")
    assert (code, "invalid choice" in printed) == (2, True)


@pytest.mark.parametrize(("version", "is_detailed"), [("5.11.0", True), ("5.12.0", False), ("5.16.1", False)])
def test_neighbors_are_brief_since_5_12(version: str, is_detailed: bool, tmp_path: Path) -> None:
    terminal = answering(tmp_path, version)
    detailed = terminal.show("vrf default router bgp neighbor --view detail")
    assert (terminal.show("vrf default router bgp neighbor") == detailed) is is_detailed
    assert terminal.show("vrf default router bgp neighbor swp33s0 type") == "unnumbered"


@pytest.mark.parametrize("form", ["auto", "json", "yaml", "native"])
def test_every_view_has_every_format(form: str, tmp_path: Path) -> None:
    terminal = answering(tmp_path, "5.16.1")
    paths = list(asked(terminal))
    assert len(paths) > 12
    for path in paths:
        code, printed = terminal.type(f"nv show {path} -o {form}")
        assert (code, bool(printed.strip())) == (0, True), path


def test_views_work_without_frr_and_lldpd(tmp_path: Path) -> None:
    terminal = desk(tmp_path)
    terminal.node.answers = {
        "bgpd: show bgp neighbors json": "% no such command",
        "lldpcli -f json0 show neighbors details": "[warning]",
    }
    assert terminal.show("vrf default router bgp neighbor") == {}
    assert terminal.show("interface lldp") == {}
    assert terminal.show("vrf default router bfd peers") == {}


EFFECTS = (
    (("qos pfc-watchdog robustness 5",), "qos pfc-watchdog", {"polling-interval": 100, "robustness": 5}),
    (
        ("interface swp33s0 qos pfc-watchdog state disable",),
        "interface swp33s0 qos pfc-watchdog",
        {"state": "disabled"},
    ),
    (
        (
            "qos congestion-control slow traffic-class 3 min-threshold 1000",
            "interface swp33s0 qos congestion-control profile slow",
        ),
        "interface swp33s0 qos congestion-control",
        {
            "traffic-class": {
                "3": {
                    "ecn": "enable",
                    "red": "disable",
                    "min-threshold": 1000,
                    "max-threshold": 1500000,
                    "probability": 100,
                }
            }
        },
    ),
    (("maintenance unit all-protocols mode enabled",), "maintenance", {"unit": {"all-protocols": {"mode": "enabled"}}}),
)


@pytest.mark.parametrize(("lines", "path", "wanted"), EFFECTS, ids=[path for _, path, _ in EFFECTS])
def test_a_view_shows_configured_values(lines: tuple[str, ...], path: str, wanted: object, tmp_path: Path) -> None:
    terminal = desk(tmp_path)
    assert terminal.show(path) != wanted
    for line in lines:
        assert terminal.type(f"nv set {line}")[0] == 0
    assert terminal.type("nv config apply -y") == (0, "applied_and_saved [rev_id: 3]\n")
    assert terminal.show(path) == wanted


@pytest.mark.parametrize(
    ("rate", "said"), [(0.0, "15E-255"), (2.4e-9, "24E-10"), (1e-8, "10E-9"), (3.5e-5, "35E-6"), (0.5, "50E-2")]
)
def test_error_rates_have_the_format_of_the_switch(rate: float, said: str) -> None:
    assert ber(rate) == said


def test_a_clear_resets_one_port_or_all(tmp_path: Path) -> None:
    terminal = desk(tmp_path)
    for line in ("interface swp33s0 counters", "interface swp33s0 qos roce counters", "interface counters"):
        assert terminal.type(f"nv action clear {line}") == (0, "Action succeeded\n")
    assert terminal.node.cleared == ["swp33s0", "swp33s0", ""]
