"""The files of a switch: those of FRR, with a header of its own in frr.conf."""

from collections.abc import Iterator
from dataclasses import replace

from netkit.design.fabric import Fabric, Switch
from netkit.platforms.frr import view
from netkit.render.output import Artifact


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    for one in view.artifacts(fabric, switch):
        yield replace(one, template="acme/frr.conf.j2") if one.file == "frr.conf" else one


ztp = view.ztp
