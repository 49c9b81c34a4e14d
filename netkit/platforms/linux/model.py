"""Configuration model of GPU hosts: the files netkit renders for a host's rails."""

from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Config, Files
from netkit.platforms.linux import file_kinds
from netkit.platforms.linux.routing import host_routes
from netkit.platforms.linux.strategy import RISKS, constraints, strategy
from netkit.platforms.ownership import declared

KINDS = {
    "netplan.yaml": file_kinds.NETPLAN,
    "oif.conf": file_kinds.UNIT,
    "10-*.network": file_kinds.UNIT,
    "10-*.link": file_kinds.UNIT,
    "90-netkit-rails.conf": file_kinds.SYSCTL,
    "netkit-nic-qos": file_kinds.SCRIPT,
    "netkit-nic-qos@.service": file_kinds.UNIT,
    "nccl.conf": file_kinds.SHELL,
    "mlxconfig.conf": file_kinds.SHELL,
    "70-netkit-rails.rules": file_kinds.WHOLE,
}


def parse(files: Files) -> Config:
    return file_kinds.parse(files, KINDS)


def text(config: Config) -> dict[str, str]:
    return file_kinds.text(config, KINDS)


MODEL = ConfigModel(
    "linux", tuple(KINDS), parse, text, declared("host"), RISKS, strategy, tuple(constraints()), host_routes=host_routes
)
