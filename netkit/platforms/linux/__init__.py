"""GPU hosts, and what Linux switches share with them: configuration files."""

from netkit.platforms.platform import ManagementAccess

ACCESS = ManagementAccess("root", {"ssh": 22})
