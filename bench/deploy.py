"""`scripts/bench deploy`: one description changed on 32 switches over SSH, by netkit and by Ansible, in one run.

netkit does its whole pipeline: look at every device, apply under a timer, a new connection, verify, confirm, save.
Ansible copies a file, patches, applies and saves, without a look before, a timer or a look after.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
BUDGET_S = 3.0
SCAFFOLD = ("--leaves", "8", "--spines", "8", "--units", "3", "--hosts-per-unit", "1")
SECRETS = {f"NETKIT_SECRET_{name}": "bench-bench-bench" for name in ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")}
PLAYBOOK = """
- hosts: switches
  gather_facts: false
  tasks:
    - copy: {{content: "{{{{ patch }}}}", dest: /tmp/patch.yaml}}
    - command: nv config patch /tmp/patch.yaml
    - command: nv config apply -y
    - command: nv config save
"""


@dataclass(frozen=True)
class Result:
    """One change on all switches."""

    tool: str
    seconds: float
    processor_s: float


def main() -> int:
    """Measure in turns, and return 1 when netkit's least disturbed run misses its budget."""
    parser = argparse.ArgumentParser(prog="scripts/bench deploy", description="Change 32 switches over SSH.")
    parser.add_argument("--runs", type=int, default=3, help="changes by each tool (default 3)")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-deploy.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nkb") as name:
        results = _measure(Path(name), given.runs)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return _table(results)


def _measure(home: Path, runs: int) -> list[Result]:
    fabric = home / "fabric"
    _netkit(home, "init", str(fabric), *SCAFFOLD)
    _netkit(home, "lab", "up", "--fabric", str(fabric), "--name", "bench")
    try:
        results = []
        for number in range(runs):
            sys.stderr.write(f"round {number + 1} of {runs}\n")
            results.append(_by_netkit(home, fabric, f"netkit {number}"))
            results.append(_by_ansible(home, f"ansible {number}"))
        return results
    finally:
        _netkit(home, "lab", "down", "--name", "bench")


def _by_netkit(home: Path, fabric: Path, text: str) -> Result:
    """Change the description of one port of every switch by a template of the fabric's own."""
    template = fabric / "templates" / "nvue" / "interfaces.yaml.j2"
    template.parent.mkdir(parents=True, exist_ok=True)
    shipped = (ROOT / "templates" / "nvue" / "interfaces.yaml.j2").read_text(encoding="utf-8")
    template.write_text(shipped.replace("description: {{", f"description: {text} {{{{"), encoding="utf-8")
    plan = str(home / "plan.json")
    select = ("--fabric", str(fabric), "--lab=bench", "--limit", "!role=host")
    _netkit(home, "plan", *select, "-o", plan)
    began, before = time.monotonic(), _children_s()
    _netkit(home, "deploy", plan, "--fabric", str(fabric), "--lab=bench", "--yes", "--together", "--parallel", "40")
    return Result("netkit", time.monotonic() - began, _children_s() - before)


def _by_ansible(home: Path, text: str) -> Result:
    record = json.loads((home / "bench" / "lab.json").read_text(encoding="utf-8"))
    switches = {name: device for name, device in record["devices"].items() if device["personality"] == "nvue"}
    hosts = {name: _ansible_host(home, device, text) for name, device in switches.items()}
    (home / "inventory.yaml").write_text(yaml.safe_dump({"switches": {"hosts": hosts}}), encoding="utf-8")
    (home / "change.yaml").write_text(PLAYBOOK.format(), encoding="utf-8")
    words = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(home / "inventory.yaml"), "-f", "32"]
    began, before = time.monotonic(), _children_s()
    _run(
        [*words, str(home / "change.yaml")],
        {"ANSIBLE_HOST_KEY_CHECKING": "True", "ANSIBLE_HOME": str(home / "ansible")},
    )
    return Result("ansible", time.monotonic() - began, _children_s() - before)


def _ansible_host(home: Path, device: Mapping[str, Any], text: str) -> dict[str, Any]:
    lab = home / "bench"
    patch = yaml.safe_dump([{"set": {"interface": {"swp1s0": {"description": text}}}}])
    return {
        "ansible_host": device["address"],
        "ansible_port": device["port"],
        "ansible_user": device["login"],
        "ansible_ssh_private_key_file": str(lab / "key"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={lab / 'known_hosts'} -o IdentitiesOnly=yes",
        "ansible_python_interpreter": "/usr/bin/python3",
        "patch": patch,
    }


def _netkit(home: Path, *arguments: str) -> None:
    settings = {"NETKIT_LAB_DIR": str(home), "NETKIT_STATE_DIR": str(home / "state"), **SECRETS}
    _run([str(Path(sys.executable).with_name("netkit")), *arguments], settings)


def _run(words: list[str], settings: Mapping[str, str]) -> None:
    done = subprocess.run(words, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _table(results: list[Result]) -> int:
    least = {}
    print(f"{'32 switches, one description':<30} {'least':>8} {'median':>8} {'processor':>10}")
    for tool in ("netkit", "ansible"):
        found = [result for result in results if result.tool == tool]
        seconds = [result.seconds for result in found]
        least[tool] = min(seconds)
        processor = statistics.median(result.processor_s for result in found)
        print(f"{tool:<30} {min(seconds):>6.2f} s {statistics.median(seconds):>6.2f} s {processor:>8.1f} s")
    print(f"ansible takes {least['ansible'] / least['netkit']:.1f} times as long; netkit's budget is {BUDGET_S:g} s")
    return 0 if least["netkit"] <= BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
