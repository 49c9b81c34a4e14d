from dataclasses import replace
from pathlib import Path

import pytest

from netkit.facts import Snapshot
from netkit.facts.snapshot import Collective, Stream, Transfer, Trial
from netkit.intent.model import Thresholds
from netkit.judge import CheckContext
from netkit.judge.straggler import NicFinder
from netkit.judge.trial import place_of
from netkit.platforms.linux.acceptance import results as read
from tests.checks.judging import results, said, skipped
from tests.judge.scenes import fabric

BUILT = fabric(units=[{"unit": "1-2", "hosts": 4}])
GPU, OTHER = BUILT.hosts[:2]
NIC, FAR = GPU.nics[0], OTHER.nics[0]
CASES = Path(__file__).parent.parent / "facts" / "acceptance" / "cases"
LARGE = 8 * 2**30
"""Two NICs of 400 Gb/s carry 100 GB/s."""


def given(*trials: Trial, **limits: float) -> CheckContext:
    return CheckContext(
        BUILT, Snapshot(BUILT.name, 1.0, {}, trials=trials), Thresholds.model_validate(limits), names=frozenset()
    )


def collective(hosts: int, gbytes_s: float, test: str = "all_reduce_perf", size: int = LARGE) -> Trial:
    names = tuple(f"gpu{number:02}" for number in range(1, hosts + 1))
    rows = (Collective(1024, 0.1, 0.1, 0), Collective(size, gbytes_s, gbytes_s + 0.4, 0))
    return Trial(tool="nccl-tests", test=test, ends=names, ranks=2 * hosts, collectives=rows, out_of_bounds=0)


def transfer(gbps: float, test: str = "ib_write_bw", size: int = 65536, **more: object) -> Trial:
    whole = Trial(tool="perftest", test=test, ends=(NIC.address, FAR.address), transfers=(Transfer(size, gbps),))
    return replace(whole, **more)  # type: ignore[arg-type]


def latency(far: str, time_us: float) -> Trial:
    rows = (Transfer(2, typical_us=time_us), Transfer(8192, typical_us=9.0))
    return Trial(tool="perftest", test="ib_read_lat", ends=(NIC.address, far), transfers=rows)


def stream(dscp: int, gbps: float, at_s: float = 100.0, seconds: float = 10.0) -> Trial:
    rows = (Stream(dscp, gbps, seconds, "TCP"),)
    return Trial(tool="iperf3", test="iperf3", at_s=at_s, ends=(NIC.address, FAR.address), streams=rows)


def brief(found: list[tuple[str, str, str, str]]) -> list[tuple[str, str]]:
    return [(verdict, text) for verdict, _, _, text in found]


def test_without_results_nothing_is_judged_and_one_finding_reports_it() -> None:
    assert skipped(given(), "acceptance") == [("", "", "no results of acceptance runs: give files with --results")]


@pytest.mark.parametrize(
    ("gbytes_s", "verdict"), [(95.0, None), (90.0, None), (89.0, "warn"), (80.0, "warn"), (79.0, "fail")]
)
def test_the_largest_message_of_a_collective_is_compared_with_the_nics(gbytes_s: float, verdict: str | None) -> None:
    speed = f"{gbytes_s:.1f} GB/s of bus bandwidth, {gbytes_s:.0f} % of the 100 GB/s of its NICs"
    text = f"all_reduce_perf over 4 hosts: {speed}"
    wanted = [(verdict, text)] if verdict else []
    assert brief(said(given(collective(4, gbytes_s)), "acceptance.collectives")) == wanted


def test_collectives_other_than_rings_only_warn() -> None:
    found = said(given(collective(4, 30.0, "alltoall_perf")), "acceptance.collectives")
    assert [verdict for verdict, *_ in found] == ["warn"]


def test_a_single_rail_is_compared_with_one_nic() -> None:
    rail = replace(collective(4, 47.0), groups=2)
    assert said(given(rail), "acceptance.collectives") == []
    assert brief(said(given(replace(collective(4, 30.0), groups=2)), "acceptance.collectives"))[0][0] == "fail"


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        (collective(1, 95.0), "ran on one host only"),
        (collective(2, 95.0, size=2**20), "its largest message is too small to fill the links"),
        (collective(2, 130.0), "faster than its NICs (100 GB/s), so NVLink did it: set NCCL_ALGO=Ring"),
    ],
)
def test_runs_without_network_results_are_skipped(trial: Trial, reason: str) -> None:
    assert skipped(given(trial), "acceptance.collectives") == [("", "", f"all_reduce_perf: {reason}")]


def test_wrong_values_fail_at_any_speed() -> None:
    trial = replace(collective(2, 95.0), out_of_bounds=3)
    assert brief(said(given(trial), "acceptance.collectives")) == [("fail", "all_reduce_perf: 3 values came out wrong")]


def test_many_hosts_have_to_be_as_fast_as_few() -> None:
    runs = [collective(hosts, speed) for hosts, speed in ((2, 96.0), (4, 94.0), (8, 80.0), (16, 60.0))]
    assert brief(said(given(*runs), "acceptance.scaling")) == [
        ("fail", "all_reduce_perf: 60.0 GB/s over 16 hosts, 62 % of the 96.0 GB/s over 2"),
        ("warn", "all_reduce_perf: 80.0 GB/s over 8 hosts, 83 % of the 96.0 GB/s over 2"),
    ]
    assert results(given(*runs), "acceptance.scaling")["fabric"].examined == 3
    alone = skipped(given(runs[0], collective(4, 90.0, "all_gather_perf")), "acceptance.scaling")
    assert [text for _, _, text in alone] == [
        "all_gather_perf was run over 4 hosts only: nothing to compare",
        "all_reduce_perf was run over 2 hosts only: nothing to compare",
    ]


def test_the_nvlink_share_of_two_hosts_is_not_expected_of_many() -> None:
    assert said(given(collective(2, 130.0), collective(8, 92.0)), "acceptance.scaling") == []


@pytest.mark.parametrize(("gbps", "verdict"), [(392.3, None), (385.0, "warn"), (379.0, "fail")])
def test_a_transfer_is_compared_with_its_nic(gbps: float, verdict: str | None) -> None:
    text = f"ib_write_bw from gpu01:rail0 to gpu02:rail0: {gbps:.0f} of 400 Gb/s, {gbps / 4:.0f} %"
    wanted = [(verdict, "gpu01", "rail0", text)] if verdict else []
    assert said(given(transfer(gbps)), "acceptance.transfers") == wanted


def test_reads_only_warn_and_bidirectional_runs_carry_twice() -> None:
    assert brief(said(given(transfer(328.0, "ib_read_bw")), "acceptance.transfers"))[0][0] == "warn"
    assert said(given(transfer(780.0, is_both_ways=True)), "acceptance.transfers") == []
    assert skipped(given(transfer(9.0, size=64)), "acceptance.transfers") == [
        ("", "", "ib_write_bw from gpu01:rail0 to gpu02:rail0: messages of 64 bytes are too small to fill a link")
    ]


def test_ends_are_identified_by_host_and_device_too() -> None:
    trial = transfer(300.0, ends=(f"{GPU.name}.example", OTHER.name), nic=NIC.rdma)
    assert [found[:3] for found in said(given(trial), "acceptance.transfers")] == [("fail", "gpu01", "rail0")]
    stranger = transfer(300.0, ends=("pod-7", "pod-8"), nic="mlx5_77")
    assert said(given(stranger), "acceptance.transfers") == [
        ("fail", "", "", "ib_write_bw from pod-7 to pod-8: 300 of 400 Gb/s, 75 %")
    ]


def test_hosts_with_dots_in_their_names_are_identified_with_their_domain() -> None:
    built = fabric(units=[{"unit": 1, "hosts": 2, "host_names": {1: "RZ1.gpu01", 2: "RZ1.gpu02"}}])
    trial = transfer(300.0, ends=("RZ1.gpu01.example.com", "RZ1.gpu02"), nic=NIC.rdma)
    assert place_of(built, trial) == ("RZ1.gpu01", "rail0")
    assert place_of(built, replace(trial, nic=""), 1) == ("RZ1.gpu02", "")
    nics = [nic.address for host in built.hosts for nic in host.nics[:1]]
    assert list(NicFinder(built, [trial]).nics(trial)) == nics


def test_a_latency_is_compared_with_pairs_of_equal_distance() -> None:
    near = [host.nics[0].address for host in BUILT.hosts[1:4]]
    far = [host.nics[0].address for host in BUILT.hosts[4:8]]
    runs = [*(latency(one, 1.8) for one in near), *(latency(one, 4.1) for one in far[:3]), latency(far[3], 9.0)]
    assert said(given(*runs), "acceptance.rdma-latency") == [
        (
            "warn",
            "gpu01",
            "rail0",
            f"ib_read_lat from gpu01:rail0 to {BUILT.hosts[7].name}:rail0 across spines: 9.0 µs, usual are 4.1 µs",
        )
    ]
    assert skipped(given(*runs), "acceptance.rdma-latency") == [
        ("", "", "ib_read_lat: 3 runs same leaf are too few to derive a usual value")
    ]


@pytest.mark.parametrize(
    ("lossless", "other", "verdict"), [(350.0, 38.0, None), (330.0, 55.0, None), (300.0, 90.0, "fail")]
)
def test_under_load_the_lossless_class_keeps_its_share(lossless: float, other: float, verdict: str | None) -> None:
    percent, total = 100 * lossless / (lossless + other), lossless + other
    text = f"the lossless class had {percent:.0f} % of {total:.0f} Gb/s, by its weight 90 %"
    wanted = [(verdict, "gpu02", "rail0", text)] if verdict else []
    assert said(given(stream(26, lossless), stream(0, other)), "acceptance.shares") == wanted


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        (
            (stream(26, 5.0), stream(0, 5.0)),
            "streams that arrived together came to 10.0 of 400 Gb/s: too little to compete",
        ),
        ((stream(26, 390.0),), "streams that arrived together were of one class only"),
    ],
)
def test_streams_that_do_not_compete_are_not_judged(trials: tuple[Trial, ...], reason: str) -> None:
    assert skipped(given(*trials), "acceptance.shares") == [("gpu02", "rail0", reason)]


def test_sequential_streams_do_not_compete() -> None:
    found = skipped(given(stream(26, 390.0), stream(0, 390.0, at_s=110.0)), "acceptance.shares")
    assert [text for _, _, text in found] == ["streams that arrived together were of one class only"] * 2


def test_an_aborted_run_fails_with_its_output() -> None:
    trials = read((CASES / "perftest_failed.txt").read_text(encoding="utf-8"), "f.txt")
    assert isinstance(trials, tuple)
    found = said(given(*trials), "acceptance")
    text = "ib_write_bw from gpu01:rail1 to gpu02:rail1 failed: Couldn't connect to 10.128.0.3:18515"
    assert found[0] == ("fail", "gpu01", "rail1", text)
    assert [(verdict, device, place) for verdict, device, place, _ in found] == [
        ("fail", "gpu01", "rail1"),
        ("fail", "gpu02", ""),
        ("fail", "gpu02", "rail1"),
    ]


def test_a_real_table_is_judged_completely() -> None:
    trials = read((CASES / "nccl_two_nodes.txt").read_text(encoding="utf-8"))
    assert isinstance(trials, tuple)
    assert said(given(*trials), "acceptance") == []
    assert results(given(*trials), "acceptance.collectives")["fabric"].examined == 1


def test_thresholds_are_those_of_the_intent() -> None:
    runs = (collective(2, 60.0), collective(4, 30.0), transfer(200.0))
    lenient = {
        "busbw_warn_percent": 30,
        "busbw_fail_percent": 20,
        "scaling_warn_percent": 50,
        "straggler_percent": 40,
        "line_rate_warn_percent": 50,
    }
    assert said(given(*runs, **lenient), "acceptance") == []
