"""A running configuration as it may be kept: without secrets, in an order of its own, in one text a device."""

import re
from collections.abc import Mapping

from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.secrets import SECRET, is_secret_name, settled

HEAD = re.compile(r"^==> (\S+)( is not there)? <==$", re.MULTILINE)
Running = Mapping[str, str | None]

# What a device may hold beyond what netkit writes. A plan never looks there, but a backup has all of it.
FIELD = re.compile(
    r"(?:^|[-_])(?:cak|password[-_]hash|(?:ro|rw)?communit(?:y|ies)|md5|md5-key|authentication-key|key-string)$",
    re.IGNORECASE,
)
VALUE_OF = frozenset({"NTP_KEY", "key"})
"""Below these, by number, `value` is a key."""
NAMED = frozenset({"community-password", "auth-md5", "auth-sha", "encrypt-aes", "encrypt-des"})
"""Below these a name is itself the secret."""
LINES = (
    re.compile(r"\b(key-string|authentication-key|authentication string|message-digest-key \S+ \S+)( \d+)? \S+$"),
    re.compile(r"\b(authentication key|password|secret|key)( \d+)? (?!\d{1,5}$)\S+$"),  # but for the number of a key
    re.compile(r"^(key \S+)( \d+) \S+(?= fallback$|$)"),
    re.compile(r"^(snmp-server host .* version (?:1|2c))() \S+"),
    re.compile(r"^(snmp-server host \S+(?: vrf \S+)?(?: traps| informs)?)() (?!vrf|version|traps|informs|udp-port)\S+"),
    re.compile(r"^(com2sec6?(?: -Cn \S+)? \S+ \S+)() \S+"),
    re.compile(r"^((?:trap|trap2|inform)sink \S+)() \S+"),
    re.compile(r"^(trapcommunity|trapsess|usmUser|def(?:Auth|Priv)?Passphrase)() .+"),
    re.compile(r"(-cvauth=[\w-]+,|\bBearer)()[ ]?\S+"),
)
IN_URL = re.compile(r"(?<=://)[^\s/@]+:[^\s/@]+(?=@)")
PRIVATE_KEY = "PRIVATE KEY-----"


def without_secrets(model: ConfigModel, files: Running, intended: Files) -> Running:
    """Return files that mean the same, with every secret masked. ConfigError when they cannot be read.

    They are written anew from what was read, so that what a device prints in another order is no change. Where the
    intended files name a secret, there is one too, whatever the platform expects there.
    """
    there = {name: text for name, text in files.items() if text is not None and model.reads(name)}
    known = model.parse({name: text for name, text in intended.items() if model.reads(name)})
    found = model.text(_masked(settled(model.parse(there), known), known))
    return {**found, **{name: None for name, text in files.items() if text is None}}


def _masked(running: Config, intended: Config) -> dict[Path, str]:
    """Return a configuration without what may be a secret, wherever it is not word for word what is intended."""
    return {
        path if path in intended else _path(path): value if intended.get(path) == value else _value(path, value)
        for path, value in running.items()
    }


def _path(path: Path) -> Path:
    above = ("", *path)
    return tuple(SECRET if before in NAMED else _line(key) for before, key in zip(above, path, strict=False))


def _value(path: Path, value: str) -> str:
    is_key = path[-1] == "value" and not VALUE_OF.isdisjoint(path[:-1])
    if value and (is_key or is_secret_name(path[-1]) or FIELD.search(path[-1]) or PRIVATE_KEY in value):
        return SECRET
    return "\n".join(map(_line, value.split("\n")))


def _line(text: str) -> str:
    if SECRET in text:
        return text
    for rule in LINES:
        text = rule.sub(rf"\1\2 {SECRET}", text)
    return IN_URL.sub(SECRET, text)


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
