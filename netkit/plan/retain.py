"""The first of two stages of a change: what a router keeps, so that it still accepts and announces the old routes."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from netkit.plan.model import Detour, DetourKind, ReachabilityLoss
from netkit.platforms.change import Change
from netkit.platforms.compare import ConfigComparison, ConfigModel, apply, natural
from netkit.platforms.config import Files, Path
from netkit.platforms.routing import Clause, PrefixListEntry, RetainedRouting, Router
from netkit.platforms.secrets import holds_secret
from netkit.routing.address import AddressGroup

KIND = re.compile(r"[A-Za-z]+")
"""The name of a port without its number."""


def to_keep(running: Router, intended: Router, ports: Collection[str]) -> RetainedRouting:
    """What an intended configuration needs in addition to accept and announce what the running one does.

    `ports` lead to other switches of the fabric.
    """
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
    named = _named_ports(found.changes, {*was, *now})
    ended = _about(named, ending) | _with_nothing_left(named) if ending else set()
    open_to_any: dict[Path, str] = {}
    for change in _about(named, moving.keys()):
        for port in named[change] & moving.keys():
            open_to_any |= model.any_as(change.path, change.intended or "", moving[port])
    ways: tuple[tuple[DetourKind, set[Change], dict[Path, str]], ...] = (
        ("sessions stay", ended, {}),
        ("sessions come", ended | renumbering | _about(named, moving.keys()), {}),
        ("any AS", ended | (renumbering if is_spine else set()), open_to_any),
    )
    places = {path: place for place, path in enumerate(found.whole)}
    seen = [apply(found.whole, ()), apply(found.whole, found.changes)]
    for kind, later, replaced in ways:
        config = apply(found.whole, (one for one in found.changes if one not in later)) | replaced
        is_secret = holds_secret({one.path: one.running or "" for one in later})  # it could not be written again
        if config not in seen and not is_secret:
            seen.append(config)
            # In the order of the running configuration: FRR takes no description of a neighbor that it does not know.
            entries = {one.path: one.running for one in sorted(later, key=lambda one: places.get(one.path, 0))}
            yield Detour(kind, tuple((entries | replaced).items()), model.router(config))


def with_entries(model: ConfigModel, files: Files, entries: Iterable[tuple[Path, str | None]]) -> Files:
    """Files with some entries replaced; a file without any of them stays as it is written."""
    config = dict(model.read({name: text for name, text in files.items() if model.reads(name)}))
    for path, value in entries:
        if value is None:
            config.pop(path, None)
        else:
            config[path] = value
    written = model.text(config)
    return {**files, **{name: text for name, text in written.items() if not _is_alike(model, name, files, text)}}


def _is_alike(model: ConfigModel, name: str, files: Files, text: str) -> bool:
    return name in files and model.read({name: files[name]}) == model.read({name: text})


def _named_ports(changes: Iterable[Change], ports: Iterable[str]) -> dict[Change, frozenset[str]]:
    """Changes with the ports that they name."""
    kinds = sorted({match[0] for port in ports if (match := KIND.match(port))})
    pattern = re.compile(rf"(?<![\w/])(?:{'|'.join(kinds)})\d[\w/.]*" if kinds else "(?!)")
    return {one: frozenset(pattern.findall(" ".join(one.path))) for one in changes}


def _about(named: Mapping[Change, AbstractSet[str]], ports: AbstractSet[str]) -> set[Change]:
    return {one for one, names in named.items() if names & ports}


def _with_nothing_left(named: Mapping[Change, AbstractSet[str]]) -> set[Change]:
    """The removals of ports of which nothing stays: what a port breaks out into goes with it."""
    staying = {name for one, names in named.items() if not one.is_removal for name in names}
    return {one for one, names in named.items() if names and not names & staying}


def _replaces(change: Change, old: int, new: int) -> bool:
    """Whether a change replaces one AS number by another."""
    return change.running == str(old) and change.intended == str(new) and "remote-as" not in change.path[-1]


def with_kept(intended: Router, kept: RetainedRouting) -> Router:
    """The intended router with what is kept."""
    lists = dict(intended.prefix_lists)
    for name, rule in kept.rules:
        lists[name] = (*lists.get(name, ()), rule)
    return replace(intended, prefix_lists=lists, aggregates=(*intended.aggregates, *kept.aggregates))


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
        if not clause.is_permit or clause.unknown or clause.matches_graceful_shutdown or not clause.prefix_lists:
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
    return one.is_permit and is_wide and other.prefix.subnet_of(one.prefix)


Rows = Sequence[int]
"""For each group the groups that it reaches, as bits."""


def lost_between(groups: Sequence[AddressGroup], wanted: Rows, has: Rows) -> ReachabilityLoss:
    """The addresses behind groups that should reach each other in both directions, and do not."""
    lost = [one & ~other for one, other in zip(_mutual(wanted), _mutual(has), strict=True)]
    hosts = [Counter(nic.host for nic in group.nics) for group in groups]
    alone: dict[str, int] = {}
    by_host: dict[str, int] = {}
    by_size: dict[int, int] = {}
    for index, own in enumerate(hosts):
        by_size[own.total()] = by_size.get(own.total(), 0) | 1 << index
        for host in own:
            by_host[host] = by_host.get(host, 0) | 1 << index
            if len(own) == 1:
                alone[host] = alone.get(host, 0) | 1 << index
    pairs = 0
    touched = []
    for index, own in enumerate(hosts):
        # A host reaches itself without the fabric.
        row = lost[index] & ~(alone[next(iter(own))] if len(own) == 1 else 0)
        if row:
            touched.append(index)
        if row >> index & 1:
            pairs += (own.total() ** 2 - sum(count**2 for count in own.values())) // 2
        later = row >> (index + 1) << (index + 1)
        pairs += own.total() * sum(size * (later & members).bit_count() for size, members in by_size.items())
        pairs -= sum(
            count * hosts[other][host] for host, count in own.items() for other in _bits(later & by_host[host])
        )
    nics = [nic for index in touched for nic in groups[index].nics]
    names, rails = {nic.host for nic in nics}, {nic.interface for nic in nics}
    return ReachabilityLoss(pairs, tuple(sorted(names, key=lambda one: natural((one,)))), tuple(sorted(rails)))


def _mutual(rows: Rows) -> list[int]:
    """For each group those that it reaches and that reach it. Many groups have the same row."""
    alike: dict[int, int] = {}
    for index, row in enumerate(rows):
        alike[row] = alike.get(row, 0) | 1 << index
    columns = [0] * len(rows)
    for row, members in alike.items():
        for other in _bits(row):
            columns[other] |= members
    return [row & column for row, column in zip(rows, columns, strict=True)]


def _bits(row: int) -> Iterator[int]:
    while row:
        yield (row & -row).bit_length() - 1
        row &= row - 1
