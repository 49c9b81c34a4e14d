"""The one loop of the traffic process: commands, packets that arrive, packets that are due.

It ends when the pipe its commands come from does, so that no traffic outlives the lab. A signal on the parent's death
would not do: it comes when the thread that started the process ends.
"""

import math
import os
import select
import time

from pydantic import ValidationError

from netkit.lab.traffic.command import COMMANDS, REPLIES, Attach, Configure, Detach, Reply, Report, Start, Stop
from netkit.lab.traffic.engine import Engine, RefusedError

_TICK_S = 0.01
"""Packets due within a tick go together: waking for each would cost more than sending it."""


def serve(commands: int, replies: int) -> None:
    """Serve until the commands end."""
    poll, text = select.epoll(), b""
    engine = Engine(poll)
    poll.register(commands, select.EPOLLIN)
    try:
        while True:
            for descriptor, _ in poll.poll(_wait_s(engine.due_s)):
                if descriptor != commands:
                    engine.receive(descriptor, time.monotonic())
                    continue
                chunk = os.read(commands, 1 << 20)
                if not chunk:
                    return
                *lines, text = (text + chunk).split(b"\n")
                for line in lines:
                    _reply(replies, _obey(engine, line))
            engine.send_due(time.monotonic())
    except BrokenPipeError:
        return
    finally:
        engine.close()
        poll.close()


def _wait_s(due_s: float | None) -> float | None:
    if due_s is None:
        return None
    tick_s = math.ceil(due_s / _TICK_S) * _TICK_S
    return max(0.0, tick_s - time.monotonic())


def _obey(engine: Engine, line: bytes) -> Reply:
    try:
        return _do(engine, line)
    except RefusedError as error:
        return Reply(error=str(error))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return Reply(error=f"{place}: {first['msg']}")


def _do(engine: Engine, line: bytes) -> Reply:
    match COMMANDS.validate_json(line):
        case Attach(host=host, namespace=namespace, nics=nics):
            engine.attach(host, namespace, nics)
        case Detach(host=host):
            engine.detach(host)
        case Configure(nic=nic, config=config):
            engine.configure(nic, config)
        case Start(flows=flows):
            engine.start(flows, time.monotonic())
        case Stop(names=names):
            engine.stop(names or engine.names())
        case Report(host=host, has_flows=has_flows):
            return Reply(nics=engine.nic_reports(host), flows=engine.flow_reports() if has_flows else ())
    return Reply()


def _reply(descriptor: int, reply: Reply) -> None:
    left = REPLIES.dump_json(reply) + b"\n"
    while left:
        left = left[os.write(descriptor, left) :]
