"""Model files from the device folder of a SONiC image: the shipped models, exported in its format and imported."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import HardwareError
from netkit.hardware import Catalog, SwitchModel, read_switch
from netkit.platforms.sonic.hardware import hardware, missing
from netkit.platforms.sonic.model_import import BUFFERS, DYNAMIC, HEADROOM, PLATFORM, PORTS, model_file
from tests.command import run

CATALOG = Catalog()
VERSION = "202511"
MODELS = [
    name
    for name in CATALOG.names("switches")
    if "sonic" in CATALOG.switch(name).platforms and not missing(CATALOG.switch(name), VERSION)
]


def image(model: SwitchModel) -> dict[str, str]:
    """The files of a device folder as an image of this model has them."""
    known, data = hardware(model, VERSION), model.platforms["sonic"]
    interfaces: dict[str, Any] = {}
    for cage in range(1, model.cages + 1):
        modes: dict[str, list[str]] = {}
        for split in (split for split in model.splits if cage in split.cages):
            aliases = [known.port_alias(split, cage, port) for port in range(split.ports)]
            modes[known.breakout_mode(split)] = aliases
        name = f"Ethernet{data['first_index'] + (cage - 1) * data['lanes_per_index']}"
        lanes = known.lanes[cage - 1]
        index = str(known.port_index_base + cage - 1)
        interfaces[name] = {"index": ",".join([index] * len(lanes)), "lanes": ",".join(lanes), "breakout_modes": modes}
    interfaces["Ethernet4000"] = {"index": "900", "lanes": "4001", "breakout_modes": {"1x25G[10G]": ["etp900"]}}
    rows = [
        f"{row.speed_gbps * 1000} {row.cable_m:g}m {row.size_bytes} {row.xon_bytes} {row.xoff_bytes} 0"
        + (f" {row.xon_offset_bytes}" if row.xon_offset_bytes is not None else "")
        for row in model.headroom_rows
    ]
    return {PLATFORM: json.dumps({"interfaces": interfaces}), HEADROOM: "\n".join(["# speed cable …", *rows])}


@pytest.mark.parametrize("name", MODELS)
def test_an_image_gives_the_shipped_model(tmp_path: Path, name: str) -> None:
    shipped = CATALOG.switch(name)
    folder = tmp_path / "switches"
    folder.mkdir()
    text = model_file(image(shipped), name, "x86_64-some-r0", "Some-SKU")
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    model = Catalog([tmp_path]).switch(name)
    assert (model.cages, model.lanes_per_cage) == (shipped.cages, shipped.lanes_per_cage)
    ours, theirs = (
        {(split.mode, split.lanes_per_port, split.cages) for split in one.splits} for one in (model, shipped)
    )
    assert theirs <= ours
    slower = {mode for mode, *_ in ours - theirs}
    known = hardware(shipped, VERSION)
    assert all(any(mode.split("x")[1] in known.breakout_mode(split) for split in shipped.splits) for mode in slower)
    assert [row.xoff_bytes for row in model.headroom_rows] == [row.xoff_bytes for row in shipped.headroom_rows]
    sonic, same = model.platforms["sonic"], shipped.platforms["sonic"]
    keys = ("alias", "subport_alias", "lanes_per_index", "first_index", "port_index_base", "lanes")
    assert {key: sonic[key] for key in keys} == {key: same[key] for key in keys}
    assert (sonic["hwsku"], sonic["platform"]) == ("Some-SKU", "x86_64-some-r0")
    assert missing(model, VERSION) == ("buffer_model", "buffer_pools")
    assert "# Not for the fabric, so not here: Ethernet4000." in text


def imported(tmp_path: Path, files: dict[str, str]) -> tuple[SwitchModel, str]:
    """The model that a device folder gives, and the comments of its file."""
    text = model_file(files, "S9", "x86_64-some-r0", "Some-SKU")
    (tmp_path / "S9.yaml").write_text(text, encoding="utf-8")
    return read_switch(tmp_path / "S9.yaml"), "".join(line for line in text.splitlines(True) if line.startswith("#"))


def test_cages_known_only_from_port_config_are_ports_without_breakouts(tmp_path: Path) -> None:
    shipped = CATALOG.switch("DS5000")
    files, lanes = image(shipped), shipped.platforms["sonic"]["lanes"]
    content = json.loads(files[PLATFORM])
    for cage in (13, 14, 20):
        del content["interfaces"][f"Ethernet{8 * (cage - 1)}"]
    lines = [f"Ethernet{8 * at}  {row}  Eth{at + 1}/1  800000  {at + 1}  rs" for at, row in enumerate(lanes)]
    head = ["##", "## Some licence", "# name lanes alias speed index fec"]
    ports = "\n".join([*head, *lines, "Ethernet512 516 Eth65/1 25000 65 none"])
    model, comments = imported(tmp_path, {PLATFORM: json.dumps(content), PORTS: ports})
    assert (model.cages, model.platforms["sonic"]["lanes"]) == (64, lanes)
    every = tuple(range(1, 65))
    splits = {split.mode: split.cages for split in model.splits}
    assert (splits["1x800G"], splits["2x400G"]) == (every, tuple(cage for cage in every if cage not in {13, 14, 20}))
    assert (
        "# In port_config.ini only, so the image cannot split them: Ethernet96, Ethernet104, Ethernet152.\n" in comments
    )


def test_an_inconsistent_alias_is_named_and_the_pattern_of_the_others_used(tmp_path: Path) -> None:
    shipped = CATALOG.switch("SN4600C")
    content = json.loads(image(shipped)[PLATFORM])
    content["interfaces"]["Ethernet160"]["breakout_modes"]["2x50G[25G,10G,1G]"] = ["etp42a", "etp42b"]
    model, comments = imported(tmp_path, {PLATFORM: json.dumps(content)})
    assert model.platforms["sonic"]["subport_alias"] == "etp{cage}{letter}"
    assert "# Aliases in platform.json that differ from those of the other cages: cage 41.\n" in comments


def test_of_two_breakouts_with_the_same_ports_the_one_with_more_lanes_counts(tmp_path: Path) -> None:
    modes = {"4x100G[50G](4)": ["a", "b", "c", "d"], "4x200G[100G]": ["a", "b", "c", "d"], "1x100G(4)": ["a"]}
    row = {"index": "1", "lanes": "1,2,3,4,5,6,7,8", "breakout_modes": modes}
    model, _ = imported(tmp_path, {PLATFORM: json.dumps({"interfaces": {"Ethernet0": row}})})
    splits = {split.mode: split.lanes_per_port for split in model.splits}
    assert splits == {"1x100G": 4, "4x200G": 2, "4x100G": 2, "4x50G": 1}
    assert model.platforms["sonic"]["breakout_modes"] == {
        "1x100G": "1x100G(4)",
        "4x100G": "4x200G[100G]",
        "4x50G": "4x100G[50G](4)",
        "4x200G": "4x200G[100G]",
    }


POOLS = """
{%- macro generate_buffer_pool_and_profiles() %}
    "BUFFER_POOL": {
        "ingress_lossless_pool": {
            "size": "162539680",
            "type": "ingress",
            "mode": "dynamic",
            "xoff": "33374584"
        },
        "egress_lossless_pool": {"size": "162539680", "type": "egress", "mode": "static"}
    },
    "BUFFER_PROFILE": {
        "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "static_th": "165867080"},
        "egress_lossy_profile": {"pool": "egress_lossless_pool", "size": "1778", "dynamic_th": "0"}
    },
{%- endmacro %}
"""


def test_pools_that_the_image_writes_out_are_read(tmp_path: Path) -> None:
    shipped = CATALOG.switch("Z9864F-ON")
    model, comments = imported(tmp_path, {**image(shipped), BUFFERS: POOLS})
    assert missing(model, VERSION) == ()
    assert hardware(model, VERSION).pools == hardware(shipped, VERSION).pools
    assert not hardware(model, VERSION).is_dynamic
    assert "Needed to render SONiC" not in comments


def test_pools_that_the_image_computes_are_marked_for_completion(tmp_path: Path) -> None:
    computed = POOLS.replace("162539680", "{{ ingress_lossless_pool_size }}")
    model, comments = imported(tmp_path, {**image(CATALOG.switch("Z9864F-ON")), BUFFERS: computed})
    assert missing(model, VERSION) == ("buffer_model", "buffer_pools")
    assert "# Needed to render SONiC: buffer_model, buffer_pools." in comments


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda of: st.lists(of) | st.dictionaries(st.text(max_size=9), of),
    )
)
def test_other_json_is_refused(content: Any) -> None:
    with pytest.raises(HardwareError):
        model_file({PLATFORM: json.dumps({"interfaces": content})}, "S9", "x86_64-some-r0", "Some-SKU")


def test_the_command_writes_a_file_that_the_catalogue_reads_and_keeps_an_existing_one(tmp_path: Path) -> None:
    folder = tmp_path / "x86_64-some-r0"
    for hwsku in ("One", "Two"):
        (folder / hwsku).mkdir(parents=True)
        (folder / hwsku / "port_config.ini").touch()
    files = image(CATALOG.switch("SN5600"))
    (folder / PLATFORM).write_text(files[PLATFORM], encoding="utf-8")
    (folder / "Two" / HEADROOM).write_text(files[HEADROOM], encoding="utf-8")
    out = tmp_path / "models" / "switches"
    several = run("model", "import", folder, "--out", out)
    assert (several.returncode, several.stderr) == (
        3,
        f"error: {folder} has 2 hwskus; choose one with --hwsku: One, Two\n",
    )
    written = run("model", "import", folder, "--hwsku", "Two", "--out", out, "--name", "S9")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith(f"{out / 'S9.yaml'}: 64 cages, 1x800G")
    assert Catalog([tmp_path / "models"]).switch("S9").headroom_rows[0].speed_gbps == 100
    before = (out / "S9.yaml").read_text(encoding="utf-8")
    again = run("model", "import", folder, "--hwsku", "Two", "--out", out, "--name", "S9")
    assert (again.returncode, (out / "S9.yaml").read_text(encoding="utf-8")) == (3, before)
    assert yaml.safe_load(before)["name"] == "S9"
    (folder / "One" / DYNAMIC).symlink_to("../../other/buffers.j2")
    link = run("model", "import", folder, "--hwsku", "One", "--out", out)
    here = f"{folder / 'One' / DYNAMIC} links to ../../other/buffers.j2, which is not here"
    assert (link.returncode, link.stderr) == (3, f"error: {here}; copy the folder with cp -L\n")
    elsewhere = run("model", "import", folder, "--hwsku", "Two", "--out", tmp_path / "anywhere")
    assert (elsewhere.returncode, (tmp_path / "anywhere" / "Two.yaml").is_file()) == (0, True)
    none = run("model", "import", tmp_path, "--out", out)
    files_of = "nv-show-platform.json, platform.json or show-interfaces-hardware.json"
    remedy = "name the device folder of a SONiC image, or a folder with saved output of a switch"
    assert none.stderr == f"error: {tmp_path} has no {files_of}; {remedy}\n"
