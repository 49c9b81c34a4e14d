"""A whole screen at one time; pure, so that a replayed record looks the same."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from netkit.watch.board import BoardView, Health, Row
from netkit.watch.detail import detail
from netkit.watch.port_severity import WORDS, Level
from netkit.watch.rails import rails
from netkit.watch.span import Glyphs, Line, Span, Style, clean, cut
from netkit.watch.table import table
from netkit.watch.view_state import ViewState, key, shown, style_of

MOST_CONDITIONS = 4
MOST_HEAD = MOST_CONDITIONS + 4
LEAST_HEIGHT, LEAST_WIDTH = 6, 30
TOO_SMALL = "the terminal is too small"


def frame(view: BoardView, look: ViewState, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return at most `height` lines of at most `width` cells."""
    if height < LEAST_HEIGHT or width < LEAST_WIDTH:
        return [cut((Span(TOO_SMALL),), width)][:height]
    rows = shown(view, look)
    conditions = list(_conditions(view.health, glyphs))[: height - LEAST_HEIGHT + 1]
    head = [_title(view, look), _summary(rows, look), *conditions]
    body = list(_body(view, look, rows, width, height - len(head) - 1, glyphs))[: height - len(head) - 1]
    filling: list[Line] = [()] * (height - len(head) - 1 - len(body))
    return [cut(line, width) for line in (*head, *body, *filling, _foot(look, glyphs))]


def unbounded(view: BoardView, look: ViewState, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a screen as high as it needs, without the line of keys, for a file or a pipe."""
    height = len(view.rows) + MOST_HEAD + 30
    lines = frame(view, look, width, height, glyphs)[:-1]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _body(
    view: BoardView, look: ViewState, rows: Sequence[Row], width: int, height: int, glyphs: Glyphs
) -> Iterator[Line]:
    chosen = next((row for row in view.rows if key(row) == look.chosen), None)
    if look.is_detail and chosen is not None:
        yield from detail(view, chosen, width, glyphs)
    elif look.is_rails:
        yield from rails(view, view.rows, width, height, glyphs)
    else:
        yield from table(view, rows, look.chosen, width, height, glyphs)


def _title(view: BoardView, look: ViewState) -> Line:
    outline = view.outline
    live = [one for one in view.health if not one.is_overdue and one.condition.state != "gone"]
    name = f" netkit watch  {clean(outline.fabric)}" + (f" (lab {clean(outline.lab)})" if outline.lab else "")
    spans = [Span(name, "bold"), Span(f"  {view.clock}  {len(live)} of {len(view.health)} devices")]
    if look.wanted or look.is_typing:
        spans.append(Span(f"  /{clean(look.wanted)}{'_' if look.is_typing else ''}", "warn"))
    if look.is_paused:
        spans.append(Span("  paused: p continues", "chosen"))
    return tuple(spans)


def _summary(rows: Sequence[Row], look: ViewState) -> Line:
    """Return the number of ports by problem."""
    counts = Counter(WORDS[row.severity.level] for row in rows if style_of(row.severity.level))
    styles = {WORDS[row.severity.level]: style_of(row.severity.level) for row in reversed(rows)}
    spans = [Span(f" {len(rows)} {'ports match' if look.wanted else 'ports'}:")]
    spans += [Span(f"  {count} {word}", styles[word]) for word, count in counts.items()]
    unknown = sum(row.severity.level is Level.UNKNOWN for row in rows)
    if rows and not counts:
        spans.append(Span("  nothing is known yet" if unknown == len(rows) else "  nothing is wrong"))
    if 0 < unknown < len(rows):
        spans.append(Span(f"  {unknown} not known", "warn"))
    return tuple(spans)


def _conditions(health: Sequence[Health], glyphs: Glyphs) -> Iterator[Line]:
    """Yield the devices without samples, then those that are polled less often than wanted."""
    odd = sorted((one for one in health if _weight(one)), key=lambda one: (-_weight(one), one.device))
    room = MOST_CONDITIONS if len(odd) <= MOST_CONDITIONS else MOST_CONDITIONS - 1
    for one in odd[:room]:
        style: Style = "bad" if _weight(one) > 1 else "warn"
        yield Span(f" {clean(one.device)}", "bold"), Span(f"  {_condition_text(one)}", style)
    if len(odd) > room:
        names = ", ".join(clean(one.device) for one in odd[room:])
        yield (Span(f" {glyphs.more} and {len(odd) - room} more: {names}", "warn"),)
    yield from _listed(" connecting: ", (clean(one.device) for one in health if _is_connecting(one)))
    slow = (one for one in health if one.condition.state == "slow" and not one.is_overdue)
    paces = (f"{clean(one.device)} {one.condition.every_s:.1f} s" for one in slow)
    yield from _listed(" polled less often, slow to answer: ", paces)


def _listed(title: str, names: Iterable[str]) -> Iterator[Line]:
    if text := ", ".join(names):
        yield (Span(f"{title}{text}", "warn"),)


def _is_connecting(one: Health) -> bool:
    return one.condition.state == "connecting" and one.is_overdue


def _weight(one: Health) -> int:
    """Return the importance of a line of its own; 0 for none."""
    if one.condition.state == "gone":
        return 3
    if one.is_overdue and not _is_connecting(one):
        return 2
    return int(bool(one.condition.why))


def _condition_text(one: Health) -> str:
    condition = one.condition
    if condition.state == "gone":
        return f"gone, retried after {condition.again_s:.0f} s: {clean(condition.why)}"
    if one.is_overdue:
        return "no sample yet" if one.silent_s is None else f"no sample for {one.silent_s:.0f} s"
    return clean(condition.why)


def _foot(look: ViewState, glyphs: Glyphs) -> Line:
    if look.is_typing:
        return (Span(" type words of a device, port, peer or rail; enter keeps them, escape ends", "dim"),)
    other = "ports" if look.is_rails else "rails"
    enter = "enter back" if look.is_detail else "enter port"
    text = f" q quit  p stop  s sort: {look.sort}  / filter  {glyphs.updown} choose  {enter}  tab {other}"
    return (Span(text, "dim"),)
