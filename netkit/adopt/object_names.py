"""Names of route maps, profiles and such that run: found where the rendered configuration has netkit's own."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from netkit.adopt.fit import compared
from netkit.adopt.proposal import Adoption, FoundIntent, designed, validated
from netkit.design.fabric import Role
from netkit.errors import NetkitError
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Config, Files
from netkit.platforms.existing import most
from netkit.platforms.object_names import Names, Occurrences, occurrences
from netkit.render import Engine

ROUNDS = 5
"""A name is found once those above it are known: a peer group, its route map, the prefix list of that."""
SAMPLES = 8
"""Switches of each tier that are compared, beside those with peers outside."""
Pair = tuple[Config, Config]
"""What runs, and what is rendered."""


def with_names(source: Adoption, proposal: FoundIntent, files: Mapping[str, Files], engine: Engine) -> FoundIntent:
    """The proposal with the names that most switches of a tier have, where fewer lines differ with them."""
    proposal = _with(source, proposal, {role: {} for role in _tiers(proposal)})
    for role in _tiers(proposal):
        platform = str(_tiers(proposal)[role]["platform"])
        read = [one for one in proposal.fabric.tier(role) if one.name in source.survey.switches]
        switches = [switch for switch in read if switch.platform == platform]
        chosen = switches[:: len(switches) // SAMPLES + 1]
        names = list(dict.fromkeys(one.name for one in (*chosen, *switches) if one in chosen or one.external))
        before = dict(compared(proposal.fabric, names, files, engine))
        pairs = [(MODELS[platform].parse(files[name]), one.intended) for name, one in before.items()]
        guard = proposal.intent.management
        lists = most(
            tuple(source.survey.switches[name].existing.access_lists.items()) or None
            for name in (names if guard and guard.allow else ())
        )
        try:
            named = _with(source, proposal, {role: _in_use(platform, pairs, dict(lists or ()))})
            if named is proposal:
                continue
            after = dict(compared(named.fabric, names, files, engine))
        except NetkitError:
            continue
        if sum(len(one.changes) for one in after.values()) < sum(len(one.changes) for one in before.values()):
            proposal = named
    return proposal


def _with(source: Adoption, proposal: FoundIntent, names: Mapping[Role, Names]) -> FoundIntent:
    """The proposal with other names in some tiers."""
    tiers = _tiers(proposal)
    changed = {
        role: {**tier, "object_names": names.get(role, tier.get("object_names", {}))} for role, tier in tiers.items()
    }
    if all(tier.get("object_names", {}) == changed[role]["object_names"] for role, tier in tiers.items()):
        return proposal
    values = proposal.values | {"switches": changed}
    fabric, intent = designed(source, values, proposal.tables), validated(values, proposal.tables)
    return replace(proposal, values=values, intent=intent, fabric=fabric)


def _tiers(proposal: FoundIntent) -> dict[Role, dict[str, object]]:
    tiers = proposal.values["switches"]
    return tiers if isinstance(tiers, dict) else {}


def _in_use(platform: str, pairs: list[Pair], lists: Mapping[str, str]) -> Names:
    """Names of netkit → those that most devices have in their places, and access lists without such a place."""
    chosen: Names = {}
    running = [occurrences(platform, config, {}) for config, _ in pairs]
    for _ in range(ROUNDS):
        intended = [occurrences(platform, config, chosen) for _, config in pairs]
        votes = Counter(vote for one in zip(running, intended, strict=True) for vote in _votes(*one))
        found: dict[str, dict[str, str]] = {"access_list": dict(lists)}
        for (kind, own, other), _count in votes.most_common():
            names = found.setdefault(kind, {})
            if own not in names and other not in names.values():
                names[own] = other
        other_names = {kind: {own: one for own, one in names.items() if own != one} for kind, names in found.items()}
        before, chosen = chosen, {kind: names for kind, names in other_names.items() if names}
        if chosen == before:
            break
    return chosen


def _votes(running: Occurrences, intended: Occurrences) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, netkit's name, the one that runs) of each place where both have one name."""
    for (kind, place), names in intended.items():
        others = running.get((kind, place), ())
        if len(names) == len(others) == 1:
            yield kind, next(iter(names)), next(iter(others))
