"""netkit: network fabric automation and validation for GPU clusters."""

__version__ = "0.1.0"
