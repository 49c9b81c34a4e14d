"""Open a fabric for a verb: progress, notes and warnings of the design go to the terminal."""

import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from netkit.project.project import Count, Feedback, Project
from netkit.report.annotation import annotate
from netkit.terminal.output import say
from netkit.terminal.progress import counter


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
    located = project.notes() if notes else project.notes("warning")
    for note in located:
        sys.stderr.write(f"{note.severity}: {note}\n")
    annotate(located)
