"""Documentation that comes from the code must be what the code says."""

import importlib.util
import re
from pathlib import Path

from netkit.judge import catalog

ROOT = Path(__file__).parent.parent


def test_pages_that_come_from_the_code_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert (ROOT / "docs" / "intent.md").read_text(encoding="utf-8") == generate.intent_page()
    catalogue = (ROOT / "docs" / "check-catalogue.md").read_text(encoding="utf-8")
    assert catalogue == generate.catalogue_page(), "run scripts/docs"


def test_the_check_in_the_docs_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "naming.py").write_text(example, encoding="utf-8")
    assert "naming.hostname" in catalog.load([tmp_path])


def test_readme_shows_the_reference_fabric_as_it_is() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    intent = (ROOT / "inventory" / "reference" / "fabric.yaml").read_text(encoding="utf-8")
    assert intent.strip() in readme


def test_every_file_the_docs_link_to_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert len(pages) > 2
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
