"""Asking before anything is changed."""

import sys

from netkit.errors import Problem, UsageError


def is_agreed(question: str, *, yes: bool) -> bool:
    """Return whether the user agrees; without a terminal nobody can be asked, and --yes has to say it."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(Problem(f"{question} Nobody is there to ask", "say --yes"))
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
