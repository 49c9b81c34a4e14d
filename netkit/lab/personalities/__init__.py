"""The network operating systems of the lab: one folder each, named as its platform, and `linux_host`."""

import importlib
import threading

from netkit.errors import LabError, Problem
from netkit.lab.personality import Personality

FOLDERS = {"nvue": "nvue", "sonic": "sonic", "eos": "eos", "frr": "frr", "linux-host": "linux_host"}
ONE_AT_A_TIME = threading.Lock()
"""Devices boot in threads; two that import parts of the same package find it half done."""


def personality(name: str) -> type[Personality]:
    """Return the class of a personality; only those a lab needs are imported."""
    if name not in FOLDERS:
        raise LabError(Problem(f"the lab has no personality {name!r}", f"use one of {', '.join(FOLDERS)}"))
    with ONE_AT_A_TIME:
        module = importlib.import_module(f"netkit.lab.personalities.{FOLDERS[name]}")
    found: type[Personality] = module.PERSONALITY
    return found
