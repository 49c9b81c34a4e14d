"""Every field of the intent, changed on every NOS: the output changes, or the manifest explains why it does not.

The table of changes covers the schema: a field that is added to the intent needs a row here.
"""

import ast
import copy
import fnmatch
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import pytest
from pydantic import BaseModel

from netkit.design import Fabric
from netkit.design.hardware_lookup import look_up
from netkit.design.layout import front_panel
from netkit.errors import NetkitError
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms import PLATFORMS
from netkit.render import Engine, render
from tests import intents
from tests.command import ROOT
from tests.test_speeds import MIXED

ENGINE = Engine()
Changes = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """A NOS in one of the forms that use different fields."""

    platform: str
    version: str
    changes: Changes
    other_version: str
    other_model: Changes
    other_platform: Changes

    def values(self, *changes: Changes) -> Changes:
        together: Changes = {}
        for change in (self.changes, *changes):
            merge(together, change)
        return intents.on_platform(self.platform, self.version, together)

    def fabric(self, *changes: Changes) -> Fabric:
        return intents.fabric(self.values(*changes))


def merge(base: Changes, change: Changes) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] = dict(base[key])
            merge(base[key], value)
        else:
            base[key] = value


def both(**tier: Any) -> Changes:
    return {"switches": {"leaf": tier, "spine": tier}}


SN4700 = {"model": "SN4700", "host_breakout": "1x400G", "uplink_breakout": "1x400G"}
ARISTA = {"model": "DCS-7060X6-64PE-B"}
NVUE = {"platform": "nvue", "version": "5.16.1"}
SONIC = {"platform": "sonic", "version": "202411"}
EOS = {"platform": "eos", "version": "4.35.1F"}
TARGETS = {
    "nvue-5.14": Target("nvue", "5.14.0", {}, "5.16.1", SN4700, SONIC),
    "nvue-5.16": Target("nvue", "5.16.1", {}, "5.14.0", SN4700, SONIC),
    "sonic-202305": Target("sonic", "202305", {}, "202411", SN4700, NVUE),
    "sonic-dynamic": Target("sonic", "202411", {}, "202505", SN4700, NVUE),
    "sonic-traditional": Target("sonic", "202505", both(model="DCS-7060X6-64PE"), "202411", ARISTA, EOS),
    "sonic-unified": Target("sonic", "202511", both(routing_mode="unified"), "202511.1", SN4700, NVUE),
    "eos": Target("eos", "4.32.3F", {}, "4.35.1F", ARISTA, SONIC),
    "frr": Target("frr", "10.2", {}, "8.4.4", SN4700, NVUE),
}

VLAN: Changes = {"attachment": "vlan"}
V6 = {"pools": {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}}
MANAGED_V6 = {"management": {"pool_v6": "2001:db8:1::/64", "gateway_v6": "2001:db8:1::1"}}
LINKS_V6 = {"pools": {**V6["pools"], "link_length": 29}}
WIDE: Changes = {  # three tiers, so that there is a core layer and more than one pod
    "topology": "three-tier",
    "ceilings": {"pods": 2, "units": 4, "hosts_per_unit": 4, "spines": 4, "cores": 2},
    "switches": {
        "spine": {"uplink_breakout": "2x400G"},
        "core": {"model": "SN5600", "breakout": "2x400G", "slots": 1, "planes": 2},
    },
    "cables": {"core": {"media": "800G-2xDR4", "length_m": 40}},
    "names": {"spine": "spine{number:02}", "core": "core{number:02}"},
}


def filtered(**given: Any) -> Changes:
    return external(bfd=False, filter=given)


OTHER_PORT = "other port"


def lossless(**given: Any) -> Changes:
    return {"lossless": given}


def services(**given: Any) -> Changes:
    return {"services": given}


def leaf(**given: Any) -> Changes:
    return {"switches": {"leaf": given}}


def spine(**given: Any) -> Changes:
    return {"switches": {"spine": given}}


def core(**given: Any) -> Changes:
    return {"switches": {"core": given}}


def hosts(**given: Any) -> Changes:
    return {"hosts": given}


DISCARDED: Changes = {"via": None, "discard": True}


def static(**given: Any) -> Changes:
    """A static route, by default of leaf01 to its first host."""
    return {"routing": {"static": [{"prefix": "198.18.0.0/16", "via": "10.128.0.1", "devices": "leaf01", **given}]}}


def leaf01(**given: Any) -> Changes:
    return {"overrides": {"leaf01": given}}


def row(**given: Any) -> Changes:
    """A table of one row, by default of leaf01."""
    return {"tables": {"devices": [{"role": "leaf", "unit": 1, "rail": 0, **given}]}}


def spine_row(**given: Any) -> Changes:
    return {"tables": {"devices": [{"role": "spine", "name": "own", **given}]}}


def cable(**given: Any) -> Changes:
    """A table of one cable, by default from gpu01 to an unused port of leaf01."""
    row = {"device": "gpu01", "port": "rail0", "peer": "leaf01", "peer_port": OTHER, **given}
    return {"tables": {"cables": [{key: value for key, value in row.items() if value is not None}]}}


def rail(**given: Any) -> Changes:
    return {"tables": {"rails": [{"rail": 0, **given}]}}


def nic(**given: Any) -> Changes:
    return {"tables": {"nics": [{"host": "gpu01", "rail": 0, **given}]}}


def uplink(**given: Any) -> Changes:
    return cable(device="leaf01", port=OTHER, peer_port=None, **given)


NUMBERED: Changes = {"pools": {"links": "10.9.0.0/22"}}


def numbered(**given: Any) -> Changes:
    """A fabric with numbered sessions, and the given addresses on one link."""
    row = {"device": "leaf01", "port": None, "peer": "spine01", "peer_port": None, "peer_address": "198.18.0.0"}
    return {**NUMBERED, "tables": {"cables": [{**row, **given}]}}


PEER = {
    "name": "isp-a",
    "device": "spine01",
    "port": OTHER_PORT,
    "address": "203.0.113.1/30",
    "peer": "203.0.113.2",
    "asn": 64512,
    "announce": ["10.128.0.0/16"],
}


def external(**given: Any) -> Changes:
    """A fabric with an external peer at the last port of spine01."""
    return {"external": [{**PEER, **given}]}


STORAGE = intents.STORAGE


def network(**given: Any) -> Changes:
    """A fabric with a storage network, with these values changed."""
    return {"networks": [intents.storage(**given)]}


def vlan(**given: Any) -> Changes:
    return network(vlans=[{**STORAGE["vlans"][0], **given}, STORAGE["vlans"][1]])


def server(**given: Any) -> Changes:
    return network(servers=[{**STORAGE["servers"][0], **given}])


OTHER = "other"
ECN = {"min_bytes": 200_000, "max_bytes": 2_000_000, "probability_percent": 50}
SYSLOG = {"address": "192.0.2.4", "port": 514, "protocol": "udp"}
FAR: Changes = {"cables": {"spine": {"media": "800G-2xDR4"}}}
UNIT = {"unit": "1-2", "hosts": 2}
PODS: Changes = {**WIDE, "units": [{"pod": "1-2", **UNIT}]}
PLANES: Changes = {
    "cross_rail": "blocked",
    "switches": {"spine": {"planes": 2}},
    "names": {"spine": "spine{number:02}"},
}
WHOLE_CAGES: Changes = {  # a breakout that every model has
    "switches": {
        "leaf": dict.fromkeys(("host_breakout", "uplink_breakout"), "1x400G"),
        "spine": {"breakout": "1x400G"},
    },
    "cables": {"host": {"media": "400G-DR4"}, "spine": {"media": "400G-DR4"}},
}
OF_ONE_CAGE = [
    {"device": host, "port": f"rail{rail}", "peer": f"leaf0{rail + 1}"}
    for host in ("gpu01", "gpu02")
    for rail in (0, 1)
]

# Field → the fabric before, and the change.
TABLE: dict[str, tuple[Changes, Changes]] = {
    "name": ({}, {"name": "other"}),
    "site": ({}, {"site": "other"}),
    "purpose": ({}, {"purpose": "lab"}),
    "host_routes": ({}, {"host_routes": "supernet"}),
    "ceilings.pods": (WIDE, {"ceilings": {"pods": 8}}),
    "ceilings.units": ({}, {"ceilings": {"units": 32}}),
    "ceilings.hosts_per_unit": ({}, {"ceilings": {"hosts_per_unit": 32}}),
    "ceilings.addresses_per_nic": ({}, {"ceilings": {"addresses_per_nic": 5}}),
    "ceilings.spines": ({}, {"ceilings": {"spines": 32}}),
    "ceilings.cores": (WIDE, {"ceilings": {"cores": 8}}),
    "switches.leaf.model": ({}, leaf(model=OTHER)),
    "switches.leaf.platform": ({}, leaf(platform=OTHER)),
    "switches.leaf.version": ({}, leaf(version=OTHER)),
    "switches.leaf.routing_mode": ({}, leaf(routing_mode=OTHER)),
    "switches.leaf.object_names": ({}, leaf(object_names={"peer_group": {"SPINES": "UP", "underlay": "UP"}})),
    "switches.leaf.host_breakout": ({}, leaf(host_breakout="1x400G")),
    "switches.leaf.uplink_breakout": ({}, leaf(uplink_breakout="1x400G")),
    "switches.leaf.uplinks_per_spine": ({}, leaf(uplinks_per_spine=2)),
    "switches.leaf.first_uplink_cage": ({}, leaf(first_uplink_cage=41)),
    "switches.spine.model": ({}, spine(model=OTHER)),
    "switches.spine.platform": ({}, spine(platform=OTHER)),
    "switches.spine.version": ({}, spine(version=OTHER)),
    "switches.spine.routing_mode": ({}, spine(routing_mode=OTHER)),
    "switches.spine.object_names": ({}, spine(object_names={"peer_group": {"LEAVES": "DOWN", "underlay": "DOWN"}})),
    "switches.spine.slots": ({}, spine(slots=3)),
    "switches.spine.breakout": ({}, spine(breakout="1x400G")),
    "switches.spine.planes": ({"cross_rail": "blocked"}, {**spine(planes=2), "names": {"spine": "spine{number:02}"}}),
    "switches.spine.uplink_breakout": (WIDE, spine(uplink_breakout="1x400G")),
    "switches.spine.uplinks_per_core": (WIDE, spine(uplinks_per_core=2)),
    "switches.spine.first_uplink_cage": (WIDE, spine(first_uplink_cage=41)),
    "switches.core.model": (WIDE, core(model=OTHER)),
    "switches.core.platform": (WIDE, core(platform=OTHER)),
    "switches.core.version": (WIDE, core(version=OTHER)),
    "switches.core.routing_mode": (WIDE, core(routing_mode=OTHER)),
    "switches.core.object_names": (WIDE, core(object_names={"peer_group": {"SPINES": "DOWN", "underlay": "DOWN"}})),
    "switches.core.slots": (WIDE, core(slots=2)),
    "switches.core.breakout": (WIDE, core(breakout="1x400G")),
    "switches.core.planes": (WIDE, core(planes=1)),
    "hosts.model": ({}, hosts(model="hgx-h100-xe9680")),
    "hosts.pci": ({}, hosts(pci=["0000:01:00.0", "0000:02:00.0"])),
    "hosts.pci_by_model": (
        {"units": [UNIT, {"unit": 3, "hosts": 1, "host_model": "hgx-h100-xe9680"}]},
        hosts(pci_by_model={"hgx-h100-xe9680": ["0000:01:00.0", "0000:02:00.0"]}),
    ),
    "hosts.mtu_bytes": ({}, hosts(mtu_bytes=4200)),
    "hosts.backend": ({}, hosts(backend="networkd")),
    "hosts.management_interface": ({}, hosts(management_interface="eth9")),
    "hosts.table_base": ({}, hosts(table_base=150)),
    "hosts.nic.data_dscp": ({}, hosts(nic={"data_dscp": 26})),
    "hosts.nic.cnp_dscp": ({}, hosts(nic={"cnp_dscp": 48})),
    "hosts.nic.cnp_priority": ({}, hosts(nic={"cnp_priority": 6})),
    "hosts.nic.dscp_to_priority": ({}, hosts(nic={"dscp_to_priority": {26: 3}})),
    "rails": ({}, {"rails": 3}),
    "attachment": ({}, VLAN),
    "cross_rail": ({}, {"cross_rail": "blocked"}),
    "topology": (
        {},
        {
            "topology": "rail-only",
            "switches": {"spine": None},
            "units": [{"unit": 1, "hosts": 2}],
            "cross_rail": "blocked",
        },
    ),
    "adaptive_routing": ({}, {"adaptive_routing": True}),
    "lossless.roce.priority": ({}, lossless(roce={"priority": 4})),
    "lossless.roce.dscp": ({}, lossless(roce={"dscp": [34]})),
    "lossless.roce.weight": ({}, lossless(roce={"weight": 80}, best_effort={"weight": 20})),
    "lossless.cnp.priority": ({}, lossless(cnp={"priority": 5})),
    "lossless.cnp.dscp": ({}, lossless(cnp={"dscp": 40})),
    "lossless.cnp.shape_percent": ({}, lossless(cnp={"shape_percent": 20})),
    "lossless.best_effort.priority": ({}, lossless(best_effort={"priority": 1})),
    "lossless.best_effort.weight": ({}, lossless(roce={"weight": 80}, best_effort={"weight": 20})),
    "lossless.ecn.min_bytes": (lossless(ecn={400: ECN}), lossless(ecn={400: {**ECN, "min_bytes": 300_000}})),
    "lossless.ecn.max_bytes": (lossless(ecn={400: ECN}), lossless(ecn={400: {**ECN, "max_bytes": 3_000_000}})),
    "lossless.ecn.probability_percent": (
        lossless(ecn={400: ECN}),
        lossless(ecn={400: {**ECN, "probability_percent": 5}}),
    ),
    "lossless.ecn.min_unit": (lossless(ecn={400: ECN}), lossless(ecn={400: {**ECN, "min_unit": "kbytes"}})),
    "lossless.ecn.max_unit": (lossless(ecn={400: ECN}), lossless(ecn={400: {**ECN, "max_unit": "mbytes"}})),
    "lossless.headroom.xoff_bytes": (
        lossless(headroom={400: {"xoff_bytes": 500_000}}),
        lossless(headroom={400: {"xoff_bytes": 600_000}}),
    ),
    "lossless.watchdog.poll_ms": ({}, lossless(watchdog={"poll_ms": 200})),
    "lossless.watchdog.detection_polls": ({}, lossless(watchdog={"detection_polls": 4})),
    "lossless.watchdog.restoration_polls": ({}, lossless(watchdog={"restoration_polls": 10})),
    "lossless.watchdog.action": ({}, lossless(watchdog={"action": "forward"})),
    "lossless.pool_percent": ({}, lossless(pool_percent=70)),
    "routing.leaf_export": ({}, {"routing": {"leaf_export": "all", "spine_asn": "unique"}}),
    "routing.spine_asn": ({}, {"routing": {"spine_asn": "unique"}}),
    "routing.allowas_in": ({}, {"routing": {"allowas_in": True}}),
    "routing.keepalive_s": ({}, {"routing": {"keepalive_s": 2}}),
    "routing.hold_s": ({}, {"routing": {"hold_s": 12}}),
    "routing.connect_s": ({}, {"routing": {"connect_s": 5}}),
    "routing.max_paths": ({}, {"routing": {"max_paths": 32}}),
    "routing.static.prefix": (static(), static(prefix="198.19.0.0/16")),
    "routing.static.via": (static(), static(via="10.128.0.3")),
    "routing.static.discard": (static(), static(via=None, discard=True)),
    "routing.static.vrf": (
        {"routing": {"static": []}},
        static(prefix="203.0.113.0/24", via="192.0.2.254", vrf="management"),
    ),
    "routing.static.devices": (static(devices="leaf01", **DISCARDED), static(devices="leaf*", **DISCARDED)),
    "routing.bfd.interval_ms": ({}, {"routing": {"bfd": {"interval_ms": 500}}}),
    "routing.bfd.multiplier": ({}, {"routing": {"bfd": {"multiplier": 4}}}),
    "external.name": (external(), external(name="isp-b")),
    "external.device": (external(), external(device="spine02")),
    "external.port": (external(), external(port=f"second {OTHER_PORT}")),
    "external.breakout": (external(), external(breakout="1x400G")),
    "external.address": (external(), external(address="203.0.113.1/29")),
    "external.peer": (external(address="203.0.113.1/29"), external(address="203.0.113.1/29", peer="203.0.113.3")),
    "external.asn": (external(), external(asn=64513)),
    "external.accept": (external(), external(accept=["198.51.100.0/24"])),
    "external.announce": (external(), external(announce=["10.128.0.0/17"])),
    "external.max_prefixes": (external(), external(max_prefixes=7)),
    "external.bfd": (external(), external(bfd=True)),
    "external.filter.deny_from": (filtered(), filtered(deny_from=["198.18.0.0/15"])),
    "external.filter.deny_to": (filtered(), filtered(deny_to=["198.18.0.0/15"])),
    "external.filter.first_number": (filtered(), filtered(first_number=100)),
    "external.mtu_bytes": (external(), external(mtu_bytes=9000)),
    "networks.name": (network(), network(name="backup")),
    "networks.role": (network(), network(role="frontend")),
    "networks.pod": ({**PODS, **network()}, network(pod="1")),
    "networks.unit": (network(), network(unit="1")),
    "networks.switches.model": (network(), network(switches={"model": "SN4600"})),
    "networks.switches.platform": (network(), network(switches={"platform": "sonic", "version": "202411"})),
    "networks.switches.version": (network(), network(switches={"version": "5.14.0"})),
    "networks.switches.breakout": (
        network(switches={"model": "SN4600"}),
        network(
            switches={"model": "SN4600", "breakout": "1x200G", "peer_cable": {"media": "200G-DAC", "length_m": 1}},
            hosts={"media": "200G-DAC"},
        ),
    ),
    "networks.switches.pair": (network(), network(switches={"pair": False})),
    "networks.switches.peer_links": (network(), network(switches={"peer_links": 3})),
    "networks.switches.peer_cable.media": (
        network(),
        network(switches={"peer_cable": {"media": "100G-SR4", "length_m": 1}}),
    ),
    "networks.switches.peer_cable.length_m": (
        network(),
        network(switches={"peer_cable": {"media": "100G-DAC", "length_m": 2}}),
    ),
    "networks.switches.asn": (network(), network(switches={"asn": 4_200_090_001})),
    "networks.switches.loopback": (network(), network(switches={"loopback": "10.254.0.9"})),
    "networks.switches.management": (network(), network(switches={"management": "192.0.2.252"})),
    "networks.switches.names": (network(), network(switches={"names": ["a1", "a2"]})),
    "networks.vlans.number": (network(), vlan(number=210)),
    "networks.vlans.name": (network(), vlan(name="nfs")),
    "networks.vlans.prefix": (network(), vlan(prefix="10.204.0.0/22")),
    "networks.vlans.gateway": (network(), vlan(gateway="10.200.3.254")),
    "networks.vlans.switch_addresses": (network(), vlan(switch_addresses=["10.200.3.253", "10.200.3.252"])),
    "networks.hosts.interfaces": (network(), network(hosts={"interfaces": ["nic2", "nic3"]})),
    "networks.hosts.bond": (network(), network(hosts={"bond": "lag0"})),
    "networks.hosts.vlan": (
        network(vlans=[*STORAGE["vlans"], {"number": 202, "prefix": "10.202.0.0/22"}]),
        network(vlans=[*STORAGE["vlans"], {"number": 202, "prefix": "10.202.0.0/22"}], hosts={"vlan": 202}),
    ),
    "networks.hosts.first_port": (network(), network(hosts={"first_port": "swp9"})),
    "networks.hosts.ports": (network(), network(hosts={"ports": {"gpu01": "swp40"}})),
    "networks.hosts.first_address": (network(), network(hosts={"first_address": 32})),
    "networks.hosts.routes": (network(), network(hosts={"routes": ["0.0.0.0/0"]})),
    "networks.hosts.media": (network(), network(hosts={"media": "100G-SR4"})),
    "networks.hosts.length_m": (network(), network(hosts={"length_m": 2})),
    "networks.servers.name": (network(), server(name="nas2")),
    "networks.servers.ports": (network(), server(ports=["swp46"])),
    "networks.servers.lag": (network(), server(lag=False)),
    "networks.servers.vlan": (network(), server(vlan=201)),
    "networks.servers.tagged": (network(), server(tagged=[200, 201])),
    "networks.mtu_bytes": (network(), network(mtu_bytes=1500)),
    "services.ntp": ({}, services(ntp=["192.0.2.99"])),
    "services.dns": ({}, services(dns=["192.0.2.99"])),
    "services.syslog.address": ({}, services(syslog=[{**SYSLOG, "address": "192.0.2.99"}])),
    "services.syslog.port": (services(syslog=[SYSLOG]), services(syslog=[{**SYSLOG, "port": 6514}])),
    "services.syslog.protocol": (services(syslog=[SYSLOG]), services(syslog=[{**SYSLOG, "protocol": "tcp"}])),
    "services.snmp.user": ({}, services(snmp={"user": "other"})),
    "services.snmp.auth_secret": ({}, services(snmp={"auth_secret": "OTHER"})),
    "services.snmp.priv_secret": ({}, services(snmp={"priv_secret": "OTHER"})),
    "services.snmp.location": ({}, services(snmp={"location": "row 9"})),
    "services.snmp.contact": ({}, services(snmp={"contact": "other"})),
    "services.login.user": ({}, services(login={"user": "other"})),
    "services.login.password_hash_secret": ({}, services(login={"password_hash_secret": "OTHER"})),
    "services.timezone": ({}, services(timezone="Asia/Tokyo")),
    "pools.loopbacks": ({}, {"pools": {"loopbacks": "10.254.0.0/24"}}),
    "pools.hosts": ({}, {"pools": {"hosts": "10.129.0.0/16"}}),
    "pools.loopbacks_v6": ({}, {"pools": {"loopbacks_v6": "2001:db8:255::/64"}}),
    "pools.hosts_v6": (
        {"pools": {"loopbacks_v6": "2001:db8:255::/64"}},
        {"pools": {"hosts_v6": "2001:db8:128::/48"}},
    ),
    "pools.links": ({"pools": {"links": "10.9.0.0/22"}}, {"pools": {"links": "10.9.4.0/22"}}),
    "pools.asn_base": ({}, {"pools": {"asn_base": 4_210_000_000}}),
    "pools.first_vlan": (VLAN, {"pools": {"first_vlan": 200}}),
    "pools.leaf_length": ({}, {"pools": {"leaf_length": 27}}),
    "pools.link_length": ({}, {"pools": {"link_length": 30}}),
    "management.pool": ({}, {"management": {"pool": "198.51.100.0/24", "gateway": "198.51.100.1"}}),
    "management.gateway": ({}, {"management": {"gateway": "192.0.2.254"}}),
    "management.allow": ({}, {"management": {"allow": ["192.0.2.0/24", "198.51.100.7/32"]}}),
    "management.pool_v6": ({}, MANAGED_V6),
    "management.gateway_v6": (
        MANAGED_V6,
        {"management": {"gateway_v6": "2001:db8:1::fe"}},
    ),
    "management.first_offset": ({}, {"management": {"first_offset": 50}}),
    "units.pod": (WIDE, {"units": [{"pod": 2, **UNIT}]}),
    "units.unit": ({}, {"units": [{"unit": "1-3", "hosts": 2}]}),
    "units.hosts": ({}, {"units": [{"unit": "1-2", "hosts": 3}]}),
    "units.rails": ({}, {"units": [{**UNIT, "rails": "0"}]}),
    "leave.path": ({}, {"leave": ["x / y"]}),
    "leave.devices": ({"leave": ["x / y"]}, {"leave": [{"path": "x / y", "devices": "leaf01"}]}),
    "own.path": ({}, {"own": ["x / y"]}),
    "own.devices": ({"own": ["x / y"]}, {"own": [{"path": "x / y", "devices": "leaf01"}]}),
    "units.host_model": ({}, {"units": [{**UNIT, "host_model": "hgx-h100-xe9680"}]}),
    "units.host_breakout": ({}, MIXED),
    "units.host_media": ({}, {"units": [{**UNIT, "host_media": "800G-2xSR4"}]}),
    "units.host_cable_m": ({}, {"units": [{**UNIT, "host_cable_m": 200}]}),
    "units.spine_cable_m": (FAR, {"units": [{**UNIT, "spine_cable_m": 400}]}),
    "units.host_names": ({}, {"units": [{"unit": 1, "hosts": 2, "host_names": {1: "first"}}, {"unit": 2, "hosts": 2}]}),
    "cables.host.media": ({}, {"cables": {"host": {"media": "800G-2xSR4"}}}),
    "cables.host.length_m": ({}, {"cables": {"host": {"length_m": 200}}}),
    "cables.spine.media": ({}, {"cables": {"spine": {"media": "800G-2xDR4"}}}),
    "cables.spine.length_m": (FAR, {"cables": {"spine": {"length_m": 400}}}),
    "cables.core.media": (WIDE, {"cables": {"core": {"media": "800G-2xSR4"}}}),
    "cables.core.length_m": (WIDE, {"cables": {"core": {"length_m": 300}}}),
    "names.leaf": ({}, {"names": {"leaf": "l{number}"}}),
    "names.spine": ({}, {"names": {"spine": "s{number}"}}),
    "names.core": (WIDE, {"names": {"core": "c{number}"}}),
    "names.host": ({}, {"names": {"host": "h{number}"}}),
    "tables.devices.role": (row(name="own"), spine_row(slot=1)),
    "tables.devices.pod": ({**PODS, **row(pod=1, name="own")}, row(pod=2, name="own")),
    "tables.devices.unit": (row(name="own"), row(unit=2, name="own")),
    "tables.devices.rail": (row(name="own"), row(rail=1, name="own")),
    "tables.devices.plane": ({**PLANES, **spine_row(plane=0, slot=1)}, spine_row(plane=1, slot=1)),
    "tables.devices.slot": (spine_row(slot=1), spine_row(slot=2)),
    "tables.devices.name": ({}, row(name="own")),
    "tables.devices.model": (WHOLE_CAGES, row(model=OTHER)),
    "tables.devices.platform": ({}, row(platform=OTHER)),
    "tables.devices.version": ({}, row(version=OTHER)),
    "tables.devices.serial": ({}, row(serial="MT1")),
    "tables.devices.rack": ({}, row(rack="a1")),
    "tables.devices.rack_unit": (row(rack="a1"), row(rack="a1", rack_unit=4)),
    "tables.devices.management": ({}, row(management="192.0.2.77/24")),
    "tables.devices.management_gateway": ({}, row(management_gateway="192.0.2.254")),
    "tables.devices.loopback": ({}, row(loopback="10.255.0.120")),
    "tables.devices.asn": ({}, row(asn=4_200_099_999)),
    "tables.devices.prefix": ({}, row(prefix="10.128.0.16/29")),
    "tables.devices.vlan": (VLAN, row(vlan=300)),
    "tables.devices.vlan_gateway": (VLAN, row(vlan_gateway="10.128.0.6")),
    "tables.devices.management_v6": (MANAGED_V6, row(management_v6="2001:db8:1::77")),
    "tables.devices.loopback_v6": (V6, row(loopback_v6="2001:db8:255::77")),
    "tables.devices.prefix_v6": (V6, row(prefix_v6="2001:db8:128:77::/64")),
    "tables.rails.rail": ({**VLAN, **rail(vlan=300)}, rail(rail=1, vlan=300)),
    "tables.rails.prefix": ({}, rail(prefix="10.128.64.0/24")),
    "tables.rails.vlan": (VLAN, rail(vlan=300)),
    "tables.rails.prefix_v6": (V6, rail(prefix_v6="2001:db8:128:4000::/50")),
    "tables.nics.host": (nic(address="10.128.0.7"), nic(host="gpu02", address="10.128.0.7")),
    "tables.nics.rail": (nic(address="10.128.0.7"), nic(rail=1, address="10.128.128.7")),
    "tables.nics.address": ({}, nic(address="10.128.0.7")),
    "tables.nics.gateway": (
        {"pools": {"link_length": 29}, **nic(address="10.128.0.2")},
        nic(address="10.128.0.2", gateway="10.128.0.5"),
    ),
    "tables.nics.mac": ({}, nic(mac="02:00:00:00:00:07")),
    "tables.nics.address_v6": (V6, nic(address_v6="2001:db8:128::7")),
    "tables.nics.gateway_v6": (
        {**LINKS_V6, **nic(address_v6="2001:db8:128::2")},
        nic(address_v6="2001:db8:128::2", gateway_v6="2001:db8:128::5"),
    ),
    "tables.cables.device": (cable(), cable(device="gpu02")),
    "tables.cables.port": (cable(), cable(port="rail1", peer="leaf02")),
    "tables.cables.peer": (uplink(peer="spine01"), uplink(peer="spine02")),
    "tables.cables.peer_port": ({}, cable()),
    "tables.cables.link": (
        {**leaf(uplinks_per_spine=2), **uplink(peer="spine01", link=1)},
        uplink(peer="spine01", link=2),
    ),
    "tables.cables.address": (NUMBERED, numbered(address="198.18.0.1/31")),
    "tables.cables.peer_address": (
        numbered(address="198.18.0.1/29", peer_address="198.18.0.3"),
        numbered(address="198.18.0.1/29", peer_address="198.18.0.2"),
    ),
    "tables.cables.length_m": ({}, cable(peer_port=None, length_m=200)),
    "tables.cables.media": ({}, {"tables": {"cables": [{**row, "media": "800G-2xSR4"} for row in OF_ONE_CAGE]}}),
    "tables.cables.label": ({}, cable(peer_port=None, label="C 17")),
    "overrides.version": ({}, leaf01(version=OTHER)),
    "overrides.asn": ({}, leaf01(asn=4_200_099_999)),
    "overrides.loopback": ({}, leaf01(loopback="10.255.0.120")),
    "overrides.management": ({}, leaf01(management="192.0.2.77/24")),
    "overrides.adaptive_routing": ({}, {"overrides": {"*": {"adaptive_routing": True}}}),
    "overrides.drain": ({}, leaf01(drain=True)),
    "overrides.drain_neighbors": ({}, leaf01(drain_neighbors=["spine01"])),
    "overrides.leaves": ({}, {"overrides": {"gpu01": {"leaves": {0: "leaf02"}}}}),
    "overrides.macs": ({}, {"overrides": {"gpu01": {"macs": {0: "02:00:00:00:00:07"}}}}),
    "overrides.rack": ({}, {"overrides": {"gpu01": {"rack": "a1"}}}),
    "overrides.system_mac": ({}, leaf01(system_mac="02:00:00:00:00:01")),
}


@cache
def fields() -> tuple[str, ...]:
    """The fields of the intent except those of clusters, which have their own tables."""
    return tuple(name for name in leaves(Intent) if not name.startswith("clusters."))


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        parts = list(sections(field.annotation))
        for part in parts:
            yield from leaves(part, f"{prefix}{name}.")
        if not parts:
            yield f"{prefix}{name}"


def sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from sections(part)


# Fields of hosts only.
HOSTS = {
    "host_routes",
    "cross_rail",
    "overrides.macs",
    "tables.nics.mac",
    "units.host_model",
    *(f"networks.hosts.{name}" for name in ("bond", "first_address", "routes")),
    *(
        f"hosts.{name}"
        for name in ("model", "pci", "pci_by_model", "mtu_bytes", "backend", "management_interface", "table_base")
    ),
}
# Fields that no device gets, and their purpose.
NOWHERE = {
    "name": "labels of reports and metrics; EOS has it in a comment",
    "site": "labels of reports and metrics",
    "purpose": "what is refused",
    "ceilings.pods": "room in the pools",
    "ceilings.units": "room in the pools",
    "ceilings.spines": "room in the pools",
    "overrides.rack": "labels of the nodes of clusters",
    **{f"tables.devices.{name}": "inventories and lists" for name in ("serial", "rack", "rack_unit")},
    "tables.cables.media": "the order list and the reach",
    "units.host_media": "the order list and the reach",
    "tables.cables.label": "the list of cables",
    **{
        f"hosts.nic.{name}": "compared with the lossless profile"
        for name in ("data_dscp", "cnp_dscp", "cnp_priority", "dscp_to_priority")
    },
    "networks.role": "what --limit selects",
    **{
        f"networks.{name}": "the order list and the reach"
        for name in ("switches.peer_cable.media", "switches.peer_cable.length_m", "hosts.media", "hosts.length_m")
    },
    **{f"cables.{kind}.media": "the order list and the reach" for kind in ("host", "spine", "core")},
}
# Values that a NOS refuses, and the error.
REFUSED = {
    ("*", "routing.leaf_export"): "the routing admits a valley path",
    ("*", "networks.switches.platform"): "no templates of SONiC .* for VLANs, LAG and MLAG",
    ("*", "overrides.leaves"): "would be on two leaves",
    ("sonic-*", "adaptive_routing"): "cannot switch adaptive routing on",
    ("sonic-*", "overrides.adaptive_routing"): "cannot switch adaptive routing on",
    ("sonic-[!u]*", "switches.*.routing_mode"): "in unified mode cannot apply a route policy",
    ("sonic-*", "routing.static.vrf"): "has no static routes in its management VRF",
    ("sonic-unified", "routing.bfd.*"): "cannot set the BFD timers of a peer group",
}
# The length of a cable determines the headroom, so it has no effect without a lossless class.
OF_HEADROOM = ("cables.*.length_m", "units.*_cable_m", "tables.cables.length_m")
# A second release of the same branch.
SAME = {
    ("sonic-unified", "switches.*.version"),
    ("sonic-unified", "overrides.version"),
    ("sonic-unified", "tables.devices.version"),
}
# Only one NOS has two modes; the others refuse it at design time.
MODES = "switches.*.routing_mode"


def fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern)


def on(target: Target, change: Changes) -> Changes:
    """A change with the placeholders for each NOS filled in."""
    change = copy.deepcopy(change)
    for part in (change.get("overrides", {}).get("leaf01", {}), *(change.get("switches") or {}).values()):
        if part and part.get("version") == OTHER:
            part["version"] = target.other_version
    fill_tables(target, change.get("tables", {}))
    for peer in change.get("external", ()):
        peer["port"] = outside_port(target, peer)
    for role, tier in (change.get("switches") or {}).items():
        if not tier:
            continue
        if tier.get("routing_mode") == OTHER:
            tier["routing_mode"] = "split" if target.changes == both(routing_mode="unified") else "unified"
        if tier.get("platform") == OTHER:
            tier.update(target.other_platform)
        if tier.get("model") == OTHER:
            tier.update(target.other_model if role == "leaf" else {"model": target.other_model["model"]})
            if role != "leaf" and tier["model"] == "SN4700":
                tier["breakout"] = "1x400G"
        if role == "core" and "slots" in tier and "planes" in tier:
            given = target.values()["switches"]["spine"]
            tier.update({key: given[key] for key in ("platform", "version", "model")})
            tier.update(target.changes.get("switches", {}).get("spine", {}))
    return change


def outside_port(target: Target, peer: Changes) -> str:
    """A port of the last two cages of a spine, in the notation of the NOS."""
    hardware = look_up(Intent.model_validate(target.values()), Catalog())
    model, naming = hardware.models["spine"], PLATFORMS[target.platform].port_name
    split = model.split(peer.get("breakout", "2x400G"))
    assert split is not None
    return naming(model, split, split.cages[-2 if peer["port"] == OTHER_PORT else -1], 0)


def fill_tables(target: Target, tables: Changes) -> None:
    """Put another model, NOS or version, and unused ports of a leaf, into rows of tables."""
    for given in tables.get("devices", ()):
        if given.get("model") == OTHER:
            given["model"] = target.other_model["model"]
        if given.get("platform") == OTHER:
            given.update(target.other_platform)
        if given.get("version") == OTHER:
            given["version"] = target.other_version
    hardware = look_up(Intent.model_validate(target.values()), Catalog()) if "cables" in tables else None
    for given in tables.get("cables", ()):
        for key, side, spare in (("port", "up", -1), ("peer_port", "down", 20)):
            if hardware and given.get(key) == OTHER:
                given[key] = list(front_panel(hardware, "leaf", side))[spare]


@dataclass(frozen=True)
class Output:
    """A fabric, and its rendered files."""

    fabric: Fabric

    @cached_property
    def switches(self) -> dict[str, dict[str, str]]:
        return {device.device: dict(device.files) for device in render(self.fabric, self.fabric.switches, ENGINE)}

    def is_changed(self, before: "Output") -> bool:
        """Whether a switch differs; of each role, the switches after the first one that differs are not rendered."""
        roles: set[str] = set()
        for switch in self.fabric.switches:
            if switch.role not in roles:
                (device,) = render(self.fabric, [switch], ENGINE)
                if device.files != before.switches.get(device.device):
                    roles.add(switch.role)
        return bool(roles) or set(before.switches) > {switch.name for switch in self.fabric.switches}

    @property
    def not_expressed(self) -> dict[str, str]:
        """What the manifest explains."""
        return {
            key: note
            for switch in self.fabric.switches
            for key, note in PLATFORMS[switch.platform].not_expressed(switch.model, switch.version).items()
        }

    @cached_property
    def hosts(self) -> dict[str, dict[str, str]]:
        return {device.device: dict(device.files) for device in render(self.fabric, self.fabric.hosts, ENGINE)}


@cache
def output(name: str, base: str) -> Output:
    """The output of a base of the table, which many of its rows share."""
    return Output(TARGETS[name].fabric(ast.literal_eval(base)))


def test_every_field_of_the_intent_is_changed() -> None:
    assert {field for field in fields() if not field.startswith(("thresholds.", "firmware."))} == set(TABLE)
    assert HOSTS | set(NOWHERE) <= set(TABLE)


@pytest.mark.parametrize("field", TABLE)
@pytest.mark.parametrize("name", TARGETS)
def test_a_changed_field_changes_the_output_or_the_manifest_explains_why_not(name: str, field: str) -> None:
    target = TARGETS[name]
    base, change = (on(target, part) for part in TABLE[field])
    refusal = [words for (which, key), words in REFUSED.items() if fits(name, which) and fits(field, key)]
    if refusal:
        with pytest.raises(NetkitError, match=refusal[0]):
            _ = Output(target.fabric(base, change)).switches
        return
    before, after = output(name, repr(base)), Output(target.fabric(base, change))
    is_changed = after.is_changed(before)
    if field in HOSTS:
        assert not is_changed
        assert before.hosts != after.hosts
    elif field in NOWHERE:
        assert is_changed == ((name, field) == ("eos", "name"))
        assert before.hosts == after.hosts
    elif any(fits(name, which) and fits(field, key) for which, key in SAME):
        assert not is_changed
    elif fits(field, MODES) and not name.startswith("sonic-"):
        assert not is_changed
        assert any("has only one routing mode" in str(note) for note in after.fabric.notes)
    else:
        asked = "lossless.headroom" if any(fits(field, key) for key in OF_HEADROOM) else field
        asked = asked.replace("overrides.adaptive_routing", "adaptive_routing")
        notes = after.not_expressed
        is_noted = any(f"{asked}.".startswith(f"{key}.") for key in notes)
        if asked != "lossless.headroom":
            assert is_changed != is_noted, notes
        else:  # NVUE is given the length, and computes the headroom itself
            assert is_changed or is_noted


@pytest.mark.parametrize("name", TARGETS)
def test_the_manifest_explains_what_a_switch_does_not_express(name: str) -> None:
    before = output(name, repr({}))
    noted = [device.about.get("not_expressed", {}) for device in render(before.fabric, before.fabric.switches, ENGINE)]
    assert {key: note for notes in noted for key, note in notes.items()} == before.not_expressed


@pytest.mark.parametrize("name", TARGETS)
def test_a_design_reports_which_of_its_keys_have_no_effect(name: str) -> None:
    target = TARGETS[name]
    asked = {"lossless.headroom", "lossless.watchdog.action", "lossless.pool_percent", "routing.connect_s"}
    given: Changes = {}
    for field in (
        "lossless.headroom.xoff_bytes",
        "lossless.watchdog.action",
        "lossless.pool_percent",
        "routing.connect_s",
    ):
        merge(given, TABLE[field][1])
    designed = target.fabric(given)
    ignored = {
        ".".join(map(str, note.path))
        for note in designed.notes
        if note.severity == "warning" and "has no effect on leaf and spine switches" in note.message
    }
    expected = asked & set(Output(designed).not_expressed) if designed.purpose == "production" else set()
    assert ignored == expected


def test_a_default_gives_no_warning() -> None:
    designed = TARGETS["nvue-5.16"].fabric(lossless(watchdog={"action": "drop", "restoration_polls": 6}))
    assert not any("has no effect" in note.message for note in designed.notes)


@pytest.mark.parametrize(
    ("name", "version", "is_known"),
    [
        ("nvue-5.16", "5.17.2", True),
        ("nvue-5.16", "5.99", False),
        ("sonic-dynamic", "202511.4", True),
        ("sonic-dynamic", "202605", False),
        ("eos", "4.35.9F", True),
        ("eos", "4.36.0F", False),
        ("frr", "11.0", False),
    ],
)
def test_an_unverified_release_gives_a_warning(name: str, version: str, is_known: bool) -> None:
    designed = TARGETS[name].fabric(both(version=version))
    found = [note.message for note in designed.notes if "is newer than all verified releases" in note.message]
    assert (found == []) == is_known


def test_every_threshold_is_read_by_something() -> None:
    """A threshold that no check or gate reads would have no effect."""
    text = "".join(
        file.read_text(encoding="utf-8")
        for folder in ("checks", "netkit/judge", "netkit/report", "netkit/watch", "netkit/design", "netkit/cli")
        for file in (ROOT / folder).rglob("*.py")
    )
    names = [field.removeprefix("thresholds.") for field in fields() if field.startswith("thresholds.")]
    assert len(names) > 30
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        (
            lossless(headroom={400: {"xoff_bytes": 100_000}}),
            "lossless.headroom.400.xoff_bytes",
            "SN5600: 100,000 bytes are less than the vendor's table has for 30 m, 283,648",
        ),
        (
            lossless(ecn={400: {"min_bytes": 1, "max_bytes": 1_000_000}}),
            "lossless.ecn.400.min_bytes",
            "ECN marking starts below one RoCE packet of 4096 bytes: in an empty queue",
        ),
        (
            lossless(ecn={400: {"min_bytes": 100_000, "max_bytes": 1_000_000_000}}),
            "lossless.ecn.400.max_bytes",
            "marking is never certain: SN5600 has 142,406,553 bytes for the lossless class",
        ),
        ({"routing": {"max_paths": 1}}, "routing.max_paths", "a switch has 2 upward paths, of which 1 carry traffic"),
        (
            {"thresholds": {"ber_warn": 1e-3}},
            "thresholds.ber_warn",
            "ber_warn 0.001 is beyond ber_fail 2.4e-05",
        ),
        (
            {"thresholds": {"busbw_warn_percent": 50}},
            "thresholds.busbw_warn_percent",
            "busbw_warn_percent 50 is beyond busbw_fail_percent 80",
        ),
    ],
)
def test_numbers_with_surprising_effects_give_warnings(change: Changes, path: str, words: str) -> None:
    plain, designed = TARGETS["sonic-dynamic"].fabric(), TARGETS["sonic-dynamic"].fabric(change)
    new = {note for note in designed.notes if note not in plain.notes}
    assert {(".".join(map(str, note.path)), note.message, note.severity) for note in new} == {(path, words, "warning")}
