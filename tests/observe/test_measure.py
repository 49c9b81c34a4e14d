"""Acceptance runs on hosts that answer from memory: which run where, and what is left after a failure."""

import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from netkit.errors import AccessError, Problem
from netkit.facts.snapshot import Trial
from netkit.observe.measure import Bench
from netkit.observe.trial_plan import TOOLS, trial_plan
from netkit.platforms.linux.acceptance import NAMES, programs, results
from netkit.platforms.linux.acceptance import TOOLS as FIND_TOOLS
from netkit.platforms.view import Reply
from tests.judge.scenes import fabric

BUILT = fabric(units=[{"unit": "1-2", "hosts": 4}])
NAMES_OF_HOSTS = [host.name for host in BUILT.hosts]
ALL = {name: frozenset(NAMES) for name in NAMES_OF_HOSTS}
WRITE = """                    RDMA_Write BW Test
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             392.38             392.34               0.748336
"""


class Answering:
    """A host that runs every shell line up to the measurement itself."""

    def __init__(self, name: str, failure: str = "") -> None:
        self.name, self.failure = name, failure
        self.asked: list[str] = []
        self.is_open = False

    def open(self) -> None:
        if self.failure:
            raise AccessError(Problem(f"{self.name}: {self.failure}"))
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        self.asked += commands
        return tuple(self._reply(command) for command in commands)

    def _reply(self, command: str) -> Reply:
        if "command -v" in command:
            return Reply("ib_write_bw\nib_read_lat\n")
        said = command.partition("printf ")[2].partition("; ")[0] or "''"
        reported = subprocess.run(["sh", "-c", f"printf {said}"], capture_output=True, text=True, check=True).stdout
        return Reply(reported + WRITE) if "ib_write_bw" in command else Reply(reported, "exit code 1: Couldn't connect")

    def running_files(self) -> Mapping[str, str | None]:
        raise AssertionError("nobody may ask for files")

    def os_version(self) -> str:
        raise AssertionError("nobody may ask for versions")


def test_every_nic_takes_part_and_at_most_once_per_round() -> None:
    plan = trial_plan(BUILT, BUILT.hosts, ALL, TOOLS, 5)
    for one in plan.rounds:
        assert set(one.senders) & set(one.receivers) == set()
    tested = {name for one in plan.rounds if "ib_write_bw" in one.title for name in (*one.senders, *one.receivers)}
    assert tested == set(NAMES_OF_HOSTS)
    pairs = "gpu01 → gpu05, gpu02 → gpu06, gpu03 → gpu07, gpu04 → gpu08"
    assert [one.title for one in plan.rounds if "rail 1" in one.title] == [
        f"ib_write_bw along rail 1: {pairs}",
        f"ib_read_lat along rail 1: {pairs}",
        "ib_write_bw along rail 1: gpu01 → gpu06, gpu02 → gpu07, gpu03 → gpu08, gpu04 → gpu05",
        f"iperf3 along rail 1, lossless and best effort together: {pairs}",
    ]
    assert [one.title for one in plan.rounds if "over" in one.title] == [
        "all_reduce_perf over 2 hosts",
        "all_reduce_perf over 8 hosts",
    ]


def test_an_odd_host_has_a_round_of_its_own() -> None:
    plan = trial_plan(BUILT, BUILT.hosts[:3], ALL, ["iperf3"], 5)
    assert [(set(one.senders), set(one.receivers)) for one in plan.rounds] == [
        ({"gpu01"}, {"gpu02"}),
        ({"gpu03"}, {"gpu01"}),
    ] * 2


def test_the_number_of_rounds_does_not_grow_with_the_hosts() -> None:
    few, many = (trial_plan(BUILT, hosts, ALL, ["perftest"], 5) for hosts in (BUILT.hosts[:4], BUILT.hosts))
    assert few.seconds == many.seconds == 2 * 3 * 13
    assert trial_plan(BUILT, BUILT.hosts[:2], ALL, ["perftest"], 5).seconds == 2 * 2 * 13


def test_every_nic_writes_to_two_others_so_that_a_slow_end_shows() -> None:
    for count in range(3, 9):
        partners: dict[str, set[str]] = {}
        for one in trial_plan(BUILT, BUILT.hosts[:count], ALL, ["perftest"], 5).rounds:
            if "ib_write_bw along rail 0" in one.title:
                for near, far in re.findall(r"(gpu\d+) → (gpu\d+)", one.title):
                    partners.setdefault(near, set()).add(far)
                    partners.setdefault(far, set()).add(near)
        assert all(len(partners[host.name]) >= 2 for host in BUILT.hosts[:count]), count


def test_gpu_memory_is_used_where_hosts_have_the_tool_for_it() -> None:
    plan = trial_plan(BUILT, BUILT.hosts, ALL, ["perftest"], 5, is_cuda=True)
    for one in plan.rounds:
        gpu = one.title.partition("rail ")[2].partition(":")[0]
        wanted = f" --use_cuda={gpu} " if "ib_write_bw" in one.title else ""
        for text in (*one.senders.values(), *one.receivers.values()):
            assert wanted in text
            assert ("use_cuda" in text) == bool(wanted)
    without = {name: found - {"use_cuda"} for name, found in ALL.items()}
    assert trial_plan(BUILT, BUILT.hosts, without, ["perftest"], 5, is_cuda=True).absent == (
        "perftest: ib_write_bw and ib_read_lat and use_cuda on fewer than two hosts",
    )
    assert not any(
        "use_cuda" in text
        for one in trial_plan(BUILT, BUILT.hosts, ALL, ["perftest"], 5).rounds
        for text in one.senders.values()
    )


def test_perftest_support_for_gpus_is_read_from_its_help(tmp_path: Path) -> None:
    program = tmp_path / "ib_write_bw"
    for text, wanted in (("--use_cuda=<id>", {"ib_write_bw", "use_cuda"}), ("--report_gbits", {"ib_write_bw"})):
        program.write_text(f"#!/bin/sh\necho '  {text}' >&2\nexit 1\n")
        program.chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run(["sh", "-c", FIND_TOOLS], env=environment, capture_output=True, text=True, check=True)
        assert programs(done.stdout) - {"iperf3", "mpirun"} == wanted


def test_missing_tools_are_absent_with_the_reason() -> None:
    some = {name: frozenset({"iperf3"}) for name in NAMES_OF_HOSTS[:2]} | {"gpu03": frozenset({"ib_write_bw"})}
    plan = trial_plan(BUILT, BUILT.hosts[:3], some, TOOLS, 5)
    assert plan.absent == (
        "perftest: ib_write_bw and ib_read_lat on fewer than two hosts",
        "iperf3: no iperf3 on gpu03",
        "nccl-tests: mpirun and all_reduce_perf on fewer than two hosts",
    )
    assert {one.tool for one in plan.rounds} == {"iperf3"}


def test_every_command_is_valid_and_ends_by_itself() -> None:
    plan = trial_plan(BUILT, BUILT.hosts, ALL, TOOLS, 5)
    commands = {command for one in plan.rounds for command in (*one.senders.values(), *one.receivers.values())}
    assert all("timeout " in command for command in commands)
    for command in commands:
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_senders_and_receivers_of_a_round_run_at_the_same_time() -> None:
    together = threading.Barrier(8)

    class Meeting(Answering):
        def _reply(self, command: str) -> Reply:
            if "command -v" not in command:
                together.wait(30)
            return super()._reply(command)

    plan = trial_plan(BUILT, BUILT.hosts, ALL, ["perftest"], 5)
    with Bench(NAMES_OF_HOSTS, Meeting) as bench:
        found = results(bench.measure(plan.rounds[:1]))
    assert isinstance(found, tuple)
    assert [trial.ends[0] for trial in found] == [host.nics[0].address for host in BUILT.hosts[:4]]


def test_a_failed_run_is_a_result_too_and_an_unreachable_host_is_reported() -> None:
    hosts = {name: Answering(name, "connection refused" if name == "gpu02" else "") for name in NAMES_OF_HOSTS}
    plan = trial_plan(BUILT, BUILT.hosts, ALL, ["perftest"], 5)
    with Bench(NAMES_OF_HOSTS, hosts.__getitem__) as bench:
        assert bench.programs()["gpu01"] == {"ib_write_bw", "ib_read_lat"}
        found = results(bench.measure(plan.rounds))
    assert bench.failures == {"gpu02": "connection refused"}
    assert isinstance(found, tuple)
    assert {_brief(trial) for trial in found} == {
        ("ib_write_bw", ""),
        ("ib_read_lat", "exit code 1: Couldn't connect"),
        ("", "connection refused"),
    }
    assert not any(host.is_open for host in hosts.values())


def _brief(trial: Trial) -> tuple[str, str]:
    return trial.test, trial.failure


def test_only_requested_programs_run() -> None:
    assert programs("bash: warning\niperf3\nmpirun\nrm\n") == {"iperf3", "mpirun"}
