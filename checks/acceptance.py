"""Acceptance: nccl-tests, perftest and iperf3 reach the bandwidth and latency of the design."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from statistics import median

from netkit.design import Host, Nic
from netkit.facts.snapshot import Stream, Trial
from netkit.judge import PASSED, CheckContext, Finding, fabric_check, fail, skip, warn
from netkit.judge.straggler import NicFinder, Stragglers, TrialSpeed, locate, speeds
from netkit.judge.trial import (
    COLLECTIVE,
    LEAST_TRANSFER_BYTES,
    LOAD,
    RING,
    TRANSFER,
    CollectiveRate,
    contests,
    distance,
    line_gbps,
    measured,
    place_of,
)

FEWEST = 4
"""The fewest runs over one distance from which a usual value is derived."""
NONE = "no results of acceptance runs: give files with --results"
SLOW_RAIL = "see acceptance.stragglers; if it names none, measure with netkit acceptance run, or emit and run a job"
SLOW_LINK = "netkit check host optics links pfc for both ends of its cable; then PCIe width, ACS and the GPU next to it"
SLOW_HOST = "netkit check host; then IOMMU, ACS, CPU governor and NIC firmware"
SLOW_PATH = "netkit check load routes optics for the uplinks of both leaves"
SLOW_FOREIGN = "give the node back for another, or report it to the operator of its fabric; then measure again"
UNSETTLED = "measure again with netkit acceptance run --tool perftest, which runs every NIC with two others"
MOST_NAMED = 8


@fabric_check(layer="application", reads=[])
def completed(context: CheckContext) -> Iterator[Finding]:
    """Every acceptance run completed.

    A run that breaks off has no bandwidth, but often reveals more about the network than a slow one: an unreachable
    rail, a GID of the wrong type, a queue pair that gave up. Read the last lines of the tool, then run `netkit check
    routes host.rdma`.
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


@fabric_check(layer="application", reads=[])
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
        found = measured(context.fabric, trial)
        if isinstance(found, str):
            yield skip("", f"{_title(context, trial)}: {found}")
        elif found.gbytes_s > found.line_gbytes_s:
            text = f"faster than its NICs ({found.line_gbytes_s:.0f} GB/s), so NVLink did it: set NCCL_ALGO=Ring"
            yield skip("", f"{_title(context, trial)}: {text}")
        else:
            yield _judged(context, found)


def _judged(context: CheckContext, found: CollectiveRate) -> Finding:
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


@fabric_check(layer="application", reads=[])
def scaling(context: CheckContext) -> Iterator[Finding]:
    """Collectives over many hosts are about as fast as over few.

    Runs of one test and message size are compared with the one over the fewest hosts; of several over as many hosts the
    fastest counts, and `acceptance.stragglers` judges the others. If bandwidth falls with the number of hosts, suspect
    the spines. See `netkit check load.balance load.adaptive-routing`.
    """
    groups: dict[tuple[str, int, int], dict[int, CollectiveRate]] = {}
    for trial in _of(context, COLLECTIVE):
        found = measured(context.fabric, trial)
        if not isinstance(found, str):
            key = trial.test, found.row.size_bytes, trial.ranks // max(1, found.hosts * trial.groups)
            runs = groups.setdefault(key, {})
            runs[found.hosts] = max(runs.get(found.hosts, found), found, key=lambda run: run.gbytes_s)
    for (test, _, _), runs in groups.items():
        few, *many = (runs[hosts] for hosts in sorted(runs))
        if not many:
            yield skip("", f"{test or COLLECTIVE} was run over {few.hosts} hosts only: nothing to compare")
        yield from (_scaled(context, few, found) for found in many)


def _scaled(context: CheckContext, few: CollectiveRate, many: CollectiveRate) -> Finding:
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


@fabric_check(layer="application", reads=[])
def stragglers(context: CheckContext) -> Iterator[Finding]:
    """No NIC slows down the runs that it takes part in.

    A fast run clears every NIC it used; a slow one contains a slow NIC. Runs over halves of the hosts on each rail, and
    over pairs of hosts, identify the node, rail and NIC, and by the design the port of the leaf. If several NICs are
    possible, the finding lists them. For hosts that are not in the design, as on GKE and Vertex AI, the finding has the
    node and device that the job prints. If two hosts are slow only with each other, the path between their leaves is
    slow. A run that fails counts as slow.
    """
    runs = tuple(speeds(context.fabric, context.snapshot.trials, context.limits))
    found, finder = locate(runs), NicFinder(context.fabric, context.snapshot.trials)
    yield from (PASSED for run in runs if not run.is_slow)
    yield from _slow_nics(context, found)
    yield from _slow_foreign(found, finder)
    for suspects in found.unsettled:
        hosts = {finder.places[one][0].name if one in finder.places else "" for one in suspects}
        names = _listed(finder, suspects)
        text = f"one or more of {len(suspects)} NICs are slow, and the runs cannot separate them: {names}"
        yield fail("", text, UNSETTLED, device=hosts.pop() if len(hosts) == 1 else "", cause="stragglers")
    yield from (_slow_path(finder, run) for run in found.paths)
    for address in sorted(found.hidden):
        place, device = address, ""
        if address in finder.places:
            place, device = finder.places[address][1].interface, finder.places[address][0].name
        yield skip(place, "ran only together with slow NICs: repair those, and measure again", device=device)


def _slow_nics(context: CheckContext, found: Stragglers) -> Iterator[Finding]:
    """Yield a finding for each slow NIC, or one for a host whose NICs are all slow."""
    for host in context.fabric.hosts:
        runs = {nic: found.slow[nic.address] for nic in host.nics if nic.address in found.slow}
        if len(runs) == len(host.nics) > 1:
            text = f"all {len(runs)} rail NICs of {host.name} are slow: {_slowness(chain(*runs.values()))}"
            yield fail("", text, SLOW_HOST, device=host.name)
            continue
        for nic, slow in runs.items():
            about = f"{host.name}:{nic.interface} (rail {nic.rail}, {nic.rdma}) is slow"
            text = f"{about}: {_slowness(slow)}; its link ends at {nic.leaf} {nic.leaf_port}"
            yield fail(nic.interface, text, SLOW_LINK, device=host.name)


def _slow_foreign(found: Stragglers, finder: NicFinder) -> Iterator[Finding]:
    """Yield a finding for each slow NIC of a host that no design has, as in a cloud."""
    for name, slow in found.slow.items():
        if name not in finder.places:
            host, _, device = name.rpartition(":")
            text = f"{device} of {host} is slow: {_slowness(slow)}; no design has this host, nor the port at its link"
            yield fail(name, text, SLOW_FOREIGN)


def _slow_path(finder: NicFinder, run: TrialSpeed) -> Finding:
    leaves = sorted({finder.places[address][1].leaf for address in run.nics if address in finder.places})
    where = f"the path between {' and '.join(leaves)}" if leaves else "the path between them, which no design has"
    text = (
        f"{' and '.join(run.trial.ends)}: {run.percent:.0f} % of line rate with each other, "
        f"and each is fast with others: {where}"
    )
    if not leaves:
        return warn("", text, SLOW_FOREIGN)
    return warn("", text, SLOW_PATH, cause=f"path {' '.join(leaves)}", touches=leaves)


def _slowness(with_it: Iterable[TrialSpeed]) -> str:
    runs = set(with_it)
    best = max(runs, key=lambda run: run.percent)
    count = f"{len(runs)} runs" if len(runs) > 1 else "a run"
    return f"{best.percent:.0f} % of line rate at best in {count} with it, {best.usual:.0f} % without"


def _listed(finder: NicFinder, nics: Iterable[str]) -> str:
    names = sorted(_named(*finder.places[one]) if one in finder.places else one for one in nics)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _named(host: Host, nic: Nic) -> str:
    return f"{host.name}:{nic.interface} ({nic.leaf} {nic.leaf_port})"


@fabric_check(layer="application", reads=[])
def transfers(context: CheckContext) -> Iterator[Finding]:
    """RDMA between two NICs is as fast as the NIC.

    The largest message of each run counts, from 32 KiB on. Reads are slower than writes on many hosts, so they only
    warn. A slow pair has a slow NIC (PCIe, relaxed ordering, ACS) or a slow link (FEC, pauses): run
    `netkit check host optics pfc` for both ends.
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


@fabric_check(layer="application", reads=[])
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
            yield skip("", f"{test}: {len(runs)} runs {apart} are too few to derive a usual value")
            continue
        usual_us = median(time_us for _, time_us in runs)
        for trial, time_us in runs:
            if time_us - usual_us > context.limits.rdma_outlier_us:
                device, place = place_of(context.fabric, trial)
                text = f"{_title(context, trial)} {apart}: {time_us:.1f} µs, usual are {usual_us:.1f} µs"
                yield warn(place, text, "netkit check routes load pfc", device=device, **_about(trial))
            else:
                yield PASSED


@fabric_check(layer="application", reads=[])
def shares(context: CheckContext) -> Iterator[Finding]:
    """Under load the lossless class keeps its share of a NIC.

    Streams of different classes to one NIC at one time are compared with the weights of the design. Below a minimum
    load the streams do not compete, and are not judged. If a share is too small, a queue on the path has another
    weight, or the packets have the wrong DSCP: see `netkit check qos`.
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
    return fail(place, text, "netkit check qos for every hop on the path", device=device, **_about(trial))


def _weight(context: CheckContext, priorities: Mapping[int, float]) -> float:
    """The share of the lossless class by its weight among the classes that are there."""
    profile = context.fabric.lossless
    weights = {profile.roce.priority: profile.roce.weight, profile.best_effort.priority: profile.best_effort.weight}
    total = sum(weights.get(priority, 0) for priority in priorities)
    return 100 * profile.roce.weight / total if total else 100.0


def _of(context: CheckContext, tool: str) -> Iterator[Trial]:
    yield from (trial for trial in context.snapshot.trials if trial.tool == tool and not trial.failure)


def _title(context: CheckContext, trial: Trial) -> str:
    name = trial.test or trial.tool
    if trial.tool == COLLECTIVE or len(trial.ends) != 2:
        return f"{name} on {trial.nic}" if trial.nic else name
    near, far = (":".join(filter(None, place_of(context.fabric, trial, end))) or trial.ends[end] for end in (0, 1))
    return f"{name} from {near} to {far}"


def _about(trial: Trial) -> dict[str, str]:
    """Where a result comes from: the tool, its hosts, and when it ran."""
    when = "unknown" if trial.at_s is None else datetime.fromtimestamp(trial.at_s, UTC).isoformat(" ", "seconds")
    about = {"tool": f"{trial.tool} {trial.version}".strip(), "hosts": ", ".join(trial.ends[:8]), "at": when}
    return {name: text for name, text in {**about, "file": trial.file}.items() if text}
