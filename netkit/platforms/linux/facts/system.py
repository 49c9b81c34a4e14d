"""What a host is, by its files."""

from netkit.facts import Absent
from netkit.facts.system import System
from netkit.platforms.linux.facts.reading import number
from netkit.platforms.linux.facts.tree import Tree, settings

KERNEL = "/proc/sys/kernel"
DMI = "/sys/class/dmi/id"


def system(tree: Tree) -> System | Absent:
    """Return what a host is."""
    release = settings(tree.text("/etc/os-release"))
    kernel = tree.text(f"{KERNEL}/osrelease")
    found = System(
        hostname=tree.text(f"{KERNEL}/hostname"),
        version=release.get("VERSION_ID", "") or kernel,
        model=tree.text(f"{DMI}/product_name"),
        serial=tree.text(f"{DMI}/product_serial"),
        uptime_s=number(next(iter(tree.text("/proc/uptime").split()), "")),
        boot=tree.text(f"{KERNEL}/random/boot_id"),
        kernel=kernel,
    )
    return found if found.hostname or found.boot else Absent("its files below /proc could not be read")
