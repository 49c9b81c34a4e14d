"""Acceptance: nccl-tests, perftest and iperf3 reach the bandwidth and latency of the design."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from netkit.design import Fabric
from netkit.facts.snapshot import Collective, Stream, Trial
from netkit.judge import PASSED, CheckContext, Finding, fabric_check, fail, skip, warn
from netkit.judge.trial import contests, distance, line_gbps, place_of, slowest_gbps

COLLECTIVE, TRANSFER, LOAD = "nccl-tests", "perftest", "iperf3"
LEAST_BYTES = 2**30
"""Of a collective; smaller messages measure latency."""
LEAST_TRANSFER_BYTES = 2**15
FEWEST = 4
"""Runs over one distance, to say what is usual."""
RING = ("", "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
"""Collectives that reach the rate of the network; for others no number is known to be too low."""
NONE = "no results of acceptance runs: give files with --results"
SLOW_RAIL = "find the slow rail with NCCL_TESTS_SPLIT='MOD 8' or ib_write_bw along each rail; netkit check"


@dataclass(frozen=True)
class Measured:
    """The largest message of a collective over several hosts, and what the NICs it used can carry."""

    trial: Trial
    row: Collective
    gbytes_s: float
    line_gbytes_s: float

    @property
    def hosts(self) -> int:
        return len(self.trial.ends)


@fabric_check(layer="application")
def completed(context: CheckContext) -> Iterator[Finding]:
    """Every acceptance run completed.

    A run that breaks off has no bandwidth, but often reveals more about the network than a slow one: a rail that is not
    reached, a GID of the wrong type, a queue pair that gave up. Read the last lines of the tool, then run
    `netkit check routes host.rdma`.
    """
    if not context.snapshot.trials:
        yield skip("", NONE)
    for trial in context.snapshot.trials:
        if trial.failure:
            is_wide = trial.tool == COLLECTIVE
            device, place = ("", "") if is_wide else place_of(context.fabric, trial)
            text = f"{_title(context, trial)} failed: {trial.failure}"
            cause, remedy = trial.test if is_wide else "", "run it by hand; netkit check probe links host"
            yield fail(place, text, remedy, device=device, cause=cause, **_about(trial))
        else:
            yield PASSED


@fabric_check(layer="application")
def collectives(context: CheckContext) -> Iterator[Finding]:
    """Collectives over several hosts are as fast as the NICs of a host, and their results are right.

    The largest message of each run counts, and the slower of in-place and out-of-place. A result above the rate of the
    NICs comes from NVLink SHARP or trees, and does not measure the network: run it with NCCL_ALGO=Ring.
    """
    for trial in _of(context, COLLECTIVE):
        wrong = max([trial.out_of_bounds or 0, *(row.wrong or 0 for row in trial.collectives)])
        if wrong:
            yield fail(
                "",
                f"{_title(context, trial)}: {wrong} values came out wrong",
                "test the GPUs and NICs",
                **_about(trial),
            )
        found = _measured(context.fabric, trial)
        if isinstance(found, str):
            yield skip("", f"{_title(context, trial)}: {found}")
        elif found.gbytes_s > found.line_gbytes_s:
            text = f"faster than its NICs ({found.line_gbytes_s:.0f} GB/s), so NVLink did it: set NCCL_ALGO=Ring"
            yield skip("", f"{_title(context, trial)}: {text}")
        else:
            yield _judged(context, found)


def _judged(context: CheckContext, found: Measured) -> Finding:
    limits, percent = context.limits, 100 * found.gbytes_s / found.line_gbytes_s
    if percent >= limits.busbw_warn_percent:
        return PASSED
    is_slow = percent < limits.busbw_fail_percent and found.trial.test in RING
    text = (
        f"{_title(context, found.trial)} over {found.hosts} hosts: {found.gbytes_s:.1f} GB/s of bus bandwidth, "
        f"{percent:.0f} % of the {found.line_gbytes_s:.0f} GB/s of its NICs"
    )
    return (fail if is_slow else warn)(
        "", text, SLOW_RAIL, cause=f"{found.trial.test} bandwidth", **_about(found.trial)
    )


@fabric_check(layer="application")
def scaling(context: CheckContext) -> Iterator[Finding]:
    """Collectives over many hosts are about as fast as over few.

    Runs of one test and message size are compared with the one over the fewest hosts. If bandwidth falls with the
    number of hosts, suspect the spines. See `netkit check load.balance load.adaptive-routing`.
    """
    groups: dict[tuple[str, int, int], dict[int, Measured]] = {}
    for trial in _of(context, COLLECTIVE):
        found = _measured(context.fabric, trial)
        if not isinstance(found, str):
            key = trial.test, found.row.size_bytes, trial.ranks // max(1, found.hosts * trial.groups)
            groups.setdefault(key, {}).setdefault(found.hosts, found)
    for (test, _, _), runs in groups.items():
        few, *many = (runs[hosts] for hosts in sorted(runs))
        if not many:
            yield skip("", f"{test or COLLECTIVE} was run over {few.hosts} hosts only: nothing to compare")
        yield from (_scaled(context, few, found) for found in many)


def _scaled(context: CheckContext, few: Measured, many: Measured) -> Finding:
    limits, usual = context.limits, min(few.gbytes_s, few.line_gbytes_s)
    percent = 100 * many.gbytes_s / usual if usual else 100.0
    if percent >= limits.scaling_warn_percent:
        return PASSED
    text = (
        f"{_title(context, many.trial)}: {many.gbytes_s:.1f} GB/s over {many.hosts} hosts, "
        f"{percent:.0f} % of the {usual:.1f} GB/s over {few.hosts}"
    )
    verdict = fail if percent < limits.scaling_fail_percent else warn
    return verdict("", text, "netkit check load links routes", cause=f"{many.trial.test} scaling", **_about(many.trial))


@fabric_check(layer="application")
def transfers(context: CheckContext) -> Iterator[Finding]:
    """RDMA between two NICs is as fast as the NIC.

    The largest message of each run counts, from 32 KiB on. Reads are slower than writes on many hosts, so they only
    warn. A slow pair is a slow NIC (PCIe, relaxed ordering, ACS) or a slow link (FEC, pauses): see for both
    ends `netkit check host optics pfc`.
    """
    for trial in _of(context, TRANSFER):
        rows = [row for row in trial.transfers if row.mean_gbps is not None]
        if not rows or not trial.test.endswith("_bw"):
            continue
        row, rate_gbps = rows[-1], line_gbps(context.fabric, trial) * (2 if trial.is_both_ways else 1)
        percent = 100 * (row.mean_gbps or 0.0) / rate_gbps
        if row.size_bytes < LEAST_TRANSFER_BYTES:
            yield skip("", f"{_title(context, trial)}: messages of {row.size_bytes} bytes are too small to fill a link")
        elif percent >= context.limits.line_rate_warn_percent:
            yield PASSED
        else:
            device, place = place_of(context.fabric, trial)
            is_slow = percent < context.limits.line_rate_fail_percent and "read" not in trial.test
            text = f"{_title(context, trial)}: {row.mean_gbps:.0f} of {rate_gbps:.0f} Gb/s, {percent:.0f} %"
            remedy = "netkit check host links pfc for both ends"
            yield (fail if is_slow else warn)(place, text, remedy, device=device, **_about(trial))


@fabric_check(layer="application")
def rdma_latency(context: CheckContext) -> Iterator[Finding]:
    """No RDMA latency is much above that of other pairs as far apart.

    A slower pair takes a detour, or passes a queue that never empties: see `netkit check routes pfc`. Pairs with
    unknown ends are compared with each other.
    """
    groups: dict[tuple[str, str, int], list[tuple[Trial, float]]] = {}
    for trial in _of(context, TRANSFER):
        times = [
            (row.size_bytes, row.typical_us or row.mean_us) for row in trial.transfers if trial.test.endswith("_lat")
        ]
        size, time_us = min(times, default=(0, None))
        if time_us is not None:
            groups.setdefault((trial.test, distance(context.fabric, trial), size), []).append((trial, time_us))
    for (test, apart, _), runs in groups.items():
        if len(runs) < FEWEST:
            yield skip("", f"{test}: {len(runs)} runs {apart} are too few to say what is usual")
            continue
        usual_us = median(time_us for _, time_us in runs)
        for trial, time_us in runs:
            if time_us - usual_us > context.limits.rdma_outlier_us:
                device, place = place_of(context.fabric, trial)
                text = f"{_title(context, trial)} {apart}: {time_us:.1f} µs, usual are {usual_us:.1f} µs"
                yield warn(place, text, "netkit check routes load pfc", device=device, **_about(trial))
            else:
                yield PASSED


@fabric_check(layer="application")
def shares(context: CheckContext) -> Iterator[Finding]:
    """Under load the lossless class keeps its share of a NIC.

    Streams of different classes to one NIC at one time are compared with the weights of the design. Below a minimum of
    load nothing competes, and nothing is judged. A share that is too small means that a queue on the way has another
    weight, or that the packets do not carry the mark they should: see `netkit check qos`.
    """
    for runs in contests(_of(context, LOAD)):
        yield _shared(context, runs)


def _shared(context: CheckContext, runs: Sequence[tuple[Trial, Stream]]) -> Finding:
    gbps: dict[int, float] = {}
    for _, stream in runs:
        priority = context.fabric.lossless.dscp_to_priority[stream.dscp or 0]
        gbps[priority] = gbps.get(priority, 0.0) + stream.gbps
    trial, lossless = runs[0][0], context.fabric.lossless.roce.priority
    device, place = place_of(context.fabric, trial, end=1)
    total, rate_gbps, wanted = sum(gbps.values()), line_gbps(context.fabric, trial), _weight(context, gbps)
    if lossless not in gbps or len(gbps) < 2:
        return skip(place, "streams that arrived together were of one class only", device=device)
    if 100 * total < context.limits.load_minimum_percent * rate_gbps:
        text = f"streams that arrived together came to {total:.1f} of {rate_gbps} Gb/s: too little to compete"
        return skip(place, text, device=device)
    percent = 100 * gbps[lossless] / total
    if percent >= wanted - context.limits.share_margin_percent:
        return PASSED
    text = f"the lossless class had {percent:.0f} % of {total:.0f} Gb/s, by its weight {wanted:.0f} %"
    return fail(place, text, "netkit check qos for every hop on the way", device=device, **_about(trial))


def _weight(context: CheckContext, priorities: Mapping[int, float]) -> float:
    """Return the share of the lossless class by its weight among the classes that are there."""
    profile = context.fabric.lossless
    weights = {profile.roce.priority: profile.roce.weight, profile.best_effort.priority: profile.best_effort.weight}
    total = sum(weights.get(priority, 0) for priority in priorities)
    return 100 * profile.roce.weight / total if total else 100.0


def _of(context: CheckContext, tool: str) -> Iterator[Trial]:
    yield from (trial for trial in context.snapshot.trials if trial.tool == tool and not trial.failure)


def _measured(fabric: Fabric, trial: Trial) -> Measured | str:
    """Return the largest message of a run, or why it does not measure the network."""
    rows = [row for row in trial.collectives if row.bus_gbytes_s is not None]
    if len(trial.ends) < 2:
        return "ran on one host only"
    if not rows or rows[-1].size_bytes < LEAST_BYTES:
        return "its largest message is too small to fill the links"
    used = max(1, trial.ranks // (len(trial.ends) * trial.groups)) if trial.ranks else len(fabric.rails)
    line = min(used, len(fabric.rails)) * slowest_gbps(fabric) / 8
    return Measured(trial, rows[-1], rows[-1].bus_gbytes_s or 0.0, line)


def _title(context: CheckContext, trial: Trial) -> str:
    name = trial.test or trial.tool
    if trial.tool == COLLECTIVE or len(trial.ends) != 2:
        return f"{name} on {trial.nic}" if trial.nic else name
    near, far = (":".join(filter(None, place_of(context.fabric, trial, end))) or trial.ends[end] for end in (0, 1))
    return f"{name} from {near} to {far}"


def _about(trial: Trial) -> dict[str, str]:
    """Return where a result comes from: the tool, its hosts, and when it ran."""
    when = "unknown" if trial.at_s is None else datetime.fromtimestamp(trial.at_s, UTC).isoformat(" ", "seconds")
    about = {"tool": f"{trial.tool} {trial.version}".strip(), "hosts": ", ".join(trial.ends[:8]), "at": when}
    return {name: text for name, text in {**about, "file": trial.file}.items() if text}
