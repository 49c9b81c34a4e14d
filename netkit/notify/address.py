"""What each receiver is to be told of a run. Pure."""

from collections.abc import Iterable, Iterator

from netkit.judge import Verdict
from netkit.notify import alert, message
from netkit.notify.news import News
from netkit.notify.settings import Alertmanager, AnyReceiver
from netkit.store import Source
from netkit.store.change import open_counts
from netkit.store.outbox import Post
from netkit.store.silence import SilenceEnd


def posts(news: News, receivers: Iterable[AnyReceiver], source: Source) -> Iterator[Post]:
    """Yield what goes to each receiver; one with nothing new for it is left in peace."""
    for receiver in receivers:
        if isinstance(receiver, Alertmanager):
            if found := alert.body(news, receiver, source):
                yield Post(receiver.name, found)
            continue
        events = [event for event in news.events if receiver.wants(event)]
        ends = [one.text for one in news.ends if _is_told(receiver, one)]
        if events or ends:
            covered = (item for item in news.standings.items() if receiver.covers(item[0].check, item[0].device))
            bad = ((key, one) for key, one in covered if one.told.now >= max(receiver.least, Verdict.WARN))
            open_now = open_counts((key, one.cause, one.told.now) for key, one in bad)
            yield Post(receiver.name, message.body(news.at_s, events, open_now, ends))


def _is_told(receiver: AnyReceiver, end: SilenceEnd) -> bool:
    """Whether the end of a silence is news to a receiver: of what it names, or of what it silenced."""
    known = end.known
    named = ((check, place.partition(":")[0]) for check in known.checks for place in known.places)
    return any(receiver.covers(*one) for one in (*named, *((key.check, key.device) for key in known.keys)))
