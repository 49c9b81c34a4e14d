"""From a folder to a designed fabric, with every problem placed at its line."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netkit import design, intent
from netkit.cli.terminal.annotation import annotate
from netkit.design import Fabric
from netkit.errors import IntentError, NetkitError, Problem, UsageError
from netkit.errors import Path as IntentPath
from netkit.hardware import Catalog
from netkit.intent import Loaded

MODELS, TEMPLATES, CHECKS, PLAYBOOKS = "models", "templates", "checks", "playbooks"


@dataclass(frozen=True, slots=True)
class Project:
    """A fabric and the folders its user keeps beside it."""

    loaded: Loaded
    catalog: Catalog
    fabric: Fabric
    template_folders: tuple[Path, ...]


def open_project(folder: Path, workplace: Path | None = None) -> Project:
    """Load and design a fabric, or report the problems of both stages together.

    Templates and models of the workplace count too, by default the current folder.
    """
    try:
        loaded = intent.load(folder)
    except IntentError as error:
        raise IntentError(_in_order([*error.problems, *_further(folder, error.problems)])) from None
    catalog = Catalog(beside(loaded.folder, MODELS, workplace))
    try:
        fabric = design.build(loaded.intent, catalog)
    except NetkitError as error:
        error.problems = _in_order(map(loaded.places.locate, error.problems))
        raise
    return Project(loaded, catalog, fabric, beside(loaded.folder, TEMPLATES, workplace))


def _further(folder: Path, known: Sequence[Problem]) -> Iterator[Problem]:
    """Yield what the design of a refused intent would object to, apart from what follows from the known problems."""
    drafted = intent.draft(folder) if all(problem.path for problem in known) else None
    if drafted is None:
        return
    try:
        design.build(drafted.intent, Catalog(beside(drafted.folder, MODELS)))
    except NetkitError as error:
        for problem in map(drafted.places.locate, error.problems):
            if not any(_is_within(problem.path, other.path) or _is_within(other.path, problem.path) for other in known):
                yield problem


def _is_within(path: IntentPath, other: IntentPath) -> bool:
    return path[: len(other)] == other


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line)))


def beside(folder: Path, name: str, workplace: Path | None = None) -> tuple[Path, ...]:
    """Return the user's folders of a name: in the fabric's own folder, beside `inventory/`, and where netkit is run."""
    here = folder.resolve()
    places = (
        here / name,
        *((here.parent.parent / name,) if here.parent.name == "inventory" else ()),
        (workplace or Path.cwd()) / name,
    )
    return tuple(dict.fromkeys(place for place in places if place.is_dir()))


def warn(project: Project, *, notes: bool = False) -> None:
    """Print the warnings of the design, and on request what is merely worth knowing."""
    wanted = [note for note in project.fabric.notes if notes or note.severity == "warning"]
    located = [project.loaded.places.locate(note) for note in wanted]
    for note in located:
        sys.stderr.write(f"{note.severity}: {note}\n")
    annotate(located)


def check_format(output: str) -> None:
    """Refuse an output format netkit does not have."""
    if output not in {"text", "json"}:
        raise UsageError(Problem(f"no output format {output!r}", "use text or json"))
