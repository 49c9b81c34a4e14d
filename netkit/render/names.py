"""Names and values that the templates of a device can use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from netkit.design.fabric import Fabric, Host, Switch
from netkit.render.engine import Engine
from netkit.render.render import inputs

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
