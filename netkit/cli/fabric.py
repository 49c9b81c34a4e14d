"""From a folder to a designed fabric, with every problem placed at its line."""

import sys
from dataclasses import dataclass
from pathlib import Path

from netkit import design, intent
from netkit.design import Fabric
from netkit.errors import NetkitError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import Loaded

MODELS, TEMPLATES = "models", "templates"


@dataclass(frozen=True, slots=True)
class Project:
    """A fabric and the folders its user keeps beside it."""

    loaded: Loaded
    catalog: Catalog
    fabric: Fabric
    template_folders: tuple[Path, ...]


def open_project(folder: Path) -> Project:
    """Load and design a fabric; warnings go to standard error."""
    loaded = intent.load(folder)
    catalog = Catalog(_beside(loaded.folder, MODELS))
    try:
        fabric = design.build(loaded.intent, catalog)
    except NetkitError as error:
        error.problems = tuple(sorted(map(loaded.places.locate, error.problems), key=lambda problem: (problem.file, problem.line)))
        raise
    return Project(loaded, catalog, fabric, _beside(loaded.folder, TEMPLATES))


def _beside(folder: Path, name: str) -> tuple[Path, ...]:
    """Return the user's folders of a name: in the fabric's own folder, beside `inventory/`, and where netkit is run."""
    here = folder.resolve()
    places = (here / name, *((here.parent.parent / name,) if here.parent.name == "inventory" else ()), Path.cwd() / name)
    return tuple(dict.fromkeys(place for place in places if place.is_dir()))


def warn(project: Project, *, notes: bool = False) -> None:
    """Print the warnings of the design, and on request what is merely worth knowing."""
    for note in project.fabric.notes:
        if notes or note.severity == "warning":
            sys.stderr.write(f"{note.severity}: {project.loaded.places.locate(note)}\n")


def check_format(output: str) -> None:
    """Refuse an output format netkit does not have."""
    if output not in {"text", "json"}:
        raise UsageError(Problem(f"no output format {output!r}", "use text or json"))
