"""The switch itself."""

from netkit.facts import Absent, Facts
from netkit.facts.system import System
from netkit.platforms.eos.facts.command import VERSION
from netkit.platforms.shown import number, parsed, table, text


def system(version: str, hostname: str) -> Facts:
    """Return what the switch is."""
    shown, name = table(parsed(version)), table(parsed(hostname))
    if not text(shown.get("version")):
        return Facts(system=Absent(f"{VERSION} names no release"))
    uptime_s, booted_s = number(shown.get("uptime")), number(shown.get("bootupTimestamp"))
    return Facts(
        system=System(
            hostname=text(name.get("hostname")),
            version=text(shown.get("version")),
            model=text(shown.get("modelName")),
            serial=text(shown.get("serialNumber")),
            uptime_s=uptime_s,
            # EOS works it out from its clock, and it moves with that: no boot is told by it where there is an uptime.
            boot=f"{booted_s:.0f}" if booted_s and uptime_s is None else "",
        )
    )
