"""The configuration model: that of FRR."""

from dataclasses import replace

from netkit.platforms.frr.model import MODEL as FRR

MODEL = replace(FRR, platform="acme")
