"""Changes deployed in a lab while all addresses of all hosts ping each other: lost only where the plan predicts it.

A few run by default. NETKIT_ROLLS=frr,nvue,sonic,eos deploys the whole table on each of these: half an hour each.
NETKIT_CHAINS=7,8 deploys, on each of NETKIT_ROLLS, a chain of random changes from each of these seeds.
"""

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netkit.errors import NetkitError
from netkit.plan.model import Plan
from tests import intents
from tests.cli.site import Site
from tests.deploy.rolling import Rolled, Rolling, addresses
from tests.lab.running import needs_lab, running, write_fabric
from tests.plan.scenes import VERSIONS
from tests.plan.test_order import EDITS, TABLE, merged
from tests.platforms.samples import files_of

pytestmark = needs_lab
WHOLE = tuple(filter(None, os.environ.get("NETKIT_ROLLS", "").split(",")))
CHAINS = tuple(filter(None, os.environ.get("NETKIT_CHAINS", "").split(",")))
LINKS = 12
"""Changes of a chain."""
ROLLBACK = ("rollback", "last", "--yes")
STEADY: dict[str, Any] = {"routing": {"bfd": {"interval_ms": 1000, "multiplier": 3}}}
"""BFD timers that a busy machine does not trip."""


def values(platform: str, edits: Iterable[str]) -> dict[str, Any]:
    """The intent of a variant of the small fabric."""
    return variant(platform, merged(*(EDITS[name] for name in edits)))


def variant(platform: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    return intents.on_platform(platform, VERSIONS[platform], merged(TABLE["small"], STEADY, dict(changes)))


@contextmanager
def rolling(folder: Path, booted: dict[str, Any]) -> Iterator[Rolling]:
    with running(write_fabric(folder / "fabric", booted), name="o") as lab:
        fabric = intents.fabric(booted)
        yield Rolling(Site(lab, folder), fabric, fabric)


def assert_rolls(lab: Rolling, intent: dict[str, Any], *command: str) -> Plan:
    """Deploy an intent, and compare every loss with the plan."""
    found = lab.roll(intent, *command)
    assert not (strange := differences(found)), "\n".join(strange)
    return found.plan


def differences(found: Rolled) -> list[str]:
    """Losses of the lab that the plan does not predict, or the reverse."""
    assert found.sent > 10 * found.pairs * found.took_s, "too few packets to prove anything"
    return [*found.wrong, *(str(one) for one in found.lost if not one.is_named)]


@pytest.mark.parametrize("platform", ["frr", "nvue"])
@pytest.mark.whole
def test_another_length_of_summaries_loses_no_packet_there_or_back(platform: str, tmp_path: Path) -> None:
    few, many = (values(platform, ["supernet", name]) for name in ("lower ceilings", "higher ceilings"))
    with rolling(tmp_path, few) as lab:
        for intent, command in ((many, ()), (few, ROLLBACK)):
            plan = assert_rolls(lab, intent, *command)
            assert {step.stage for step in plan.steps} == {"both", "finish"}
            assert not plan.worst
            assert not plan.gone


def test_a_leaf_alone_is_refused_and_the_drain_of_one_session_proceeds(tmp_path: Path) -> None:
    two_units = ["new unit", "lower ceilings"]
    with rolling(tmp_path, values("frr", two_units)) as lab:
        write_fabric(lab.site.lab.fabric, values("frr", ["new unit", "higher ceilings"]))
        alone = lab.site.netkit("deploy", "--yes", "--limit", "leaf01")
        assert alone.returncode == 3
        assert "this leaves the fabric worse than it was" in alone.stderr
        # The other unit gets other addresses, to which all hosts have routes.
        assert "change these with it: gpu11,gpu12,gpu21,gpu22,leaf02,leaf03,leaf04,spine01,spine02" in alone.stderr
        plan = assert_rolls(lab, values("frr", [*two_units, "drained neighbor"]))
        assert not plan.worst


@pytest.mark.whole
def test_other_ipv6_prefixes_are_accepted_before_the_old_ones_are_withdrawn(tmp_path: Path) -> None:
    with rolling(tmp_path, values("frr", ["IPv6"])) as lab:
        plan = assert_rolls(lab, values("frr", ["other IPv6"]))
        assert [step.stage for step in plan.steps] == ["both"] * 4 + [""] + ["finish"] * 4
        assert plan.worst
        assert plan.worst.is_only_ipv6


@pytest.mark.whole
def test_the_only_core_of_a_plane_restarts_its_sessions_without_a_loss(tmp_path: Path) -> None:
    tiers = intents.three_tiers()
    with rolling(tmp_path, variant("frr", tiers)) as lab:
        plan = assert_rolls(lab, variant("frr", merged(tiers, EDITS["loopbacks"])))
        lossless = {step.devices for step in plan.steps if not step.during and not step.after}
        assert {one.role for names in lossless for one in map(plan.device, names) if one} == {"spine", "core"}
        assert len([step for step in plan.steps if step.devices not in lossless]) == 2


@pytest.mark.whole
def test_a_leaf_outside_the_fabric_announces_its_old_prefix_on_the_way_back(tmp_path: Path) -> None:
    """The prefix of the rail that is removed becomes that of another one."""
    booted = variant("frr", {"rails": 3})
    with rolling(tmp_path, booted) as lab:
        assert_rolls(lab, variant("frr", {}))
        back = assert_rolls(lab, booted, *ROLLBACK, "--disruptive", "--busy")
        assert next(step.devices for step in back.steps if step.after) == ("spine01",)


each_platform = pytest.mark.parametrize(
    "platform",
    [
        pytest.param(name, marks=pytest.mark.skipif(name not in WHOLE, reason=f"NETKIT_ROLLS={name}"))
        for name in VERSIONS
    ],
)


@each_platform
def test_every_change_of_the_table_loses_what_the_plan_predicts(platform: str, tmp_path: Path) -> None:
    strange: list[str] = []
    with rolling(tmp_path, variant(platform, TABLE["world"])) as lab:
        for number, edits in enumerate(TABLE["rolls"], start=1):
            found = differences(lab.roll(values(platform, edits)))
            print(*(f"{number} {', '.join(edits)}", *found), sep="\n  ")
            strange += [f"{', '.join(edits)}: {one}" for one in found]
    assert not strange, "\n".join(strange)


@each_platform
@pytest.mark.parametrize("seed", CHAINS or [pytest.param("", marks=pytest.mark.skip(reason="NETKIT_CHAINS=7"))])
def test_a_chain_of_random_changes_loses_what_the_plan_predicts(platform: str, seed: str, tmp_path: Path) -> None:
    drawn = random.Random(seed)  # noqa: S311 (dice, not secrets)
    strange: list[str] = []
    with rolling(tmp_path, variant(platform, TABLE["world"])) as lab:
        for number, (name, intent, command) in enumerate(chain(platform, drawn), start=1):
            found = differences(lab.roll(intent, *command))
            print(*(f"{number} {name}", *found), sep="\n  ", flush=True)
            strange += [f"{number} {name}: {one}" for one in found]
    assert not strange, "\n".join(strange)


def chain(platform: str, drawn: random.Random) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Random variants of the small fabric, each unlike the last, and one in five rolled back."""
    now = variant(platform, TABLE["world"])
    links = 0
    while links < LINKS:
        edits = drawn.sample(sorted(EDITS), drawn.randint(1, 4))
        try:
            intent = values(platform, edits)
            fabric = intents.fabric(intent)
            if not addresses(fabric) or files_of(fabric) == files_of(intents.fabric(now)):
                continue
        except NetkitError:
            continue  # edits that contradict each other
        yield ", ".join(edits), intent, ()
        links += 1
        if drawn.random() < 0.2:
            yield f"back from {', '.join(edits)}", now, (*ROLLBACK, "--disruptive", "--busy")
        else:
            now = intent
