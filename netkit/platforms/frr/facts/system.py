"""The switch itself."""

from netkit.facts import Absent
from netkit.facts.system import System
from netkit.platforms.frr.reply import version_in
from netkit.platforms.shown import number

LINES = 4


def system(about: str, routing: str, files: dict[str, str]) -> System | Absent:
    """Return what the switch is; as its release counts FRR's."""
    lines = [line.strip() for line in about.strip().splitlines()]
    if len(lines) != LINES:
        return Absent("the kernel does not tell its boot and its release")
    uptime, boot, kernel, hostname = lines
    return System(
        hostname=hostname,
        version=version_in(routing),
        model=files.get("/sys/class/dmi/id/product_name", ""),
        serial=files.get("/sys/class/dmi/id/product_serial", ""),
        uptime_s=_seconds(uptime),
        boot=boot,
        kernel=kernel,
    )


def files_of(printed: str) -> dict[str, str]:
    """Return what grep printed of files, by their paths."""
    found = (line.partition(":") for line in printed.splitlines() if line.startswith("/"))
    return {path: value.strip() for path, _, value in found}


def _seconds(uptime: str) -> float | None:
    first = uptime.partition(" ")[0]
    is_number = first.isascii() and first.replace(".", "", 1).isdecimal() and len(first) <= 20
    return number(float(first)) if is_number else None
