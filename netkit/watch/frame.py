"""A whole screen at a moment; pure, so that a record drawn again looks the same."""

from collections import Counter
from collections.abc import Iterator, Sequence

from netkit.watch.board import Health, Row, Scene
from netkit.watch.detail import detail
from netkit.watch.history import style_of
from netkit.watch.look import Look, key, shown
from netkit.watch.rails import rails
from netkit.watch.span import Glyphs, Line, Span, clean, cut
from netkit.watch.table import table
from netkit.watch.trouble import WORDS

MOST_CONDITIONS = 4
LEAST_HEIGHT, LEAST_WIDTH = 6, 30
TOO_SMALL = "the terminal is too small"


def frame(scene: Scene, look: Look, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return at most so many lines, each of at most so many cells."""
    if height < LEAST_HEIGHT or width < LEAST_WIDTH:
        return [cut((Span(TOO_SMALL),), width)][:height]
    rows = shown(scene, look)
    conditions = list(_conditions(scene.health, glyphs))
    head = [_title(scene, look), _summary(rows, look), *conditions]
    body = list(_body(scene, look, rows, width, height - len(head) - 1, glyphs))[: height - len(head) - 1]
    filling: list[Line] = [()] * (height - len(head) - 1 - len(body))
    return [cut(line, width) for line in (*head, *body, *filling, _foot(look, glyphs))]


def unbounded(scene: Scene, look: Look, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a screen as high as it takes and without its keys, for a file or a pipe."""
    height = len(scene.rows) + 2 + MOST_CONDITIONS + 30
    lines = frame(scene, look, width, height, glyphs)[:-1]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _body(scene: Scene, look: Look, rows: Sequence[Row], width: int, height: int, glyphs: Glyphs) -> Iterator[Line]:
    chosen = next((row for row in scene.rows if key(row) == look.chosen), None)
    if look.is_detail and chosen is not None:
        yield from detail(scene, chosen, width, glyphs)
    elif look.is_rails:
        yield from rails(scene, scene.rows, width, height, glyphs)
    else:
        yield from table(scene, rows, look.chosen, width, height, glyphs)


def _title(scene: Scene, look: Look) -> Line:
    outline = scene.outline
    live = [one for one in scene.health if not one.is_overdue and one.condition.state != "gone"]
    name = f" netkit watch  {clean(outline.fabric)}" + (f" (lab {clean(outline.lab)})" if outline.lab else "")
    spans = [Span(name, "bold"), Span(f"  {scene.clock}  {len(live)} of {len(scene.health)} devices")]
    if look.wanted or look.is_typing:
        spans.append(Span(f"  /{clean(look.wanted)}{'_' if look.is_typing else ''}", "warn"))
    if look.is_paused:
        spans.append(Span("  stopped here: p goes on", "chosen"))
    return tuple(spans)


def _summary(rows: Sequence[Row], look: Look) -> Line:
    """Return how many ports have what is wrong."""
    counts = Counter(WORDS[row.standing.level] for row in rows if style_of(row.standing.level))
    styles = {WORDS[row.standing.level]: style_of(row.standing.level) for row in reversed(rows)}
    spans = [Span(f" {len(rows)} {'ports match' if look.wanted else 'ports'}:")]
    spans += [Span(f"  {count} {word}", styles[word]) for word, count in counts.items()]
    known = any(row.standing.level for row in rows)
    return tuple(spans) if counts else (*spans, Span("  nothing is wrong" if known else "  nothing is known yet"))


def _conditions(health: Sequence[Health], glyphs: Glyphs) -> Iterator[Line]:
    """Yield what to know about devices, as far as there is room; the worst first."""
    told = sorted(((_weight(one), one) for one in health), key=lambda pair: (-pair[0], pair[1].device))
    odd = [one for weight, one in told if weight]
    room = MOST_CONDITIONS if len(odd) <= MOST_CONDITIONS else MOST_CONDITIONS - 1
    for one in odd[:room]:
        yield Span(f" {clean(one.device)}", "bold"), Span(f"  {_said(one)}", "bad" if _weight(one) > 1 else "warn")
    if len(odd) > room:
        names = ", ".join(clean(one.device) for one in odd[room:])
        yield (Span(f" {glyphs.more} and {len(odd) - room} more: {names}", "warn"),)


def _weight(one: Health) -> int:
    """Return how much worth telling it is; 0 when it is not."""
    if one.condition.state == "gone":
        return 3
    if one.condition.state != "connecting" and one.is_overdue:
        return 2
    is_beginning = one.condition.state == "connecting" and one.is_overdue
    return int(is_beginning or one.condition.state == "slow" or bool(one.condition.why))


def _said(one: Health) -> str:
    condition = one.condition
    if condition.state == "gone":
        return f"gone, tried again after {condition.again_s:.0f} s: {clean(condition.why)}"
    if condition.state == "connecting":
        return "connecting"
    if one.is_overdue:
        since = f"for {one.silent_s:.0f} s" if one.silent_s is not None else "yet"
        return f"has told nothing {since}"
    pace = f"slow: asked every {condition.every_s:.1f} s, as it can answer"
    return "; ".join(part for part in (pace if condition.state == "slow" else "", clean(condition.why)) if part)


def _foot(look: Look, glyphs: Glyphs) -> Line:
    if look.is_typing:
        return (Span(" type words of a device, port, peer or rail; enter keeps them, escape ends", "dim"),)
    other = "ports" if look.is_rails else "rails"
    enter = "enter back" if look.is_detail else "enter port"
    text = f" q quit  p stop  s sort: {look.sort}  / filter  {glyphs.updown} choose  {enter}  tab {other}"
    return (Span(text, "dim"),)
