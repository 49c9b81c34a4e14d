"""Tables in words: a line of heads that begins with Port, each one word, and rows below it."""

import re
from collections.abc import Iterator, Mapping

from netkit.platforms.eos.facts.port import is_port, long_name

HEAD = re.compile(r"\S+")
PORT = "Port"


def cells(shown: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield port → cells by their heads. A cell stands where its head does; what reaches further goes with it."""
    starts: dict[str, int] = {}
    for line in shown.expandtabs().splitlines():
        if line.startswith(f"{PORT} "):
            starts = {found[0]: found.start() for found in HEAD.finditer(line)}
        elif starts and is_port(port := long_name(line.partition(" ")[0])):
            yield port, _cut(line, starts)


def _cut(line: str, starts: Mapping[str, int]) -> Mapping[str, str]:
    ends = [*list(starts.values())[1:], max(len(line), 1)]
    return {head: line[start:end].strip() for (head, start), end in zip(starts.items(), ends, strict=True)}
