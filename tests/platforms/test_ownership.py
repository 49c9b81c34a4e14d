"""Ownership: as the templates declare, no more, and never accounts or management access outside the intent."""

import pytest

from netkit.platforms.compare import compare
from netkit.platforms.eos.model import MODEL as EOS
from netkit.platforms.frr.model import MODEL as FRR
from netkit.platforms.linux.model import MODEL as LINUX
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.platforms.ownership import Ownership
from netkit.platforms.sonic.model import MODEL as SONIC
from tests.platforms.samples import samples

# Rendered and owned by the template, but printed by every vtysh.
VTYSH = frozenset({"hostname", "service integrated-vtysh-config"})


def test_everything_that_templates_render_is_owned() -> None:
    for model in (NVUE, SONIC, EOS, FRR, LINUX):
        left = {
            path[-1]
            for files in samples(model.platform).values()
            for path in model.parse(files)
            if model.ownership.precedence(path) < 0
            and not path[-1].startswith("interface ")  # below it, the description is
        }
        assert left == (VTYSH if model in (SONIC, FRR) else frozenset()), model.platform


STRANGERS = [
    (
        "nvue",
        "startup.yaml",
        "    system:\n",
        "    system:\n      api: {state: enabled}\n      ssh-server: {state: enabled}\n",
    ),
    ("nvue", "startup.yaml", "        user:\n", "        user:\n          cumulus: {role: system-admin}\n"),
    ("nvue", "startup.yaml", "    vrf:\n", "    vrf:\n      storage: {router: {bgp: {state: enabled}}}\n"),
    ("sonic", "config_db.json", "{\n", '{\n "TACPLUS_SERVER": {"192.0.2.9": {"passkey": "x"}},\n'),
    ("sonic", "config_db.json", '   "hostname":', '   "mac": "00:11:22:33:44:55",\n   "hostname":'),
    (
        "sonic",
        "config_db.json",
        ' "BUFFER_PROFILE": {\n',
        ' "BUFFER_PROFILE": {\n  "pg_lossless_400000_40m_profile": {"xon": "1"},\n',
    ),
    ("sonic", "frr.conf", "hostname leaf01\n", "hostname sonic\nagentx\npassword zebra\n"),
    (
        "eos",
        "eos.cfg",
        "!\nservice",
        "username admin privilege 15 role network-admin nopassword\ntacacs-server key 7 0518\n!\nservice",
    ),
    (
        "eos",
        "eos.cfg",
        "interface Loopback0",
        "interface Ethernet64/1\n!\ninterface Ethernet64/5\n!\ninterface Loopback0",
    ),
    ("frr", "frr.conf", "hostname leaf01\n", "frr version 8.4.4\nhostname lab-box\n"),
    ("frr", "frr.conf", "interface swp1s0\n", "interface swp1s0\n ip ospf area 0\n"),
]


@pytest.mark.parametrize(("platform", "file", "before", "put"), STRANGERS)
def test_unowned_configuration_is_left_alone(platform: str, file: str, before: str, put: str) -> None:
    model = {"nvue": NVUE, "sonic": SONIC, "eos": EOS, "frr": FRR}[platform]
    name = next(one for one in samples(platform) if one.endswith("plain/leaf01") and not one.startswith("5.14"))
    files = samples(platform)[name]
    assert before in files[file]
    running = {**files, file: files[file].replace(before, put, 1)}
    assert compare(model, running, files).changes == ()
    assert compare(model, dict(files), running, owner=files).changes == ()


def without(text: str, first: str, last: str) -> str:
    start = text.index(first)
    return text[:start] + text[text.index(last, start) :]


@pytest.mark.parametrize(
    ("platform", "file", "first", "last"),
    [
        ("nvue", "startup.yaml", "      eth0:\n", "      lo:\n"),
        ("nvue", "startup.yaml", "      aaa:\n", "      date-time:\n"),
        ("sonic", "config_db.json", ' "MGMT_PORT": {', ' "DNS_NAMESERVER": {'),
        ("eos", "eos.cfg", "!\ninterface Management1\n", "!\nip routing ipv6"),
        ("eos", "eos.cfg", "username netkit", "vlan internal"),
        ("frr", "netplan.yaml", "    eth0:\n", "    swp1s0:"),
    ],
)
def test_management_access_outside_the_intent_is_not_removed(platform: str, file: str, first: str, last: str) -> None:
    model = {"nvue": NVUE, "sonic": SONIC, "eos": EOS, "frr": FRR}[platform]
    name = next(one for one in samples(platform) if one.endswith("plain/leaf01") and not one.startswith("5.14"))
    files = samples(platform)[name]
    untold = {**files, file: without(files[file], first, last)}
    assert untold != files
    assert compare(model, dict(files), untold).changes == ()
    there = compare(model, dict(untold), files)
    assert there.changes
    back = compare(model, dict(files), untold, owner=files)
    assert {change.path for change in back.changes} == {change.path for change in there.changes}


def test_the_file_of_a_removed_service_stays() -> None:
    files = samples("frr")["8.4.4/plain/leaf01"]
    fewer = {name: text for name, text in files.items() if name != "snmpd.conf"}
    assert compare(FRR, dict(files), fewer).changes == ()


def test_every_file_of_a_host_is_owned() -> None:
    files = samples("linux")["5.16.1/plain/gpu01"]
    assert LINUX.ownership.restrict(LINUX.parse(files), ()) == LINUX.parse(files)


def test_the_longer_of_two_patterns_applies() -> None:
    ownership = Ownership(owned=(("a",), ("a", "b", "c")), claimed=(("a", "*"),))
    paths = [("a",), ("a", "x"), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d"), ("z",)]
    assert [ownership.precedence(path) for path in paths] == [0, 2, 2, 0, 0, -1]
