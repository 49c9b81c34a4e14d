"""Hand-written files of a Linux switch with FRR: other names, order and style than rendered ones."""

from ipaddress import IPv6Interface

import pytest

from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.platforms.existing import EXISTING, ExistingPort, ExistingServices, ExistingSwitch

MODEL = MODELS["frr"]
FRR_CONF = """\
! our leaf
bfd
 profile quick
  transmit-interval 150
  receive-interval 150
 exit
exit
!
router bgp 4200000101
 neighbor UPLINKS peer-group
 neighbor UPLINKS remote-as external
 neighbor UPLINKS bfd profile quick
 neighbor UPLINKS timers 1 3
 neighbor UPLINKS timers connect 5
 neighbor ens1f0 interface peer-group UPLINKS
 neighbor ens1f0 description to spine-a Ethernet7
 neighbor ens1f1 interface peer-group UPLINKS
 neighbor 10.99.0.2 remote-as 64999
 neighbor 10.99.0.2 description border
 neighbor 10.99.0.2 bfd profile quick
 bgp router-id 10.0.0.11
 !
 address-family ipv4 unicast
  network 10.0.0.11/32
  neighbor UPLINKS activate
  neighbor 10.99.0.2 maximum-prefix 40 70
 exit-address-family
exit
!
interface lo
 ip address 10.0.0.11/32
exit
!
interface ens2f0
 ip address 172.16.0.4/31
 description gpu-a rail 0
exit
!
interface ens2f1
 description a description of the interface
exit
!
interface vlan200
 description storage
exit
!
interface ens1f0.77
exit
!
interface blue vrf blue
exit
!
hostname torn-11
frr version 9.1
frr defaults datacenter
"""
NETPLAN = """\
network:
  version: 2
  bridges:
    br0: {interfaces: [ens3f0]}
    br-vlan301:
      addresses: [10.3.1.1/24]
      interfaces:
        - ens3f1
        - ens3f2
  vrfs:
    mgmt-vrf:
      table: 10
      interfaces: [eno1]
      routes: [{to: default, via: 198.51.100.1}]
    blue: {table: 20, interfaces: [blue0]}
  dummy-devices:
    blue: {}
  ethernets:
    ens2f1: {mtu: 9100, addresses: ["2001:db8::1/64", {"172.16.0.6/31": {label: "x"}}]}
    eno1:
      addresses: ["2001:db8:1::9/64", 198.51.100.9/24]
      nameservers: {search: [example.net], addresses: [198.51.100.53]}
    ens3f1: {mtu: 9216}
    ens3f2: {}
    ens3f0: {mtu: 1500}
    ens9:
      addresses: [203.0.113.2/30]
      routes: [{to: 0.0.0.0/0, via: 203.0.113.1}]
"""
OTHERS = {
    "chrony.conf": "pool ntp.example.net iburst maxsources 4\nserver 198.51.100.2\nmakestep 1 3\nrouser nobody\n",
    "rsyslog.conf": "*.* @@(o)198.51.100.3:6514;RSYSLOG_SyslogProtocol23Format\n"
    "kern.* @[2001:db8::3]\n"
    "auth.* /var/log/auth\n"
    'action(name="far" type="omfwd"\n  protocol="TCP" Target="logs.example.net")\naction(type="omfile" file="/x")\n',
    "snmpd.conf": "syslocation row 3 rack 7\nsysContact noc@example.net\nrouser -s usm watcher priv\n"
    "rwuser admin\nserver 203.0.113.9\n",
}


def existing(files: Files) -> ExistingSwitch:
    return EXISTING["frr"](MODEL.parse(files))


def test_hand_written_files_are_read() -> None:
    found = existing({"frr.conf": FRR_CONF, "netplan.yaml": NETPLAN, **OTHERS})
    assert found == ExistingSwitch(
        hostname="torn-11",
        management="198.51.100.9/24",
        management_gateway="198.51.100.1",
        ports=(
            ExistingPort("ens2f1", "a description of the interface", mtu_bytes=9100),
            ExistingPort("ens3f1", mtu_bytes=9216, vlan=301),
            ExistingPort("ens3f2", vlan=301),
            ExistingPort("ens3f0", mtu_bytes=1500),
            ExistingPort("ens9"),
            ExistingPort("ens1f0", "to spine-a Ethernet7"),
            ExistingPort("ens1f1"),
            ExistingPort("ens2f0", "gpu-a rail 0"),
        ),
        vlans={301: "br-vlan301"},
        services=ExistingServices(
            ntp=("ntp.example.net", "198.51.100.2"),
            dns=("198.51.100.53",),
            syslog=(
                ("logs.example.net", 514, "tcp"),
                ("198.51.100.3", 6514, "tcp"),
                ("2001:db8::3", 514, "udp"),
            ),
            snmp_users=("watcher", "admin"),
            snmp_location="row 3 rack 7",
            snmp_contact="noc@example.net",
        ),
        keepalive_s=1,
        hold_s=3,
        connect_s=5,
        bfd_interval_ms=150,
        bfd_multiplier=3,
        limits={"10.99.0.2": 40},
        with_bfd=frozenset({"10.99.0.2"}),
        addresses_v6={"ens2f1": IPv6Interface("2001:db8::1/64"), "eno1": IPv6Interface("2001:db8:1::9/64")},
    )


@pytest.mark.parametrize(
    ("netplan", "expected"),
    [
        ("{ens1: {addresses: [192.0.2.9/24], gateway4: 192.0.2.1}}", ("192.0.2.9/24", "192.0.2.1")),
        ("{ens1: {addresses: [192.0.2.9/24], routes: [{to: default, via: 192.0.2.1}]}}", ("192.0.2.9/24", "192.0.2.1")),
        ("{ens1: {addresses: [192.0.2.9/24]}}", ("", "")),
        ("{ens1: {dhcp4: true}}", ("", "")),
    ],
)
def test_without_a_vrf_the_default_route_is_that_of_management(netplan: str, expected: tuple[str, str]) -> None:
    found = existing({"netplan.yaml": f"network: {{version: 2, ethernets: {netplan}}}\n"})
    assert (found.management, found.management_gateway) == expected
    assert [port.name for port in found.ports] == ([] if expected[0] else ["ens1"])


def test_numbers_of_bridges_are_not_vlans() -> None:
    bridges = "{br0: {interfaces: [a]}, br7: {interfaces: [b]}, vlan4095: {}, Vlan12: {mtu: 9000}}"
    assert existing({"netplan.yaml": f"network: {{version: 2, bridges: {bridges}}}\n"}).vlans == {12: "Vlan12"}
