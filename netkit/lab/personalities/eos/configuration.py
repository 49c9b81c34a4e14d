"""Text to configuration and back: whole files, as `configure replace` and the flash have them."""

import difflib
import re
from collections.abc import Sequence

from netkit.design.fabric import Switch
from netkit.lab.personalities.eos.editor import Editor
from netkit.lab.personalities.eos.grammar import Grammar, load
from netkit.lab.personalities.eos.reply import CommandError
from netkit.lab.personalities.eos.tree import Section

# The queues of older Tomahawks and of Jericho are named otherwise.
OLD_QUEUES = ("Tomahawk", "Tomahawk 2", "Jericho", "Jericho 2", "Jericho 3")


def release_of(version: str) -> tuple[int, ...]:
    """Return a version such as 4.35.1F as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def grammar_of(switch: Switch) -> Grammar:
    """Return the language a switch speaks."""
    keyword = "tx-queue" if switch.model.asic in OLD_QUEUES else "uc-tx-queue"
    return load(keyword, release_of(switch.version))


def parse(text: str, grammar: Grammar, ports: Sequence[str]) -> Section:
    """Return the configuration a file holds; raises CommandError with every line that is not understood."""
    root = Section()
    editor = Editor(grammar, ports, root)
    wrong: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped == "end":
            break
        if stripped == "exit":
            if editor.depth:
                editor.leave()
            continue
        try:
            editor.type(stripped)
        except CommandError as error:
            wrong.append(f"line {number}: {stripped}: {error}")
    if wrong:
        raise CommandError(*wrong)
    return root


def body(config: Section) -> str:
    """Return a configuration as text, without a head."""
    lines = list(config.lines())
    return "\n".join((*lines, "!", "end", "")) if lines else "end\n"


def differences(running: Section, intended: Section, name: str) -> str:
    """Return what a session would change, as `show session-config diffs` prints it."""
    lines = difflib.unified_diff(
        body(running).splitlines(),
        body(intended).splitlines(),
        "system:/running-config",
        f"session:/{name}-session-config",
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines)


def as_commands(config: Section) -> dict[str, object]:
    """Return a configuration as eAPI shows it in JSON."""
    result: dict[str, object] = {}
    for entry in config.sorted():
        line = f"{'no ' if entry.is_negated else ''}{' '.join(entry.words)}"
        nested = {"comments": [], "cmds": as_commands(entry.section)} if entry.section is not None else None
        result[line] = nested
    return result
