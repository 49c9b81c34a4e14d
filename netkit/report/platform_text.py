"""What platforms support, as text and as JSON."""

from collections.abc import Iterator
from typing import Any

from netkit.hardware import Catalog
from netkit.platforms import FEATURES, HOSTS, PLATFORMS, Platform
from netkit.platforms.compare import MODELS
from netkit.platforms.ownership import SEPARATOR
from netkit.report.table import columns

HOSTS_TITLE = "GPU hosts"


def platform_table() -> Iterator[str]:
    """Yield what each platform supports."""
    rows = (
        (feature, *(platform.capabilities[feature].how or "–" for platform in PLATFORMS.values()))
        for feature in FEATURES
    )
    yield columns(rows, ("FEATURE", *PLATFORMS)) + "\n"
    for name, platform in PLATFORMS.items():
        yield f"{name}: {platform.title}, rendered and checked for {', '.join(platform.tested_versions)}\n"
        for feature in FEATURES:
            note = platform.capabilities[feature].note
            if note:
                yield f"  {feature}: {note}\n"
    yield f"\n`netkit platforms NAME` prints the risks of changes; NAME may be {HOSTS} for {HOSTS_TITLE}\n"


def platform_sections(name: str) -> Iterator[str]:
    platform = PLATFORMS.get(name)
    if platform is None:
        yield f"{name}: {HOSTS_TITLE}\n"
    else:
        yield f"{name}: {platform.title}, rendered and checked for {', '.join(platform.tested_versions)}\n"
        table = ((feature, platform.capabilities[feature]) for feature in FEATURES)
        yield columns(((feature, one.how or "–", one.note) for feature, one in table), ("FEATURE", "HOW", "NOTE"))
        yield "Switch models, and what netkit asks for before it renders them:\n"
        yield columns(_models(platform))
        if platform.ignored:
            yield "Keys of the intent that have no effect, always or on some models and versions:\n"
            yield columns((ignored.key, ignored.note) for ignored in platform.ignored)
    ownership = MODELS[name].ownership
    kinds = (("owned", ownership.owned), ("claimed", ownership.claimed))
    yield "What netkit owns, and what it claims where a template renders it; it never touches anything else:\n"
    yield columns(((SEPARATOR.join(path), kind) for kind, paths in kinds for path in paths), ("PATH", "KIND"))
    yield "Side effects of a change, or why it is applied differently:\n"
    yield columns((one.what, one.effect) for one in MODELS[name].constraints)
    yield "Risk of a change; the first matching line applies:\n"
    rules = MODELS[name].risks.rules
    places = (" ".join(rule.path) + ("" if rule.when == "any" else f" ({rule.when})") for rule in rules)
    rows = ((place, rule.risk.word, rule.note, rule.source) for place, rule in zip(places, rules, strict=True))
    yield columns(rows, ("WHERE", "RISK", "WHY", "SOURCE"))


def _models(platform: Platform) -> Iterator[tuple[str, str]]:
    catalog = Catalog()
    for model in map(catalog.switch, catalog.names("switches")):
        if platform.name in model.platforms or platform.runs_on_any_model:
            yield model.name, ", ".join(platform.missing_data(model, platform.newest_version))


def platform_entry(platform: Platform) -> dict[str, Any]:
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


def platform_details(name: str) -> dict[str, Any]:
    platform = PLATFORMS.get(name)
    about = {**platform_entry(platform), "models": dict(_models(platform))} if platform else {"title": HOSTS_TITLE}
    risks = [
        {"path": rule.path, "when": rule.when, "risk": rule.risk.word, "note": rule.note, "source": rule.source}
        for rule in MODELS[name].risks.rules
    ]
    found = [{"what": one.what, "effect": one.effect} for one in MODELS[name].constraints]
    ownership = MODELS[name].ownership
    paths = {"owned": ownership.owned, "claimed": ownership.claimed}
    return {"name": name, **about, **paths, "limits": found, "risks": risks}
