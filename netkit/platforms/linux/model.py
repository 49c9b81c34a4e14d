"""Configuration model of GPU hosts: the files netkit renders for a host's rails."""

from collections.abc import Mapping

from netkit.platforms.compare import ConfigModel
from netkit.platforms.config import Config, Files
from netkit.platforms.linux import file_kinds, install
from netkit.platforms.linux.routing import host_routes
from netkit.platforms.linux.strategy import RISKS, constraints, strategy
from netkit.platforms.ownership import LEFT, declared

KINDS = {
    "netplan.yaml": file_kinds.NETPLAN,
    "oif.conf": file_kinds.UNIT,
    "10-*.network": file_kinds.UNIT,
    "10-*.link": file_kinds.UNIT,
    "15-netkit-*.netdev": file_kinds.UNIT,
    "15-netkit-*.network": file_kinds.UNIT,
    "90-netkit-rails.conf": file_kinds.SYSCTL,
    "netkit-nic-qos": file_kinds.SCRIPT,
    "netkit-nic-qos@.service": file_kinds.UNIT,
    "nccl.conf": file_kinds.SHELL,
    "mlxconfig.conf": file_kinds.SHELL,
    "nicctl.conf": file_kinds.WHOLE,
    "70-netkit-rails.rules": file_kinds.WHOLE,
}


def parse(files: Files) -> Config:
    return file_kinds.parse(files, KINDS)


def text(config: Config) -> dict[str, str]:
    return file_kinds.text(config, KINDS)


MODEL = ConfigModel(
    "linux",
    tuple(KINDS),
    parse,
    text,
    declared("host"),
    RISKS,
    strategy,
    tuple(constraints()),
    host_routes=host_routes,
    list_file=install.LIST,
)


def with_left(intended: Files, running: Mapping[str, str | None]) -> Files:
    """Return the intended files with what `leave` of the intent keeps of the running ones.

    Only the files with such parts are written again, and then without comments. A file that is left as a whole and is
    not there is not made.
    """
    ownership = MODEL.ownership.on(intended)
    present = {file: text for file, text in running.items() if text is not None and MODEL.reads(file)}
    have, want = MODEL.read(present), MODEL.read({file: text for file, text in intended.items() if MODEL.reads(file)})
    left = {path: value for path, value in have.items() if ownership.standing(path) == LEFT}
    merged = {path: value for path, value in want.items() if ownership.standing(path) != LEFT} | left
    touched = {path[0] for path in left} | {path[0] for path in want if ownership.standing(path) == LEFT}
    written = MODEL.text({path: value for path, value in merged.items() if path[0] in touched})
    kept = {file: text for file, text in intended.items() if file not in touched or file in written or file in present}
    return {**kept, **{file: written.get(file, "") for file in touched if file in kept or file in written}}
