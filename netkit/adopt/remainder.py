"""What runs and no intent can express: paths for `leave`, so that a plan of the adopted fabric is empty."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from pydantic import TypeAdapter, ValidationError

from netkit.design import Fabric
from netkit.design.select import Device
from netkit.intent.scalars import ConfigPath
from netkit.platforms.compare import ConfigComparison, natural
from netkit.platforms.config import Path
from netkit.platforms.ownership import SEPARATOR

PATTERN = re.compile(r"([*?\[])")
LONGEST_DEVICES = 120
"""Characters of one list of devices; longer ones become several entries."""
CHECKED: TypeAdapter[str] = TypeAdapter(ConfigPath)
Rule = dict[str, str]


def rules(fabric: Fabric, differing: Mapping[str, Iterable[Path]]) -> list[Rule]:
    """The entries of `leave` that keep these paths of devices as they run."""
    devices: dict[str, list[str]] = defaultdict(list)
    for name, paths in differing.items():
        for path in paths:
            if written := written_path(path):
                devices[written].append(name)
    entries = [(devices_of, path) for path, names in devices.items() for devices_of in expressions(fabric, names)]
    entries.sort(key=lambda one: (one[0], natural(tuple(one[1].split(SEPARATOR)))))
    return [{"path": path} | ({"devices": names} if names else {}) for names, path in entries]


def tops(comparison: ConfigComparison) -> list[Path]:
    """The paths below which everything differs, not above the second part; none below another of them."""
    differing = {change.path for change in comparison.changes}
    every = Counter[Path]()
    wrong = Counter[Path]()
    for path in {*comparison.running, *comparison.intended}:
        heads = [path[:length] for length in range(1, len(path) + 1)]
        every.update(heads)
        if path in differing:
            wrong.update(heads)
    found = {
        next(
            path[:length]
            for length in range(min(2, len(path)), len(path) + 1)
            if length == len(path) or wrong[path[:length]] == every[path[:length]]
        )
        for path in differing
    }
    return sorted((path for path in found if not any(path[:end] in found for end in range(1, len(path)))), key=natural)


def written_path(path: Path) -> str:
    """Write a path with its own marks of patterns escaped; empty if `leave` cannot express it."""
    text = SEPARATOR.join(PATTERN.sub(r"[\1]", part) for part in path)
    try:
        return CHECKED.validate_python(text)
    except ValidationError:
        return ""


def expressions(fabric: Fabric, names: Collection[str]) -> Iterator[str]:
    """Yield expressions that select exactly these devices: a role, or their names."""
    wanted = set(names)
    devices: tuple[Device, ...] = (*fabric.switches, *fabric.hosts)
    if wanted == {device.name for device in devices}:
        yield ""
        return
    roles: dict[str, set[str]] = defaultdict(set)
    for device in devices:
        roles[getattr(device, "role", "host")].add(device.name)
    whole = [role for role, members in roles.items() if len(members) > 1 and members <= wanted]
    if whole:
        yield ",".join(f"role={role}" for role in whole)
    wanted = wanted.difference(*(roles[role] for role in whole))
    yield from _chunks(sorted(wanted, key=lambda name: natural((name,))))


def _chunks(names: Iterable[str]) -> Iterator[str]:
    chunk = ""
    for name in names:
        if chunk and len(chunk) + len(name) + 1 > LONGEST_DEVICES:
            yield chunk
            chunk = ""
        chunk = f"{chunk},{name}" if chunk else name
    if chunk:
        yield chunk
