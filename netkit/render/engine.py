"""The template engine: sandboxed, strict, with errors that name file and line."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import yaml
from jinja2 import (
    BytecodeCache,
    ChoiceLoader,
    FileSystemLoader,
    FunctionLoader,
    PrefixLoader,
    StrictUndefined,
    Template,
    TemplateNotFound,
    TemplateSyntaxError,
    UndefinedError,
    meta,
    nodes,
    pass_eval_context,
)
from jinja2.bccache import Bucket
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from netkit.errors import NetkitError, Problem, RenderError
from netkit.platforms import PLATFORMS, registry
from netkit.platforms.ownership import OWNS, RENAMED, shipped_templates

_UNDEFINED = re.compile(r"'(\w+)' is undefined|has no attribute '(\w+)'")
_LAST_COMMA = re.compile(r",(?=\n\s*[}\]])")  # JSON strings have no line breaks, so this never matches inside one
LARGEST_PRODUCT = 100_000
EXTRA = "files"
LARGEST_TEXT = 32 * 1024 * 1024


def _of_package(name: str) -> tuple[str, str, None] | None:
    """Load a template from a platform's package: `acme/x.j2` is `templates/acme/x.j2` next to its code."""
    platform = name.partition("/")[0]
    if platform in registry.OWN or platform not in PLATFORMS:
        return None
    folder = Path(registry.part(platform, "").__file__).parent / "templates"
    file = folder / name
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        return None
    return file.read_text(encoding="utf-8"), str(file), None


class CompiledTemplates(BytecodeCache):
    """The last version of each template that this process compiled: all engines compile alike."""

    def __init__(self) -> None:
        self._code: dict[str, tuple[str, CodeType | None]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        checksum, code = self._code.get(bucket.key, ("", None))
        bucket.code = code if checksum == bucket.checksum else None

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.checksum, bucket.code


_COMPILED = CompiledTemplates()


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, with a shortcut for netkit's own frozen types, which are pure data and need no checks."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, folders: tuple[Path, ...]) -> None:
        shipped = PrefixLoader({"netkit": FileSystemLoader(shipped_templates())})
        loader = ChoiceLoader([*map(FileSystemLoader, folders), shipped, FunctionLoader(_of_package)])
        super().__init__(
            loader=loader,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
            bytecode_cache=_COMPILED,
            autoescape=False,  # configurations, not web pages
            optimized=False,  # there are no constants to compute, and looking for them takes a sixth of the time
        )
        self.policies["json.dumps_kwargs"] = {"sort_keys": False}
        del self.globals["lipsum"], self.filters["random"]  # they are not deterministic
        self.filters |= {"listed": _listed, "join": _join(self.filters["join"])}
        self._known: dict[type, frozenset[str]] = {}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _refuse_loops_over_one_value(tree, {})
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An attribute; types of netkit's own bypass the checks of the sandbox."""
        kind = type(obj)
        known = self._known.get(kind)
        if known is None:
            is_own = kind.__module__.startswith("netkit.")
            names = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())} if is_own else set()
            known = self._known[kind] = frozenset(name for name in names if not name.startswith("_"))
        return getattr(obj, attribute) if attribute in known else super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Limit products: no template needs a gigabyte of spaces."""
        for thing, times in ((left, right), (right, left)):
            if isinstance(thing, Sized) and isinstance(times, int) and len(thing) * times > LARGEST_PRODUCT:
                raise SecurityError(f"the product {operator} is too large for a template")
        if operator == "**":
            raise SecurityError("templates have no powers")
        return super().call_binop(context, operator, left, right)


def _refuse_loops_over_one_value(node: nodes.Node, loops: Mapping[str, str]) -> None:
    """Check the iterable of each loop: optional values used to be lists of one or none, and old overrides still loop.

    Without the check, a loop over the letters of a string would render a wrong configuration silently.
    """
    for child in node.iter_child_nodes():
        inner = loops
        if isinstance(child, nodes.For):
            target, over = _spelled(child.target), _spelled(child.iter)
            if "…" in over:
                _refuse_loops_over_one_value(child, loops)
                continue
            if over in loops:
                remedy = f"write one loop: {{% for {target} in {loops[over]} %}}"
            else:
                inside = "" if target == "_" else f", and {over} instead of {target} in it"
                remedy = f"write {{% if {over} %}} … {{% endif %}}{inside}"
            inner = {**loops, target: over}
            names = len(child.target.items) if isinstance(child.target, nodes.Tuple) else 1
            args: list[nodes.Expr] = [nodes.Const(over), nodes.Const(target), nodes.Const(names), nodes.Const(remedy)]
            child.iter = nodes.Filter(child.iter, "listed", args, [], None, None, lineno=child.lineno)
            child.iter.set_environment(child.environment)  # type: ignore[arg-type]  # the parser has set it
        _refuse_loops_over_one_value(child, inner)


def _spelled(node: nodes.Node) -> str:
    if isinstance(node, nodes.Getattr):
        return f"{_spelled(node.node)}.{node.attr}"
    if isinstance(node, nodes.Tuple):  # rows used to have a separate comma
        return ", ".join(spelled for one in node.items if (spelled := _spelled(one)) not in {"comma", "_"})
    return node.name if isinstance(node, nodes.Name) else "…"


def _listed(value: Any, over: str, target: str, names: int, remedy: str) -> Any:
    """The iterable of a loop; RenderError for a single value, or rows of the wrong length."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise RenderError(Problem(f"{over} is not a list", remedy))
    first = value[0] if isinstance(value, tuple) and value else (None,) * names
    if names > 1 and not (isinstance(first, tuple) and len(first) == names):
        row = f"write {{% for {target} in {over} %}}" if remedy.startswith("write {% if") else remedy
        raise RenderError(Problem(f"{over} is not a list of items with {names} values", row))
    return value


def _join(join: Callable[..., str]) -> Callable[..., str]:
    """Wrap Jinja's filter `join` to refuse a string, whose letters it would join."""

    @pass_eval_context
    def join_list(context: nodes.EvalContext, value: Any, *args: Any, **options: Any) -> str:
        if isinstance(value, str):
            raise RenderError(Problem(f"'{value}' is joined and is not a list", "write the value without join"))
        return join(context, value, *args, **options)

    return join_list


class Engine:
    """Renders templates by name; files in the user's folders take precedence over netkit's.

    `netkit/NAME` is always netkit's own, so that a user's template can include and extend it.
    """

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        self.folders = (*(folder for folder in folders if folder.is_dir()), shipped_templates())
        self.environment = Sandbox(self.folders)
        shipped = shipped_templates().resolve()
        self._own_folders = tuple(folder for folder in self.folders if folder.resolve() != shipped)
        for file in (file for folder in self.folders for file in folder.glob(f"*/{OWNS}")):
            ours = shipped_templates() / file.parent.name / OWNS
            if not ours.is_file() or file.read_bytes() != ours.read_bytes():
                message = "a file cannot change which configuration netkit owns"
                remedy = f"remove it; {ours} lists the paths that plan and deploy compare"
                raise RenderError(Problem(message, remedy, file=str(file)))
        self._templates: dict[str, Template] = {}

    def render(self, name: str, context: Mapping[str, Any], device: str) -> str:
        try:
            template = self._templates.get(name)
            if template is None:
                template = self._templates[name] = self.environment.get_template(name)
            text = template.render(context)
        except TemplateSyntaxError as error:
            place = error.filename or name
            raise self._failure(
                place, error.lineno, error.message or "syntax error", device, "correct this line"
            ) from None
        except TemplateNotFound as error:
            message = f"includes {error.name}, which no template folder has"
            raise self._failure(name, 0, message, device, "check the name; parent folders are not accessible") from None
        except UndefinedError as error:
            file, line = self._place(error.__traceback__, name)
            raise self._failure(file, line, str(error), device, _remedy(self._folder(file, name), str(error))) from None
        except Exception as error:  # any error of a template is reported with its place, never as a traceback
            file, line = self._place(error.__traceback__, name)
            remedy = error.problems[0].remedy if isinstance(error, NetkitError) else ""
            raise self._failure(file, line, _message(error), device, remedy or "fix or remove this template") from None
        if len(text) > LARGEST_TEXT:
            raise self._failure(
                name, 0, f"makes {len(text):,} characters", device, f"no file needs more than {LARGEST_TEXT:,}"
            )
        return self._json(name, text, device) if name.endswith(".json.j2") else text

    def _json(self, name: str, text: str, device: str) -> str:
        """Remove the comma after the last row: templates end each row with one.

        The output of a user's templates is also parsed, so that it does not fail on the switch.
        """
        text = _LAST_COMMA.sub("", text)
        if self._own_folders:
            remedy = "end each row with one comma, the last one too"
            try:
                json.loads(text)
            except json.JSONDecodeError as error:
                near = text.split("\n")[error.lineno - 1].strip()[:60]
                message = f"renders a file that is not JSON: {error.msg} in its line {error.lineno}, {near!r}"
                raise self._failure(name, 0, message, device, remedy) from None
            except (ValueError, RecursionError):
                raise self._failure(name, 0, "renders a file that cannot be parsed as JSON", device, remedy) from None
        return text

    def source(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Find the file of a template, and the templates it includes."""
        try:
            text, path, _ = self.environment.loader.get_source(self.environment, name)  # type: ignore[union-attr]  # it has one
            tree = self.environment.parse(text, name, path)
        except TemplateNotFound:
            raise self._failure(name, 0, "does not exist", "", "check the name") from None
        except TemplateSyntaxError as error:
            message = error.message or "syntax error"
            raise self._failure(error.filename or name, error.lineno, message, "", "correct this line") from None
        return path or name, tuple(one for one in meta.find_referenced_templates(tree) if one)

    def extra_files(self, folder: str) -> dict[str, str]:
        """List the user's additional files for devices of a platform, with their templates."""
        found = (file for one in reversed(self._own_folders) for file in sorted((one / folder / EXTRA).glob("*.j2")))
        return {file.name.removesuffix(".j2"): f"{folder}/{EXTRA}/{file.name}" for file in found}

    def _place(self, trace: TracebackType | None, name: str) -> tuple[str, int]:
        """Find the innermost template file and line of a traceback."""
        file, line = name, 0
        while trace is not None:
            filename = trace.tb_frame.f_code.co_filename
            if any(Path(filename).is_relative_to(folder) for folder in self.folders):
                file, line = filename, trace.tb_lineno
            trace = trace.tb_next
        return file, line

    def _folder(self, file: str, name: str) -> str:
        found = (Path(file).relative_to(one) for one in self.folders if Path(file).is_relative_to(one))
        return next(found, Path(name)).parts[0]

    def _failure(self, file: str, line: int, message: str, device: str, remedy: str = "") -> RenderError:
        whole = f"{message} (device {device})" if device else message
        return RenderError(Problem(whole, remedy, file=str(file), line=line))


def _remedy(folder: str, message: str) -> str:
    found = _UNDEFINED.search(message)
    file = shipped_templates() / folder / RENAMED
    if found and file.is_file():
        renamed = yaml.safe_load(file.read_text(encoding="utf-8")).get(found[1] or found[2])
        if renamed:
            return f"write {renamed}"
    return "check the name against netkit's own template"


def _message(error: Exception) -> str:
    if isinstance(error, NetkitError):
        return error.problems[0].message
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
