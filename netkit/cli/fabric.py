"""Open a fabric for a verb: progress, notes and warnings of the design go to the terminal."""

import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from netkit.project.feedback import Count, Feedback
from netkit.project.project import Project
from netkit.terminal.annotation import annotate
from netkit.terminal.progress import counter
from netkit.terminal.text import say


class TerminalFeedback(Feedback):
    """Shows progress and notes on standard error."""

    def progress(self, title: str, total: int) -> AbstractContextManager[Count]:
        """Show a bar, or lines if output is piped."""
        return counter(title, total)

    def note(self, line: str) -> None:
        say(sys.stderr, f"{line}\n")


def open_project(folder: Path, lab: str = "", processes: int = 0, site: str = "") -> Project:
    """Open a fabric, or a lab of it, with feedback on the terminal."""
    return replace(Project.open(folder, lab=lab, feedback=TerminalFeedback(), processes=processes), site=site)


def warn(project: Project, *, notes: bool = False) -> None:
    """Print the warnings of the design, and optionally its notes."""
    wanted = [note for note in project.fabric.notes if notes or note.severity == "warning"]
    located = [project.loaded.places.locate(note) for note in wanted]
    for note in located:
        sys.stderr.write(f"{note.severity}: {note}\n")
    annotate(located)
