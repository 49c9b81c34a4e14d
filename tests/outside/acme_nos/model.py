"""Its configuration, which reads as FRR's."""

from dataclasses import replace

from netkit.platforms.frr.model import MODEL as FRR

MODEL = replace(FRR, platform="acme")
