rows = []
def case(branch, base=(), added="", changed="", removed="", **more):
    rows.append(f"{branch}:")
    for k, v in more.items(): rows.append(f"  {k}: {v}")
    for k, v in (("base", base), ("added", added), ("changed", changed), ("removed", removed)):
        if isinstance(v, str): rows.append(f"  {k}: {v}")
        elif v:
            if len(v) == 1: rows.append(f"  {k}: ['{v[0]}']")
            else: rows.extend([f"  {k}:", *(f"  - {x}" for x in v)])
def table(name, spare, other, field=None, value=None, becomes=None, base=(), why="its rows have no fields", extra=()):
    """rows: spare in the base, other comes, a field of spare changes"""
    f = lambda row: [f"{name} / {row}" + (f" / {field} = {value}" if field else ""), *(f"{name} / {row} / {x}" for x in extra)]
    case(name, [*base, *f(spare)], f(other), [f"{name} / {spare} / {field} = {becomes}"] if becomes else why, [f"{name} / {spare}"])
one = "there is one of it, always there"
g = "BGP_GLOBALS / default"
case("BGP_GLOBALS", [f"{g} / local_asn = 4200010000", f"{g} / log_nbr_state_changes = true"], [f"{g} / router_id = 10.9.9.9"], [f"{g} / log_nbr_state_changes = false"], [f"{g} / log_nbr_state_changes"])
g = "BGP_GLOBALS_AF / default|ipv4_unicast"
case("BGP_GLOBALS_AF", [f"{g} / max_ebgp_paths = 8"], "there is one address family", [f"{g} / max_ebgp_paths = 16"], [g])
table("BGP_GLOBALS_AF_AGGREGATE_ADDR", "default|ipv4_unicast|10.1.0.0/16", "default|ipv4_unicast|10.2.0.0/16", "summary_only", "true", "false")
table("BGP_NEIGHBOR", "default|10.9.0.3", "default|10.9.0.2", "asn", "65009", None, base=["BGP_NEIGHBOR / default|10.9.0.1 / asn = 65009"], why="its fields are fixed when the row is made")
table("BGP_NEIGHBOR_AF", "default|10.9.0.1|ipv4_unicast", "default|10.9.0.3|ipv4_unicast", "admin_status", "up", "down")
table("BGP_PEER_GROUP", "default|GONE", "default|OTHER", "keepalive", "3", "4", base=["BGP_PEER_GROUP / default|SPARE / keepalive = 3"])
table("BGP_PEER_GROUP_AF", "default|SPARE|ipv4_unicast", "default|GONE|ipv4_unicast", "admin_status", "up", "down")
case("BREAKOUT_CFG", added="a cage becomes ports by a change of all that stands on them", changed="a cage becomes other ports by a change of all that stands on them", removed=one)
case("BUFFER_PG", ["BUFFER_PG / Ethernet4|0 / profile = ingress_lossy_profile"], ["BUFFER_PG / Ethernet4|6 / profile = ingress_lossy_profile"], ["BUFFER_PG / Ethernet4|0 / profile = NULL"], ["BUFFER_PG / Ethernet4|0"])
table("BUFFER_POOL", "spare_pool", "other_pool", "percentage", "1", "2", extra=["type = egress", "mode = dynamic"])
case("BUFFER_PORT_EGRESS_PROFILE_LIST", added=["BUFFER_PORT_EGRESS_PROFILE_LIST / Ethernet4 / profile_list = egress_lossy_profile"], changed=["BUFFER_PORT_EGRESS_PROFILE_LIST / Ethernet260 / profile_list = egress_lossy_profile"], removed=["BUFFER_PORT_EGRESS_PROFILE_LIST / Ethernet260"])
case("BUFFER_PORT_INGRESS_PROFILE_LIST", added=["BUFFER_PORT_INGRESS_PROFILE_LIST / Ethernet4 / profile_list = ingress_lossy_profile"], changed=["BUFFER_PORT_INGRESS_PROFILE_LIST / Ethernet260 / profile_list = ingress_lossy_profile"], removed=["BUFFER_PORT_INGRESS_PROFILE_LIST / Ethernet260"])
table("BUFFER_PROFILE", "spare_profile", "other_profile", "dynamic_th", "3", "4", extra=["pool = egress_lossy_pool", "size = 0"])
case("BUFFER_QUEUE", ["BUFFER_QUEUE / Ethernet4|0-2 / profile = q_lossy_profile"], ["BUFFER_QUEUE / Ethernet4|4-7 / profile = q_lossy_profile"], ["BUFFER_QUEUE / Ethernet4|0-2 / profile = egress_lossy_profile"], ["BUFFER_QUEUE / Ethernet4|0-2"])
table("DNS_NAMESERVER", "192.0.2.33", "192.0.2.34")
table("DSCP_TO_TC_MAP", "SPARE", "OTHER", "0", "0", "1")
case("INTERFACE", ["INTERFACE / Ethernet4", "INTERFACE / Ethernet4|198.51.100.0/31"], ["INTERFACE / Ethernet260|203.0.113.0/31"], ["INTERFACE / Ethernet260 / ipv6_use_link_local_only = disable"], ["INTERFACE / Ethernet4|198.51.100.0/31", "INTERFACE / Ethernet4"])
table("LOOPBACK_INTERFACE", "Loopback7", "Loopback8")
table("MAP_PFC_PRIORITY_TO_QUEUE", "SPARE", "OTHER", "0", "0", "1")
case("NTP", added="its fields are all there", changed=["NTP / global / admin_state = disabled"], removed=["NTP / global / src_intf"])
table("NTP_SERVER", "192.0.2.22", "192.0.2.23", "iburst", "on", "off")
table("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "SPARE", "OTHER", "3", "3", "4")
case("PFC_WD", added=["PFC_WD / Ethernet4 / action = drop", "PFC_WD / Ethernet4 / detection_time = 300", "PFC_WD / Ethernet4 / restoration_time = 600"], changed=["PFC_WD / Ethernet0 / restoration_time = 800"], removed=["PFC_WD / Ethernet260"])
case("PORT", added="its fields are all there; ports come and go with their cages", changed=["PORT / Ethernet0 / mtu = 9000", "PORT / Ethernet0 / description = another host"], removed=["PORT / Ethernet4 / description"])
case("PORT_QOS_MAP", added=["PORT_QOS_MAP / Ethernet4 / dscp_to_tc_map = AZURE"], changed=["PORT_QOS_MAP / Ethernet0 / pfc_enable = 3,4"], removed=["PORT_QOS_MAP / Ethernet260 / pfcwd_sw_enable"])
table("PORT_STORM_CONTROL", "Ethernet4|broadcast", "Ethernet4|unknown-unicast", "kbps", "1000", "2000")
table("PREFIX", "SPARE|10|10.1.0.0/16|exact", "SPARE|20|10.2.0.0/16|exact", "action", "permit", "deny")
table("PREFIX_SET", "SPARE-TOO", "OTHER", "mode", "IPv4", None, base=["PREFIX_SET / SPARE / mode = IPv4"], why="its prefixes are of its family")
case("QUEUE", ["QUEUE / Ethernet4|0 / scheduler = scheduler.best-effort"], ["QUEUE / Ethernet4|3 / scheduler = scheduler.roce"], ["QUEUE / Ethernet4|0 / scheduler = scheduler.roce"], ["QUEUE / Ethernet4|0"])
table("ROUTE_MAP", "SPARE|10", "SPARE|20", "route_operation", "permit", "deny")
case("ROUTE_MAP_SET", ["ROUTE_MAP_SET / SPARE", "ROUTE_MAP_SET / STAYS", "ROUTE_MAP_SET / GONE"], ["ROUTE_MAP_SET / OTHER"], "its rows have no fields", ["ROUTE_MAP_SET / GONE"])
case("ROUTE_REDISTRIBUTE", ['ROUTE_REDISTRIBUTE / default|connected|bgp|ipv4 / route_map = ["SPARE"]'], ['ROUTE_REDISTRIBUTE / default|static|bgp|ipv4 / route_map = ["SPARE"]'], ['ROUTE_REDISTRIBUTE / default|connected|bgp|ipv4 / route_map = ["STAYS"]'], ["ROUTE_REDISTRIBUTE / default|connected|bgp|ipv4"])
table("SCHEDULER", "scheduler.spare", "scheduler.other", "weight", "20", "30", extra=["type = DWRR"])
case("SNMP", added="both of its rows are there", changed=["SNMP / LOCATION / Location = row 9"], removed=["SNMP / CONTACT"])
table("SNMP_AGENT_ADDRESS_CONFIG", "192.0.2.11|1161|mgmt", "192.0.2.12|1161|mgmt")
case("SNMP_COMMUNITY", (), ["SNMP_COMMUNITY / spare / TYPE = RO"], "a row is named by its secret", "a row is named by its secret")
case("SNMP_USER", (), "its secrets come with it", ["SNMP_USER / watcher / SNMP_USER_PERMISSION = RW"], "its secrets go with it")
case("SWITCH_HASH", added=["SWITCH_HASH / GLOBAL / lag_hash_algorithm = CRC"], changed=["SWITCH_HASH / GLOBAL / ecmp_hash_algorithm = XOR"], removed=["SWITCH_HASH / GLOBAL / ecmp_hash_algorithm"])
table("SYSLOG_SERVER", "192.0.2.44", "192.0.2.45", "severity", "info", "warn", extra=["vrf = mgmt"])
table("TC_TO_PRIORITY_GROUP_MAP", "SPARE", "OTHER", "0", "0", "1")
table("TC_TO_QUEUE_MAP", "SPARE", "OTHER", "0", "0", "1")
table("VLAN", "Vlan77", "Vlan78", "description", "spare", "other", extra=[])
rows = [r.replace("  base: ['VLAN / Vlan77 / description = spare']", "  base: [VLAN / Vlan77 / vlanid = 77, VLAN / Vlan77 / description = spare, VLAN / Vlan79 / vlanid = 79]").replace("  added: ['VLAN / Vlan78 / description = spare']", "  added: [VLAN / Vlan78 / vlanid = 78]").replace("  removed: ['VLAN / Vlan77']", "  removed: [VLAN / Vlan79]") for r in rows]
case("VLAN_INTERFACE", ["VLAN_INTERFACE / Vlan77", "VLAN_INTERFACE / Vlan77|10.77.0.1/24"], ["VLAN_INTERFACE / Vlan77|10.78.0.1/24"], "its rows have no fields", ["VLAN_INTERFACE / Vlan77|10.77.0.1/24"])
case("VLAN_MEMBER", added="no port is free of addresses", changed="no port is free of addresses", removed="no port is free of addresses")
table("WRED_PROFILE", "SPARE", "OTHER", "green_min_threshold", "150000", "160000")
for name, added, changed, removed in [
    ("bgp_asn", one, ["65007"], 1), ("bgp_router_id", one, ["10.255.0.9"], 1), ("buffer_model", one, "every row of the buffers changes with it", "the model of the buffers is read at a start, and all its rows with it"),
    ("default_bgp_status", one, ["down"], 1), ("default_pfcwd_status", one, ["enable"], 1),
    ("docker_routing_config_mode", one, "what makes FRR's configuration changes with it", "what makes FRR's configuration changes with it"), ("frr_mgmt_framework_config", one, ["false"], 1),
    ("hostname", one, ["another"], "a switch has a name"), ("hwsku", one, "a switch is installed with it", "a switch is installed with it"), ("platform", one, "a switch is installed with it", "a switch is installed with it"),
    ("synchronous_mode", one, ["disable"], 1), ("timezone", one, ["Europe/Berlin"], 1), ("type", one, ["SpineRouter"], "a switch has a type")]:
    p = f"DEVICE_METADATA / localhost / {name}"
    case(p, (), added, [f"{p} = {changed[0]}"] if isinstance(changed, list) else changed, [p] if removed == 1 else removed)
for name in "BUFFER_POOL_WATERMARK PFCWD PG_DROP PG_WATERMARK PORT PORT_BUFFER_DROP QUEUE QUEUE_WATERMARK WRED_ECN_PORT WRED_ECN_QUEUE".split():
    p = f"FLEX_COUNTER_TABLE / {name}"
    base = [f"{p} / FLEX_COUNTER_STATUS = enable"] if name.startswith("WRED") else ()
    has = name in ("PORT", "QUEUE", "QUEUE_WATERMARK")
    case(p, base, "its fields are there" if has or name == "PFCWD" else [f"{p} / POLL_INTERVAL = 2000"], [f"{p} / FLEX_COUNTER_STATUS = disable"], "SONiC fills it up with its own" if not has else "SONiC fills it up with its own")
p = "BGP_DEVICE_GLOBAL / STATE"
case(p, (), "its fields are there", [f"{p} / wcmp_enabled = true"], "SONiC fills it up with its own")
p = "CABLE_LENGTH / AZURE"
case(p, (), [f"{p} / Ethernet8 = 5m"] and "every port has one", [f"{p} / Ethernet0 = 5m"], "every port has one")
p = "DEFAULT_LOSSLESS_BUFFER_PARAMETER / AZURE"
case(p, (), "its field is there", [f"{p} / default_dynamic_th = 1"], "the model of the buffers needs it")
p = "FEATURE / lldp / state"
case(p, (), one, [f"{p} = disabled"], one)
p = "LOSSLESS_TRAFFIC_PATTERN / AZURE"
case(p, (), "its fields are there", [f"{p} / mtu = 2048"], "the model of the buffers needs it")
case("frr.conf / log *", ["frr.conf / log timestamp precision 6"], ["frr.conf / log commands"], ["frr.conf / log syslog = warnings"], ["frr.conf / log facility", "frr.conf / log timestamp precision 6"])
same = "the switch chip is reached in one way"
case("frr.conf / fpm *", (), same, same, same)
case("frr.conf / no fpm *", (), same, same, same)
case("frr.conf / no zebra nexthop kernel enable", (), "always there", "has no value", "the container adds it to its file")
case("frr.conf / ip protocol bgp route-map", (), "always there", ["frr.conf / ip protocol bgp route-map = SPARE"], ["frr.conf / ip protocol bgp route-map"])
mgmt = "how the switch is reached does not go away"
case("MGMT_INTERFACE", ["MGMT_INTERFACE / eth0|192.0.2.10/24 / forced_mgmt_routes = "] and (), ["MGMT_INTERFACE / eth0|198.51.100.9/24 / gwaddr = 198.51.100.1"] and "how the switch is reached stays one", ["MGMT_INTERFACE / eth0|192.0.2.10/24 / gwaddr = 192.0.2.9"], mgmt)
case("MGMT_PORT", (), ["MGMT_PORT / eth0 / description = out of band"], "its fields are fixed", mgmt)
case("MGMT_VRF_CONFIG", (), mgmt, "how the switch is reached stays one", mgmt)
p = "BGP_DEVICE_GLOBAL / STATE / *"
case(p, (), "its fields are there", ["BGP_DEVICE_GLOBAL / STATE / tsa_enabled = true"], "a claim is not removed")
case("DEVICE_METADATA / localhost / default_*", (), "its fields are there", ["DEVICE_METADATA / localhost / default_bgp_status = down"], "a claim is not removed")
case("FLEX_COUNTER_TABLE / * / *", (), ["FLEX_COUNTER_TABLE / PG_DROP / POLL_INTERVAL = 3000"], ["FLEX_COUNTER_TABLE / PORT / POLL_INTERVAL = 2000"], "a claim is not removed")
case("BUFFER_PROFILE / pg_lossless_*_profile", (), "buffermgrd makes it", "buffermgrd makes it", "buffermgrd makes it")
print("\n".join(rows))
