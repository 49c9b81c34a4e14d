"""Configurations of a leaf/spine fabric as engineers write them on each NOS: their own names, defaults and order."""

import json
from collections.abc import Callable, Mapping

from netkit.design import Fabric
from netkit.design.fabric import Switch
from netkit.platforms.config import Files

MIN_BYTES, MAX_BYTES = 300_000, 1_200_000
"""ECN of the lossless queue."""
HASH = "@secret:LOGIN_HASH@"


def nvue(switch: Switch, fabric: Fabric) -> Files:
    """Write startup.yaml: a peer group and a policy for all, an ECN profile, the rest by `nv set qos roce`."""
    ports = "".join(
        f"      {port.name}:\n        description: to {port.peer} {port.peer_port}\n"
        + (f"        ipv4: {{address: {{{port.address}: {{}}}}}}\n" if port.address else "")
        + "        link: {mtu: 9216, state: {up: {}}}\n"
        "        qos:\n          congestion-control: {profile: GPU_ECN}\n"
        "          pfc-watchdog: {state: enable}\n        type: swp\n"
        for port in switch.ports
    )
    cages = "".join(
        f"      swp{cage.number}: {{link: {{breakout: {{{cage.split.ports}x: {{}}}}}}, type: swp}}\n"
        for cage in switch.cages
    )
    neighbors = "".join(
        f"              {port.name}: {{peer-group: GPU_FABRIC, remote-as: external, type: unnumbered}}\n"
        for port in switch.fabric_ports
    )
    summary = "".join(
        f"                aggregate-route: {{{prefix}: {{summary-only: enabled}}}}\n" for prefix in switch.aggregates
    )
    assert switch.management
    return {
        "startup.yaml": f"""\
- header:
    model: sn5600
    nvue-api-version: nvue_v1
    rev-id: 1.0
    version: Cumulus Linux 5.16.1
- set:
    interface:
      eth0:
        ipv4: {{address: {{{switch.management.address}/24: {{}}}}}}
        type: eth
        vrf: mgmt
      lo: {{ipv4: {{address: {{{switch.loopback}/32: {{}}}}}}, type: loopback}}
{cages}{ports}    qos:
      congestion-control:
        GPU_ECN:
          traffic-class:
            '3':
              ecn: enable
              max-threshold: {MAX_BYTES}
              min-threshold: {MIN_BYTES}
              probability: 100
              red: disable
      pfc-watchdog: {{polling-interval: 200, robustness: 4}}
      roce: {{cable-length: 50, mode: lossless, state: enabled}}
    router:
      bfd:
        profile:
          FAST: {{detect-multiplier: 3, min-rx-interval: 1000, min-tx-interval: 1000}}
        state: enabled
      bgp: {{autonomous-system: {switch.asn}, router-id: {switch.loopback}, state: enabled}}
      policy:
        prefix-list:
          OUR_PREFIXES:
            rule:
              '5': {{action: permit, match: {{{fabric.loopback_pool}: {{max-prefix-len: 32, min-prefix-len: 32}}}}}}
              '10': {{action: permit, match: {{{fabric.host_pool}: {{max-prefix-len: 30, min-prefix-len: 24}}}}}}
            type: ipv4
        route-map:
          OURS:
            rule:
              '10': {{action: {{permit: {{}}}}, match: {{ip-prefix-list: OUR_PREFIXES, type: ipv4}}}}
    system:
      aaa: {{user: {{netkit: {{hashed-password: '{HASH}', role: system-admin}}}}}}
      hostname: {switch.name}
    vrf:
      default:
        router:
          bgp:
            address-family:
              ipv4-unicast:
{summary}                multipaths: {{ebgp: 16}}
                redistribute: {{connected: {{state: enabled}}}}
                state: enabled
            neighbor:
{neighbors}            path-selection: {{multipath: {{aspath-ignore: enabled}}}}
            peer-group:
              GPU_FABRIC:
                address-family:
                  ipv4-unicast:
                    policy: {{inbound: {{route-map: OURS}}, outbound: {{route-map: OURS}}}}
                    state: enabled
                bfd: {{profile: FAST}}
                timers: {{connection-retry: 5}}
            state: enabled
"""
    }


def eos(switch: Switch, fabric: Fabric) -> Files:
    """Write running-config: a QoS profile for GPU ports, one policy, EOS's own defaults for all the rest."""
    group = "SPINE-UNDERLAY" if switch.role == "leaf" else "LEAF-UNDERLAY"
    ports = ""
    for port in switch.ports:
        address = f"   ip address {port.address}\n" if port.address else "   ipv6 enable\n"
        ports += f"""\
interface {port.name}
   description to {port.peer} {port.peer_port}
   mtu 9214
   speed 400g-4
   error-correction encoding reed-solomon
   no switchport
{address}   service-profile GPU-PORT
!
"""
    neighbors = "".join(
        f"   neighbor interface {port.name} peer-group {group} remote-as {port.peer_asn}\n"
        for port in switch.fabric_ports
    )
    summary = "".join(f"   aggregate-address {prefix} summary-only\n" for prefix in switch.aggregates)
    assert switch.management
    return {
        "eos.cfg": f"""\
username netkit privilege 15 role network-admin secret sha512 {HASH}
!
qos profile GPU-PORT
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   priority-flow-control pause watchdog
   !
   uc-tx-queue 3
      no priority
      bandwidth percent 80
      random-detect ecn minimum-threshold {MIN_BYTES // 1000} kbytes maximum-threshold {MAX_BYTES} bytes \
max-mark-probability 100 weight 0
   !
   uc-tx-queue 6
      priority strict
!
hostname {switch.name}
!
vrf instance MGMT
!
management api http-commands
   no shutdown
   !
   vrf MGMT
      no shutdown
!
aaa authorization exec default local
!
{ports}interface Loopback0
   description router ID
   ip address {switch.loopback}/32
!
interface Management1
   vrf MGMT
   ip address {switch.management.address}/24
!
ip routing ipv6 interfaces
no ip routing vrf MGMT
!
ip prefix-list OUR-PREFIXES
   seq 5 permit {fabric.loopback_pool} eq 32
   seq 10 permit {fabric.host_pool} ge 24 le 30
!
ipv6 unicast-routing
!
qos map dscp 24 25 26 27 28 29 30 31 to traffic-class 3
qos map dscp 48 49 50 51 52 53 54 55 to traffic-class 6
!
priority-flow-control pause watchdog default timeout 0.2
!
route-map OURS permit 10
   match ip address prefix-list OUR-PREFIXES
!
router bgp {switch.asn}
   router-id {switch.loopback}
   maximum-paths 16 ecmp 16
   neighbor {group} peer group
   neighbor {group} bfd
   neighbor {group} timers 10 30
   neighbor {group} route-map OURS in
   neighbor {group} route-map OURS out
   neighbor {group} send-community
{summary}   redistribute connected
{neighbors}   !
   address-family ipv4
      neighbor {group} activate
      neighbor {group} next-hop address-family ipv6 originate
!
service routing protocols model multi-agent
!
end
"""
    }


def sonic(switch: Switch, fabric: Fabric) -> Files:
    """Write config_db.json from what `config qos reload` makes, with own schedulers; and frr.conf by vtysh.

    No port has a description.
    """
    names = [port.name for port in switch.ports]
    shipped = json.loads(SONIC_QOS)
    tables: dict[str, dict[str, Mapping[str, object]]] = {
        "DEVICE_METADATA": {
            "localhost": {
                "hostname": switch.name,
                "hwsku": "Mellanox-SN5600-O128",
                "platform": "x86_64-nvidia_sn5600-r0",
                "type": "LeafRouter" if switch.role == "leaf" else "SpineRouter",
                "bgp_asn": str(switch.asn),
                "buffer_model": "dynamic",
                "docker_routing_config_mode": "split-unified",
                "frr_mgmt_framework_config": "true",
                "mac": "02:00:00:00:00:01",
            }
        },
        "FEATURE": {"lldp": {"state": "enabled"}},
        "MGMT_PORT": {"eth0": {"alias": "eth0", "admin_status": "up"}},
        "MGMT_VRF_CONFIG": {"vrf_global": {"mgmtVrfEnabled": "true"}},
        "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|{switch.loopback}/32": {}},
        "CABLE_LENGTH": {"AZURE": dict.fromkeys(names, "50m")},
        **shipped,
    }
    assert switch.management
    tables["MGMT_INTERFACE"] = {f"eth0|{switch.management.address}/24": {"gwaddr": switch.management.gateway}}
    tables |= {table: {} for table in ("BREAKOUT_CFG", "PORT", "INTERFACE", "PORT_QOS_MAP", "QUEUE", "PFC_WD")}
    tables |= {table: {} for table in ("BUFFER_PG", "BUFFER_QUEUE")}
    lanes = {1: "a", 2: "b"}
    for cage in switch.cages:
        tables["BREAKOUT_CFG"][cage.ports[0]] = {"brkout_mode": "2x400G[200G,100G,50G,40G,25G,10G]"}
        for number, name in enumerate(cage.ports, 1):
            first = 8 * (cage.number - 1) + 4 * (number - 1)
            tables["PORT"][name] = {
                "alias": f"etp{cage.number}{lanes[number]}",
                "index": str(cage.number),
                "lanes": ",".join(str(lane) for lane in range(first, first + 4)),
                "speed": "400000",
                "fec": "rs",
                "mtu": "9216",
                "admin_status": "up" if name in names else "down",
            }
    for port in switch.ports:
        if port.address:
            tables["INTERFACE"] |= {port.name: {}, f"{port.name}|{port.address}": {}}
        else:
            tables["INTERFACE"][port.name] = {"ipv6_use_link_local_only": "enable"}
        maps = ("dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map", "pfc_to_pg_map")
        tables["PORT_QOS_MAP"][port.name] = {
            **dict.fromkeys(maps, "AZURE"),
            "pfc_enable": "3",
            "pfcwd_sw_enable": "3",
        }
        tables["QUEUE"] |= {
            f"{port.name}|0": {"scheduler": "scheduler.0"},
            f"{port.name}|3": {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"},
            f"{port.name}|6": {"scheduler": "scheduler.2"},
        }
        tables["PFC_WD"][port.name] = {"action": "forward", "detection_time": "200", "restoration_time": "400"}
        tables["BUFFER_PG"] |= {
            f"{port.name}|0": {"profile": "ingress_lossy_profile"},
            f"{port.name}|3": {"profile": "NULL"},
        }
        tables["BUFFER_QUEUE"] |= {
            f"{port.name}|0-2": {"profile": "q_lossy_profile"},
            f"{port.name}|3": {"profile": "egress_lossless_profile"},
            f"{port.name}|4-7": {"profile": "q_lossy_profile"},
        }
    return {"config_db.json": json.dumps(tables, indent=4) + "\n", "frr.conf": sonic_frr(switch, fabric)}


SONIC_QOS = f"""{{
"DSCP_TO_TC_MAP": {{"AZURE": {json.dumps({str(n): {3: "3", 6: "6"}.get(n // 8, "0") for n in range(64)})}}},
"TC_TO_QUEUE_MAP": {{"AZURE": {{"0": "0", "3": "3", "6": "6"}}}},
"TC_TO_PRIORITY_GROUP_MAP": {{"AZURE": {{"0": "0", "3": "3", "6": "0"}}}},
"MAP_PFC_PRIORITY_TO_QUEUE": {{"AZURE": {{"0": "0", "3": "3", "6": "6"}}}},
"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {{"AZURE": {{"3": "3"}}}},
"SCHEDULER": {{
 "scheduler.0": {{"type": "DWRR", "weight": "20"}},
 "scheduler.1": {{"type": "DWRR", "weight": "80"}},
 "scheduler.2": {{"type": "STRICT"}}}},
"WRED_PROFILE": {{"AZURE_LOSSLESS": {{
 "ecn": "ecn_all", "wred_green_enable": "true", "wred_yellow_enable": "true", "wred_red_enable": "true",
 "green_min_threshold": "{MIN_BYTES}", "green_max_threshold": "{MAX_BYTES}", "green_drop_probability": "100",
 "yellow_min_threshold": "1048576", "yellow_max_threshold": "2097152", "yellow_drop_probability": "5",
 "red_min_threshold": "1048576", "red_max_threshold": "2097152", "red_drop_probability": "5"}}}},
"LOSSLESS_TRAFFIC_PATTERN": {{"AZURE": {{"mtu": "1024", "small_packet_percentage": "100"}}}},
"DEFAULT_LOSSLESS_BUFFER_PARAMETER": {{"AZURE": {{"default_dynamic_th": "0"}}}},
"BUFFER_POOL": {{
 "ingress_lossless_pool": {{"type": "ingress", "mode": "dynamic"}},
 "ingress_lossy_pool": {{"type": "ingress", "mode": "dynamic"}},
 "egress_lossless_pool": {{"type": "egress", "mode": "dynamic", "size": "158229504"}},
 "egress_lossy_pool": {{"type": "egress", "mode": "dynamic"}}}},
"BUFFER_PROFILE": {{
 "ingress_lossy_profile": {{"pool": "ingress_lossy_pool", "size": "0", "dynamic_th": "3"}},
 "egress_lossless_profile": {{"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"}},
 "q_lossy_profile": {{"pool": "egress_lossy_pool", "size": "0", "dynamic_th": "3"}}}}
}}"""


def sonic_frr(switch: Switch, fabric: Fabric) -> str:
    group = "UP" if switch.role == "leaf" else "DOWN"
    neighbors = "".join(f" neighbor {port.name} interface peer-group {group}\n" for port in switch.fabric_ports)
    summary = "".join(f"  aggregate-address {prefix} summary-only\n" for prefix in switch.aggregates)
    return f"""\
frr defaults traditional
hostname {switch.name}
log syslog informational
log facility local4
no zebra nexthop kernel enable
no fpm use-next-hop-groups
fpm address 127.0.0.1
service integrated-vtysh-config
!
router bgp {switch.asn}
 bgp router-id {switch.loopback}
 no bgp default ipv4-unicast
 bgp bestpath as-path multipath-relax
 neighbor {group} peer-group
 neighbor {group} remote-as external
 neighbor {group} bfd
 neighbor {group} timers 3 9
{neighbors} !
 address-family ipv4 unicast
{summary}  redistribute connected
  neighbor {group} activate
  neighbor {group} route-map OURS in
  neighbor {group} route-map OURS out
  maximum-paths 16
 exit-address-family
exit
!
ip prefix-list OURS seq 5 permit {fabric.loopback_pool} ge 32
ip prefix-list OURS seq 10 permit {fabric.host_pool} ge 24 le 30
!
route-map OURS permit 10
 match ip address prefix-list OURS
exit
!
"""


def frr(switch: Switch, fabric: Fabric) -> Files:
    """Write frr.conf: one peer group, filters for both directions, defaults of data centers."""
    group = "UP" if switch.role == "leaf" else "DOWN"
    lines = ["frr defaults datacenter", f"hostname {switch.name}", "log syslog informational"]
    lines += ["service integrated-vtysh-config", "no zebra nexthop kernel enable", "!"]
    for port in switch.ports:
        what = "server" if port.role == "host" else "link to"
        lines += [f"interface {port.name}", f" description {what} {port.peer} port {port.peer_port}", "exit", "!"]
    lines += [f"router bgp {switch.asn}", f" bgp router-id {switch.loopback}", " no bgp default ipv4-unicast"]
    lines += [" bgp bestpath as-path multipath-relax", f" neighbor {group} peer-group"]
    lines += [f" neighbor {group} remote-as external", f" neighbor {group} timers connect 5"]
    lines += [f" neighbor {port.name} interface peer-group {group}" for port in switch.fabric_ports]
    lines += [" !", " address-family ipv4 unicast", f"  network {switch.loopback}/32"]
    lines += [f"  aggregate-address {prefix} summary-only" for prefix in switch.aggregates]
    lines += ["  redistribute connected"] if switch.role == "leaf" else []
    lines += [f"  neighbor {group} activate", f"  neighbor {group} route-map OURS in"]
    lines += [f"  neighbor {group} route-map OURS out", "  maximum-paths 16", " exit-address-family", "exit", "!"]
    prefixes = (f"{fabric.loopback_pool} ge 32", f"{fabric.host_pool} ge 24 le 30")
    lines += [f"ip prefix-list OURS seq {5 * place} permit {one}" for place, one in enumerate(prefixes, 1)]
    lines += ["!", "route-map OURS permit 10", " match ip address prefix-list OURS", "exit", "!", ""]
    return {"frr.conf": "\n".join(lines)}


BY_HAND: Mapping[str, Callable[[Switch, Fabric], Files]] = {"nvue": nvue, "eos": eos, "sonic": sonic, "frr": frr}
