"""Version, hostname, inventory, accounts, and the services a switch is told to use."""

from netkit.lab.personalities.eos.patterns import Captured
from netkit.lab.personalities.eos.reply import Reply
from netkit.lab.personalities.eos.switch_state import FACTORY_HOSTNAME
from netkit.lab.personalities.eos.views.lens import Lens


def version(lens: Lens, _: Captured) -> Reply:
    """Show model and release."""
    switch = lens.machine.switch
    mac = switch.system_mac or "02:00:00:00:00:00"
    data = {
        "mfgName": switch.model.vendor,
        "modelName": switch.model.name,
        "hardwareRevision": "11.01",
        "serialNumber": serial(lens),
        "systemMacAddress": mac,
        "hwMacAddress": mac,
        "configMacAddress": "00:00:00:00:00:00",
        "version": switch.version,
        "architecture": "x86_64",
        "internalVersion": f"{switch.version}-lab",
        "internalBuildId": "lab",
        "imageFormatVersion": "3.0",
        "imageOptimization": "Default",
        "bootupTimestamp": lens.now_s - lens.machine.uptime_s,
        "uptime": lens.machine.uptime_s,
        "memTotal": 32_000_000,
        "memFree": 24_000_000,
        "isIntlVersion": False,
    }
    text = (
        f"{switch.model.vendor} {switch.model.name}\nSerial number: {serial(lens)}\nSystem MAC address: {mac}\n\n"
        f"Software image version: {switch.version}\nUptime: {lens.machine.uptime_s:.0f} seconds\n"
    )
    return Reply(data, text)


def serial(lens: Lens) -> str:
    """Return the serial number of a switch: one that cannot be mistaken for a real one."""
    return f"LAB-{lens.machine.node.name}"


def hostname(lens: Lens, _: Captured) -> Reply:
    """Show the name."""
    name = lens.config.word("hostname") or FACTORY_HOSTNAME
    domain = lens.config.word("dns", "domain")
    fqdn = f"{name}.{domain}" if domain else name
    return Reply({"hostname": name, "fqdn": fqdn}, f"Hostname: {name}\nFQDN:     {fqdn}\n")


VIEWS = (
    ("show version", version),
    ("show hostname", hostname),
)
