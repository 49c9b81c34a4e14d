"""Acceptance tests of hosts: commands that end by themselves, and tolerant parsers of files with results.

A line `#@ trial` followed by JSON describes the run after it: `tool`, `test`, `hosts`, `nic` and `at_s`. Without such
lines the tools are recognised by their output.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netkit.facts import Absent
from netkit.facts.snapshot import Trial
from netkit.platforms.linux.acceptance import nccl_tests, perftest
from netkit.platforms.linux.facts.reading import NOTHING, document, members, number, plain, word

RDMA_PORT, TCP_PORT = 18_515, 5_201
START_S, SLACK_S = 1, 8
"""How long a sender waits for its receiver to start, and how much longer than its duration a run may take."""
COLLECTIVE_S = 300
TESTS = ("ib_write_bw", "ib_read_lat")
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    perftest.TOOL: TESTS,
    perftest.IPERF3: ("iperf3",),
    nccl_tests.TOOL: ("mpirun", "all_reduce_perf"),
}
"""Programs a tool needs on a host."""
AGAIN = 'again() { for i in 1 2 3 4 5; do "$@" && return; sleep 1; done; }'
"""A sender may start before its receiver."""
CUDA = "use_cuda"
"""Printed for a perftest that can read and write GPU memory."""
NAMES = (*(name for names in PROGRAMS.values() for name in names), CUDA)
FIND = "PATH=$PATH:/opt/nccl-tests/build:/usr/lib64/openmpi/bin"
TOOLS = (
    f"{FIND}; for t in {' '.join(NAMES)}; do command -v $t >/dev/null && echo $t; done; "
    f"{TESTS[0]} --help 2>&1 | grep -qw {CUDA} && echo {CUDA}; true"
)
MARK = "#@ trial "
DECODER = json.JSONDecoder()
START = re.compile(r"^\s*\{", re.MULTILINE)
MOST_STARTS = 1000
LATEST_S = 2.0**32
READ_TOOLS = (nccl_tests.TOOL, perftest.TOOL, perftest.IPERF3)


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """One end of a run."""

    host: str
    interface: str
    rdma: str
    address: str
    gpu: int | None = None
    """The GPU whose memory is used; None: memory of the host."""


def programs(printed: str) -> frozenset[str]:
    """Parse which programs a host has."""
    return frozenset(printed.split()) & frozenset(NAMES)


def rdma_receive(test: str, side: TrialEnd, seconds: int, tos: int) -> str:
    """Build the command of perftest's far end, which serves one run."""
    return _bounded(f"{_gid(side)}{_rdma(test, side, seconds, tos)}", seconds)


def rdma_send(test: str, near: TrialEnd, far: TrialEnd, seconds: int, tos: int) -> str:
    """Build the command of perftest's near end."""
    about = _about(perftest.TOOL, test, (near.address, far.address), near.rdma)
    run = f"{_gid(near)}again {_rdma(test, near, seconds, tos)} {far.address}"
    return f"sleep {START_S}; {about}{_bounded(run, seconds)} 2>&1"


def _rdma(test: str, side: TrialEnd, seconds: int, tos: int) -> str:
    size = "-s 2 -n 5000"
    if test.endswith("_bw"):
        memory = "" if side.gpu is None else f" --{CUDA}={side.gpu}"
        size = f"-b -s 65536 -q 4 -D {seconds} --report_gbits{memory}"
    return f"{test} -d {side.rdma} ${{x:+-x $x}} -F {size} --tclass={tos} -p {RDMA_PORT}"


def _gid(side: TrialEnd) -> str:
    """Build the command that sets x to the index of a NIC's RoCE v2 GID, which is only known at runtime."""
    words = [f"{int(part):02x}" for part in side.address.split(".")]
    gid = f"0000:0000:0000:0000:0000:ffff:{words[0]}{words[1]}:{words[2]}{words[3]}"
    port = f"/sys/class/infiniband/{side.rdma}/ports/1"
    found = f"grep -lsx {gid} {port}/gids/* | while read g; do n=${{g##*/}}; "
    return f"x=$({found}grep -qs v2 {port}/gid_attrs/types/$n && echo $n; done | head -n 1); "


def _bounded(command: str, seconds: int) -> str:
    return f"timeout {seconds + SLACK_S} sh -c {shlex.quote(f'{FIND}; {AGAIN}; {command}')}"


def tcp_receive(side: TrialEnd, seconds: int, ports: int) -> str:
    """Build the command of iperf3's far end: one server for each class, each for one run."""
    servers = (f"iperf3 -s -1 -B {side.address} -p {TCP_PORT + number} >/dev/null 2>&1 &" for number in range(ports))
    return _bounded(f"{' '.join(servers)} wait", seconds)


def tcp_send(near: TrialEnd, far: TrialEnd, seconds: int, dscps: Sequence[int]) -> str:
    """Build the command of iperf3's near end: concurrent streams of each class, printed one after the other."""
    common = f"again iperf3 -J -i 0 -P 4 -t {seconds} -c {far.address} -B {near.address}"
    runs = (f"{common} -p {TCP_PORT + number} --dscp {dscp} >$d/{number} 2>&1 &" for number, dscp in enumerate(dscps))
    about = _about(perftest.IPERF3, perftest.IPERF3, (near.address, far.address), near.interface)
    shown = " ".join(f"{about}cat $d/{number};" for number in range(len(dscps)))
    run = _bounded(" ".join([*runs, "wait"]), seconds)
    return f"sleep {START_S}; d=$(mktemp -d); export d; {run}; {shown} rm -r $d"


def collective(hosts: Sequence[str], gpus: int, settings: Iterable[tuple[str, str]], test: str) -> str:
    """Build the command that the first host runs for a collective over all hosts."""
    slots = ",".join(f"{host}:{gpus}" for host in hosts)
    exported = " ".join(f"-x {shlex.quote(f'{key}={value}')}" for key, value in settings)
    run = f"mpirun --allow-run-as-root -np {len(hosts) * gpus} -H {slots} --bind-to none {exported}"
    command = f"{run} {test} -b 1G -e 8G -f 8 -g 1 -c 1 -n 20 -w 5"
    about = _about(nccl_tests.TOOL, test, hosts, "")
    return f"{about}{_bounded(command, COLLECTIVE_S - SLACK_S)} 2>&1"


def _about(tool: str, test: str, hosts: Sequence[str], nic: str) -> str:
    """Build the command that prints the line describing the run after it."""
    about = json.dumps({"tool": tool, "test": test, "hosts": tuple(hosts), **({"nic": nic} if nic else {})})
    return f"printf '%s, \"at_s\": %s}}\\n' {shlex.quote(MARK + about.removesuffix('}'))} $(date +%s); "


def results(text: str, file: str = "") -> tuple[Trial, ...] | Absent:
    """Parse every run in a text."""
    found = tuple(replace(trial, file=file) for about, part in _parts(plain(text)) for trial in _of_part(about, part))
    return found or Absent("holds no result of nccl-tests, perftest or iperf3")


def mark(about: Mapping[str, object]) -> str:
    """Write the line that describes the run after it."""
    return MARK + json.dumps(about)


def _parts(text: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    about: Mapping[str, Any] = NOTHING
    rows: list[str] = []
    for line in text.splitlines():
        if line.startswith(MARK):
            yield about, "\n".join(rows)
            about, rows = next(iter(_documents(line.removeprefix(MARK))), NOTHING), []
        else:
            rows.append(line)
    yield about, "\n".join(rows)


def _of_part(about: Mapping[str, Any], text: str) -> tuple[Trial, ...]:
    found = _trials(word(about, "tool"), text)
    tool = word(about, "tool")
    if not found and tool in READ_TOOLS:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found = (Trial(tool=tool, failure=lines[-1][:160] if lines else "it printed nothing"),)
    return tuple(_completed(trial, about) for trial in found)


def _trials(tool: str, text: str) -> tuple[Trial, ...]:
    documents = tuple(trial for one in _documents(text) if (trial := _of_document(one)) is not None)
    if documents:
        return documents
    if tool == nccl_tests.TOOL or "busbw" in text or "# nThread" in text:
        return nccl_tests.trials(text)
    return perftest.trials(text) if tool == perftest.TOOL or perftest.TITLE.search(text) else ()


def _of_document(found: Mapping[str, Any]) -> Trial | None:
    if "test_info" in found:
        return perftest.of_document(found)
    if "nccl_version" in found or "average_bus_bandwidth" in found:
        return nccl_tests.of_document(found)
    return perftest.of_iperf3(found) if {"start", "end", "error"} & set(found) else None


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in a text, with other lines between them."""
    place = 0
    for _ in range(MOST_STARTS):
        start = START.search(text, place)
        if start is None:
            return
        try:
            place = DECODER.raw_decode(text, start.end() - 1)[1]
        except (ValueError, RecursionError):
            place = start.end()
        yield from members(document(text[start.end() - 1 : place]))


def _completed(trial: Trial, about: Mapping[str, Any]) -> Trial:
    """Complete a run from its description, which has the names of the design."""
    hosts = about.get("hosts")
    ends = tuple(one for one in hosts if isinstance(one, str)) if isinstance(hosts, list) else ()
    times = (trial.at_s, number(about.get("at_s")))
    return replace(
        trial,
        test=word(about, "test") or trial.test,
        ends=ends or trial.ends,
        nic=word(about, "nic") or trial.nic,
        at_s=next((at_s for at_s in times if at_s is not None and 0 <= at_s < LATEST_S), None),
    )
