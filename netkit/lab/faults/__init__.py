"""Faults to inject: what each stands for and where it belongs, which are active, and how to make and heal them."""

from netkit.lab.faults.fault import Change, Fault, Faults, Value

__all__ = ["Change", "Fault", "Faults", "Value"]
