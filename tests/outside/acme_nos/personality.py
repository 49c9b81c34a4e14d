"""How the lab plays it."""

from netkit.lab.personalities.frr.personality import Frr


class Acme(Frr):
    """Linux with FRR, under another prompt."""

    prompt = "acme {host}# "


PERSONALITY = Acme
