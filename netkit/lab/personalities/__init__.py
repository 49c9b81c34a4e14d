"""The network operating systems of the lab: one folder each, named as its platform, and `linux_host`."""

import importlib
import threading
from importlib.metadata import entry_points

from netkit.errors import LabError, Problem
from netkit.lab.personality import Personality

GROUP = "netkit.personalities"
"""The entry points of packages that bring one: its name, and a module with `PERSONALITY`."""
FOLDERS = {"nvue": "nvue", "sonic": "sonic", "eos": "eos", "frr": "frr", "linux-host": "linux_host"}
ONE_AT_A_TIME = threading.Lock()
"""Devices boot in threads; two that import parts of the same package find it half done."""


def personality(name: str) -> type[Personality]:
    """Return the class of a personality; only those a lab needs are imported."""
    with ONE_AT_A_TIME:
        if name in FOLDERS:
            module = importlib.import_module(f"netkit.lab.personalities.{FOLDERS[name]}")
        else:
            installed = {entry.name: entry for entry in entry_points(group=GROUP)}
            if name not in installed:
                known = ", ".join((*FOLDERS, *installed))
                raise LabError(Problem(f"the lab has no personality {name!r}", f"use one of {known}"))
            module = installed[name].load()
    found: type[Personality] = module.PERSONALITY
    return found
