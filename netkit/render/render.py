"""Fabric → the files of each device, and the names that its templates may use."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from netkit import __version__
from netkit.design.clusters import Cluster, KubernetesCluster
from netkit.design.fabric import Fabric, Host, PathRule, Switch
from netkit.errors import Problem, RenderError
from netkit.platforms import HOSTS, PLATFORMS, registry
from netkit.platforms.object_names import owned, renamed
from netkit.platforms.ownership import OWN_RULES, rules_text, static_routes
from netkit.render.engine import Engine
from netkit.render.output import Artifact, Rendered


def render(
    fabric: Fabric, devices: Iterable[Switch | Host], engine: Engine, *, ztp: bool = False, extra: bool = False
) -> Iterator[Rendered]:
    """Yield the files of each device; with `extra` also the user's additional files."""
    of = inputs(fabric, ztp=ztp)
    added = {folder: engine.extra_files(folder) for folder in (*PLATFORMS, "host")} if extra else {}
    for device in devices:
        artifacts = tuple(of(device))
        files = {
            artifact.file: engine.render(artifact.template, artifact.context, device.name) for artifact in artifacts
        }
        folder = device.platform if isinstance(device, Switch) else "host"
        if isinstance(device, Switch) and device.object_names:
            files = renamed(folder, files, device.object_names, ("switches", device.role))
        static = static_routes(folder) if fabric.routing.owns_static and isinstance(device, Switch) else ()
        leave, own = (_paths(rules, device.name) for rules in (fabric.leave, fabric.own))
        named = owned(folder, device.object_names) if isinstance(device, Switch) else ()
        if rules := rules_text(leave, (*own, *named), static):
            files[OWN_RULES] = rules
        _add_extra(files, added.get(folder, {}), artifacts[0], engine, device.name)
        yield Rendered(device.name, files, _about(device))


def _paths(rules: Iterable[PathRule], device: str) -> Iterator[str]:
    return (rule.path for rule in rules if rule.devices is None or device in rule.devices)


def _add_extra(files: dict[str, str], extra: Mapping[str, str], first: Artifact, engine: Engine, device: str) -> None:
    """Add the user's additional files, which get the values of the first file."""
    for file, template in extra.items():
        if file in files:
            message = f"{file} is one of netkit's own files"
            raise RenderError(Problem(message, f"override its template, such as {first.template}", file=template))
        if text := engine.render(template, first.context, device).lstrip("\n"):
            files[file] = text


def render_clusters(
    fabric: Fabric, clusters: Iterable[Cluster], engine: Engine, *, extra: bool = False, jobs: bool = False
) -> Iterator[Rendered]:
    """Yield the files of each cluster, in a folder named after its kind.

    With `extra` also the user's own; with `jobs` also acceptance jobs, which are not part of the cluster's state.
    """
    for cluster in clusters:
        artifacts = tuple(_of_cluster(fabric, cluster, jobs=jobs))
        files = {one.file: engine.render(one.template, one.context, cluster.kind) for one in artifacts}
        _add_extra(files, engine.extra_files(cluster.kind) if extra else {}, artifacts[0], engine, cluster.kind)
        yield Rendered(cluster.kind, files, {"role": "cluster", "platform": cluster.kind})


def _of_cluster(fabric: Fabric, cluster: Cluster, *, jobs: bool) -> Iterator[Artifact]:
    from netkit.render import kubernetes, slurm  # noqa: PLC0415 (most fabrics have no cluster)
    from netkit.render.job import job_artifacts  # noqa: PLC0415 (see above)

    if isinstance(cluster, KubernetesCluster):
        yield from kubernetes.artifacts(fabric, cluster)
    else:
        yield from slurm.artifacts(fabric, cluster)
    if jobs:
        yield from job_artifacts(fabric, cluster)


def inputs(fabric: Fabric, *, ztp: bool = False) -> Callable[[Switch | Host], Iterator[Artifact]]:
    """A function that yields the artifacts of a device; equal artifacts render to equal files."""
    of_host: Callable[[Host], Iterator[Artifact]] | None = None

    def of(device: Switch | Host) -> Iterator[Artifact]:
        nonlocal of_host
        if isinstance(device, Switch):
            view = registry.part(device.platform, "view")
            yield from view.artifacts(fabric, device)
            if ztp:
                yield from view.ztp(fabric, device)
        else:
            of_host = of_host or registry.part(HOSTS, "view").views(fabric)
            yield from of_host(device)

    return of


def manifest_head(fabric: Fabric) -> dict[str, Any]:
    return {"netkit": __version__, "fabric": fabric.name, "purpose": fabric.purpose}


def _about(device: Switch | Host) -> dict[str, Any]:
    if isinstance(device, Host):
        return {"role": "host", "platform": device.platform, "model": device.model.name}
    platform = PLATFORMS[device.platform]
    lacks = platform.not_expressed(device.model, device.version)
    return {
        "role": device.role,
        "platform": device.platform,
        "version": device.version,
        "model": device.model.name,
        **({"not_expressed": lacks} if lacks else {}),
    }


MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """A file of a device with its template, or an included template."""

    file: str
    template: str
    path: str


@dataclass(frozen=True, slots=True)
class TemplateName:
    """A name that templates can use, and its value on one device."""

    name: str
    value: str


def templates(fabric: Fabric, device: Switch | Host, engine: Engine) -> Iterator[TemplateFile]:
    """Yield the templates of a device in the order of their use, without duplicates."""
    seen: set[str] = set()
    for artifact in inputs(fabric, ztp=True)(device):
        pending = [artifact.template]
        while pending:
            name = pending.pop(0)
            if name not in seen:
                seen.add(name)
                path, included = engine.source(name)
                pending[:0] = included
                yield TemplateFile(artifact.file if name == artifact.template else "", name, path)


def names(fabric: Fabric, device: Switch | Host) -> Iterator[TemplateName]:
    """Yield all names that a device's templates can use, the fabric last; for a list, its length and first item."""
    given: dict[str, Any] = {}
    for artifact in inputs(fabric, ztp=True)(device):
        given = {**artifact.context, **given}
    seen: dict[int, str] = {}
    for name in sorted(given, key=lambda name: (name == "fabric", name not in {"switch", "host"}, name)):
        yield from _walk(name, given[name], seen)


def _walk(name: str, value: Any, seen: dict[int, str]) -> Iterator[TemplateName]:
    if isinstance(value, bool) or value is None:
        yield TemplateName(name, str(value).lower())
    elif isinstance(value, Mapping):
        yield TemplateName(name, f"mapping of {len(value)}")
    elif isinstance(value, tuple | list):
        if not value or not is_dataclass(value[0]):
            shown = ", ".join(map(str, value[:MOST_SHOWN]))
            yield TemplateName(name, f"[{shown}{', …' if len(value) > MOST_SHOWN else ''}]")
        else:
            yield TemplateName(name, f"list of {len(value)}")
            if not isinstance(value[0], Switch | Host):
                yield from _walk(f"{name}[0]", value[0], seen)
    elif is_dataclass(value) and not isinstance(value, type):
        if id(value) in seen:
            yield TemplateName(name, f"the same as {seen[id(value)]}")
            return
        seen[id(value)] = name
        yield from _members(name, value, seen)
    else:  # only the name of a hardware model
        label = f"{name}.name" if hasattr(value, "name") else name
        yield TemplateName(label, str(getattr(value, "name", value)))


def _members(name: str, value: Any, seen: dict[int, str]) -> Iterator[TemplateName]:
    kind = type(value)
    if kind.__module__.startswith("netkit.hardware"):
        if hasattr(value, "name"):
            yield TemplateName(f"{name}.name", str(value.name))
        return
    properties = (member for member, defined in vars(kind).items() if isinstance(defined, property))
    for member in (*(field.name for field in fields(value)), *properties):
        if not member.startswith("_"):
            yield from _walk(f"{name}.{member}", getattr(value, member), seen)
