"""What buffermgrd makes of the configured buffers, as APPL_DB holds it: it computes a headroom nobody wrote down."""

from collections.abc import Iterator, Mapping

from netkit.lab.personalities.sonic.qos import cable_length_m
from netkit.lab.personalities.sonic.system import System
from netkit.lab.personalities.sonic.tables import parts, text

COMPUTED = "NULL"
Fields = Mapping[str, str]


def buffers(system: System) -> Mapping[str, Fields]:
    """Return the priority groups with their profiles, and the profiles."""
    found: dict[str, Fields] = {}
    for name, row in system.running.get("BUFFER_PROFILE", {}).items():
        found[f"BUFFER_PROFILE_TABLE:{name}"] = {leaf: str(value) for leaf, value in row.items()}
    for key, row in system.running.get("BUFFER_PG", {}).items():
        port, groups = parts(key)
        profiles = dict(_computed(system, port)) if row.get("profile") == COMPUTED else {}
        name = next(iter(profiles), str(row.get("profile", "")))
        if name != COMPUTED:
            found[f"BUFFER_PG_TABLE:{port}:{groups}"] = {"profile": name}
        found |= {f"BUFFER_PROFILE_TABLE:{made}": fields for made, fields in profiles.items()}
    return found


def _computed(system: System, port: str) -> Iterator[tuple[str, Fields]]:
    """Yield the profile for a port's speed and cable; what the maker's table lacks, the lab does not make up."""
    speed, cable_m = int(text(system.running, "PORT", port, "speed", "0")), cable_length_m(system.running, port)
    threshold = text(system.running, "DEFAULT_LOSSLESS_BUFFER_PARAMETER", "AZURE", "default_dynamic_th", "0")
    for row in system.switch.model.headroom_rows:
        if row.speed_gbps * 1000 == speed and row.cable_m == cable_m:
            yield (
                f"pg_lossless_{speed}_{cable_m:g}m_profile",
                {
                    "pool": "ingress_lossless_pool",
                    "size": str(row.size_bytes),
                    "xon": str(row.xon_bytes),
                    "xoff": str(row.xoff_bytes),
                    "dynamic_th": threshold,
                },
            )
            return
