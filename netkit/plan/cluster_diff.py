"""What a change of the intent alters for clusters: objects and lines of their files, and who is touched."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from netkit.design.clusters import Cluster
from netkit.platforms.config import Files

Action = Literal["added", "removed", "changed"]
Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""

NAMES = ("nodeName", "name", "prefix", "key", "dst")
"""Fields that identify an item of a list, the most specific first."""
DRAINED = frozenset(
    {"SriovNetworkNodePolicy", "NicConfigurationTemplate", "NicInterfaceNameTemplate", "NicClusterPolicy"}
)
"""Objects whose operators drain the nodes that they select, one after another."""
RESTARTED = frozenset(
    {
        "CIDRPool",
        "IPPool",
        "SriovNetwork",
        "HostDeviceNetwork",
        "MacvlanNetwork",
        "NetworkAttachmentDefinition",
        "SpectrumXRailPoolConfig",
        "ConfigMap",
    }
)
"""Objects that a pod reads once, when it starts."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value of an object, or a line of a file; empty before or after: it is new or gone."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """An object of Kubernetes, such as `CIDRPool ops/rail0`, or a file of Slurm."""

    name: str
    action: Action
    values: tuple[ValueChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterDiff:
    """The changes of one cluster."""

    kind: str
    objects: tuple[ObjectChange, ...]
    drained: tuple[str, ...] = ()
    """Nodes that are drained for the change."""
    restarted: tuple[str, ...] = ()
    """Nodes whose pods keep the old values until they start anew."""
    advice: tuple[str, ...] = ()


def compare_cluster(kind: str, before: Files, after: Files, nodes: Sequence[str]) -> ClusterDiff | None:
    """Compare the files of a cluster; None if they are the same."""
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if not changed:
        return None
    old, new = ({name: files[name] for name in changed if name in files} for files in (before, after))
    return _of_slurm(old, new) if kind == "slurm" else _of_kubernetes(kind, old, new, nodes)


def rendered_kinds(files: Files) -> Mapping[str, int]:
    """Count the rendered objects by kind."""
    return Counter(kind for kind, _, _ in _objects(files))


def compare_running(
    live: Iterable[Mapping[str, Any]], files: Files, nodes: Sequence[str], unread: Collection[str] = ()
) -> ClusterDiff | None:
    """Compare the objects that a Kubernetes cluster runs with rendered files; None if it has all of their values.

    Values that only the cluster has are its own: defaults, status, labels and objects of others.
    """
    running = {_key(one): one for one in live}
    changes: dict[Key, ObjectChange] = {}
    for key, whole in sorted(_objects(files).items()):
        wanted = {name: value for name, value in whole.items() if name != "apiVersion"}  # lists leave it out
        known = running.get(key)
        if key[0] in unread:
            continue
        if known is None:
            changes[key] = ObjectChange(_title(key), "added")
        elif values := tuple(value_changes(_shared(known, wanted), wanted)):
            changes[key] = ObjectChange(_title(key), "changed", values)
    return _with_nodes("kubernetes", changes, nodes) if changes else None


def _shared(known: Any, wanted: Any) -> Any:
    """Return the part of a live value that a rendered one has too; numbers and quantities are compared as text."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        return {key: _shared(known[key], value) for key, value in wanted.items() if key in known}
    if isinstance(known, list) and isinstance(wanted, list):
        old, new = _by_name(known), _by_name(wanted)
        return [_shared(value, new[name]) if name in new else value for name, value in old.items()]
    return wanted if str(known) == str(wanted) else known


def nodes_of(clusters: Iterable[Cluster], kind: str) -> tuple[str, ...]:
    """Return the names of the nodes of a cluster of this kind."""
    return tuple(node.name for cluster in clusters if cluster.kind == kind for node in cluster.nodes)


def _of_kubernetes(kind: str, before: Files, after: Files, nodes: Sequence[str]) -> ClusterDiff:
    old, new = _objects(before), _objects(after)
    changes: dict[Key, ObjectChange] = {}
    for key in sorted({*old, *new}):
        values = tuple(value_changes(old.get(key, {}), new.get(key, {})))
        if key not in old or key not in new:
            changes[key] = ObjectChange(_title(key), "added" if key in new else "removed")
        elif values:
            changes[key] = ObjectChange(_title(key), "changed", values)
    return _with_nodes(kind, changes, nodes)


def _with_nodes(kind: str, changes: Mapping[Key, ObjectChange], nodes: Sequence[str]) -> ClusterDiff:
    drained = nodes if any(key[0] in DRAINED for key in changes) else ()
    restarted: set[str] = set()
    for key, change in changes.items():
        if key[0] in RESTARTED and change.action != "added":
            restarted |= _touched(change, nodes)
    return ClusterDiff(kind, tuple(changes.values()), tuple(drained), tuple(one for one in nodes if one in restarted))


def _objects(files: Files) -> dict[Key, Mapping[str, Any]]:
    found: dict[Key, Mapping[str, Any]] = {}
    for text in files.values():
        for one in yaml.load_all(text, yaml.CSafeLoader):
            if isinstance(one, dict):
                found[_key(one)] = one
    return found


def _key(one: Mapping[str, Any]) -> Key:
    metadata = one.get("metadata") or {}
    return str(one.get("kind")), str(metadata.get("namespace", "")), str(metadata.get("name"))


def _title(key: Key) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def value_changes(before: Any, after: Any, path: str = "") -> Iterator[ValueChange]:
    """Yield the leaves that differ; items of lists are matched by what names them, else by position."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            yield from value_changes(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list):
        old, new = _by_name(before), _by_name(after)
        found = [
            change
            for name in dict.fromkeys((*old, *new))
            for change in value_changes(old.get(name), new.get(name), f"{path}[{name}]")
        ]
        # The same items in another order still differ.
        yield from found or [ValueChange(path, _shown(before), _shown(after))]
    else:
        yield ValueChange(path, _shown(before), _shown(after))


def _by_name(items: Sequence[Any]) -> dict[str, Any]:
    if all(not isinstance(item, dict | list) for item in items):
        return {str(item): item for item in items}
    for name in NAMES:
        names = [str(item[name]) for item in items if isinstance(item, dict) and name in item]
        if len(set(names)) == len(items):
            return dict(zip(names, items, strict=True))
    return {str(number): item for number, item in enumerate(items)}


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _touched(change: ObjectChange, nodes: Sequence[str]) -> set[str]:
    """Return the nodes of an object's changes: all of them, unless only entries of single nodes changed."""
    named = {node for node in nodes if any(f"[{node}]" in value.path for value in change.values)}
    is_of_nodes = all(any(f"[{node}]" in value.path for node in named) for value in change.values)
    return named if change.values and is_of_nodes else set(nodes)


def _of_slurm(before: Files, after: Files) -> ClusterDiff:
    objects = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        gone = [ValueChange("", line, "") for line in old if line not in new]
        added = [ValueChange("", "", line) for line in new if line not in old]
        action: Action = "changed" if name in before and name in after else "added" if name in after else "removed"
        objects.append(ObjectChange(name, action, (*gone, *added) if action == "changed" else ()))
    has_nodes = any(
        value.before.startswith("NodeName=") or value.after.startswith("NodeName=")
        for one in objects
        for value in one.values
    )
    advice = "restart slurmctld and slurmd for it" if has_nodes else "scontrol reconfigure reads it"
    return ClusterDiff("slurm", tuple(objects), advice=(f"{advice}; running jobs go on",))
