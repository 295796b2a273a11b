"""Every block of code of the documents was run as it stands now, and ended well. See :mod:`tests.documents.run`."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents._blocks import Document, documents
from tests.documents._records import COMMAND, OUTPUTS, faults, read, record_path
from tests.rooms import ROOT

PAGES = documents()


@pytest.mark.parametrize("document", PAGES, ids=lambda one: one.name)
def test_what_is_kept_belongs_to_the_text(document: Document) -> None:
    wrong = faults(document, read(record_path(document)))
    assert not wrong, "\n".join(["", *wrong])


def test_nothing_is_kept_of_pages_that_are_not_there() -> None:
    stray = {*OUTPUTS.rglob("*")} - {record_path(one) for one in PAGES}
    assert not [one for one in stray if one.is_file()], "remove these"


@pytest.fixture(scope="module")
def again(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outcomes of the pages that this run of pytest asks for."""
    into = tmp_path_factory.mktemp("outcomes")
    asked = [item.callspec.params["document"].name for item in request.session.items if _is_rerun(item)]
    subprocess.run([sys.executable, "-m", COMMAND.split()[-1], "--into", into, *asked], cwd=ROOT, check=False)
    return into


def _is_rerun(item: pytest.Item) -> bool:
    return item.name.startswith("test_it_ends_as_it_did")


@pytest.mark.slow
@pytest.mark.parametrize("document", PAGES, ids=lambda one: one.name)
def test_it_ends_as_it_did(document: Document, again: Path) -> None:
    kept = [one.get("exit") for one in read(record_path(document))]
    outcomes = read(record_path(document, again))
    said = [
        f"{block.place}: {one.get('output')}"
        for block, one in zip(document.blocks, outcomes, strict=True)
        if one.get("exit")
    ]
    assert [one.get("exit") for one in outcomes] == kept, "\n".join(["", *said])


PAGE = """# A page

```
rungwise --version
```

<!-- not run: network -->
```python
import rungwise
```

Save this as `mine.yaml`:

```yaml
epochs: [1]
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    monkeypatch.setattr("tests.documents._blocks.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(PAGE)
    return Document("page.md")


def outcomes_of(document: Document) -> list[dict[str, object]]:
    return [
        {"digest": one.digest, **({"exit": 0, "output": []} if one.not_run is None else {"not run": one.not_run})}
        for one in document.blocks
    ]


def test_blocks_have_a_line_a_reason_and_a_file(page: Document) -> None:
    found = [(one.line, one.language, one.not_run, one.file) for one in page.blocks]
    assert found == [(3, "", None, ""), (8, "python", "network", ""), (14, "yaml", None, "mine.yaml")]


def test_outcomes_of_the_present_text_are_well(page: Document) -> None:
    assert faults(page, outcomes_of(page)) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("--version", "--help", "page.md:3: the block, or one before it, is not the one that was run"),
        ("[1]", "[2]", "page.md:14: the block, or one before it, is not the one that was run"),
        ("not run: network", "not run: GPU", "page.md:8: the block, or one before it, is not the one that was run"),
    ],
)
def test_a_changed_page_has_to_be_run_again(page: Document, before: str, after: str, said: str) -> None:
    kept = outcomes_of(page)
    page.path.write_text(PAGE.replace(before, after))
    (fault,) = faults(Document("page.md"), kept)
    assert fault == f"{said}; run: python -m tests.documents.run page.md"


def test_a_changed_block_makes_those_after_it_old(page: Document) -> None:
    before = [one.digest for one in page.blocks]
    page.path.write_text(PAGE.replace("import rungwise", "import torch"))
    after = [one.digest for one in Document("page.md").blocks]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, False]


def test_a_failure_an_unknown_reason_and_a_missing_outcome_are_said(page: Document) -> None:
    kept = outcomes_of(page)
    failed = [{**kept[0], "exit": 2, "output": ["rungwise: no"]}, *kept[1:]]
    assert faults(page, failed)[0].startswith("page.md:3: ended with exit status 2 (rungwise: no); mend it, then run: ")
    assert faults(page, kept[:2]) == ["page.md: 3 blocks, and 2 were run; run: python -m tests.documents.run page.md"]
    page.path.write_text(PAGE.replace("not run: network", "not run: laziness"))
    other = Document("page.md")
    assert "not run for 'laziness'" in faults(other, outcomes_of(other))[0]
    assert "have not been run" in faults(page, [])[0]
