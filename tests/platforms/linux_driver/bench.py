"""A small lab whose GPU hosts are driven by netkit and by plain Ansible."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from netkit.access.endpoints import lab_endpoints
from netkit.access.inventory import ansible_inventory as inventory
from netkit.access.inventory import inventory_text as text
from netkit.access.settings import Endpoint
from netkit.design.fabric import Fabric, Host
from netkit.platforms.driver import Candidate, Secrets
from netkit.platforms.linux.driver import LinuxDriver, shipped_playbooks
from tests.command import Done
from tests.intents import fabric
from tests.lab.personalities.linux_host_desk import rendered
from tests.lab.running import PATIENCE_S, RunningLab

ANSIBLE = Path(sys.executable).parent / "ansible-playbook"
PLACES = (
    "/etc/netplan /etc/systemd/network /etc/systemd/system /etc/sysctl.d /etc/udev/rules.d /etc/nccl.conf "
    "/etc/netkit/mlxconfig.conf /usr/local/sbin"
)
Edit = Callable[[str], str]


@dataclass(frozen=True)
class Bench:
    """A running lab, and the fabric it was built from."""

    lab: RunningLab
    fabric: Fabric
    folder: Path

    @cached_property
    def endpoints(self) -> Mapping[str, Endpoint]:
        folder = self.lab.home / self.lab.name
        return lab_endpoints(json.loads((folder / "lab.json").read_text()), folder)

    @property
    def hosts(self) -> tuple[Host, ...]:
        return self.fabric.hosts

    def files(self, device: str, **edits: Edit) -> dict[str, str]:
        """The rendered files of a host, some edited; dots and dashes of their names are underscores."""
        host = next(host for host in self.hosts if host.name == device)
        files = dict(rendered(self.fabric, host))
        names = {name.replace(".", "_").replace("-", "_"): name for name in files}
        for name, edit in edits.items():
            before = files[names[name]]
            files[names[name]] = edit(before)
            assert files[names[name]] != before
        return files

    def write(self, files: Mapping[str, Mapping[str, str]]) -> Path:
        """Write files as `netkit render` does."""
        for device, texts in files.items():
            place = self.folder / "rendered" / device
            place.mkdir(parents=True, exist_ok=True)
            for name, content in texts.items():
                (place / name).write_text(content, encoding="utf-8")
        return self.folder / "rendered"

    def ansible(self, playbook: str, *options: str) -> Done:
        """Run a playbook as a user does."""
        place = self.folder / "inventory.yml"
        place.write_text(text(inventory(self.fabric, self.endpoints)), encoding="utf-8")
        return subprocess.run(
            [str(ANSIBLE), "-i", str(place), str(shipped_playbooks() / playbook), *options],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def driver(self, device: str, secrets: Secrets | None = None) -> LinuxDriver:
        """A connected driver."""
        endpoint = self.endpoints[device]
        files = {"key_file": str(endpoint.key_file), "known_hosts": str(endpoint.known_hosts)}
        options = {"device": device, "port": endpoint.port, "secrets": secrets, **files}
        driver = LinuxDriver(endpoint.host, endpoint.user, "", optional_args=options)
        driver.open()
        return driver

    def loaded(self, device: str, files: Mapping[str, str]) -> LinuxDriver:
        """A driver with files staged."""
        driver = self.driver(device)
        driver.load_candidate(Candidate(files, (), "ansible"))
        return driver

    def disk(self, device: str) -> str:
        """All files that a change could affect, with their modes and checksums."""
        listed = f"find {PLACES} -type f -printf '%p %m\\n' 2>/dev/null | sort"
        return self.lab.shell(device, f"{listed}; find {PLACES} -type f 2>/dev/null | sort | xargs -r sha256sum")

    def kernel(self, device: str) -> str:
        """The network state of a host that a change could affect."""
        keys = " ".join(f"net.ipv4.conf.{name}.rp_filter" for name in ("all", "default", "rail0", "rail1"))
        show = "ip -4 -o address show scope global; ip -4 route show table all proto static; ip -4 rule"
        shown = self.lab.shell(device, f"{show}; cat /sys/class/net/rail*/mtu; sysctl {keys}")
        return "\n".join(sorted(shown.splitlines()))


def bench(lab: RunningLab, values: Mapping[str, object], folder: Path) -> Bench:
    return Bench(lab, fabric(dict(values)), folder)
