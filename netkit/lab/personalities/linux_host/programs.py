"""Programs of a host that are no NIC tools: those of systemd and udev, and the reset of a card."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from netkit.lab.personalities.linux_host import networkd, udev
from netkit.lab.personalities.linux_host.mlxconfig import parse
from netkit.lab.personalities.linux_host.systemctl import systemctl
from netkit.lab.personalities.linux_host.systemd_run import systemd_run
from netkit.lab.personality import Call

if TYPE_CHECKING:
    from netkit.lab.personalities.linux_host.host import LinuxHost

Program = Callable[["LinuxHost", Call], int]


def answer(host: "LinuxHost", call: Call) -> int:
    """Answer one command line."""
    return PROGRAMS[call.program](host, call)


def _systemctl(host: "LinuxHost", call: Call) -> int:
    return systemctl(host.units, call)


def _systemd_run(host: "LinuxHost", call: Call) -> int:
    return systemd_run(host.units, call)


def _networkctl(host: "LinuxHost", call: Call) -> int:
    done = networkd.control(host.node, *call.arguments)
    call.out(done.stdout)
    call.err(done.stderr)
    return done.exit_code


def _udevadm(host: "LinuxHost", call: Call) -> int:
    verb = next((word for word in call.arguments if not word.startswith("-")), "")
    if verb == "trigger":
        for name in udev.wanted_units(host.machine):
            host.units.start(name)
        return 0
    if verb in {"control", "settle"}:
        return 0  # rules are read when they are used
    call.err(f"udevadm: {verb or 'no command'} is not answered here\n")
    return 1


def _mlxfwreset(host: "LinuxHost", call: Call) -> int:
    arguments = parse([word for word in call.arguments if word not in {"-l", "--level", "3", "4"}])
    card = host.machine.find(arguments.device)
    if card is None or arguments.verb not in {"reset", "query", "q"}:
        call.err(f"-E- Failed to open device {arguments.device or '(none)'}, or unknown command\n")
        return 1
    if arguments.verb != "reset":
        call.out("Reset-levels:\n3: Driver restart and PCI reset                       -Supported     (default)\n")
        return 0
    host.machine.firmware.reset(card.pci)
    card.power_up()
    host.tree.reset(card)
    for name in udev.outcome_of(host.machine, card).wants:
        host.units.restart(name)
    call.out("-I- Sending Reset Command To Fw             -Done\n-I- FW was loaded successfully.\n")
    return 0


PROGRAMS: Mapping[str, Program] = {
    "systemctl": _systemctl,
    "systemd-run": _systemd_run,
    "networkctl": _networkctl,
    "udevadm": _udevadm,
    "mlxfwreset": _mlxfwreset,
}
