"""Keep jobs off nodes that checks find bad: the state between rounds, and the commands of a round."""

import fcntl
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from netkit.design.clusters import Cluster
from netkit.errors import NetkitError, OutputError, Problem, UsageError
from netkit.judge.run import Judgement
from netkit.judge.steering import REASON_PREFIX, NodeHealth, Steering, commands, kept, steer
from netkit.plan.slurm_running import parse_nodes
from netkit.private import keep_private, make_folder, open_file, read_text
from netkit.project.cluster import run_program
from netkit.project.project import Project
from netkit.project.runs import UNSAFE, state_folder

TAINT_MISSING = re.compile(r"error: taint \S+ not found")
"""kubectl's message about a taint that was removed before."""
DEAD = frozenset({"DOWN", "FAIL", "FAILING"})


def cluster_of(project: Project, kind: str) -> Cluster:
    """The cluster of a kind; UsageError if the fabric has none."""
    known = {cluster.kind: cluster for cluster in project.fabric.clusters}
    if kind not in known:
        remedy = f"use {' or '.join(known)}" if known else "describe it under clusters in fabric.yaml"
        raise UsageError(Problem(f"{project.fabric.name} has no cluster of kind {kind!r}", remedy))
    return known[kind]


def steered(project: Project, cluster: Cluster, found: Judgement) -> Steering:
    """Decide on the nodes of a cluster, from this round and the state of earlier ones."""
    return steer(project.fabric, cluster, found, _load(state_file(project, cluster.kind)))


def state_file(project: Project, kind: str) -> Path:
    """The file that keeps the state of a cluster between rounds; each lab has its own."""
    place = state_folder() / UNSAFE.sub("_", project.fabric.name)
    keep_private(place)
    return (place / "labs" / project.lab if project.lab else place) / f"steer-{kind}.json"


def save(project: Project, steering: Steering, failed: Collection[str] | None) -> None:
    """Keep the state for the next round; without `failed`, the commands were shown and not run."""
    file = state_file(project, steering.kind)
    health = {name: asdict(one) for name, one in kept(steering, failed).items()}
    text = json.dumps(health, indent=1, ensure_ascii=False) + "\n"
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
        document = json.loads(read_text(file))
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
    kinds = (int, int, bool, str, str, bool)
    given = (known.bad, known.good, known.is_out, known.check, known.reason, known.is_applied)
    if not all(type(value) is kind for value, kind in zip(given, kinds, strict=True)):
        raise ValueError
    return known


def _damaged(file: Path) -> OutputError:
    remedy = "remove it; nodes that are out stay out until you bring them back"
    return OutputError(Problem("was not written by netkit", remedy, file=str(file)))


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of the commands of a round, by node."""

    failed: Mapping[str, str]
    left: Mapping[str, str]
    """Nodes that were left as they are, and why."""


def applied(steering: Steering, label_prefix: str) -> Applied:
    """Run the commands of a round."""
    failed: dict[str, str] = {}
    left: dict[str, str] = {}
    for node, own in groupby(commands(steering, label_prefix), key=itemgetter(0)):
        if steering.kind == "slurm":
            is_needed, note, failure = _slurm_state(node, is_out=node not in steering.returned)
            left.update({node: note} if note else {})
            failed.update({node: failure} if failure else {})
            if not is_needed:
                continue
        for _, command in own:
            _, failure = run_program(command)
            if failure and not (node in steering.returned and TAINT_MISSING.fullmatch(failure)):
                failed[node] = failure
                break
    return Applied(failed, left)


def _slurm_state(node: str, *, is_out: bool) -> tuple[bool, str, str]:
    """Whether the command for a node is needed, why the node is left alone, and why its state is not known."""
    printed, failure = run_program(("scontrol", "show", "node", node))
    if failure:
        return False, "", failure
    try:
        (found,) = parse_nodes(printed)
    except (NetkitError, ValueError):
        return False, "", "scontrol show node printed something else"
    is_drained, is_ours = "DRAIN" in found.states, found.reason.startswith(REASON_PREFIX)
    if not is_out:
        return is_drained and is_ours, "", ""
    if is_drained and is_ours:
        return False, "", ""
    if is_drained or DEAD.intersection(found.states):
        return False, f"{'+'.join(found.states)} for another reason: {found.reason or 'none given'}", ""
    return True, "", ""


@contextmanager
def round_lock(project: Project, kind: str) -> Iterator[None]:
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
