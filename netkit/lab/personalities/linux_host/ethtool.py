"""`ethtool`: link, pause, FEC, counters and module of a NIC. Interfaces that are no rails go to the real program."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from netkit.lab.personalities.linux_host.machine import Card, Machine
from netkit.lab.personality import Call

BAD_USAGE = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n"
REAL = "/usr/sbin/ethtool"
Verb = Callable[[Machine, Card, Sequence[str], Call], int]


def ethtool(machine: Machine, call: Call) -> int:
    """Answer one command line."""
    words = [word for word in call.arguments if word not in {"-I", "--include-statistics", "-j", "--json"}]
    option, rest = (words[0], words[1:]) if words and words[0].startswith("-") else ("", words)
    card = machine.cards.get(rest[0]) if rest else None
    if card is None:
        done = machine.node.run(REAL, *call.arguments)
        call.out(done.stdout)
        call.err(done.stderr)
        return done.exit_code
    verb = VERBS.get(option)
    if verb is None:
        call.err(BAD_USAGE)
        return 1
    return verb(machine, card, rest[1:], call)


def _pause(_machine: Machine, card: Card, _words: Sequence[str], call: Call) -> int:
    call.out(
        f"Pause parameters for {card.interface}:\nAutonegotiate:\toff\n"
        f"RX:\t\t{_on(card.state.rx_pause)}\nTX:\t\t{_on(card.state.tx_pause)}\n\n"
    )
    return 0


def _set_pause(_machine: Machine, card: Card, words: Sequence[str], call: Call) -> int:
    given = _pairs(words, {"autoneg", "rx", "tx"})
    if given is None:
        call.err(BAD_USAGE)
        return 1
    if given.get("autoneg"):
        call.err("netlink error: Operation not supported\n")
        return 1
    after = replace(
        card.state, rx_pause=given.get("rx", card.state.rx_pause), tx_pause=given.get("tx", card.state.tx_pause)
    )
    if after == card.state:
        call.err("rx unmodified, ignoring\ntx unmodified, ignoring\nno pause parameters changed, aborting\n")
        return 78
    card.state = after
    return 0


def _pairs(words: Sequence[str], keys: set[str]) -> dict[str, bool] | None:
    if not words or len(words) % 2 or not set(words[::2]) <= keys or not set(words[1::2]) <= {"on", "off"}:
        return None
    return {key: value == "on" for key, value in zip(words[::2], words[1::2], strict=True)}


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"


VERBS: Mapping[str, Verb] = {
    "-a": _pause,
    "--show-pause": _pause,
    "-A": _set_pause,
    "--pause": _set_pause,
}
