"""The topology file of NCCL: parsed by the rules of NCCL's own parser, and equal to the design and the host model."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.design import Fabric
from netkit.errors import HardwareError
from netkit.hardware import Catalog
from netkit.hardware.catalog import SHIPPED
from netkit.platforms.linux.view_nic import nearest_gpu
from netkit.render import Engine
from netkit.render.nccl_topology import LINK_SPEEDS, lacking
from netkit.render.render import render_clusters
from tests import intents
from tests.clusters import manifests
from tests.command import run
from tests.conftest import Golden

FILE = "jobs/nccl-topo.xml"
PIECE = re.compile(
    r'[ \n\r]*(?:<!-- (?P<note>.*?)-->|</(?P<end>\w+)>|<(?P<name>\w+)(?P<given>(?: \w+="[^"]*")*)(?P<whole>/?)>)'
)
INSIDE = {"": {"system"}, "system": {"cpu"}, "cpu": {"pci"}, "pci": {"pci"}}
"""The elements in the files; NCCL ignores others."""
NEEDED = {"system": {"version"}, "cpu": {"numaid"}, "pci": {"busid", "class", "link_speed", "link_width"}}
SWITCH, GPU, NIC = "0x060400", "0x030200", "0x020000"
LONGEST, MOST = 254, 16


@dataclass
class Element:
    name: str
    given: Mapping[str, str] = field(default_factory=dict)
    inner: list["Element"] = field(default_factory=list)

    def below(self) -> Iterator["Element"]:
        for one in self.inner:
            yield one
            yield from one.below()


def read(text: str) -> Element:
    """Parse a file as src/graph/xml.cc does: no declaration, no tabs, one blank before each attribute."""
    stack, at = [Element("")], 0
    while text[at:].strip(" \n\r"):
        piece = PIECE.match(text, at)
        assert piece, text[at : at + 60]
        at = piece.end()
        if piece["end"]:
            assert stack.pop().name == piece["end"]
        elif piece["name"]:
            pairs = re.findall(r' (\w+)="([^"]*)"', piece["given"])
            one = Element(piece["name"], dict(pairs))
            assert one.name in INSIDE[stack[-1].name]
            assert set(one.given) == NEEDED[one.name]
            assert len(pairs) == len(one.given) <= MOST
            assert all(len(word) <= LONGEST for pair in pairs for word in pair)
            stack[-1].inner.append(one)
            if not piece["whole"]:
                stack.append(one)
    (top,) = stack
    (system,) = top.inner
    assert system.given == {"version": "1"}
    for one in system.below():
        assert one.name == "cpu" or (
            one.given["link_speed"] in LINK_SPEEDS.values() and one.given["link_width"] == "16"
        )
    return system


def fabric(changes: Mapping[str, Any] | None = None, kind: str = "kubernetes", **settings: Any) -> Fabric:
    values = manifests.values(changes, **settings)
    return intents.fabric({**values, "clusters": {kind: values["clusters"]["kubernetes"]}})


def rendered(built: Fabric) -> str | None:
    (found,) = render_clusters(built, built.clusters, Engine(), jobs=True)
    return found.files.get(FILE)


@pytest.mark.parametrize("kind", ["kubernetes", "slurm"])
def test_the_file_has_the_gpus_of_the_model_and_the_nics_of_the_design(kind: str) -> None:
    built = fabric(kind=kind)
    text = rendered(built)
    assert text is not None
    system, (host, *_) = read(text), built.hosts
    switches = [(int(cpu.given["numaid"]), switch) for cpu in system.inner for switch in cpu.inner]
    assert {one.given["class"] for _, one in switches} == {SWITCH}
    addresses = [one.given["busid"] for one in system.below() if one.name == "pci"]
    assert len(set(addresses)) == len(addresses)
    assert all(one.given["busid"].startswith("ffff:ff:") for _, one in switches)
    gpus = [
        (node, inner.given["busid"]) for node, one in switches for inner in one.inner if inner.given["class"] == GPU
    ]
    assert gpus == [(gpu.numa, gpu.pci) for gpu in host.model.gpu_map]
    nics = {
        one.given["busid"]: switch.inner[0].given["busid"]
        for _, switch in switches
        for one in switch.inner
        if one.given["class"] == NIC
    }
    assert nics == {nic.pci: host.model.gpu_map[nearest_gpu(host, nic.rail)].pci for nic in host.nics}


def test_pci_addresses_in_the_intent_are_used() -> None:
    text = rendered(fabric({"hosts": {"pci": ["0000:aa:00.0", "0000:ab:00.0"]}}))
    assert text is not None
    nics = [one.given["busid"] for one in read(text).below() if one.given.get("class") == NIC]
    assert nics == ["0000:aa:00.0", "0000:ab:00.0"]


def test_a_rail_that_some_nodes_lack_is_included() -> None:
    lacking_some = {"units": [{"unit": 1, "hosts": 2, "rails": "1"}, {"unit": 2, "hosts": 2}]}
    assert rendered(fabric(lacking_some)) == rendered(fabric())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('version="1"', 'version="2"'),
        ("<system", '<?xml version="1.0"?>\n<system'),
        (' class="0x030200"', ""),
        (' link_width="16"', ""),
        ("32.0 GT/s PCIe", "32"),
        (' numaid="0"', ""),
        ("</cpu>", ""),
        ("<cpu ", "<cpu  "),
        ("  <pci", "\t<pci"),
    ],
)
def test_a_file_that_nccl_cannot_parse_is_detected(before: str, after: str) -> None:
    text = rendered(fabric()) or ""
    assert before in text
    with pytest.raises(AssertionError):
        read(text.replace(before, after, 1))


def test_the_file_equals_its_golden_file(golden: Golden) -> None:
    golden("clusters/nccl-topo.xml", rendered(fabric()) or "")


def test_a_model_without_a_map_of_its_gpus_has_no_file_and_a_reason() -> None:
    built = fabric({"hosts": {"model": "hgx-h100-xe9680"}})
    assert rendered(built) is None
    assert lacking(built.hosts[0]) == "the host model hgx-h100-xe9680 has no gpu_map"
    host = fabric().hosts[0]
    assert lacking(host) == ""
    for changes, why in (
        ({"pcie_generation": None}, "the host model dgx-h100 has no pcie_generation that NCCL knows"),
        ({"pcie_generation": 9}, "the host model dgx-h100 has no pcie_generation that NCCL knows"),
        ({"gpu_map": host.model.gpu_map[:1]}, "the GPU next to rail1 is not in the gpu_map of dgx-h100"),
        ({"gpu_map": host.model.gpu_map * 4}, "the host model dgx-h100 has more than 31 GPUs"),
    ):
        assert lacking(replace(host, model=replace(host.model, **changes))) == why


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop(), "gpu_map has 7 rows for 8 GPUs"),
        (lambda rows: rows[0].pop("source"), "gpu_map has 0000:1b:00.0 without a source"),
        (lambda rows: rows[0].pop("numa"), "'numa' is missing"),
        (lambda rows: rows[0].update(pci="1b:00.0"), "gpu_map has '1b:00.0' at NUMA node 0, not an address"),
        (lambda rows: rows[0].update(numa="x"), "gpu_map has '0000:1b:00.0' at NUMA node 'x', not an address"),
    ],
)
def test_a_broken_map_of_gpus_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    model = yaml.safe_load((SHIPPED / "hosts/dgx-h100.yaml").read_text())
    change(model["gpu_map"])
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts/mine.yaml").write_text(yaml.safe_dump({**model, "name": "mine"}))
    with pytest.raises(HardwareError) as refused:
        Catalog([tmp_path]).host("mine")
    assert message in str(refused.value)


def test_explain_prints_where_the_file_is_or_why_there_is_none(tmp_path: Path) -> None:
    def explained(values: Mapping[str, Any]) -> str:
        (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(dict(values)))
        done = run("design", "--fabric", tmp_path, "--explain", "gpu01:rail0")
        assert done.returncode == 0, done.stderr
        return next(" ".join(line.split()) for line in done.stdout.splitlines() if "NCCL_TOPO_FILE" in line)

    read_by_nccl = "NCCL reads PCIe switches from /sys, which bare metal and pods on it show"
    assert explained(manifests.values()) == (
        "NCCL_TOPO_FILE jobs/nccl-topo.xml "
        "only if /sys shows no PCIe switches: GPU 0 at 0000:1b:00.0 is next to the NIC"
    )
    assert explained(intents.values()) == f"NCCL_TOPO_FILE no file the host is not a node of a cluster; {read_by_nccl}"
    assert explained(manifests.values({"hosts": {"model": "hgx-h100-xe9680"}})) == (
        f"NCCL_TOPO_FILE no file the host model hgx-h100-xe9680 has no gpu_map; {read_by_nccl}"
    )
