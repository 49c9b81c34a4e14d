"""Light by lane; NAPALM has no word for the module itself."""

from netkit.facts import Absent, Facts
from netkit.facts.optic import Lane, Module
from netkit.platforms.napalm.facts.getter import OPTICS
from netkit.platforms.shown import Shown, named, number, parsed, rows, table, whole

DARK_DBM, NO_LIGHT_DBM = -30.0, -40.0
"""What drivers tell for no light, and what netkit calls it."""
UNTOLD_DBM = 0.0
"""What drivers fill in for light they do not know, as of copper; hardly a reading is as round."""
UNKNOWN = {-1.0, 0.0}
"""What drivers tell for a current they do not know."""


def modules(shown: str, ports: tuple[str, ...]) -> Facts:
    """Return the modules of ports in use that show light."""
    found = {
        port: Module(kind="optic", lanes=lanes)
        for port, one in named(parsed(shown))
        if (port in ports or not ports) and (lanes := _lanes(rows(table(one, "physical_channels").get("channel"))))
    }
    return Facts(modules=found or Absent(f"{OPTICS} shows no light"))


def _lanes(channels: list[Shown]) -> dict[int, Lane]:
    """Return lanes from 1: NAPALM counts them from 0."""
    found = {
        index + 1: Lane(_light(state, "input_power"), _light(state, "output_power"), _current(state))
        for channel in channels
        if (index := whole(channel.get("index"))) is not None and (state := table(channel, "state"))
    }
    return {number: lane for number, lane in sorted(found.items()) if lane != Lane()}


def _light(state: Shown, key: str) -> float | None:
    told = number(table(state, key).get("instant"))
    if told is None or told == UNTOLD_DBM:
        return None
    return NO_LIGHT_DBM if told <= DARK_DBM else told


def _current(state: Shown) -> float | None:
    told = number(table(state, "laser_bias_current").get("instant"))
    return None if told in UNKNOWN else told
