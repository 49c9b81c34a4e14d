"""Firmware of NICs and modules compared with the list of the intent, or with others of their kind where it has none."""

from collections.abc import Mapping
from typing import Any

from netkit.facts import Facts
from netkit.facts.host import NicFacts
from netkit.facts.optic import Module
from netkit.judge import CheckContext
from netkit.judge.cause import cause_groups
from tests.checks.judging import judge, said, shipped, skipped
from tests.judge.scenes import fabric, observation, scene

PSID, PART = "MT_0000000838", "MCX75310AAS-NEAT"


def cards(host: str, *firmware: str, psid: str = PSID, part: str = PART) -> Any:
    """A host whose NICs run these versions."""
    names = {f"rail{number}": version for number, version in enumerate(firmware)}
    nics = {name: NicFacts(name, "", part=part, psid=psid, firmware=version) for name, version in names.items()}
    return observation(host, Facts(nics=nics))


def hosts(approved: Mapping[str, list[str]], *seen: Any) -> CheckContext:
    return scene(fabric(firmware={"nics": approved}), *seen)


def optics(approved: Mapping[str, list[str]], **modules: Module) -> CheckContext:
    return scene(fabric(firmware={"modules": approved}), observation("leaf01", Facts(modules=modules)))


def test_a_nic_with_unapproved_firmware_fails_even_if_most_run_it() -> None:
    seen = hosts(
        {PSID: ["28.44.1036", "28.43.1014"]}, cards("gpu01", "28.39.1", "28.39.1"), cards("gpu02", "28.43.1014")
    )
    text = f"NIC {PSID} runs firmware 28.39.1; approved is 28.44.1036 or 28.43.1014"
    found = [("fail", "gpu01", "rail0", text), ("fail", "gpu01", "rail1", text)]
    assert said(seen, "inventory.firmware") == found
    assert said(seen, "inventory.nics") == []


def test_equal_nics_are_one_cause_with_a_count() -> None:
    seen = hosts({PSID: ["2"]}, cards("gpu01", "1", "2"), cards("gpu02", "1", "2"))
    check = shipped()["inventory.firmware"]
    (cause,) = cause_groups(judge(seen, [check]).findings, {check.name: check.layer})
    assert {(one.device, one.place) for one in (cause.head, *cause.symptoms)} == {
        ("gpu01", "rail0"),
        ("gpu02", "rail0"),
    }
    assert dict(cause.head.evidence)["differ"] == "2 of 4"


def test_two_approved_versions_side_by_side_pass() -> None:
    seen = hosts({PSID: ["1", "2"]}, cards("gpu01", "1"), cards("gpu02", "2"))
    assert said(seen, "inventory") == said(seen, "inventory.nics") == []
    assert said(hosts({}, cards("gpu01", "1", "2", "2")), "inventory.nics") == [
        ("warn", "gpu01", "rail0", "firmware 1, most of its kind have 2")
    ]


def test_a_glob_or_a_part_number_applies_where_no_psid_matches() -> None:
    assert said(hosts({"MT_*": ["1"], PART: ["2"]}, cards("gpu01", "2")), "inventory.firmware") == []
    text = f"NIC {PSID} runs firmware 2; approved is 1"
    assert said(hosts({"MT_*": ["1"]}, cards("gpu01", "2")), "inventory.firmware") == [("fail", "gpu01", "rail0", text)]
    longest = hosts({"MT_*": ["1"], "MT_00*": ["2"]}, cards("gpu01", "2"))
    assert said(longest, "inventory.firmware") == []


def test_unknown_versions_are_skipped_with_the_reason() -> None:
    seen = hosts(
        {"MT_1": ["1"]},
        cards("gpu01", "", psid="MT_1"),
        cards("gpu02", "1", "1", psid="", part=""),
    )
    nothing = "no firmware is approved that fits: it reports neither part number nor PSID"
    assert skipped(seen, "inventory.firmware") == [
        ("gpu01", "rail0", "it does not report its firmware; MT_1 needs 1"),
        ("gpu02", "rail0", nothing),
        ("gpu02", "rail1", nothing),
    ]
    assert skipped(hosts({"MT_1": ["1"]}, cards("gpu01", "1")), "inventory.firmware") == [
        ("gpu01", "rail0", f"no firmware is approved for {PSID}")
    ]
    assert said(hosts({"MT_1": ["1"]}, cards("gpu01", "1", "1", "2")), "inventory.nics") == [
        ("warn", "gpu01", "rail2", "firmware 2, most of its kind have 1")
    ]


def test_modules_are_compared_by_their_part_number() -> None:
    new, old = (Module(kind="optic", part="O-800", serial=text, firmware=text) for text in ("1.1", "1.0"))
    seen = optics({"O-*": ["1.1"]}, swp1s0=old, swp2s0=new)
    text = "module O-800 runs firmware 1.0; approved is 1.1"
    assert said(seen, "optics.firmware") == [("fail", "leaf01", "swp1s0", text)]
    assert said(seen, "optics.parts") == []
    copper = Module(kind="copper", part="C-800")
    assert said(optics({"O-*": ["1.1"]}, swp1s0=copper), "optics.firmware") == []
    silent = Module(kind="aoc", part="O-800")
    assert skipped(optics({"O-800": ["1.1"]}, swp1s0=silent), "optics.firmware") == [
        ("leaf01", "swp1s0", "it does not report its firmware; O-800 needs 1.1")
    ]


def test_nics_of_another_vendor_are_another_kind_even_without_part_numbers() -> None:
    """lspci shows part numbers to root only; the driver is known in any case."""
    drivers = {"gpu01": ("mlx5_core", "28.43.1014"), "gpu02": ("bnxt_en", "231.2.63.0"), "gpu03": ("ionic", "1.117.1")}
    seen = [
        observation(
            host, Facts(nics={f"rail{at}": NicFacts(f"rail{at}", "", driver=driver, firmware=own) for at in range(2)})
        )
        for host, (driver, own) in drivers.items()
    ]
    assert said(hosts({}, *seen), "inventory.nics") == []
    odd = NicFacts("rail1", "", driver="bnxt_en", firmware="230.1")
    usual = NicFacts("rail0", "", driver="bnxt_en", firmware="231.2.63.0")
    seen[1] = observation("gpu02", Facts(nics={"rail0": usual, "rail1": odd, "rail2": usual}))
    assert said(hosts({}, *seen), "inventory.nics") == [
        ("warn", "gpu02", "rail1", "firmware 230.1, most of its kind have 231.2.63.0")
    ]
