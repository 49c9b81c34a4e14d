"""Which nodes of a cluster get no new jobs: those with a NIC or a cable that is not well, within a budget.

A node is taken out after some rounds in a row that found it bad, and comes back after more that found it well. A round
that could not judge what put it out counts for neither.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from netkit.design import Fabric, Host, Switch
from netkit.design.clusters import Cluster
from netkit.intent.model import SteeringIntent
from netkit.judge.finding import Finding, Verdict
from netkit.judge.run import FABRIC, Judgement

REASON_PREFIX = "netkit: "
"""The beginning of the reason of nodes that netkit drains."""
VERDICTS = {"warn": Verdict.WARN, "fail": Verdict.FAIL}


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """What earlier rounds found at a node. A node that was always well has none."""

    bad: int = 0
    """Rounds in a row that found something."""
    good: int = 0
    """Rounds in a row that found nothing any more."""
    is_out: bool = False
    check: str = ""
    reason: str = ""
    judged_by: tuple[str, ...] = ()
    """The results that found it bad, by their ids: each has to be judged before a round counts as good."""
    is_applied: bool = False
    """Whether its commands were run by netkit; then only a round that runs commands may bring it back."""


@dataclass(frozen=True, slots=True)
class Steering:
    """The decisions of one round."""

    kind: str
    health: Mapping[str, NodeHealth]
    """The state to keep, by node."""
    taken: tuple[str, ...] = ()
    """Nodes that are taken out now."""
    returned: tuple[str, ...] = ()
    """Nodes that come back now."""
    over_budget: tuple[str, ...] = ()
    """Bad nodes that stay in because the budget is used up."""
    of: int = 0
    before: Mapping[str, NodeHealth] = field(default_factory=dict)

    @property
    def out(self) -> tuple[str, ...]:
        """Every node that is out after this round."""
        return tuple(name for name, one in self.health.items() if one.is_out)


def steer(fabric: Fabric, cluster: Cluster, found: Judgement, before: Mapping[str, NodeHealth]) -> Steering:
    """Decide which nodes are taken out and which come back. Silences change nothing: a known fault is still one."""
    names = {node.host.name: node.name for node in cluster.nodes}
    wanted = cluster.settings.steering
    bad: dict[str, list[tuple[str, Finding]]] = {}
    for result in found.results:
        for finding in result.findings:
            host = host_at(fabric, finding)
            if host in names and _counts(wanted, finding):
                bad.setdefault(names[host], []).append((result.id, finding))
    judged = {result.id for result in found.results if result.examined}
    order = [node.name for node in cluster.nodes]
    known = {name: _without_gone(fabric, wanted, one) for name, one in before.items()}
    health = {name: one for name in order if (one := _after(known.get(name), bad.get(name, ()), judged)) is not None}
    returned = tuple(name for name, one in health.items() if one.is_out and one.good >= wanted.good_rounds)
    health = {name: one for name, one in health.items() if name not in returned}
    room = max(1, len(order) * wanted.budget_percent // 100) - sum(one.is_out for one in health.values())
    due = [name for name in bad if not health[name].is_out and health[name].bad >= wanted.bad_rounds]
    due.sort(key=lambda name: (-max(one.verdict for _, one in bad[name]), -health[name].bad, order.index(name)))
    taken = tuple(due[: max(room, 0)])
    health |= {name: replace(health[name], is_out=True) for name in taken}
    return Steering(cluster.kind, health, taken, returned, tuple(due[len(taken) :]), len(order), before)


def host_at(fabric: Fabric, finding: Finding) -> str:
    """The host that a finding is about: its own, or the one at the port of its leaf; empty for neither."""
    device = fabric.device(finding.device)
    if isinstance(device, Host):
        return device.name
    if isinstance(device, Switch):
        places = {finding.place, finding.place.rpartition("/")[0]}
        return next((host for port, host in device.ports_of_hosts.items() if port in places), "")
    return ""


def _counts(wanted: SteeringIntent, finding: Finding) -> bool:
    """Whether a finding puts a node out: a cause, bad enough, and of a listed check."""
    is_named = any(fnmatchcase(finding.check, pattern) for pattern in wanted.checks)
    return is_named and not finding.is_symptom and VERDICTS[wanted.verdict] <= finding.verdict < Verdict.ERROR


def _without_gone(fabric: Fabric, wanted: SteeringIntent, health: NodeHealth) -> NodeHealth:
    """Forget results of devices that are gone, and of checks that do not count any more: nothing will judge them."""
    ids = []
    for one in health.judged_by:
        check, _, device = one.removesuffix("]").partition("[")
        if device in {FABRIC, *fabric.names} and any(fnmatchcase(check, pattern) for pattern in wanted.checks):
            ids.append(one)
    return replace(health, judged_by=tuple(ids))


def _after(before: NodeHealth | None, bad: Sequence[tuple[str, Finding]], judged: set[str]) -> NodeHealth | None:
    """The health of a node after a round; None once nothing has to be kept of it."""
    if bad:
        worst = max((one for _, one in bad), key=lambda one: one.verdict)
        known = before or NodeHealth()
        ids = dict.fromkeys((*known.judged_by, *(result for result, _ in bad)))
        where = f"{worst.device}:{worst.place}" if worst.place else worst.device
        reason = f"{where}: {worst.text}"
        return replace(known, bad=known.bad + 1, good=0, check=worst.check, reason=reason, judged_by=tuple(ids))
    if before is None:
        return None
    if not judged.issuperset(before.judged_by):
        return before
    return replace(before, good=before.good + 1) if before.is_out else None


def commands(steering: Steering, label_prefix: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the commands for all nodes that are out, and for those that come back. They may be run again."""
    write = _slurm if steering.kind == "slurm" else _kubernetes
    for name in steering.out:
        yield from ((name, command) for command in write(name, label_prefix, steering.health[name]))
    for name in steering.returned:
        yield from ((name, command) for command in write(name, label_prefix, None))


def kept(steering: Steering, failed: Collection[str] | None) -> Mapping[str, NodeHealth]:
    """The state to keep. With `failed`, commands were run and failed for these nodes; without, they were shown."""
    if failed is None:
        applied = {name: one for name in steering.returned if (one := steering.before[name]).is_applied}
        return {**steering.health, **applied}
    health = {
        name: replace(one, is_applied=one.is_applied or (one.is_out and name not in failed))
        for name, one in steering.health.items()
    }
    return {**health, **{name: steering.before[name] for name in steering.returned if name in failed}}


def _kubernetes(node: str, prefix: str, health: NodeHealth | None) -> Iterator[tuple[str, ...]]:
    """Yield what labels and taints a node, or takes both away."""
    kubectl = ("kubectl", "--request-timeout=30s")
    if health is None:
        yield (*kubectl, "taint", "node", node, f"{prefix}/unhealthy-")
        yield (*kubectl, "label", "node", node, f"{prefix}/health-")
        yield (*kubectl, "annotate", "node", node, f"{prefix}/reason-")
    else:
        yield (*kubectl, "annotate", "node", node, f"{prefix}/reason={health.reason}", "--overwrite")
        yield (*kubectl, "label", "node", node, f"{prefix}/health=degraded", "--overwrite")
        yield (*kubectl, "taint", "node", node, f"{prefix}/unhealthy={health.check}:NoSchedule", "--overwrite")


def _slurm(node: str, prefix: str, health: NodeHealth | None) -> Iterator[tuple[str, ...]]:
    """Yield what drains a node, or ends the drain; unlike RESUME, UNDRAIN leaves a node down that is down."""
    del prefix
    if health is None:
        yield "scontrol", "update", f"NodeName={node}", "State=UNDRAIN"
    else:
        reason = f"{REASON_PREFIX}{health.check}: {health.reason}"
        yield "scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}"
