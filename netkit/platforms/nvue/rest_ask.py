"""Commands of the command line, asked over REST: `nv show` is a GET of the same object."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from netkit.errors import AccessError, DeviceError, NetkitError
from netkit.platforms.nvue.facts.route import IN_NVUE
from netkit.platforms.nvue.rest_line import FaultError, LateError, RestLine
from netkit.platforms.view import ENDLESS, EXITED, Reply

SHOW = re.compile(r"nv show (?P<path>[^-]\S*(?: [^-]\S*)*?)(?P<options>(?: --\S+)*) -o json")
ASPECT = re.compile(r"interface (lldp|qos-[a-z-]+)")
INCLUDE = "include="
SHARE = 3
"""One command may take this part of the time a request has, so that the others are not waited for in vain."""
LEAST_S = 2.0
REFUSED = f"{EXITED} 1: "
"""As `nv show` ends over what the switch does not have or cannot tell: it may be asked in another way then."""


def ask(line: RestLine, commands: Sequence[str], is_wanted: Callable[[], bool]) -> tuple[Reply, ...]:
    """Return the answer to each command, in order. AccessError only when the connection is gone from the start.

    A request that took too long ends its connection; the others have a fresh one as long as one is wanted at all.
    """
    if commands and not line.is_alive:
        raise line.error("the connection is lost", "try again")
    limit_s = max(LEAST_S, line.target.timeout_s / SHARE)
    replies: list[Reply] = []
    for command in commands:
        if not line.is_alive and not (is_wanted() and _is_open_again(line)):
            replies += [Reply("", "not answered: the connection is lost")] * (len(commands) - len(replies))
            break
        replies.append(_answer(line, command, limit_s))
    if not line.is_alive and any(reply.failure == ENDLESS for reply in replies) and is_wanted():
        _is_open_again(line)  # what took too long may be asked in another way
    return tuple(replies)


def _is_open_again(line: RestLine) -> bool:
    """Connect once more; false when that cannot be."""
    try:
        line.open()
    except AccessError:
        return False
    return True


def _answer(line: RestLine, command: str, limit_s: float) -> Reply:
    place, query = request(IN_NVUE.get(command, command))
    if not place:
        return Reply("", "REST has no command line: use the transport ssh")
    try:
        found = line.ask("GET", place, query, timeout_s=limit_s)
    except LateError:
        return Reply("", ENDLESS)
    except (DeviceError, FaultError) as error:
        return Reply("", f"{REFUSED}{_said(line, error)}")
    except AccessError as error:
        return Reply("", _said(line, error))
    if found is None:
        return Reply("", f"{REFUSED}the item does not exist")
    return Reply(json.dumps(found), at_s=time.time())


def _said(line: RestLine, error: NetkitError) -> str:
    return error.problems[0].message.removeprefix(f"{line.target.device}: ")


def request(command: str) -> tuple[str, Mapping[str, str]]:
    """Return the place and the query that `nv show` stands for; no place for other commands."""
    found = SHOW.fullmatch(command)
    if found is None:
        return "", {}
    aspect = ASPECT.fullmatch(found["path"])
    path = "interface" if aspect else found["path"]
    given = [_parameter(option.removeprefix("--")) for option in found["options"].split()]
    query = {"view": aspect[1]} if aspect else {}
    return "/" + "/".join(quote(word, safe="") for word in path.split()), query | dict(given)


def _parameter(option: str) -> tuple[str, str]:
    """Return what an option of the command line is in a query: a view that includes parts is one of its own there."""
    name, _, value = option.replace('"', "").partition("=")
    is_part = name == "view" and value.startswith(INCLUDE)
    return ("include", value.removeprefix(INCLUDE)) if is_part else (name if value else "rev", value or name)
