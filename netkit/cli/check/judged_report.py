"""`netkit check --report`: the report on what was just judged."""

from collections.abc import Callable, Mapping
from pathlib import Path

from netkit.cli.check.trends import trends_of
from netkit.judge import CheckContext
from netkit.project.past import Past
from netkit.report.judgement_view import Judged
from netkit.report.page import Reported, page, page_json

FORMATS: Mapping[str, Callable[[Reported], str]] = {".html": page, ".json": page_json}


def judged_report(file: Path, scene: CheckContext, judged: Judged, earlier: Past) -> str:
    """Return the report as the name of its file says; with trends when the run is kept in a store."""
    if earlier.kept is None:
        return FORMATS[file.suffix](Reported(judged, scene.fabric, scene))
    store, run = earlier.kept
    trends = trends_of(store, run, judged.judgement)
    return FORMATS[file.suffix](Reported(judged, scene.fabric, scene, run=run.name, trends=trends))
