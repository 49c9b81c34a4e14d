"""The programs of a host that are answered here and are no NIC tools: systemd's, udev's, and the driver's."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from netkit.lab.personalities.linux_host import coldplug, networkd
from netkit.lab.personalities.linux_host.machine import RailCard
from netkit.lab.personalities.linux_host.mlxconfig import parse
from netkit.lab.personalities.linux_host.systemctl import systemctl
from netkit.lab.personalities.linux_host.systemd_run import systemd_run
from netkit.lab.personality import Call

if TYPE_CHECKING:
    from netkit.lab.personalities.linux_host.host import LinuxHost

Program = Callable[["LinuxHost", Call], int]
DRIVERS = ("mlx5_ib", "mlx5_core")
OTHER_MODULES = ("ib_umad", "ib_uverbs", "rdma_ucm", "rdma_cm", "nvidia_peermem", "nvidia")


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
        for name in coldplug.wanted_units(host.machine):
            host.units.start(name)
        return 0
    if verb in {"control", "settle"}:
        return 0  # rules are read when they are used
    if verb == "info":
        return _udev_info(host, call)
    call.err(f"udevadm: {verb or 'no command'} is not answered here\n")
    return 1


def _udev_info(host: "LinuxHost", call: Call) -> int:
    card = host.machine.find(call.arguments[-1].rstrip("/").rpartition("/")[2])
    if card is None:
        call.err("Unknown device: No such device\n")
        return 4
    rows = {
        "DEVPATH": f"/devices/pci0000:{card.pci.split(':')[1]}/{card.pci}/net/{card.interface}",
        "SUBSYSTEM": "net",
        "INTERFACE": card.interface,
        "ID_PATH": f"pci-{card.pci}",
        "ID_NET_DRIVER": "mlx5_core",
        "ID_VENDOR_ID": "0x15b3",
    }
    outcome = coldplug.outcome_of(host.machine, card)
    if outcome.rail:
        rows["NETKIT_RAIL"] = outcome.rail
    if outcome.wants:
        rows["SYSTEMD_WANTS"] = " ".join(outcome.wants)
    mark = "" if any(word in {"-q", "--query=property"} for word in call.arguments) else "E: "
    call.out("".join(f"{mark}{key}={value}\n" for key, value in rows.items()))
    return 0


def _modprobe(host: "LinuxHost", call: Call) -> int:
    words = [word for word in call.arguments if not word.startswith("-")]
    unknown = [word for word in words if word not in {*DRIVERS, *OTHER_MODULES}]
    if unknown or not words:
        call.err(f"modprobe: FATAL: Module {(unknown or ['(none)'])[0]} not found in directory /lib/modules\n")
        return 1
    is_removal = any(word in {"-r", "--remove"} for word in call.arguments)
    if "mlx5_core" not in words:
        return 0
    for card in host.machine.cards.values():
        if is_removal:
            host.node.ip([f"link set dev {card.interface} down"])
        else:
            _reappear(host, card)
            networkd.control(host.node, "reconfigure", card.interface)
    return 0


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
    _reappear(host, card)
    call.out("-I- Sending Reset Command To Fw             -Done\n-I- FW was loaded successfully.\n")
    return 0


def _reappear(host: "LinuxHost", card: RailCard) -> None:
    """Do what a driver that is loaded again does to a NIC, and udev to the services of its interface."""
    card.power_up()
    host.tree.reset(card)
    for name in coldplug.outcome_of(host.machine, card).wants:
        host.units.restart(name)


def _hostnamectl(host: "LinuxHost", call: Call) -> int:
    if call.arguments not in {(), ("status",), ("hostname",), ("--static",)}:
        call.err("hostnamectl: the name of a lab host is that of the design\n")
        return 1
    if call.arguments in {("hostname",), ("--static",)}:
        call.out(f"{host.node.name}\n")
        return 0
    rows = {
        "Static hostname": host.node.name,
        "Chassis": "server",
        "Hardware Vendor": host.machine.host.model.vendor,
        "Hardware Model": host.machine.host.model.name,
    }
    call.out("".join(f"{key:>16}: {value}\n" for key, value in rows.items()))
    return 0


PROGRAMS: Mapping[str, Program] = {
    "systemctl": _systemctl,
    "systemd-run": _systemd_run,
    "networkctl": _networkctl,
    "udevadm": _udevadm,
    "modprobe": _modprobe,
    "hostnamectl": _hostnamectl,
    "mlxfwreset": _mlxfwreset,
}
