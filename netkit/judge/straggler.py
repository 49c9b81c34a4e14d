"""Slow NICs by group testing: a run that is fast clears every NIC it used; a slow one holds a NIC that is slow.

The two directions of a NIC are cleared separately: one that is slow to receive may send at line rate.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.design import Fabric, Host, Nic
from netkit.facts.device import without_domain
from netkit.facts.snapshot import Trial
from netkit.intent.model import Thresholds
from netkit.judge.trial import COLLECTIVE, LEAST_TRANSFER_BYTES, RING, TRANSFER, line_gbps, measured

Place = tuple[Host, Nic]
SENDS, RECEIVES = "sends", "receives"


@dataclass(frozen=True, slots=True)
class TrialSpeed:
    """The bandwidth of a run, and the addresses of the NICs that took part."""

    trial: Trial
    nics: tuple[str, ...]
    percent: float
    """Of the line rate."""
    limit: float
    """In percent; below it a run is slow."""
    usual: float
    """The fastest run of its kind, in percent."""

    @property
    def is_slow(self) -> bool:
        return self.percent < self.limit

    @property
    def directions(self) -> frozenset[tuple[str, str]]:
        """The NICs and the directions in which they were used; of a transfer in one direction each has one."""
        if self.trial.tool == TRANSFER and not self.trial.is_both_ways:
            near, far = reversed(self.nics) if "read" in self.trial.test else self.nics
            return frozenset({(near, SENDS), (far, RECEIVES)})
        return frozenset((nic, direction) for nic in self.nics for direction in (SENDS, RECEIVES))


@dataclass(frozen=True, slots=True)
class Stragglers:
    """What runs show about the NICs that took part; all by address."""

    slow: Mapping[str, tuple[TrialSpeed, ...]]
    """NICs that must be slow, since every other one of some slow run was fast elsewhere; with their slow runs."""
    unsettled: tuple[frozenset[str], ...]
    """Sets of NICs, at least one of which is slow; the runs cannot separate them."""
    hidden: frozenset[str]
    """NICs that ran only together with slow ones."""
    paths: tuple[TrialSpeed, ...]
    """Slow runs of two hosts whose NICs are all fast elsewhere."""


def locate(runs: Sequence[TrialSpeed]) -> Stragglers:
    """Narrow slow runs down to NICs."""
    cleared = frozenset[tuple[str, str]]().union(*(run.directions for run in runs if not run.is_slow))
    slow = [(run, frozenset(nic for nic, _ in run.directions - cleared)) for run in runs if run.is_slow]
    proven = frozenset(nic for _, suspects in slow for nic in suspects if len(suspects) == 1)
    unsettled = tuple(_joined(suspects for _, suspects in slow if suspects and not suspects & proven))
    return Stragglers(
        {nic: tuple(run for run, _ in slow if nic in run.nics) for nic in sorted(proven)},
        unsettled,
        frozenset[str]().union(*(suspects for _, suspects in slow)).difference(proven, *unsettled),
        tuple(run for run, suspects in slow if not suspects and len(run.trial.ends) == 2 and not run.trial.failure),
    )


def _joined(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Unite sets that overlap."""
    found: list[frozenset[str]] = []
    for one in sets:
        apart = [other for other in found if not other & one]
        found = [*apart, one.union(*(other for other in found if other & one))]
    return sorted(found, key=sorted)


def speeds(fabric: Fabric, trials: Iterable[Trial], limits: Thresholds) -> Iterator[TrialSpeed]:
    """Yield the runs that can be compared: collectives and RDMA transfers, of which the design knows all NICs."""
    trials = tuple(trials)
    finder = NicFinder(fabric, trials)
    kinds: dict[tuple[object, ...], list[tuple[Trial, tuple[str, ...], float]]] = {}
    for trial in trials:
        nics = finder.nics(trial)
        percent = _percent(fabric, trial) if nics else None
        if percent is not None:
            width = len(nics) // len(trial.ends)
            kinds.setdefault((trial.tool, trial.test, width), []).append((trial, nics, percent))
    for runs in kinds.values():
        usual = min(100.0, max(percent for *_, percent in runs))
        limit = max(usual * limits.straggler_percent / 100, _least_percent(runs[0][0], limits))
        if usual:  # of what never completed nothing is known
            yield from (TrialSpeed(trial, nics, percent, limit, usual) for trial, nics, percent in runs)


def _percent(fabric: Fabric, trial: Trial) -> float | None:
    """The bandwidth of a run in percent of the line rate; a run that failed has none."""
    if trial.failure:
        return 0.0
    if trial.tool == COLLECTIVE and trial.test in RING:
        found = measured(fabric, trial)
        return None if isinstance(found, str) else 100 * found.gbytes_s / found.line_gbytes_s
    if trial.tool == TRANSFER and trial.test.endswith("_bw"):
        rows = [row for row in trial.transfers if row.mean_gbps is not None]
        if rows and rows[-1].size_bytes >= LEAST_TRANSFER_BYTES:
            rate_gbps = line_gbps(fabric, trial) * (2 if trial.is_both_ways else 1)
            return 100 * (rows[-1].mean_gbps or 0.0) / rate_gbps
    return None


def _least_percent(trial: Trial, limits: Thresholds) -> float:
    """What is slow in any fabric; of RDMA reads no number is known."""
    if trial.tool == COLLECTIVE:
        return min(limits.busbw_fail_percent, limits.busbw_warn_percent)
    return 0.0 if "read" in trial.test else min(limits.line_rate_fail_percent, limits.line_rate_warn_percent)


class NicFinder:
    """The NICs that took part in runs, by address; those of hosts that no design has by `host:device`."""

    def __init__(self, fabric: Fabric, trials: Iterable[Trial]) -> None:
        self._rails = len(fabric.rails)
        self._hosts = {host.name: host for host in fabric.hosts}
        self.places: Mapping[str, Place] = {nic.address: (host, nic) for host in fabric.hosts for nic in host.nics}
        # Jobs in a cloud name the device of each rail in the runs that use it alone.
        foreign = (one for one in trials if one.tool == COLLECTIVE and one.nic and self._is_foreign(one))
        self._devices = tuple(dict.fromkeys(one.nic for one in foreign))

    def _host(self, end: str) -> Host | None:
        return self._hosts.get(without_domain(end, self._hosts.get))

    def _is_foreign(self, trial: Trial) -> bool:
        return len(trial.ends) > 1 and not any(end in self.places or self._host(end) for end in trial.ends)

    def nics(self, trial: Trial) -> tuple[str, ...]:
        """Addresses, of a transfer that of the near end first; none if not all of them are known."""
        if trial.tool == TRANSFER and len(trial.ends) != 2:
            return ()
        if trial.tool == TRANSFER and all(end in self.places for end in trial.ends):
            return trial.ends
        if trial.tool == COLLECTIVE and self._is_foreign(trial):
            return self._foreign(trial)
        hosts = [self._host(end) for end in trial.ends]
        known = [host for host in hosts if host is not None]
        if len(known) < max(2, len(hosts)):
            return ()
        if not trial.nic:
            is_wide = not trial.ranks or trial.ranks >= len(known) * self._rails
            uses_all = trial.tool == COLLECTIVE and is_wide
            return tuple(nic.address for host in known for nic in host.nics) if uses_all else ()
        rail = next((nic.rail for nic in known[0].nics if trial.nic in {nic.rdma, nic.interface}), None)
        found = tuple(nic.address for host in known for nic in host.nics if nic.rail == rail)
        return found if len(found) == len(known) else ()

    def _foreign(self, trial: Trial) -> tuple[str, ...]:
        if trial.nic:
            return tuple(f"{end}:{trial.nic}" for end in trial.ends)
        is_wide = not trial.ranks or trial.ranks >= len(trial.ends) * len(self._devices)
        return tuple(f"{end}:{device}" for end in trial.ends for device in self._devices) if is_wide else ()
