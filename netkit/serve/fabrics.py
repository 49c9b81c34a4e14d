"""Every fabric that the server checks or that its store knows, worst first."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from netkit.errors import StoreError
from netkit.report.page.table import cut, name
from netkit.report.page.view import HealthState
from netkit.serve.fleet_state import FleetState
from netkit.serve.now import CurrentState, ServedFabric
from netkit.serve.record import Records, StoreReader
from netkit.store import Source

NOWHERE = Path("/nonexistent")
"""Where there are no reports."""
SEVERITY = list(HealthState)


@dataclass(slots=True)
class Fabrics:
    """The fabrics a server knows."""

    own: Sequence[ServedFabric]
    """Those it checks itself; at least one."""
    store: StoreReader
    fleet: Callable[[], FleetState] | None = None
    """The sites that read devices for the server; None without a fleet."""
    _others: dict[Source, ServedFabric] = field(default_factory=dict)

    def every(self) -> tuple[ServedFabric, ...]:
        """All fabrics: its own, and those in the store but for labs."""
        own = {one.records.source for one in self.own}
        try:
            with self.store.open() as store:
                found = [one for one in store.sources() if one not in own and not one.lab]
        except StoreError:
            found = list(self._others)  # each fabric reports the problem of the store
        self._others = {one: self._others.get(one) or _elsewhere(one, self.store) for one in found}
        return (*self.own, *self._others.values())

    def find(self, key: str) -> ServedFabric | None:
        """The fabric that an address names."""
        return next((one for one in self.every() if key_of(one.records.source) == key), None)

    def worst_first(self, now_s: float) -> list[dict[str, Any]]:
        """Describe every fabric in a line, the worst first."""
        return sorted((_described(one, now_s) for one in self.every()), key=_badness)


def key_of(source: Source) -> str:
    """The name of a fabric in addresses."""
    return source.fabric + (f"+{source.lab}" if source.lab else "") + (f"@{source.site}" if source.site else "")


def base_of(source: Source) -> str:
    """The address of the page of a fabric."""
    return f"/fabrics/{quote(key_of(source), safe='@+')}"


def _described(served: ServedFabric, now_s: float) -> dict[str, Any]:
    look = CurrentState.of(served, now_s)
    return {
        "fabric": name(served.fabric),
        "lab": name(served.lab),
        "site": name(served.site),
        "key": key_of(served.records.source),
        "page": served.base or "/",
        "api": served.api,
        "is_scheduled": served.own is not None,
        "is_part": served.own is not None and served.own.is_part,
        "state": look.state.value,
        "text": look.text,
        "counts": dict(look.status.open_now.counts),
        "checked_s": None if look.whole is None else look.whole.taken_s,
        "every_s": look.every_s,
        "is_overdue": look.is_stale,
        "trouble": "" if look.store_error is None else cut(str(look.store_error)),
    }


def _badness(one: dict[str, Any]) -> tuple[Any, ...]:
    counts = one["counts"]
    numbers = [-counts[word] for word in ("error", "fail", "warn", "unreached")]
    return (-SEVERITY.index(HealthState(one["state"])), not one["is_overdue"], *numbers, one["fabric"], one["key"])


def _elsewhere(source: Source, store: StoreReader) -> ServedFabric:
    """A fabric that another server checks, as far as the store knows it."""
    return ServedFabric(Records(store, source, NOWHERE), base=base_of(source))


def described(fabrics: Fabrics) -> dict[str, Any]:
    """The fabrics for programs."""
    return {"items": fabrics.worst_first(time.time())}
