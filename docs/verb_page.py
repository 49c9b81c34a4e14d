"""A page for each verb of the command line, from the options of its function and docs/verbs/examples.yaml."""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.models import ArgumentInfo, OptionInfo

from netkit.cli.app import app

FOLDER = Path(__file__).parent / "verbs"
EXAMPLES = FOLDER / "examples.yaml"
ALWAYS = {0: "success", 3: "invalid input or command line", 70: "a defect of netkit"}
HEAD = """# The verbs

Generated from the command line (`scripts/docs`), in the order of first use. `netkit VERB --help` prints a short
version. `netkit --install-completion` installs shell completion.

| verb | description |
| --- | --- |
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or argument."""

    names: tuple[str, ...]
    metavar: str
    meaning: str
    default: Any
    is_option: bool

    @property
    def is_required(self) -> bool:
        """Whether the verb requires it."""
        return self.default is inspect.Parameter.empty

    @property
    def shown(self) -> str:
        """The parameter as typed."""
        value = self.metavar if not self.names or not self.metavar or "=" in self.metavar else f" {self.metavar}"
        return f"{self.names[0] if self.names else ''}{value}"


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb with its parameters."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The content of one page: a verb or a group of verbs."""

    name: str
    text: str
    verbs: tuple[Verb, ...]


def pages() -> dict[Path, str]:
    """Generate all pages of docs/verbs, and their index."""
    found = [*map(_alone, app.registered_commands), *map(_group, app.registered_groups)]
    known = examples()
    texts = {FOLDER / f"{page.name}.md": "".join(_page(page, known)) for page in found}
    rows = "".join(f"| [{page.name}]({page.name}.md) | {page.text} |\n" for page in found)
    return {FOLDER / "README.md": HEAD + rows, **texts}


def examples() -> Mapping[str, Any]:
    """Load docs/verbs/examples.yaml."""
    found: Mapping[str, Any] = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    return found


def verb_names() -> tuple[str, ...]:
    """List all verbs; a verb of a group is prefixed with the name of the group."""
    alone = [_alone(command).name for command in app.registered_commands]
    grouped = [verb.name for group in app.registered_groups for verb in _group(group).verbs]
    return (*alone, *grouped)


def _alone(command: Any) -> Page:
    verb = _verb(command, "")
    return Page(verb.name, verb.text, (verb,))


def _group(group: Any) -> Page:
    inner = group.typer_instance
    verbs = tuple(_verb(command, f"{group.name} ") for command in inner.registered_commands)
    return Page(group.name, str(inner.info.help), verbs)


def _verb(command: Any, group: str) -> Verb:
    function: Callable[..., Any] = command.callback
    name = command.name or function.__name__.rstrip("_").replace("_", "-")
    hints = typing.get_type_hints(function, include_extras=True)
    given = inspect.signature(function).parameters.values()
    parameters = (_parameter(one.name, hints[one.name], one.default) for one in given)
    return Verb(f"{group}{name}", inspect.getdoc(function) or "", tuple(parameters))


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    """Build a parameter. Typer stores the first name of an annotated option as its default."""
    info: ArgumentInfo | OptionInfo = hint.__metadata__[0]
    if isinstance(info, ArgumentInfo):
        metavar = (info.metavar or name.upper()).removeprefix("[")
        metavar = metavar.removesuffix("]") if info.metavar != metavar else metavar
        return Parameter((), metavar, str(info.help), default, is_option=False)
    names = tuple(one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str))
    is_flag = hint.__origin__ is bool
    metavar = "" if is_flag else info.metavar or _metavar(hint.__origin__)
    return Parameter(names or (f"--{name.replace('_', '-')}",), metavar, str(info.help), default, is_option=True)


def _metavar(kind: Any) -> str:
    return {Path: "DIR", int: "N", float: "N"}.get(kind, "TEXT")


def _page(page: Page, known: Mapping[str, Any]) -> Iterator[str]:
    is_group = len(page.verbs) > 1
    yield f"# netkit {page.name}\n\n{page.text}\n"
    more = known.get(page.name, {}).get("more", {})
    yield f"\nMore: {' · '.join(f'[{title}]({file})' for title, file in more.items())}\n" if more else ""
    for verb in page.verbs:
        if is_group:
            yield f"\n## netkit {verb.name}\n\n{verb.text}\n"
        yield from _body(verb, known.get(verb.name, {}))


def _body(verb: Verb, known: Mapping[str, Any]) -> Iterator[str]:
    required = (one.shown for one in verb.parameters if one.is_required)
    optional = (f"[{one.shown}]" for one in verb.parameters if not one.is_option and not one.is_required)
    has_options = any(one.is_option and not one.is_required for one in verb.parameters)
    words = ("netkit", verb.name, *required, *optional, *(["[OPTIONS]"] if has_options else []))
    yield f"\n```\n{' '.join(words)}\n```\n"
    if verb.parameters:
        yield "\n| | default | meaning |\n| --- | --- | --- |\n"
        yield from map(_row, sorted(verb.parameters, key=lambda one: one.is_option))
    if "examples" in known:
        width = max(map(len, known["examples"]))
        lines = (f"{command:<{width}}  # {what}\n" for command, what in known["examples"].items())
        yield f"\n```\n{''.join(lines)}```\n"
    yield f"\nExit codes: {_codes({**ALWAYS, **known.get('exits', {})})}\n"


def _row(one: Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in (*one.names[1:], one.shown))
    cells = (cell.replace("|", r"\|") for cell in (names, _default(one), one.meaning))
    return f"| {' | '.join(cells)} |\n"


def _default(one: Parameter) -> str:
    if one.is_required:
        return "required"
    if one.default in (None, False, "", 0):
        return ""
    return f"`{one.default:g}`" if isinstance(one.default, float) else f"`{one.default}`"


def _codes(codes: Mapping[int, str]) -> str:
    return " · ".join(f"{code}: {codes[code]}" for code in sorted(codes, key=str))
