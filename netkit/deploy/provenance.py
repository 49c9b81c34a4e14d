"""The starts of a run: who started or resumed it, from which commit, and why. Kept with the run."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Approval:
    """A second person's approval of a plan, verified."""

    approver: str
    """The principal in allowed_signers."""
    at_s: float
    expires_s: float
    id: str
    """Identifies this approval, which one run may use."""
    key: str
    """Fingerprint of the signing key."""
    text: str
    """The whole file, signature included."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """One start of a run: the deploy or rollback itself, or a resume."""

    verb: str
    at_s: float
    user: str
    """Login name of the account."""
    uid: int
    host: str
    sudo_user: str = ""
    """The user who switched to that account with sudo, by sudo's environment."""
    commit: str = ""
    """The commit checked out around the fabric's folder; empty outside a git repository."""
    is_dirty: bool = False
    """Whether files of the fabric differ from that commit."""
    reason: str = ""
    undone: str = ""
    """The run that a rollback undoes."""
    hook: str = ""
    """`allowed` or `skipped`; empty when there is no hook."""
    hook_reason: str = ""
    approval: Approval | None = None
    signer: str = ""
    """The principal the deployer proved to be with a key of their own."""
    signature: str = ""
    job: str = ""
    """The job of a fleet that started the run at its site."""
    asked_by: str = ""
    """Who gave that job, as the coordinator says."""

    @property
    def who(self) -> str:
        account = f"{self.sudo_user} as {self.user}@{self.host}" if self.sudo_user else f"{self.user}@{self.host}"
        return f"{self.asked_by} through {account}" if self.asked_by else account

    @property
    def what(self) -> str:
        """The verb, with the run it concerns."""
        return f"{self.verb} of {self.undone}" if self.undone else self.verb

    def plain(self) -> dict[str, Any]:
        return asdict(self)
