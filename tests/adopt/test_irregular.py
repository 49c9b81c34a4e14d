"""A fabric of others: descriptions of their own, a dead spine, a host that was not read, queues by default."""

import re
from pathlib import Path

from netkit import design
from netkit.adopt.fit import compared
from netkit.adopt.proposal import validated
from netkit.hardware import Catalog
from netkit.platforms.config import Files
from netkit.project.adopting import adopted
from netkit.render import Engine
from tests import intents
from tests.adopt.test_round_trip import files_of

VALUES = intents.on_platform("eos", "4.35.1F", {"attachment": "vlan", "pools": {"links": "10.9.0.0/22"}})
OTHER_NICS = """
    eno1: {addresses: [192.0.2.200/24], routes: [{to: default, via: 192.0.2.1}]}
    ens9: {addresses: [10.77.0.1/24]}
"""


def by_others(name: str, files: Files) -> Files:
    if name.startswith("gpu"):
        text = re.sub(r"\brail(\d)", r"hca\1", files["netplan.yaml"])
        return {"50-cloud-init.yaml": text.rstrip() + OTHER_NICS}
    text = re.sub(
        r"(?m)^ +(no priority|neighbor \S+ (route-map|missing-policy|description) .*)\n", "", files["eos.cfg"]
    )
    text = re.sub(r"description (gpu\d+):rail(\d)", r"description \1-hca\2", text)
    text = re.sub(r"description ((?:leaf|spine)\d+):(\S+)", r"description [\1] \2", text)
    return {"eos.cfg": re.sub(r"(?m)^   description .*\n", "", text) if name == "leaf03" else text}


def test_devices_that_were_not_read_are_found_by_what_others_name() -> None:
    fabric = intents.fabric(VALUES)
    files = {name: by_others(name, own) for name, own in files_of(fabric).items() if name not in {"spine02", "gpu02"}}
    found = adopted("again", files, {}, Path())
    proposal = found.proposal
    assert set(proposal.placement.places) == set(fabric.names)
    assert (proposal.intent.rails, found.unread, found.remaining) == (2, {}, {})
    assert proposal.intent.external == ()
    assert [(one.name, one.asn) for one in proposal.fabric.tier("spine")] == [
        (one.name, one.asn) for one in fabric.tier("spine")
    ]
    # Only leaf03 names nothing, so that the other end of its port towards the dead spine is unknown.
    silent = [port.name for port in fabric.switch("leaf03").fabric_ports if port.peer == "spine02"]
    assert proposal.links.dangling == tuple(("leaf03", port) for port in silent)
    # Its own files do what netkit's would, so that netkit's are not deployed, and a plan of the host is empty.
    values = proposal.values | {"leave": list(found.leave)}
    left = design.build(validated(values, proposal.tables), Catalog())
    ((_, host),) = compared(left, ["gpu01"], files, Engine())
    assert (host.changes, host.not_read) == ((), ())
    nics = {(nic.leaf, nic.leaf_port, nic.rail) for host in fabric.hosts for nic in host.nics if nic.leaf != "leaf03"}
    assert nics <= {(nic.leaf, nic.leaf_port, nic.rail) for host in proposal.fabric.hosts for nic in host.nics}


def test_numbers_that_the_design_refuses_are_left_as_they_run() -> None:
    """Weights that do not add up; and queues without `no priority`, which are strict, as that of CNPs."""
    files = {name: dict(own) for name, own in files_of(intents.fabric(VALUES)).items()}
    for name in (name for name in files if "eos.cfg" in files[name]):
        text = files[name]["eos.cfg"].replace("bandwidth percent 90", "bandwidth percent 70")
        files[name]["eos.cfg"] = text.replace("      no priority\n", "", 1) if name == "leaf01" else text
    found = adopted("again", files, {}, Path())
    lossless = found.proposal.intent.lossless
    assert (lossless.cnp.priority, lossless.roce.weight, lossless.best_effort.weight) == (6, 90, 10)
    assert [text for section, text in found.proposal.guesses if section == "lossless"] == [
        "roce.weight by default: ETS weights sum to 80, not 100 (roce 70, best_effort 10)"
    ]
    assert found.remaining == {}


def test_pools_do_not_overlap_where_routes_and_lists_are_for_both() -> None:
    """One network for all, with loopbacks at its end: in prefix lists, and in the only route of the hosts."""
    pools = {"pools": {"hosts": "10.128.0.0/17", "loopbacks": "10.128.255.0/24"}, "attachment": "vlan"}
    fabric = intents.fabric(intents.on_platform("sonic", "202411", pools))
    files = {
        name: {file: text.replace("10.128.0.0/17", "10.128.0.0/16") for file, text in own.items()}
        for name, own in files_of(fabric).items()
    }
    for host in fabric.hosts:
        nics = (
            f"    rail{nic.rail}:\n      addresses: [{nic.address}/29]\n"
            f"      routes: [{{to: 10.128.0.0/16, via: {nic.gateway}}}]\n"
            for nic in host.nics
        )
        files[host.name] = {"50.yaml": "".join(("network:\n  version: 2\n  ethernets:\n", *nics))}
    found = adopted("again", files, {}, Path())
    pools_found = found.proposal.intent.pools
    assert (str(pools_found.hosts), str(pools_found.loopbacks)) == ("10.128.0.0/17", "10.128.255.0/24")
    assert (found.proposal.intent.host_routes, found.unread, found.remaining) == ("per-leaf", {}, {})


def test_a_section_by_hand_is_left_in_one_entry() -> None:
    files = {name: dict(own) for name, own in files_of(intents.fabric(VALUES)).items()}
    by_hand = "interface Port-Channel7\n   description old filer\n   switchport access vlan 77\n!\n"
    files["leaf01"]["eos.cfg"] = files["leaf01"]["eos.cfg"].replace(
        "interface Loopback0\n", f"{by_hand}interface Loopback0\n"
    )
    found = adopted("again", files, {}, Path())
    assert (found.leave, found.remaining) == (({"path": "interface Port-Channel7", "devices": "leaf01"},), {})


def test_a_host_without_a_configured_port_is_one_that_was_not_read() -> None:
    files = {**files_of(intents.fabric(VALUES)), "gpu02": {"netplan.yaml": ""}}
    found = adopted("again", files, {}, Path())
    assert "gpu02" in found.proposal.fabric.names
    assert (found.added, found.remaining) == ({"gpu02": "no port is configured on it"}, {})
