"""Running and intended configurations → what has to change, and what that risks."""

from netkit.plan.make import Others, ReadBeside, Sides, keeping, limited, make, ordered, rollback, sides_of, writable
from netkit.plan.model import Blast, DevicePlan, Plan, Running, Unreachable, UnreadDevice
from netkit.plan.serial import read, write

__all__ = [
    "Blast",
    "DevicePlan",
    "Others",
    "Plan",
    "ReadBeside",
    "Running",
    "Sides",
    "Unreachable",
    "UnreadDevice",
    "keeping",
    "limited",
    "make",
    "ordered",
    "read",
    "rollback",
    "sides_of",
    "writable",
    "write",
]
