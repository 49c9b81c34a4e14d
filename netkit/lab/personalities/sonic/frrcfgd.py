"""FRR's configuration: generated from the BGP tables in unified mode, or from frr.conf in split mode."""

from collections.abc import Iterator

from netkit.lab.personalities.sonic.tables import Row, View, natural, parts, text

FORWARDING_LINES = frozenset({"no fpm use-next-hop-groups", "fpm address 127.0.0.1"})
"""Lines for zebra's FPM module, which programs the ASIC. The lab forwards in the kernel and does not load it."""


def realisable(text: str, *, has_bfd: bool) -> str:
    """Drop the lines for the switch chip, and BFD if its daemon does not run."""
    return "".join(f"{line}\n" for line in _lines(text, has_bfd=has_bfd))


def _lines(text: str, *, has_bfd: bool) -> Iterator[str]:
    is_bfd = False
    for line in text.splitlines():
        if line == "bfd":
            is_bfd = True
        if not (is_bfd and not has_bfd) and line.rstrip() not in FORWARDING_LINES:
            yield line
        if line == "exit":
            is_bfd = False


HEAD = (
    "frr defaults traditional",
    "log syslog informational",
    "log facility local4",
    "service integrated-vtysh-config",
    # With nexthop objects, zebra permanently loses routes once the kernel drops the nexthops of a failed link.
    "no zebra nexthop kernel enable",
    "ip nht resolve-via-default",
    "ipv6 nht resolve-via-default",
)
WORDS = {"IPv4": "ip", "IPv6": "ipv6"}
"""Mode of a prefix set → FRR's word. It decides for route maps too: there is no other field that frrcfgd reads."""
FIRST_WITH_ACTIVATE = 202505
"""Earlier branches inverted `admin_status: up` in an address family."""


def frr_conf(tables: View, branch: int, hostname: str) -> str:
    """Generate frr.conf from the BGP tables, as frrcfgd does."""
    lines = [*HEAD[:1], f"hostname {hostname}", *HEAD[1:], "!"]
    lines += [*_static_routes(tables), *_prefix_lists(tables), *_route_maps(tables), *_router(tables, branch)]
    return "".join(f"{line}\n" for line in lines)


def _rows(tables: View, table: str) -> Iterator[tuple[tuple[str, ...], Row]]:
    for key, row in sorted(tables.get(table, {}).items(), key=lambda entry: natural(entry[0])):
        yield parts(key), dict(row)


def _static_routes(tables: View) -> Iterator[str]:
    for (_, prefix), row in _rows(tables, "STATIC_ROUTE"):
        vias = ["blackhole"] if row.get("blackhole") == "true" else str(row.get("nexthop", "")).split(",")
        yield from (f"ip route {prefix} {via}" for via in vias)


def _prefix_lists(tables: View) -> Iterator[str]:
    for (name, number, prefix, lengths), row in _rows(tables, "PREFIX"):
        word = WORDS.get(text(tables, "PREFIX_SET", name, "mode"), "")
        if word and "action" in row and (word == "ipv6") == (":" in prefix):
            low, _, high = lengths.partition("..")
            span = f" ge {low} le {high}" if high else ""
            yield f"{word} prefix-list {name} seq {number} {row['action']} {prefix}{span}"
    yield "!"


def _route_maps(tables: View) -> Iterator[str]:
    for (name, number), row in _rows(tables, "ROUTE_MAP"):
        if "route_operation" in row:
            yield f"route-map {name} {row['route_operation']} {number}"
            if "match_prefix_set" in row:
                listed = str(row["match_prefix_set"])
                word = WORDS.get(text(tables, "PREFIX_SET", listed, "mode"), "ip")
                yield f" match {word} address prefix-list {listed}"
            if "set_local_pref" in row:
                yield f" set local-preference {row['set_local_pref']}"
            if "set_community_inline" in row:
                yield f" set community {' '.join(row['set_community_inline'])}"
            yield from ("exit", "!")


def _router(tables: View, branch: int) -> Iterator[str]:
    row = dict(tables.get("BGP_GLOBALS", {}).get("default", {}))
    if "local_asn" not in row:
        return
    yield f"router bgp {row['local_asn']}"
    yield from _instance(row)
    for (_, group), settings in _rows(tables, "BGP_PEER_GROUP"):
        yield f" neighbor {group} peer-group"
        if "asn" in settings or "peer_type" in settings:
            yield f" neighbor {group} remote-as {settings.get('asn') or settings['peer_type']}"
        yield from _peer(group, settings)
    for (_, peer), settings in _rows(tables, "BGP_NEIGHBOR"):
        yield from _neighbor(peer, settings)
    yield from ("!", *_family(tables, branch, "ipv4"))
    if any(key.endswith("|ipv6_unicast") for key in tables.get("BGP_GLOBALS_AF", {})):
        yield from ("!", *_family(tables, branch, "ipv6"))
    yield from ("exit", "!")


def _instance(row: Row) -> Iterator[str]:
    if "router_id" in row:
        yield f" bgp router-id {row['router_id']}"
    if row.get("log_nbr_state_changes") == "true":
        yield " bgp log-neighbor-changes"
    if "default_ipv4_unicast" in row:
        yield f" {'' if row['default_ipv4_unicast'] == 'true' else 'no '}bgp default ipv4-unicast"
    if row.get("graceful_restart_enable") == "true":
        yield " bgp graceful-restart"
    if row.get("graceful_shutdown") == "true":
        yield " bgp graceful-shutdown"
    if row.get("load_balance_mp_relax") == "true":
        yield " bgp bestpath as-path multipath-relax"
    if "keepalive" in row and "holdtime" in row:
        yield f" timers bgp {row['keepalive']} {row['holdtime']}"


def _neighbor(peer: str, row: Row) -> Iterator[str]:
    remote = row.get("asn") or row.get("peer_type")
    word = "" if "." in peer or ":" in peer else "interface "
    if "peer_group_name" in row:
        yield f" neighbor {peer} {word}peer-group {row['peer_group_name']}"
        if remote:
            yield f" neighbor {peer} remote-as {remote}"
    elif remote:
        yield f" neighbor {peer} {word}remote-as {remote}"
    else:
        return
    yield from _peer(peer, row)
    if "local_addr" in row:
        yield f" neighbor {peer} update-source {row['local_addr']}"


def _peer(name: str, row: Row) -> Iterator[str]:
    if row.get("name"):
        yield f" neighbor {name} description {row['name']}"
    if row.get("admin_status") == "down":
        yield f" neighbor {name} shutdown"
    if row.get("bfd") == "true":
        yield f" neighbor {name} bfd"
    if "keepalive" in row and "holdtime" in row:
        yield f" neighbor {name} timers {row['keepalive']} {row['holdtime']}"
    if "conn_retry" in row:
        yield f" neighbor {name} timers connect {row['conn_retry']}"
    if row.get("capability_ext_nexthop") == "true":
        yield f" neighbor {name} capability extended-nexthop"


def _family(tables: View, branch: int, version: str) -> Iterator[str]:
    name = f"{version}_unicast"
    yield f" address-family {version} unicast"
    for (_, family, prefix), row in _rows(tables, "BGP_GLOBALS_AF_AGGREGATE_ADDR"):
        if family != name:
            continue
        words = [
            word for word, leaf in (("as-set", "as_set"), ("summary-only", "summary_only")) if row.get(leaf) == "true"
        ]
        yield " ".join([f"  aggregate-address {prefix}", *words])
    for (_, protocol, _, family), row in _rows(tables, "ROUTE_REDISTRIBUTE"):
        if family == version:
            yield " ".join([f"  redistribute {protocol}", *(f"route-map {one}" for one in row.get("route_map", []))])
    for table in ("BGP_PEER_GROUP_AF", "BGP_NEIGHBOR_AF"):
        for (_, peer, family), row in _rows(tables, table):
            if family == name:
                yield from _peer_family(peer, row, branch)
    for (_, family), row in _rows(tables, "BGP_GLOBALS_AF"):
        if family != name:
            continue
        if "max_ebgp_paths" in row:
            yield f"  maximum-paths {row['max_ebgp_paths']}"
        if "max_ibgp_paths" in row:
            yield f"  maximum-paths ibgp {row['max_ibgp_paths']}"
    yield " exit-address-family"


def _peer_family(peer: str, row: Row, branch: int) -> Iterator[str]:
    if "admin_status" in row:
        is_active = row["admin_status"] == "up" and branch >= FIRST_WITH_ACTIVATE
        yield f"  {'' if is_active else 'no '}neighbor {peer} activate"
    if "max_prefix_limit" in row:
        yield f"  neighbor {peer} maximum-prefix {row['max_prefix_limit']}"
    for leaf, direction in (("route_map_in", "in"), ("route_map_out", "out")):
        yield from (f"  neighbor {peer} route-map {name} {direction}" for name in row.get(leaf, []))
    if row.get("allow_as_in") == "true":
        yield f"  neighbor {peer} allowas-in"
