"""Faults to inject: what each stands for and where it belongs, which are active, and how to make and heal them."""

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
