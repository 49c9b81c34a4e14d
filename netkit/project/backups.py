"""What devices run, without secrets: the text to save of each, and the reason for each without one."""

from collections.abc import Mapping, Sequence

from netkit.design.select import Device
from netkit.errors import ConfigError
from netkit.plan import Running, Unreachable
from netkit.platforms import HOSTS
from netkit.platforms.backup import joined, without_secrets
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.platforms.existing import VERSION
from netkit.project.connections import Connections
from netkit.project.project import Project
from netkit.project.reading import read
from netkit.project.rendering import intended


def backed_up(project: Project, devices: Sequence[Device]) -> tuple[dict[str, str], dict[str, str]]:
    """Read devices; return the text to save for each, and the reason for each without one."""
    by_name = {device.name: device for device in devices}
    found = read(Connections.of(project), tuple(by_name), project.feedback, project.processes)
    return _texts(by_name, found, intended(project, devices))


def _texts(
    devices: Mapping[str, Device], found: Mapping[str, Running | Unreachable], wanted: Mapping[str, Files]
) -> tuple[dict[str, str], dict[str, str]]:
    texts, missed = {}, {}
    for name, one in found.items():
        if isinstance(one, Unreachable):
            missed[name] = one.reason
            continue
        try:
            files = without_secrets(MODELS[devices[name].platform], one.files, wanted[name])
        except ConfigError as error:  # secrets can only be removed from what can be parsed
            missed[name] = f"its running configuration cannot be parsed: {error.problems[0]}"
        else:
            is_switch = devices[name].platform != HOSTS
            texts[name] = joined({**files, **({VERSION: f"{one.version}\n"} if is_switch and one.version else {})})
    return texts, missed
