"""A plan is complete and pure, and swapping its sides undoes it."""

import pytest
from hypothesis import given, settings

from netkit import plan
from netkit.errors import ConfigError, PlanError
from netkit.plan import Running, Unreachable
from netkit.platforms.change import NOTHING, REFUSED, Risk
from netkit.platforms.compare import MODELS, apply, compare
from netkit.platforms.secrets import PLACEHOLDER
from tests import intents, random_intents
from tests.plan.scenes import SCENES, VERSIONS, staged
from tests.platforms.samples import files_of

CASES = [(platform, name) for platform in VERSIONS for name in SCENES]
GROWING = {"new-spine", "new-unit"}
"""The scenes with devices that did not run."""


@pytest.mark.parametrize("platform", VERSIONS)
def test_a_second_plan_is_empty(platform: str) -> None:
    fabric = intents.fabric(intents.on_platform(platform, VERSIONS[platform]))
    files = files_of(fabric)
    found = plan.make(fabric, {name: Running(dict(its), VERSIONS[platform]) for name, its in files.items()}, files)
    assert len(found.devices) == len(files) == 10
    assert {device.way.method for device in found.devices} == {NOTHING}
    assert (found.changed, found.groups, found.unreachable, found.risk) == ((), (), (), Risk.NONE)
    assert all(device.running_digest == device.intended_digest for device in found.devices)


@pytest.mark.parametrize(("platform", "name"), CASES)
def test_a_plan_survives_a_round_trip_and_rollback_restores_what_ran(platform: str, name: str) -> None:
    scene = staged(platform, name)
    intended = {device: files for device, files in scene.intended.items() if device in scene.running}
    assert (intended == scene.intended) is (name not in GROWING)
    there = plan.make(scene.fabric, scene.running, intended)
    assert plan.read(plan.write(there)) == there
    back = plan.rollback(scene.fabric, scene.running, intended)
    for forth, reverse in zip(there.devices, back.devices, strict=True):
        assert (forth.running_digest, forth.intended_digest) == (reverse.intended_digest, reverse.running_digest)
        model = MODELS[forth.platform]
        running = compare(model, scene.running[forth.name].files, intended[forth.name]).running
        assert apply(apply(running, forth.changes), reverse.changes) == running


@pytest.mark.parametrize(("platform", "name"), [case for case in CASES if case[1] in GROWING])
def test_a_plan_with_new_devices_survives_a_round_trip(platform: str, name: str) -> None:
    scene = staged(platform, name)
    made = plan.make(scene.fabric, scene.running, scene.intended)
    assert plan.read(plan.write(made)) == made


@given(values=random_intents.intents(), other=random_intents.intents())
@settings(max_examples=10, derandomize=True)
def test_any_two_fabrics_have_a_plan_between_them(values: dict[str, object], other: dict[str, object]) -> None:
    fabric, before = intents.fabric(values), files_of(intents.fabric(other))
    intended = files_of(fabric)
    running = {name: Running(dict(before[name])) for name in intended if name in before}
    made = plan.make(fabric, running, intended)
    # A switch that changes its NOS has none of the files that the other NOS reads.
    read = [name for name in intended if set(before.get(name, ())) & set(intended[name])]
    assert [device.name for device in made.devices] == read
    assert [missed.name for missed in made.unreachable] == [name for name in intended if name not in read]
    assert sorted(name for group in made.groups for name in group) == sorted(device.name for device in made.changed)
    assert plan.read(plan.write(made)) == made


def test_an_unread_device_is_never_unchanged() -> None:
    scene = staged("nvue", "description")
    running: dict[str, Running | Unreachable] = dict(scene.running)
    del running["leaf02"]
    running["leaf03"] = Unreachable("timed out")
    made = plan.make(scene.fabric, running, scene.intended)
    assert [(missed.name, missed.reason) for missed in made.unreachable] == [
        ("leaf02", "its configuration was not read"),
        ("leaf03", "timed out"),
    ]
    assert made.device("leaf02") is None
    assert made.device("leaf03") is None


def test_a_device_without_any_file_read_is_not_in_the_plan() -> None:
    scene = staged("nvue", "description")
    intended = {name: scene.intended[name] for name in ("leaf01", "gpu01")}
    made = plan.make(scene.fabric, {"leaf01": Running({}), "gpu01": Running({"nccl.conf": None})}, intended)
    assert [(missed.name, missed.reason) for missed in made.unreachable] == [("leaf01", "none of its files was read")]
    assert [device.name for device in made.devices] == ["gpu01"]
    assert not made.is_complete
    assert plan.make(scene.fabric, scene.running, scene.intended).is_complete


@pytest.mark.parametrize("platform", VERSIONS)
def test_no_secret_of_a_device_gets_into_a_plan(platform: str) -> None:
    scene = staged(platform, "description")
    running = {
        name: Running({file: PLACEHOLDER.sub("T0pS3cret", str(text)) for file, text in its.files.items()})
        for name, its in scene.running.items()
    }
    assert "T0pS3cret" in repr(running)
    nothing = {name: Running(dict.fromkeys(its.files)) for name, its in scene.running.items()}
    empty = {name: dict.fromkeys(files, "") for name, files in scene.intended.items()}
    for had, wanted in ((running, scene.intended), (nothing, scene.intended), (running, empty)):
        made = plan.make(scene.fabric, had, wanted)
        text = plan.write(made)
        assert made.changed
        assert "T0pS3cret" not in text
        assert "@secret" not in text


def test_a_device_of_another_fabric_is_refused() -> None:
    scene = staged("nvue", "description")
    with pytest.raises(PlanError, match="leaf99: no device of fabric small with intended files"):
        plan.make(scene.fabric, {"leaf99": Running({})}, scene.intended)
    with pytest.raises(PlanError, match="leaf99"):
        plan.make(scene.fabric, {}, {"leaf99": {}})


def test_an_unparsable_configuration_names_device_file_and_line() -> None:
    scene = staged("nvue", "description")
    running = {"leaf01": Running({"startup.yaml": "- set:\n  a: [\n"})}
    with pytest.raises(ConfigError, match=r"leaf01: startup\.yaml:3: cannot be read: .*; read it again"):
        plan.make(scene.fabric, running, {"leaf01": scene.intended["leaf01"]})


def test_a_refused_strategy_is_in_the_plan_with_its_reason() -> None:
    scene = staged("sonic", "description")
    files = {
        name: str(text).replace("Mellanox-SN5600-O128", "Other") for name, text in scene.running["leaf01"].files.items()
    }
    made = plan.make(scene.fabric, {"leaf01": Running(files)}, {"leaf01": scene.intended["leaf01"]})
    (device,) = made.devices
    assert device.way.method == REFUSED
    assert device.way.reasons == ("hwsku: the switch is installed with another one; reinstall it",)
