"""systemd's unit files as a configuration, with sections that may occur several times."""

from collections.abc import Iterator

from netkit.platforms import config_lines
from netkit.platforms.config import Config, Path

# Sections that occur once for each object: one entry each, because they have no name.
BLOCKS = frozenset({"[Route]", "[RoutingPolicyRule]", "[Address]", "[Neighbor]"})
JOIN = "; "

GRAMMAR = config_lines.Grammar(keyed=(r"[^=\[\]]+",), comments=("#", ";"), separator="=", indent=0)


def parse(text: str, file: str) -> dict[Path, str]:
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


def text(config: Config, file: str) -> str:
    """Write the entries of one file as a unit file."""
    return config_lines.text(config, GRAMMAR, (file,)).replace(JOIN, "\n")
