"""What a switch is to become, and how it gets there and back."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.platforms.change import Change
from netkit.platforms.compare import Situation, apply, compare
from netkit.platforms.config import Path
from netkit.platforms.driver import Candidate
from netkit.platforms.frr.model import FRR_CONF
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.sonic import routing, tables
from netkit.platforms.sonic.model import CONFIG_DB, MODEL
from netkit.platforms.sonic.procedure import Procedure
from netkit.platforms.sonic.strategy import FLAPPING, patch_s, strategy
from netkit.platforms.sonic.tables import Operation, Tables

RELOAD_S, PATCH_S = 900, 120
"""How long to wait for a change, whatever it is; a patch that takes ports down gets more."""


@dataclass(frozen=True, slots=True)
class SonicState:
    """What a switch runs; no FRR text where SONiC makes FRR's configuration itself."""

    tables: Tables
    frr: str | None

    def files(self) -> dict[str, str | None]:
        """Return it by the names netkit renders."""
        return {CONFIG_DB: tables.text(self.tables), FRR_CONF: self.frr}


@dataclass(frozen=True, slots=True)
class Intended:
    """What is staged: what the switch is to become, and what that takes."""

    before: SonicState
    after: SonicState
    """Without an FRR text where FRR stays as it is."""
    procedure: Procedure
    operations: tuple[Operation, ...]
    routes: frozenset[Path]
    """What differs in FRR."""

    @property
    def is_nothing(self) -> bool:
        """Whether the switch is that already."""
        return not self.procedure.method and not self.procedure.has_routing

    def undone(self, found: SonicState) -> Iterator[str]:
        """Yield what a switch does not run although it says that the change is made."""
        yield from tables.undone(self.operations, found.tables)
        if self.after.frr is not None:
            left = _routes(found.frr, self.after.frr)
            yield from (" ".join(path) for path in sorted(left & self.routes))


def intended(before: SonicState, after: SonicState, method: str, *, reloads_back: bool = False) -> Intended:
    """Return how a switch gets from one state to another."""
    operations = tuple(tables.operations(before.tables, after.tables))
    is_reload = method == "reload" and bool(operations)
    has_routing = after.frr is not None
    procedure = Procedure(
        method=method if operations else "",
        has_routing=has_routing,
        had_routing=before.frr is not None and (has_routing or is_reload),
        reloads_back=is_reload or reloads_back,
        longest_s=RELOAD_S if is_reload else PATCH_S + 2 * round(patch_s(len(_flapping(operations)))),
    )
    routes = _routes(before.frr, after.frr) if after.frr is not None else frozenset()
    return Intended(before, after, procedure, operations, routes)


def planned(before: SonicState, candidate: Candidate, version: str, secrets: SecretResolver) -> Intended:
    """Return what a plan's candidate makes of a switch; secrets are put in their places."""
    wanted = tables.read(candidate.files.get(CONFIG_DB, "{}"))
    after = secrets.tree(tables.changed(before.tables, candidate.changes, wanted))
    text = secrets.text(candidate.files.get(FRR_CONF, ""))
    is_split = bool(text) and tables.routing_mode(after) in routing.SPLIT_MODES
    # A reload starts FRR with its saved file, so that it has to be brought to ours anyway.
    is_due = candidate.method == "reload" or any(change.path[0] == FRR_CONF for change in candidate.changes)
    frr = routing.whole(before.frr or "", text) if is_split and is_due else None
    reloads_back = not _is_patch_back(before, candidate.changes, version)
    return intended(before, SonicState(after, frr), candidate.method, reloads_back=reloads_back)


def _is_patch_back(before: SonicState, changes: tuple[Change, ...], version: str) -> bool:
    """Whether the updater takes the way back: there are some it refuses whose way there it takes."""
    have = MODEL.parse({name: text for name, text in before.files().items() if text is not None})
    back = tuple(Change(change.path, change.intended, change.running, change.risk) for change in changes)
    return strategy(Situation(back, apply(have, changes), have, version)).method != "reload"


def _routes(running: str | None, intended_text: str) -> frozenset[Path]:
    changes = compare(MODEL, {FRR_CONF: running}, {FRR_CONF: intended_text}).changes
    return frozenset(change.path for change in changes)


def _flapping(operations: tuple[Operation, ...]) -> set[str]:
    rows = (one.place[1] for one in operations if one.place[0] in FLAPPING and len(one.place) > 1)
    return {row.partition("|")[0] for row in rows}
