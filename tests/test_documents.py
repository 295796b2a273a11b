"""The paths and names that the documents for contributors mention, in backticks and outside of code blocks, exist.

A token in backticks is

* a path if it has a slash, or ends like a source or document (``.py``, ``.md``, ``.yaml``, ``.toml``): relative to the
  repository, to ``src/rungwise``, to ``tests`` or to ``docs``; a bare file name may stand anywhere in these. A word in
  capitals, such as ROOM in ``tests/ROOM/test_MODULE.py``, and ``*`` stand for anything;
* a dotted name if it begins with ``rungwise.``: a module, or what one can reach in it;
* a function or method if it has the form ``like_this(...)``, a class if it has the form ``LikeThis``, both with or
  without what they belong to (``Degrees.save``): the source defines that name.

Anything else, such as commands, options and values, is not looked at.
"""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from rungwise.metrics import FAMILIES
from tests.house import PACKAGE, definitions
from tests.pages import pages

REPOSITORY = Path(__file__).parents[1]
ARCHITECTURE = sorted((REPOSITORY / "docs" / "explanation" / "architecture").glob("*.md"))
DOCUMENTS = ("CONTRIBUTING.md", *(path.relative_to(REPOSITORY).as_posix() for path in ARCHITECTURE))
PLACES = (REPOSITORY, PACKAGE, REPOSITORY / "tests", REPOSITORY / "docs")

PATH = re.compile(r"[\w.*-]*(?:/[\w.*-]*)+|[\w*-]+\.(?:py|md|yaml|toml)")
DOTTED = re.compile(r"(rungwise(?:\.\w+)+)(?:\(.*\))?")
CALLED = re.compile(r"((?:\w+\.)*[a-z_]\w*)\(.*\)")
CLASS = re.compile(r"(?:[A-Z]\w*[a-z]\w*\.)*[A-Z]\w*[a-z]\w*(?:\.\w+)?(?:\(.*\))?")


def tokens(text: str) -> list[tuple[int, str]]:
    """Line number and content of everything in single backticks; a token may run over the end of a line."""
    blanked = re.sub(
        r"^(```|~~~).*?^\1", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE
    )
    found = re.finditer(r"(?<!`)`([^`]+)`(?!`)", blanked)
    return [(blanked.count("\n", 0, one.start()) + 1, " ".join(one[1].split())) for one in found]


def path_exists(token: str) -> bool:
    pattern = re.sub(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])", "*", token).strip("/")
    for place in PLACES:
        if (place / token).exists() or any(place.glob(pattern)):
            return True
    return "/" not in token and any(True for place in PLACES[1:] for _ in place.rglob(token))


def name_resolves(dotted: str) -> bool:
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False


def fault(token: str) -> str | None:
    """What a token names that is not there; None if all is well or it names nothing of the repository."""
    if dotted := DOTTED.fullmatch(token):
        return None if name_resolves(dotted[1]) else f"nothing can be imported as {dotted[1]}"
    if PATH.fullmatch(token):
        return None if path_exists(token) else "no such path"
    if (called := CALLED.fullmatch(token)) or CLASS.fullmatch(token):
        names = (called[1] if called else token.partition("(")[0]).split(".")
        owners = [name for name in names[:-1] if name[0].isupper()]
        missing = [name for name in (*owners, names[-1]) if name not in definitions()]
        return f"no definition of {', '.join(missing)} in src/rungwise" if missing else None
    return None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_mentions_exists(document):
    path = REPOSITORY / document
    found = tokens(path.read_text(encoding="utf-8"))
    assert found, f"{document} mentions nothing in backticks"
    wrong = [f"{document}:{line}: `{token}`: {said}" for line, token in found if (said := fault(token))]
    assert not wrong, "\n" + "\n".join(wrong)


OURS = ("src/", "tests/", "docs/", "benchmarks/", "deploy/", "configs/")
NO_MODULES = {"rungwise.json", "rungwise.measures", "rungwise.readers", "rungwise.stores"}
"""A file of an index, and groups of entry points."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path.stem)
def test_names_and_files_of_ours_on_a_page_exist(page):
    """Elsewhere than in the documents for contributors, most names are those of people's own files and of libraries."""
    wrong = [
        f"{line}: `{token}`: {said}"
        for line, token in tokens(page.text)
        if (token.startswith(OURS) or DOTTED.fullmatch(token)) and token not in NO_MODULES and (said := fault(token))
    ]
    assert not wrong, "\n" + "\n".join([page.path.as_posix(), *wrong])


@pytest.mark.parametrize(
    "token",
    [
        "src/rungwise/core/_errors.py",
        "core/_errors.py",
        "_errors.py",
        "core/",
        "tests/ROOM/test_MODULE.py",
        "losses/*.py",
        "CONTRIBUTING.md",
        "rungwise.core._errors",
        "rungwise.core.UserError",
        "rungwise.relevance.CIDErD",
        "UserError",
        "Degrees.save",
        "block(images, captions) -> float32",
        "top_columns(scores, k)",
        "Degrees.save(path)",
        "--device",
        "i2t/R@1",
        "rungwise train CONFIG",
        "RUNGWISE_DATA",
        "kind",
    ],
)
def test_what_exists_or_is_no_name_passes(token):
    assert fault(token) is None


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("src/rungwise/utils.py", "no such path"),
        ("core/nowhere/", "no such path"),
        ("nowhere.py", "no such path"),
        ("tests/ROOM/nowhere_MODULE.py", "no such path"),
        ("rungwise.core.nowhere", "nothing can be imported as rungwise.core.nowhere"),
        ("rungwise.core._errors.Nothing", "nothing can be imported as rungwise.core._errors.Nothing"),
        ("NoSuchClass", "no definition of NoSuchClass"),
        ("NoSuchClass.save", "no definition of NoSuchClass"),
        ("no_such_function(x)", "no definition of no_such_function"),
    ],
)
def test_what_is_missing_is_found(token, said):
    assert said in str(fault(token))


def test_tokens_stand_outside_of_code_blocks():
    text = "one `a.py`\n```\n`b.py`\n```\nand `c\nd` but not ``e``\n"
    assert tokens(text) == [(1, "a.py"), (5, "c d")]


def test_the_picture_of_the_house_shows_the_rooms_as_they_are():
    drawn = runpy.run_path(str(REPOSITORY / "docs" / "figures" / "house.py"))["drawn"]()
    assert (REPOSITORY / "docs" / "images" / "house.svg").read_text(encoding="utf-8") == drawn, (
        "draw it anew: python docs/figures/house.py"
    )


def test_the_figures_of_measures_show_what_the_measures_give_now():
    drawn = runpy.run_path(str(REPOSITORY / "docs" / "figures" / "measures.py"))["drawn"]()
    folder = REPOSITORY / "docs" / "images"
    assert sorted(drawn) == sorted(path.name for path in folder.glob("measure-*.svg"))
    stale = [name for name, figure in drawn.items() if (folder / name).read_text(encoding="utf-8") != figure]
    assert not stale, f"draw {', '.join(stale)} anew: python docs/figures/measures.py"


def test_every_measure_has_a_figure():
    """A family's figure is named after it; another reading of the same family has one besides."""
    names = {"MAPAtR": "map-r"}
    wanted = {f"measure-{names.get(one.__name__, one.__name__.lower())}.svg" for one in FAMILIES}
    missing = wanted - {path.name for path in (REPOSITORY / "docs" / "images").glob("measure-*.svg")}
    assert not missing, f"docs/figures/measures.py draws no {', '.join(sorted(missing))}"


HELD = REPOSITORY / "docs" / "explanation" / "held"
SUMMARY = HELD / "what-holds-up.md"
STUDIED = [
    HELD / f"{path.stem}.md"
    for path in sorted((REPOSITORY / "studies").glob("*.yaml"))
    if path.with_suffix("").is_dir() and re.search("^claims:", path.read_text(encoding="utf-8"), re.MULTILINE)
]
"""Pages of the studies that have claims and of which runs are kept."""


def claims_on_the_page(text):
    """Title, verdict, and (low, high, p) of each test of every claim."""
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        title, _, verdict = section.partition("\n")[0].rpartition(": ")
        tests = re.findall(r"^\| over [\d,]+ \w+ \| (\S+) \.\. (\S+), p ≤?(\S+) \|$", section, flags=re.MULTILINE)
        if tests:
            yield title, verdict, [tuple(map(float, one)) for one in tests]


def verdict_by_the_rule(tests):
    shown = all(p < 0.05 for _, _, p in tests)
    if shown and all(low > 0 for low, _, _ in tests):
        return "holds"
    return "contradicted here" if shown and all(high < 0 for _, high, _ in tests) else "does not show"


@pytest.mark.parametrize("path", STUDIED, ids=lambda path: path.stem)
def test_each_verdict_of_a_page_follows_from_its_numbers(path):
    claims = list(claims_on_the_page(path.read_text(encoding="utf-8")))
    assert claims
    for title, verdict, tests in claims:
        assert verdict == verdict_by_the_rule(tests), title


def test_the_summary_has_the_verdicts_of_the_pages_of_studies():
    text = SUMMARY.read_text(encoding="utf-8")
    of_pages = [verdict for path in STUDIED for _, verdict, _ in claims_on_the_page(path.read_text(encoding="utf-8"))]
    of_table = re.findall(r"^\| .+ \| \*\*(.+)\*\* \|$", text, re.MULTILINE)
    assert sorted(of_table) == sorted(of_pages)
    counted = re.search(
        r"^(\d+) claims: (\d+) hold, (\d+) do not show, (\d+) are contradicted here\.$", text, re.MULTILINE
    )
    assert counted is not None
    assert [int(number) for number in counted.groups()] == [
        len(of_pages), *(of_pages.count(word) for word in ("holds", "does not show", "contradicted here")),
    ]  # fmt: skip


def test_a_verdict_that_contradicts_its_numbers_is_found():
    rows = "| over 1,000 pictures | +0.2 .. +3.4, p 0.0100 |\n| over 5 seeds | -0.1 .. +2.0, p 0.0600 |\n"
    text = f"### One: holds\n\n{rows}"
    ((_, verdict, tests),) = claims_on_the_page(text)
    assert (verdict, verdict_by_the_rule(tests)) == ("holds", "does not show")


@pytest.mark.slow
def test_the_pages_of_claims_are_made_of_the_files_of_the_studies():
    made = runpy.run_path(str(REPOSITORY / "docs" / "figures" / "studies"))
    for name, text in made["pages"]([made["Measured"].read(one) for one in made["TITLES"]]).items():
        assert (HELD / name).read_text(encoding="utf-8") == text, "make it anew: python docs/figures/studies"
