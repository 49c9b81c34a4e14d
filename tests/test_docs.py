"""Generated documentation is up to date, and hand-written pages are consistent with the code."""

import gc
import importlib
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import typer
import yaml

from netkit.cli import app
from netkit.deploy import policy
from netkit.judge import catalog
from netkit.notify import settings

ROOT = Path(__file__).parent.parent
VARIABLE = re.compile(r"NETKIT_(?!RAIL|SECRET)[A-Z_]+|NETKIT_SECRET_SERVE_TOKEN")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#:\s]*)(#([^)]+))?\)")
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^```(?:console)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(name="generate", scope="module")
def loaded() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("generate")


def test_generated_pages_are_up_to_date(generate: ModuleType) -> None:
    pages = generate.pages()
    assert {file for file in pages if file.parent.name == "verbs"} == set((ROOT / "docs" / "verbs").glob("*.md"))
    for file, text in pages.items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name} lags behind: run scripts/docs and commit it"


def test_every_verb_has_examples_and_no_other_has(generate: ModuleType) -> None:
    verbs, known = generate.verb_page.verb_names(), generate.verb_page.examples()
    missing = [verb for verb in verbs if not known.get(verb, {}).get("examples")]
    assert missing == [], "put an example into docs/verbs/examples.yaml, then run scripts/docs"
    groups = {verb.partition(" ")[0] for verb in verbs}
    assert sorted(set(known) - set(verbs) - groups) == []


class _Recorder:
    """Stands in for the module of a verb, and does nothing: only parsing of the command line is tested."""

    def __init__(self, name: str, reached: list[str]) -> None:
        self._name, self._reached = name, reached

    def __getattr__(self, function: str) -> Callable[..., None]:
        return lambda *_arguments, **_options: self._reached.append(f"{self._name}.{function}")


def shown_commands() -> Iterator[tuple[str, str]]:
    """Every netkit command in a block of a page, with the page."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in SHOWN.findall(page.read_text(encoding="utf-8")):
            for line in block.splitlines():
                command = re.split(r"\s+#|\s*[|>]", line.removeprefix("$ "))[0]
                if command.startswith("netkit ") and " VERB " not in command and "[OPTIONS]" not in command:
                    yield page.name, command


def test_every_command_shown_can_be_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    recorders = SimpleNamespace(import_module=lambda name: _Recorder(name, reached))
    monkeypatch.setattr("netkit.cli.verbs.options.importlib", recorders)
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(typer.main, "get_command", cache(typer.main.get_command))  # building it takes most of the time
    shown = {command: page for page, command in shown_commands() if command != "netkit version"}
    assert len(shown) > 80
    for number, (command, page) in enumerate(shown.items(), 1):
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as end:
            app.main()
        assert (end.value.code, len(reached)) == (0, number), f"{page}: {command}"


def test_every_key_of_an_intent_has_a_meaning(generate: ModuleType) -> None:
    silent = [line for line in generate.intent_page().splitlines() if line.startswith("| `") and line.endswith("|  |")]
    assert silent == [], "give the field a description"


def test_readme_shows_the_real_reference_fabric() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    intent = (ROOT / "inventory" / "reference" / "fabric.yaml").read_text(encoding="utf-8")
    assert intent.strip() in readme


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and GitLab give the headings of a page."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def test_every_page_and_heading_the_docs_link_to_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(pages) > 40
    for page in pages:
        for target, _, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(file), f"{page.name}: {target}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        reached.add(page)
        links = re.findall(r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8"))
        left += {(page.parent / link).resolve() for link in links} - reached
    unreached = sorted(page.name for page in (ROOT / "docs").rglob("*.md") if page not in reached)
    assert unreached == [], "link it from README.md, section Read on"


def test_every_check_explains_its_failure() -> None:
    silent = [check.name for check in catalog.load().values() if not check.text.partition("\n\n")[2]]
    assert silent == []


def test_every_environment_variable_is_documented() -> None:
    read = {name for file in (ROOT / "netkit").rglob("*.py") for name in VARIABLE.findall(file.read_text("utf-8"))}
    reported = set(VARIABLE.findall((ROOT / "docs" / "files.md").read_text(encoding="utf-8")))
    assert {"NETKIT_STORE", "NETKIT_LAB_DIR"} <= read
    assert sorted(read - reported) == []


def test_settings_and_manifests_in_the_docs_are_valid(tmp_path: Path) -> None:
    def shown(page: str) -> str:
        return YAML.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))[0]  # type: ignore[no-any-return]

    (tmp_path / "notify.yaml").write_text(shown("notify.md"), encoding="utf-8")
    assert len(settings.load(tmp_path).receivers) == 4
    (tmp_path / "deploy.yaml").write_text(shown("change-control.md"), encoding="utf-8")
    assert policy.load(tmp_path).approval is not None
    job = yaml.safe_load(shown("schedule.md"))["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    assert job["command"][:2] == ["netkit", "check"]
    assert yaml.safe_load(shown("serve.md"))["scrape_configs"][0]["job_name"] == "netkit"
