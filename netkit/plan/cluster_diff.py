"""What a change of the intent alters for clusters: objects and lines of their files, and the affected nodes."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import yaml

from netkit.design.clusters import Cluster, ClusterOwner
from netkit.errors import Problem, RenderError
from netkit.platforms.config import Files
from netkit.render.kubernetes import parse_quantity

Action = Literal["added", "removed", "changed"]
Object = Mapping[str, Any]
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ObjectKey(NamedTuple):
    """What identifies an object."""

    kind: str
    namespace: str
    name: str
    group: str | None
    """The API group; None if the object does not have it, as in a list of one kind."""


NAMES = ("nodeName", "name", "prefix", "key", "dst")
"""Fields that identify an item of a list, the most specific first."""
QUANTITIES = frozenset(
    {
        "nominalQuota",
        "borrowingLimit",
        "lendingLimit",
        "capability",
        "deserved",
        "guarantee",
        "requests",
        "limits",
        "hard",
        "capacity",
        "allocatable",
    }
)
"""Fields whose values, or those below them, are amounts of resources."""
LABELS = "metadata.labels."
BRACKETS = re.compile(r"\[([^\[\]]*)\]")
DRAINED = frozenset({"SriovNetworkNodePolicy", "NicConfigurationTemplate", "NicInterfaceNameTemplate"})
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
    """Nodes whose pods keep the old values until they restart."""
    advice: tuple[str, ...] = ()


def compare_cluster(
    kind: str, before: Files, after: Files, nodes: Sequence[str], new: Sequence[str] = ()
) -> ClusterDiff | None:
    """Compare the files of a cluster; None if they are the same. `nodes` are those before; `new` ones run no pods."""
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if not changed:
        return None
    if kind == "slurm":
        old, new_files = ({name: files[name] for name in changed if name in files} for files in (before, after))
        return _of_slurm(old, new_files)
    return _of_kubernetes(kind, before, after, nodes, new)


def rendered_objects(files: Files) -> tuple[ObjectKey, ...]:
    """What identifies the rendered objects."""
    return tuple(key for key, one in _objects(files).items() if _is_object(one))


def compare_running(
    live: Iterable[Object],
    files: Files,
    nodes: Sequence[str],
    *,
    unread: Collection[str] = (),
    owner: ClusterOwner | None = None,
) -> ClusterDiff | None:
    """Compare the objects that a Kubernetes cluster runs with rendered files; None if it has all of their values.

    Values that only the cluster has are its own: defaults, status, labels and objects of others. With `owner`, those
    that its fabric rendered before and renders no longer are found too. `unread` are kinds, as `qualified` names them.
    """
    running = _Running(live)
    rendered = {key: one for key, one in _objects(files).items() if _is_object(one)}
    changes: dict[ObjectKey, _Change] = {}
    for key, whole in sorted(rendered.items(), key=_order):
        wanted = {name: value for name, value in whole.items() if name != "apiVersion"}  # lists leave it out
        known = running.find(key)
        if qualified(key.kind, key.group) in unread or key.kind in unread:
            continue
        if known is None:
            changes[key] = _Change(ObjectChange(title(key), "added"), None, whole)
        elif values := tuple(value_changes(_shared(known, wanted), wanted)):
            changes[key] = _Change(ObjectChange(title(key), "changed", values), known, whole)
    left = _left(running, rendered, owner) if owner else {}
    merged = dict(sorted(_merged(changes, left).items(), key=_order))
    if not merged:
        return None
    labels = _labels(rendered)
    here = [node for node in nodes if node in running.nodes] if running.nodes else list(nodes)
    here += [key.name for key in left if key.kind == "Node" and key.name not in here]
    kept = [whole for key, whole in rendered.items() if key not in merged and running.find(key) is not None]
    diff = _with_nodes("kubernetes", merged, here, (), ({**labels, **running.labels}, labels), kept)
    deletions = _deletions({key: left[key].shown for key in sorted(left, key=lambda key: _order((key, None)))})
    return replace(diff, advice=(*diff.advice, *deletions))


def _left(running: "_Running", rendered: Mapping[ObjectKey, Object], owner: ClusterOwner) -> "dict[ObjectKey, _Change]":
    """The objects of a fabric, and the labels of its nodes, that are not rendered any more."""
    names = {key[:3] for key in rendered}
    found: dict[ObjectKey, _Change] = {}
    for key, one in running.by_key.items():
        if key.kind == "Node":
            if values := tuple(_left_labels(one, rendered.get(key._replace(group="")), owner)):
                found[key._replace(group="")] = _Change(ObjectChange(title(key), "changed", values), one, None)
        elif _is_own(one, owner) and key not in rendered and (key.group is not None or key[:3] not in names):
            found[key] = _Change(ObjectChange(title(key), "removed"), one, None)
    return found


def _is_own(one: Object, owner: ClusterOwner) -> bool:
    """Report whether an object was rendered. Those with an owner are made by controllers, which may copy labels."""
    return owner.labels.items() <= _labels_of(one).items() and not _metadata(one).get("ownerReferences")


def _left_labels(node: Object, rendered: Object | None, owner: ClusterOwner) -> Iterator[ValueChange]:
    """Yield the labels that a node has from its fabric alone."""
    labels = _labels_of(node)
    if rendered is None and labels.get(owner.of_fabric) != owner.fabric:
        return
    for key in sorted(labels.keys() - _labels_of(rendered or {}).keys()):
        if owner.has_node_label(key):
            yield ValueChange(f"{LABELS}{key}", labels[key], "")


def _merged(changes: "Mapping[ObjectKey, _Change]", left: "Mapping[ObjectKey, _Change]") -> "dict[ObjectKey, _Change]":
    """Unite the labels that a node lacks with those that it has left."""
    merged = {**changes, **left}
    for key in changes.keys() & left.keys():
        values = (*changes[key].shown.values, *left[key].shown.values)
        shown = replace(changes[key].shown, values=tuple(sorted(values, key=lambda one: one.path)))
        merged[key] = replace(changes[key], shown=shown)
    return merged


def qualified(kind: str, group: str | None) -> str:
    """Name a kind as kubectl does."""
    return f"{kind}.{group}" if group else kind


class _Running:
    """The objects of a cluster; where the API group of one is not known, its kind and name find it."""

    def __init__(self, live: Iterable[Object]) -> None:
        self.by_key = {_key(one): one for one in live}
        self.by_name = {key[:3]: one for key, one in self.by_key.items()}
        self.nodes = {key.name for key in self.by_key if key.kind == "Node"}
        self.labels = {key.name: _labels_of(one) for key, one in self.by_key.items() if key.kind == "Node"}

    def find(self, key: ObjectKey) -> Object | None:
        if key.group is None:
            return self.by_name.get(key[:3])
        return self.by_key.get(key) or self.by_key.get(key._replace(group=None))


def _shared(known: Any, wanted: Any, *, is_quantity: bool = False) -> Any:
    """The part of a live value that a rendered one has too; scalars are compared as text, amounts by value."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        return {
            key: _shared(known[key], value, is_quantity=is_quantity or key in QUANTITIES)
            for key, value in wanted.items()
            if key in known
        }
    if isinstance(known, list) and isinstance(wanted, list):
        old, new = _by_name(known), _by_name(wanted)
        return [_shared(value, new[name]) if name in new else value for name, value in old.items()]
    if is_quantity and (amount := parse_quantity(known)) is not None and amount == parse_quantity(wanted):
        return wanted
    return wanted if str(known) == str(wanted) else known


def nodes_of(clusters: Iterable[Cluster], kind: str) -> tuple[str, ...]:
    """The names of the nodes of a cluster of this kind."""
    return tuple(node.name for cluster in clusters if cluster.kind == kind for node in cluster.nodes)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change, and the object before and after it."""

    shown: ObjectChange
    before: Object | None
    after: Object | None


def _of_kubernetes(
    kind: str, before: Files, after: Files, nodes: Sequence[str], new: Sequence[str]
) -> ClusterDiff | None:
    old, now = _objects(before, "the earlier "), _objects(after)
    changes: dict[ObjectKey, _Change] = {}
    for key in sorted({*old, *now}, key=lambda key: _order((key, None))):
        if key not in old or key not in now:
            shown = ObjectChange(title(key), "added" if key in now else "removed")
        elif values := tuple(value_changes(old[key], now[key])):
            shown = ObjectChange(title(key), "changed", values)
        else:
            continue
        changes[key] = _Change(shown, old.get(key), now.get(key))
    kept = [one for key, one in now.items() if key in old and key not in changes]
    diff = _with_nodes(kind, changes, nodes, new, (_labels(old), _labels(now)), kept)
    gone = {key: one.shown for key, one in changes.items() if one.after is None and _is_object(one.before or {})}
    deletions = _deletions({key: one for key, one in gone.items() if key.kind != "Node"})
    others = tuple(
        _line_changes(
            *({name: text for name, text in files.items() if not _is_yaml(name)} for files in (before, after))
        )
    )
    return (
        replace(diff, objects=(*diff.objects, *others), advice=(*diff.advice, *deletions))
        if diff.objects or others
        else None
    )


Labels = Mapping[str, Mapping[str, str]]
"""Node → its labels as netkit renders them."""


def _with_nodes(
    kind: str,
    changes: Mapping[ObjectKey, _Change],
    nodes: Sequence[str],
    new: Sequence[str],
    labels: tuple[Labels, Labels],
    kept: Iterable[Object],
) -> ClusterDiff:
    """Add the nodes that are touched, of those that there are; `kept` are the objects that stay as they are."""
    drained: set[str] = set()
    restarted: set[str] = set()
    named = {*nodes, *new}
    for key, change in changes.items():
        if _has_new_labels_only(change.shown):
            continue
        if key.kind in DRAINED:
            drained |= _selected(change, nodes, labels)
        elif key.kind in RESTARTED and change.before is not None:
            restarted |= _touched(change.shown, named) or _selected(change, nodes, labels)
    ours = {*_keys(labels[0]), *_keys(labels[1])}
    for one in kept:
        if one.get("kind") in DRAINED:  # its operator configures a node that comes, and resets one that leaves
            before, after = ({node for node in nodes if _selects(one, known.get(node, {}), ours)} for known in labels)
            drained |= before ^ after
    relabelled = [change for key, change in changes.items() if key.kind == "Node" and _loses_labels(change.shown)]
    return ClusterDiff(
        kind,
        tuple(change.shown for change in changes.values()),
        tuple(one for one in nodes if one in drained),
        tuple(one for one in nodes if one in restarted),
        (PLACED,) if relabelled else (),
    )


def _has_new_labels_only(change: ObjectChange) -> bool:
    """Report whether only labels of the object itself differ, which operators do not look at."""
    return bool(change.values) and all(value.path.startswith(LABELS) for value in change.values)


def _deletions(gone: Mapping[ObjectKey, ObjectChange]) -> Iterator[str]:
    """Yield commands that delete what kubectl apply leaves: objects of a kind together, and labels of nodes."""
    objects: dict[tuple[str, str], list[str]] = {}
    labels: dict[tuple[str, ...], list[str]] = {}
    for key, change in gone.items():
        if key.kind == "Node":
            keys = tuple(f"{value.path.removeprefix(LABELS)}-" for value in change.values)
            labels.setdefault(keys, []).append(key.name)
        else:
            objects.setdefault((qualified(key.kind, key.group), key.namespace), []).append(key.name)
    if gone:
        yield LEFT
    for (kind, namespace), names in objects.items():
        yield shlex.join(("kubectl", "delete", kind, *(("-n", namespace) if namespace else ()), *names))
    for keys, names in labels.items():
        yield shlex.join(("kubectl", "label", "node", *names, *keys))


LEFT = "kubectl apply does not delete them; these commands do:"
PLACED = (
    "changed labels and taints of nodes count for new pods: those already placed stay, but for taints with NoExecute"
)


def _loses_labels(change: ObjectChange) -> bool:
    return change.action == "removed" or any(
        value.path.startswith("spec.taints") or (value.before and value.path.startswith("metadata.labels"))
        for value in change.values
    )


def _selected(change: _Change, nodes: Sequence[str], labels: tuple[Labels, Labels]) -> set[str]:
    """The nodes that an object selects, before or after its change."""
    found: set[str] = set()
    for one, known in zip((change.before, change.after), labels, strict=True):
        if one is not None:
            found |= {node for node in nodes if _selects(one, known.get(node, {}), _keys(known))}
    return found


def _keys(labels: Labels) -> Collection[str]:
    return {key for values in labels.values() for key in values}


def _selects(one: Object, labels: Mapping[str, str], ours: Collection[str]) -> bool:
    """Report whether an object's selector picks a node. Labels of others are not known, and exclude nothing."""
    spec = one.get("spec")
    selector = spec.get("nodeSelector") if isinstance(spec, dict) else None
    if not isinstance(selector, dict):
        return True
    terms = selector.get("nodeSelectorTerms")
    if not isinstance(terms, list):
        return all(labels.get(key) == str(value) for key, value in selector.items() if key in ours)
    return any(
        all(_matches(rule, labels) for rule in _dicts(term.get("matchExpressions")) if rule.get("key") in ours)
        for term in _dicts(terms)
    )


def _matches(rule: Object, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(rule.get("key"))), rule.get("values")
    listed = value is not None and value in [str(one) for one in (values if isinstance(values, list) else ())]
    wanted = {"Exists": value is not None, "DoesNotExist": value is None, "In": listed, "NotIn": not listed}
    return wanted.get(str(rule.get("operator")), True)


def _labels(objects: Mapping[ObjectKey, Object]) -> Labels:
    return {key.name: _labels_of(one) for key, one in objects.items() if key.kind == "Node" and not key.group}


def _labels_of(one: Object) -> Mapping[str, str]:
    labels = _metadata(one).get("labels")
    return {str(name): str(value) for name, value in labels.items()} if isinstance(labels, dict) else {}


def _dicts(value: Any) -> Iterator[Object]:
    yield from (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def _is_yaml(name: str) -> bool:
    return name.endswith((".yaml", ".yml", ".json"))


def _objects(files: Files, which: str = "") -> dict[ObjectKey, Object]:
    """The objects in YAML files. A document that is not an object goes by the name of its file."""
    found: dict[ObjectKey, Object] = {}
    for file, text in files.items():
        if not _is_yaml(file):
            continue
        for one in _documents(text, f"{which}kubernetes/{file}"):
            key = _key(one)
            found[key if _is_object(one) else key._replace(name=file)] = one
    return found


def _documents(text: str, file: str) -> Iterator[Object]:
    try:
        yield from (one for one in yaml.load_all(text, Loader) if isinstance(one, dict))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or next(iter(str(error).splitlines()), type(error).__name__)
        remedy = "correct its template: netkit render writes the file"
        line = mark.line + 1 if mark else 0
        raise RenderError(Problem(f"is not YAML: {why}", remedy, file=file, line=line)) from None


def _metadata(one: Object) -> Object:
    metadata = one.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is_object(one: Object) -> bool:
    return "kind" in one and "name" in _metadata(one)


def _key(one: Object) -> ObjectKey:
    metadata, version = _metadata(one), one.get("apiVersion")
    group = str(version).rpartition("/")[0] if version else None
    return ObjectKey(str(one.get("kind")), str(metadata.get("namespace", "")), str(metadata.get("name")), group)


def _order(item: tuple[ObjectKey, Any]) -> tuple[str, ...]:
    return tuple(part or "" for part in item[0])


def title(key: ObjectKey) -> str:
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


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


def _touched(change: ObjectChange, nodes: Collection[str]) -> set[str]:
    """The nodes whose entries alone changed; empty if a value of more than those changed."""
    named: set[str] = set()
    for value in change.values:
        found = {name for name in BRACKETS.findall(value.path) if name in nodes}
        if not found:
            return set()
        named |= found
    return named


def _of_slurm(before: Files, after: Files) -> ClusterDiff:
    objects = tuple(_line_changes(before, after))
    has_nodes = any(
        value.before.startswith("NodeName=") or value.after.startswith("NodeName=")
        for one in objects
        for value in one.values
    )
    advice = "restart slurmctld and slurmd to apply it" if has_nodes else "scontrol reconfigure applies it"
    return ClusterDiff("slurm", objects, advice=(f"{advice}; running jobs continue",))


def _line_changes(before: Files, after: Files) -> Iterator[ObjectChange]:
    for name in sorted({*before, *after}):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        if before.get(name) == after.get(name):
            continue
        gone = [ValueChange("", line, "") for line in old if line not in new]
        added = [ValueChange("", "", line) for line in new if line not in old]
        action: Action = "changed" if name in before and name in after else "added" if name in after else "removed"
        yield ObjectChange(name, action, (*gone, *added) if action == "changed" else ())
