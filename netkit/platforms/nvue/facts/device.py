"""The switch itself."""

from dataclasses import replace

from netkit.facts import Absent, Facts
from netkit.facts.system import System
from netkit.platforms.nvue.facts.shown import duration_s, tree, unread, word
from netkit.platforms.nvue.reply import version_of
from netkit.platforms.view import View

COMMANDS = ("nv show system -o json", "nv show platform -o json", "uname -r")


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
    return Facts(system=replace(found, kernel=_kernel(kernel_text)))


def _kernel(text: str) -> str:
    """Return a release of Linux; anything else is none."""
    lines = text.strip().splitlines()
    return lines[0] if len(lines) == 1 and lines[0][:1].isdigit() and len(lines[0]) < 80 else ""


VIEW = View(COMMANDS, frozenset({"system"}), parse)
