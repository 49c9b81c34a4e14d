"""The personalities of the lab: one folder per NOS, named after its platform, and `linux_host`."""

import importlib
import threading
from importlib.metadata import entry_points

from netkit.errors import LabError, Problem
from netkit.lab.personality import Personality

GROUP = "netkit.personalities"
"""Entry points of other packages: the name, and a module with `PERSONALITY`."""
FOLDERS = {"nvue": "nvue", "sonic": "sonic", "eos": "eos", "frr": "frr", "linux-host": "linux_host"}
IMPORT_LOCK = threading.Lock()
"""Devices boot in threads, and two threads must not import the same package at once."""


def personality(name: str) -> type[Personality]:
    """Import a personality; a lab imports only those it needs."""
    with IMPORT_LOCK:
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
