"""Backups of running configurations: secrets masked, in canonical order, one text per device."""

import re
from collections.abc import Mapping

from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Files, Path
from netkit.platforms.secrets import SECRET, is_secret_name, masked_line, settled

HEAD = re.compile(r"^==> (\S+)( is not there)? <==$", re.MULTILINE)
Running = Mapping[str, str | None]

# Secrets a device may hold beyond those netkit writes, outside what it owns: a backup covers everything.
FIELD = re.compile(
    r"(?:^|[-_])(?:cak|password[-_]hash|(?:ro|rw)?communit(?:y|ies)|md5|md5-key|authentication-key|key-string)$",
    re.IGNORECASE,
)
VALUE_OF = frozenset({"NTP_KEY", "key"})
"""Below these, `value` is a key."""
NAMED = frozenset({"community-password", "auth-md5", "auth-sha", "encrypt-aes", "encrypt-des"})
"""Below these, the name itself is the secret."""
PRIVATE_KEY = "PRIVATE KEY-----"


def without_secrets(model: ConfigModel, files: Running, intended: Files) -> Running:
    """Equivalent files with every secret masked. ConfigError if they cannot be parsed.

    They are regenerated from the parsed configuration, so that a different order of output is not a change. Wherever
    the intended files have a secret, it is masked too, even if the platform does not expect one there. Anything else
    that may be a secret is masked unless it is literally what is intended.
    """
    present = {name: text for name, text in files.items() if text is not None and model.reads(name)}
    known = model.parse({name: text for name, text in intended.items() if model.reads(name)})
    masked: dict[Path, str] = {}
    for path, value in settled(model.parse(present), known).items():
        place, text = path, value
        if path not in known:
            above = ("", *path[:-1])
            place = tuple(
                SECRET if before in NAMED else masked_line(key) for before, key in zip(above, path, strict=True)
            )
        if known.get(path) != value:
            text = SECRET if value and _is_secret(path, value) else "\n".join(map(masked_line, value.split("\n")))
        masked[place] = text
    return {**model.text(masked), **{name: None for name, text in files.items() if text is None}}


def _is_secret(path: Path, value: str) -> bool:
    is_key = path[-1] == "value" and not VALUE_OF.isdisjoint(path[:-1])
    return is_key or is_secret_name(path[-1]) or bool(FIELD.search(path[-1])) or PRIVATE_KEY in value


def joined(files: Running) -> str:
    """Join files into one text, each below a header with its name."""
    parts = []
    for name, text in sorted(files.items()):
        end = "" if not text or text.endswith("\n") else "\n"
        parts.append(f"==> {name} is not there <==\n" if text is None else f"==> {name} <==\n{text}{end}")
    return "".join(parts)


def separated(text: str) -> dict[str, str | None]:
    """Split a text that `joined` made; empty for any other text."""
    heads = list(HEAD.finditer(text))
    if not heads or heads[0].start() != 0:
        return {}
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: None if head[2] else text[head.end() + 1 : end] for head, end in zip(heads, ends, strict=True)}
