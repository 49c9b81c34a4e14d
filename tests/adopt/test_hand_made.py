"""A fabric of Linux switches and GPU hosts whose files netkit did not write is adopted, and its plan is empty."""

from pathlib import Path

import pytest

from netkit.platforms.config import Files
from netkit.project.adopting import adopted

SPINE = """\
hostname core-{number}
frr defaults datacenter
router bgp 65000
 bgp router-id 10.0.0.{number}
 neighbor DOWN peer-group
 neighbor DOWN remote-as external
 neighbor DOWN bfd
 neighbor swp1s0 interface peer-group DOWN
 neighbor swp1s0 description tor-1 swp33s{port}
 neighbor swp1s1 interface peer-group DOWN
 neighbor swp1s1 description tor-2 swp33s{port}
 address-family ipv4 unicast
  redistribute connected
{paths} exit-address-family
exit
"""
SPINE_PORTS = """\
network:
  ethernets:
    lo: {{addresses: [10.0.0.{number}/32]}}
    swp1s0: {{mtu: 9216}}
    swp1s1: {{mtu: 9216}}
    mgmt0: {{addresses: [192.0.2.{number}/24], gateway4: 192.0.2.254}}
"""
LEAF = """\
router bgp 6500{number}
 bgp router-id 10.0.0.1{number}
 bgp bestpath as-path multipath-relax
 neighbor UP peer-group
 neighbor UP remote-as external
 neighbor UP bfd
 neighbor swp33s0 interface peer-group UP
 neighbor swp33s1 interface peer-group UP
 address-family ipv4 unicast
  redistribute connected
{paths} exit-address-family
exit
hostname tor-{number}
frr defaults datacenter
interface swp1s0
 description gpu-a rdma{rail}
exit
interface swp1s1
 description gpu-b rdma{rail}
exit
"""
LEAF_PORTS = """\
network:
  ethernets:
    lo: {{addresses: [10.0.0.1{number}/32]}}
    swp1s0: {{mtu: 9216, addresses: [172.16.{number}.0/31]}}
    swp1s1: {{mtu: 9216, addresses: [172.16.{number}.2/31]}}
    swp33s0: {{mtu: 9216}}
    swp33s1: {{mtu: 9216}}
    mgmt0: {{addresses: [192.0.2.1{number}/24], gateway4: 192.0.2.254}}
"""
NIC = """\
    rdma{rail}:
      match: {{macaddress: "B8:3F:D2:00:0{slot}:0{rail}"}}
      set-name: rdma{rail}
      mtu: 4200
      addresses: [172.16.{leaf}.{address}/31]
      routes:
      - {{to: 172.16.{leaf}.0/24, via: 172.16.{leaf}.{gateway}}}
      - {{to: 172.16.0.0/16, via: 172.16.{leaf}.{gateway}, table: {table}}}
      routing-policy: [{{from: 172.16.{leaf}.{address}, table: {table}}}]
"""
RULES = """\
SUBSYSTEM=="net", KERNELS=="0000:18:00.0", NAME="rdma0"
SUBSYSTEM=="net", KERNELS=="0000:40:00.0", NAME="rdma1"
"""
SETUP = """\
#!/bin/sh
for nic in rdma0 rdma1; do
    mlnx_qos -i $nic --trust dscp --pfc 0,0,0,0,1,0,0,0
    echo 40 > /sys/class/net/$nic/ecn/roce_np/cnp_dscp
done
"""


def host(slot: int) -> Files:
    nics = (
        NIC.format(rail=rail, slot=slot, leaf=rail + 1, address=2 * slot + 1, gateway=2 * slot, table=100 + rail)
        for rail in (0, 1)
    )
    return {
        "60-gpu.yaml": "".join(("network:\n  version: 2\n  ethernets:\n", *nics)),
        "90-names.rules": RULES,
        "roce-setup": SETUP,
        "nccl.conf": "NCCL_SOCKET_IFNAME==enp170s0f0\nNCCL_IB_TC=138\n",
    }


def fabric(paths: str) -> dict[str, Files]:
    spines = {
        f"core-{number}": {
            "frr.conf": SPINE.format(number=number, port=number - 1, paths=paths),
            "netplan.yaml": SPINE_PORTS.format(number=number),
        }
        for number in (1, 2)
    }
    leaves = {
        f"tor-{number}": {
            "frr.conf": LEAF.format(number=number, rail=number - 1, paths=paths),
            "netplan.yaml": LEAF_PORTS.format(number=number),
        }
        for number in (1, 2)
    }
    return {**spines, **leaves, "gpu-a": host(0), "gpu-b": host(1)}


@pytest.mark.parametrize(("paths", "expected"), [("", None), ("  maximum-paths 32\n", 32)])
def test_a_fabric_made_by_hand_is_adopted(paths: str, expected: int | None) -> None:
    found = adopted("hand", fabric(paths), {}, Path())
    proposal = found.proposal
    assert (found.unread, found.remaining) == ({}, {})
    assert {one.device for one in proposal.fabric.links()} == {"gpu-a", "gpu-b", "tor-1", "tor-2"}
    assert proposal.links.dangling == ()
    assert (proposal.fabric.routing.max_paths if expected else None) == expected
    assert (("routing", "max_paths by default: 256 is too large") in proposal.guesses) == (expected is None)
    hosts = proposal.values["hosts"]
    assert hosts == {
        "model": "dgx-h100",
        "mtu_bytes": 4200,
        "backend": "netplan",
        "management_interface": "enp170s0f0",
        "table_base": 100,
    }
    lossless = proposal.fabric.lossless
    assert (lossless.roce.priority, lossless.tos >> 2, lossless.cnp_dscp) == (4, 34, 40)
    assert proposal.values["routing"] == {
        "spine_asn": "shared",
        "allowas_in": False,
        "keepalive_s": 3,
        "hold_s": 9,
        "connect_s": 10,
        "leaf_export": "all",
        "bfd": {"interval_ms": 300, "multiplier": 3},
        **({"max_paths": expected} if expected else {}),
    }
    found_switches = {
        switch.name: (switch.asn, switch.loopback, switch.management and switch.management.address)
        for switch in proposal.fabric.switches
    }
    assert found_switches == {
        "core-1": (65000, "10.0.0.1", "192.0.2.1"),
        "core-2": (65000, "10.0.0.2", "192.0.2.2"),
        "tor-1": (65001, "10.0.0.11", "192.0.2.11"),
        "tor-2": (65002, "10.0.0.12", "192.0.2.12"),
    }
    assert {
        (one.name, nic.rail, nic.address, nic.leaf, nic.mac) for one in proposal.fabric.hosts for nic in one.nics
    } == {
        (f"gpu-{letter}", rail, f"172.16.{rail + 1}.{2 * slot + 1}", f"tor-{rail + 1}", f"b8:3f:d2:00:0{slot}:0{rail}")
        for slot, letter in enumerate("ab")
        for rail in (0, 1)
    }
