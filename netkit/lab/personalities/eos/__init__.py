"""Arista EOS: eAPI, configuration sessions with timers, and the show commands the toolkit reads."""

from netkit.lab.personalities.eos.personality import Eos

PERSONALITY = Eos
