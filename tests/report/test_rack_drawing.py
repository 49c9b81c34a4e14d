"""Elevations of racks and labels of cables: complete, without overlaps, and no text of a user becomes markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.design.listing import CableRow, cabling
from netkit.design.racks import Rack, RackDevice
from netkit.hardware import Catalog
from netkit.report.rack_drawing import elevation_svg, elevation_text, labels_page
from tests import intents
from tests.command import assert_refused, run

HOSTILE = "<script>alert('x')</script>&\"]]>"
SVG = "{http://www.w3.org/2000/svg}"
ROWS = """role,unit,rail,slot,name,rack,rack_unit
leaf,1,0,,ls-1,A07,41
leaf,1,1,,ls-2,A07,39
spine,,,1,sp-1,B01,30
spine,,,2,sp-2,B01,
host,1,,1,gpu-1,A07,4
"""
TEXT = """\
rack A07
  42-41  ls-1   SN5600
  40-39  ls-2   SN5600
  4      gpu-1  dgx-h100  height not known

rack B01
  31-30  sp-1  SN5600
  ?      sp-2  SN5600  unit not given
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "f"
    assert run("init", found, "--leaves", "2", "--spines", "2", "--hosts-per-unit", "2").returncode == 0
    (found / "devices.csv").write_text(ROWS, encoding="utf-8")
    with (found / "fabric.yaml").open("a", encoding="utf-8") as file:
        file.write("tables: {devices: devices.csv}\n")
    return found


def test_the_racks_of_a_fabric(folder: Path) -> None:
    here = ("design", "--fabric", folder, "--racks")
    assert run(*here, "text").stdout == TEXT
    assert run(*here, "text", "--limit", "sp-1").stdout == TEXT.partition("\n\n")[2]
    file = folder / "racks.svg"
    assert run(*here, file).returncode == 0
    assert file.read_text(encoding="utf-8") == run(*here, "svg").stdout
    assert_refused(run(*here, "racks.pdf"), "unknown kind of elevation 'racks.pdf'", ".svg, .txt")
    assert_refused(run(*here, "svg", "--cabling"), "exclude each other")
    assert_refused(run("design", "--fabric", "inventory/mixed", "--racks", "svg"), "no device has a rack")


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 8))), min_size=1, max_size=12))
def test_boxes_of_devices_neither_overlap_nor_leave_their_rack(steps: list[tuple[int, int | None]]) -> None:
    devices, unit = [], 1
    for gap, height in steps:
        devices.append(RackDevice(f"{HOSTILE}{unit}", "leaf", HOSTILE, unit + gap, height))
        unit = devices[-1].top + 1
    rack = Rack(HOSTILE, tuple(devices), (replace(devices[0], unit=0),))
    root = ElementTree.fromstring(elevation_svg([rack] * 8))  # noqa: S314 (written by netkit)
    assert not list(root.iter("script"))
    assert not list(root.iter(f"{SVG}script"))
    frames = [_box(one) for one in root.iter(f"{SVG}rect") if one.get("class") == "rack"]
    boxes = [_box(one) for one in _filled(root)]
    assert (len(frames), len(boxes)) == (8, 8 * len(devices))
    for x, y, bottom in frames:
        within = sorted((box[1], box[2]) for box in boxes if box[0] == x and y <= box[1] and box[2] <= bottom)
        assert len(within) == len(devices)
        assert all(above[1] <= below[0] for above, below in pairwise(within))
    ends = {x + 6: x + float(one.get("width", "")) for (x, *_), one in zip(boxes, _filled(root), strict=True)}
    named = [one for one in root.iter(f"{SVG}text") if one.get("class") is None]
    assert all(
        float(one.get("x", "")) + 6.2 * len("".join(one.itertext())) < ends[float(one.get("x", ""))] for one in named
    )
    assert all(HOSTILE in "".join(one.itertext()) for one in root.iter(f"{SVG}text") if one.get("class") != "u")
    assert elevation_text([rack]).count(HOSTILE) == 1 + 2 * (len(devices) + 1)


def _filled(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in root.iter(f"{SVG}rect") if one.get("class", "").startswith("n")]


def _box(one: ElementTree.Element) -> tuple[float, float, float]:
    x, y, height = (float(one.get(key, "")) for key in ("x", "y", "height"))
    return x, y, y + height


class _Labels(HTMLParser):
    """The texts of all labels, and the elements of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 (the signature of the parser)
        self.tags.add(tag)
        if tag == "section":
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += f"{data}\n"


def labels(cables: list[CableRow]) -> _Labels:
    found = _Labels()
    found.feed(labels_page(HOSTILE, cables))
    return found


def test_each_cable_has_a_label_for_each_end_that_names_both() -> None:
    cables = list(cabling(intents.fabric(intents.values({})), Catalog().media()))
    found = labels(cables)
    assert len(found.texts) == 2 * len(cables)
    for cable, near, far in zip(cables, found.texts[::2], found.texts[1::2], strict=True):
        ends = (f"{cable.from_device} {cable.from_port} ", f"{cable.to_device} {cable.to_port} ")
        for text, (this, other) in ((near, ends), (far, ends[::-1])):
            lines = text.split("\n")
            assert lines[0] == cable.label
            assert lines[1].startswith(this)
            assert lines[2].startswith(f"to {other}")
            assert lines[3] == f"{cable.media}, {cable.length_m:g} m, {cable.speed_gbps}G"
    hostile = labels([replace(cables[0], label=HOSTILE, from_rack=HOSTILE, from_rack_unit="7")])
    assert "script" not in hostile.tags
    assert all(text.count(HOSTILE) == 2 for text in hostile.texts[:2])


def test_labels_have_the_location_of_both_ends(folder: Path) -> None:
    page = run("design", "--fabric", folder, "--labels", "html", "--limit", "sp-2").stdout
    assert len(re.findall("<section>", page)) == 4
    assert "ls-1 swp33s1 (cage 33), rack A07, unit 41" in page
    assert "sp-2 swp1s0 (cage 1), rack B01, unit not given" in page


def test_an_invalid_height_is_refused(folder: Path) -> None:
    shipped = Path("netkit/hardware/data/switches/SN5600.yaml").read_text(encoding="utf-8")
    (folder / "models" / "switches").mkdir(parents=True)
    file = folder / "models" / "switches" / "SN5600.yaml"
    file.write_text(shipped.replace("height_u: {value: 2,", "height_u: {value: two,"), encoding="utf-8")
    assert_refused(run("validate", "--fabric", folder), "height_u is 'two', not a number of rack units")
    file.write_text(shipped.replace("height_u: {value: 2, source: sn5000-hw}", ""), encoding="utf-8")
    assert "41  ls-1   SN5600    height not known" in run("design", "--fabric", folder, "--racks", "text").stdout
