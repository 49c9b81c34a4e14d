"""What hangs in which rack, as text and as SVG, and the labels of the cables as a page to print."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from netkit.design.listing import CableRow
from netkit.design.racks import Rack, RackDevice

UNIT_PX, NARROWEST, GAP, HEAD, MARGIN = 18, 300, 36, 40, 24
CHARACTER_PX = 6.4
RACKS_IN_A_ROW = 6
UNKNOWN = "height not known"
SVG_STYLE = """
svg{--page:#ffffff;--ink:#111827;--dim:#4b5563;--edge:#6b7280;--fill:#f3f4f6;--host:#dbeafe}
@media(prefers-color-scheme:dark){svg{--page:#0f172a;--ink:#f1f5f9;--dim:#cbd5e1;--edge:#94a3b8;--fill:#1e293b;
--host:#1e3a5f}}
text{font-family:system-ui,"DejaVu Sans",sans-serif;font-size:11px;fill:var(--ink)}
.page{fill:var(--page)}.h{font-size:14px;font-weight:600}.u,.d{fill:var(--dim)}.u{font-size:9px;text-anchor:end}
.rack{fill:none;stroke:var(--edge)}.n{fill:var(--fill);stroke:var(--edge)}.host{fill:var(--host)}
.open{stroke-dasharray:4 3}
"""
PAGE_STYLE = """
@page{size:A4;margin:8mm}
body{font:8pt system-ui,"DejaVu Sans",sans-serif;margin:0;color:#000;background:#fff}
main{display:grid;grid-template-columns:repeat(3,1fr)}
section{border:0.2mm dashed #888;padding:1.5mm;break-inside:avoid;overflow-wrap:anywhere}
b{display:block;font-size:9pt}p{margin:.5mm 0}.far{border-top:0.2mm solid #888}
"""


def elevation_text(racks: Iterable[Rack]) -> str:
    """Each rack from its top to its bottom."""
    return "\n".join("".join(f"{line}\n" for line in _lines(rack)) for rack in racks)


def _lines(rack: Rack) -> Iterator[str]:
    yield f"rack {rack.name}"
    rows = [(_units(one), one.name, one.model, "" if one.height_u else UNKNOWN) for one in reversed(rack.devices)]
    rows += [("?", one.name, one.model, "unit not given") for one in rack.unplaced]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, note in rows:
        yield f"  {'  '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))}  {note}".rstrip()


def _units(one: RackDevice) -> str:
    return f"{one.top}-{one.unit}" if one.top > one.unit else str(one.unit)


def elevation_svg(racks: Sequence[Rack]) -> str:
    """All racks side by side, a few in a row, as an SVG file that needs nothing else."""
    body: list[str] = []
    y = float(MARGIN)
    texts = [f"{one.name} {_note(one)}" for rack in racks for one in rack.devices]
    texts += [f"{one.name} unit not given" for rack in racks for one in rack.unplaced]
    wide = max(NARROWEST, *(round(len(text) * CHARACTER_PX) + 40 for text in texts))
    for start in range(0, len(racks), RACKS_IN_A_ROW):
        row = racks[start : start + RACKS_IN_A_ROW]
        tallest = max(rack.units for rack in row)
        for column, rack in enumerate(row):
            body += _rack(rack, MARGIN + column * (wide + GAP), y, tallest, wide - 24)
        y += HEAD + tallest * UNIT_PX + max(len(rack.unplaced) for rack in row) * UNIT_PX + GAP
    width = 2 * MARGIN + min(len(racks), RACKS_IN_A_ROW) * (wide + GAP) - GAP
    size = f'viewBox="0 0 {width} {y:g}" width="{width}" height="{y:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    title = f"<title>Elevation of {len(racks)} racks</title>"
    page = f'<rect class="page" width="{width}" height="{y:g}"/>'
    return "\n".join([head, title, f"<style>{SVG_STYLE}</style>", page, *body, "</svg>", ""])


def _rack(rack: Rack, x: float, y: float, tallest: int, width: int) -> Iterator[str]:
    left, bottom = x + 24, y + HEAD + tallest * UNIT_PX
    top = bottom - rack.units * UNIT_PX
    yield f'<text class="h" x="{left:g}" y="{top - 10:g}">{escape(rack.name)}</text>'
    yield f'<rect class="rack" x="{left:g}" y="{top:g}" width="{width}" height="{rack.units * UNIT_PX}"/>'
    for unit in range(1, rack.units + 1):
        yield f'<text class="u" x="{left - 5:g}" y="{bottom - (unit - 1) * UNIT_PX - 5:g}">{unit}</text>'
    for one in rack.devices:
        height = (one.top - one.unit + 1) * UNIT_PX
        place = f'x="{left:g}" y="{bottom - one.top * UNIT_PX:g}" width="{width}" height="{height}"'
        kind = f"n{' host' if one.role == 'host' else ''}{'' if one.height_u else ' open'}"
        yield f'<rect class="{kind}" {place}/>' + _named(one.name, _note(one), left, bottom - one.top * UNIT_PX + 13)
    for number, one in enumerate(rack.unplaced):
        yield _named(one.name, "unit not given", left, bottom + (number + 1) * UNIT_PX)


def _note(one: RackDevice) -> str:
    return f"{one.model}, {one.height_u}U" if one.height_u else f"{one.model}, {UNKNOWN}"


def _named(name: str, note: str, x: float, y: float) -> str:
    return f'<text x="{x + 6:g}" y="{y:g}">{escape(name)} <tspan class="d">{escape(note)}</tspan></text>'


def labels_page(fabric: str, cables: Iterable[CableRow]) -> str:
    """A page to print with two labels for each cable: one for each end, which names both."""
    labels = "\n".join(_label(one, near, far) for one in cables for near, far in (("from", "to"), ("to", "from")))
    title = f"<title>Cable labels of {escape(fabric)}</title>"
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{title}<style>{PAGE_STYLE}</style></head>'
    return f"{head}\n<body><main>\n{labels}\n</main></body></html>\n"


def _label(cable: CableRow, near: str, far: str) -> str:
    what = escape(f"{cable.media}, {cable.length_m:g} m, {cable.speed_gbps}G")
    ends = f"<p>{_end(cable, near)}</p><p class=far>to {_end(cable, far)}</p>"
    return f"<section><b>{escape(cable.label)}</b>{ends}<p>{what}</p></section>"


def _end(cable: CableRow, end: str) -> str:
    device, port, cage, rack, unit = (
        getattr(cable, f"{end}_{key}") for key in ("device", "port", "cage", "rack", "rack_unit")
    )
    place = f"rack {rack}, unit {unit or 'not given'}" if rack else "rack not given"
    return escape(f"{device} {port} (cage {cage}), {place}")
