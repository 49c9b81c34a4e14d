"""Keep jobs off nodes that checks find bad: the state between rounds, and the commands of a round."""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from netkit.design.clusters import Cluster
from netkit.errors import OutputError, Problem, UsageError
from netkit.judge.run import Judgement
from netkit.judge.steering import OURS, NodeHealth, Steering, commands, steer
from netkit.private import keep_private, make_folder, open_file
from netkit.project.program import run_program
from netkit.project.project import Project
from netkit.project.runs import UNSAFE, state_folder

GONE = re.compile(r"error: taint \S+ not found")
"""What kubectl says of a taint that somebody removed before."""
DRAINED = re.compile(r"\bState=\S*DRAIN\S* .*\bReason=(?P<reason>.*?)(?: \[\S+@\S+\])?(?: \w+=|$)")


def cluster_of(project: Project, kind: str) -> Cluster:
    """Return the cluster of a kind; UsageError if the fabric has none."""
    known = {cluster.kind: cluster for cluster in project.fabric.clusters}
    if kind not in known:
        remedy = f"use {' or '.join(known)}" if known else "describe it under clusters in fabric.yaml"
        raise UsageError(Problem(f"{project.fabric.name} has no cluster of kind {kind!r}", remedy))
    return known[kind]


def steered(project: Project, cluster: Cluster, found: Judgement) -> Steering:
    """Decide on the nodes of a cluster, from this round and the state of earlier ones."""
    return steer(project.fabric, cluster, found, _load(state_file(project, cluster.kind)))


def state_file(project: Project, kind: str) -> Path:
    """Return the file that keeps the state of a cluster between rounds; each lab has its own."""
    place = state_folder() / UNSAFE.sub("_", project.fabric.name)
    keep_private(place)
    return (place / "labs" / project.lab if project.lab else place) / f"steer-{kind}.json"


def save(project: Project, steering: Steering, failed: Mapping[str, str]) -> None:
    """Keep the state for the next round; a node whose commands failed stays as it was."""
    file = state_file(project, steering.kind)
    health = {name: one for name, one in steering.health.items() if name not in failed}
    health |= {name: steering.before[name] for name in failed if name in steering.before}
    text = json.dumps({name: asdict(one) for name, one in health.items()}, indent=1, ensure_ascii=False) + "\n"
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        make_folder(file.parent)
        with os.fdopen(open_file(draft, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as stream:
            stream.write(text)
        draft.replace(file)
    except OSError as error:
        raise OutputError(
            Problem(f"cannot be written: {error.strerror}", "check its folder and disk", file=str(file))
        ) from None


def _load(file: Path) -> Mapping[str, NodeHealth]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        raise _damaged(file) from None
    try:
        return {str(name): _health(values) for name, values in document.items()}
    except (TypeError, AttributeError, KeyError, ValueError):
        raise _damaged(file) from None


def _health(values: Mapping[str, Any]) -> NodeHealth:
    known = NodeHealth(**{**values, "judged_by": tuple(values["judged_by"])})
    kinds = (int, int, bool, str, str)
    given = (known.bad, known.good, known.is_out, known.check, known.reason)
    if not all(type(value) is kind for value, kind in zip(given, kinds, strict=True)):
        raise ValueError
    return known


def _damaged(file: Path) -> OutputError:
    remedy = "remove it; nodes that are out stay so until you let them back yourself"
    return OutputError(Problem("is not what an earlier round wrote", remedy, file=str(file)))


def applied(steering: Steering, label_prefix: str) -> Mapping[str, str]:
    """Run the commands of a round; return the nodes for which one failed, and why."""
    failed: dict[str, str] = {}
    if steering.kind == "slurm":
        for node in (*steering.taken, *steering.returned):
            if reason := _foreign_drain(node):
                failed[node] = f"it is drained for another reason, which stays: {reason}"
    for node, command in commands(steering, label_prefix):
        _, reason = ("", "") if node in failed else run_program(command)
        if reason and not (node in steering.returned and GONE.fullmatch(reason)):
            failed[node] = reason
    return failed


def _foreign_drain(node: str) -> str:
    """Return the reason for which another than netkit drained a node of Slurm; empty if none did."""
    printed, _ = run_program(("scontrol", "--oneliner", "show", "node", node))
    found = DRAINED.search(printed)
    return found["reason"] if found and not found["reason"].startswith(OURS) else ""


@contextmanager
def alone(project: Project, kind: str) -> Iterator[None]:
    """Lock out other rounds of this cluster on this machine: each counts once."""
    file = state_file(project, kind).with_suffix(".lock")
    try:
        make_folder(file.parent)
        stream = os.fdopen(open_file(file, os.O_WRONLY | os.O_APPEND), "a", encoding="utf-8")
    except OSError as error:
        raise OutputError(
            Problem(f"cannot be written: {error.strerror}", "check its folder and disk", file=str(file))
        ) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another check of {project.fabric.name} with --steer {kind} is running"
            raise UsageError(Problem(what, "wait for it to finish")) from None
        yield
