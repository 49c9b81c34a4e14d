"""The first of two stages of a change: the routes and sessions that a router keeps beside the new ones."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from netkit.plan.model import Detour, DetourKind
from netkit.platforms.change import Change
from netkit.platforms.compare import ConfigComparison, ConfigModel, apply
from netkit.platforms.config import Files, Path
from netkit.platforms.routing import Clause, PrefixListEntry, RetainedRouting, Router, is_within
from netkit.platforms.secrets import SECRET, holds_secret

KIND = re.compile(r"[A-Za-z]+")
"""The name of a port without its number."""
CAGE = re.compile(r"[A-Za-z]+\d+")
SPLITS = ("lanes", "speed", "brkout_mode")
"""Settings of a port that change with the breakout of its cage."""
NamedPorts = Mapping[Path, frozenset[str]]
"""The ports that a path names."""


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
    ending, coming = was.keys() - now.keys(), now.keys() - was.keys()
    moving = {port: now[port] for port in was.keys() & now.keys() if was[port] != now[port]}
    renumbering = {one for one in found.changes if _replaces(one, running.asn, intended.asn)}
    if not (ending or moving or renumbering) or _is_split_anew(found.changes, ending, coming):
        return
    named = _named_ports([one.path for one in found.changes], {*was, *now})
    ended = set(_ending(found, named, ending, {*was, *now}))
    moved = [one for one in found.changes if named[one.path] & moving.keys()]
    open_to_any: dict[Path, str] = {}
    for change in moved:
        for port in sorted(named[change.path] & moving.keys()):
            open_to_any |= model.any_as(change.path, change.intended or "", moving[port])
    ways: tuple[tuple[DetourKind, set[Change], dict[Path, str]], ...] = (
        ("sessions stay", ended, {}),
        ("sessions come", ended | renumbering | {*moved}, {}),
        ("any AS", ended | (renumbering if is_spine else set()), open_to_any),
    )
    seen = [apply(found.whole, ()), apply(found.whole, found.changes)]
    for kind, later, replaced in ways:
        config = apply(found.whole, (one for one in found.changes if one not in later)) | replaced
        is_secret = holds_secret({one.path: one.running or "" for one in later})  # it could not be written again
        router = model.router(config)
        if config not in seen and not is_secret and not _has_network_twice(router):
            seen.append(config)
            yield Detour(kind, tuple((_kept(found, later) | replaced).items()), router)


def _ending(found: ConfigComparison, named: NamedPorts, ending: set[str], ports: set[str]) -> Iterator[Change]:
    """Yield the changes that remove the ports of ending sessions."""
    if not ending:
        return
    staying = {name for names in _named_ports(found.intended, ports).values() for name in names}
    for change in found.changes:
        names = named[change.path]
        if names & ending or (names and change.is_removal and not names & staying):
            yield change


def _kept(found: ConfigComparison, later: Collection[Change]) -> dict[Path, str | None]:
    """What runs now in the place of changes that come later.

    In the order of the running configuration: FRR takes no description of a neighbor that it does not know.
    """
    places = {path: place for place, path in enumerate(found.whole)}
    kept = sorted((one for one in found.changes if one in later), key=lambda one: places.get(one.path, 0))
    return {one.path: one.running for one in kept}


def _has_network_twice(router: Router) -> bool:
    networks = [address.network for one in (router, router.v6) if one for _, address in one.addresses]
    return len({*networks}) < len(networks)


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


def _named_ports(paths: Iterable[Path], ports: Iterable[str]) -> NamedPorts:
    kinds = sorted({match[0] for port in ports if (match := KIND.match(port))})
    pattern = re.compile(rf"(?<![\w/])(?:{'|'.join(kinds)})\d[\w/.]*" if kinds else "(?!)")
    return {path: frozenset(pattern.findall(" ".join(path))) for path in paths}


def _is_split_anew(changes: Iterable[Change], ending: Iterable[str], coming: Iterable[str]) -> bool:
    """Whether a cage is broken out in another way: the old ports and the new ones cannot be there together."""
    old, new = ({match[0] for port in ports if (match := CAGE.match(port))} for ports in (ending, coming))
    return bool(old & new) or any(None not in (one.running, one.intended) and one.path[-1] in SPLITS for one in changes)


def _replaces(change: Change, old: int, new: int) -> bool:
    """Whether a change replaces the AS number of a switch."""
    is_number = (change.running, change.intended) == (str(old), str(new)) and "remote-as" not in change.path[-1]
    return is_number and bool(old and new)


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
