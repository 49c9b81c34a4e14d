"""What each receiver is to be told of a run. Pure."""

from collections.abc import Iterable, Iterator

from netkit.notify import alert, message
from netkit.notify.news import News
from netkit.notify.settings import Alertmanager, AnyReceiver
from netkit.store import Source
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
            covered = (one for key, one in news.standings.items() if receiver.covers(key.check, key.device))
            open_now = [one.told.now for one in covered if one.told.now >= receiver.least]
            yield Post(receiver.name, message.body(news.at_s, events, open_now, ends))


def _is_told(receiver: AnyReceiver, end: SilenceEnd) -> bool:
    """Whether the end of a silence is news to a receiver: of what it names, or of what it silenced."""
    known = end.known
    named = ((check, place.partition(":")[0]) for check in known.checks for place in known.places)
    return any(receiver.covers(*one) for one in (*named, *((key.check, key.device) for key in known.keys)))
