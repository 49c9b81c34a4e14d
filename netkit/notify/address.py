"""What each receiver is to be told of a run. Pure."""

from collections.abc import Iterable, Iterator

from netkit.notify import alert, message
from netkit.notify.news import News
from netkit.notify.settings import Alertmanager, AnyReceiver
from netkit.store import Source
from netkit.store.outbox import Post


def posts(news: News, receivers: Iterable[AnyReceiver], source: Source) -> Iterator[Post]:
    """Yield what goes to each receiver; one with nothing new for it is left in peace."""
    for receiver in receivers:
        if isinstance(receiver, Alertmanager):
            if found := alert.body(news, receiver, source):
                yield Post(receiver.name, found)
            continue
        events = [event for event in news.events if receiver.wants(event)]
        if events:
            covered = (one for key, one in news.standings.items() if receiver.covers(key.check, key.device))
            open_now = [one.told.now for one in covered if one.told.now >= receiver.least]
            yield Post(receiver.name, message.body(news.at_s, events, open_now))
