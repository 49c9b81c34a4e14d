"""Firmware compared with the versions that the intent approves for its kind."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from netkit.design.fabric import Approved
from netkit.judge.finding import PASSED, Finding, fail, skip


@dataclass(frozen=True, slots=True)
class FirmwarePart:
    """Something that runs firmware: its place, the names the intent may use for it, and its version."""

    device: str
    place: str
    names: tuple[str, ...]
    """The names it reports, most specific first."""
    firmware: str


def approved_of(names: Sequence[str], approved: Approved) -> tuple[str, tuple[str, ...]] | None:
    """A kind and its approved versions: by its own name, else by the longest glob, else None."""
    for name in names:
        if name in approved:
            return name, approved[name]
    globs = [(glob, name) for name in names for glob in approved if fnmatchcase(name, glob)]
    if not globs:
        return None
    glob, name = max(globs, key=lambda pair: len(pair[0]))
    return name, approved[glob]


def unapproved(what: str, parts: Iterable[FirmwarePart], approved: Approved, remedy: str) -> Iterator[Finding]:
    """Yield a finding for each part; those of one kind with one version share their cause."""
    known = [(part, approved_of(part.names, approved)) for part in parts]
    kinds = Counter(found[0] for part, found in known if found and part.firmware)
    wrong = Counter(found[0] for part, found in known if found and part.firmware and part.firmware not in found[1])
    for part, found in known:
        if found is None:
            kind_text = f"for {part.names[0]}" if part.names else "that fits: it reports neither part number nor PSID"
            yield skip(part.place, f"no firmware is approved {kind_text}", device=part.device)
            continue
        kind, versions = found
        if not part.firmware:
            yield skip(
                part.place, f"it does not report its firmware; {kind} needs {_any(versions)}", device=part.device
            )
        elif part.firmware in versions:
            yield PASSED
        else:
            text = f"{what} {kind} runs firmware {part.firmware}; approved is {_any(versions)}"
            cause = f"firmware {part.firmware} of {kind}"
            differ = f"{wrong[kind]} of {kinds[kind]}"
            yield fail(part.place, text, remedy, device=part.device, cause=cause, differ=differ)


def _any(versions: Sequence[str]) -> str:
    return " or ".join(versions) or "none"
