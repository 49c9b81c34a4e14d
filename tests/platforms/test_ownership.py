"""What is netkit's: as the templates say, no more, and never an account or a way in that netkit was not told of."""

import re

import pytest

from netkit.platforms.compare import compare
from netkit.platforms.config import Path
from netkit.platforms.eos.model import MODEL as EOS
from netkit.platforms.frr.model import MODEL as FRR
from netkit.platforms.linux.model import MODEL as LINUX
from netkit.platforms.nvue.model import MODEL as NVUE
from netkit.platforms.ownership import Ownership
from netkit.platforms.sonic.model import MODEL as SONIC
from tests.platforms.samples import ENGINE, samples

# Rendered, and owned by the template, but each vtysh prints its own.
VTYSH = frozenset({"hostname", "service integrated-vtysh-config"})


def declared(template: str) -> list[str]:
    return list(ENGINE.source(template).owns)


def own(ownership: Ownership) -> tuple[Path, ...]:
    return (*ownership.owned, *ownership.claimed)


def test_nvue_owns_what_its_template_says() -> None:
    told = {tuple(path.split(".")) for path in declared("nvue/startup.yaml.j2")}
    assert {path for path in own(NVUE.ownership) if path != ("interface", "eth*")} == {
        (*path, "*") if path == ("system", "aaa", "user") else path for path in told
    }


def test_sonic_owns_what_its_templates_say() -> None:
    told = {tuple(path.split("|")) for path in declared("sonic/config_db.json.j2")}
    tables = {path for path in own(SONIC.ownership) if path[0] != "frr.conf"}
    finer = {path for path in SONIC.ownership.claimed if "*" in "".join(path)}
    assert tables - finer == told
    assert all(any(SONIC.ownership.standing((*path, "x", "y")) >= 0 for path in told) for _ in finer)
    lines = [path[1] for path in own(SONIC.ownership) if path[0] == "frr.conf"]
    check_lines(lines, declared("sonic/frr.conf.j2"), VTYSH)


def test_eos_owns_what_its_template_says() -> None:
    check_lines([path[0] for path in own(EOS.ownership)], declared("eos/eos.cfg.j2"))


def test_frr_owns_what_its_template_says() -> None:
    check_lines(
        [path[1] for path in own(FRR.ownership) if path[0] == "frr.conf" and len(path) > 1],
        declared("frr/frr.conf.j2"),
        VTYSH,
    )


def check_lines(patterns: list[str], told: list[str], left: frozenset[str] = frozenset()) -> None:
    """Hold patterns of lines against the beginnings of lines that a template declares; `no x` goes with x."""
    begins = [re.sub(r"^no ", "", re.sub(r"[*\[].*", "", pattern)).strip() for pattern in patterns]
    beginnings = [line.partition(" *")[0] for line in told if line not in left]
    assert [
        one for one in begins if not any(one.startswith(other) or other.startswith(one) for other in beginnings)
    ] == []
    assert [
        one for one in beginnings if not any(one.startswith(other) or other.startswith(one) for other in begins)
    ] == []


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
def test_what_is_not_netkits_is_left_alone(platform: str, file: str, before: str, put: str) -> None:
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
def test_the_way_in_is_not_removed_because_netkit_was_not_told_of_it(
    platform: str, file: str, first: str, last: str
) -> None:
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


def test_a_file_of_a_service_nobody_wants_any_more_stays() -> None:
    files = samples("frr")["8.4.4/plain/leaf01"]
    fewer = {name: text for name, text in files.items() if name != "snmpd.conf"}
    assert compare(FRR, dict(files), fewer).changes == ()


def test_every_file_of_a_host_is_netkits() -> None:
    files = samples("linux")["5.16.1/plain/gpu01"]
    assert LINUX.ownership.restrict(LINUX.parse(files), ()) == LINUX.parse(files)


def test_the_longer_of_two_patterns_holds() -> None:
    ownership = Ownership(owned=(("a",), ("a", "b", "c")), claimed=(("a", "*"),))
    paths = [("a",), ("a", "x"), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d"), ("z",)]
    assert [ownership.standing(path) for path in paths] == [0, 2, 2, 0, 0, -1]
