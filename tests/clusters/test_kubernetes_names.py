"""Names that a YAML parser could read as numbers, booleans, dates or null: each is a string in every manifest."""

import re
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.render import Engine
from netkit.render.job import acceptance_job, render_job
from netkit.render.render import render_clusters
from tests import intents
from tests.clusters import manifests
from tests.lanes import examples

ENGINE = Engine()
ODD = ("on", "off", "yes", "no", "y", "n", "null", "1e1", "1e-5", "001", "0x1f", "0o17", "0b1", "2026-11-27", "1-2")
NAMES = st.sampled_from(ODD) | st.from_regex(r"0[0-9]{1,6}|[1-9][0-9]{5,7}", fullmatch=True)
PATTERNS = st.sampled_from(["{rail}", "00{rail}", "{rail}e1", "1e{rail}", "0x{rail}", "2026-11-2{rail}", "12345{rail}"])


class Reader(yaml.SafeLoader):
    """A loader that reads as a number what YAML 1.1 (PyYAML) or YAML 1.2 (Kubernetes) does."""


Reader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[0-9]+[eE][+-]?[0-9]+$"), list("0123456789"))
Reader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"0o[0-7]+$"), ["0"])
Reader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(yes|no|on|off)$"), list("yno"))
Reader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"[yn]$"), list("yn"))


@settings(max_examples=examples(25))
@given(
    chosen=st.fixed_dictionaries(
        {
            "namespace": NAMES,
            "operator_namespace": NAMES,
            "queue": NAMES,
            "image": NAMES,
            "image_registry": NAMES,
            "network": PATTERNS,
            "resource": PATTERNS,
            "mode": st.sampled_from(["sriov", "host-device", "macvlan", "spectrum-x"]),
            "scheduler": st.sampled_from(["kueue", "volcano"]),
            "nic_qos": st.sampled_from(["netkit", "operator"]),
        }
    ),
    name=NAMES,
    rack=NAMES,
    hosts=st.lists(NAMES, min_size=3, max_size=3, unique=True),
)
def test_every_name_is_parsed_as_a_string(chosen: dict[str, Any], name: str, rack: str, hosts: list[str]) -> None:
    if chosen["mode"] == "spectrum-x":
        chosen["resource"] = chosen["network"]
    units = [{"unit": 1, "hosts": 3, "host_names": dict(enumerate(hosts, 1))}]
    changes = {"name": name, "units": units, "overrides": {hosts[0]: {"rack": rack}}}
    built = intents.fabric(manifests.values(changes, **chosen))
    texts = dict(texts_of(built))
    found = [pair for text in texts.values() for pair in scalars(text)]
    networks = {chosen["network"].format(rail=rail) for rail in (0, 1)}
    resources = {chosen["resource"].format(rail=rail) for rail in (0, 1)}
    kept = ("namespace", "operator_namespace", "queue", "image", "image_registry")
    drawn = {*(chosen[key] for key in kept), *networks, *resources, name, rack, *hosts}
    # Networks called 0 and 1 are strings, but replicas are numbers: the schema has the types of both.
    odd = drawn - {"0", "1"}
    assert [(text, value) for text, value in found if text in odd and value != text] == []
    objects = manifests.objects_of({file: text for file, text in texts.items() if file.endswith(".yaml")})
    assert [complaint for one in objects for complaint in manifests.complaints(one)] == []
    shown = drawn if chosen["mode"] != "macvlan" else drawn - (resources - networks)
    assert shown <= {value for _, value in found if isinstance(value, str)}


def texts_of(built: Fabric) -> Iterator[tuple[str, str]]:
    """Each manifest, and jobs on all nodes and on some."""
    (rendered,) = render_clusters(built, built.clusters, ENGINE)
    yield from rendered.files.items()
    for kind in ("mpijob", "jobset", "trainjob", "gke"):
        for count in (2, 3):
            yield f"{kind} {count}", render_job(kind, acceptance_job(kind, built, built.hosts[:count]), ENGINE)


def scalars(text: str) -> Iterator[tuple[str, Any]]:
    """Each scalar of the documents in a text: as it is written, and as it is parsed."""
    written, read = yaml.load_all(text, yaml.BaseLoader), yaml.load_all(text, Reader)
    for one, other in zip(written, read, strict=True):
        yield from _pairs(one, other)


def _pairs(written: Any, read: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(written, dict):
        yield from zip(written, read, strict=True)
        for one, other in zip(written.values(), read.values(), strict=True):
            yield from _pairs(one, other)
    elif isinstance(written, list):
        for one, other in zip(written, read, strict=True):
            yield from _pairs(one, other)
    else:
        yield written, read
