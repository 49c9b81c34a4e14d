"""A plan that somebody agreed to elsewhere, by its digest: only that one is deployed."""

import re
from pathlib import Path

from netkit.deploy import Journal, history
from netkit.errors import AccessError, PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.plan.shift import approval
from netkit.report.plan_view import listed

DIGEST = re.compile(r"[0-9a-f]{32}")


def digest_of(approved: str) -> str:
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
    """Whether a run was told to deploy a plan, and all of it."""
    orders = journal.orders()
    return orders.options.limit is None and approval(orders.plan) == approved


def refuse_unapproved(plan: Plan, approved: str) -> None:
    """Raise PlanError when this is not the plan that somebody agreed to."""
    if plan.unreachable:
        missed = listed([one.name for one in plan.unreachable])
        raise AccessError(
            Problem(f"{missed}: could not be read, so this is not the plan that was approved", "try again")
        )
    found = approval(plan)
    if found != approved:
        what = f"the plan that was approved is {approved}, what would change now is {found}"
        remedy = "intent or devices have changed since: see netkit plan --against running, and have it approved again"
        raise PlanError(Problem(what, remedy))
