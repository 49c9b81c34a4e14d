"""What the command line adds by itself to what is typed: types, and what a feature is when only its name is given."""

from netkit.lab.personalities.nvue.chassis import Chassis
from netkit.lab.personalities.nvue.kinds import PORT, SVI
from netkit.lab.personalities.nvue.schema import BREAK, Node, merged
from netkit.lab.personalities.nvue.tree import Tree, child

TYPES = {"eth0": "eth", "lo": "loopback"}


def completed(known: Node, chassis: Chassis, typed: Tree) -> Tree:
    """Return what was typed with what NVUE adds."""
    added: Tree = {}
    interfaces = {name: _interface(name) for name in child(typed, "interface")}
    for name, value in child(typed, "interface").items():
        if isinstance(value, dict) and child(value, "qos").get("pfc-watchdog") == {}:
            interfaces[name]["qos"] = {"pfc-watchdog": {"state": "enable"}}
    if interfaces:
        added["interface"] = dict(interfaces)
    neighbors = child(typed, "vrf", "default", "router", "bgp", "neighbor")
    kinds: Tree = {name: {"type": "unnumbered" if PORT.fullmatch(name) else "numbered"} for name in neighbors}
    if kinds:
        added["vrf"] = {"default": {"router": {"bgp": {"neighbor": kinds}}}}
    roce = child(typed, "qos").get("roce")
    if roce == {} or (isinstance(roce, dict) and "mode" in roce):
        on: Tree = {"state": "enabled"} if chassis.version >= BREAK else {"enable": "on"}
        added["qos"] = {"roce": {**on, "mode": "lossless"}}
    return merged(known, added, typed)


def _interface(name: str) -> Tree:
    if SVI.fullmatch(name):
        return {"type": "svi", "vlan": int(name.removeprefix("vlan"))}
    return {"type": TYPES.get(name, "swp")}
