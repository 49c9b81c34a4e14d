"""The switch itself."""

import re
from dataclasses import replace

from netkit.facts import Absent, Facts
from netkit.facts.device import System
from netkit.platforms.nvue.facts.shown import duration_s, tree, unread, word
from netkit.platforms.nvue.transport import version_of
from netkit.platforms.view import View

KERNEL = "cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/osrelease"
COMMANDS = ("nv show system -o json", "nv show platform -o json", KERNEL)

LINUX = re.compile(r"\s*([0-9a-f-]{36})\s+([0-9][!-~]{0,79})\s*")


def parse(system_text: str, platform_text: str, kernel_text: str) -> Facts:
    """Return what the switch is and runs."""
    system, platform = tree(system_text), tree(platform_text)
    if system is None and platform is None:
        return Facts(system=unread(COMMANDS[0], system_text))
    told, made = system or {}, platform or {}
    found = System(
        hostname=word(told, "hostname"),
        version=version_of(told)[:40],
        model=word(made, "product-name") or word(told, "platform"),
        serial=word(made, "serial-number"),
        uptime_s=duration_s(told.get("uptime")),
    )
    if found == System():
        return Facts(system=Absent(f"{COMMANDS[0]}: tells neither a name nor a release"))
    boot, kernel = _kernel(kernel_text)
    return Facts(system=replace(found, boot=boot, kernel=kernel))


def _kernel(text: str) -> tuple[str, str]:
    """Return the boot id and the release of Linux; both empty where the text is anything else."""
    found = LINUX.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


VIEW = View(COMMANDS, frozenset({"system"}), parse)
