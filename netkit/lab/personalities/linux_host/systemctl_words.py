"""What is typed after `systemctl`, taken apart."""

import fnmatch
from collections.abc import Iterator, Sequence

from netkit.lab.personalities.linux_host.units import Units, full_name

WITH_VALUE = (
    "-p",
    "--property",
    "-t",
    "--type",
    "--state",
    "-n",
    "--lines",
    "-o",
    "--output",
    "--job-mode",
    "--root",
    "-s",
    "--signal",
    "--kill-who",
)
FLAGS = frozenset(
    [
        "-q",
        "--quiet",
        "--no-block",
        "--now",
        "--no-pager",
        "--no-legend",
        "--plain",
        "--all",
        "-a",
        "--system",
        "--no-ask-password",
        "--full",
        "-l",
        "--value",
        "--no-wall",
        "--force",
        "-f",
        "--runtime",
        "--no-reload",
        "--failed",
        "--wait",
    ]
)


class Arguments:
    """A command line, taken apart."""

    def __init__(self, words: Sequence[str]) -> None:
        self.flags: set[str] = set()
        self.properties: list[str] = []
        self.names: list[str] = []
        self.unknown = ""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            option, equals, value = word.partition("=")
            if option in WITH_VALUE:
                value = value if equals else (rest.pop(0) if rest else "")
                if option in {"-p", "--property"}:
                    self.properties += value.split(",")
            elif word in FLAGS:
                self.flags.add(word)
            elif word.startswith("-"):
                self.unknown = self.unknown or word
            else:
                self.names.append(word)
        self.verb = self.names.pop(0) if self.names else "list-units"

    @property
    def is_quiet(self) -> bool:
        """Whether answers are told by the exit code alone."""
        return bool(self.flags & {"-q", "--quiet"})


def matching(units: Units, names: Sequence[str]) -> Iterator[str]:
    """Yield units by name; a pattern stands for the loaded units it fits, even if that is none."""
    for name in names:
        if any(char in name for char in "*?["):
            yield from (known for known in units.names() if fnmatch.fnmatchcase(known, name))
        else:
            yield full_name(name)
