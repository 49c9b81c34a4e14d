"""Kinds of configuration files on Linux: YAML, settings, units, scripts, and opaque texts."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from netkit.platforms import config_lines
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.linux import netplan
from netkit.platforms.secrets import masked_line

# Sections that occur once for each object: one entry each, because they have no name.
BLOCKS = frozenset({"[Route]", "[RoutingPolicyRule]", "[Address]", "[Neighbor]"})
JOIN = "; "

GRAMMAR = config_lines.Grammar(keyed=(r"[^=\[\]]+",), comments=("#", ";"), separator="=", indent=0)
Parse = Callable[[str, str], dict[Path, str]]
Text = Callable[[Config, str], str]

BODY = "(text)"
ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")


def parse_unit(text: str, file: str) -> dict[Path, str]:
    """Parse a unit file into entries below its name."""
    return config_lines.parse("\n".join(_indented(text)), GRAMMAR, file, (file,))


def _indented(text: str) -> Iterator[str]:
    """Yield the lines with settings indented, and each block as one line."""
    block: list[str] = []
    for raw in (*text.splitlines(), "[end]"):
        line = raw.strip()
        if not line or line.startswith(GRAMMAR.comments):
            continue
        if line.startswith("["):
            if block:
                yield JOIN.join([block[0], *sorted(block[1:])])
            block = [line] if line in BLOCKS else []
            if not block and line != "[end]":
                yield line
        elif block:
            block.append(line)
        else:
            yield f" {line}"


def unit_text(config: Config, file: str) -> str:
    """Write the entries of one file as a unit file."""
    return config_lines.text(config, GRAMMAR, (file,)).replace(JOIN, "\n")


@dataclass(frozen=True, slots=True)
class Kind:
    """Parser and writer for one kind of file."""

    parse: Parse
    text: Text


def _lines(grammar: config_lines.Grammar) -> Kind:
    return Kind(
        parse=lambda text, file: config_lines.parse(text, grammar, file, (file,)),
        text=lambda config, file: config_lines.text(config, grammar, (file,)),
    )


def _snmp(line: str) -> Iterator[str]:
    yield masked_line(line)


def _whole(text: str, file: str) -> dict[Path, str]:
    lines = (line.rstrip() for line in text.splitlines())
    body = "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
    return {(file, BODY): body} if body else {}


def _script(text: str, file: str) -> dict[Path, str]:
    """Parse a script: one entry for each setting, and one for the rest."""
    settings: dict[Path, str] = {}
    rest = []
    for line in text.splitlines():
        found = ASSIGNMENT.fullmatch(line)
        if found and settings.setdefault((file, found[1]), found[2]) == found[2]:
            continue
        rest.append(line)
    return settings | _whole("\n".join(rest), file)


def _script_text(config: Config, file: str) -> str:
    settings = (f"{path[-1]}={value}\n" for path, value in config.items() if path[0] == file and path[-1] != BODY)
    body = config.get((file, BODY), "")
    return "".join(settings) + (f"{body}\n" if body else "")


NETPLAN = Kind(netplan.parse, lambda config, file: netplan.text(below(config, file)))
UNIT = Kind(parse_unit, unit_text)
SYSCTL = _lines(config_lines.Grammar(keyed=(r"-?[\w./-]+",), comments=("#", ";"), separator=" = "))
SHELL = _lines(config_lines.Grammar(keyed=(r"\w+",), comments=("#",), separator="="))
WORDS = _lines(config_lines.Grammar(keyed=(r"sys\w+", "agentAddress"), comments=("#",), rewrite=_snmp))
SCRIPT = Kind(_script, _script_text)
WHOLE = Kind(_whole, _script_text)


def below(config: Config, file: str) -> Config:
    """Select the entries of a file, without its name."""
    return {path[1:]: value for path, value in config.items() if path[0] == file and len(path) > 1}


def parse(files: Files, kinds: dict[str, Kind]) -> dict[Path, str]:
    """Parse files; one of unknown kind is an opaque text."""
    entries: dict[Path, str] = {}
    for file, text in files.items():
        entries |= kind_of(file, kinds).parse(text, file)
    return entries


def text(config: Config, kinds: dict[str, Kind]) -> dict[str, str]:
    names = dict.fromkeys(path[0] for path in config)
    return {file: kind_of(file, kinds).text(config, file) for file in names}


def kind_of(file: str, kinds: dict[str, Kind]) -> Kind:
    return next((kind for pattern, kind in kinds.items() if fnmatchcase(file, pattern)), WHOLE)
