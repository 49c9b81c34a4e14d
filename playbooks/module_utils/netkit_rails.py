"""What is wrong with the rails of a GPU host: links, addresses, and every route by asking the kernel for it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DARK = Path("/etc/netkit/change/dark")
FAILED = re.compile(r"^Command failed .*:(\d+)$", re.MULTILINE)


def settled(rails: list[dict[str, Any]], settle_s: float, *, tolerate_dark: bool) -> tuple[list[str], list[str]]:
    """Look until all is right, or for as long as it may take; return problems and rails that were not looked at."""
    dark = set(DARK.read_text(encoding="utf-8").split()) if tolerate_dark and DARK.exists() else set()
    deadline = time.monotonic() + settle_s
    problems, dark_rails = look(rails, dark)
    while problems and time.monotonic() < deadline:
        time.sleep(0.5)
        problems, dark_rails = look(rails, dark)
    return problems, dark_rails


def look(rails: list[dict[str, Any]], dark: set[str]) -> tuple[list[str], list[str]]:
    """What is wrong, and the rails that were not looked at."""
    links = {link["ifname"]: link for link in printed(["ip", "-j", "address", "show"])}
    problems: list[str] = []
    skipped, live = [], []
    for rail in rails:
        link = links.get(rail["interface"])
        if link is not None and rail["interface"] in dark and "LOWER_UP" not in link["flags"]:
            skipped.append(rail["interface"])
            continue
        found = list(link_problems(rail, link))
        problems += found
        if not found:
            live.append(rail)
    return problems + route_problems(live), skipped


def printed(command: list[str]) -> list[dict[str, Any]]:
    """What a command prints as JSON; nothing when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
    return list(json.loads(done.stdout or "[]")) if done.returncode == 0 else []


def link_problems(rail: dict[str, Any], link: dict[str, Any] | None) -> Iterator[str]:
    """Yield what is wrong with a link and its address."""
    name = rail["interface"]
    if link is None:
        yield f"{name}: there is no such interface; its name changes with the next boot or driver reload"
    elif "UP" not in link["flags"]:
        yield f"{name}: is down"
    elif "LOWER_UP" not in link["flags"]:
        yield f"{name}: has no carrier; look at its leaf and its cable"
    else:
        if link["mtu"] != rail["mtu_bytes"]:
            yield f"{name}: MTU {link['mtu']}, should be {rail['mtu_bytes']}"
        have = [f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"] if one["family"] == "inet"]
        if have != [rail["address"]]:
            yield f"{name}: addresses {', '.join(have) or 'none'}, should be {rail['address']}"


def route_problems(rails: list[dict[str, Any]]) -> list[str]:
    """What is wrong with what the kernel would do: all lookups of all rails in one go."""
    asked = [question for rail in rails for lookup in rail["lookups"] for question in questions(rail, lookup)]
    lines = "".join(f"route get {words}\n" for words, _, _ in asked)
    done = subprocess.run(
        ["ip", "-force", "-j", "-4", "-batch", "-"],  # noqa: S607
        input=lines.encode(),
        capture_output=True,
        check=False,
    )
    refused = {int(number) for number in FAILED.findall(done.stderr.decode("utf-8", "replace"))}
    answers = documents(done.stdout.decode("utf-8", "replace"))
    problems = []
    for number, (words, via, rail) in enumerate(asked, 1):
        wrong = judged(None if number in refused else next(answers, None), via, rail)
        if wrong:
            problems.append(f"{rail}: the way to {words} {wrong}")
    return problems


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield the answers of a batch, which prints one JSON list after the other."""
    decoder, rest = json.JSONDecoder(), text.lstrip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document[0]
        rest = rest[end:].lstrip()


def questions(rail: dict[str, Any], lookup: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what to ask about a destination: the words, the gateway the answer must have, and the rail."""
    source, interface = rail["address"].partition("/")[0], rail["interface"]
    to, via = lookup["to"], lookup["via"]
    if not via:
        # What is bound to the interface alone cannot be refused: Linux takes it for on-link.
        yield f"{to} from {source}", "", interface
        return
    yield f"{to} from {source} oif {interface}", via, interface
    yield f"{to} oif {interface}", via, interface
    if lookup["unbound"]:
        yield to, via, interface


def judged(answer: dict[str, Any] | None, via: str, rail: str) -> str:
    """What is wrong with an answer; nothing when it is right."""
    if answer is None:
        return f"is refused, should be via {via} on {rail}" if via else ""
    have = f"via {answer.get('gateway', 'no gateway')} on {answer.get('dev')}"
    if not via:
        return f"is {have}, should be refused"
    is_right = (answer.get("gateway"), answer.get("dev")) == (via, rail)
    return "" if is_right else f"is {have}, should be via {via} on {rail}"
