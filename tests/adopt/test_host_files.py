"""Hosts whose files have names of their own are adopted like others, and keep their files."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit import design
from netkit.adopt.proposal import validated
from netkit.design import Fabric
from netkit.intent import Intent
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.config import Files
from netkit.project.adopting import adopted
from tests import intents
from tests.adopt.test_round_trip import CATALOG, READ, files_of
from tests.lanes import examples
from tests.random_intents import PLATFORMS, Values
from tests.random_intents import intents as random_intents

OWN_NAMES = {"netplan.yaml": "50-cluster.yaml", "70-netkit-rails.rules": "61-names.rules", "netkit-nic-qos": "roce.sh"}


def own_names(fabric: Fabric, files: Mapping[str, Files]) -> dict[str, Files]:
    """Return the files with those of hosts under other names, and without comments."""
    hosts = {host.name for host in fabric.hosts}
    return {
        device: {own_name(name): without_comments(text) for name, text in given.items()} if device in hosts else given
        for device, given in files.items()
    }


def own_name(name: str) -> str:
    return OWN_NAMES.get(name, name.replace("10-", "73-"))


def without_comments(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith("#!") or not line.startswith("#"))


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random_intents(), st.sampled_from(["netplan", "networkd"]))
def test_names_of_files_do_not_matter(values: Values, backend: str) -> None:
    for tier in values["switches"].values():
        if tier["platform"] not in READ:
            tier.update(PLATFORMS["sonic"])
    values["hosts"]["backend"] = backend
    fabric = design.build(Intent.model_validate(values), CATALOG)
    files = files_of(fabric)
    usual = adopted("again", files, {}, Path())
    found = adopted("again", own_names(fabric, files), {}, Path())
    assert (found.proposal.values, found.unread) == (usual.proposal.values, usual.unread)


@pytest.mark.parametrize("backend", ["netplan", "networkd"])
def test_no_file_is_added_beside_those_of_the_host(backend: str) -> None:
    fabric = intents.fabric(intents.on_platform("sonic", "202411", {"hosts": {"backend": backend}}))
    files = own_names(fabric, files_of(fabric))
    found = adopted("again", files, {}, Path())
    intent = validated({**found.proposal.values, "leave": list(found.leave)}, found.proposal.tables)
    again = design.build(intent, CATALOG)
    assert found.leave
    for host in again.hosts:
        intended = files_of(again)[host.name]
        present: dict[str, str | None] = {**dict.fromkeys(intended), **files[host.name]}
        assert compare(MODELS[host.platform], present, intended).changes == ()
