"""Notify receivers of what a stored run changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netkit.access import settings as access
from netkit.access.secrets import SecretStore
from netkit.errors import NetkitError
from netkit.judge import CheckContext
from netkit.judge.run import Judgement
from netkit.notify import settings as notify
from netkit.notify.delivery import Sender, deliver, notifications, senders
from netkit.notify.news import News, NotifyRound, decide
from netkit.notify.settings import NotifySettings
from netkit.project.past import source_of
from netkit.project.project import Feedback, Project
from netkit.report.judgement_view import Judged, silence_text
from netkit.report.plan_view import shown
from netkit.store import Source
from netkit.store.open_cause import missed_groups
from netkit.store.outbox import Decide, Memory, NotifyDecision, Outbox, QueuedNotification
from netkit.store.state import Extent, Key, SilenceEnd, States, key_of, reached_key, silenced_states, without_half_seen

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Notifying:
    """The receivers of a fabric, or of a lab of it."""

    settings: NotifySettings
    source: Source
    senders: tuple[Sender, ...]
    feedback: Feedback

    @classmethod
    def of(cls, project: Project) -> "Notifying":
        """Read notify.yaml of a fabric."""
        folder, source = project.folder, source_of(project)
        settings = notify.load(folder)
        secrets = SecretStore(access.load(folder).secrets)
        return cls(settings, source, senders(settings, source, secrets), project.feedback)

    def decider(self, context: CheckContext, judged: Judged, extent: Extent) -> Decide:
        """The function that decides, when a run is stored, which notifications to queue."""
        peers = {near: far.device for near, far in context.fabric.far_ends.items()}

        def address(news: News) -> tuple[QueuedNotification, ...]:
            return tuple(notifications(news, self.settings.receivers, self.source))

        def decided(memory: Memory, states: States, ends: Sequence[SilenceEnd]) -> NotifyDecision:
            silenced = silenced_states(judged.judgement, states)
            whole = without_half_seen(states, judged.judgement, context.devices, peers)
            limits = self.settings.flapping.limits
            found = (*judged.causes, *missed_groups(judged.judgement.unreached))
            now = NotifyRound(self.source, judged.taken_s, found, extent, limits, _marks(judged.judgement), ends)
            return decide(memory, {**whole, **silenced}, now, address)

        return decided

    def deliver(self, outbox: Outbox) -> None:
        """Send what is queued; a failure is reported and does not fail the check."""
        try:
            for line in deliver(outbox, self.senders, self.settings.keep_hours * HOUR_S):
                self._warn(line)
        except NetkitError as error:
            for problem in error.problems:
                self._warn(str(problem))

    def _warn(self, line: str) -> None:
        self.feedback.note(shown(f"warning: notify: {line}"))


def _marks(judgement: Judgement) -> Mapping[Key, str]:
    """Silenced place → author, reason and end."""
    found = {key_of(one): silence_text(one.silenced) for one in judgement.silenced if one.silenced is not None}
    return {**found, **{reached_key(name): silence_text(mark) for name, mark in judgement.excused}}
