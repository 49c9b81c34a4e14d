"""Plain Linux with FRR: rendered files, and the real programs that load them."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.design.fabric import Fabric
from netkit.platforms.frr import view
from netkit.platforms.frr.dialects import dialect
from netkit.render import Engine, render
from tests import intents
from tests.conftest import Golden
from tests.frr_daemons import lone_switch, needs_frr, run
from tests.frr_text import loose_ends, sections

NETPLAN = Path("/usr/libexec/netplan/generate")
VERSIONS = ("8.4.4", "10.2")
ENGINE = Engine()
DRAINED = {"spine01": {"drain": True}, "leaf01": {"drain_neighbors": ["spine02"]}}
THREE_TIER: dict[str, Any] = {
    "topology": "three-tier",
    "ceilings": {"pods": 2, "cores": 2},
    "switches": {
        "spine": {"uplink_breakout": "2x400G"},
        "core": {"model": "SN5600", "platform": "frr", "version": "8.4.4", "breakout": "2x400G", "slots": 2},
    },
    "units": [{"pod": "1-2", "unit": "1", "hosts": 2}],
    "cables": {"core": {"media": "800G-2xSR4", "length_m": 20}},
    "names": None,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "p2p": {},
    "vlan": {"attachment": "vlan"},
    "drains": {"overrides": DRAINED},
    "three-tier": THREE_TIER,
    "three-tier drains": {
        **THREE_TIER,
        "overrides": {"spine-p01-01": {"drain_neighbors": ["leaf-p01-u01-r0", "core-00-01"]}},
    },
    "rail-only": {
        "topology": "rail-only",
        "cross_rail": "blocked",
        "switches": {"spine": None},
        "units": [{"unit": 1, "hosts": 4}],
    },
    "own AS number allowed": {"routing": {"allowas_in": True, "spine_asn": "shared"}},
    "other timers": {"routing": {"bfd": {"interval_ms": 100, "multiplier": 5}, "max_paths": 128, "connect_s": 120}},
    "slowest timers": {"routing": {"keepalive_s": 60, "hold_s": 180, "connect_s": 240}},
    "one host to a leaf": {"ceilings": {"hosts_per_unit": 1}, "units": [{"unit": "1-2", "hosts": 1}]},
    "twelve units": {"ceilings": {"units": 12}, "units": [{"unit": "1-12", "hosts": 1}]},
    "bare": {"management": None, "services": {"snmp": None, "login": None, "ntp": [], "dns": [], "syslog": []}},
}
# Switches of these variants together have every line that netkit can render.
CASES = [
    *((variant, name) for variant in ("p2p", "drains") for name in ("leaf01", "spine01")),
    *((variant, "leaf01") for variant in VARIANTS if not variant.startswith(("p2p", "drains", "t"))),
    *(("three-tier", name) for name in ("leaf-p02-u01-r1", "spine-p01-01", "core-00-01")),
    ("three-tier drains", "spine-p01-01"),
    ("twelve units", "spine01"),
]
NEEDS = {"chrony.conf": "chronyd", "rsyslog.conf": "rsyslogd", "snmpd.conf": "snmpd", "lldpd.conf": "lldpd"}
needs_netplan = pytest.mark.skipif(not NETPLAN.exists(), reason="netplan.io is not installed")


def needs(file: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(NEEDS[file]), reason=f"{NEEDS[file]} is not installed")


@cache
def designed(variant: str, version: str = "8.4.4") -> Fabric:
    return intents.fabric(intents.on_platform("frr", version, VARIANTS[variant]))


def rendered(fabric: Fabric, name: str) -> Mapping[str, str]:
    (device,) = render(fabric, [fabric.switch(name)], ENGINE)
    return device.files


def bgp_lines(text: str) -> list[str]:
    (section,) = (lines for header, lines in sections(text).items() if header.startswith("router bgp"))
    return [line.text for line in section]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["leaf01", "spine01"])
def test_files_of_a_p2p_fabric_match_golden(golden: Golden, version: str, name: str) -> None:
    files = rendered(designed("p2p", version), name)
    assert sorted(files) == [
        "chrony.conf",
        "daemons",
        "frr.conf",
        "lldpd.conf",
        "netplan.yaml",
        "rsyslog.conf",
        "snmpd.conf",
        "sysctl.conf",
    ]
    for file, text in files.items():
        golden(f"frr-{version}/{name}/{file}", text)


@pytest.mark.parametrize("version", VERSIONS)
def test_routing_and_interfaces_of_a_drained_vlan_fabric_match_golden(golden: Golden, version: str) -> None:
    fabric = intents.fabric(intents.on_platform("frr", version, {"attachment": "vlan", "overrides": DRAINED}))
    for name in ("leaf01", "spine01"):
        files = rendered(fabric, name)
        for file in ("frr.conf", "netplan.yaml"):
            golden(f"frr-{version}/vlan-drained-{name}/{file}", files[file])


@pytest.mark.parametrize("version", VERSIONS)
def test_first_boot_matches_golden(golden: Golden, version: str) -> None:
    fabric = designed("p2p", version)
    for artifact in view.ztp(fabric, fabric.switch("leaf01")):
        golden(f"frr-{version}/ztp/{artifact.file}", ENGINE.render(artifact.template, artifact.context, "leaf01"))


def test_without_a_management_address_there_is_no_first_boot() -> None:
    fabric = designed("bare")
    assert list(view.ztp(fabric, fabric.switch("leaf01"))) == []


def test_unused_features_are_not_rendered() -> None:
    files = rendered(designed("bare"), "leaf01")
    assert sorted(files) == ["daemons", "frr.conf", "lldpd.conf", "netplan.yaml", "sysctl.conf"]
    assert "vrfs" not in yaml.safe_load(files["netplan.yaml"])["network"]
    unsigned = intents.on_platform("frr", "8.4.4", {"services": {"snmp": {"priv_secret": None}}})
    assert "snmpd.conf" not in rendered(intents.fabric(unsigned), "leaf01")


@needs_frr
@pytest.mark.parametrize("version", VERSIONS)
def test_vtysh_accepts_every_golden_file(version: str) -> None:
    files = sorted((Path(__file__).parent / "golden" / f"frr-{version}").rglob("frr.conf"))
    assert len(files) == 4
    for file in files:
        assert run("vtysh", "-C", "-f", file) == ""


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_name_is_defined_and_used(variant: str) -> None:
    fabric = designed(variant)
    for switch in fabric.switches:
        assert list(loose_ends(rendered(fabric, switch.name)["frr.conf"])) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("route-map TO-SPINES permit 10\n", "route map TO-SPINES is not defined"),
        (" neighbor SPINES peer-group\n", "peer group SPINES is not defined"),
        ("bfd\n profile fabric\n", "BFD profile fabric is not defined"),
        (
            "ip prefix-list LOCAL seq 10 permit 10.255.0.1/32\nip prefix-list LOCAL seq 20 permit 10.128.0.0/29\n",
            "prefix list LOCAL is not defined",
        ),
        ("  neighbor SPINES route-map FROM-SPINES in\n", "route map FROM-SPINES is not used"),
    ],
)
def test_an_undefined_or_unused_name_is_detected(line: str, complaint: str) -> None:
    text = rendered(designed("p2p"), "leaf01")["frr.conf"]
    assert line in text
    assert complaint in list(loose_ends(text.replace(line, "")))


@needs_frr
@pytest.mark.parametrize(("variant", "name"), CASES)
def test_real_daemons_accept_every_line_and_print_it_back(variant: str, name: str) -> None:
    files = rendered(designed(variant), name)
    with lone_switch(files) as box:
        box.load(files["frr.conf"])
        running = box.vtysh("-c", "show running-config")
    assert sections(running) == sections(files["frr.conf"])


@needs_frr
def test_real_daemons_accept_a_leaf_that_exports_all() -> None:
    fabric = designed("p2p")
    files = rendered(replace(fabric, routing=replace(fabric.routing, leaf_exports_all=True)), "leaf02")
    assert "route-map TO-SPINES permit 10\n match ip address prefix-list FABRIC\n" in files["frr.conf"]
    with lone_switch(files) as box:
        box.load(files["frr.conf"])
        running = box.vtysh("-c", "show running-config")
    assert sections(running) == sections(files["frr.conf"])


@needs_frr
@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (" neighbor SPINES peer-group\n", ""),
        (" neighbor swp33s0 interface v6only peer-group SPINES\n", " neighbor swp33s0 graceful-shutdown\n"),
    ],
    ids=["undefined peer group", "command FRR 8.4 does not know"],
)
def test_a_line_refused_by_the_daemons_is_detected(line: str, instead: str) -> None:
    files = rendered(designed("p2p"), "leaf01")
    assert line in files["frr.conf"]
    with lone_switch(files) as box, pytest.raises(AssertionError):
        box.load(files["frr.conf"].replace(line, instead))


def test_each_neighbour_has_the_as_number_of_its_cable() -> None:
    for variant in VARIANTS:
        fabric = designed(variant)
        for switch in fabric.switches:
            text = rendered(fabric, switch.name)["frr.conf"]
            wanted = {f"neighbor {port.name} remote-as {fabric.switch(port.peer).asn}" for port in switch.fabric_ports}
            found = [line.text for lines in sections(text).values() for line in lines if " remote-as " in line.text]
            assert len(found) == len(wanted) == len(switch.fabric_ports)
            assert set(found) == wanted


def test_only_the_drained_neighbour_gets_another_policy() -> None:
    found = [line for line in bgp_lines(rendered(designed("drains"), "leaf01")["frr.conf"]) if "route-map" in line]
    assert found == [
        "redistribute connected route-map CONNECTED",
        "neighbor SPINES route-map FROM-SPINES in",
        "neighbor SPINES route-map TO-SPINES out",
        "neighbor swp33s1 route-map FROM-SPINES-DRAINED in",
        "neighbor swp33s1 route-map TO-SPINES-DRAINED out",
    ]


def test_from_frr_10_6_a_neighbour_is_drained_by_command() -> None:
    fabric = intents.fabric(intents.on_platform("frr", "10.6.0", VARIANTS["drains"]))
    text = rendered(fabric, "leaf01")["frr.conf"]
    assert "neighbor swp33s1 graceful-shutdown" in bgp_lines(text)
    assert "DRAINED" not in text
    assert list(loose_ends(text)) == []


def test_dialects_differ_where_frr_changed() -> None:
    forms = {
        version: dialect(version).neighbor_drain for version in ("8.4.4", "8.5.1", "9.0", "10.5.4", "10.6.0", "11.0")
    }
    assert forms == {
        "8.4.4": "route-map",
        "8.5.1": "route-map",
        "9.0": "route-map",
        "10.5.4": "route-map",
        "10.6.0": "command",
        "11.0": "command",
    }
    assert [dialect(version).managed_daemons for version in ("8.5.7", "9.0")] == [(), ("mgmtd",)]


def test_a_rail_only_leaf_routes_without_bgp() -> None:
    fabric = designed("rail-only")
    files = rendered(fabric, "leaf01")
    assert view.routing(fabric, fabric.switch("leaf01"), dialect("8.4.4")) == view.FrrRouting()
    assert [line for line in files["daemons"].splitlines() if line.endswith("=yes")] == ["vtysh_enable=yes"]


def test_the_mac_table_outlives_the_neighbour_table() -> None:
    files = rendered(designed("vlan"), "leaf01")
    (bridge,) = yaml.safe_load(files["netplan.yaml"])["network"]["bridges"].values()
    (reachable,) = (
        line for line in files["sysctl.conf"].splitlines() if line.startswith("-net.ipv4.neigh.default.base_reach")
    )
    longest_s = 1.5 * int(reachable.split()[-1]) / 1000
    assert bridge["parameters"]["ageing-time"] > longest_s


@needs_netplan
@pytest.mark.parametrize("variant", ["p2p", "vlan", "rail-only", "bare"])
def test_netplan_accepts_the_interfaces(variant: str, tmp_path: Path) -> None:
    fabric = designed(variant)
    for name in [switch.name for switch in fabric.switches if switch.role in {"leaf", "spine"}][-2:]:
        text = rendered(fabric, name)["netplan.yaml"]
        units = netplan_units(tmp_path / name, text)
        network = yaml.safe_load(text)["network"]
        interfaces = {**network["ethernets"], **network.get("bridges", {}), **network.get("vrfs", {})}
        assert {file.stem.removeprefix("10-netplan-") for file in units.glob("*.network")} == interfaces.keys()


@needs_netplan
def test_netplan_accepts_the_first_boot(tmp_path: Path) -> None:
    fabric = designed("p2p")
    (artifact,) = (one for one in view.ztp(fabric, fabric.switch("leaf01")) if one.file == "network-config")
    seed = yaml.safe_load(ENGINE.render(artifact.template, artifact.context, "leaf01"))
    units = netplan_units(tmp_path, yaml.safe_dump({"network": {**seed, "renderer": "networkd"}}))
    unit = (units / "10-netplan-eth0.network").read_text(encoding="utf-8")
    assert "Address=192.0.2.10/24" in unit
    assert "Gateway=192.0.2.1" in unit


def netplan_units(root: Path, text: str) -> Path:
    file = root / "etc/netplan/60-netkit.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    done = subprocess.run([NETPLAN, "--root-dir", root], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return root / "run/systemd/network"


@needs_netplan
def test_the_vlan_bridge_joins_the_host_ports_with_the_gateway_on_it(tmp_path: Path) -> None:
    fabric = designed("vlan")
    leaf = fabric.switch("leaf01")
    units = netplan_units(tmp_path, rendered(fabric, "leaf01")["netplan.yaml"])
    assert leaf.vlan is not None
    bridge = f"vlan{leaf.vlan.number}"
    assert f"Address={leaf.vlan.gateway}\n" in (units / f"10-netplan-{bridge}.network").read_text(encoding="utf-8")
    members = {
        file.stem.removeprefix("10-netplan-")
        for file in units.glob("*.network")
        if f"Bridge={bridge}\n" in file.read_text()
    }
    assert members == {port.name for port in leaf.host_ports}


@needs("chrony.conf")
def test_chrony_accepts_its_file(tmp_path: Path) -> None:
    text = rendered(designed("p2p"), "leaf01")["chrony.conf"]
    (tmp_path / "chrony.conf").write_text(text, encoding="utf-8")
    wanted = [line for line in text.splitlines() if not line.startswith("#")]
    assert run("chronyd", "-p", "-f", tmp_path / "chrony.conf").splitlines() == wanted


@needs("rsyslog.conf")
def test_rsyslog_accepts_its_file(tmp_path: Path) -> None:
    (tmp_path / "rsyslog.conf").write_text(rendered(designed("p2p"), "leaf01")["rsyslog.conf"], encoding="utf-8")
    done = subprocess.run(
        ["rsyslogd", "-N1", "-f", tmp_path / "rsyslog.conf"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "config validation run" not in line] == []


@needs("snmpd.conf")
def test_snmpd_knows_every_token(tmp_path: Path) -> None:
    text = rendered(designed("p2p"), "leaf01")["snmpd.conf"]
    assert "Unknown token" not in snmpd(tmp_path / "good", text)
    assert "Unknown token: agentAddres." in snmpd(tmp_path / "bad", text.replace("agentAddress", "agentAddres"))


def snmpd(folder: Path, text: str) -> str:
    """The output of snmpd for a configuration, in a namespace without the address it should listen on."""
    folder.mkdir()
    (folder / "snmpd.conf").write_text(text, encoding="utf-8")
    command = ["unshare", "--net", "env", "MIBS=", f"SNMP_PERSISTENT_DIR={folder}", "timeout", "2"]
    command += ["snmpd", "-f", "-LE", "7", "-C", "-c", str(folder / "snmpd.conf"), "-p", str(folder / "pid")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr


LLDP = """lldpd -d -u $0/socket 2>$0/log & daemon=$!
for try in $(seq 1000); do lldpcli -u $0/socket show chassis >/dev/null 2>&1 && break; sleep 0.05; done
lldpcli -u $0/socket -c $0/lldpd.conf >&2
lldpcli -u $0/socket -f keyvalue show configuration
kill $daemon; wait $daemon
"""


@needs("lldpd.conf")
def test_lldpd_applies_its_file() -> None:
    with tempfile.TemporaryDirectory(prefix="nk") as folder:
        Path(folder).chmod(0o755)  # lldpd drops its privileges
        Path(folder, "lldpd.conf").write_text(rendered(designed("p2p"), "leaf01")["lldpd.conf"], encoding="utf-8")
        command = ["unshare", "--net", "sh", "-c", LLDP, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = dict(line.removeprefix("configuration.config.").split("=") for line in done.stdout.splitlines())
    wanted = {"hostname": "leaf01", "mgmt-pattern": "eth0", "lldp-portid-type": "ifname", "tx-delay": "30"}
    assert {key: found.get(key) for key in wanted} == wanted
    assert done.stderr.strip() == ""


def test_the_view_is_deterministic() -> None:
    fabric = designed("p2p")
    first, second = (json.dumps(dict(rendered(fabric, "leaf01"))) for _ in range(2))
    assert first == second
