"""Before the first write: the provenance of a run, the hook of deploy.yaml, and a second person's approval."""

import os
import pwd
import re
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netkit.access import settings as access
from netkit.access.secrets import SecretStore
from netkit.deploy import Journal, Options, Provenance, approval, history, hook, policy
from netkit.deploy.approval import AGAIN, DEPLOYER_NAMESPACE, SUFFIX, Deployer, Signer
from netkit.deploy.hook import HookError
from netkit.deploy.journal import refuse_used
from netkit.deploy.policy import ApprovalSettings, DeployPolicy, Verb
from netkit.errors import AccessError, PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.plan.model import approval as digest_of
from netkit.project.project import MODELS, PLAYBOOKS, TEMPLATES, Project, beside
from netkit.project.revision import checked_out, configured
from netkit.project.runs import runs_folder
from netkit.report.plan_view import listed, shown

EARLY_S, LATEST_S = 60, 24 * 3600
"""How far the clock of a deployer may be ahead, and how long their job may wait for a worker."""
DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Requester:
    """The person who requested the job of a worker, as named by the coordinator."""

    job: str
    """Identifies the job."""
    who: str
    """Account and host, as people read it."""
    names: tuple[str, ...]
    """Login names and address."""
    approval: str | None = None
    """What `netkit approve` wrote."""
    signature: str = ""
    """What they signed with `--key`, and the signature."""


@dataclass(frozen=True, slots=True)
class Control:
    """The rules of deploy.yaml, applied to one command."""

    project: Project
    policy: DeployPolicy
    reason: str = ""
    skip_hook: str | None = None
    """The reason for skipping the hook; None when it is asked."""
    plan_file: Path | None = None
    approval_file: Path | None = None
    key: Path | None = None
    requester: Requester | None = None
    """None: the user of this process."""

    @classmethod
    def of(cls, project: Project, reason: str = "", skip_hook: str | None = None, **options: Any) -> "Control":
        """Read deploy.yaml; it applies to a lab only with `on_lab`."""
        found = policy.load(project.folder)
        return cls(project, found if found.on_lab or not project.lab else DeployPolicy(), reason, skip_hook, **options)

    def begun(self, verb: Verb, plan: Plan, undone: str = "") -> Provenance:
        """Record who starts a run, from which commit, why, and who approved it; refuse what deploy.yaml forbids."""
        if self.policy.fleet == "required" and self.requester is None:
            remedy = f"netkit {verb} --fleet DIR"
            raise UsageError(Problem("deploy.yaml allows changes only by the workers of the sites", remedy))
        if self.policy.reason == "required" and verb != "resume" and not self.reason:
            raise UsageError(
                Problem("deploy.yaml requires a reason", "give the reason or the ticket with --reason TEXT")
            )
        settings = self.policy.hook
        if self.skip_hook is not None and settings is not None and verb not in settings.may_skip:
            remedy = f"hook.may_skip of deploy.yaml lists {', '.join(settings.may_skip) or 'no verb'}"
            raise UsageError(Problem(f"a {verb} must not skip the hook", remedy))
        folder = self.project.folder
        names = (MODELS, TEMPLATES, PLAYBOOKS)
        commit, is_dirty = checked_out(folder, [place for name in names for place in beside(folder, name)])
        found = Provenance(
            verb,
            time.time(),
            login(),
            os.getuid(),
            socket.gethostname(),
            sudo_user=_sudo_user(),
            commit=commit,
            is_dirty=is_dirty,
            reason=self.reason,
            undone=undone,
            job=self.requester.job if self.requester else "",
            asked_by=self.requester.who if self.requester else "",
        )
        return self._approved(found, plan) if verb == "deploy" else found

    def _approved(self, begun: Provenance, plan: Plan) -> Provenance:
        """Add the approval of the plan; raise PlanError if one is required and missing."""
        settings = self.policy.approval or ApprovalSettings(required="never")
        text = self.requester.approval if self.requester else given_approval(self.plan_file, self.approval_file)
        if text is None and settings.is_required(plan):
            what = f"deploy.yaml requires a second person's approval of plan {digest_of(plan)}, risk {plan.risk.word}"
            remedy = "save it with netkit plan -o PLAN, have it approved with netkit approve PLAN, deploy PLAN"
            raise PlanError(Problem(what, remedy))
        signed = self.requester.signature if self.requester else ""
        if self.key is not None:
            signed = deployer_signature(plan, self.project.lab, self.key, begun.at_s)
        if text is not None and not signed and settings.deployer == "key":
            raise UsageError(Problem("deploy.yaml requires the deployer's key", "sign as yourself with --key FILE"))
        signers = signers_file(self.project, settings)
        signer: Signer | None = None
        if signed:
            signer = self._signer(plan, signed, signers)
            begun = replace(begun, signature=signed, signer=signer.principals[0])
        if text is None:
            return begun
        asking = self.requester.names if self.requester else ()
        accounts = [name for name in (begun.user, begun.sudo_user, *asking) if name]
        aliases = [alias for name in accounts for alias in settings.logins.get(name, ())]
        email = configured(self.project.folder, "user.email")
        deployer = Deployer(frozenset({*accounts, *aliases, email} - {""}), signer)
        given = approval.verified(
            text,
            plan,
            self.project.lab,
            settings=settings,
            signers=signers,
            deployer=deployer,
            now_s=time.time(),
        )
        refuse_used(runs_folder(self.project.fabric.name, self.project.lab), given)
        return replace(begun, approval=given)

    def _signer(self, plan: Plan, signed: str, signers: Path) -> Signer:
        """Who signed this deploy; raise DeployError if the signature is of another one, or not valid."""
        line, end, signature = signed.partition("\n")
        lab = "" if self.requester else self.project.lab  # a coordinator knows no lab
        head, _, at = line.rpartition(" ")
        is_now = at.isdecimal() and -EARLY_S < time.time() - int(at) < LATEST_S
        if f"{head} " != _to_sign(plan, lab) or not is_now:
            raise PlanError(
                Problem("the deployer has signed another deploy, or too long ago", "deploy again with --key")
            )
        what = "the deployer's signature" if self.key is None else f"--key {self.key}"
        name = None if self.key is None else approval.principal_of(self.key, signers)
        return approval.signer_of(line + end, signature, signers, name, DEPLOYER_NAMESPACE, what)

    def permitted(self, begun: Provenance, plan: Plan, run: str, options: Options) -> Provenance:
        """Ask the hook, if there is one; raise HookError if it refuses."""
        begun, settings = replace(begun, at_s=time.time()), self.policy.hook
        if begun.approval is not None and begun.at_s >= begun.approval.expires_s:
            raise PlanError(Problem("the approval has expired meanwhile", AGAIN))
        if settings is None:
            return begun
        if self.skip_hook is not None:
            self.project.feedback.note("the hook was not asked")
            return replace(begun, hook="skipped", hook_reason=self.skip_hook.strip())
        folder = self.project.folder
        try:
            token = SecretStore(access.load(folder).secrets)(settings.token_secret) if settings.token_secret else ""
        except AccessError as error:
            raise HookError(error.problems) from None
        reason = hook.ask(settings, hook.question(plan, self.project.lab, run, begun, options), folder, token)
        self.project.feedback.note(f"the hook allows it{': ' if reason else ''}{shown(reason)}")
        return replace(begun, hook="allowed", hook_reason=reason)


def given_approval(plan_file: Path | None, approval_file: Path | None) -> str | None:
    """The text of an approval: of the given file, or of the one beside the plan if there is one."""
    beside_plan = plan_file and plan_file.with_name(plan_file.name + SUFFIX)
    file = approval_file or (beside_plan if beside_plan and beside_plan.exists() else None)
    return None if file is None else approval.read(file)


def signers_file(project: Project, settings: ApprovalSettings) -> Path:
    """The allowed_signers file whose keys may approve."""
    return project.folder / Path(settings.allowed_signers).expanduser()


def login() -> str:
    """The login name of this account, or its number if it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def who() -> str:
    """Format this user as the history of deploys shows them."""
    return Provenance("", time.time(), login(), os.getuid(), socket.gethostname(), sudo_user=_sudo_user()).who


def names_of_user(project: Project) -> tuple[str, ...]:
    """The names of this user in approvals: no one may approve their own deploy."""
    return tuple(name for name in (login(), _sudo_user(), configured(project.folder, "user.email")) if name)


def _sudo_user() -> str:
    return os.environ.get("SUDO_USER", "") if os.getuid() == 0 else ""


def given_digest(approved: str) -> str:
    """Validate --approved; an empty value, as from an unset variable, approves nothing."""
    digest = approved.strip().lower()
    if DIGEST.fullmatch(digest):
        return digest
    what = f"{approved!r} is not the digest of a plan" if digest else "it is empty"
    remedy = "give the 32 digits that netkit plan --against running prints"
    raise UsageError(Problem(f"--approved: {what}", remedy))


def finished(plan: Plan, runs: Path, approved: str) -> str:
    """Name the run that already deployed the whole approved plan, if nothing is left to do; this is not an error."""
    if plan.changed or not plan.is_complete:
        return ""
    for summary in history(runs):
        if summary.outcome is not None and summary.outcome.exit_code == 0:
            orders = Journal(runs / summary.run).orders()
            if orders.options.limit is None and digest_of(orders.plan) == approved:
                return f"deployed by run {summary.run}"
    return ""


def refuse_unapproved(plan: Plan, approved: str) -> None:
    """Raise PlanError if this is not the approved plan."""
    if plan.unreachable:
        missed = listed([one.name for one in plan.unreachable])
        raise AccessError(Problem(f"{missed}: could not be read, so this is not the approved plan", "try again"))
    refuse_other_plan(plan, approved)


def deployer_signature(plan: Plan, lab: str, key: Path, at_s: float) -> str:
    """Sign a deploy; return what was signed, a line, and the signature."""
    signed = f"{_to_sign(plan, lab)}{at_s:.0f}\n"
    return signed + approval.sign(signed, key, DEPLOYER_NAMESPACE)


def _to_sign(plan: Plan, lab: str) -> str:
    return f"deploy {plan.fabric} {lab} {digest_of(plan)} "


def refuse_other_plan(plan: Plan, approved: str) -> None:
    """Raise PlanError if a plan has another digest than the approved one."""
    found = digest_of(plan)
    if found != approved:
        what = f"the approved plan is {approved}, the plan now is {found}"
        remedy = "intent or devices have changed since: see netkit plan --against running, and have it approved again"
        raise PlanError(Problem(what, remedy))
