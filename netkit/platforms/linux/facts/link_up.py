"""How long links took to come up, as the firmware of NICs counts it: the link-up page of its register PDDR."""

import re
from collections.abc import Mapping

from netkit.platforms.linux.facts.reading import plain, sections

FIELD = re.compile(r"^\s*time_to_link_up\s*\|\s*0x([0-9a-fA-F]{1,8})\s*$", re.MULTILINE)
MS_PER_S = 1000


def times_s(text: str) -> Mapping[str, float]:
    """Return the time of each NIC whose link is up; the firmware writes 0 until it is."""
    found = {name: FIELD.search(plain(shown)) for name, shown in sections(text).items()}
    told = {name: int(match[1], 16) for name, match in found.items() if match}
    return {name: time_ms / MS_PER_S for name, time_ms in told.items() if time_ms}
