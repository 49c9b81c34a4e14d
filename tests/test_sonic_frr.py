"""SONiC's frr.conf in real FRR: as the BGP container loads it, in its own namespace."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.render import Engine, render
from tests import intents

ENGINE = Engine()
DAEMONS = Path("/usr/lib/frr")
needs_frr = pytest.mark.skipif(
    os.geteuid() != 0 or not (DAEMONS / "bgpd").exists() or not shutil.which("unshare"), reason="needs root and FRR"
)
MARK = "--- running configuration"
# Daemons as the container starts them: zebra with its forwarding plane manager, bfdd beside bgpd.
SCRIPT = """set -eu
mount --make-rprivate /
mount -t tmpfs none /run/frr
mount -t tmpfs none /etc/frr
chown frr:frr /run/frr /etc/frr
touch /etc/frr/vtysh.conf
ip link set lo up
/usr/lib/frr/zebra -d -A 127.0.0.1 -M dplane_fpm_nl
/usr/lib/frr/bgpd -d -A 127.0.0.1
/usr/lib/frr/bfdd -d -A 127.0.0.1
for try in $(seq 100); do
  [ -S /run/frr/zebra.vty ] && [ -S /run/frr/bgpd.vty ] && [ -S /run/frr/bfdd.vty ] && break
  sleep 0.05
done
cp "$1" /etc/frr/frr.conf
# What docker_init.sh does before it starts FRR.
grep -q '^no fpm use-next-hop-groups' /etc/frr/frr.conf || { echo appended; exit 1; }
vtysh -b 2>&1
echo '--- running configuration'
vtysh -c 'show running-config' 2>&1
"""
# What FRR omits from its running configuration because it is the default, and what it adds.
DEFAULTS = {"bgp ebgp-requires-policy", "detect-multiplier 3", "receive-interval 300", "transmit-interval 300"}
OWN = re.compile(r"frr version .*|hostname .*|service integrated-vtysh-config|no ipv?6? ?forwarding|end|exit.*|!")
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("leaf01", "202411", {}),
    ("spine01", "202411", {}),
    ("leaf01", "202511", {"attachment": "vlan"}),
    ("leaf01", "202505", {"overrides": {"leaf01": {"drain": True, "drain_neighbors": ["spine02"]}}}),
    ("spine01", "202305", {"overrides": {"spine01": {"drain_neighbors": ["leaf02"]}}, "routing": {"allowas_in": True}}),
    ("leaf01", "202411", {"routing": {"bfd": {"interval_ms": 100, "multiplier": 5}, "leaf_export": "all"}}),
]


def frr_conf(name: str, version: str, changes: dict[str, Any]) -> str:
    fabric = intents.fabric(intents.on_platform("sonic", version, {"purpose": "lab", **changes}))
    (device,) = render(fabric, [fabric.switch(name)], ENGINE)
    return device.files["frr.conf"]


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Yield every effective line with its section."""
    section = ""
    for line in text.splitlines():
        said = line.strip()
        if not line.startswith(" "):
            section = said
        if said and not OWN.fullmatch(said) and said not in DEFAULTS:
            yield (section, said) if line.startswith(" ") else ("", said)


@needs_frr
@pytest.mark.parametrize(("name", "version", "changes"), CASES)
def test_frr_accepts_every_line_and_runs_the_intended_configuration(
    tmp_path: Path, name: str, version: str, changes: dict[str, Any]
) -> None:
    file, script = tmp_path / "frr.conf", tmp_path / "script"
    intended = frr_conf(name, version, changes)
    file.write_text(intended, encoding="utf-8")
    script.write_text(SCRIPT, encoding="utf-8")
    checked = subprocess.run(["vtysh", "-C", "-f", file], capture_output=True, text=True, check=False, timeout=30)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr
    # The namespaces, and with them all daemons, end with the shell.
    command: list[str | Path] = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        script,
        file,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    loading, _, running = done.stdout.partition(MARK)
    reported = [
        line for line in loading.splitlines() if not re.fullmatch(r"The route-map '[A-Z-]+' does not exist\.", line)
    ]
    assert reported == []
    shown = running.partition("Current configuration:")[2]
    assert Counter(statements(shown)) == Counter(statements(intended))


def test_the_zebra_lines_of_the_container_are_already_there() -> None:
    always = {"no fpm use-next-hop-groups", "fpm address 127.0.0.1"}
    kernel = "no zebra nexthop kernel enable"
    for version, wanted in (("202305", {*always, kernel}), ("202505", {*always, kernel}), ("202511", always)):
        lines = frr_conf("leaf01", version, {}).splitlines()
        assert {line for line in lines if "fpm" in line or "zebra" in line} == wanted
