"""Before the first write: who starts a run and why, the hook of deploy.yaml, and a second person's approval."""

import os
import pwd
import re
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path

from netkit.access import settings as access
from netkit.access.secrets import SecretStore
from netkit.deploy import Journal, Options, Provenance, approval, history, hook, policy
from netkit.deploy.approval import AGAIN, DEPLOYER_NAMESPACE, SUFFIX, Deployer, Signer
from netkit.deploy.hook import HookError
from netkit.deploy.journal import refuse_used
from netkit.deploy.policy import ApprovalSettings, DeployPolicy, Verb
from netkit.errors import AccessError, PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.plan.intent_diff import approval as digest_of
from netkit.project.project import MODELS, PLAYBOOKS, TEMPLATES, Project, beside
from netkit.project.revision import checked_out, configured
from netkit.project.runs import runs_folder
from netkit.report.plan_view import listed, shown

DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Control:
    """What deploy.yaml asks for, for one command."""

    project: Project
    policy: DeployPolicy
    reason: str = ""
    skip_hook: str | None = None
    """Why the hook is not asked; None when it is."""
    plan_file: Path | None = None
    approval_file: Path | None = None
    key: Path | None = None

    @classmethod
    def of(cls, project: Project, reason: str = "", skip_hook: str | None = None, **files: Path | None) -> "Control":
        """Read deploy.yaml; of a lab it holds only when it says so."""
        found = policy.load(project.folder)
        return cls(project, found if found.on_lab or not project.lab else DeployPolicy(), reason, skip_hook, **files)

    def begun(self, verb: Verb, plan: Plan, undone: str = "") -> Provenance:
        """Return who starts a run, from what and why, and who approved it; an error where something is missing."""
        if self.policy.reason == "required" and verb != "resume" and not self.reason:
            raise UsageError(
                Problem("deploy.yaml requires a reason", "say why, or name the ticket, with --reason TEXT")
            )
        asked = self.policy.hook
        if self.skip_hook is not None and asked is not None and verb not in asked.may_skip:
            remedy = f"hook.may_skip of deploy.yaml lists {', '.join(asked.may_skip) or 'no verb'}"
            raise UsageError(Problem(f"the hook must not be skipped by a {verb}", remedy))
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
        )
        return self._approved(found, plan) if verb == "deploy" else found

    def _approved(self, begun: Provenance, plan: Plan) -> Provenance:
        """Return a start of a run with the approval of its plan; an error where one is required and not given."""
        settings = self.policy.approval or ApprovalSettings(required="never")
        beside_plan = self.plan_file and self.plan_file.with_name(self.plan_file.name + SUFFIX)
        file = self.approval_file or (beside_plan if beside_plan and beside_plan.exists() else None)
        if file is None and settings.is_required(plan):
            what = f"deploy.yaml requires a second person's approval of plan {digest_of(plan)}, risk {plan.risk.word}"
            remedy = "keep it with netkit plan -o PLAN, have it approved with netkit approve PLAN, deploy PLAN"
            raise PlanError(Problem(what, remedy))
        if file is not None and self.key is None and settings.deployer == "key":
            raise UsageError(Problem("deploy.yaml wants the deployer's own key", "sign as yourself with --key FILE"))
        signers = signers_file(self.project, settings)
        signer: Signer | None = None
        if self.key is not None:
            signature, signer = self._signed(begun, plan, self.key, signers)
            begun = replace(begun, signature=signature, signer=signer.principals[0])
        if file is None:
            return begun
        deployer = Deployer(self._names(begun, settings), signer)
        given = approval.verified(
            approval.read(file),
            plan,
            self.project.lab,
            settings=settings,
            signers=signers,
            deployer=deployer,
            now_s=time.time(),
        )
        refuse_used(runs_folder(self.project.fabric.name, self.project.lab), given)
        return replace(begun, approval=given)

    def permitted(self, begun: Provenance, plan: Plan, run: str, options: Options) -> Provenance:
        """Ask the hook, when there is one; HookError when it does not allow the run."""
        begun, asked = replace(begun, at_s=time.time()), self.policy.hook
        if begun.approval is not None and begun.at_s >= begun.approval.expires_s:
            raise PlanError(Problem("the approval has expired meanwhile", AGAIN))
        if asked is None:
            return begun
        if self.skip_hook is not None:
            self.project.feedback.note("the hook was not asked")
            return replace(begun, hook="skipped", hook_reason=self.skip_hook.strip())
        folder = self.project.folder
        try:
            token = SecretStore(access.load(folder).secrets)(asked.token_secret) if asked.token_secret else ""
        except AccessError as error:
            raise HookError(error.problems) from None
        reason = hook.ask(asked, hook.question(plan, self.project.lab, run, begun, options), folder, token)
        self.project.feedback.note(f"the hook allows it{': ' if reason else ''}{shown(reason)}")
        return replace(begun, hook="allowed", hook_reason=reason)

    def _names(self, begun: Provenance, settings: ApprovalSettings) -> frozenset[str]:
        """Return the deployer's names: the account, those deploy.yaml adds to it, and git's."""
        accounts = [name for name in (begun.user, begun.sudo_user) if name]
        more = [one for name in accounts for one in settings.logins.get(name, ())]
        return frozenset({*accounts, *more, configured(self.project.folder, "user.email")} - {""})

    def _signed(self, begun: Provenance, plan: Plan, key: Path, signers: Path) -> tuple[str, Signer]:
        """Return the deployer's own signature, and whose it is."""
        said = f"{begun.verb} {plan.fabric} {self.project.lab} {digest_of(plan)} {begun.at_s:.0f}\n"
        signature = approval.sign(said, key, DEPLOYER_NAMESPACE)
        name = approval.principal_of(key, signers)
        return said + signature, approval.signer_of(said, signature, signers, name, DEPLOYER_NAMESPACE, f"--key {key}")


def signers_file(project: Project, settings: ApprovalSettings) -> Path:
    """Return the file of those whose signatures count."""
    return project.folder / Path(settings.allowed_signers).expanduser()


def login() -> str:
    """Return the login name of this account; its number where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def who() -> str:
    """Return this user as the history of deploys writes it."""
    return Provenance("", time.time(), login(), os.getuid(), socket.gethostname(), sudo_user=_sudo_user()).who


def _sudo_user() -> str:
    return os.environ.get("SUDO_USER", "") if os.getuid() == 0 else ""


def given_digest(approved: str) -> str:
    """Return the digest that was given: an empty one, like that of a variable nobody set, approves nothing."""
    digest = approved.strip().lower()
    if DIGEST.fullmatch(digest):
        return digest
    found = f"{approved!r} is not the digest of a plan" if digest else "it is empty"
    remedy = "give it the 32 digits of netkit plan --against running"
    raise UsageError(Problem(f"--approved: {found}", remedy))


def finished(plan: Plan, runs: Path, approved: str) -> str:
    """Return which run did all that was approved, when nothing is left to do: to ask for it again is no mistake."""
    if plan.changed or not plan.is_complete:
        return ""
    whole = (one.run for one in history(runs) if one.outcome is not None and one.outcome.exit_code == 0)
    return next((f"deployed by run {run}" for run in whole if _is_of(Journal(runs / run), approved)), "")


def _is_of(journal: Journal, approved: str) -> bool:
    """Whether a run was to deploy all of a plan."""
    orders = journal.orders()
    return orders.options.limit is None and digest_of(orders.plan) == approved


def refuse_unapproved(plan: Plan, approved: str) -> None:
    """Raise PlanError when this is not the plan that somebody agreed to."""
    if plan.unreachable:
        missed = listed([one.name for one in plan.unreachable])
        raise AccessError(
            Problem(f"{missed}: could not be read, so this is not the plan that was approved", "try again")
        )
    found = digest_of(plan)
    if found != approved:
        what = f"the plan that was approved is {approved}, what would change now is {found}"
        remedy = "intent or devices have changed since: see netkit plan --against running, and have it approved again"
        raise PlanError(Problem(what, remedy))
