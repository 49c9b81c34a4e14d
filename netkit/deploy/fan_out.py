"""The same work on several devices at once, by a Nornir runner."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from nornir.core import Nornir
from nornir.core.inventory import Host, Hosts, Inventory
from nornir.core.plugins.runners import RunnerPlugin
from nornir.core.processor import Processors
from nornir.core.task import Result, Task
from nornir.plugins.runners import ThreadedRunner

Item = TypeVar("Item")


def threads(number: int) -> RunnerPlugin:
    """A runner that works on this many devices at once."""
    return ThreadedRunner(num_workers=max(1, number))


def each(runner: RunnerPlugin, names: Iterable[str], work: Callable[[str], Item]) -> dict[str, Item]:
    """Run the work on each device and return the results; an exception is raised again once all have ended."""
    hosts = {name: Host(name) for name in names}
    if not hosts:
        return {}

    failed: dict[str, Exception] = {}

    def on_one(task: Task) -> Result:
        try:
            return Result(host=task.host, result=work(task.host.name))
        except Exception as error:  # nornir would log it with a traceback
            failed[task.host.name] = error
            return Result(host=task.host)

    nornir = Nornir(Inventory(hosts=Hosts(hosts)), runner=runner)
    task = Task(on_one, nornir, global_dry_run=False, processors=Processors())
    results = runner.run(task, list(hosts.values()))
    for name in hosts:
        if name in failed:
            raise failed[name]
    return {name: results[name][0].result for name in hosts}
