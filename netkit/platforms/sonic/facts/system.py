"""What the switch is, and its release."""

import re

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.platforms.outage import in_words
from netkit.platforms.sonic.facts.dump import Database, database, number, word
from netkit.platforms.sonic.reply import fields, version_in

IDENTITY = (
    "echo hostname: $(hostname); echo kernel: $(uname -r); echo boot: $(cat /proc/sys/kernel/random/boot_id); "
    "echo uptime: $(cat /proc/uptime); echo now: $(date -u '+%a %b %d %H:%M:%S %Y'); "
    "cat /etc/sonic/sonic_version.yml 2>/dev/null || show version"
)
LINE = re.compile(r"^(hostname|kernel|boot|uptime): (\S+)", re.MULTILINE)
NOW = re.compile(r"^now: (.+)", re.MULTILINE)


def now_s(identity: str) -> float | None:
    """Parse the clock of the switch, in UTC like the timestamps of its databases."""
    found = NOW.search(identity)
    return in_words(found[1]) if found else None


def system(identity: str, config: str, state: str) -> Facts:
    identity_lines = dict(LINE.findall(identity))
    shown = fields(identity)
    metadata = (database(config) or Database({})).row("DEVICE_METADATA|localhost")
    chassis = (database(state) or Database({})).row("CHASSIS_INFO|chassis 1")
    found = System(
        hostname=identity_lines.get("hostname") or word(metadata.get("hostname")),
        version=version_in(identity),
        model=word(chassis.get("model")) or shown.get("Model Number", "") or word(metadata.get("hwsku")),
        serial=word(chassis.get("serial")) or shown.get("Serial Number", ""),
        uptime_s=number(identity_lines.get("uptime")),
        boot=identity_lines.get("boot", ""),
        kernel=identity_lines.get("kernel", ""),
    )
    return Facts(system=Absent("the switch shows neither a name nor a release") if found == System() else found)
