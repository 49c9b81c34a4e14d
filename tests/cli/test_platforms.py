"""What `netkit platforms NAME` prints about one platform."""

import json

import pytest

from netkit.platforms.compare import MODELS
from tests.cli.scene import run
from tests.command import assert_refused
from tests.conftest import Golden


@pytest.mark.parametrize("name", MODELS)
def test_details_equal_golden(name: str, golden: Golden) -> None:
    done = run("platforms", name)
    assert (done.returncode, done.stderr) == (0, "")
    golden(f"cli/platforms-{name}.txt", done.stdout)


@pytest.mark.parametrize("name", MODELS)
def test_json_has_every_rule_and_every_limit(name: str) -> None:
    found = json.loads(run("platforms", name, "--format", "json").stdout)
    assert len(found["risks"]) == len(MODELS[name].risks.rules)
    assert [(limit["what"], limit["effect"]) for limit in found["limits"]] == [
        (limit.what, limit.effect) for limit in MODELS[name].constraints
    ]


def test_every_model_has_limits() -> None:
    assert all(MODELS[name].constraints for name in MODELS)


def test_unknown_platform_is_refused_with_a_suggestion() -> None:
    assert_refused(run("platforms", "nvu"), "unknown platform 'nvu'; did you mean nvue?")
    assert_refused(run("platforms", "junos"), "unknown platform 'junos'; use one of nvue, sonic, eos, frr, linux")
