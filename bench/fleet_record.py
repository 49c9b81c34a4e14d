"""Record what a host, a leaf and a spine of a running lab answer: `python -m bench.fleet_record FABRIC LAB FILE`."""

import json
import sys
from pathlib import Path

from netkit.project.connections import Connections
from netkit.project.observing import looked_at
from netkit.project.project import Project


def main(folder: str, lab: str, file: str) -> None:
    project = Project.open(folder, lab=lab)
    connections, fabric = Connections.of(project), project.fabric
    found = {}
    for role, device in (
        ("host", fabric.hosts[0]),
        ("leaf", fabric.tier("leaf")[0]),
        ("spine", fabric.tier("spine")[0]),
    ):
        views = looked_at(fabric, device, is_light=False).views
        commands = tuple(dict.fromkeys(command for view in views for command in view.commands))
        viewer = connections.viewer(device.name)
        viewer.open()
        try:
            found[role] = {asked: reply.text for asked, reply in zip(commands, viewer.ask(commands), strict=True)}
        finally:
            viewer.close()
    Path(file).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
