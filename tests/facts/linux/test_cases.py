"""Facts from the output of hosts: real forms, older and newer ones, and arbitrary input."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.facts import Absent, Facts
from netkit.facts.counter import COUNTERS
from netkit.facts.optic import Lane, Module
from netkit.observe.assemble import facts
from netkit.observe.collector import target
from netkit.platforms.linux.facts import command, hardware, interface, optic, views
from netkit.platforms.linux.facts.optic import in_use
from netkit.platforms.linux.facts.reading import LAST
from netkit.platforms.view import Reply, SubjectNic, ViewSubject
from tests.facts.linux.case import ASKED, CASES, DEVICES, FOLDER, PCIS, READERS, SENT, read

SUBJECT = ViewSubject(
    "gpu01",
    nics=tuple(SubjectNic(name, pci, f"mlx5_{pci[5:7]}") for name, pci in PCIS.items()),
    lookups=ASKED,
    probes=tuple(dict.fromkeys(one[:3] for one in SENT)),
    probe_bytes=(64, 9000),
    lossless=(3,),
)
VIEWS = views(SUBJECT)
SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    *("lldp", "interface", "name", "age", "chassis", "port", "id", "descr", "value", "result", "output", "Module Info"),
    *("Operational Info", "Physical Counters and BER Info", "Histogram of FEC Errors", "Bin 1", "values", "ifname"),
    *("Identifier", "Rx Power Current [dBm]", "Rx LOS [per lane]", "Raw Physical BER", "addr_info", "flags", "mtu"),
    *("dev", "gateway", "via", "host", "metric", "nexthops"),
)
NESTED = st.recursive(
    SHAPES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_an_output_is_parsed_as_its_file_says(case: Path) -> None:
    expected = json.loads(case.with_suffix(".json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(read(case.parent.name, case.read_text(encoding="utf-8")))) == expected


def test_every_parser_has_cases() -> None:
    assert {case.parent.name for case in CASES} == set(READERS)


def everywhere(text: str) -> None:
    """Run every parser and every view on a text; none may raise, and each yields its kinds or a reason."""
    for reader in READERS.values():
        reader(text)
    for view in VIEWS:
        found = view.parse(*(text for _ in view.commands))
        for kind in view.yields:
            assert getattr(found, kind) != getattr(Facts(), kind), kind


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    everywhere(text)


@given(NESTED)
def test_no_document_breaks_a_parser(found: Any) -> None:
    everywhere(json.dumps(found))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        '{"lldp":' * 2000 + "1" + "}" * 2000,
        '{"lldp": [{"interface": [{"name": "rail0", "age": NaN}]}]}',
        '[{"ifname": "rail0", "mtu": 1e999, "flags": [NaN], "addr_info": [{"local": "1", "prefixlen": Infinity}]}]',
        f'{{"result": {{"output": {{"Module Info": {{"Identifier": "x", "Temperature [C]": "{"9" * 5000}"}}}}}}}}',
        f"#@ rail0\n rx_bytes_phy: {'9' * 5000}\n#= 0\n",
        "#@ rail0\n Identifier : x\n Laser tx bias current (Channel 99) : nan mA\n Module temperature : inf\n#= 0\n",
        "\x1b[31m#@ rail0\x1b[0m\n\x00\ufffd\n#= 0",
        "Données : oui\nState : Aktiv\nÄnderung: ja\n",
    ],
)
def test_no_extreme_value_breaks_a_parser(text: str) -> None:
    everywhere(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_no_truncated_or_shuffled_output_breaks_a_parser(case: Path) -> None:
    text, reader = case.read_text(encoding="utf-8"), READERS[case.parent.name]
    for end in range(0, len(text), 5):
        reader(text[:end])
    dice = random.Random(7)  # noqa: S311 - the same mixtures each time
    for _ in range(100):
        lines = text.splitlines(keepends=True)
        dice.shuffle(lines)
        reader("".join(lines))


def test_yielded_kinds_have_known_names() -> None:
    text = Path(CASES[0].parent.parent / "statistics/physical.txt").read_text(encoding="utf-8")
    assert set(read("statistics", text)) <= set(COUNTERS)


def test_colours_change_nothing() -> None:
    text = (CASES[0].parent.parent / "mlnx_qos/os_controlled.txt").read_text(encoding="utf-8")
    coloured = "".join(f"\x1b[36m{line}\x1b[0m\n" for line in text.splitlines())
    assert hardware.parse_mlnx_qos(coloured) == hardware.parse_mlnx_qos(text)


@pytest.mark.parametrize("text", ["", "#@ 4\n#= 127\n#@ 6\n[]\n#= 0\n", '#@ 4\n[{"dst": "default", \n#= 0\n'])
def test_unreported_default_routes_are_not_an_empty_list(text: str) -> None:
    assert interface.default_routes(text) is None


def test_incomplete_lookups_are_absent() -> None:
    assert interface.lookups("[]\n#@ complaints\n", ASKED) == Absent("ip route get did not answer every lookup")
    assert isinstance(interface.lookups("", ASKED), Absent)


@pytest.mark.parametrize(
    ("lit", "parsed", "kept"), [(4, None, 4), (3, None, 4), (1, None, 1), (2, 4, 4), (0, 4, 4), (0, None, 8), (8, 4, 8)]
)
def test_lanes_in_use_are_those_of_the_media_or_up_to_the_last_lit_one(lit: int, parsed: int | None, kept: int) -> None:
    lanes = {number: Lane(-40.0, -40.0, 50.0 if number <= lit else 0.0) for number in range(1, 9)}
    assert list(in_use(lanes, parsed)) == list(range(1, kept + 1))


def test_of_a_module_with_two_ports_only_the_ports_own_lanes_count() -> None:
    memory = Module(part="M", lanes={number: Lane(rx_dbm=1.25) for number in range(1, 9)})
    firmware = Module(part="?", identifier="OSFP 2xDR4", lanes={number: Lane(rx_dbm=1.0) for number in range(1, 5)})
    assert optic.merged(memory, firmware) == replace(firmware, part="M")
    assert optic.merged(firmware, Module()) == firmware
    precise = {number: Lane(rx_dbm=1.25) for number in range(1, 5)}
    assert optic.merged(Module(lanes=precise), firmware).lanes == precise


def test_zero_light_is_dark_and_garbage_is_not_reported() -> None:
    values = ("0.0000 mW / -inf dBm", "0.0001 mW / -40.00 dBm", "1.0000 mW / 0.00 dBm", "?", "x dBm", "0 mW / nan dBm")
    assert [optic.light(value) for value in values] == [-40.0, -40.0, 0.0, None, None, None]


def _replies() -> dict[str, Reply]:
    """Answers about NICs, all different where the kernel and a tool know the same."""
    files = {LAST: ""} | {f"{DEVICES}/{pci}/net/{name}/address": "02:00:00:00:00:01" for name, pci in PCIS.items()}
    link = json.dumps([{"ifname": "rail0", "mtu": 9000, "operstate": "UP", "flags": ["UP"]}])
    texts = {
        command.files(SUBJECT): "".join(f"{path}\0{text}\n" for path, text in files.items()),
        command.ADDRESSES: link,
        command.fec(SUBJECT): "#@ rail0\nActive FEC encoding: RS\n#= 0\n#@ rail1\nActive FEC encoding: Off\n#= 0\n",
        command.module(SUBJECT): (FOLDER / "modules" / "every_kind.txt").read_text(encoding="utf-8"),
        command.mlxlink(SUBJECT.nics[0]): (FOLDER / "mlxlink" / "optic_400g.txt").read_text(encoding="utf-8"),
        command.firmware(SUBJECT.nics[1]): (FOLDER / "mlxconfig" / "query.txt").read_text(encoding="utf-8"),
    }
    asked = {one for view in VIEWS for one in view.commands}
    return {one: Reply(texts[one]) if one in texts else Reply("", "exit code 127") for one in asked}


def test_quick_views_beside_costly_ones_give_nothing_more() -> None:
    asked, replies = target("linux", SUBJECT).views, _replies()
    left = {(view.commands, view.yields) for view in asked}
    skipped = [view for view in VIEWS if (view.commands, view.yields) not in left]
    assert sorted(name for view in skipped for name in view.yields) == ["interfaces", "lines", "modules", "nics"]
    assert target("linux", SUBJECT, is_light=True).views[-1].yields == VIEWS[-1].yields
    for failing in ("", *replies):
        found = {**replies, failing: Reply("", "does not end")}
        assert facts(asked, found) == facts(VIEWS, found), failing
    whole = facts(asked, replies)
    assert not any(isinstance(one, Absent) for one in (whole.interfaces, whole.lines, whole.modules, whole.nics))
