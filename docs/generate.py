"""Write the pages that are generated from the code: intent, checks, facts, faults, hardware, verbs."""

import sys
import types
import typing
from pathlib import Path
from typing import Any

import fact_page
import fault_page
import hardware_page
import verb_page
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from netkit.intent.model import Intent
from netkit.intent.scalars import FromFile, OneOf, ShortForm
from netkit.judge import Check, catalog

HERE = Path(__file__).parent
HEAD = """# Intent reference

A fabric is a folder with a `fabric.yaml`. `overrides.yaml` beside it can contain the `overrides:` of many devices, to
keep `fabric.yaml` short, and [tables](tables.md) contain names and numbers of your own. [Files and folders](files.md)
lists the other files. This page is generated from the schema (`scripts/docs`); `netkit schema` prints the schema for
editors.

A **count** is a number (`8` means slots 1 to 8) or a slot list (`1-3,5-8`, or `[1, 2, 3, 5-8]`). The numbers of a
device follow from its slot, so an omitted slot does not renumber other devices.
"""


def sections(model: type[BaseModel], title: str, seen: set[type[BaseModel]]) -> typing.Iterator[str]:
    """Yield the table of a model, then those of the models in it."""
    if model in seen:
        return
    seen.add(model)
    yield f"\n## {title}\n\n{(model.__doc__ or '').strip()}\n\n"
    yield "| key | type | default | meaning |\n| --- | --- | --- | --- |\n"
    inner: list[tuple[type[BaseModel], str]] = []
    for name, field in model.model_fields.items():
        yield f"| `{name}` | {type_name(field.annotation, field)} | {default(field)} | {field.description or ''} |\n"
        inner += [
            (found, f"{title}.{name}" if title != "fabric.yaml" else name) for found in models_in(field.annotation)
        ]
    for found, name in inner:
        yield from sections(found, name, seen)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Find the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in models_in(part)]


def type_name(annotation: Any, field: FieldInfo | None = None) -> str:
    """Name a type in terms of YAML."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if field is not None and annotation == tuple[int, ...] and field.metadata:
        return "count" if "count" in repr(field.metadata) else "numbers"
    choice = next((one for one in (field.metadata if field else ()) if isinstance(one, OneOf)), None)
    if choice is not None:
        return " \\| ".join(f"`{name}`" for name in choice.table)
    if field is not None and any(isinstance(one, FromFile) for one in field.metadata):
        return "CSV file, or list of section"
    name = getattr(annotation, "__name__", str(annotation))
    is_short = any(isinstance(one, ShortForm) for one in arguments)
    is_section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    known = {"str": "text", "int": "number", "float": "number", "bool": "true \\| false"}
    plain = "section" if is_section else known.get(name, name.replace("IPv4", "IPv4 ").lower())
    generic = {
        typing.Literal: lambda: " \\| ".join(f"`{value}`" for value in arguments),
        typing.Union: lambda: type_name(next(part for part in arguments if part is not type(None))),
        types.UnionType: lambda: type_name(next(part for part in arguments if part is not type(None))),
        tuple: lambda: f"list of {type_name(arguments[0])}",
        dict: lambda: f"map of {type_name(arguments[0])} to {type_name(arguments[1])}",
        typing.Annotated: lambda: ("text or " if is_short else "") + type_name(arguments[0]),
    }
    return generic[origin]() if origin in generic else plain


def default(field: FieldInfo) -> str:
    """Format a default as YAML; empty if there is none."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or value is None or isinstance(value, BaseModel) or value in ((), {}, ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def intent_page() -> str:
    """docs/intent.md."""
    return HEAD + "".join(sections(Intent, "fabric.yaml", set()))


CATALOGUE = """# The checks

Generated from the checks (`scripts/docs`). `netkit check NAME` runs one check, `netkit check FILE` all checks of a
file.
"""


def catalogue_page() -> str:
    """docs/check-catalogue.md."""
    found = catalog.load().values()
    files = dict.fromkeys(check.name.partition(".")[0] for check in found)
    return CATALOGUE + "".join(
        _checks(file, [one for one in found if one.name.startswith(f"{file}.")]) for file in files
    )


def _checks(file: str, found: list[Check]) -> str:
    return f"\n## {file}\n" + "".join(_check(check) for check in found)


def _check(check: Check) -> str:
    on = {"switch": "switches", "host": "hosts", "device": "all devices"}[check.on]
    needs = ", ".join(kind.replace("_", " ") for kind in check.needs) or "no particular facts"
    window = "; counters over a window" if check.has_window else ""
    about = "the whole fabric" if check.of_fabric else on
    return f"\n### {check.name}\n\n{check.text}\n\nScope: {about}. Needs: {needs}{window}.\n"


def pages() -> dict[Path, str]:
    """Generate all pages."""
    return {
        HERE / "intent.md": intent_page(),
        HERE / "check-catalogue.md": catalogue_page(),
        HERE / "fact-catalogue.md": fact_page.page(),
        HERE / "faults.md": fault_page.page(),
        HERE / "hardware.md": hardware_page.page(),
        **verb_page.pages(),
    }


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
    for verb in verb_page.verb_names():
        if not verb_page.examples().get(verb, {}).get("examples"):
            sys.stderr.write(f"docs/verbs/examples.yaml: no example of netkit {verb} yet\n")
