"""The output folder: never a mixture of two states, and files of others are never touched."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netkit.errors import OutputError, RenderError
from netkit.render import output
from netkit.render.output import Rendered, Written, write
from tests.command import NETKIT, ROOT, assert_refused, environment, run

REFERENCE = ROOT / "inventory" / "reference"
HEAD = {"netkit": "test"}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file()
    }


def changed_reference(folder: Path, old: str, new: str) -> Path:
    shutil.copytree(REFERENCE, folder)
    text = (folder / "fabric.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "fabric.yaml").write_text(text.replace(old, new), encoding="utf-8")
    return folder


def render(fabric: Path, out: Path, *more: str) -> str:
    done = run("render", "--fabric", fabric, "-o", out, *more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rendered(*names: str, text: str = "one\n", fails_at: str = "") -> Iterator[Rendered]:
    for name in names:
        if name == fails_at:
            raise RenderError([])
        yield Rendered(name, {"a.conf": text, "b.conf": f"{name}\n", "jobs/c.yaml": f"{name}\n"}, {"role": "leaf"})


def test_a_second_render_writes_no_file(tmp_path: Path) -> None:
    first = render(REFERENCE, tmp_path / "out")
    assert "0 unchanged" in first
    before = stamps(tmp_path / "out")
    assert len(before) > 100
    second = render(REFERENCE, tmp_path / "out")
    assert f": 0 changed, {len(before) - 1} unchanged" in second
    assert stamps(tmp_path / "out") == before


def test_one_change_writes_only_the_files_it_changes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render(REFERENCE, out)
    before = stamps(out)
    (out / "leaf03" / "startup.yaml").write_text("edited by hand", encoding="utf-8")
    render(REFERENCE, out)
    after = stamps(out)
    assert {name for name in before if before[name] != after[name]} == {"leaf03/startup.yaml"}


def test_the_manifest_lists_every_file_and_its_digest(tmp_path: Path) -> None:
    out = tmp_path / "out"
    render(REFERENCE, out)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    listed = {
        f"{device}/{name}": digest
        for device, entry in manifest["devices"].items()
        for name, digest in entry["files"].items()
    }
    there = {name: hashlib.sha256(data).hexdigest() for name, data in tree(out).items() if name != "manifest.json"}
    assert listed == there
    assert len(manifest["devices"]) == 22


def test_files_of_removed_devices_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fewer = changed_reference(tmp_path / "fewer", "hosts: 10}", "hosts: 8}")
    render(REFERENCE, out)
    (out / "gpu10" / "notes.txt").write_text("mine", encoding="utf-8")
    (out / "README").write_text("mine", encoding="utf-8")
    (out / "gpu99").mkdir()
    (out / "gpu99" / "netplan.yaml").write_text("mine", encoding="utf-8")
    said = render(fewer, out)
    removed = 2 * len([name for name in tree(out) if name.startswith("gpu01/")])
    assert f"{removed} removed" in said
    assert not (out / "gpu09").exists()
    assert [path.name for path in (out / "gpu10").iterdir()] == ["notes.txt"]
    assert (out / "README").read_text(encoding="utf-8") == "mine"
    assert (out / "gpu99" / "netplan.yaml").read_text(encoding="utf-8") == "mine"
    fresh = tmp_path / "fresh"
    render(fewer, fresh)
    foreign = {"README", "gpu10/notes.txt", "gpu99/netplan.yaml"}
    assert {name: data for name, data in tree(out).items() if name not in foreign} == tree(fresh)


def test_a_limited_render_keeps_the_entries_of_all_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fewer = changed_reference(tmp_path / "fewer", "hosts: 10}", "hosts: 8}")
    render(REFERENCE, out)
    before = tree(out)
    said = render(fewer, out, "--limit", "spine*")
    assert "removed" not in said
    after = tree(out)
    assert {name for name in before if before[name] != after.get(name)} <= {"manifest.json"}
    manifest = json.loads(after["manifest.json"])
    assert len(manifest["devices"]) == 22
    assert "gpu10" in manifest["devices"]


def test_a_limited_render_into_an_empty_folder_lists_only_its_devices(tmp_path: Path) -> None:
    render(REFERENCE, tmp_path, "--limit", "leaf02,spine01", "--platform", "nvue")
    assert sorted(json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["devices"]) == [
        "leaf02",
        "spine01",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["leaf02", "manifest.json", "spine01"]


@pytest.mark.parametrize("fails_at", ["d1", "d2", "d3"])
def test_a_failed_render_leaves_the_previous_output_whole(tmp_path: Path, fails_at: str) -> None:
    write(tmp_path, rendered("d1", "d2", "d3"), HEAD, is_complete=True)
    before, times = tree(tmp_path), stamps(tmp_path)
    with pytest.raises(RenderError):
        write(tmp_path, rendered("d1", "d2", "d3", text="two\n", fails_at=fails_at), HEAD, is_complete=True)
    assert (tree(tmp_path), stamps(tmp_path)) == (before, times)


def test_a_template_that_fails_for_the_last_devices_leaves_the_previous_output_whole(tmp_path: Path) -> None:
    fabric, out = changed_reference(tmp_path / "fabric", "location: dc1 row 3", "location: dc1 row 4"), tmp_path / "out"
    render(REFERENCE, out)
    before, times = tree(out), stamps(out)
    broken = fabric / "templates" / "host" / "netplan.yaml.j2"
    broken.parent.mkdir(parents=True)
    broken.write_text("{{ nothing }}\n", encoding="utf-8")
    assert_refused(run("render", "--fabric", fabric, "-o", out), "netplan.yaml.j2:1", "'nothing' is undefined", "gpu01")
    assert (tree(out), stamps(out)) == (before, times)
    assert not (out / output.STAGING).exists()


def test_a_failed_first_render_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RenderError):
        write(tmp_path / "out", rendered("d1", "d2", fails_at="d2"), HEAD, is_complete=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_undoes_those_that_could(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.mkdir

    def mkdir(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if self == tmp_path / "d3":
            raise OSError(28, "No space left on device", str(self))
        real(self, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(OutputError, match="no space left on device"):
        write(tmp_path, rendered("d1", "d2", "d3"), HEAD, is_complete=True)
    assert list(tmp_path.iterdir()) == []


def killed(step: int, folder: Path, work: Callable[[], Written]) -> bool:
    """Do the work in a forked process that dies at its n-th rename or removal; return whether it got that far."""
    child = os.fork()
    if child == 0:
        left = [step]

        def dying(real: Callable[..., object]) -> Callable[..., object]:
            def act(*arguments: object, **options: object) -> object:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **options)

            return act

        Path.replace = dying(Path.replace)  # type: ignore[method-assign, assignment]
        Path.unlink = dying(Path.unlink)  # type: ignore[method-assign, assignment]
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert folder.is_dir()
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def test_kill_9_at_every_step_leaves_whole_files_and_the_next_run_heals(tmp_path: Path) -> None:
    def old() -> Iterator[Rendered]:
        return rendered("d1", "d2", "d3", "gone")

    def new() -> Iterator[Rendered]:
        return rendered("d1", "d2", "d3", "d4", text="two\n")

    write(tmp_path / "old", old(), HEAD, is_complete=True)
    write(tmp_path / "new", new(), HEAD, is_complete=True)
    before, after = tree(tmp_path / "old"), tree(tmp_path / "new")
    steps = 0
    while True:
        out = tmp_path / f"out{steps}"
        write(out, old(), HEAD, is_complete=True)
        was_killed = killed(steps, out, lambda out=out: write(out, new(), HEAD, is_complete=True))  # type: ignore[misc]
        there = {name: data for name, data in tree(out).items() if not name.startswith(output.STAGING)}
        manifest = json.loads(there.pop(output.MANIFEST))["devices"]
        for name, data in there.items():
            assert data in {before.get(name), after.get(name)}, name
        assert set(there) <= {f"{device}/{name}" for device, entry in manifest.items() for name in entry["files"]}
        write(out, new(), HEAD, is_complete=True)
        assert tree(out) == after
        if not was_killed:
            break
        steps += 1
    assert steps == 11  # the manifest lists old and new, six files move in, three go, and the manifest comes last


def test_kill_9_at_random_moments_of_a_real_render_is_healed_by_the_next(tmp_path: Path) -> None:
    changed = changed_reference(tmp_path / "fabric", "location: dc1 row 3", "location: dc1 row 4")
    old, new, out = tmp_path / "old", tmp_path / "new", tmp_path / "out"
    render(REFERENCE, old)
    render(changed, new)
    before, after = tree(old), tree(new)
    shutil.copytree(old, out)
    moments = random.Random(2)  # noqa: S311 (dice, not secrets)
    for _ in range(5):
        with subprocess.Popen(
            [*NETKIT, "render", "--fabric", str(changed), "-o", str(out)],
            env=environment(),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        ) as started:
            time.sleep(moments.uniform(0.2, 0.9))
            started.kill()
        for name, data in tree(out).items():
            if not name.startswith(output.STAGING):
                assert data in {before[name], after[name]}, name
    render(changed, out)
    assert tree(out) == after


VERBS = """import sys
from netkit.cli import main
for line in sys.argv[1:]:
    sys.argv = line.split(",")
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
"""
"""Runs netkit for each argument, which holds the words of a command: one start for all of them."""


def test_output_is_independent_of_the_hash_seed(tmp_path: Path) -> None:
    renders = [f"netkit,render,--fabric,{ROOT}/inventory/{name},-o,{name},--ztp" for name in ("reference", "mixed")]
    views = [f"netkit,design,--fabric,{ROOT}/inventory/mixed,{view}" for view in ("--addresses", "--cabling")]
    printed, trees = [], []
    for seed in ("1", "77"):
        (tmp_path / seed).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", VERBS, *renders, *views],
            cwd=tmp_path / seed,
            env=environment(PYTHONHASHSEED=seed, LC_ALL="C", TZ="Asia/Tokyo"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
        trees.append({name: tree(tmp_path / seed / name) for name in ("reference", "mixed")})
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) > 100
    assert trees[0] == trees[1]
    assert all(len(files) > 50 for files in trees[0].values())
