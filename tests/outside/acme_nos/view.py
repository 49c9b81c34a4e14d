"""The files of a switch: those of FRR, and Acme's own head of frr.conf."""

from collections.abc import Iterator
from dataclasses import replace

from netkit.design.fabric import Fabric, Switch
from netkit.render.artifact import Artifact
from netkit.render.views import frr


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the files of a switch."""
    for one in frr.artifacts(fabric, switch):
        yield replace(one, template="acme/frr.conf.j2") if one.file == "frr.conf" else one


ztp = frr.ztp
