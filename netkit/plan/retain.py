"""The first of two stages of a change: the routes and sessions that a router keeps beside the new ones."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import yaml

from netkit.plan.model import Detour, DetourKind, ReachabilityLoss
from netkit.platforms.change import Change
from netkit.platforms.compare import ConfigComparison, ConfigModel, apply, natural
from netkit.platforms.config import Files, Path
from netkit.platforms.routing import Clause, PrefixListEntry, RetainedRouting, Router, is_within
from netkit.platforms.secrets import SECRET, holds_secret
from netkit.routing.address import AddressGroup, NicTables

KIND = re.compile(r"[A-Za-z]+")
"""The name of a port without its number."""
CAGE = re.compile(r"[A-Za-z]+\d+")
SPLITS = ("lanes", "speed", "brkout_mode")
"""Settings of a port that change with the breakout of its cage."""


def to_keep(running: Router, intended: Router, ports: Collection[str]) -> RetainedRouting:
    """What an intended configuration needs in addition to accept and announce what the running one does.

    `ports` lead to other switches of the fabric.
    """
    kept = _to_keep(running, intended, ports)
    if running.v6 is None or intended.v6 is None:
        return kept
    other = _to_keep(running.v6, intended.v6, ports)
    return RetainedRouting(kept.rules + other.rules, kept.aggregates + other.aggregates)


def _to_keep(running: Router, intended: Router, ports: Collection[str]) -> RetainedRouting:
    """The same for one family."""
    rules: dict[str, list[PrefixListEntry]] = {}
    for was, now in _filters(running, intended, ports):
        names = _plain_lists(intended.route_maps.get(now, ()))
        old = [
            rule
            for name in _plain_lists(running.route_maps.get(was, ()))
            for rule in running.prefix_lists.get(name, ())
        ]
        if not names:
            continue
        known = [rule for name in names for rule in intended.prefix_lists.get(name, ())]
        into = rules.setdefault(names[0], [])
        for rule in old:
            parts = _with_own_prefixes(rule, known) if rule.is_permit else ()
            missing = [part for part in parts if not any(_allows(one, part) for one in (*known, *into))]
            last = max((one.number for one in (*known, *into)), default=0)
            into += [replace(one, number=last + 10 * place) for place, one in enumerate(missing, 1)]
    known_prefixes = {one.prefix for one in intended.aggregates}
    aggregates = tuple(one for one in running.aggregates if one.prefix not in known_prefixes)
    return RetainedRouting(tuple((name, rule) for name, found in rules.items() for rule in found), aggregates)


def detours(
    model: ConfigModel, found: ConfigComparison, running: Router, intended: Router, *, is_spine: bool
) -> Iterator[Detour]:
    """Yield the configurations that a change of sessions can go through.

    With `any AS`, spines keep their own AS number, while all others change theirs: no session then has two ends that
    expect each other's old number.
    """
    if model.router is None or model.keeping is None:
        return
    was, now = ({side.interface: side.remote_asn for side in one.sessions} for one in (running, intended))
    ending = was.keys() - now.keys()
    moving = {port: now[port] for port in was.keys() & now.keys() if was[port] != now[port]}
    renumbering: set[Change] = set()
    if running.asn and intended.asn and running.asn != intended.asn:
        renumbering = {one for one in found.changes if _replaces(one, running.asn, intended.asn)}
    if not ending and not moving and not renumbering:
        return
    if _is_split_anew(found.changes, ending, now.keys() - was.keys()):
        return
    named, staying = _named_ports([one.path for one in found.changes], {*was, *now}), set[str]()
    if ending:
        staying = {name for names in _named_ports(found.intended, {*was, *now}).values() for name in names}
    ended = {
        one
        for one in found.changes
        if (names := named[one.path]) & ending or (ending and names and one.is_removal and not names & staying)
    }
    open_to_any: dict[Path, str] = {}
    moved = {one for one in found.changes if named[one.path] & moving.keys()}
    for change in (one for one in found.changes if one in moved):
        for port in sorted(named[change.path] & moving.keys()):
            open_to_any |= model.any_as(change.path, change.intended or "", moving[port])
    ways: tuple[tuple[DetourKind, set[Change], dict[Path, str]], ...] = (
        ("sessions stay", ended, {}),
        ("sessions come", ended | renumbering | moved, {}),
        ("any AS", ended | (renumbering if is_spine else set()), open_to_any),
    )
    places = {path: place for place, path in enumerate(found.whole)}
    seen = [apply(found.whole, ()), apply(found.whole, found.changes)]
    for kind, later, replaced in ways:
        config = apply(found.whole, (one for one in found.changes if one not in later)) | replaced
        is_secret = holds_secret({one.path: one.running or "" for one in later})  # it could not be written again
        router = model.router(config)
        networks = [address.network for one in (router, router.v6) if one for _, address in one.addresses]
        if config not in seen and not is_secret and len({*networks}) == len(networks):
            seen.append(config)
            # In the order of the running configuration: FRR takes no description of a neighbor that it does not know.
            kept = sorted((one for one in found.changes if one in later), key=lambda one: places.get(one.path, 0))
            entries = {one.path: one.running for one in kept}
            yield Detour(kind, tuple((entries | replaced).items()), router)


def with_entries(model: ConfigModel, files: Files, entries: Iterable[tuple[Path, str | None]]) -> Files | None:
    """Files with some entries replaced; None if a secret of the files would be lost.

    A file without any of the entries stays as it is written.
    """
    config = dict(model.read({name: text for name, text in files.items() if model.reads(name)}))
    for path, value in entries:
        if value is None:
            config.pop(path, None)
        else:
            config[path] = value
    written = dict(files)
    for name, text in model.text(config).items():
        if name in files and model.read({name: files[name]}) == model.read({name: text}):
            continue
        written[name] = _with_secrets(model, name, text, files.get(name, ""))
        if SECRET in written[name]:
            return None
    return written


def _with_secrets(model: ConfigModel, name: str, text: str, original: str) -> str:
    """A text with the secrets that its original has in place of masks."""
    if SECRET not in text:
        return text
    if name.endswith(".json"):
        return json.dumps(_unmasked(json.loads(text), json.loads(original)), indent=1) + "\n"
    if name.endswith(".yaml"):
        return yaml.safe_dump(_unmasked(yaml.safe_load(text), yaml.safe_load(original)), width=4096)
    secrets: dict[str, set[str]] = {}
    for line in map(str.strip, original.splitlines()):
        masked = model.text(model.read({name: line})).get(name, "").strip() if line else ""
        if SECRET in masked:
            secrets.setdefault(masked, set()).add(line)
    plain = {masked: lines.pop() for masked, lines in secrets.items() if len(lines) == 1}
    lines = text.splitlines(keepends=True)
    return "".join(line.replace(line.strip(), plain.get(line.strip(), line.strip())) for line in lines)


def _unmasked(tree: Any, original: Any) -> Any:
    if isinstance(tree, dict) and isinstance(original, dict):
        others = [key for key in original if key not in tree]
        own = {key: others[0] if key == SECRET and len(others) == 1 else key for key in tree}
        return {own[key]: _unmasked(value, original.get(own[key])) for key, value in tree.items()}
    if isinstance(tree, list) and isinstance(original, list):
        return [_unmasked(one, other) for one, other in zip(tree, [*original, *tree[len(original) :]], strict=False)]
    return original if tree == SECRET and isinstance(original, str) else tree


def _named_ports(paths: Iterable[Path], ports: Iterable[str]) -> dict[Path, frozenset[str]]:
    """Paths with the ports that they name."""
    kinds = sorted({match[0] for port in ports if (match := KIND.match(port))})
    pattern = re.compile(rf"(?<![\w/])(?:{'|'.join(kinds)})\d[\w/.]*" if kinds else "(?!)")
    return {path: frozenset(pattern.findall(" ".join(path))) for path in paths}


def _is_split_anew(changes: Iterable[Change], ending: Iterable[str], coming: Iterable[str]) -> bool:
    """Whether a cage is broken out in another way: the old ports and the new ones cannot be there together."""
    old, new = ({match[0] for port in ports if (match := CAGE.match(port))} for ports in (ending, coming))
    return bool(old & new) or any(None not in (one.running, one.intended) and one.path[-1] in SPLITS for one in changes)


def _replaces(change: Change, old: int, new: int) -> bool:
    """Whether a change replaces one AS number by another."""
    return change.running == str(old) and change.intended == str(new) and "remote-as" not in change.path[-1]


def with_kept(intended: Router, kept: RetainedRouting) -> Router:
    """The intended router with what is kept."""
    v6 = intended.v6 and _with_family(intended.v6, kept, 6)
    return replace(_with_family(intended, kept, 4), v6=v6)


def _with_family(intended: Router, kept: RetainedRouting, version: int) -> Router:
    lists = dict(intended.prefix_lists)
    for name, rule in kept.rules:
        if rule.prefix.version == version:
            lists[name] = (*lists.get(name, ()), rule)
    own = (one for one in kept.aggregates if one.prefix.version == version)
    return replace(intended, prefix_lists=lists, aggregates=(*intended.aggregates, *own))


def _filters(running: Router, intended: Router, ports: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield corresponding route maps: of connected routes, and of each neighbour in and out."""
    found: dict[tuple[str, str], None] = {}
    if running.redistributed and intended.redistributed:
        found[running.redistributed, intended.redistributed] = None
    before = {one.interface: one for one in running.sessions if one.interface in ports}
    for now in intended.sessions:
        was = before.get(now.interface)
        if was is not None:
            found[was.inbound, now.inbound] = None
            found[was.outbound, now.outbound] = None
    yield from found


def _plain_lists(clauses: Iterable[Clause]) -> tuple[str, ...]:
    """The prefix lists of a route map that only permits what they hold; none for any other route map."""
    names: list[str] = []
    for clause in clauses:
        is_plain = clause.is_permit and not (clause.unknown or clause.interface or clause.matches_graceful_shutdown)
        if not is_plain or not clause.prefix_lists:
            return ()
        names += clause.prefix_lists
    return tuple(dict.fromkeys(names))


def _with_own_prefixes(rule: PrefixListEntry, known: Iterable[PrefixListEntry]) -> tuple[PrefixListEntry, ...]:
    """Rules that permit the same, none with a prefix that another rule has.

    Of two entries with one prefix, FRR's route maps lose both when either is deleted (seen with 8.4.4; its prefix table
    for route maps holds one node for them): the halves of the prefix have their own nodes.
    """
    if rule.shortest == rule.prefix.prefixlen or all(one.prefix != rule.prefix for one in known):
        return (rule,)
    return tuple(replace(rule, prefix=half) for half in rule.prefix.subnets())


def _allows(one: PrefixListEntry, other: PrefixListEntry) -> bool:
    """Whether a rule permits everything that another one does."""
    is_wide = one.shortest <= other.shortest and other.longest <= one.longest
    return one.is_permit and is_wide and is_within(other.prefix, one.prefix)


Rows = tuple[int, ...]
"""For each group the groups that it reaches, as bits."""


def named_loss(groups: Sequence[AddressGroup], lost: Rows) -> ReachabilityLoss:
    """How a plan names pairs of groups; each row has the other end's bit.

    NICs that lose each other in both families are one pair.
    """
    of_ipv6 = [group.nics[0].address.version == 6 for group in groups]
    is_only_ipv6 = all(is_own for is_own, row in zip(of_ipv6, lost, strict=True) if row)
    if any(of_ipv6) and any(lost):
        groups, lost = _once_each(groups, lost)
    hosts = [Counter(nic.host for nic in group.nics) for group in groups]
    rails = [{nic.interface for nic in group.nics} for group in groups]
    by_host: dict[str, int] = {}
    by_rail: dict[str, int] = {}
    by_size: dict[int, int] = {}
    for index, own in enumerate(hosts):
        by_size[own.total()] = by_size.get(own.total(), 0) | 1 << index
        for rail in rails[index]:
            by_rail[rail] = by_rail.get(rail, 0) | 1 << index
        for host in own:
            by_host[host] = by_host.get(host, 0) | 1 << index
    ends = 0
    known: dict[int, tuple[int, list[str]]] = {}
    touched: set[str] = set()
    rail_pairs: set[tuple[str, str]] = set()
    for index, (own, row) in enumerate(zip(hosts, lost, strict=True)):
        if not row:
            continue
        if row not in known:
            size = sum(size * (row & members).bit_count() for size, members in by_size.items())
            known[row] = size, [rail for rail, members in by_rail.items() if members & row]
        size, far = known[row]
        # A host reaches itself without the fabric.
        at_home = sum(count * hosts[other][host] for host, count in own.items() for other in _bits(row & by_host[host]))
        if found := own.total() * size - at_home:
            ends += found
            touched |= own.keys()
            rail_pairs |= {(min(pair), max(pair)) for pair in product(rails[index], far)}
    names = sorted(touched, key=lambda one: natural((one,)))
    on = sorted({rail for pair in rail_pairs for rail in pair})
    pairs = ends // 2
    is_only_ipv6 = is_only_ipv6 and pairs > 0
    return ReachabilityLoss(pairs, tuple(names), tuple(on), 0, tuple(sorted(rail_pairs)), is_only_ipv6=is_only_ipv6)


def _once_each(groups: Sequence[AddressGroup], lost: Rows) -> tuple[Sequence[AddressGroup], Rows]:
    """Groups that have each NIC once, whatever its addresses, and the pairs of them in which any of those are lost."""
    nics = {(nic.host, nic.interface): nic for group in groups for nic in group.nics}
    places = dict.fromkeys(nics, 0)
    for index, group in enumerate(groups):
        for nic in group.nics:
            places[nic.host, nic.interface] |= 1 << index
    found: dict[int, list[NicTables]] = {}
    for key, place in places.items():
        found.setdefault(place, []).append(nics[key])
    known: dict[int, int] = {0: 0}
    rows = []
    for place in found:
        row = 0
        for index in _bits(place):
            row |= lost[index]
        if row not in known:
            known[row] = sum(1 << number for number, other in enumerate(found) if row & other)
        rows.append(known[row])
    return [AddressGroup(tuple(members)) for members in found.values()], tuple(rows)


def lost_of(wanted: Rows, has: Rows) -> Rows:
    """The pairs of groups that should reach each other, and do not; both have pairs as rows of either end."""
    alike: dict[int, int] = {}
    lost = (one & ~other for one, other in zip(wanted, has, strict=True))
    return tuple(alike.setdefault(row, row) for row in lost)


def either(one: Rows, other: Rows) -> Rows:
    return tuple(map(int.__or__, one, other))


def renumbered(groups: Sequence[AddressGroup]) -> tuple[tuple[int, int], ...]:
    """Where hosts change their addresses: (distance, groups), the latter with the same NICs as that many groups before.

    An address of the other family is not another address. A bit stands for each group. With one distance for many
    groups, rows are shifted as a whole.
    """
    first: dict[tuple[str, str, int], int] = {}
    found: dict[int, int] = {}
    for index, group in enumerate(groups):
        for nic in group.nics:
            if distance := index - first.setdefault((nic.host, nic.interface, nic.address.version), index):
                found[distance] = found.get(distance, 0) | 1 << index
    return tuple(sorted(found.items()))


def at_any_address(rows: Sequence[int], alike: Iterable[tuple[int, int]]) -> Rows:
    """Which NICs reach each other at any of their addresses; those with several count in their first group only.

    `alike` is what `renumbered` found. Pairs reach each other in both directions.
    """
    shifts = tuple(alike)
    doubles = 0
    for _, members in shifts:
        doubles |= members
    known: dict[int, int] = {}
    found = list(mutual(rows))
    for index, row in enumerate(found):
        if row not in known:
            known[row] = row & ~doubles
            for distance, members in shifts:
                known[row] |= (row & members) >> distance
        found[index] = known[row]
    for distance, members in shifts:
        for index in _bits(members):
            found[index - distance] |= found[index]
    return tuple(0 if doubles >> index & 1 else row for index, row in enumerate(found))


def mutual(rows: Sequence[int]) -> Rows:
    """For each group those that it reaches and that reach it. Many groups have the same row."""
    alike: dict[int, int] = {}
    for index, row in enumerate(rows):
        alike[row] = alike.get(row, 0) | 1 << index
    members = [alike[row] for row in alike]
    # Columns of the distinct rows as text: Python turns a table of characters around faster than bits.
    digits = [format(row, f"0{len(rows)}b")[::-1] for row in alike]
    columns: dict[tuple[str, ...], int] = {}
    found = []
    for row, column in zip(rows, zip(*digits, strict=True), strict=True):
        if column not in columns:
            columns[column] = sum(mask for mask, digit in zip(members, column, strict=True) if digit == "1")
        found.append(row & columns[column])
    return tuple(found)


def _bits(row: int) -> Iterator[int]:
    while row:
        yield (row & -row).bit_length() - 1
        row &= row - 1
