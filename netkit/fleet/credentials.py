"""What one machine of a fleet holds: its signing key, its certificate, and its password at the broker."""

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from netkit.access import secrets
from netkit.errors import AccessError, Problem
from netkit.fleet.settings import BrokerSettings, FleetError
from netkit.fleet.signing import public_text, read_key

SIGNING_KEY = "signing.key"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The keys of the coordinator, or of a worker of a site."""

    signing: Ed25519PrivateKey
    authority: Path
    certificate: Path
    key: Path
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.certificate})"

    @classmethod
    def load(cls, folder: Path, broker: BrokerSettings) -> "Credentials":
        """Read the files of a machine; FleetError if one is missing or can be read by others."""
        authority, certificate, key = files = tuple(
            folder / name for name in (broker.authority, broker.certificate, broker.key)
        )
        for file in files:
            if not file.is_file():
                raise FleetError(Problem("is missing", "copy it from what `netkit fleet init` wrote", file=str(file)))
        try:
            password = secrets.read(broker.password, "the password of the broker", "broker")
        except AccessError as error:
            remedy = "load the file `environment` of `netkit fleet init`, or set `password` in fleet.yaml"
            raise FleetError(Problem(error.problems[0].message, remedy)) from None
        return cls(read_key(folder / SIGNING_KEY), authority, certificate, key, password)

    def expect(self, keys: tuple[str, ...], what: str) -> None:
        """FleetError if the public half of the signing key is not one of these."""
        if public_text(self.signing) not in keys:
            problem = f"{SIGNING_KEY} is not a key of {what}"
            raise FleetError(Problem(problem, f"add {public_text(self.signing)} to its keys in fleet.yaml"))
