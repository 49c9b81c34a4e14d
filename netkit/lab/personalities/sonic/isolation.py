"""TSA, TSB and TSC: traffic shift away, back, and which of the two holds.

bgpcfgd acts on the flag. With frrcfgd, or an frr.conf of one's own, nothing reads it: the flag stands, traffic stays.
"""

from netkit.lab.personalities.sonic.command import Command, Commands, Line
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import text
from netkit.lab.personality import Call


def _shift(*, is_away: bool) -> Command:
    def action(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
        wanted, mode = ("true", "Maintenance") if is_away else ("false", "Normal")
        if _flag(system) == wanted:
            call.out(f"System is already in {mode} mode\n")
            return
        tables = system.edited()
        tables.setdefault("BGP_DEVICE_GLOBAL", {}).setdefault("STATE", {})["tsa_enabled"] = wanted
        system.write(tables)
        call.out(f"System Mode: Normal -> {mode}\n" if is_away else f"System Mode: Maintenance -> {mode}\n")
        call.out("Please execute 'config save' to preserve System mode after reboot or config reload\n")

    return Command(action)


def _flag(system: System) -> str:
    return text(system.running, "BGP_DEVICE_GLOBAL", "STATE", "tsa_enabled", "false")


def _check(system: System, call: Call, line: Line) -> None:  # noqa: ARG001
    call.out(f"System Mode: {'Maintenance' if _flag(system) == 'true' else 'Normal'}\n")


TSA: Commands = {(): _shift(is_away=True)}
TSB: Commands = {(): _shift(is_away=False)}
TSC: Commands = {(): Command(_check)}
