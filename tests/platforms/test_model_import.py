"""Model files from the device folder of a SONiC image: the shipped models, written as an image has them, and back."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import HardwareError
from netkit.hardware import Catalog, SwitchModel
from netkit.platforms.sonic.hardware import hardware, missing
from netkit.platforms.sonic.model_import import HEADROOM, PLATFORM, model_file
from tests.command import run

CATALOG = Catalog()
VERSION = "202511"
MODELS = [
    name
    for name in CATALOG.names("switches")
    if "sonic" in CATALOG.switch(name).platforms and not missing(CATALOG.switch(name), VERSION)
]


def image(model: SwitchModel) -> dict[str, str]:
    """Return the files of a device folder, as an image of this model has them."""
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
def test_an_image_gives_the_model_that_is_shipped(tmp_path: Path, name: str) -> None:
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


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda of: st.lists(of) | st.dictionaries(st.text(max_size=9), of),
    )
)
def test_other_json_is_refused(content: Any) -> None:
    with pytest.raises(HardwareError):
        model_file({PLATFORM: json.dumps({"interfaces": content})}, "S9", "x86_64-some-r0", "Some-SKU")


def test_the_command_writes_a_file_that_the_catalogue_reads_and_keeps_one_that_is_there(tmp_path: Path) -> None:
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
    none = run("model", "import", tmp_path, "--out", out)
    assert none.stderr == f"error: {tmp_path} has no platform.json; name the device folder of the switch in its image\n"
