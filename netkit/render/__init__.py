"""Stage 3: Fabric → intended configuration files."""

from netkit.render.engine import Engine
from netkit.render.output import Written, read_manifest, write
from netkit.render.render import inputs, manifest_head, names, render, render_clusters, templates

__all__ = [
    "Engine",
    "Written",
    "inputs",
    "manifest_head",
    "names",
    "read_manifest",
    "render",
    "render_clusters",
    "templates",
    "write",
]
