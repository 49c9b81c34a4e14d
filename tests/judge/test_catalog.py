from pathlib import Path

import pytest

from netkit.errors import CheckError
from netkit.judge import catalog

GOOD = '''"""Mine."""
from netkit.judge import PASSED, device_check


@device_check(layer="host")
def all_well(scene, seen):
    """All is well."""
    yield PASSED
'''


def test_every_shipped_check_explains_its_failure() -> None:
    found = catalog.load()
    assert found
    for name, check in found.items():
        assert name == check.name
        assert len(check.text.splitlines()) > 1, f"{name}: one line does not say what to do"


def test_a_users_check_is_one_file_and_replaces_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "my_check.py").write_text(GOOD)
    (tmp_path / "bgp.py").write_text(GOOD)
    (tmp_path / "test_my_check.py").write_text("raise RuntimeError")
    found = catalog.load([tmp_path])
    assert found["my-check.all-well"].text == "All is well."
    assert [name for name in found if name.startswith("bgp.")] == ["bgp.all-well"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "x.py: holds no check; decorate a function with @device_check"),
        (
            "from netkit.judge import Seen\n",
            "x.py:1: cannot be loaded: ImportError: netkit.judge has no Seen any more: write DeviceContext; fix it",
        ),
        (
            "import netkit.judge\n\n\ndef of(scene: netkit.judge.Scene) -> None: ...\n",
            "x.py:4: cannot be loaded: ImportError: netkit.judge has no Scene any more: write CheckContext; fix it",
        ),
        ("def broken(:\n", "x.py:1: cannot be loaded: SyntaxError: invalid syntax (x.py, line 1); fix it"),
        ("\n1 / 0\n", "x.py:2: cannot be loaded: ZeroDivisionError: division by zero; fix it"),
        (
            GOOD.replace('    """All is well."""\n', ""),
            "x.py: the check all-well has no docstring; explain in it",
        ),
        (
            GOOD.replace('layer="host"', 'layer="host", needs=["colour"]'),
            "x.py: the check all-well needs 'colour'; use",
        ),
        (
            GOOD.replace('layer="host"', 'layer="host", needs="system"'),
            "x.py: the check all-well has needs='system', a text; write needs=['system']",
        ),
        ("raise SystemExit\n", "x.py:1: cannot be loaded: SystemExit: ; fix it"),
        (
            GOOD.replace('layer="host"', 'layer="hosts"'),
            "x.py: the check all-well has layer='hosts'; use one of physical, link,",
        ),
        (
            GOOD.replace('layer="host"', 'layer="host", on="hosts"'),
            "x.py: the check all-well has on='hosts'; use one of switch, host, device",
        ),
    ],
)
def test_a_file_without_a_valid_check_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.py").write_text(text)
    with pytest.raises(CheckError) as caught:
        catalog.load([tmp_path])
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)


def test_a_check_with_two_names_is_one_check(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(f"{GOOD}\n\nalso = all_well\n")
    assert [check.name for check in catalog.of_file(file)] == ["x.all-well"]


def test_an_empty_selection_is_an_error() -> None:
    found = catalog.load()
    assert catalog.select(found, []) == tuple(found.values())
    assert [check.name for check in catalog.select(found, ["bgp.sessions", "bgp.pre*"])] == [
        "bgp.sessions",
        "bgp.prefixes",
    ]
    with pytest.raises(CheckError, match=r"no check 'nothing'; use one of .*bgp"):
        catalog.select(found, ["bgp", "nothing"])
