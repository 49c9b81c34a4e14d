"""Diagrams: their content, that browsers, Graphviz and XML parsers accept them, and that no name becomes syntax."""

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from netkit.design import Fabric
from netkit.design.drawing import MOST, draw
from netkit.project.project import Project
from netkit.report.diagram import dot, mermaid, svg
from tests import intents
from tests.command import assert_refused, run

FABRICS = ("reference", "superpod", "mixed", "brownfield")
NS = "{http://www.w3.org/2000/svg}"
HOSTILE = 'a"b</text>\\<script>]&; |end'
SYMBOL = re.compile(r'\s+n\d+\["[^"\[\]|<>]*(?:<br/>[^"\[\]|<>]*)*"\]')
MERMAID = re.compile(
    rf'flowchart TB|{SYMBOL.pattern}|\s+subgraph box[_\d]+\["[^"\[\]|<>]*"\]|\s+end'
    r'|\s+n\d+ ---(?:\|"\d+ × [\dG/]+"\|)? n\d+|\s+linkStyle \d+(?:,\d+)* stroke:#[0-9a-f]{6}'
)


def fabric(name: str) -> Fabric:
    return Project.open(Path("inventory") / name).fabric


def whole(one: Fabric) -> set[str]:
    return set(one.names)


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("by", ["unit", "rack"])
def test_every_device_and_cable_is_drawn_once(name: str, by: str) -> None:
    one = fabric(name)
    drawing = draw(one, whole(one), "rack" if by == "rack" else "unit")
    assert Counter(device for symbol in drawing.symbols for device in symbol.devices) == Counter(one.names)
    assert sum(line.cables for line in drawing.lines) == sum(1 for _ in one.links())


def test_a_large_fabric_is_summarised() -> None:
    one = fabric("superpod")
    drawing = draw(one, whole(one))
    assert [(symbol.title, symbol.box) for symbol in drawing.symbols] == [
        ("32 spines", ()),
        *[("15 leaves", ("units 1-15",))] * 8,
        ("480 hosts", ("units 1-15",)),
    ]
    assert {line.cables for line in drawing.lines} == {480}
    assert len(one.hosts) > MOST["host"]


@pytest.mark.parametrize("name", [*FABRICS, "training-cluster", "hgx-256", "training-800g"])
def test_no_symbol_or_caption_covers_another(name: str) -> None:
    one = fabric(name)
    root = ElementTree.fromstring(svg(draw(one, whole(one))))  # noqa: S314 (written by netkit)
    symbols = [
        tuple(float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        for group in root.iter(f"{NS}g")
        for rect in list(group.iter(f"{NS}rect"))[-1:]
    ]
    captions = []
    for each in (text for text in root.iter(f"{NS}text") if text.attrib["class"] == "c"):
        width = 5.9 * len(each.text or "")
        captions.append((float(each.attrib["x"]) - width / 2, float(each.attrib["y"]) - 9, width, 10.0))
    places = [*symbols, *captions]
    assert [
        (a, b)
        for number, a in enumerate(places)
        for b in places[:number]
        if a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
    ] == []
    assert len(symbols) == len(draw(one, whole(one)).symbols)


def test_networks_are_drawn_below_the_hosts_that_use_them() -> None:
    one = fabric("hgx-256")
    drawing = draw(one, whole(one))
    roles = {symbol.id: symbol.role for symbol in drawing.symbols}
    below = Counter((roles[line.lower], roles[line.upper], line.cables) for line in drawing.lines)
    assert {ends: count for ends, count in below.items() if "storage" in ends} == {
        ("storage", "host", 16): 4,
        ("storage", "storage", 2): 1,
    }


def test_many_racks_are_summarised_on_a_page_that_holds_all_texts() -> None:
    one = fabric("superpod")
    one = replace(
        one,
        switches=tuple(replace(each, rack=f"{each.role[0]}{each.unit or each.slot // 17:02}") for each in one.switches),
        hosts=tuple(replace(each, rack=f"h{each.unit:02}-{each.slot % 8}") for each in one.hosts),
    )
    drawing = draw(one, whole(one), "rack")
    assert [(symbol.title, symbol.box) for symbol in drawing.symbols] == [
        ("32 spines", ("2 racks: s00 … s01",)),
        ("120 leaves", ("15 racks: l01 … l15",)),
        ("480 hosts", ("120 racks: h01-0 … h15-7",)),
    ]
    assert Counter(device for symbol in drawing.symbols for device in symbol.devices) == Counter(one.names)
    root = ElementTree.fromstring(svg(drawing))  # noqa: S314 (written by netkit)
    width = float(root.attrib["width"])
    texts = [each for each in root.iter("{http://www.w3.org/2000/svg}text") if "text-anchor" not in each.attrib]
    assert [each.text for each in texts][-8:] == [f"rail {rail}" for rail in range(8)]
    assert all(float(each.attrib["x"]) + 6 * len(each.text or "") <= width for each in texts)


@pytest.mark.parametrize("name", FABRICS)
def test_svg_stays_within_its_page(name: str) -> None:
    one = fabric(name)
    root = ElementTree.fromstring(svg(draw(one, whole(one))))  # noqa: S314 (written by netkit)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [
        tuple(float(each.attrib[key]) for key in ("x", "y", "width", "height"))
        for each in root.iter("{http://www.w3.org/2000/svg}rect")
        if "x" in each.attrib
    ]
    assert len(boxes) > 10
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)


@pytest.mark.parametrize("name", FABRICS)
def test_mermaid_has_only_known_lines(name: str) -> None:
    one = fabric(name)
    lines = mermaid(draw(one, whole(one))).splitlines()
    assert [line for line in lines if not MERMAID.fullmatch(line)] == []


def test_names_are_text_in_every_format() -> None:
    one = replace(intents.fabric(intents.values()), name=HOSTILE)
    one = replace(one, switches=tuple(replace(switch, rack=HOSTILE) for switch in one.switches))
    drawing = draw(one, whole(one), "rack")
    root = ElementTree.fromstring(svg(drawing))  # noqa: S314 (written by netkit)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert HOSTILE in texts
    assert f"rack {HOSTILE}" in texts
    assert [line for line in mermaid(drawing).splitlines() if not MERMAID.fullmatch(line)] == []
    assert 'a\\"b</text>\\\\<script>' in dot(drawing)


@pytest.mark.skipif(not shutil.which("dot"), reason="needs graphviz")
@pytest.mark.parametrize("name", FABRICS)
def test_graphviz_accepts_the_graph(name: str) -> None:
    one = fabric(name)
    drawing = draw(replace(one, name=HOSTILE), whole(one))
    done = subprocess.run(["dot", "-Tplain"], input=dot(drawing), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    kinds = Counter(line.split()[0] for line in done.stdout.splitlines())
    assert (kinds["node"], kinds["edge"]) == (len(drawing.symbols), len(drawing.lines))


def test_the_file_extension_selects_the_format(tmp_path: Path) -> None:
    for name, kind in (("a.svg", "svg"), ("a.dot", "dot"), ("a.gv", "dot"), ("a.mmd", "mermaid")):
        written = run("design", "--fabric", "inventory/mixed", "--diagram", tmp_path / name)
        assert (written.returncode, written.stdout) == (0, "")
        printed = run("design", "--fabric", "inventory/mixed", "--diagram", kind)
        assert (tmp_path / name).read_text(encoding="utf-8") == printed.stdout


def test_undrawable_requests_are_refused() -> None:
    assert_refused(run("design", "--fabric", "inventory/reference", "--diagram", "a.png"), "unknown kind", ".svg")
    rack = ("--diagram", "svg", "--by", "rack")
    assert_refused(run("design", "--fabric", "inventory/reference", *rack), "no device has a rack", "table of devices")
    assert_refused(run("design", "--fabric", "inventory/reference", "--diagram", "svg", "--by", "row"), "unit or rack")
    assert_refused(run("design", "--fabric", "inventory/reference", "--by", "rack"), "--by applies to --diagram")
