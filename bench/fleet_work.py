"""One process of `scripts/bench fleet`: a worker, a check with or without a fleet, or Nornir with NAPALM's getters.

Devices answer from files, under the seam that a real connection has. A check prints what it judged as one line of JSON.
"""

import argparse
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.fleet_answers import RecordedViewer
from netkit.cli import fleet
from netkit.fleet import coordinator
from netkit.fleet.checking import FleetCollector
from netkit.fleet.dispatch import Dispatch
from netkit.fleet.link import BrokerLink, Received
from netkit.judge import catalog
from netkit.platforms.view import Viewer
from netkit.project.checking import ACCEPTANCE, CLUSTER, DRIFT, Checking
from netkit.project.connections import Connections
from netkit.project.judging import judged_of
from netkit.project.project import Project

SITE = "bench"
NOT_JUDGED = (ACCEPTANCE, CLUSTER, f"{DRIFT}.")
"""Checks of what these devices do not answer."""
GETTERS = ("facts", "interfaces", "interfaces_counters", "lldp_neighbors_detail")
"""Those whose commands are among the recorded ones."""


def main() -> None:
    given = _arguments()
    gc.disable()  # as the command line does
    if given.core >= 0:
        os.sched_setaffinity(0, {given.core})
    if given.what == "napalm":
        found = _napalm(given.fabrics, given.answers)
    elif given.what == "check":
        found = _check(given)
    else:
        _answer_from(given.answers)
        start_s = time.process_time()
        fleet.work(SITE, given.fleet, access=None, state=given.state, lab=given.lab)
        jobs = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = {"start_s": start_s, "jobs_s": jobs.ru_utime + jobs.ru_stime}  # processor time
    sys.stdout.write(json.dumps(found) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("worker", "check", "napalm"))
    parser.add_argument("--fabrics", type=Path, nargs="+", default=[])
    parser.add_argument("--answers", type=Path, help="folder with the answers of each device; by default the lab's")
    parser.add_argument("--lab", default="", help="the lab whose devices answer")
    parser.add_argument("--fleet", type=Path)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--window", type=float, default=1.0)
    parser.add_argument("--core", type=int, default=-1, help="the only core to use")
    return parser.parse_args()


def _answer_from(folder: Path | None) -> None:
    """Have every device answer from its file; without a folder, the devices of a lab answer themselves."""
    if folder is None:
        return

    def viewer(self: Connections, device: str) -> Viewer:
        del self
        return RecordedViewer(folder / device)

    Connections.viewer = viewer  # type: ignore[method-assign]


class _CountedLink(BrokerLink):
    """Counts what goes through the broker."""

    bytes_sent = bytes_received = messages = 0

    def send(self, exchange: str, key: str, body: bytes, *, lasts_s: float = 0) -> None:
        _CountedLink.bytes_sent += len(body)
        super().send(exchange, key, body, lasts_s=lasts_s)

    def received(self, timeout_s: float) -> Received | None:
        found = super().received(timeout_s)
        if found is not None:
            _CountedLink.bytes_received += len(found.body)
            _CountedLink.messages += 1
        return found


def _check(given: argparse.Namespace) -> dict[str, Any]:
    """Check fabrics one after another; return what was judged, and the time it took without starting Python."""
    collector = None
    if given.fleet:
        vars(coordinator)["BrokerLink"] = _CountedLink
        collector = FleetCollector(Dispatch.of(given.fleet))
    else:
        _answer_from(given.answers)
    checks = [one for one in catalog.load().values() if not one.name.startswith(NOT_JUDGED)]
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    found = dict.fromkeys(("devices", "examined", "results", "bad", "unreached"), 0)
    for folder in given.fabrics:
        project = Project.open(folder, processes=1, lab="" if given.fleet else given.lab)
        checking = replace(Checking.of(project, window_s=given.window), collector=collector)
        judged = judged_of(checking.context(checks), checks)
        judgement = judged.judgement
        found["devices"] += judged.devices
        found["examined"] += judgement.examined
        found["results"] += len(judgement.results)
        found["bad"] += sum(one.verdict > 1 for one in judgement.findings)
        found["unreached"] += len(judgement.unreached)
        del project, checking, judged, judgement
        gc.collect()
    link = _CountedLink
    counted = {"bytes": link.bytes_sent + link.bytes_received, "messages": link.messages}
    return {**found, **counted, "wall_s": time.perf_counter() - began_s, "cpu_s": time.process_time() - began_cpu_s}


def _napalm(fabrics: Sequence[Path], answers: Path) -> dict[str, Any]:
    """Run NAPALM's getters on the switches of fabrics with Nornir."""
    # Imported here so that they do not count for the others.
    from bench.napalm_peer import look  # noqa: PLC0415

    names = {folder: [one.name for one in Project.open(folder).fabric.switches] for folder in fabrics}
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    count = sum(look(names[folder], answers, GETTERS) for folder in fabrics)
    taken = {"wall_s": time.perf_counter() - began_s, "cpu_s": time.process_time() - began_cpu_s}
    return {"devices": count, "getters": list(GETTERS), **taken}


if __name__ == "__main__":
    main()
