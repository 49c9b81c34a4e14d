"""What `ping` says of packets that went from a NIC to others: one answer a pair and size."""

import re
from collections.abc import Iterator, Sequence

from netkit.facts import Absent
from netkit.facts.device import Probe
from netkit.platforms.linux.facts.reading import number, plain, whole
from netkit.platforms.view import ViewSubject

OVERHEAD_BYTES = 28
"""Of an IPv4 and an ICMP header."""
COUNT = 10
BEGIN, END = "#@ probe ", "#= end"
COUNTED = re.compile(r"^([0-9]{1,9}) packets transmitted, ([0-9]{1,9}) (?:packets )?received", re.MULTILINE)
TIMES = re.compile(r"^(?:rtt|round-trip) min/avg/max\S* = ([0-9.]{1,12})/([0-9.]{1,12})/([0-9.]{1,12})", re.MULTILINE)
ROUTER = re.compile(r"^From ([0-9a-fA-F.:]{2,45}?):? icmp_seq=[0-9]{1,9} (.{1,120})$", re.MULTILINE)
OWN = re.compile(r"^(?:\S*ping|/bin/sh|sh): (?:[0-9]{1,9}: )?(.{1,120})$", re.MULTILINE)
OF_PING = re.compile(r"not found|invalid|nrecognized|not permitted|ermission denied|cannot flood|sage:")
"""What a host says whose ping is not there, is another one, or may not send."""
Asked = tuple[str, str, str, int]
"""Source, interface, destination, size."""


def command(subject: ViewSubject) -> str:
    """Return the command that sends all probes of a host at once and ends within seconds.

    Path MTUs that the kernel remembers are left out of it where ping can do so: they outlive their reason.
    """
    ping = f"ping -4 -n -M $m -Q {subject.probe_tos} -c {COUNT} -i 0.05 -w 4 -W 2 $2"
    lines = [
        "m=do; ping -M probe -c 1 -W 1 127.0.0.1 >/dev/null 2>&1 && m=probe",
        f'p() {{ r=$({ping} 2>&1); printf \'\\n{BEGIN}%s\\n%s\\n{END}\\n\' "$1" "$r"; }}',
        *(f"p {index} '{_options(one)}' &" for index, one in enumerate(asked(subject))),
        "wait",
    ]
    return "\n".join(lines)


def asked(subject: ViewSubject) -> tuple[Asked, ...]:
    """Return what is sent, in the order of its numbers."""
    return tuple((*pair, size) for pair in subject.probes for size in subject.probe_bytes)


def _options(one: Asked) -> str:
    source, interface, destination, size = one
    return f"-s {size - OVERHEAD_BYTES} -I {source} -I {interface} {destination}"


def probes(text: str, asked_: Sequence[Asked]) -> tuple[Probe, ...] | Absent:
    """Return what came of each pair and size, of those that were told to the end."""
    told = dict(_answers(plain(text)))
    found = tuple(_probe(one, told[index]) for index, one in enumerate(asked_) if index in told)
    if not found:
        return Absent("no probe was answered")
    if any(one.sent or (one.reason and not OF_PING.search(one.reason)) for one in found):
        return found
    return Absent(found[0].reason or "what ping said cannot be read")


def _answers(text: str) -> Iterator[tuple[int, str]]:
    for part in text.split(f"\n{BEGIN}")[1:]:
        head, _, rest = part.partition("\n")
        body, mark, _ = rest.partition(f"\n{END}")
        index = whole(head)
        if index is not None and mark:
            yield index, body


def _probe(one: Asked, text: str) -> Probe:
    counted, times = COUNTED.search(text), TIMES.search(text)
    sent, received = (int(counted[1]), int(counted[2])) if counted else (0, 0)
    told = [number(times[index]) for index in (1, 2, 3)] if times else [None, None, None]
    least, usual, most = (None if value is None else round(value * 1000, 3) for value in told)
    router, reason = _reason(text)
    return Probe(*one, sent, min(received, sent), least, usual, most, reason, router)


def _reason(text: str) -> tuple[str, str]:
    """Return which router said why packets did not pass, and what; else what the own kernel said."""
    told = ROUTER.search(text)
    if told:
        return told[1], told[2].strip()
    own = OWN.search(text)
    return "", own[1].strip() if own else ""
