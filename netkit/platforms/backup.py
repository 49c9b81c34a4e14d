"""A running configuration as it may be kept: without secrets, in an order of its own, in one text a device."""

import re
from collections.abc import Mapping

from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Files
from netkit.platforms.secret import settled

HEAD = re.compile(r"^==> (\S+)( is not there)? <==$", re.MULTILINE)
Running = Mapping[str, str | None]


def without_secrets(model: ConfigModel, files: Running, intended: Files) -> Running:
    """Return files that mean the same, with every secret masked. ConfigError when they cannot be read.

    They are written anew from what was read, so that what a device prints in another order is no change. Where the
    intended files name a secret, there is one too, whatever the platform expects there.
    """
    there = {name: text for name, text in files.items() if text is not None and model.reads(name)}
    known = model.parse({name: text for name, text in intended.items() if model.reads(name)})
    found = model.text(settled(model.parse(there), known))
    return {**found, **{name: None for name, text in files.items() if text is None}}


def joined(files: Running) -> str:
    """Return files as one text, each below its name."""
    parts = []
    for name, text in sorted(files.items()):
        end = "" if not text or text.endswith("\n") else "\n"
        parts.append(f"==> {name} is not there <==\n" if text is None else f"==> {name} <==\n{text}{end}")
    return "".join(parts)


def separated(text: str) -> dict[str, str | None]:
    """Return the files in one text; empty when it is none that `joined` made."""
    heads = list(HEAD.finditer(text))
    if not heads or heads[0].start() != 0:
        return {}
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: None if head[2] else text[head.end() + 1 : end] for head, end in zip(heads, ends, strict=True)}
