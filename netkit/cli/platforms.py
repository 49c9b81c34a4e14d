"""`netkit platforms`."""

import difflib
import sys
from collections.abc import Iterator
from typing import Any

from netkit.errors import Problem, UsageError
from netkit.platforms import FEATURES, HOSTS, PLATFORMS, Platform
from netkit.platforms.change import Rule
from netkit.platforms.compare import MODELS
from netkit.report.table import columns
from netkit.terminal.text import check_format, write_json

HOSTS_TITLE = "GPU hosts"


def run(name: str, output: str) -> None:
    """Show what each platform can express, or all that is known about one."""
    check_format(output)
    if name and name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, 1)
        remedy = f"did you mean {close[0]}?" if close else f"use one of {', '.join(MODELS)}"
        raise UsageError(Problem(f"no platform {name!r}", remedy))
    if output == "json":
        write_json(_details_entry(name) if name else {one: _entry(PLATFORMS[one]) for one in PLATFORMS})
    elif name:
        sys.stdout.write(_details(name))
    else:
        _table()


def _table() -> None:
    rows = (
        (feature, *(platform.capabilities[feature].how or "–" for platform in PLATFORMS.values()))
        for feature in FEATURES
    )
    sys.stdout.write(columns(rows, ("FEATURE", *PLATFORMS)) + "\n")
    for name, platform in PLATFORMS.items():
        sys.stdout.write(f"{name}: {platform.title}, rendered and checked for {', '.join(platform.tested_versions)}\n")
        for feature in FEATURES:
            note = platform.capabilities[feature].note
            if note:
                sys.stdout.write(f"  {feature}: {note}\n")
    sys.stdout.write(f"\n`netkit platforms NAME` shows what changes cost; NAME may also be {HOSTS}: {HOSTS_TITLE}\n")


def _details(name: str) -> str:
    return "\n".join(_sections(name))


def _sections(name: str) -> Iterator[str]:
    platform = PLATFORMS.get(name)
    if platform is None:
        yield f"{name}: {HOSTS_TITLE}\n"
    else:
        yield f"{name}: {platform.title}, rendered and checked for {', '.join(platform.tested_versions)}\n"
        table = ((feature, platform.capabilities[feature]) for feature in FEATURES)
        yield columns(((feature, one.how or "–", one.note) for feature, one in table), ("FEATURE", "HOW", "NOTE"))
        if platform.ignored:
            yield "Keys of the intent that have no effect, always or on some models and versions:\n"
            yield columns((ignored.key, ignored.note) for ignored in platform.ignored)
    yield "What a change costs beside itself, or why it takes another way:\n"
    yield columns((one.what, one.effect) for one in MODELS[name].constraints)
    yield "What a change puts at risk; the first line that fits holds:\n"
    rows = ((_place(rule), rule.risk.word, rule.note, rule.source) for rule in MODELS[name].risks.rules)
    yield columns(rows, ("WHERE", "RISK", "WHY", "SOURCE"))


def _place(rule: Rule) -> str:
    """Return where a rule holds, and of which changes."""
    return " ".join(rule.path) + ("" if rule.when == "any" else f" ({rule.when})")


def _entry(platform: Platform) -> dict[str, Any]:
    return {
        "title": platform.title,
        "tested_versions": platform.tested_versions,
        "newest_version": platform.newest_version,
        "max_mtu_bytes": platform.max_mtu_bytes,
        "ignored": [{"key": ignored.key, "note": ignored.note} for ignored in platform.ignored],
        "features": {
            feature: {"how": capability.how or None, "note": capability.note or None}
            for feature, capability in platform.capabilities.items()
        },
    }


def _details_entry(name: str) -> dict[str, Any]:
    about = _entry(PLATFORMS[name]) if name in PLATFORMS else {"title": HOSTS_TITLE}
    risks = [
        {"path": rule.path, "when": rule.when, "risk": rule.risk.word, "note": rule.note, "source": rule.source}
        for rule in MODELS[name].risks.rules
    ]
    found = [{"what": one.what, "effect": one.effect} for one in MODELS[name].constraints]
    return {"name": name, **about, "limits": found, "risks": risks}
