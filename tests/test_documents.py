"""The runner of the documentation notices pages that are wrong."""

from pathlib import Path

import pytest

from tests import documents


def ran(folder: Path, text: str) -> None:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    documents.run(page, folder, timeout_s=20)


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one; echo two\none\ntwo\n```\n",
        "```console\n$ echo one; echo two; echo three\n…\nthree\n```\n",
        "```console\n$ echo took 12 s in all\ntook … s in all\n$ true\n```\n",
        "```console\n$ cat; false\n$ echo $?\n1\n```\n",
        "```text a/file.txt\nthree\n```\n\n```console\n$ cat a/file.txt\nthree\n$ cd a\n$ ls\nfile.txt\n```\n",
    ],
    ids=["as shown", "lines left out", "words left out", "a failure that is shown", "a file, and a folder that stays"],
)
def test_a_correct_page_passes(text: str, tmp_path: Path) -> None:
    ran(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one; echo two\none\n```\n",
        "```console\n$ echo one\none\ntwo\n```\n",
        "```console\n$ false\n$ true\n```\n",
        "no command at all\n",
    ],
    ids=["more is said", "less is said", "a failure nobody asks for", "nothing to run"],
)
def test_a_wrong_page_fails(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md"):
        ran(tmp_path, text)
