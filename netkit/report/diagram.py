"""Drawings of a fabric: SVG, Graphviz and Mermaid."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from netkit.design.drawing import ROWS, Drawing, DrawnLine, DrawnSymbol

MARGIN, GAP, PAD, HEAD, TOP = 24.0, 14.0, 12.0, 34.0, 74.0
TITLE_PX, DETAIL_PX = 7.4, 6.1
"""Width of a character of a title and of a detail, which are 12 and 10.5 pixels high."""
NARROWEST = 76.0
NARROWEST_COUNT = 30.0
"""Between the counts of two lines."""
BETWEEN_ROWS = 118.0
LEGEND = 66.0
LIGHT = ("#c2410c", "#a16207", "#4d7c0f", "#0f766e", "#0369a1", "#4f46e5", "#a21caf", "#be123c")
DARK = ("#fb923c", "#facc15", "#a3e635", "#2dd4bf", "#38bdf8", "#a5b4fc", "#e879f9", "#fb7185")
STYLE = """
svg{--page:#ffffff;--ink:#111827;--dim:#4b5563;--edge:#6b7280;--fill:#f9fafb;--box:#9ca3af;RAILS_LIGHT}
@media(prefers-color-scheme:dark){svg{--page:#0f172a;--ink:#f1f5f9;--dim:#cbd5e1;--edge:#94a3b8;--fill:#1e293b;
--box:#64748b;RAILS_DARK}}
text{font-family:system-ui,"DejaVu Sans",sans-serif;fill:var(--ink)}
.page{fill:var(--page)}.h{font-size:18px;font-weight:600}.s,.d{fill:var(--dim)}.s{font-size:12px}
.t{font-size:12px;font-weight:600}.d{font-size:10.5px}.b{font-size:11px;fill:var(--dim)}
.box{fill:none;stroke:var(--box);stroke-dasharray:4 3}
.n{fill:var(--fill);stroke:var(--edge);stroke-width:1.3}.drained{stroke-dasharray:5 3}
.l{fill:none;stroke:var(--edge);stroke-width:1.2;stroke-opacity:.75}.m{stroke-width:2.4}
.c{font-size:10.5px}.b,.c{paint-order:stroke;stroke:var(--page);stroke-width:3px}
.l:hover,.l:focus{stroke-width:4;stroke-opacity:1}
RAIL_RULES
"""


@dataclass(slots=True)
class _Box:
    """A box of the drawing, with the symbols and boxes in it; the outermost one is the whole drawing."""

    title: str
    rows: dict[str, list[DrawnSymbol]] = field(default_factory=lambda: defaultdict(list))
    boxes: dict[str, "_Box"] = field(default_factory=dict)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last row of the box."""
        rows = [ROWS.index(symbol.role) for found in self.rows.values() for symbol in found]
        rows += [row for box in self.boxes.values() for row in box.span]
        return min(rows), max(rows)

    @property
    def depth(self) -> int:
        return 1 + max((box.depth for box in self.boxes.values()), default=0)

    def shelves(self) -> list[list["_Box"]]:
        """Group the inner boxes: those that share a row stand side by side."""
        shelves: list[tuple[set[int], list[_Box]]] = []
        for box in self.boxes.values():
            first, last = box.span
            rows, together = set(range(first, last + 1)), [box]
            for shelf in [shelf for shelf in shelves if shelf[0] & rows]:
                shelves.remove(shelf)
                rows |= shelf[0]
                together = [*shelf[1], *together]
            shelves.append((rows, together))
        return [together for _, together in shelves]


@dataclass(frozen=True, slots=True)
class _Place:
    x: float
    y: float
    width: float
    height: float


def svg(drawing: Drawing) -> str:
    """The drawing as an SVG file that needs nothing else."""
    return _Canvas(drawing).text()


class _Canvas:
    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.root = _Box("")
        for symbol in drawing.symbols:
            box = self.root
            for title in symbol.box:
                box = box.boxes.setdefault(title, _Box(title))
            box.rows[symbol.role].append(symbol)
        self.row_y = self._rows()
        self.places: dict[str, _Place] = {}
        self.frames: list[tuple[str, _Place]] = []
        legend = len(drawing.rails) * LEGEND
        heading = max(len(drawing.title) * 11.0, len(self._subtitle()) * 7.0, legend, 420.0)
        inner = max(_width(self.root), heading)
        self._arrange(self.root, MARGIN, inner)
        self.width = inner + 2 * MARGIN
        bottoms = (place.y + place.height for place in (*self.places.values(), *(place for _, place in self.frames)))
        self.bottom = max(bottoms, default=TOP)

    def _rows(self) -> Mapping[str, float]:
        """The top of each row in use."""
        y = TOP + HEAD * (self.root.depth - 1)
        found: dict[str, float] = {}
        for row in ROWS:
            symbols = [symbol for symbol in self.drawing.symbols if symbol.role == row]
            if symbols:
                found[row] = y
                y += max(map(_height, symbols)) + BETWEEN_ROWS
        return found

    def _arrange(self, box: _Box, x: float, width: float) -> None:
        for symbols in box.rows.values():
            free = width - sum(map(_symbol_width, symbols))
            gap = free / (len(symbols) + 1)
            at = x
            for symbol in symbols:
                at += gap
                self.places[symbol.id] = _Place(at, self.row_y[symbol.role], _symbol_width(symbol), _height(symbol))
                at += _symbol_width(symbol)
        for shelf in box.shelves():
            widths = [_width(inner) + 2 * PAD for inner in shelf]
            gap = max((width - sum(widths)) / (len(shelf) + 1), 0.0)
            at = x
            for inner, wide in zip(shelf, widths, strict=True):
                at += gap if len(shelf) == 1 or gap > GAP else GAP if inner is not shelf[0] else 0.0
                self._arrange(inner, at + PAD, wide - 2 * PAD)
                self.frames.append((inner.title, self._frame(inner, at, wide)))
                at += wide

    def _frame(self, box: _Box, x: float, width: float) -> _Place:
        first, last = box.span
        top = self.row_y[ROWS[first]] - HEAD * box.depth - 4
        height = max(_height(symbol) for symbol in self.drawing.symbols if symbol.role == ROWS[last])
        return _Place(x, top, width, self.row_y[ROWS[last]] + height + 8 * box.depth - top)

    def text(self) -> str:
        drawing = self.drawing
        height = self.bottom + 24 + (34 if drawing.rails else 8)
        label = quoteattr(f"{drawing.title}: {drawing.subtitle}")
        size = f'viewBox="0 0 {self.width:.0f} {height:.0f}" width="{self.width:.0f}" height="{height:.0f}"'
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={label}>',
            f"<title>{escape(drawing.title)}</title>",
            f"<style>{_style(drawing.rails)}</style>",
            f'<rect class="page" width="{self.width:.0f}" height="{height:.0f}"/>',
            f'<text class="h" x="{MARGIN:.0f}" y="32">{escape(drawing.title)}</text>',
            f'<text class="s" x="{MARGIN:.0f}" y="50">{escape(self._subtitle())}</text>',
        ]
        body = (*self._frames(), *self._lines(), *self._frame_titles(), *self._symbols(), *self._legend(height - 22))
        return "\n".join([*head, *body, "</svg>"]) + "\n"

    def _subtitle(self) -> str:
        counts = "; N × is the number of cables" if any(line.cables > 1 for line in self.drawing.lines) else ""
        return f"{self.drawing.subtitle}{counts}"

    def _frames(self) -> Iterator[str]:
        for _, place in self.frames:
            yield f'<rect class="box" rx="6" {_rect(place)}/>'

    def _frame_titles(self) -> Iterator[str]:
        for title, place in self.frames:
            yield f'<text class="b" x="{place.x + 8:.1f}" y="{place.y + 14:.1f}">{escape(title)}</text>'

    def _symbols(self) -> Iterator[str]:
        for symbol in self.drawing.symbols:
            place = self.places[symbol.id]
            names = ", ".join(symbol.devices)
            rail = "" if symbol.rail is None else f" r{symbol.rail}"
            drained = " drained" if symbol.is_drained else ""
            yield f"<g><title>{escape(names)}</title>"
            if len(symbol.devices) > 1:
                behind = _Place(place.x + 4, place.y + 4, place.width, place.height)
                yield f'<rect class="n{rail}" rx="4" {_rect(behind)}/>'
            yield f'<rect class="n{rail}{drained}" rx="4" {_rect(place)}/>'
            middle = place.x + place.width / 2
            for row, text in enumerate((symbol.title, *symbol.details)):
                kind, y = ("t", 17.0) if row == 0 else ("d", 18.0 + 14 * row)
                at = f'x="{middle:.1f}" y="{place.y + y:.1f}" text-anchor="middle"'
                yield f'<text class="{kind}" {at}>{escape(text)}</text>'
            yield "</g>"

    def _lines(self) -> Iterator[str]:
        below, above = self._ends("lower"), self._ends("upper")
        captions: list[str] = []
        for line in self.drawing.lines:
            lower, upper = self.places[line.lower], self.places[line.upper]
            kind = f"l{' m' if line.cables > 1 else ''}{'' if line.rail is None else f' r{line.rail}'}"
            text = f"{line.cables} × {line.speed}: {self._title(line.lower)} – {self._title(line.upper)}"
            if self._is_level(line):
                left, right = sorted((lower, upper), key=lambda place: place.x)
                x, y = left.x + left.width, left.y + left.height / 2
                yield f'<path class="{kind}" d="M{x:.1f} {y:.1f}H{right.x:.1f}"><title>{escape(text)}</title></path>'
                if line.cables > 1:
                    captions.append(_caption((x + right.x) / 2, left.y + left.height + 13, text.partition(":")[0]))
                continue
            x1, x2 = below[_ends_of(line)], above[_ends_of(line)]
            y1, y2 = lower.y, upper.y + upper.height + (4 if self._is_many(line.upper) else 0)
            bend = (y1 - y2) * 0.45
            path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 - bend:.1f} {x2:.1f} {y2 + bend:.1f} {x2:.1f} {y2:.1f}"
            yield f'<path class="{kind}" d="{path}"><title>{escape(text)}</title></path>'
        for symbol in self.drawing.symbols:
            captions += self._captions(symbol)
        yield from captions

    def _captions(self, symbol: DrawnSymbol) -> Iterator[str]:
        """Write the number of cables above the lower symbol: once if it is the same for all its lines."""
        lines = [line for line in self.drawing.lines if line.lower == symbol.id and not self._is_level(line)]
        counts = {(line.cables, line.speed) for line in lines}
        if not lines or all(line.cables == 1 for line in lines):
            return
        place = self.places[symbol.id]
        if len(counts) == 1:
            (cables, speed) = next(iter(counts))
            each = " each" if len(lines) > 1 else ""
            yield _caption(place.x + place.width / 2, place.y - 7, f"{cables} × {speed}{each}")
        elif place.width / (len(lines) + 1) < NARROWEST_COUNT:
            few, many = min(counts)[0], max(counts)[0]
            range_ = str(few) if few == many else f"{few}–{many}"
            yield _caption(place.x + place.width / 2, place.y - 7, f"{range_} × each")
        else:
            ends = self._ends("lower")
            yield from (_caption(ends[_ends_of(line)], place.y - 7, f"{line.cables} ×") for line in lines)

    def _is_level(self, line: DrawnLine) -> bool:
        """Whether a line joins two symbols of one row, such as the switches of a pair."""
        return self.places[line.lower].y == self.places[line.upper].y

    def _ends(self, side: str) -> Mapping[tuple[str, str, int | None], float]:
        """Where each line meets its lower or upper symbol: spread over it in the order of the other ends."""
        found: dict[str, list[DrawnLine]] = defaultdict(list)
        for line in (one for one in self.drawing.lines if not self._is_level(one)):
            found[line.lower if side == "lower" else line.upper].append(line)
        ends = {}
        for symbol, lines in found.items():
            place = self.places[symbol]
            lines.sort(key=lambda line: self._middle(line.upper if side == "lower" else line.lower))
            for number, line in enumerate(lines, 1):
                ends[_ends_of(line)] = place.x + place.width * number / (len(lines) + 1)
        return ends

    def _middle(self, symbol: str) -> float:
        return self.places[symbol].x + self.places[symbol].width / 2

    def _is_many(self, name: str) -> bool:
        return any(len(symbol.devices) > 1 for symbol in self.drawing.symbols if symbol.id == name)

    def _title(self, name: str) -> str:
        return next(symbol.title for symbol in self.drawing.symbols if symbol.id == name)

    def _legend(self, y: float) -> Iterator[str]:
        for place, rail in enumerate(self.drawing.rails):
            x = MARGIN + place * LEGEND
            yield f'<path class="l m r{rail}" d="M{x:.0f} {y - 4:.1f}h18"/>'
            yield f'<text class="d" x="{x + 23:.0f}" y="{y:.1f}">rail {rail}</text>'


def _caption(x: float, y: float, text: str) -> str:
    return f'<text class="c" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'


def _ends_of(line: DrawnLine) -> tuple[str, str, int | None]:
    return line.lower, line.upper, line.rail


def _width(box: _Box) -> float:
    rows = [sum(map(_symbol_width, symbols)) + GAP * (len(symbols) + 1) for symbols in box.rows.values()]
    shelves = [sum(_width(inner) + 2 * PAD for inner in shelf) + GAP * (len(shelf) - 1) for shelf in box.shelves()]
    return max((*rows, *shelves, len(box.title) * 6.5), default=0.0)


def _symbol_width(symbol: DrawnSymbol) -> float:
    widths = (len(symbol.title) * TITLE_PX, *(len(text) * DETAIL_PX for text in symbol.details))
    return max(NARROWEST, *(width + 14 for width in widths))


def _height(symbol: DrawnSymbol) -> float:
    return 26.0 + 14 * len(symbol.details)


def _rect(place: _Place) -> str:
    return f'x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}"'


def _style(rails: Sequence[int]) -> str:
    light, dark = ("".join(f"--r{rail}:{colours[rail % len(colours)]};" for rail in rails) for colours in (LIGHT, DARK))
    rules = "".join(f".r{rail}{{stroke:var(--r{rail})}}" for rail in rails)
    return STYLE.replace("RAILS_LIGHT", light).replace("RAILS_DARK", dark).replace("RAIL_RULES", rules).strip()


def dot(drawing: Drawing) -> str:
    """The drawing as an undirected graph, upper tier first."""
    head = ['  graph [rankdir=TB, nodesep=0.3, ranksep=1.2, fontname="sans-serif"];', "  node [shape=box];"]
    label = f"  label={_quoted(f'{drawing.title}: {drawing.subtitle}')};"
    lines = (f"  {line.upper} -- {line.lower}{_dot_style(line)};" for line in drawing.lines)
    return (
        "\n".join([f"graph {_quoted(drawing.title)} {{", *head, label, *_clusters(drawing.symbols), *lines, "}"]) + "\n"
    )


def _clusters(symbols: Sequence[DrawnSymbol], depth: int = 0, prefix: str = "cluster") -> Iterator[str]:
    space = "  " * (depth + 1)
    for symbol in symbols:
        if len(symbol.box) == depth:
            label = "\\n".join(map(_dot_text, (symbol.title, *symbol.details)))
            colour = "" if symbol.rail is None else f', color="{_colour(symbol.rail)}"'
            dashed = ", style=dashed" if symbol.is_drained else ""
            yield f'{space}{symbol.id} [label="{label}"{colour}{dashed}];'
    for place, title in enumerate(_inner(symbols, depth)):
        yield f"{space}subgraph {prefix}_{place} {{"
        yield f"{space}  label={_quoted(title)};"
        inside = [symbol for symbol in symbols if len(symbol.box) > depth and symbol.box[depth] == title]
        yield from _clusters(inside, depth + 1, f"{prefix}_{place}")
        yield f"{space}}}"


def _inner(symbols: Sequence[DrawnSymbol], depth: int) -> list[str]:
    return list(dict.fromkeys(symbol.box[depth] for symbol in symbols if len(symbol.box) > depth))


def _dot_style(line: DrawnLine) -> str:
    colour = [] if line.rail is None else [f'color="{_colour(line.rail)}"']
    count = [f'label="{line.cables} × {line.speed}"'] if line.cables > 1 else []
    return f" [{', '.join([*colour, *count])}]" if colour or count else ""


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _quoted(text: str) -> str:
    return f'"{_dot_text(text)}"'


def mermaid(drawing: Drawing) -> str:
    """The drawing as a flowchart, upper tier first."""
    lines = [f"  {line.upper} ---{_mermaid_count(line)}{line.lower}" for line in drawing.lines]
    styles = [
        f"  linkStyle {','.join(str(place) for place, line in enumerate(drawing.lines) if line.rail == rail)}"
        f" stroke:{_colour(rail)}"
        for rail in drawing.rails
    ]
    return "\n".join(["flowchart TB", *_subgraphs(drawing.symbols), *lines, *styles]) + "\n"


def _subgraphs(symbols: Sequence[DrawnSymbol], depth: int = 0, prefix: str = "box") -> Iterator[str]:
    space = "  " * (depth + 1)
    for symbol in symbols:
        if len(symbol.box) == depth:
            yield f'{space}{symbol.id}["{"<br/>".join(map(_mermaid_text, (symbol.title, *symbol.details)))}"]'
    for place, title in enumerate(_inner(symbols, depth)):
        yield f'{space}subgraph {prefix}_{place}["{_mermaid_text(title)}"]'
        inside = [symbol for symbol in symbols if len(symbol.box) > depth and symbol.box[depth] == title]
        yield from _subgraphs(inside, depth + 1, f"{prefix}_{place}")
        yield f"{space}end"


def _mermaid_count(line: DrawnLine) -> str:
    return f'|"{line.cables} × {line.speed}"| ' if line.cables > 1 else " "


def _mermaid_text(text: str) -> str:
    """Write every character that Mermaid or HTML could read as syntax as its code."""
    return "".join(one if one.isalnum() or one in " -_.,:/×…" else f"#{ord(one)};" for one in text)


def _colour(rail: int) -> str:
    return LIGHT[rail % len(LIGHT)]
