"""`scripts/bench deploy`: change one description on 32 switches over SSH, by netkit and by Ansible, in one run.

netkit runs its whole pipeline: read every device, apply under a timer, reconnect, verify, confirm, save.
Ansible copies a file, patches, applies and saves, without reading before, a timer or verification.
`--bare` deploys the reference fabric to devices with factory defaults instead, as `scripts/demo` does.
"""

import argparse
import json
import os
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

from bench.measure import MEGABYTE

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


NETKIT, CANARY, ANSIBLE = "netkit, one wave", "netkit, a canary first", "ansible"
BARE = "netkit, 22 devices from the factory"
BARE_BUDGET_S = 40.0
TOOLS = (NETKIT, CANARY, ANSIBLE)


@dataclass(frozen=True)
class Result:
    """One change on all switches, and the resources the tool used, including its children."""

    tool: str
    seconds: float
    processor_s: float
    peak_mb: float


def main() -> int:
    """Measure in turn; return 1 if netkit's least disturbed run misses its budget."""
    parser = argparse.ArgumentParser(prog="scripts/bench deploy", description="Change 32 switches over SSH.")
    parser.add_argument("--runs", type=int, default=3, help="changes by each tool (default 3)")
    parser.add_argument("--json", type=Path, default=ROOT / "out" / "bench-deploy.json")
    parser.add_argument("--no-ansible", dest="ansible", action="store_false", help="leave Ansible out")
    parser.add_argument("--bare", action="store_true", help="deploy the reference fabric to devices from the factory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nkb") as name:
        results = [_bare(Path(name)) for _ in range(given.runs)] if given.bare else _measure(Path(name), given)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return _bare_table(results) if given.bare else _table(results)


def _bare(home: Path) -> Result:
    """Boot the reference fabric with factory defaults, plan, and deploy the plan."""
    fabric, plan = str(ROOT / "inventory" / "reference"), str(home / "plan.json")
    _netkit(home, "lab", "up", "--fabric", fabric, "--lab", "bench", "--bare")
    try:
        _netkit(home, "plan", "--fabric", fabric, "--lab=bench", "-o", plan)
        return _netkit(home, "deploy", plan, "--fabric", fabric, "--lab=bench", "--yes", tool=BARE)
    finally:
        _netkit(home, "lab", "down", "--lab", "bench")


def _bare_table(results: list[Result]) -> int:
    seconds = [result.seconds for result in results]
    least, median = min(seconds), statistics.median(seconds)
    processor = min(result.processor_s for result in results)
    print(f"{BARE}: least {least:.1f} s, median {median:.1f} s; netkit and Ansible {processor:.1f} s of processor time")
    print(f"the budget is {BARE_BUDGET_S:g} s")
    return 0 if least <= BARE_BUDGET_S else 1


def _measure(home: Path, given: argparse.Namespace) -> list[Result]:
    fabric = home / "fabric"
    _netkit(home, "init", str(fabric), *SCAFFOLD)
    _netkit(home, "lab", "up", "--fabric", str(fabric), "--lab", "bench")
    try:
        results = []
        for number in range(given.runs):
            sys.stderr.write(f"round {number + 1} of {given.runs}\n")
            results.append(_by_netkit(home, fabric, NETKIT, f"one wave {number}", "--no-canary"))
            results.append(_by_netkit(home, fabric, CANARY, f"canary {number}"))
            if given.ansible:
                results.append(_by_ansible(home, f"ansible {number}"))
        return results
    finally:
        _netkit(home, "lab", "down", "--lab", "bench")


def _by_netkit(home: Path, fabric: Path, tool: str, text: str, *options: str) -> Result:
    """Change the description of one port of every switch through a template of the fabric."""
    template = fabric / "templates" / "nvue" / "interfaces.yaml.j2"
    template.parent.mkdir(parents=True, exist_ok=True)
    shipped = (ROOT / "templates" / "nvue" / "interfaces.yaml.j2").read_text(encoding="utf-8")
    template.write_text(shipped.replace("description: {{", f"description: {text} {{{{"), encoding="utf-8")
    plan = str(home / "plan.json")
    select = ("--fabric", str(fabric), "--lab=bench", "--limit", "!role=host")
    _netkit(home, "plan", *select, "-o", plan)
    how = ("--lab=bench", "--yes", "--together", "--parallel", "40", *options)
    return _netkit(home, "deploy", plan, "--fabric", str(fabric), *how, tool=tool)


def _by_ansible(home: Path, text: str) -> Result:
    record = json.loads((home / "bench" / "lab.json").read_text(encoding="utf-8"))
    switches = {name: device for name, device in record["devices"].items() if device["personality"] == "nvue"}
    hosts = {name: _ansible_host(home, device, text) for name, device in switches.items()}
    (home / "inventory.yaml").write_text(yaml.safe_dump({"switches": {"hosts": hosts}}), encoding="utf-8")
    (home / "change.yaml").write_text(PLAYBOOK.format(), encoding="utf-8")
    words = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(home / "inventory.yaml"), "-f", "32"]
    settings = {"ANSIBLE_HOST_KEY_CHECKING": "True", "ANSIBLE_HOME": str(home / "ansible")}
    return _run([*words, str(home / "change.yaml")], settings, ANSIBLE)


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


def _netkit(home: Path, *arguments: str, tool: str = "") -> Result:
    settings = {"NETKIT_LAB_DIR": str(home), "NETKIT_STATE_DIR": str(home / "state"), **SECRETS}
    return _run([str(Path(sys.executable).with_name("netkit")), *arguments], settings, tool)


def _run(words: list[str], settings: Mapping[str, str], tool: str) -> Result:
    """Run a program to its end, and return the resources it used."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        began_s = time.monotonic()
        process = subprocess.Popen(words, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {output.read()[-3000:]}")
    return Result(tool, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MEGABYTE)


def _table(results: list[Result]) -> int:
    least = {}
    print(f"{'32 switches, one description':<30} {'least':>8} {'median':>8} {'processor':>10} {'peak':>8}")
    for tool in TOOLS:
        found = [result for result in results if result.tool == tool]
        if not found:
            continue
        seconds = [result.seconds for result in found]
        least[tool] = min(seconds)
        processor = min(result.processor_s for result in found)
        figures = f"{min(seconds):>6.2f} s {statistics.median(seconds):>6.2f} s {processor:>8.1f} s"
        print(f"{tool:<30} {figures} {max(result.peak_mb for result in found):>5.0f} MB")
    if ANSIBLE in least:
        print(f"ansible takes {least[ANSIBLE] / least[NETKIT]:.1f} times as long")
    print(f"netkit's budget for one wave is {BUDGET_S:g} s")
    return 0 if least[NETKIT] <= BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
