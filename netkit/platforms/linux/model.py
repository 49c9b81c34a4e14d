"""GPU hosts: the files netkit renders for a host's rails."""

from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Config, Files
from netkit.platforms.linux import files as linux
from netkit.platforms.linux.routing import host_routes
from netkit.platforms.linux.strategy import RISKS, constraints, strategy
from netkit.platforms.ownership import declared

KINDS = {
    "netplan.yaml": linux.NETPLAN,
    "oif.conf": linux.UNIT,
    "10-*.network": linux.UNIT,
    "10-*.link": linux.UNIT,
    "90-netkit-rails.conf": linux.SYSCTL,
    "netkit-nic-qos": linux.SCRIPT,
    "netkit-nic-qos@.service": linux.UNIT,
    "nccl.conf": linux.SHELL,
    "mlxconfig.conf": linux.SHELL,
    "70-netkit-rails.rules": linux.WHOLE,
}


def parse(files: Files) -> Config:
    """Return the files of a host as one configuration."""
    return linux.parse(files, KINDS)


def text(config: Config) -> dict[str, str]:
    """Return a configuration as files."""
    return linux.text(config, KINDS)


MODEL = ConfigModel(
    "linux", tuple(KINDS), parse, text, declared("host"), RISKS, strategy, tuple(constraints()), host_routes=host_routes
)
