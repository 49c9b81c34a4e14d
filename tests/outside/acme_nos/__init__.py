"""A NOS that netkit does not ship: a company's own Linux with FRR."""

from dataclasses import replace

from netkit.platforms.frr import PLATFORM as FRR
from netkit.platforms.platform import ManagementAccess

ACCESS = ManagementAccess("root", {"ssh": 22})
PLATFORM = replace(
    FRR,
    name="acme",
    title="Acme Linux",
    tested_versions=("8.4.4",),
    newest_version="8.4",
    starting_point=("SN5600", "8.4.4"),
)
