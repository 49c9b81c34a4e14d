"""The CLI as a program of the node: `Cli -c COMMANDS`, or typed at a terminal."""

from netkit.lab.personalities.eos.machine import Machine
from netkit.lab.personalities.eos.reply import CommandError
from netkit.lab.personalities.eos.terminal import Terminal
from netkit.lab.personality import Call

USAGE = "usage: Cli [-p PRIVILEGE] [-c COMMANDS]\n"
FLAGS = ("-A", "-M", "-e")


def run(machine: Machine, call: Call) -> int:
    """Answer one start of the CLI."""
    terminal = Terminal(machine, call.user)
    commands: str | None = None
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        if word == "-p" and words and words[0].isdigit():
            terminal.is_privileged = int(words.pop(0)) >= 15 or terminal.is_privileged
        elif word == "-c" and words:
            commands = words.pop(0)
        elif word not in FLAGS:
            call.err(USAGE)
            return 2
    if commands is None:
        return _converse(terminal, call)
    outcomes = [_one(terminal, call, line) for line in commands.splitlines()]
    return 0 if all(outcomes) else 1


def _converse(terminal: Terminal, call: Call) -> int:
    while True:
        line = call.ask(terminal.prompt)
        if not line or line.strip() in {"logout", "quit"} or (line.strip() == "exit" and terminal.typing is None):
            return 0
        _one(terminal, call, line)


def _one(terminal: Terminal, call: Call, line: str) -> bool:
    try:
        call.out(terminal.run(line.strip()).text)
    except CommandError as error:
        call.out("".join(f"% {text}\n" for text in error.errors))
        return False
    return True
