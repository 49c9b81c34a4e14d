"""Commands and their options. Each runs in its own module, imported on demand, so that `--help` stays fast."""

import copy
import errno
import gc
import io
import os
import select
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from netkit import __version__
from netkit.cli.defect import report_threads
from netkit.cli.verbs import acceptance, change, fleet, intent, lab, silence, state, truth
from netkit.cli.verbs.serve import mcp, serve
from netkit.cli.verbs.state import diagnose
from netkit.errors import NetkitError
from netkit.report.annotation import annotate
from netkit.terminal.ctrl_c import INTERRUPTED
from netkit.terminal.output import say

app = typer.Typer(
    name="netkit",
    help="Network fabric automation for GPU clusters: one intent file to every switch and host configuration.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

USAGE_ERROR = 3
UNREAD = 128 + signal.SIGPIPE
"""The code a shell reports for SIGPIPE: not a verdict, since the output was not read."""
LAST_STREAM = 2
ALONE = ("--lab", "--resume", "--store")
"""Options that may be given without a value."""
RENAMED = {"--name": "--lab NAME", "-f": "--fabric DIR"}
"""Removed spellings, and their replacements."""
OUTPUT_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EROFS, errno.EAGAIN)
"""Errors of writing to standard output; those of files carry a file name."""
USAGE_FAULTS: type[Exception] = typer.BadParameter.__mro__[2]
"""The base class of usage errors in the command line library; its module depends on the version."""


VERBS = (
    *(intent.init, intent.adopt, intent.validate, intent.schema, intent.design, intent.plan_capacity, intent.render),
    *(change.plan, change.approve, change.deploy, change.rollback, change.history),
    *(state.check, state.watch, state.report, state.snapshot, state.backup, state.schedule, state.notify),
    *(serve, mcp, fleet.worker, change.trust, change.inventory, intent.platforms),
    *(intent.leave, intent.own),
)
"""In the order a newcomer meets them."""
for verb in VERBS:
    app.command()(verb)
GROUPS = {
    "silence": silence.verbs,
    "acceptance": acceptance.verbs,
    "lab": lab.verbs,
    "fleet": fleet.verbs,
    "truth": truth.verbs,
    "model": intent.models,
}
for name, group in GROUPS.items():
    app.add_typer(group, name=name, short_help=group.info.help)
app.command()(diagnose)


@app.command()
def version() -> None:
    """Print netkit's version."""
    sys.stdout.write(f"netkit {__version__}\n")


for command in (*app.registered_commands, *(one for group in GROUPS.values() for one in group.registered_commands)):
    command.short_help = command.callback.__doc__ if command.callback else None  # given, so that it is not cut


def _version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
def _everywhere(
    shows_version: Annotated[
        bool, typer.Option("--version", help="Print netkit's version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    del shows_version


def main() -> None:
    """Run the command line; every failure ends with a few plain lines and an exit code."""
    _open_streams()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would hide the exit codes of hooks and ssh-keygen
    report_threads()
    gc.disable()  # a fabric is built once and kept: collections would only cost time
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal lacks become question marks
    sys.exit(_guarded(sys.argv[1:]))


@cache
def command_of(verb: str) -> Any:
    """The command with one verb, or with all for any other word; to build all takes most of the start."""
    part = copy.copy(app)
    part.registered_commands = [one for one in app.registered_commands if one.callback and _name(one.callback) == verb]
    part.registered_groups = [one for one in app.registered_groups if one.name == verb]
    return typer.main.get_command(part if part.registered_commands or part.registered_groups else app)


def _name(verb: Callable[..., Any]) -> str:
    return verb.__name__.replace("_", "-")


def _open_streams() -> None:
    """Open /dev/null for closed standard streams, as cron may leave them, so that no file gets their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= LAST_STREAM:
        os.set_inheritable(number, True)
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (closed by the end of the process)


def _guarded(arguments: list[str]) -> int:
    try:
        words = _spelled_out(arguments) or ["--help"]
        result = _ended(command_of(words[0]), words)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
    except NetkitError as error:
        for problem in error.problems:
            say(sys.stderr, f"error: {problem}\n")
        annotate(error.problems)
        return error.exit_code
    except USAGE_FAULTS as error:
        say(sys.stderr, f"error: {_plain(error)}; see netkit --help\n")
        return USAGE_ERROR
    except (KeyboardInterrupt, typer.Abort):
        say(sys.stderr, "interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        if not (unread := _unread()):
            raise
        for number in unread:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        return UNREAD
    except OSError as error:
        if not error.filename and error.errno not in OUTPUT_FAULTS:
            raise
        reason = (error.strerror or str(error)).lower()
        say(sys.stderr, f"error: {error.filename or 'the output'}: {reason}; make room or check permissions\n")
        return USAGE_ERROR
    if result == INTERRUPTED:  # the library may catch an interrupt first, and ends without a message
        say(sys.stderr, "interrupted\n")
    return result if isinstance(result, int) else 0


def _ended(command: Any, arguments: list[str]) -> Any:
    """Run a verb and return its result; raise BrokenPipeError, which the library turns into a silent exit."""
    try:
        return command.main(arguments, prog_name="netkit", standalone_mode=False)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise


def _unread() -> list[int]:
    """The output streams whose reader has closed, as after `netkit … | head`."""
    streams = select.poll()
    for stream in (sys.stdout, sys.stderr):
        streams.register(stream, 0)
    return [number for number, event in streams.poll(0) if event & (select.POLLERR | select.POLLHUP)]


def _spelled_out(arguments: list[str]) -> list[str]:
    """Adapt arguments for the library: give valueless options a value, and separate a command for a node."""
    if arguments[:1] == ["lab"]:
        return _set_apart(arguments) if arguments[1:2] in (["exec"], ["ssh"]) else arguments
    following = [*arguments, "-"][1:]
    return [
        f"{argument}=." if argument in ALONE and after.startswith("-") else argument
        for argument, after in zip(arguments, following, strict=True)
    ]


def _set_apart(arguments: list[str]) -> list[str]:
    """Insert `--` before the command to run on a node, behind the device and our own options."""
    at, has_device = 2, False
    while at < len(arguments):
        word = arguments[at]
        if word in {"--lab", "--fabric"}:
            at += 2
        elif word.startswith(("--lab=", "--fabric=")) or (word.startswith("-") and not has_device):
            at += 1
        elif not has_device:
            has_device, at = True, at + 1
        else:
            break
    is_apart = "--" in arguments[:at] or arguments[at : at + 1] in ([], ["--"])
    is_old = arguments[at : at + 1] and arguments[at] in RENAMED and "--" in arguments
    return arguments if is_apart or is_old else [*arguments[:at], "--", *arguments[at:]]


def _plain(error: Exception) -> str:
    """Format a usage error in one line."""
    if new := RENAMED.get(getattr(error, "option_name", "")):
        return f"{getattr(error, 'option_name', '')} is now {new}"
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    text = text.partition(", unable to parse")[0].replace("Input should be", "it must be")
    return " ".join(text.split()).rstrip(".")
