"""A fabric as its user keeps it: from a folder to a design, and to everything netkit does with it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netkit import design, intent
from netkit.design import Fabric
from netkit.errors import IntentError, NetkitError, Problem
from netkit.errors import Path as IntentPath
from netkit.hardware import Catalog
from netkit.intent import Loaded
from netkit.project.feedback import SILENT, Feedback

MODELS, TEMPLATES, CHECKS, PLAYBOOKS = "models", "templates", "checks", "playbooks"
OF_THE_FABRIC = "."
"""As the name of a lab: the one that is called like its fabric."""


@dataclass(frozen=True, slots=True)
class Project:
    """A fabric and the folders its user keeps beside it."""

    loaded: Loaded
    catalog: Catalog
    fabric: Fabric
    template_folders: tuple[Path, ...]
    lab: str = ""
    """The lab that stands for the devices; empty: the real ones."""
    feedback: Feedback = SILENT

    @classmethod
    def open(
        cls, folder: Path | str, *, lab: str = "", workplace: Path | None = None, feedback: Feedback = SILENT
    ) -> "Project":
        """Load and design a fabric, or raise the problems of both stages together, each with its file and line.

        With `lab`, everything that asks or changes devices uses that lab, and never the real ones. Templates and
        models of the workplace count too, by default the current folder.
        """
        return _opened(Path(folder), lab, workplace, feedback)


def _opened(folder: Path, lab: str, workplace: Path | None, feedback: Feedback) -> Project:
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
    templates = beside(loaded.folder, TEMPLATES, workplace)
    return Project(loaded, catalog, fabric, templates, fabric.name if lab == OF_THE_FABRIC else lab, feedback)


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
