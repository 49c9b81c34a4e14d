"""netkit truth against a real Nautobot."""

import importlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.access import settings
from netkit.project.project import Project
from netkit.truth.wanted import wanted
from tests.command import ROOT, Done, run
from tests.truth.nautobot import TOKEN, lacks, nautobot

pynautobot: Any = importlib.import_module("pynautobot")
LONGEST_S = 1200
"""For a command: a busy machine takes a second to create an object."""
pytestmark = [pytest.mark.whole, pytest.mark.skipif(bool(lacks()), reason=lacks())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("nautobot") / "fabric"
    shutil.copytree(ROOT / "inventory/brownfield", made)
    with nautobot() as url:
        text = f"truth: {{kind: nautobot, url: '{url}', token: {{env: TRUTH_TOKEN}}, timeout_s: 600}}\n"
        (made / "access.yaml").write_text(text, encoding="utf-8")
        give_prefix(pynautobot.api(url, token=TOKEN), "10.20.31.0/24")
        yield made


def give_prefix(client: Any, prefix: str) -> None:
    """Write the management prefix of the hosts, which is not in the intent."""
    active = client.extras.statuses.get(name="Active").id
    client.ipam.prefixes.create(prefix=prefix, status=active, namespace={"name": "Global"}, type="network")


def diff(folder: Path, token: str = TOKEN) -> Done:
    return run("truth", "diff", "--fabric", folder, "--format", "json", timeout_s=LONGEST_S, TRUTH_TOKEN=token)


def export(folder: Path, *arguments: str) -> list[tuple[str, ...]]:
    done = run(
        "truth", "export", "--fabric", folder, "--format", "json", *arguments, timeout_s=LONGEST_S, TRUTH_TOKEN=TOKEN
    )
    assert done.returncode in {0, 1}, done.stderr
    return [tuple(row.values()) for row in json.loads(done.stdout)]


def test_a_fabric_is_exported_once_and_a_deleted_cable_is_created_again(folder: Path) -> None:
    assert {row[2] for row in export(folder, "--yes")} == {"create", "change"}
    assert export(folder) == []
    done = diff(folder)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, [], "")
    access = settings.load(folder).truth
    assert access is not None
    client = pynautobot.api(access.url, token=TOKEN)
    cable = client.dcim.cables.all()[0]
    first, other = (client.dcim.interfaces.get(str(end)) for end in (cable.termination_a_id, cable.termination_b_id))
    (near, far) = sorted((one.device.name, one.name) for one in (first, other))
    assert cable.delete()
    done = diff(folder)
    assert done.returncode == 1, done.stderr
    rows = [tuple(row.values()) for row in json.loads(done.stdout)]
    assert rows == [(*near, "cable", "", ":".join(far)), (*far, "cable", "", ":".join(near))]
    assert export(folder, "--yes") == [("cable", " ".join((*near, *far)), "create", "")]
    assert export(folder) == []


def test_an_intent_without_tables_is_filled_from_it(folder: Path, tmp_path: Path) -> None:
    export(folder, "--yes")
    fresh = tmp_path / "fresh"
    shutil.copytree(folder, fresh)
    file = fresh / "fabric.yaml"
    given, _, tables = file.read_text(encoding="utf-8").partition("\ntables:")
    file.write_text(given + "\n", encoding="utf-8")
    for table in fresh.glob("*.csv"):
        table.unlink()
    done = run("truth", "import", fresh, "--fabric", fresh, timeout_s=LONGEST_S, TRUTH_TOKEN=TOKEN)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    file.write_text(f"{given}\ntables:{tables}", encoding="utf-8")
    assert wanted(Project.open(fresh).fabric, "x") == wanted(Project.open(folder).fabric, "x")
    assert export(fresh) == []


def test_a_wrong_token_is_refused_and_not_printed(folder: Path) -> None:
    done = diff(folder, token="0" * 40)
    assert done.returncode == 4
    assert "refuses the token (403)" in done.stderr
    assert "0" * 40 not in done.stderr
