"""Keys and jobs of a made-up fleet."""

import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from netkit.fleet import settings
from netkit.fleet.job import BackupWork, SiteJob, new_job
from netkit.fleet.settings import FleetSettings
from netkit.fleet.signing import public_text

COORDINATOR = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
TOKYO = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)
OSAKA = Ed25519PrivateKey.from_private_bytes(bytes([3]) * 32)
COMMIT = "0123456789abcdef" * 2 + "01234567"
TEXT = f"""\
broker: {{host: localhost}}
repository: {{url: git@git.example.net:net/fabrics.git}}
coordinator: {{keys: ["{public_text(COORDINATOR)}"]}}
sites:
  tokyo:
    keys: ["{public_text(TOKYO)}"]
    fabrics:
      inventory/tokyo: {{}}
      inventory/large: {{units: [1, 2]}}
  osaka:
    keys: ["{public_text(OSAKA)}"]
    fabrics:
      inventory/large: {{units: [3]}}
"""


def fleet(folder: Path, text: str = TEXT) -> FleetSettings:
    (folder / settings.FILE).write_text(text, encoding="utf-8")
    return settings.load(folder)


def a_job(**changes: Any) -> SiteJob:
    found = new_job("tokyo", "inventory/tokyo", COMMIT, BackupWork(), within_s=600, devices=("leaf01", "leaf02"))
    return SiteJob.model_validate({**found.model_dump(), **changes}, strict=False)


def now_s() -> float:
    return time.time()
