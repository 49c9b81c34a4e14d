"""A drawing as DOT for Graphviz, and as a Mermaid flowchart."""

from collections.abc import Iterator, Sequence

from netkit.design.drawing import Drawing, DrawnLine, DrawnSymbol
from netkit.report.diagram_svg import LIGHT


def dot(drawing: Drawing) -> str:
    """Return the drawing as an undirected graph, upper tier first."""
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
    """Return the drawing as a flowchart, upper tier first."""
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
