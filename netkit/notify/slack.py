"""Messages for Slack, cut to its limits.

Limits (Slack's reference of Block Kit and of messages): 50 blocks, 150 characters in a header, 3,000 in a section, and
text beyond 4,000 characters is discouraged. Blocks with much more text in total than MOST_TEXT are refused.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from netkit.notify.message import MOST_ENDS, EventGroup, Message, digest, groups, lines, look
from netkit.report.plan_view import counted, shown

LONGEST_HEADER, LONGEST_SECTION, LONGEST_TEXT = 150, 2900, 3500
LONGEST_GROUP = 900
LONGEST_FOOTER = 1000
MOST_TEXT = 10_000
"""The limit of all blocks together."""
ICONS = {
    "error": ":boom:",
    "fail": ":red_circle:",
    "warn": ":large_yellow_circle:",
    "flapping": ":zap:",
    "silenced": ":mute:",
}
WELL = ":large_green_circle:"


def payload(message: Message, most: int) -> dict[str, Any]:
    """Return a message for Slack; `text` is shown by notifications and clients without blocks."""
    found = groups(message.events)
    parts = list(_fitting([_group(group) for group in found[:most]], message))
    left = len(found) - len(parts)
    rest = [f"… and {counted(left, 'group')} more"] if left else []
    ended = [escaped(one) for one in message.ends[:MOST_ENDS]]
    text = _cut("\n".join((escaped(digest(message)), *parts, *rest, *ended)), LONGEST_TEXT)
    return {"text": text, "blocks": list(_blocks(message, parts, rest))}


def _fitting(parts: Iterable[str], message: Message) -> Iterator[str]:
    """Yield the first parts, as many as fit into a message."""
    digest_length = min(len(escaped(digest(message))), LONGEST_SECTION)
    free = MOST_TEXT - LONGEST_HEADER - digest_length - LONGEST_FOOTER - LONGEST_GROUP * bool(message.ends)
    for part in parts:
        free -= len(part)
        if free < 0:
            return
        yield part


def _blocks(message: Message, parts: list[str], rest: list[str]) -> Iterator[dict[str, Any]]:
    header = {"type": "plain_text", "text": _cut(shown(f"netkit: {message.fabric}"), LONGEST_HEADER), "emoji": False}
    yield {"type": "header", "text": header}
    ends = [_cut("\n".join(f":alarm_clock: {escaped(one)}" for one in message.ends[:MOST_ENDS]), LONGEST_GROUP)]
    for text in (escaped(digest(message)), *parts, *(ends if message.ends else [])):
        yield {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text, LONGEST_SECTION)}}
    footer = _cut("\n".join((*rest, escaped(look(message)), f"message {message.id}")), LONGEST_FOOTER)
    yield {"type": "context", "elements": [{"type": "mrkdwn", "text": footer}]}


def _group(group: EventGroup) -> str:
    icon = WELL if group.word == "well" else ICONS[group.word]
    named = group.change if group.change in {"gone", "flapping", "silenced"} else f"{group.change} {group.word}"
    first, *more = (escaped(_cut(line, LONGEST_GROUP // 3)) for line in lines(group))
    return _cut("\n".join((f"{icon} *{named}* {first}", *(f"      {line}" for line in more))), LONGEST_SECTION)


def escaped(text: str) -> str:
    """Escape text so that it mentions nobody and links to nothing."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
