"""The files of a Slurm cluster, for every topology and the versions that differ."""

import re
import typing
from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.errors import DesignError
from netkit.intent.model import SlurmIntent
from netkit.render.slurm import expand, fold
from tests import intents
from tests.clusters.slurm_scenes import FULL, SHAPES, built, cluster_of, files_of
from tests.conftest import Golden
from tests.lanes import examples
from tests.random_intents import intents as random_intents

BLOCK = {"topology": "block", "version": "24.05"}
VERSIONS: dict[str, dict[str, Any]] = {
    "22.05": FULL,
    "23.11-block": {"version": "23.11.4", "topology": "block"},
    "24.05-block": {**FULL, **BLOCK},
    "25.05": {**FULL, "version": "25.05.1"},
    "25.11-block": {**FULL, "version": "25.11", "topology": "block"},
}


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_files_equal_their_golden_files(shape: str, name: str, golden: Golden) -> None:
    files = files_of(built(shape, VERSIONS[name]))
    for file, text in files.items():
        golden(f"clusters/slurm-{name}/{shape}/{file}", text)
    topology = "topology.yaml" if name.startswith("25") else "topology.conf"
    assert [*files] == ["nodes.conf", "fabric.conf", "gres.conf", topology]


# A field of clusters.slurm → a value that changes a file.
CHANGES: dict[str, Any] = {
    "pod": [1],
    "unit": [1],
    "domain": "example.net",
    "version": "23.02",
    "topology": "block",
    "partition": "train",
    "cpus": 64,
    "memory_mb": 1000,
    "gpu_type": "a100",
}
ELSEWHERE = {
    "image": "what acceptance jobs run",
    "container": "how acceptance jobs start their image",
    "steering": "when netkit check --steer drains a node",
}


def test_every_field_changes_a_file_or_is_for_another_feature() -> None:
    assert {*CHANGES, *ELSEWHERE} == set(SlurmIntent.model_fields)
    for field, value in CHANGES.items():
        base = {**FULL, "version": BLOCK["version"] if field == "topology" else "22.05"}
        assert files_of(built("three-tier", base)) != files_of(built("three-tier", {**base, field: value})), field
    before = files_of(built("two-tier", FULL))
    assert (
        files_of(built("two-tier", {**FULL, "image": "other", "container": "pyxis", "steering": {"verdict": "fail"}}))
        == before
    )


def problems(shape: str, settings: dict[str, Any], **changes: Any) -> set[tuple[str, str, str]]:
    values = intents.values({**SHAPES[shape], **changes, "clusters": {"slurm": settings}})
    with pytest.raises(DesignError) as error:
        intents.fabric(values)
    return {(".".join(map(str, found.path)), found.message, found.remedy) for found in error.value.problems}


@pytest.mark.parametrize("version", ["22.05", "23.02.7", "23.10"])
def test_blocks_are_refused_where_slurm_does_not_support_them(version: str) -> None:
    assert problems("two-tier", {"topology": "block", "version": version}) == {
        (
            "clusters.slurm.topology",
            f"Slurm {version} has no topology/block, which came with 23.11",
            "use topology: tree, or a later version",
        )
    }


def test_blocks_of_different_sizes_are_refused_where_slurm_counts_levels() -> None:
    units = [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 3}]
    assert problems("two-tier", {"topology": "block", "version": "23.11.10"}, units=units) == {
        (
            "clusters.slurm.topology",
            "Slurm 23.11.10 needs blocks of one size, and units have 2 to 3",
            "use topology: tree, or version 24.05 or later",
        )
    }


@pytest.mark.parametrize("version", ["24.1", "2405", "5.16.1", "24.05x", "24"])
def test_an_invalid_version_is_refused(version: str) -> None:
    assert problems("two-tier", {"topology": "block", "version": version}) == {
        (
            "clusters.slurm.version",
            f"'{version}' is not a version of Slurm: its features are unknown",
            "write what slurmctld -V prints, such as 23.11.4",
        )
    }


@pytest.mark.parametrize("name", ["DEFAULT", "all"])
def test_names_that_slurm_reads_as_keywords_are_refused(name: str) -> None:
    assert problems("two-tier", {"partition": name}) == {
        ("clusters.slurm.partition", f"{name} is a keyword of Slurm", "choose another name")
    }
    units = [{"unit": "1-2", "hosts": 2, "host_names": {}}, {"unit": 3, "hosts": 1, "host_names": {1: name}}]
    assert problems("two-tier", {}, units=units) == {
        (
            "clusters.slurm.domain",
            f"a node is called {name}, which is a keyword of Slurm",
            "rename the host, or set domain",
        )
    }


def warnings(fabric: Fabric) -> set[str]:
    return {".".join(map(str, note.path)) for note in fabric.notes if note.path[:1] == ("clusters",)}


def test_missing_cpus_give_a_warning() -> None:
    assert warnings(built("two-tier", {})) == {"clusters.slurm.cpus"}
    assert warnings(built("two-tier", {"cpus": 224})) == set()


def lines(text: str) -> list[dict[str, str]]:
    """The keys and values of each line of a configuration file."""
    found = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [dict(pair.split("=", 1) for pair in line.split(" ")) for line in found]


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")


@settings(max_examples=examples(150))
@given(random_intents(), st.booleans())
def test_every_host_is_in_one_lowest_switch_below_the_root(values: dict[str, Any], has_domain: bool) -> None:
    slurm = {**FULL, **({"domain": "example.net"} if has_domain else {})}
    fabric = intents.fabric({**values, "clusters": {"slurm": slurm}})
    files = files_of(fabric)
    rows = lines(files["topology.conf"])
    below = {row["SwitchName"]: [*expand(row.get("Switches", ""))] for row in rows}
    nodes = {row["SwitchName"]: [*expand(row.get("Nodes", ""))] for row in rows}
    assert len(below) == len(rows)
    assert all(NAME.fullmatch(name) for name in below)
    assert Counter(name for names in nodes.values() for name in names) == Counter(
        f"{host.name}.example.net" if has_domain else host.name for host in fabric.hosts
    )
    assert {switch: (bool(below[switch]), bool(nodes[switch])) for switch in below} == {
        switch: (bool(below[switch]), not below[switch]) for switch in below
    }
    children = Counter(child for names in below.values() for child in names)
    (root,) = set(below) - set(children)
    assert set(children.values()) <= {1}
    reached, left = set(), [root]
    while left:
        reached.add(switch := left.pop())
        left += below[switch]
    assert reached == set(below)
    check_nodes(fabric, files)


def check_nodes(fabric: Fabric, files: dict[str, str]) -> None:
    """Each node has one line, and its feature names the switch above it."""
    rows = [row for row in lines(files["nodes.conf"]) if "NodeName" in row]
    (partition,) = (row for row in lines(files["nodes.conf"]) if "PartitionName" in row)
    (gpus,) = lines(files["gres.conf"])
    names = [node.name for node in cluster_of(fabric).nodes]
    assert sorted(name for row in rows for name in expand(row["NodeName"])) == sorted(names)
    assert sorted(expand(partition["Nodes"])) == sorted(expand(gpus["NodeName"])) == sorted(names)
    unit_of = {
        name: row["SwitchName"] for row in lines(files["topology.conf"]) for name in expand(row.get("Nodes", ""))
    }
    for row in rows:
        assert {unit_of[name] for name in expand(row["NodeName"])} <= set(row["Feature"].split(","))
        assert row["Gres"] == "gpu:h100:8"


@settings(max_examples=examples(60))
@given(random_intents())
def test_blocks_are_the_units_and_the_same_in_yaml(values: dict[str, Any]) -> None:
    def topology(**changes: str) -> tuple[Fabric, dict[str, str]]:
        fabric = intents.fabric({**values, "clusters": {"slurm": {**FULL, **BLOCK, **changes}}})
        return fabric, files_of(fabric)

    fabric, files = topology()
    *blocks, sizes = lines(files["topology.conf"])
    units = [{"block": unit.name, "nodes": fold(unit.nodes)} for unit in cluster_of(fabric).units]
    assert [{"block": row["BlockName"], "nodes": row["Nodes"]} for row in blocks] == units
    numbers = [*map(int, sizes["BlockSizes"].split(","))]
    assert numbers[0] == min(len([*expand(row["Nodes"])]) for row in blocks)
    assert all((number // numbers[0]).bit_count() == 1 and number % numbers[0] == 0 for number in numbers)
    (newer,) = yaml.safe_load(topology(version="25.05")[1]["topology.yaml"])
    assert newer == {
        "topology": "random",
        "cluster_default": True,
        "block": {"block_sizes": numbers, "blocks": units},
    }
    (tree,) = yaml.safe_load(topology(version="25.05", topology="tree")[1]["topology.yaml"])
    older = lines(topology(topology="tree")[1]["topology.conf"])
    keys = {"switch": "SwitchName", "nodes": "Nodes", "children": "Switches"}
    assert [{keys[key]: value for key, value in row.items()} for row in tree["tree"]["switches"]] == older


HOSTS = st.from_regex(r"[a-z]{0,3}-?[0-9]{0,3}[a-z]?", fullmatch=True).filter(
    lambda name: name and name[0] != "-" and name[-1] != "-"
)


@given(st.lists(st.one_of(HOSTS, st.builds("gpu{:02}".format, st.integers(0, 120))), unique=True, min_size=1))
def test_a_hostlist_expands_to_its_nodes(names: list[str]) -> None:
    assert sorted(expand(fold(names))) == sorted(names)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("gpu01 gpu02 gpu04", "gpu[01-02,04]"),
        ("gpu9 gpu10 gpu011", "gpu[9-10,011]"),
        ("gpu09 gpu10", "gpu[09-10]"),
        ("a1.net a2.net b3", "a1.net,a2.net,b3"),
        ("1 2 x", "1,2,x"),
        ("rack1-gpu1 rack1-gpu2 rack2-gpu1", "rack1-gpu[1-2],rack2-gpu1"),
    ],
)
def test_a_hostlist_is_short(names: str, text: str) -> None:
    assert fold(names.split()) == text
    assert [*expand(text)] == names.split()


def test_brackets_anywhere_are_expanded() -> None:
    assert [*expand("r[1-2]n[08-10],x")] == ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10", "x"]


def test_all_topology_choices_are_rendered() -> None:
    assert set(typing.get_args(SlurmIntent.model_fields["topology"].annotation)) == {"tree", "block"}
