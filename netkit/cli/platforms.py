"""`netkit platforms`."""

import sys

from netkit.cli.fabric import check_format
from netkit.cli.text import columns, write_json
from netkit.platforms import FEATURES, PLATFORMS


def run(output: str) -> None:
    """Show what each platform can express."""
    check_format(output)
    if output == "json":
        write_json({name: _entry(name) for name in PLATFORMS})
        return
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


def _entry(name: str) -> dict[str, object]:
    platform = PLATFORMS[name]
    return {
        "title": platform.title,
        "tested_versions": platform.tested_versions,
        "max_mtu_bytes": platform.max_mtu_bytes,
        "features": {
            feature: {"how": capability.how or None, "note": capability.note or None}
            for feature, capability in platform.capabilities.items()
        },
    }
