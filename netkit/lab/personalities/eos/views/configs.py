"""Configuration as text, sessions and checkpoints."""

import time

from netkit.lab.personalities.eos import pipes
from netkit.lab.personalities.eos.configuration import as_commands, body
from netkit.lab.personalities.eos.machine import HIGHEST_OPEN, HIGHEST_SAVED, ConfigSession
from netkit.lab.personalities.eos.patterns import Captured
from netkit.lab.personalities.eos.reply import Data, Reply
from netkit.lab.personalities.eos.views.lens import Lens

TIMER_AT_TOP = (4, 32)
"""From this release a session reads completed at once, and the timer stands beside the sessions."""


def running(lens: Lens, _: Captured) -> Reply:
    """Show the running configuration."""
    switch = lens.machine.switch
    head = f"! Command: show running-config\n! device: {switch.name} ({switch.model.name}, EOS-{switch.version})\n!\n"
    header = [line.removeprefix("! ") for line in head.splitlines()[:2]]
    return Reply({"cmds": as_commands(lens.config), "header": header}, head + body(lens.config))


def running_section(lens: Lens, captured: Captured) -> Reply:
    """Show the sections that match."""
    return pipes.through(Reply(None, body(lens.config)), [f"section {captured['rest']}"])


def startup(lens: Lens, _: Captured) -> Reply:
    """Show the startup configuration."""
    text = lens.machine.flash.startup
    data = {"cmds": as_commands(lens.machine.parse(text)), "header": ["Command: show startup-config"]}
    return Reply(data, f"! Command: show startup-config\n{text}")


def sessions(lens: Lens, _: Captured) -> Reply:
    """Show the sessions, and the commit that waits for its confirmation."""
    machine, timer = lens.machine, lens.machine.timer
    is_at_top = machine.release >= TIMER_AT_TOP
    data: dict[str, object] = {
        "sessions": {name: _session(lens, session, is_at_top=is_at_top) for name, session in machine.sessions.items()},
        "maxSavedSessions": HIGHEST_SAVED,
        "maxOpenSessions": HIGHEST_OPEN,
        "mergeOnCommit": False,
        "saveToStartupConfigOnCommit": False,
    }
    if timer and is_at_top:
        data |= {"commitTimerSessionName": timer.session, "commitTimerExpireTime": timer.ends_s}
    rows = [f"  {name:24} {session.state:20} {session.user}" for name, session in machine.sessions.items()]
    text = (
        f"Maximum number of completed sessions: {HIGHEST_SAVED}\nMaximum number of pending sessions: {HIGHEST_OPEN}\n"
    )
    return Reply(data, text + "\n".join(("", "  Name                     State                User", *rows, "")))


def _session(lens: Lens, session: ConfigSession, *, is_at_top: bool) -> Data:
    timer = lens.machine.timer
    is_waiting = session.state == "pendingCommitTimer"
    return {
        "state": "completed" if is_waiting and is_at_top else session.state,
        "completedTime": session.completed_s,
        "commitBy": timer.ends_s if timer and is_waiting and not is_at_top else 0.0,
        "commitUser": session.user,
        "description": session.description,
        "instances": {},
    }


def checkpoints(lens: Lens, _: Captured) -> Reply:
    """Show the checkpoints. Their JSON is not known from a switch; the text is."""
    found = lens.machine.flash.checkpoints()
    rows = [f"{name:32} {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(made_s))}" for name, made_s in found]
    data = {"checkpoints": {name: {"fileDate": made_s, "fileUser": ""} for name, made_s in found}}
    return Reply(data, "\n".join((f"{'Filename':32} Date", *rows, "")))


VIEWS = (
    ("show running-config", running),
    ("show running-config all", running),
    ("show running-config sanitized", running),
    ("show running-config all sanitized", running),
    ("show running-config section <rest…>", running_section),
    ("show startup-config", startup),
    ("show configuration sessions", sessions),
    ("show configuration sessions detail", sessions),
    ("show configuration checkpoints", checkpoints),
)
