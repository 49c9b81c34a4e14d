"""Linux switches: accepted and refused files, the state they describe, and that every line has an effect."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.lab.layout import kernel_name
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities import frr
from netkit.lab.personalities.frr import FrrDeclaredState, files
from netkit.lab.personalities.frr.files import Netplan
from netkit.render import Engine, render
from tests import intents

COSMETIC: Mapping[str, Mapping[str, str]] = {
    "*": {r"[#!].*": "a comment or a mark"},
    "netplan.yaml": {
        r"(version: 2|renderer: networkd)": "netplan's defaults here; the lab acts in networkd's stead",
        r"optional: true": "a boot of the lab waits for no link",
        r"(dhcp4|dhcp6|accept-ra): false": "the default",
        r"link-local: \[ipv6\]": "the default",
        r"(vrfs:|mgmt:|table: .*|routes:|nameservers:|- \{to: default.*|interfaces: \[eth0\])": "management only",
        r"addresses: \[192\.0\.2\..*": "management only",
    },
    "daemons": {
        r"(?!bgpd|bfdd)\w+=no": "no is the default",
        r"\w+_options=.*": "the lab's own vtys are sockets, whatever these say",
        r"(vtysh_enable|frr_profile)=.*": "the default",
    },
    "chrony.conf": {r".*": "a lab has no time servers; its clock is the machine's"},
    "rsyslog.conf": {r".*": "a lab has no log servers; its log is netkit lab logs"},
    "lldpd.conf": {r".*": "lldpd announces what the lab tells it, in the same words"},
    "snmpd.conf": {r"(agentAddress|sysName) .*": "the agent listens where the lab lets it, under the host's name"},
}


def texts_of(fabric: Fabric, name: str) -> dict[str, str]:
    (device,) = render(fabric, [fabric.switch(name)], Engine())
    return dict(device.files)


@cache
def frr_fabric(attachment: str) -> Fabric:
    return intents.fabric(intents.on_platform("frr", "8.4.4", {"attachment": attachment}))


def become(fabric: Fabric, name: str, texts: Mapping[str, str]) -> FrrDeclaredState | str:
    """The state the files describe, or why they are refused."""
    kernel_names = {port.name: kernel_name(port.name) for port in fabric.switch(name).ports}
    placed = {files.PLACES[file]: text for file, text in texts.items()}
    try:
        for place, text in placed.items():
            wrong = list(files.complaints(place, text))
            if wrong:
                raise ConfigRefusedError("\n".join(wrong))
        return frr.of_files(placed, name, kernel_names)
    except ConfigRefusedError as error:
        return str(error)


@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_rendered_files_are_accepted(attachment: str, name: str) -> None:
    fabric = frr_fabric(attachment)
    texts = texts_of(fabric, name)
    found = become(fabric, name, texts)
    assert isinstance(found, FrrDeclaredState), found
    switch = fabric.switch(name)
    assert found.state.frr == texts["frr.conf"]
    assert found.state.loopback_addresses == (f"{switch.loopback}/32",)
    assert {port.mtu_bytes for port in found.state.ports} == {switch.mtu_bytes}
    assert all(port.is_enabled for port in found.state.ports)
    assert found.daemons == {"zebra", "staticd", "bgpd", "bfdd"}
    assert found.state.snmp is not None
    assert [user.name for user in found.state.snmp.users] == ["watcher"]
    assert found.without_link_local >= {kernel_name(port.name) for port in switch.host_ports}
    assert len(found.state.vlans) == (1 if switch.vlan else 0)


def without(texts: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield each line with its file, and the files without it; nested lines are removed with it."""
    for file, text in texts.items():
        lines = text.splitlines()
        for index, line in enumerate(lines):
            if not line.strip():
                continue
            indent = len(line) - len(line.lstrip())
            end = index + 1
            while (
                file == "netplan.yaml"
                and end < len(lines)
                and lines[end].strip()
                and len(lines[end]) - len(lines[end].lstrip()) > indent
            ):
                end += 1
            rest = "\n".join(lines[:index] + lines[end:]) + "\n"
            yield file, line.strip(), {**texts, file: rest}


def excuse(file: str, line: str) -> str:
    """Why a line may have no effect; empty if it must have one."""
    excuses = {**COSMETIC["*"], **COSMETIC.get(file, {})}
    return next((reason for pattern, reason in excuses.items() if re.fullmatch(pattern, line)), "")


@pytest.mark.parametrize(("attachment", "name"), [("p2p", "leaf01"), ("vlan", "leaf01"), ("p2p", "spine01")])
def test_every_line_has_an_effect_or_an_excuse(attachment: str, name: str) -> None:
    fabric = frr_fabric(attachment)
    texts = texts_of(fabric, name)
    whole = become(fabric, name, texts)
    assert isinstance(whole, FrrDeclaredState), whole
    swallowed, needless = [], []
    for file, line, rest in without(texts):
        is_same = become(fabric, name, rest) == whole
        if is_same and not excuse(file, line):
            swallowed.append(f"{file}: {line}")
        if not is_same and excuse(file, line) and not line.startswith(("#", "!")):
            needless.append(f"{file}: {line}")
    assert (swallowed, needless) == ([], [])


@pytest.mark.parametrize(
    ("file", "before", "after", "complaint"),
    [
        ("netplan.yaml", "mtu: 9216", "mtu: 99999", "swp1s0: invalid mtu 99999"),
        ("netplan.yaml", "mtu: 9216", "mut: 9216", "swp1s0: unknown key 'mut'"),
        ("netplan.yaml", "swp1s0:", "swp99:", "there is no interface swp99"),
        ("netplan.yaml", "network:", "network", "netplan"),
        ("netplan.yaml", "stp: false", "stp: maybe", "invalid stp 'maybe'"),
        ("netplan.yaml", "interfaces: [swp1s0", "interfaces: [swp98", "there is no interface swp98"),
        ("chrony.conf", "rtcsync", "rtcsnyc", "'rtcsnyc' is not understood"),
        ("lldpd.conf", "tx-interval", "tx-intreval", "is not understood"),
        ("rsyslog.conf", "omfwd", "om fwd !", "is not understood"),
        ("snmpd.conf", "rouser", "rwuser", "is not understood"),
        ("daemons", "bgpd=yes", "bgpd=maybe", "'bgpd=maybe' is not understood"),
        ("sysctl.conf", "ip_forward = 1", "ip_forward 1", "is not understood"),
    ],
)
def test_unknown_lines_are_refused(file: str, before: str, after: str, complaint: str) -> None:
    fabric = frr_fabric("vlan")
    texts = texts_of(fabric, "leaf01")
    assert before in texts[file]
    found = become(fabric, "leaf01", {**texts, file: texts[file].replace(before, after, 1)})
    assert isinstance(found, str)
    assert complaint in found


def test_a_switch_without_files_has_every_port_down() -> None:
    found = become(frr_fabric("p2p"), "leaf01", {})
    assert isinstance(found, FrrDeclaredState)
    assert {port.is_enabled for port in found.state.ports} == {False}
    assert (found.state.frr, found.state.snmp) == ("", None)
    assert found.daemons == {"zebra", "staticd"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=12,
)
KEYS = st.sampled_from([*files.SECTIONS, *files.SHARED, *files.BRIDGE_ONLY, "lo", "swp1", "stp", "vlan1"])


@given(st.text() | st.dictionaries(KEYS, st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON))).map(repr))
def test_any_netplan_is_accepted_or_refused(text: str) -> None:
    for whole in (text, f"network: {text}"):
        with contextlib.suppress(ConfigRefusedError):
            assert isinstance(files.parse(whole, ("swp1",)), Netplan)
