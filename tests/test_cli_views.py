"""What `netkit design` and its siblings print for the reference fabric."""

import csv
import io
import json

import pytest

from tests.command import run
from tests.conftest import Golden

REFERENCE = "inventory/reference"
VIEWS: dict[str, tuple[str, ...]] = {
    "design.txt": ("design", "--fabric", REFERENCE),
    "design.json": ("design", "--fabric", REFERENCE, "--format", "json"),
    "cabling.csv": ("design", "--fabric", REFERENCE, "--cabling"),
    "cabling-leaf01.json": ("design", "--fabric", REFERENCE, "--cabling", "--limit", "leaf01", "--format", "json"),
    "addresses.txt": ("design", "--fabric", REFERENCE, "--addresses"),
    "addresses-gpu01.json": ("design", "--fabric", REFERENCE, "--addresses", "--limit", "gpu01", "--format", "json"),
    "explain-host-port.txt": ("design", "--fabric", REFERENCE, "--explain", "leaf01:swp1s0"),
    "explain-nic.txt": ("design", "--fabric", REFERENCE, "--explain", "gpu01:rail0"),
    "explain-uplink.txt": ("design", "--fabric", REFERENCE, "--explain", "leaf01:swp33s0"),
    "explain-uplink.json": ("design", "--fabric", REFERENCE, "--explain", "leaf01:swp33s0", "--format", "json"),
    "explain-eos.txt": ("design", "--fabric", "inventory/mixed", "--explain", "spine01:Ethernet1/1"),
    "validate.txt": ("validate", "--fabric", REFERENCE),
    "validate.json": ("validate", "--fabric", REFERENCE, "--format", "json"),
    "platforms.txt": ("platforms",),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_equal_golden(name: str, golden: Golden) -> None:
    done = run(*VIEWS[name])
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(("note: ", "warning: ")) for line in done.stderr.splitlines())
    golden(f"cli/{name}", done.stdout)


def test_notes_of_validate_equal_golden(golden: Golden) -> None:
    golden("cli/validate.stderr.txt", run("validate", "--fabric", REFERENCE).stderr)


def test_every_view_has_a_json_form_with_the_same_rows() -> None:
    cables = list(csv.DictReader(io.StringIO(run("design", "--fabric", REFERENCE, "--cabling").stdout)))
    as_json = json.loads(run("design", "--fabric", REFERENCE, "--cabling", "--format", "json").stdout)
    assert [{key: str(value) for key, value in row.items()} for row in as_json] == cables
    assert len(cables) == 176
    assert len({row["label"] for row in cables}) == 176
    addresses = json.loads(run("design", "--fabric", REFERENCE, "--addresses", "--format", "json").stdout)
    lines = run("design", "--fabric", REFERENCE, "--addresses").stdout.splitlines()[1:]
    assert [row["value"] for row in addresses] == [line.split()[-1] for line in lines]


def test_validate_reports_problems_as_json_too() -> None:
    done = run("validate", "--fabric", "tests/errors/base.yaml", "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["valid"] is True
