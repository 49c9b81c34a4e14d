"""Probes from a NIC to others with `ping`: one result per pair and packet size."""

import re
from collections.abc import Sequence

from netkit.facts import Absent
from netkit.facts.device import Probe
from netkit.platforms.linux.facts.reading import number, plain, whole
from netkit.platforms.view import ViewSubject

OVERHEAD_BYTES = {4: 28, 6: 48}
"""IP and ICMP headers."""
COUNT = 10
BEGIN, END = "#@ probe ", "#= end"
COUNTED = re.compile(r"([0-9]{1,9}) packets transmitted, ([0-9]{1,9}) (?:packets )?received")
TIMES = re.compile(r"(?:rtt|round-trip) min/avg/max\S* = ([0-9.]{1,12})/([0-9.]{1,12})/([0-9.]{1,12})")
ROUTER = re.compile(r"^From ([0-9a-fA-F.:]{2,45}?):? icmp_seq=[0-9]{1,9} (.{1,120})$", re.MULTILINE)
OWN = re.compile(r"^(?:\S*ping|/bin/sh|sh): (?:[0-9]{1,9}: )?(.{1,120})$", re.MULTILINE)
OF_PING = re.compile(r"not found|invalid|nrecognized|not permitted|ermission denied|cannot flood|sage:")
"""Errors of a ping that is missing, incompatible or not permitted."""
Asked = tuple[str, str, str, int]
"""Source, interface, destination, size."""


def command(subject: ViewSubject) -> str:
    """Send all probes of a host concurrently; the command ends within seconds.

    Where ping supports it, path MTUs that the kernel cached are ignored: they outlive their cause.
    """
    ping = f"ping -n -M $m -Q {subject.probe_tos} -c {COUNT} -i 0.05 -w 4 -W 2 $2"
    sent = [
        f"p {index} '-{version} -s {size - OVERHEAD_BYTES[version]} -I {source} -I {interface} {destination}' &"
        for index, (source, interface, destination, size) in enumerate(asked(subject))
        for version in (6 if ":" in destination else 4,)
    ]
    lines = [
        "m=do; ping -M probe -c 1 -W 1 127.0.0.1 >/dev/null 2>&1 && m=probe",
        f'p() {{ r=$({ping} 2>&1); printf \'\\n{BEGIN}%s\\n%s\\n{END}\\n\' "$1" "$r"; }}',
        *sent,
        "wait",
    ]
    return "\n".join(lines)


def asked(subject: ViewSubject) -> tuple[Asked, ...]:
    """List the probes in the order of their numbers."""
    return tuple((*pair, size) for pair in subject.probes for size in subject.probe_bytes)


def probes(text: str, asked_: Sequence[Asked]) -> tuple[Probe, ...] | Absent:
    """Parse the result of each pair and size; truncated ones are missing."""
    outputs: dict[int, str] = {}
    for part in plain(text).split(f"\n{BEGIN}")[1:]:
        head, _, rest = part.partition("\n")
        body, mark, _ = rest.partition(f"\n{END}")
        index = whole(head)
        if index is not None and mark:
            outputs[index] = body
    found = tuple(_probe(one, outputs[index]) for index, one in enumerate(asked_) if index in outputs)
    if not found:
        return Absent("no probe was answered")
    if any(one.sent or (one.reason and not OF_PING.search(one.reason)) for one in found):
        return found
    return Absent(found[0].reason or "the output of ping cannot be parsed")


def _probe(one: Asked, text: str) -> Probe:
    counted, times = _row(COUNTED, "packets transmitted", text), _row(TIMES, " min/avg/max", text)
    sent, received = (int(counted[1]), int(counted[2])) if counted else (0, 0)
    rtts_ms = [number(times[index]) for index in (1, 2, 3)] if times else [None, None, None]
    least, usual, most = (None if value is None else round(value * 1000, 3) for value in rtts_ms)
    # An ICMP error from a router takes precedence over one from the local kernel.
    error, own = _row(ROUTER, "From ", text), OWN.search(text) if "ping: " in text or "sh: " in text else None
    router, reason = (error[1], error[2].strip()) if error else ("", own[1].strip() if own else "")
    return Probe(*one, sent, min(received, sent), least, usual, most, reason, router)


def _row(row: re.Pattern[str], word: str, text: str) -> re.Match[str] | None:
    """Find the first line that a pattern matches; all such lines have the word, which is found much faster."""
    at = text.find(word)
    while at >= 0:
        found = row.match(text, text.rfind("\n", 0, at) + 1)
        if found:
            return found
        end = text.find("\n", at)
        at = text.find(word, end) if end >= 0 else -1
    return None
