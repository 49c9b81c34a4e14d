"""A staged change: the intended state of a switch, and how to get there and back."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.platforms.change import Change
from netkit.platforms.compare import Situation, apply, compare
from netkit.platforms.config import Path
from netkit.platforms.driver import Candidate
from netkit.platforms.frr.model import FRR_CONF
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.sonic import model, tables
from netkit.platforms.sonic.model import CONFIG_DB, MODEL
from netkit.platforms.sonic.procedure import Procedure
from netkit.platforms.sonic.strategy import FLAPPING, patch_s, strategy
from netkit.platforms.sonic.tables import Operation, Tables

RELOAD_S, PATCH_S = 900, 120
"""Time limits of a change; a patch that flaps ports gets more."""


@dataclass(frozen=True, slots=True)
class SonicState:
    """What a switch runs; without FRR text if SONiC generates FRR's configuration."""

    tables: Tables
    frr: str | None

    def files(self) -> dict[str, str | None]:
        return {CONFIG_DB: tables.text(self.tables), FRR_CONF: self.frr}


@dataclass(frozen=True, slots=True)
class Intended:
    """A staged change: the state before and after, and how to get there."""

    before: SonicState
    after: SonicState
    """Without FRR text if FRR does not change."""
    procedure: Procedure
    operations: tuple[Operation, ...]
    routes: frozenset[Path]
    """The paths that differ in FRR."""

    @property
    def is_nothing(self) -> bool:
        """Whether nothing has to change."""
        return not self.procedure.method and not self.procedure.has_routing

    def undone(self, found: SonicState) -> Iterator[str]:
        """Yield what the switch does not run although it reports the change as applied."""
        yield from tables.undone(self.operations, found.tables)
        if self.after.frr is not None:
            remaining = _routes(found.frr, self.after.frr)
            yield from (" ".join(path) for path in sorted(remaining & self.routes))


def intended(before: SonicState, after: SonicState, method: str, *, reloads_back: bool = False) -> Intended:
    operations = tuple(tables.operations(before.tables, after.tables))
    is_reload = method == "reload" and bool(operations)
    has_routing = after.frr is not None
    flapping = {one.place[1].partition("|")[0] for one in operations if one.place[0] in FLAPPING and len(one.place) > 1}
    procedure = Procedure(
        method=method if operations else "",
        has_routing=has_routing,
        had_routing=before.frr is not None and (has_routing or is_reload),
        reloads_back=is_reload or reloads_back,
        longest_s=RELOAD_S if is_reload else PATCH_S + 2 * round(patch_s(len(flapping))),
    )
    routes = _routes(before.frr, after.frr) if after.frr is not None else frozenset()
    return Intended(before, after, procedure, operations, routes)


def planned(before: SonicState, candidate: Candidate, version: str, secrets: SecretResolver) -> Intended:
    """Build the change that a plan's candidate makes, with secrets inserted."""
    rendered = tables.read(candidate.files.get(CONFIG_DB, "{}"))
    after = secrets.tree(tables.changed(before.tables, candidate.changes, rendered))
    text = secrets.text(candidate.files.get(FRR_CONF, ""))
    is_split = bool(text) and tables.routing_mode(after) in model.SPLIT_MODES
    # A reload starts FRR with its saved file, so that ours has to be loaded in any case.
    is_due = candidate.method == "reload" or any(change.path[0] == FRR_CONF for change in candidate.changes)
    frr = model.whole(before.frr or "", text, MODEL.ownership.on(candidate.files)) if is_split and is_due else None
    # The updater accepts some changes that it refuses to undo.
    running = MODEL.parse({name: text for name, text in before.files().items() if text is not None})
    undo = tuple(Change(change.path, change.intended, change.running, change.risk) for change in candidate.changes)
    situation = Situation(undo, apply(running, candidate.changes), running, version)
    reloads_back = strategy(situation).method == "reload"
    return intended(before, SonicState(after, frr), candidate.method, reloads_back=reloads_back)


def _routes(running: str | None, intended_text: str) -> frozenset[Path]:
    changes = compare(MODEL, {FRR_CONF: running}, {FRR_CONF: intended_text}).changes
    return frozenset(change.path for change in changes)
