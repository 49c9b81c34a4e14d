"""The headroom formula compared with every figure a vendor has published."""

import pytest

from netkit.design import lossless
from netkit.design.fabric import Cable
from netkit.hardware import Catalog, HeadroomRow, Split, SwitchModel
from netkit.hardware.catalog import SHIPPED

CATALOG = Catalog()
PORT_MTU_BYTES = 9216
TOLERANCE = 0.25

# Rows that differ from the formula, by model, speed and length, with the words of the data file that explain it.
EXCEPTIONS: dict[str, tuple[set[tuple[int, float]], str]] = {
    "DCS-7060X6-64PE": (
        {(400, 5), (400, 40)},
        "The three rows are equal: the vendor uses the 150 m figure at every length",
    ),
    "DCS-7060X6-64PE-B": (
        {(100, length) for length in (5, 30, 40, 60, 150, 500)},
        "In O128 the 100G rows repeat\n  # the 400G ones",
    ),
}


def rows() -> list[tuple[SwitchModel, HeadroomRow]]:
    found = [
        (CATALOG.switch(name), row) for name in CATALOG.names("switches") for row in CATALOG.switch(name).headroom_rows
    ]
    assert len(found) > 50
    return found


def split_of(model: SwitchModel, row: HeadroomRow) -> Split:
    """The breakout of a row: the one with the fewest lanes, as in the data files."""
    offered = [split for split in model.splits if split.speed_gbps == row.speed_gbps]
    return min(offered, key=lambda split: split.lanes_per_port, default=Split(1, row.speed_gbps, 1, (1,), False, ""))


def is_exception(model: SwitchModel, row: HeadroomRow) -> bool:
    return (row.speed_gbps, row.cable_m) in EXCEPTIONS.get(model.name, (set(), ""))[0]


@pytest.mark.parametrize(
    ("model", "row"),
    rows(),
    ids=lambda value: getattr(value, "name", None) or f"{value.speed_gbps}G-{value.cable_m:g}m",
)
def test_the_formula_equals_the_vendors_figure_or_the_data_file_explains_why_not(
    model: SwitchModel, row: HeadroomRow
) -> None:
    computed = lossless.compute(model, split_of(model, row), row.cable_m, PORT_MTU_BYTES)
    assert computed is not None
    is_near = abs(computed.xoff_bytes / row.xoff_bytes - 1) <= TOLERANCE
    assert is_near != is_exception(model, row), f"formula {computed.xoff_bytes}, vendor {row.xoff_bytes}"
    if model.asic.startswith("Spectrum"):  # where the size is more than a reserved minimum
        assert abs(computed.size_bytes / row.size_bytes - 1) <= TOLERANCE, (
            f"formula {computed.size_bytes}, vendor {row.size_bytes}"
        )


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_every_exception_is_a_row_and_has_its_reason_in_the_data_file(name: str) -> None:
    places, reason = EXCEPTIONS[name]
    assert places <= {(row.speed_gbps, row.cable_m) for row in CATALOG.switch(name).headroom_rows}
    assert reason in (SHIPPED / "switches" / f"{name}.yaml").read_text(encoding="utf-8")


def test_headroom_grows_with_length_speed_and_frames() -> None:
    for name in CATALOG.names("switches"):
        model = CATALOG.switch(name)
        split = model.splits[0]
        lengths = [lossless.compute(model, split, length, PORT_MTU_BYTES) for length in (5, 40, 300, 2000)]
        sizes = [computed.xoff_bytes for computed in lengths if computed]
        assert len(sizes) == 4
        assert sizes == sorted(set(sizes)), name
        small = lossless.compute(model, split, 5, 1500)
        assert small
        assert small.xoff_bytes < sizes[0], name


def test_the_vendors_table_overrides_the_formula_and_the_user_overrides_both() -> None:
    model = CATALOG.switch("SN5600")
    split = model.split("2x400G")
    assert split
    row = lossless.vendor_row(model, 400, 30)
    assert row
    assert row.cable_m == 40  # the shortest listed length that is long enough, never a shorter one
    chosen = lossless.choose(model, split, Cable("400G-DR4", "optical", 30), PORT_MTU_BYTES, None)
    assert chosen
    assert (chosen.origin, chosen.xoff_bytes, chosen.table_cable_m) == ("vendor", row.xoff_bytes, 40)
    given = lossless.choose(model, split, Cable("400G-DR4", "optical", 30), PORT_MTU_BYTES, 500_000)
    assert given
    assert (given.origin, given.xoff_bytes, given.xon_bytes) == ("intent", 500_000, row.xon_bytes)


def test_the_formula_is_used_beyond_the_table() -> None:
    model = CATALOG.switch("SN5600")
    split = model.split("2x400G")
    assert split
    chosen = lossless.choose(model, split, Cable("400G-DR4", "optical", 450), PORT_MTU_BYTES, None)
    longest = lossless.vendor_row(model, 400, 300)
    assert chosen
    assert longest
    assert chosen.origin == "formula"
    assert chosen.xoff_bytes > longest.xoff_bytes


@pytest.mark.parametrize("length_m", [5, 30, 300, 450])
@pytest.mark.parametrize("name", CATALOG.names("switches"))
def test_a_users_headroom_is_reserved(name: str, length_m: float) -> None:
    model = CATALOG.switch(name)
    for split in model.splits:
        usual, given = (
            lossless.choose(model, split, Cable("400G-DR4", "optical", length_m), PORT_MTU_BYTES, xoff)
            for xoff in (None, 500_000)
        )
        assert given
        assert (given.origin, given.xoff_bytes) == ("intent", 500_000)
        if not usual:
            assert (given.size_bytes, given.xon_bytes) == (500_000, 0)
        elif (
            model.asic == "Tomahawk 5" and model.headroom_rows
        ):  # xoff comes from a pool the ports share; size is what a port has of its own
            assert (given.size_bytes, given.xon_offset_bytes) == (usual.size_bytes, usual.xon_offset_bytes)
        else:  # SONiC: without a shared pool, size is xon + xoff, and one frame more on a port of eight lanes
            assert given.size_bytes - given.xoff_bytes == usual.size_bytes - usual.xoff_bytes >= given.xon_bytes
            assert given.xon_bytes == usual.xon_bytes
