"""`netkit leave` and `netkit own`: edits of fabric.yaml that keep everything else in it."""

from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.intent import document
from netkit.intent.list_edit import block, with_entry, without_entry
from tests.cli.scene import Scene, run
from tests.cli.test_take_over import made, plan, planted, unexplained
from tests.command import Done, assert_refused

HAND = "router / policy / route-map / HAND"
COMMENT = "# by the network team\nleave: # not ours\n  - interface / vlan4000  # a test\n\n# the end\n"


def leave(scene: Scene, *options: str | Path) -> Done:
    return run("leave", "--fabric", scene.fabric, *options)


def own(scene: Scene, *options: str) -> Done:
    return run("own", "--fabric", scene.fabric, *options)


def text(scene: Scene) -> str:
    return (scene.fabric / "fabric.yaml").read_text(encoding="utf-8")


def rules(scene: Scene, key: str) -> object:
    return yaml.safe_load(text(scene)).get(key)


def append(scene: Scene, more: str) -> str:
    before = text(scene) + more
    (scene.fabric / "fabric.yaml").write_text(before, encoding="utf-8")
    return before


def test_a_path_is_left_once_and_every_other_line_stays(scene: Scene) -> None:
    before = append(scene, COMMENT)
    dry = leave(scene, HAND, "--devices", "leaf01", "--dry-run")
    assert (dry.returncode, text(scene)) == (0, before)
    assert f"+  - path: {HAND}\n+    devices: leaf01\n" in dry.stdout
    done = leave(scene, HAND, "--devices", "leaf01")
    assert done.stdout == f"{dry.stdout}{scene.fabric / 'fabric.yaml'}: written\n"
    entry = f"  - path: {HAND}\n    devices: leaf01\n"
    assert text(scene) == before.replace("# a test\n", f"# a test\n{entry}")
    assert leave(scene, HAND, "--devices", "leaf01").stdout == f"{scene.fabric / 'fabric.yaml'}: nothing to change\n"


def test_all_unexplained_paths_are_left_at_once(scene: Scene, tmp_path: Path) -> None:
    planted(scene)
    file = tmp_path / "plan.json"
    plan(scene, "-o", file)
    assert leave(scene, "--from-plan", file).returncode == 0
    assert rules(scene, "leave") == [{"path": HAND, "devices": "leaf01"}]
    assert unexplained(made(scene)) == {}
    assert made(scene).changed == ()


def test_a_left_path_is_owned_again(scene: Scene) -> None:
    before = append(scene, COMMENT)
    assert leave(scene, HAND).returncode == 0
    assert own(scene, HAND).returncode == 0
    assert text(scene) == before


def test_an_unowned_path_is_added(scene: Scene) -> None:
    done = own(scene, "acl", "--devices", "role=leaf")
    assert (done.returncode, "removes there what no template renders" in done.stdout) == (0, True)
    assert rules(scene, "own") == [{"path": "acl", "devices": "role=leaf"}]
    assert own(scene, "router / policy").stdout == f"{scene.fabric / 'fabric.yaml'}: nothing to change\n"


def test_an_uneditable_file_is_refused_and_unchanged(scene: Scene) -> None:
    before = text(scene)
    assert_refused(leave(scene), "name a path", "--from-plan")
    assert_refused(leave(scene, HAND, "--devices", "nobody"), "nobody")
    assert_refused(leave(scene, ""), "name a path")
    assert_refused(own(scene, "interface / eth0"), "may be reached by")
    assert text(scene) == before
    before = append(scene, "leave: [interface / vlan4000]\n")
    assert_refused(leave(scene, HAND), "fabric.yaml", "list in brackets", "by hand")
    assert text(scene) == before


@settings(max_examples=60, deadline=None)
@given(
    listed=st.lists(st.sampled_from(["a / b *", "VLAN / Vlan1", 'x: "y" #']), min_size=1, max_size=4),
    path=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1).filter(str.strip),
)
def test_an_entry_that_is_added_and_removed_leaves_the_file_as_it_was(listed: list[str], path: str) -> None:
    before = "name: x # keep\nleave:\n" + "".join(block({"path": one}) for one in listed) + "# end\nother: 1\n"
    after = with_entry(before, "leave", block({"path": path}))
    value = document.parse(after, "").value
    assert value == {"name": "x", "leave": [{"path": one} for one in (*listed, path)], "other": 1}
    assert without_entry(after, "leave", len(listed)) == before


def test_a_path_that_matches_nothing_is_refused_as_a_likely_typo(scene: Scene) -> None:
    planted(scene)
    append(scene, f"leave:\n  - {HAND}\n  - router / policy / route-map / HNAD\n")
    append(scene, "own:\n  - {path: acl, devices: leaf01}\n")
    warnings = made(scene).warnings
    line = text(scene).splitlines().index("  - router / policy / route-map / HNAD") + 1
    file = scene.fabric / "fabric.yaml"
    remedy = "check its spelling: netkit backup shows the running configuration"
    assert warnings == (
        f"{file}:{line}: leave[1]: router / policy / route-map / HNAD matches nothing on any device; {remedy}",
        f"{file}:{line + 2}: own[0]: acl matches nothing on leaf01; {remedy}",
    )
    done = plan(scene)
    assert done.returncode == 0
    assert [row for row in done.stdout.splitlines() if row.startswith("! ")] == [f"! {one}" for one in warnings]
    assert made(scene, "--limit", "leaf02").warnings == ()
