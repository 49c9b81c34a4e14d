"""Reading notify.yaml, with every problem at its line."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from netkit.errors import IntentError, NotifyError, Problem
from netkit.intent import complaint, document
from netkit.notify.settings import FILE, KINDS, Flapping, NotifySettings

TAGS = {"union_tag_invalid", "union_tag_not_found", "model_attributes_type"}
RECEIVERS = "receivers"


def load(folder: Path) -> NotifySettings:
    """Read notify.yaml in a fabric folder. NotifyError tells every problem."""
    file = folder / FILE
    if not file.exists():
        raise NotifyError(Problem("nobody is named who is to be told", "name receivers in it", file=str(file)))
    try:
        found = document.read(file)
    except IntentError as error:
        raise NotifyError(error.problems) from None
    if not isinstance(found.value, dict):
        raise NotifyError(Problem("holds no settings", "write `key: value` lines", file=found.file, line=1))
    problems = list(found.problems)
    settings = NotifySettings()
    try:
        settings = NotifySettings.model_validate(found.value)
    except ValidationError as error:
        problems += _problems(error, found)
    if not problems and not settings.receivers:
        problems = [Problem("nobody is named who is to be told", "list receivers", (RECEIVERS,), found.file, 1)]
    if problems:
        raise NotifyError(sorted(problems, key=lambda problem: problem.line))
    return settings


def _problems(error: ValidationError, found: document.Document) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        told = _unknown(detail) or _kindless(detail) or _unrepeated(detail) or complaint.problem(detail)
        path = _path(detail)
        heads = (path[:length] for length in range(len(path), -1, -1))
        line = next((found.lines[head] for head in heads if head in found.lines), 1)
        yield Problem(told.message, told.remedy, path, found.file, line)


def _path(detail: ErrorDetails) -> tuple[int | str, ...]:
    """Return where a value stands in the file: the kind of a receiver is no level of it."""
    path = tuple(detail["loc"])
    is_tagged = path[:1] == (RECEIVERS,) and len(path) > 2 and path[2] in KINDS
    return (*path[:2], *path[3:]) if is_tagged else path


def _unknown(detail: ErrorDetails) -> Problem | None:
    if detail["type"] != "extra_forbidden":
        return None
    known = ", ".join(sorted(_model(tuple(detail["loc"])).model_fields))
    return Problem(f"unknown key {complaint.shown(str(detail['loc'][-1]))}", f"known keys here: {known}")


def _model(path: tuple[int | str, ...]) -> type[BaseModel]:
    if path[0] == "flapping":
        return Flapping
    return KINDS[str(path[2])] if path[0] == RECEIVERS and len(path) > 3 else NotifySettings


def _kindless(detail: ErrorDetails) -> Problem | None:
    if detail["type"] not in TAGS:
        return None
    return Problem("has no kind that is known", f"give kind: one of {', '.join(KINDS)}")


def _unrepeated(detail: ErrorDetails) -> Problem | None:
    """Return what is wrong with a value that may be a secret, or the name of one, without repeating it."""
    key = str(detail["loc"][-1])
    if detail["type"] != "string_pattern_mismatch":
        return None
    if key.endswith("_secret"):
        return Problem("is no name of a secret", "write a name, as NOC_HOOK of NETKIT_SECRET_NOC_HOOK")
    wanted = "letters, digits, `.`, `_` and `-`" if key == "name" else "one address, as noc@example.net"
    return Problem("cannot be used", f"write {wanted}")
