"""NVUE in the lab: rendered configurations are accepted, and every leaf has an effect."""

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from netkit.lab.personalities.nvue import factory, rules
from netkit.lab.personalities.nvue.command_line import parse_change
from netkit.lab.personalities.nvue.schema import BREAK, CumulusSwitch, Issue, checked, merged, schema
from netkit.lab.personalities.nvue.state import switch_state
from netkit.lab.personalities.nvue.tree import Path as TreePath
from netkit.lab.personalities.nvue.tree import Tree, Value, child, is_on, leaves, load, without
from netkit.platforms.compare import compare
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.render import render
from tests import intents
from tests.lab.personalities.nvue.bench import ENGINE, VERSIONS, desk, rendered

CHANGES: list[dict[str, Any]] = [
    {},
    {"adaptive_routing": True, "attachment": "vlan"},
    {
        "lossless": {
            "roce": {"priority": 4, "dscp": [34], "weight": 50},
            "best_effort": {"weight": 50},
            "ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000}},
        }
    },
    {"overrides": {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}},
    {"routing": {"allowas_in": True, "bfd": {"interval_ms": 100, "multiplier": 5}, "max_paths": 128}},
    {"services": {"snmp": None, "login": None, "ntp": [], "dns": [], "syslog": []}, "management": None},
]
NAMES = ("leaf01", "spine01")

SHOWN = (
    # The management plane, and what Linux namespaces cannot do: shown, but never applied.
    r"bridge domain br_default ageing \d+",
    r"interface (swp\w+|vlan\d+) storm-control unknown-unicast \d+",
    r"interface vlan\d+ description rail\d",
    r"interface eth0 (ip|ipv4) address \S+ \{\}",
    r"interface eth0 (ip )?vrf mgmt",
    r"interface eth0 ipv4 dhcp-client state disabled",
    r"qos traffic-pool roce-lossless memory-percent \d+",
    r"service (dns|ntp) mgmt server \S+.*",
    r"service lldp dot1-tlv on",
    r"service syslog mgmt server \S+ (port|protocol) \S+",
    r"(service|system) snmp-server listening-address \S+ vrf mgmt",
    r"system aaa user netkit (hashed-password|role) \S+",
    r"system (date-time )?timezone \S+",
    r"system dns server \S+ vrf mgmt",
    r"system lldp dot1-tlv enabled",
    r"system ntp (server \S+ (iburst|state) enabled|vrf mgmt)",
    r"system syslog server \S+ (port|protocol|vrf) \S+",
)
DEFAULTS: dict[str, Value] = {
    # The defaults of the switch; any other value has an effect.
    r"interface swp\w+ link mtu 9216": 9000,
    r"interface vlan\d+ link mtu 9216": 9000,
    r"interface swp\w+ link state up \{\}": None,
    r"qos congestion-control \S+ traffic-class 3 ecn enabled?": "disable",
    r"qos congestion-control \S+ traffic-class 3 probability 100": 50,
    r"qos pfc default-global [rt]x enable": "disable",
    r"qos pfc-watchdog polling-interval 100": 200,
    r"qos pfc-watchdog robustness 3": 5,
    r"qos roce mode lossless": "lossy",
    r"router bfd profile underlay detect-multiplier 3": 4,
    r"router bfd profile underlay min-[rt]x-interval 300": 400,
    r"vrf default router bgp address-family ipv4-unicast multipaths ebgp 64": 8,
    r"vrf default router bgp peer-group underlay address-family ipv4-unicast (enable|state) \S+": "off",
    r"vrf default router bgp peer-group underlay bfd detect-multiplier 3": 4,
    r"vrf default router bgp peer-group underlay bfd min-[rt]x-interval 300": 400,
    r"vrf default router bgp peer-group underlay timers hold 9": 12,
    r"vrf default router bgp peer-group underlay timers keepalive 3": 4,
}
COSMETIC = (
    r"interface \S+ type \S+",  # follows from the name
    r"interface vlan\d+ vlan \d+",  # follows from the name
    r"qos congestion-control \S+ traffic-class 3 red disabled?",  # drops by RED are off and not modelled
    r"qos roce cable-length \d+",  # where a PFC profile of its own has a cable length
    r"router policy prefix-list \S+ type ipv4",  # follows from the prefixes
    r"router policy prefix-list \S+ rule \d+ match \S+ (max|min)-prefix-len \d+",  # the length of the prefix itself
    r"vrf mgmt router static \S+ address-family ipv4-unicast",  # follows from the prefix
    r"vrf mgmt router static \S+ via \S+ type ipv4-address",  # follows from the address
)


@cache
def accepted(version: str, change_index: int, name: str) -> tuple[Tree, CumulusSwitch]:
    """A rendered configuration as normalised by the schema."""
    fabric = intents.fabric(intents.on_platform("nvue", version, CHANGES[change_index]))
    chassis = CumulusSwitch(fabric.switch(name).model, version)
    items = load(rendered(fabric, name)["startup.yaml"])
    assert isinstance(items, list)
    issues: list[Issue] = []
    tree = checked(schema(chassis.version), items[0]["set"], issues)
    assert issues == []
    assert tree == items[0]["set"]
    assert isinstance(tree, dict)
    return tree, chassis


def cases(*, daily: tuple[str, ...] = VERSIONS) -> Iterator[Any]:
    """Yield version, change and device; releases other than the default ones run in the lane whole."""
    for version in VERSIONS:
        for at, changes in enumerate(CHANGES):
            for name in NAMES:
                label = f"{version}-{','.join(changes) or 'plain'}-{name}"
                yield pytest.param(version, at, name, id=label, marks=() if version in daily else pytest.mark.whole)


@pytest.mark.parametrize(("version", "change_index", "name"), list(cases()))
def test_rendered_configurations_are_accepted(version: str, change_index: int, name: str) -> None:
    assert rules.broken(*accepted(version, change_index, name)) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_configurations_for_the_first_boot_are_accepted(version: str) -> None:
    fabric = intents.fabric(intents.on_platform("nvue", version))
    (device,) = render(fabric, [fabric.switch("leaf01")], ENGINE, ztp=True)
    chassis = CumulusSwitch(fabric.switch("leaf01").model, version)
    known = schema(chassis.version)
    lines = [line for line in device.files["ztp.sh"].splitlines() if line.startswith("nv set")]
    tree: Tree = {}
    for line in lines:
        tree = merged(known, tree, parse_change(known, "set", shlex.split(line)[2:]).set)
    assert len(list(leaves(tree))) == len(lines)
    # The DHCP client of the factory's eth0 must be gone: it would add an address and a default route.
    running = factory(known, chassis)
    for line in device.files["ztp.sh"].splitlines():
        _, verb, *words = shlex.split(line, comments=True) if line.startswith("nv ") else ("", "")
        if verb == "set":
            running = merged(known, running, parse_change(known, "set", words).set)
        elif verb == "unset":
            running = without(running, tuple(words))
    assert "dhcp" in str(factory(known, chassis))
    assert not is_on(running, "interface", "eth0", "ipv4", "dhcp-client")
    eth0 = child(running, "interface", "eth0")
    given = child(eth0, "ip", "address") or child(eth0, "ipv4", "address")
    assert list(given) == ["192.0.2.10/24"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deploy_to_a_factory_switch_removes_its_dhcp_client(version: str) -> None:
    fabric = intents.fabric(intents.on_platform("nvue", version))
    chassis = CumulusSwitch(fabric.switch("leaf01").model, version)
    before = factory(schema(chassis.version), chassis)
    changes = compare(NVUE, {"startup.yaml": json.dumps([{"set": before}])}, rendered(fabric, "leaf01")).changes
    gone = {change.path for change in changes if change.is_removal}
    made = {change.path: change.intended for change in changes if not change.is_removal}
    if chassis.version < BREAK:
        assert gone == {("interface", "eth0", "ip", "address", "dhcp")}
    else:
        assert gone == {("interface", "eth0", "ipv4", "dhcp-client", "set-hostname")}
        assert made["interface", "eth0", "ipv4", "dhcp-client", "state"] == "disabled"


def said(path: TreePath, value: Value) -> str:
    return " ".join((*path, str(value)))


def silent(tree: Tree, chassis: CumulusSwitch) -> Iterator[TreePath]:
    """Yield every leaf whose removal is neither refused nor changes the switch's state."""
    state = switch_state(tree, chassis)
    for path, _ in leaves(tree):
        less = without(tree, path)
        if not rules.broken(less, chassis) and switch_state(less, chassis) == state:
            yield path


def value_at(tree: Tree, path: TreePath) -> Value:
    return next(value for found, value in leaves(tree) if found == path)


@pytest.mark.parametrize(("version", "change_index", "name"), list(cases(daily=VERSIONS[-1:])))
def test_every_leaf_has_an_effect_or_is_listed(version: str, change_index: int, name: str) -> None:
    tree, chassis = accepted(version, change_index, name)
    state = switch_state(tree, chassis)
    for path in silent(tree, chassis):
        line = said(path, value_at(tree, path))
        if any(re.fullmatch(pattern, line) for pattern in (*SHOWN, *COSMETIC)):
            continue
        other = next((other for pattern, other in DEFAULTS.items() if re.fullmatch(pattern, line)), "-")
        assert other != "-", f"nothing happens without {line}"
        another = changed(tree, path, other, chassis)
        assert rules.broken(another, chassis) or switch_state(another, chassis) != state, line


def changed(tree: Tree, path: TreePath, value: Value, chassis: CumulusSwitch) -> Tree:
    """The tree with another value; None disables the interface."""
    if value is None:
        path, value = path[:-1], {"down": {}}
    elif path[-1] in {"enable", "state"}:
        value = "off" if chassis.version < (5, 15) else "disabled"
    patch: Value = value
    for key in reversed(path):
        patch = {key: patch}
    assert isinstance(patch, dict)
    return merged(schema(chassis.version), tree, patch)


def test_no_list_names_what_is_never_rendered() -> None:
    lines = {
        said(path, value)
        for version in VERSIONS
        for at in range(len(CHANGES))
        for name in NAMES
        for path, value in leaves(accepted(version, at, name)[0])
    }
    patterns = (*SHOWN, *DEFAULTS, *COSMETIC)
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, line) for line in lines)] == []


@pytest.mark.parametrize("version", ["5.9.2", "5.14.0", "5.16.1"])
def test_settings_that_are_only_shown_are_shown(version: str, tmp_path: Path) -> None:
    switch = desk(tmp_path, version, attachment="vlan")
    tree = switch.switch.system.applied
    found = [
        (path, value)
        for path, value in leaves(tree)
        if any(re.fullmatch(pattern, said(path, value)) for pattern in SHOWN)
    ]
    assert len(found) > 10
    for path, value in found:
        shown = switch.show(" ".join(path[:2]))
        for key in path[2:]:
            assert key in shown, path
            shown = shown[key]
        assert shown == value
