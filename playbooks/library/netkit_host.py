#!/usr/bin/python
"""Changes the files netkit keeps on a GPU host, step by step, under a timer that takes them back."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.netkit_rails import settled
from ansible.module_utils.netkit_traffic import counters, verdict

DOCUMENTATION = """
module: netkit_host
short_description: Change netkit's files on a GPU host
description:
  - Compares, installs and takes back the files netkit renders for a host. What it does on the host is done by the
    program given as O(program), which stays there until the change is confirmed or reverted.
  - In check mode it compares and writes nothing.
options:
  step:
    description: What to do.
    choices: [begin, rail, finish, confirm, back, state]
    required: true
  files:
    description: For begin, the files as they should be. Files of netkit's that are not among them are removed.
    type: list
    elements: dict
  staged:
    description: For begin, take the files from this file on the host instead.
    type: path
  program:
    description: For begin, the text of the program.
    type: str
  change:
    description: What the change is called. With a name, no step touches another change.
    type: str
  revert_in:
    description: For begin, seconds until the change reverts by itself.
    type: int
  rail:
    description: For rail, which one.
    type: str
  at_once:
    description:
      - For begin, whether a host whose rails carry no traffic changes all of them in this step, reads back and
        verifies; C(rails) is empty then. What goes wrong is reverted in this step as well.
    choices: [idle, never]
    default: never
  quiet_s:
    description: For begin, how long the counters of the rails must stand still to be taken for idle.
    type: float
    default: 1
  verify:
    description: For begin, what each rail should be after the change, as for M(netkit_rails).
    type: list
    elements: dict
    default: []
  settle_s:
    description: For begin, how long routes may take to appear.
    type: float
    default: 0
"""

STEPS = ["begin", "rail", "finish", "confirm", "back", "state"]
FOLDER = Path("/etc/netkit")
STATE = FOLDER / "change"
ABSENT = "absent"
RAIL = re.compile(r"/etc/systemd/network/1(?:0-(?:netplan-)?|5-netkit-)([^/]+?)(?:-members)?\.network(?:\.d/.*)?")
# All that netkit ever renders for a host: what of it is there and no longer intended goes away.
OWNED = (
    "/etc/netplan/60-netkit-rails.yaml",
    "/etc/systemd/network/10-netplan-rail[0-9]*.network.d/oif.conf",
    "/etc/systemd/network/10-rail[0-9]*.network",
    "/etc/systemd/network/10-rail[0-9]*.link",
    "/etc/systemd/network/15-netkit-*.netdev",
    "/etc/systemd/network/15-netkit-*.network",
    "/etc/udev/rules.d/70-netkit-rails.rules",
    "/etc/sysctl.d/90-netkit-rails.conf",
    "/usr/local/sbin/netkit-nic-qos",
    "/etc/systemd/system/netkit-nic-qos@.service",
    "/etc/nccl.conf",
    "/etc/netkit/mlxconfig.conf",
    "/etc/netkit/nicctl.conf",
)


def main() -> None:
    """Do one step."""
    module = AnsibleModule(
        argument_spec={
            "step": {"required": True, "choices": STEPS},
            "files": {"type": "list", "elements": "dict"},
            "staged": {"type": "path"},
            "program": {"type": "str"},
            "change": {"type": "str", "default": ""},
            "revert_in": {"type": "int", "default": 300},
            "rail": {"type": "str", "default": ""},
            "at_once": {"choices": ["idle", "never"], "default": "never"},
            "quiet_s": {"type": "float", "default": 1},
            "verify": {"type": "list", "elements": "dict", "default": []},
            "settle_s": {"type": "float", "default": 0},
        },
        required_if=[("step", "begin", ("files", "staged"), True), ("step", "begin", ("program",))],
        supports_check_mode=True,
    )
    step = module.params["step"]
    arguments = [module.params["rail"], module.params["change"]][step != "rail" :]
    if step == "begin":
        begin(module)
    elif module.check_mode and step != "state":
        module.exit_json(changed=False, rails=[])
    else:
        answer(module, run([step, *arguments], STATE, changed=step not in {"finish", "state"}))


def begin(module: AnsibleModule) -> None:
    """Compare; if anything differs, save it, set the timer, and install what belongs to no single rail.

    A host without traffic changes all of its rails; for others, the result lists the rails to change in turn.
    """
    began, files = time.monotonic(), wanted(module)
    outside = [entry["path"] for entry in files if not is_owned(entry["path"])]
    if outside:
        module.fail_json(msg=f"not a place for netkit's files: {', '.join(outside)}")
    found = [(entry, *running(Path(entry["path"]))) for entry in files]
    differing = [
        (entry, mode, text) for entry, mode, text in found if (mode, text) != (entry["mode"], entry["content"])
    ]
    result = {
        "changed": bool(differing),
        "diff": [shown(*one) for one in differing] if module._diff else [],  # noqa: SLF001 (so Ansible calls it)
        "files": [entry["path"] for entry, _, _ in differing],
        "rails": [],
    }
    if module.check_mode:
        module.exit_json(**result)
    is_asked = module.params["at_once"] == "idle" and bool(differing)
    rails = sorted({found[1] for entry in files if (found := RAIL.fullmatch(entry["path"]))}) if is_asked else []
    before = counters(rails)
    folder = stage(module, files) if differing else FOLDER
    if module.params["staged"]:
        Path(module.params["staged"]).unlink(missing_ok=True)
    if not differing:
        module.exit_json(**result)
    result = run(["begin", module.params["change"], str(module.params["revert_in"])], folder, **result)
    if is_asked and not result.get("failed"):
        is_idle, why = verdict(rails, before, began, module.params["quiet_s"])
        result["traffic"] = why
        if is_idle:
            answer(module, all_at_once(module, result))
    if not result.get("failed"):
        result = run(["rails", module.params["change"]], STATE, **result)
    answer(module, result)


def all_at_once(module: AnsibleModule, begun: dict[str, Any]) -> dict[str, Any]:
    """Change all rails, read back and verify; whatever goes wrong is taken back here, as no job waits for a rail."""
    change = module.params["change"]
    result = run(["all", change], STATE, **{**begun, "rails": [], "at_once": True})
    if not result.get("failed"):
        problems, dark = settled(module.params["verify"], module.params["settle_s"], tolerate_dark=True)
        result["dark"] = dark
        if problems:
            undone = run(["undo", change], STATE)
            result.update(failed=True, msg="; ".join([*problems[:8], *([undone["msg"]] if "msg" in undone else [])]))
    if result.get("failed"):
        is_open = run(["state"], STATE)["printed"].split()[:1] in (["pending"], ["back"])
        result.update(changed=is_open, taken_back=not is_open)
    return result


def wanted(module: AnsibleModule) -> list[dict[str, str]]:
    """The files as they should be; those that are no longer intended are to be absent."""
    files = module.params["files"]
    if module.params["staged"]:
        try:
            staged = json.loads(Path(module.params["staged"]).read_text(encoding="utf-8"))
            files = staged["files"]
            module.no_log_values.update(staged["secrets"])  # whatever the answer holds of them becomes asterisks
        except (OSError, ValueError) as error:
            module.fail_json(msg=f"nothing is staged on the host: {error}")
    paths = {entry["path"] for entry in files}
    there = sorted({str(path) for pattern in OWNED for path in Path("/").glob(pattern[1:])} - paths)
    return [*files, *({"path": path, "mode": ABSENT, "content": ""} for path in there)]


def is_owned(path: str) -> bool:
    """Whether a file is one of netkit's: an asterisk matches anything but a slash."""
    parts = path.split("/")
    patterns = (pattern.split("/") for pattern in OWNED)
    return ".." not in parts and any(
        len(pattern) == len(parts) and all(map(fnmatch.fnmatchcase, parts, pattern)) for pattern in patterns
    )


def running(path: Path) -> tuple[str, str]:
    """Mode and text of a file as it is."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        return f"{stat.S_IMODE(path.stat().st_mode):04o}", text
    except FileNotFoundError:
        return ABSENT, ""


def shown(entry: dict[str, str], mode: str, text: str) -> dict[str, str]:
    """A difference as Ansible shows it."""
    before = entry["path"] + (" (not there)" if mode == ABSENT else f" ({mode})")
    after = entry["path"] + (" (removed)" if entry["mode"] == ABSENT else f" ({entry['mode']})")
    return {
        "before": printable(text),
        "after": printable(entry["content"]),
        "before_header": before,
        "after_header": after,
    }


def printable(text: str) -> str:
    """A text as JSON can hold it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def stage(module: AnsibleModule, files: list[dict[str, str]]) -> Path:
    """Write the files beside where they belong, readable by root alone; return the folder."""
    folder = FOLDER
    try:
        FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="change.", dir=FOLDER))
        (folder / "wanted").mkdir(mode=0o700)
        write(folder / "program", module.params["program"])
        for number, entry in enumerate(files):
            if entry["mode"] != ABSENT:
                write(folder / "wanted" / str(number), entry["content"])
        lines = [f"{entry['mode']} {number} {entry['path']}\n" for number, entry in enumerate(files)]
        write(folder / "wanted" / "list", "".join(lines))
    except OSError as error:
        if folder != FOLDER:
            shutil.rmtree(folder, ignore_errors=True)
        module.fail_json(msg=f"the change cannot be staged in {folder}: {error.strerror}; nothing was touched")
    return folder


def write(path: Path, text: str) -> None:
    """Write a file for root alone."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)


def run(arguments: list[str], folder: Path, **result: Any) -> dict[str, Any]:
    """Run the program that came with the change; what it prints are rails, or a state."""
    program = folder / "program"
    if not program.exists():
        if arguments[0] == "state":
            return {**result, "printed": "none"}
        return {**result, "changed": False, "failed": True, "msg": "there is no change on this host"}
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", str(program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    out, err = (text.decode("utf-8", "replace").strip() for text in (done.stdout, done.stderr))
    result |= {"printed": out, "rails": out.split() if arguments[0] in {"rails", "back"} else []}
    if done.returncode != 0:
        is_changed = done.returncode == 1 and bool(result.get("changed"))
        result |= {"changed": is_changed, "failed": True, "msg": err or f"exit code {done.returncode}"}
    return result


def answer(module: AnsibleModule, result: dict[str, Any]) -> None:
    """End with a result."""
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
