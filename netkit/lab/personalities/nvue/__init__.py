"""NVIDIA Cumulus Linux 5.x as NVUE presents it."""

from netkit.lab.personalities.nvue.switch import Nvue

PERSONALITY = Nvue
