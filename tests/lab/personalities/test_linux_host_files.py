"""The files of a host: every line has an effect, and unknown content is refused."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netkit.design.fabric import Fabric
from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.linux_host import declared
from netkit.lab.personalities.linux_host.declared import Declared, declare
from netkit.lab.personalities.linux_host.networkd import generator
from tests.lab.personalities.linux_host_desk import rendered, small

needs_netplan = pytest.mark.skipif(not Path(generator()).exists(), reason="netplan is not installed")
pytestmark = needs_netplan
SCRIPT = "netkit-nic-qos"
"""These lines are a program, not settings: the tests of the running lab cover them."""
COSMETIC: Mapping[str, Mapping[str, str]] = {
    "netplan.yaml": {
        r"  version: 2": "netplan knows no other version and asks for none",
        r"      renderer: networkd": "netplan takes networkd by itself where no desktop asks for another",
        r"      dhcp4: false": "no DHCP is netplan's default",
        r"      dhcp6: false": "no DHCP is netplan's default",
    },
    "mlxconfig.conf": {
        r"LINK_TYPE_P1=2": "the lab's NICs leave the factory as Ethernet",
        r"ROCE_ADAPTIVE_ROUTING_EN=0": "the lab's NICs leave the factory without it",
        r"CNP_DSCP_P1=48": "the lab's NICs leave the factory with this DSCP",
        r"CNP_802P_PRIO_P1=6": "the lab's NICs leave the factory with this priority",
    },
}
VARIANTS: Mapping[str, dict[str, Any]] = {
    "netplan": {"adaptive_routing": True, "cross_rail": "blocked"},
    "networkd": {"hosts": {"backend": "networkd"}, "attachment": "vlan"},
    "macs": {"overrides": {"gpu01": {"macs": {0: "a0:88:c2:00:00:10", 1: "a0:88:c2:00:00:11"}}}},
}


def read(files: Mapping[str, str], built: Fabric, folder: Path) -> Declared:
    declared.write(folder / "disk", files, declared.installs(files))
    return declare(folder / "disk", built.hosts[0])


def without_a_line(files: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    for name, text in files.items():
        lines = text.splitlines(keepends=True)
        for at, line in enumerate(lines):
            if name != SCRIPT and line.strip() and not line.lstrip().startswith("#"):
                yield name, line.rstrip("\n"), {**files, name: "".join(lines[:at] + lines[at + 1 :])}


def is_cosmetic(name: str, line: str) -> bool:
    return any(re.fullmatch(pattern, line) for pattern in COSMETIC.get(name, {}))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_missing_line_is_detected(variant: str, tmp_path: Path) -> None:
    built = small(VARIANTS[variant])
    files = rendered(built, built.hosts[0])
    whole = read(files, built, tmp_path)
    unseen, checked = [], 0
    for name, line, changed in without_a_line(files):
        checked += 1
        try:
            is_missed = read(changed, built, tmp_path) != whole
        except ConfigRefusedError:
            is_missed = True
        if is_missed == is_cosmetic(name, line):
            unseen.append((name, line))
    assert checked > 60
    assert unseen == []


def test_a_host_configures_what_is_designed(tmp_path: Path) -> None:
    built = small({"adaptive_routing": True})
    host = built.hosts[0]
    found = read(rendered(built, host), built, tmp_path)
    assert {name for name in found.links if name.endswith(".network")} == {
        f"10-netplan-{nic.interface}.network" for nic in host.nics
    }
    rules = {section for sections in found.links.values() for section in sections if section[0] == "RoutingPolicyRule"}
    assert {dict(rows).get("OutgoingInterface") for _, rows in rules} == {None, *(nic.interface for nic in host.nics)}
    assert {found.names[nic.interface].name for nic in host.nics} == {nic.interface for nic in host.nics}
    assert found.sysctls["net.ipv4.conf.rail1.rp_filter"] == "2"
    assert found.firmware["ROCE_CC_PRIO_MASK_P1"] == 8
    assert found.firmware["ROCE_ADAPTIVE_ROUTING_EN"] == 1
    assert found.nccl["NCCL_IB_TC"] == "106"
    assert found.scripts == {f"/usr/local/sbin/{SCRIPT}"}


REFUSED = {
    "netplan.yaml": [("      mtu: ", "      mtus: ", "mtus")],
    "oif.conf": [
        ("OutgoingInterface=", "OutInterface=", "unknown key 'OutInterface'"),
        ("[RoutingPolicyRule]", "[RoutingPolicyRules]", "unknown section [RoutingPolicyRules]"),
        ("Family=ipv4", "Family ipv4", "'Family ipv4' is not a setting"),
    ],
    "90-netkit-rails.conf": [
        ("net.ipv4.conf.all.arp_ignore = 1", "net.ipv4.conf.all.arp_ignored = 1", "arp_ignored"),
        ("net.ipv4.conf.all.arp_ignore = 1", "net.ipv4.conf.all.arp_ignore = 9", "= 9"),
        ("-net.ipv4.conf.rail0.rp_filter", "-net.ipv4.conf.rail9.rp_filter", "unknown key 'net.ipv4.conf.rail9"),
        ("net.ipv4.conf.all.rp_filter = 2", "nonsense", "unknown key 'nonsense'"),
    ],
    "70-netkit-rails.rules": [
        ("SUBSYSTEM!=", "SUBSYTEM!=", "70-netkit-rails.rules:3: cannot be read"),
        ('LABEL="netkit_rails_end"', 'LABEL="netkit_rail_end"', "no LABEL netkit_rails_end"),
        ('GOTO="netkit_rails_end"', 'GOTO="netkit_rails_end', "cannot be read"),
    ],
    "netkit-nic-qos@.service": [
        ("ExecStart=", "ExecStrat=", "ExecStrat"),
        ("Type=oneshot", "Type=onshot", "'onshot'"),
        ("[Service]", "[Servise]", "no ExecStart"),
    ],
    "mlxconfig.conf": [
        ("LINK_TYPE_P1=2", "LINK_TYPE_P1=3", "LINK_TYPE_P1=3 is unknown"),
        ("CNP_DSCP_P1=48", "CNP_DSCP_P1=64", "CNP_DSCP_P1=64 is unknown"),
        ("CNP_DSCP_P1=48", "CNP_DSCP=48", "CNP_DSCP=48 is unknown"),
        ("CNP_DSCP_P1=48", "CNP_DSCP_P1", "'CNP_DSCP_P1' is not a setting"),
    ],
    "nccl.conf": [
        ("NCCL_IB_TC=106", "NCCL_IB_TCLASS=106", "NCCL_IB_TCLASS=106 is unknown"),
        ("NCCL_IB_TC=106", "NCCL_IB_TC=", "NCCL_IB_TC= is unknown"),
    ],
    "install.txt": [
        ("0600 netplan.yaml", "netplan.yaml", "is not 'mode file target'"),
        ("/etc/nccl.conf", "/etc/passwd", "nothing may be installed as /etc/passwd"),
        ("/etc/nccl.conf", "/etc/netplan/../passwd", "nothing may be installed as"),
        ("0644 nccl.conf", "0644 nickel.conf", "there is no file nickel.conf"),
        ("0755 netkit-nic-qos", "0644 netkit-nic-qos", "/usr/local/sbin/netkit-nic-qos is not executable"),
    ],
}


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"), [(name, *case) for name, cases in REFUSED.items() for case in cases]
)
def test_unknown_content_is_refused(name: str, before: str, after: str, problem: str, tmp_path: Path) -> None:
    built = small()
    files = rendered(built, built.hosts[0])
    assert before in files[name]
    changed = {**files, name: files[name].replace(before, after, 1)}
    with pytest.raises(ConfigRefusedError) as refusal:
        read(changed, built, tmp_path)
    assert problem in str(refusal.value)


def test_a_file_with_an_unknown_path_is_refused(tmp_path: Path) -> None:
    built = small()
    files = {**rendered(built, built.hosts[0]), "extra.conf": "x\n"}
    with pytest.raises(ConfigRefusedError, match=r"extra\.conf: install\.txt does not list it"):
        read(files, built, tmp_path)


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    built = small()
    files = rendered(built, built.hosts[0])
    files["nccl.conf"] += "NICKEL=1\n"
    files["mlxconfig.conf"] += "LINK_TYPE_P1=IB4\n"
    with pytest.raises(ConfigRefusedError) as refusal:
        read(files, built, tmp_path)
    assert str(refusal.value).splitlines() == [
        "etc/netkit/mlxconfig.conf: LINK_TYPE_P1=IB4 is unknown to the NICs",
        "etc/nccl.conf: NICKEL=1 is unknown to NCCL",
    ]
