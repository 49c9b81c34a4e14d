"""The lab personality."""

from netkit.lab.personalities.frr import Frr


class Acme(Frr):
    """Linux with FRR, under another prompt."""

    prompt = "acme {host}# "


PERSONALITY = Acme
