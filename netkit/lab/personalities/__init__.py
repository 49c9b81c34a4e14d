"""The network operating systems of the lab: one folder each, named as its platform, and `linux_host`."""

import importlib

from netkit.errors import LabError, Problem
from netkit.lab.personality import Personality

FOLDERS = {"nvue": "nvue", "sonic": "sonic", "eos": "eos", "frr": "frr", "linux-host": "linux_host"}


def personality(name: str) -> type[Personality]:
    """Return the class of a personality; only those a lab needs are imported."""
    if name not in FOLDERS:
        raise LabError(Problem(f"the lab has no personality {name!r}", f"use one of {', '.join(FOLDERS)}"))
    module = importlib.import_module(f"netkit.lab.personalities.{FOLDERS[name]}")
    found: type[Personality] = module.PERSONALITY
    return found
