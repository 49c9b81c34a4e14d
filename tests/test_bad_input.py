"""Bad input of every kind: one clear line, exit code 3, no traceback, nothing half-written."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import NETKIT, ROOT, Done, assert_refused, environment, run, start

REFERENCE = ROOT / "inventory" / "reference"
GOOD = (REFERENCE / "fabric.yaml").read_text(encoding="utf-8")
ALIAS_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + chr(ord(name) - 1)] * 9)}]\n" for name in "bcdefghi"
)

TEXTS: dict[str, tuple[bytes, str]] = {
    "no yaml at all": (b"name: [unclosed\n", "fabric.yaml:2"),
    "tabs": (b"name: x\nceilings:\n\tunits: 4\n", "indent with spaces, not tabs"),
    "duplicate keys": (GOOD.encode().replace(b"rails: 8", b"rails: 8\nrails: 4"), "duplicate key (first on line 6)"),
    "50 MB": (b"# " + b"x" * 50_000_000 + b"\nname: x\n", "50,000,011 bytes"),
    "deep nesting of lists": (b"name: " + b"[" * 100_000 + b"\n", "nested more than 32 levels"),
    "deep nesting of mappings": (
        "".join(f"{' ' * depth}a:\n" for depth in range(200)).encode(),
        "nested more than 32 levels",
    ),
    "alias bomb": (ALIAS_BOMB.encode(), "anchor or alias"),
    "merge key": (b"base: &b {rails: 8}\n<<: *b\n", "anchor or alias"),
    "alias as a key": (b"? *x\n: 1\n", "fabric.yaml:1"),
    "python tag": (b"name: !!python/object/apply:os.system [id]\n", "fabric.yaml"),
    "python tag on a scalar": (b"name: !!python/name:os.system x\n", "uses the tag"),
    "own tag": (b"name: !secret x\n", "uses the tag !secret"),
    "int tag": (b"rails: !!int 8\n", "uses the tag"),
    "not utf-8": (b"name: caf\xe9\n", "is not UTF-8 (byte 9)"),
    "utf-16": (GOOD.encode("utf-16"), "is not UTF-8"),
    "nul bytes": (b"name: a\x00b\n", "fabric.yaml"),
    "control characters": (b"name: a\x1bb\n", "fabric.yaml"),
    "empty": (b"", "holds no fabric"),
    "only a comment": (b"# nothing yet\n", "holds no fabric"),
    "a list at the top": (b"- name: x\n", "holds no fabric"),
    "a word at the top": (b"fabric\n", "holds no fabric"),
    "two documents": (GOOD.encode() + b"---\nname: second\n", "second document"),
    "huge number": (GOOD.encode().replace(b"rails: 8", b"rails: " + b"9" * 5000), "rails: '9999"),
    "huge number that fits no integer": (GOOD.encode().replace(b"rails: 8", b"rails: " + b"9" * 19), "is too large"),
    "infinity": (GOOD.encode().replace(b"length_m: 30", b"length_m: .inf"), "is not a number"),
    "not a number": (GOOD.encode().replace(b"length_m: 30", b"length_m: nan"), "length_m"),
    "list as a key": (b"[1, 2]: x\n", "has a key that is not a word or number"),
    "true as a key": (b"true: x\n", "has a key that is not a word or number"),
    "an unknown directive": (b"%FOO bar\n---\nname: x\n", "fabric.yaml"),
    "an unsupported YAML version": (b"%YAML 9.9\n---\nname: x\n", "fabric.yaml"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_unreadable_text_is_refused_in_plain_lines(name: str, tmp_path: Path) -> None:
    text, words = TEXTS[name]
    (tmp_path / "fabric.yaml").write_bytes(text)
    out = tmp_path / "out"
    done = run("render", "--fabric", tmp_path, "--out", out)
    assert_refused(done, words, lines=None)
    assert "fabric.yaml" in done.stderr
    assert not out.exists()
    assert max(map(len, done.stderr.splitlines())) < 400


def test_a_missing_fabric_is_refused(tmp_path: Path) -> None:
    assert_refused(run("validate", "--fabric", tmp_path / "nowhere"), "no fabric folder", "netkit init")
    assert_refused(run("validate", "--fabric", tmp_path), "fabric.yaml: does not exist", "netkit init")


def test_a_folder_or_device_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").mkdir()
    assert_refused(run("validate", "--fabric", tmp_path), "is a folder")
    assert_refused(run("validate", "--fabric", "/dev/zero"), "is not a regular file")
    os.mkfifo(tmp_path / "pipe")
    assert_refused(run("validate", "--fabric", tmp_path / "pipe"), "is not a regular file")
    (tmp_path / "overrides.yaml").mkdir()
    shutil.rmtree(tmp_path / "fabric.yaml")
    (tmp_path / "fabric.yaml").write_text(GOOD, encoding="utf-8")
    assert_refused(run("validate", "--fabric", tmp_path), "overrides.yaml: is a folder")


def test_a_dangling_link_and_a_loop_are_refused(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").symlink_to("nowhere")
    assert_refused(run("validate", "--fabric", tmp_path), "does not exist")
    (tmp_path / "loop").symlink_to("loop")
    assert_refused(run("validate", "--fabric", tmp_path / "loop"), "loop")


def test_a_version_keeps_its_trailing_zero(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text(GOOD.replace("version: 5.16.1", "version: 5.10"), encoding="utf-8")
    done = run("design", "--fabric", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nvue 5.10 " in done.stdout


def become_nobody() -> None:
    """Drop root's power to read and write everything; without it, do nothing."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that everyone may enter, with a fabric that everyone may read; pytest's own belong to root alone."""
    with tempfile.TemporaryDirectory(prefix="netkit-open-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(REFERENCE, folder / "fabric")
        yield folder


def test_an_output_folder_that_cannot_be_written_is_refused(open_path: Path) -> None:
    fabric, locked = open_path / "fabric", open_path / "locked"
    locked.mkdir(mode=0o555)
    done = run("render", "--fabric", fabric, "-o", locked / "out", "--platform", "nvue", before=become_nobody)
    assert_refused(done, "locked", "permission denied")
    done = run("render", "--fabric", fabric, "-o", locked, "--platform", "nvue", before=become_nobody)
    assert_refused(done, "locked", "permission denied")
    assert list(locked.iterdir()) == []


def test_proc_is_no_output_folder(tmp_path: Path) -> None:
    done = run("render", "--fabric", REFERENCE, "-o", "/proc/netkit-out", "--platform", "nvue", cwd=tmp_path)
    assert_refused(done, "/proc/netkit-out", "cannot write")


def test_an_unreadable_intent_is_refused(open_path: Path) -> None:
    fabric = open_path / "fabric"
    (fabric / "fabric.yaml").chmod(0)
    assert_refused(run("validate", "--fabric", fabric, before=become_nobody), "fabric.yaml", "ermission denied")


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    assert_refused(run("render", "--fabric", REFERENCE, "-o", out, "--platform", "nvue"), "out")
    assert out.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["leaf04", "spine02"])
def test_a_file_where_a_device_folder_belongs_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine", encoding="utf-8")
    assert_refused(run("render", "--fabric", REFERENCE, "-o", out, "--platform", "nvue"), name)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text(encoding="utf-8") == "mine"


def test_a_folder_where_a_file_belongs_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "spine04" / "startup.yaml").mkdir(parents=True)
    assert_refused(run("render", "--fabric", REFERENCE, "-o", out, "--platform", "nvue"), "startup.yaml")
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == ["spine04", "spine04/startup.yaml"]


FULL_DISK = """
set -e
mount -t tmpfs -o size={size}k,nr_inodes=400 none "$1"
mkdir "$1/out"
if [ -n "$3" ]; then cp -r "$3/." "$1/out/"; fi
find "$1/out" -type f | sort | xargs -r sha256sum > "$2/before"
set +e
shift 3
"$@"
code=$?
cd {root}
find {root}/disk/out -type f | sort | xargs -r sha256sum > {root}/after
exit $code
"""


def on_full_disk(tmp_path: Path, size_kib: int, previous: Path | str = "") -> Done:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small disk takes root and unshare")
    disk = tmp_path / "disk"
    disk.mkdir()
    script = FULL_DISK.format(size=size_kib, root=tmp_path)
    inner = [*NETKIT, "render", "--fabric", str(REFERENCE), "-o", str(disk / "out"), "--platform", "nvue"]
    return subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "full-disk", str(disk), str(tmp_path), str(previous), *inner],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    assert_refused(on_full_disk(tmp_path, 40), "no space left on device")
    assert (tmp_path / "after").read_text(encoding="utf-8") == ""


def test_a_full_disk_leaves_the_previous_output_whole(tmp_path: Path) -> None:
    old = tmp_path / "old"
    changed = tmp_path / "changed"
    shutil.copytree(REFERENCE, changed)
    text = GOOD.replace("location: dc1 row 3", "location: dc1 row 4")
    assert text != GOOD
    (changed / "fabric.yaml").write_text(text, encoding="utf-8")
    assert run("render", "--fabric", changed, "-o", old, "--platform", "nvue").returncode == 0
    used_kib = sum(-(-path.stat().st_size // 4096) * 4 for path in old.rglob("*") if path.is_file())
    assert_refused(on_full_disk(tmp_path, used_kib + 24, old), "no space left on device")
    before = (tmp_path / "before").read_text(encoding="utf-8")
    assert len(before.splitlines()) == 13
    assert (tmp_path / "after").read_text(encoding="utf-8") == before


def test_a_full_standard_output_is_reported() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*NETKIT, "schema"],
            cwd=ROOT,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stderr
    assert "no space left" in done.stderr


MANIFESTS: dict[str, bytes] = {
    "not json": b"{",
    "empty": b"",
    "not utf-8": b"\xff\xfe\x00",
    "a list": b"[]",
    "a word": b'"manifest"',
    "devices are a list": b'{"devices": [1]}',
    "a device is a number": b'{"devices": {"leaf01": 1}}',
    "files are missing": b'{"devices": {"leaf01": {}}}',
    "files are a word": b'{"devices": {"leaf01": {"files": "abc"}}}',
    "files are a number": b'{"devices": {"leaf01": {"files": 7}}}',
    "nested without end": b"[" * 100_000,
    "climbs out by the device": json.dumps({"devices": {"..": {"files": {"precious": ""}}}}).encode(),
    "climbs out by the file": json.dumps({"devices": {"leaf01": {"files": {"../../precious": ""}}}}).encode(),
    "climbs out by a folder": json.dumps({"devices": {"leaf01": {"files": {"../precious": ""}}}}).encode(),
    "is too deep": json.dumps({"devices": {"leaf01": {"files": {"a/b/c": ""}}}}).encode(),
    "climbs out from the root": json.dumps({"devices": {"/etc": {"files": {"passwd": ""}}}}).encode(),
    "has an empty name": json.dumps({"devices": {"": {"files": {"precious": ""}}}}).encode(),
    "has a nul byte": json.dumps({"devices": {"leaf01": {"files": {"a\0b": ""}}}}).encode(),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_broken_or_hostile_manifest_is_refused(name: str, tmp_path: Path) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    out.mkdir()
    precious.write_text("keep", encoding="utf-8")
    (out / "manifest.json").write_bytes(MANIFESTS[name])
    assert_refused(run("render", "--fabric", REFERENCE, "-o", out, "--platform", "nvue"), "manifest.json")
    assert precious.read_text(encoding="utf-8") == "keep"
    assert [path.name for path in out.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("link", ["old01", "old01/jobs"])
def test_a_manifest_cannot_remove_files_through_a_link(tmp_path: Path, link: str) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (out / link).parent.mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("keep", encoding="utf-8")
    (out / link).symlink_to(elsewhere)
    name = f"{link}/precious".removeprefix("old01/")
    (out / "manifest.json").write_text(json.dumps({"devices": {"old01": {"files": {name: ""}}}}), encoding="utf-8")
    assert_refused(run("render", "--fabric", REFERENCE, "-o", out), "old01")
    assert (elsewhere / "precious").read_text(encoding="utf-8") == "keep"


USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown command": (("plant",), "No such command 'plant'"),
    "unknown option": (("validate", "--fabric", "inventory/reference", "--colour"), "--colour"),
    "missing option": (("validate",), "--fabric"),
    "missing second option": (("render", "--fabric", "inventory/reference"), "--out"),
    "missing value": (("validate", "--fabric"), "-f"),
    "missing argument": (("init",), "DIR"),
    "too many arguments": (("version", "now"), "now"),
    "bad format": (("validate", "--fabric", "inventory/reference", "--format", "xml"), "unknown format 'xml'"),
    "bad format of design": (
        ("design", "--fabric", "inventory/reference", "--format", "xml"),
        "unknown format 'xml'",
    ),
    "bad format of platforms": (("platforms", "--format", "xml"), "unknown format 'xml'"),
    "two views": (("design", "--fabric", "inventory/reference", "--cabling", "--addresses"), "choose one"),
    "limit without a view": (("design", "--fabric", "inventory/reference", "--limit", "leaf01"), "--limit applies to"),
    "limit nothing": (("design", "--fabric", "inventory/reference", "--addresses", "--limit", ","), "names nothing"),
    "limit typo": (
        ("design", "--fabric", "inventory/reference", "--addresses", "--limit", "laef01"),
        "did you mean leaf01?",
    ),
    "limit typo beside a hit": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--limit", "leaf01,laef02"),
        "did you mean leaf02?",
    ),
    "limit attribute typo": (
        ("design", "--fabric", "inventory/reference", "--cabling", "--limit", "rol=spine"),
        "did you mean role?",
    ),
    "limit value typo": (
        ("design", "--fabric", "inventory/reference", "--cabling", "--limit", "role=spnie"),
        "did you mean spine?",
    ),
    "limit value unknown": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--limit", "rail=9"),
        "there are 0, 1, 2",
    ),
    "limit contradiction": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--limit", "role=spine rail=3"),
        "no device fits them all",
    ),
    "limit unknown excluded": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--limit", "!leaf9*"),
        "--limit '!leaf9*' matches no device",
    ),
    "limit all excluded": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--limit", "!*"),
        "selects no device",
    ),
    "platform typo": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--platform", "nveu"),
        "unknown platform 'nveu'",
    ),
    "platform unused": (
        ("render", "--fabric", "inventory/reference", "-o", "OUT", "--platform", "eos"),
        "no device is left",
    ),
    "explain no device": (("design", "--fabric", "inventory/reference", "--explain", "leaf99:swp1"), "leaf99"),
    "explain no port": (("design", "--fabric", "inventory/reference", "--explain", "leaf01:swp99"), "swp99"),
    "explain no NIC": (("design", "--fabric", "inventory/reference", "--explain", "gpu01:rail9"), "no NIC 'rail9'"),
    "init no number": (("init", "OUT", "--leaves", "many"), "--leaves"),
    "init too many": (("init", "OUT", "--leaves", "99"), "8"),
    "init too large": (("init", "OUT", "--hosts-per-unit", "500"), "cannot build this fabric"),
    "init model for another platform": (("init", "OUT", "--platform", "eos", "--model", "SN5600"), "runs Arista EOS"),
    "init no platform": (("init", "OUT", "--platform", "junos"), "unknown platform 'junos'"),
    "init no model": (("init", "OUT", "--model", "SN56"), "no switch model 'SN56'"),
}


def test_a_new_interpreter_prints_the_same(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("rails: two\n", encoding="utf-8")
    for arguments in (("validate", "--fabric", str(tmp_path)), ("validate",), ("plant",)):
        quick, slow = run(*arguments), start(*arguments)
        assert (quick.returncode, quick.stdout, quick.stderr) == (slow.returncode, slow.stdout, slow.stderr)
        assert_refused(slow, lines=None)


@pytest.mark.parametrize("name", USAGE)
def test_usage_errors_exit_3(name: str, tmp_path: Path) -> None:
    arguments, words = USAGE[name]
    out = tmp_path / "out"
    done = run(*(str(out) if argument == "OUT" else argument for argument in arguments))
    assert_refused(done, words, lines=None if name == "init too large" else 1)
    assert "Input should" not in done.stderr
    assert not out.exists()


def test_no_arguments_and_help_explain_themselves() -> None:
    for arguments in ((), ("--help",), ("-h",), ("render", "--help"), ("render", "-h")):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Usage: netkit" in done.stdout
    assert start("--help").stdout == run("--help").stdout


@pytest.mark.parametrize(
    "command",
    [
        "design --fabric inventory/superpod --addresses",
        "design --fabric inventory/superpod --cabling",
        "schema",
        "--help",
    ],
)
def test_a_closed_pipe_is_quiet(command: str) -> None:
    script = f"set -o pipefail; {' '.join(NETKIT)} {command} | head -1"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_a_terminal_without_unicode_gets_question_marks() -> None:
    done = start("design", "--fabric", "inventory/reference", "--explain", "leaf01:swp1s0", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "leaf01 swp1s0 ? gpu01 rail0" in done.stdout
