"""Properties of every configuration model: round trips, exact differences, ownership, masking."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.errors import ConfigError
from netkit.platforms.change import UNKNOWN
from netkit.platforms.compare import MODELS, ConfigModel, apply, compare, diff
from netkit.platforms.config import Config, Files
from netkit.platforms.secrets import PLACEHOLDER, SECRET
from tests.lanes import examples
from tests.platforms.samples import all_samples, samples

PLATFORMS = sorted(MODELS)
# Lines that every vtysh prints, whatever the daemons were given.
VTYSH = {"hostname", "service integrated-vtysh-config"}
RENDERED_BUT_LEFT = {"frr": VTYSH, "sonic": VTYSH}


def owned(model: ConfigModel, config: Config) -> dict[tuple[str, ...], str]:
    return model.ownership.restrict(config, model.ownership.claims(config))


@pytest.mark.parametrize(("platform", "name"), all_samples())
def test_text_is_parsed_to_the_same_configuration(platform: str, name: str) -> None:
    model, files = MODELS[platform], samples(platform)[name]
    config = model.parse(files)
    assert config
    assert model.parse(model.text(config)) == config


@pytest.mark.parametrize(("platform", "name"), all_samples())
def test_rendered_lines_are_owned_and_have_a_rule(platform: str, name: str) -> None:
    model, files = MODELS[platform], samples(platform)[name]
    config = model.parse(files)
    ours = owned(model, config)
    headings = {path[:length] for path in ours for length in range(len(path))}
    assert {path[-1] for path in set(config) - set(ours) - headings} <= RENDERED_BUT_LEFT.get(platform, set())
    for running, intended in ((ours, {}), ({}, ours), (dict.fromkeys(ours, "other"), ours)):
        assert [change.path for change in diff(model, running, intended) if change.note == UNKNOWN] == []


@pytest.mark.parametrize(("platform", "name"), all_samples())
def test_equal_files_make_no_change(platform: str, name: str) -> None:
    files = samples(platform)[name]
    found = compare(MODELS[platform], dict(files), files)
    assert found.changes == ()
    assert found.running_digest == found.intended_digest
    assert found.not_read == ()


@pytest.mark.parametrize(("platform", "name"), all_samples())
def test_no_secret_or_placeholder_survives_parsing(platform: str, name: str) -> None:
    model, files = MODELS[platform], samples(platform)[name]
    shown = repr(sorted(model.parse(files).items()))
    assert "@secret" not in shown
    on_device = {file: PLACEHOLDER.sub("T0pS3cretValue", text) for file, text in files.items()}
    assert "T0pS3cretValue" not in repr(sorted(model.parse(on_device).items()))
    assert compare(model, dict(on_device), files).changes == ()
    if any("@secret" in text for text in files.values()):
        assert SECRET in shown


def mutated(config: Config, others: Config, rng: Random) -> dict[tuple[str, ...], str]:
    """A configuration with some entries removed, some changed, and some of another device."""
    kept = {path: value for path, value in config.items() if rng.random() > 0.2}
    values = {path: value for path, value in others.items() if value}
    for path in rng.sample(sorted(values), min(len(values), 10)):
        kept[path] = values[path]
    return kept


@pytest.mark.parametrize("platform", PLATFORMS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40), derandomize=True)
def test_applying_the_difference_gives_the_intended_configuration(platform: str, seed: int) -> None:
    model, rng = MODELS[platform], Random(seed)  # noqa: S311 (a repeatable choice, no secret)
    names = rng.sample(sorted(samples(platform)), 2)
    one, two = (model.parse(samples(platform)[name]) for name in names)
    running, intended = model.text(mutated(one, two, rng)), model.text(mutated(two, one, rng))
    there = compare(model, dict(running), intended)
    assert apply(there.running, there.changes) == there.intended
    assert not there.changes or there.running_digest != there.intended_digest
    back = compare(model, {file: intended.get(file) for file in running}, running, owner=intended)
    assert apply(apply(there.running, there.changes), back.changes) == there.running
    assert [(change.path, change.intended, change.running) for change in back.changes] == [
        (change.path, change.running, change.intended) for change in there.changes
    ]


@pytest.mark.parametrize("platform", PLATFORMS)
@given(data=st.data())
@settings(max_examples=examples(100), derandomize=True)
def test_arbitrary_text_is_parsed_or_refused(platform: str, data: st.DataObject) -> None:
    model = MODELS[platform]
    files = samples(platform)[data.draw(st.sampled_from(sorted(samples(platform))))]
    file = data.draw(st.sampled_from(sorted(files)))
    text = data.draw(st.one_of(st.text(), broken(files[file])))
    try:
        config = model.parse({file: text})
    except ConfigError as error:
        complaints = error.problems
    else:
        complaints = ()
    assert all(problem.file == file and problem.message for problem in complaints)
    if complaints:
        return
    assert model.parse(model.text(config)) == config
    compare(model, {file: text}, files)
    compare(model, dict(files), {file: text})


@st.composite
def broken(draw: st.DrawFn, text: str) -> str:
    """A text with a piece removed, doubled or replaced."""
    first, last = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    piece = draw(st.one_of(st.just(""), st.just(text[first:last] * 2), st.text(max_size=8)))
    return text[:first] + piece + text[min(last, first + 40) :]


def test_an_unread_file_is_reported_and_not_compared() -> None:
    files: Files = {"startup.yaml": "- set: {system: {hostname: leaf01}}"}
    found = compare(MODELS["nvue"], {}, files)
    assert (found.changes, found.not_read) == ((), ("startup.yaml",))
