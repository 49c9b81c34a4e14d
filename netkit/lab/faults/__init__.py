"""Faults to inject: their catalogue, where each applies, which are active, and how they are injected and healed."""

from netkit.lab.faults.catalog import CATALOG, check, known, locate, parse_options
from netkit.lab.faults.fault import FaultChange, FaultKind, Faults, InjectedFault, Maker, Option, Target, Value

__all__ = [
    "CATALOG",
    "FaultChange",
    "FaultKind",
    "Faults",
    "InjectedFault",
    "Maker",
    "Option",
    "Target",
    "Value",
    "check",
    "known",
    "locate",
    "parse_options",
]
