"""`netkit mcp`, driven by the client of the protocol's own SDK over stdin and stdout."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from netkit.errors import UsageError
from netkit.mcp import LONGEST_TEXT, MOST_ITEMS, clean
from netkit.project.project import Project
from netkit.project.proposal import propose
from tests.command import environment, run

DEVICE_CODE = """
import sys
from pathlib import Path
from netkit.errors import NetkitError
from netkit.mcp import FabricTools
tools = FabricTools(Path(sys.argv[1]), "")
text = Path(sys.argv[1], "fabric.yaml").read_text()
calls = [
    tools.summary, tools.devices, tools.addresses, tools.cabling, lambda: tools.configuration("leaf-u01-r0"),
    lambda: tools.explain("gpu-u01-01:rail0"), lambda: tools.plan("HEAD"), tools.findings, tools.history, tools.checks,
    lambda: tools.propose_change({"fabric.yaml": text + "# changed\\n"}, "a", "why"),
]
for call in calls:
    try:
        call()
    except NetkitError as error:
        assert "no stored run" in str(error) or "store" in str(error), error
print(*sorted(sys.modules))
"""

ERROR = "Error executing tool propose_change: "
"""The prefix that the SDK puts before an error."""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    folder = tmp_path / "inventory" / "f"
    done = run("init", folder, "--leaves", "2", "--spines", "2", "--hosts-per-unit", "2")
    assert done.returncode == 0, done.stderr
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "begin")
    return folder


def asked(folder: Path, *calls: tuple[str, Mapping[str, Any]]) -> list[tuple[bool, Any]]:
    """Call tools over the protocol; return for each whether it failed, and its data or text."""

    async def ask() -> list[tuple[bool, Any]]:
        state = str(folder.parent.parent / "state")
        env = environment(XDG_STATE_HOME=state, XDG_CACHE_HOME=state)
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "netkit", "mcp", "--fabric", str(folder)], env=env
        )
        found = []
        async with Client(server) as client:
            for name, given_arguments in calls:
                result: Any = await client.call_tool(name, dict(given_arguments))
                data = result.content[0].text if result.is_error else result.structured_content
                found.append((bool(result.is_error), data))
        return found

    return asyncio.run(ask())


def test_the_tools_return_the_data_of_the_command_line(fabric: Path) -> None:
    (_, devices), (_, addresses), (_, files), (_, plan), (is_wrong, text) = asked(
        fabric,
        ("devices", {"limit": "role=leaf"}),
        ("addresses", {"limit": "leaf-u01-r0"}),
        ("configuration", {"device": "leaf-u01-r0"}),
        ("plan", {"revision": "HEAD"}),
        ("explain", {"place": "leaf-u01-r9:swp1s0"}),
    )
    assert [device["name"] for device in devices["devices"]] == ["leaf-u01-r0", "leaf-u01-r1"]
    printed = run("design", "--fabric", fabric, "--addresses", "--limit", "leaf-u01-r0", "--format", "json")
    assert addresses["addresses"] == json.loads(printed.stdout)
    assert files["files"] == dict(Project.open(fabric).render("leaf-u01-r0")["leaf-u01-r0"])
    assert plan == json.loads(run("plan", "--fabric", fabric, "--against", "git:HEAD", "--format", "json").stdout)
    assert is_wrong
    assert "leaf-u01-r9" in text
    assert "Traceback" not in text


def test_a_proposal_is_a_branch_and_does_not_change_the_checkout(fabric: Path) -> None:
    root, text = fabric.parent.parent, (fabric / "fabric.yaml").read_text(encoding="utf-8")
    (fabric / "note.txt").write_text("not committed", encoding="utf-8")
    before = git(root, "status", "--porcelain=v2", "--branch")
    changed = text.replace("  ntp: [192.0.2.2]", "  ntp: [192.0.2.9]")
    assert changed != text
    proposal: tuple[str, Mapping[str, Any]] = (
        "propose_change",
        {"files": {"fabric.yaml": changed}, "branch": "ntp", "message": "Set the time server"},
    )
    bad = {"files": {"fabric.yaml": "rails: many"}, "branch": "bad", "message": "m"}
    outside = {"files": {"../templates/x.j2": ""}, "branch": "Out side", "message": ""}
    (_, found), (again, said), (invalid, why), (refused, all_said) = asked(
        fabric, proposal, proposal, ("propose_change", bad), ("propose_change", outside)
    )
    assert (found["branch"], git(root, "rev-parse", "netkit/ntp").strip()) == ("netkit/ntp", found["commit"])
    assert git(root, "show", "netkit/ntp:inventory/f/fabric.yaml") == changed
    assert git(root, "diff", "--name-only", "main", "netkit/ntp") == "inventory/f/fabric.yaml\n"
    here = ("--fabric", fabric, "--against", "git:HEAD", "--format", "json")
    (fabric / "fabric.yaml").write_text(changed, encoding="utf-8")
    compared = json.loads(run("plan", *here).stdout)
    (fabric / "fabric.yaml").write_text(text, encoding="utf-8")
    assert found["plan"] == compared
    assert [device["name"] for device in compared["plan"]["devices"]] == [
        "leaf-u01-r0",
        "leaf-u01-r1",
        "spine01",
        "spine02",
    ]
    assert (again, said) == (True, f"{ERROR}there is a branch netkit/ntp already; choose another name")
    assert invalid
    assert "the intent is invalid" in why
    assert (refused, all_said.splitlines()) == (
        True,
        [
            f"{ERROR}'Out side' is not a name of a branch; use lower-case letters, digits and hyphens",
            "the message is empty; describe the change and its reason",
            "'../templates/x.j2' cannot be changed; only fabric.yaml and CSV files beside it can",
        ],
    )
    assert git(root, "branch", "--format", "%(refname:short)").split() == ["main", "netkit/ntp"]
    assert git(root, "status", "--porcelain=v2", "--branch") == before


def test_a_proposal_without_change_or_with_unprintable_text_is_refused(fabric: Path) -> None:
    text = (fabric / "fabric.yaml").read_text(encoding="utf-8")
    changed = f"{text}# changed\n"
    project = Project.open(fabric)
    cases = {
        ("same", text, "why"): "these files are as in HEAD; change at least one of them",
        ("nul", changed, "a\0b"): "the message has control characters; write plain text",
        ("escape", changed, "a\x1b[2Jb"): "the message has control characters; write plain text",
        ("lone", changed, "a\ud800"): "the message has control characters; write plain text",
        ("text", f"{changed}# \ud800\n", "why"): (
            "'fabric.yaml' is not valid Unicode; send text without lone surrogates"
        ),
    }
    found = {}
    for branch, content, message in cases:
        with pytest.raises(UsageError) as error:
            propose(project, {"fabric.yaml": content}, branch, message)
        found[(branch, content, message)] = "\n".join(map(str, error.value.problems))
    assert found == cases
    assert git(fabric, "branch", "--format", "%(refname:short)") == "main\n"


def test_no_tool_imports_code_that_connects_to_devices(fabric: Path, tmp_path: Path) -> None:
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    done = subprocess.run(
        [sys.executable, "-c", DEVICE_CODE, str(fabric)], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "netkit.project.proposal" in loaded
    forbidden = (
        "netmiko",
        "paramiko",
        "napalm",
        "pysnmp",
        "netkit.access.connect",
        "netkit.project.connections",
    )
    assert [name for name in loaded if name.startswith(forbidden)] == []
    assert [
        name for name in loaded if name.endswith((".driver", ".transport")) and name != "netkit.platforms.driver"
    ] == []


Values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
)


@given(Values)
def test_results_of_tools_have_no_control_characters(value: Any) -> None:
    text = json.dumps(clean(value), ensure_ascii=False)
    assert all(each.isprintable() for each in text)
    assert clean(clean(value)) == clean(value)


def test_results_of_tools_are_bounded() -> None:
    assert clean("x" * (LONGEST_TEXT + 7)) == "x" * LONGEST_TEXT + " [7 more characters]"
    assert clean(list(range(MOST_ITEMS + 3))) == [*range(MOST_ITEMS), "[3 more]"]
    assert clean("a\x1b[31mb\u202ec") == "a\ufffd[31mb\ufffdc"
