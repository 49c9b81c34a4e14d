"""Unowned lines, added wherever a NOS allows them, survive every change and its rollback byte for byte.

Each entry is a text, its section, and the `leave` that keeps it; without one, netkit never owns it. The staging code of
the platforms makes the change; for EOS, a switch of the lab executes the commands.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from netkit.platforms import secrets
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.config import Files
from netkit.platforms.driver import Candidate
from netkit.platforms.eos import session
from netkit.platforms.frr.procedure import merged, without_left
from netkit.platforms.linux.model import with_left
from netkit.platforms.nvue.patch import documents
from netkit.platforms.ownership import OWN_RULES, rules_text, with_rules
from netkit.platforms.sonic import tables
from netkit.platforms.sonic.reader import SonicState, planned
from tests.lab.personalities import eos_node
from tests.platforms.nvue.test_patch import patched
from tests.platforms.samples import samples


@dataclass(frozen=True)
class Plant:
    """Unowned lines: in a section if it names one, else anywhere at the top level."""

    text: str
    leave: str = ""
    below: str = ""


FRR = (
    Plant("ip prefix-list HAND seq 5 permit 192.0.2.0/24\n", "frr.conf / ip prefix-list HAND *"),
    Plant("route-map HAND permit 10\n match tag 7\n set metric 9\nexit\n", "frr.conf / route-map HAND *"),
    Plant(" neighbor 192.0.2.9 remote-as 64999\n", "frr.conf / router bgp / neighbor 192.0.2.9 *", "router bgp "),
    Plant(" neighbor 192.0.2.9 description by hand\n", "frr.conf / router bgp / neighbor 192.0.2.* *", "router bgp "),
    Plant("router bgp 64900 vrf storage\n bgp router-id 192.0.2.1\nexit\n", "frr.conf / router bgp * vrf storage"),
    Plant("ip route 198.51.100.0/24 blackhole\n"),
    Plant("router ospf\n ospf router-id 192.0.2.1\nexit\n"),
    Plant("access-list HAND seq 5 permit 192.0.2.0/24\n"),
)
EOS = (
    Plant("ip prefix-list HAND\n   seq 5 permit 192.0.2.0/24\n", "ip prefix-list HAND"),
    Plant("route-map HAND permit 10\n   match ip address prefix-list FABRIC\n", "route-map HAND *"),
    Plant("   neighbor HAND peer group\n", "router bgp / neighbor HAND *", "router bgp "),
    Plant("ntp server 192.0.2.77\n", "ntp server 192.0.2.77"),
    Plant("vlan 3000\n   name by-hand\n", "vlan 3000"),
    Plant("username other privilege 1 role network-operator nopassword\n"),
    Plant("ip route 198.51.100.0/24 192.0.2.1\n"),
)
SONIC = (
    Plant('{"VLAN": {"Vlan3000": {"vlanid": "3000"}}}', "VLAN / Vlan3000"),
    Plant('{"NTP_SERVER": {"192.0.2.77": {"resolve_as": "192.0.2.77"}}}', "NTP_SERVER / 192.0.2.*"),
    Plant('{"SYSLOG_SERVER": {"192.0.2.78": {}}}', "SYSLOG_SERVER / 192.0.2.78"),
    Plant('{"PORT": {"Ethernet0": {"tpid": "0x8100"}}}', "PORT / * / tpid"),
    Plant('{"ACL_TABLE": {"HAND": {"type": "L3", "ports": ["Ethernet0"]}}}'),
    Plant('{"TACPLUS_SERVER": {"192.0.2.9": {"priority": "1"}}}'),
    Plant('{"DEVICE_METADATA": {"localhost": {"mac": "00:11:22:33:44:55"}}}'),
)
NVUE = (
    Plant('{"interface": {"vlan3000": {"type": "svi", "vlan": "3000"}}}', "interface / vlan3000"),
    Plant('{"interface": {"swp1": {"acl": {"HAND": {"inbound": {}}}}}}', "interface / swp* / acl"),
    Plant('{"router": {"policy": {"route-map": {"HAND": {"rule": {"7": {"action": {"deny": {}}}}}}}}}',
          "router / policy / route-map / HAND"),
    Plant('{"vrf": {"default": {"router": {"bgp": {"neighbor": {"192.0.2.9": {"remote-as": "64999"}}}}}}}',
          "vrf / default / router / bgp / neighbor / 192.0.2.9"),
    Plant('{"acl": {"HAND": {"type": "ipv4", "rule": {"10": {"action": {"permit": {}}}}}}}'),
    Plant('{"system": {"ssh-server": {"state": "enabled"}}}'),
    Plant('{"vrf": {"storage": {"router": {"bgp": {"autonomous-system": "64900"}}}}}'),
)  # fmt: skip
HOST = (
    Plant("NCCL_DEBUG=INFO\n", "nccl.conf / NCCL_DEBUG"),
    Plant("net.core.somaxconn = 4096\n", "90-netkit-rails.conf / net.core.somaxconn"),
    Plant("SRIOV_EN=1\n", "mlxconfig.conf / SRIOV_EN"),
)
PLANTS = {"frr": FRR, "eos": EOS, "sonic": SONIC, "nvue": NVUE, "linux": HOST}
TEXTS = {"frr": "frr.conf", "eos": "eos.cfg"}
HOST_FILES = {"NCCL": "nccl.conf", "net.": "90-netkit-rails.conf", "SRIO": "mlxconfig.conf"}


def blocks(text: str) -> list[str]:
    """The sections of a configuration."""
    found: list[str] = []
    for row in text.splitlines(keepends=True):
        if row.startswith(" ") or (row.strip() == "exit" and found):
            found[-1] += row
        else:
            found.append(row)
    return found


def is_below(plant: Plant, block: str) -> bool:
    return block.startswith(plant.below) and " vrf " not in block.partition("\n")[0]


def planted_text(text: str, plants: list[tuple[Plant, int]]) -> str:
    found = blocks(text)
    for plant, number in plants:
        if plant.below:
            at = next(at for at, block in enumerate(found) if is_below(plant, block))
            head, _, rest = found[at].partition("\n")
            found[at] = f"{head}\n{plant.text}{rest}"
        else:
            is_end = len(found) > 0 and found[-1].strip() == "end"
            found.insert(number % (len(found) + 1 - is_end), plant.text)
    return "".join(found)


def joined(tree: Any, other: Any) -> Any:
    if not isinstance(tree, dict) or not isinstance(other, dict):
        return other
    return {**tree, **{key: joined(tree.get(key), below) for key, below in other.items()}}


def planted(platform: str, files: Files, plants: list[tuple[Plant, int]]) -> Files:
    """Running files with these lines added."""
    if platform in TEXTS:
        file = TEXTS[platform]
        return {**files, file: planted_text(files[file], plants)}
    if platform == "linux":
        grown = dict(files)
        for plant, _ in plants:
            grown[HOST_FILES[plant.text[:4]]] += plant.text
        return grown
    file = "config_db.json" if platform == "sonic" else "startup.yaml"
    tree = tree_of(platform, files[file])
    for plant, _ in plants:
        tree = joined(tree, json.loads(plant.text))
    return {**files, file: text_of(platform, tree)}


def tree_of(platform: str, text: str) -> Any:
    document = json.loads(text) if platform == "sonic" else yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506
    return document if platform == "sonic" else next(item["set"] for item in document if "set" in item)


def text_of(platform: str, tree: Any) -> str:
    return json.dumps(tree if platform == "sonic" else [{"set": tree}], indent=1)


def applied(platform: str, running: Files, intended: Files, owner: Files | None = None) -> Files:
    """The configuration of a device after the change, by the driver's staging code."""
    changes = compare(MODELS[platform], running, intended, owner=owner).changes
    return APPLIED[platform](running, Candidate(with_rules(intended, owner), changes, "patch"))


def _frr(running: Files, candidate: Candidate) -> Files:
    return {
        **running,
        **{file: text or "" for file, text in merged(candidate.changes, running, candidate.files).items()},
    }


def _sonic(running: Files, candidate: Candidate) -> Files:
    before = SonicState(tables.read(running["config_db.json"]), running.get("frr.conf"))
    after = planned(before, candidate, "202411", secrets.SecretResolver(lambda name: name)).after
    files = {"config_db.json": tables.text(after.tables), "frr.conf": before.frr if after.frr is None else after.frr}
    return {file: text for file, text in files.items() if text is not None}


def _nvue(running: Files, candidate: Candidate) -> Files:
    tree, have = tree_of("nvue", running["startup.yaml"]), MODELS["nvue"].parse(running)
    for document in documents(candidate.files, candidate.changes, have):
        tree = patched(tree, document)
    return {"startup.yaml": text_of("nvue", tree)}


def _eos(running: Files, candidate: Candidate) -> Files:
    with TemporaryDirectory() as folder:
        eos, _ = eos_node.switch_on(Path(folder), "leaf01", eos_node.eos_fabric())
        eos.machine.load_startup(running["eos.cfg"])
        eos.boot()
        before = eos_node.texts(eos, "show running-config")[0]
        lines = session.commands(candidate.changes, before, candidate.files["eos.cfg"])
        eos_node.result(eos, "configure session s", *lines, "end", "configure session s commit")
        return {"eos.cfg": eos_node.texts(eos, "show running-config")[0]}


def _linux(running: Files, candidate: Candidate) -> Files:
    files = with_left(candidate.files, running)
    return {file: text for file, text in files.items() if MODELS["linux"].reads(file)}


APPLIED: Mapping[str, Callable[[Files, Candidate], Files]] = {
    "frr": _frr,
    "sonic": _sonic,
    "nvue": _nvue,
    "eos": _eos,
    "linux": _linux,
}


def holds(platform: str, files: Files, plant: Plant) -> bool:
    """Whether the lines are in their section, byte for byte."""
    if platform in TEXTS:
        text = files[TEXTS[platform]]
        if plant.below:
            return any(is_below(plant, block) and plant.text in block for block in blocks(text))
        return plant.text.removesuffix("exit\n") in text
    if platform == "linux":
        return plant.text in files[HOST_FILES[plant.text[:4]]]
    file = "config_db.json" if platform == "sonic" else "startup.yaml"
    tree = tree_of(platform, files[file])
    return bool(joined(tree, json.loads(plant.text)) == tree)


def pair(platform: str) -> tuple[Files, Files]:
    """Two configurations of a switch of one release."""
    version, name = {"frr": ("10.2", "leaf01"), "eos": ("4.35.1F", "leaf01"), "sonic": ("202411", "leaf01"),
                     "nvue": ("5.16.1", "leaf01"), "linux": ("5.16.1", "gpu01")}[platform]  # fmt: skip
    found = samples(platform)
    return found[f"{version}/plain/{name}"], found[f"{version}/full/{name}"]


@pytest.mark.parametrize("platform", PLANTS)
@settings(max_examples=6, deadline=None, phases=(Phase.generate,))
@given(data=st.data())
def test_a_change_and_its_rollback_keep_every_unowned_line(platform: str, data: st.DataObject) -> None:
    one, other = pair(platform)
    before, after = (one, other) if data.draw(st.booleans()) else (other, one)
    chosen = data.draw(st.lists(st.sampled_from(PLANTS[platform]), unique=True, min_size=1))
    plants = [(plant, data.draw(st.integers(0, 200))) for plant in chosen]
    rules = rules_text((plant.leave for plant in chosen if plant.leave), ())
    intended = {**after, OWN_RULES: rules} if rules else after
    running = planted(platform, before, plants)
    model = MODELS[platform]
    assert [plant for plant in chosen if not holds(platform, running, plant)] == []

    found = compare(model, running, intended)
    clean = compare(model, before, after)
    assert [(one.path, one.running, one.intended) for one in found.changes] == [
        (one.path, one.running, one.intended) for one in clean.changes
    ]
    assert bool(found.left) == any(plant.leave for plant in chosen)
    changed = applied(platform, running, intended)
    assert [plant for plant in chosen if not holds(platform, changed, plant)] == []
    assert compare(model, changed, intended).changes == ()

    back = applied(platform, changed, before, owner=intended)
    assert [plant for plant in chosen if not holds(platform, back, plant)] == []
    assert compare(model, back, before, owner=intended).changes == ()


def test_a_missing_host_file_that_is_left_is_not_created() -> None:
    rendered = {"nccl.conf": "NCCL_DEBUG=INFO\n", OWN_RULES: rules_text(["nccl.conf"], [])}
    assert with_left(rendered, {"nccl.conf": None}) == {OWN_RULES: rendered[OWN_RULES]}


def test_a_left_key_that_a_linux_switch_lacks_is_not_added_with_its_file() -> None:
    intended = {"sysctl.conf": "net.a = 1\nnet.b = 2\n", OWN_RULES: rules_text(["sysctl.conf / net.b"], [])}
    running = {"sysctl.conf": "net.a = 0\n"}
    changes = compare(MODELS["frr"], running, intended).changes
    assert [(change.path, change.running, change.intended) for change in changes] == [
        (("sysctl.conf", "net.a"), "0", "1")
    ]
    text = merged(changes, running, intended)["sysctl.conf"]
    assert text is not None
    assert MODELS["frr"].parse({"sysctl.conf": text}) == {("sysctl.conf", "net.a"): "1"}


def test_a_left_line_at_the_end_of_a_section_keeps_the_section_closed() -> None:
    ownership = MODELS["frr"].ownership
    rules = rules_text(["frr.conf / router bgp / address-family ipv4 unicast / maximum-paths"], [])
    inside = "  network 192.0.2.0/24\n  maximum-paths 8\n"
    text = f"router bgp 65001\n address-family ipv4 unicast\n{inside} exit-address-family\nexit\n"
    left = without_left(text, ownership.on({OWN_RULES: rules}))
    assert left == text.replace("  maximum-paths 8\n", "")
