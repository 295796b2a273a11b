import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from rungwise.evaluation import PAPERS, Provenance, evaluate
from rungwise.evaluation.report import ReportOrigin
from rungwise.evaluation.report._origin import SOFTWARE, citation, definition_of, definitions, head_of
from rungwise.metrics import Measure

ROOT = Path(__file__).parents[3]


def result_of(measures=("R@1",), **named):
    return evaluate(
        similarity=np.eye(6), image_of_caption=np.arange(6), measures=measures, relevance=np.eye(6),
        provenance=Provenance(**named),
    )  # fmt: skip


def facts_of(html):
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))


def test_the_head_says_what_was_measured():
    result = result_of(data_name="pets", data_hash="da7a", split="test", model_hash="5eed", seed=3)
    origin = ReportOrigin(
        "run/model", "kind vse", {"data and captions": "photos"}, "rungwise evaluate <x>", "2026-01-02"
    )
    facts = facts_of(head_of(result, origin, intervals=True))
    assert facts["model"] == "run/model"
    assert facts["what it is"] == "kind vse"
    assert facts["hash of the model"] == "<code>5eed</code>"
    assert facts["trained with seed"] == "3"
    assert facts["data and captions"] == "photos"
    assert facts["hash of the data"] == "<code>da7a</code>"
    assert facts["split"] == "test"
    assert facts["protocol"] == "full. One gallery with every image and every caption."
    assert facts["pictures and captions"] == "6 pictures and 6 captions, 1 a picture"
    assert facts["queries"].startswith("6 image queries, which rank captions (i2t); 6 caption queries")
    assert facts["counted as right"] == "captions written for the image"
    assert facts["command"] == "<code>rungwise evaluate &lt;x&gt;</code>"
    assert facts["date"] == "2026-01-02"
    assert facts["made by"].startswith("rungwise ")
    assert "draws" in facts["intervals"]


def test_what_is_not_known_is_left_out():
    facts = facts_of(head_of(result_of(), ReportOrigin(), intervals=False))
    assert (
        not {"model", "hash of the model", "trained with seed", "split", "command", "date", "intervals"} & facts.keys()
    )


def test_every_measure_shown_is_defined_and_alike_ones_share_a_line():
    result = result_of(["R@1", "R@5", "MRR", "CS@5", "rsum", "NCS@5(m=2)"])
    facts = facts_of(definitions(result, degrees=True))
    assert facts["R@1, R@5, R@10"] == definition_of("R@1")
    shown = {name.rpartition("/")[2] for name in result.numbers}
    assert shown <= {one for names in facts for one in names.split(", ")}
    assert "degree (R)" in facts
    assert "degree (R)" not in facts_of(definitions(result, degrees=False))


def test_a_measure_that_says_nothing_is_called_so():
    @dataclass(frozen=True)
    class Mute(Measure):
        name: ClassVar[str] = "Mute"

        def per_query(self, rankings):
            return rankings.best_rank

    assert definition_of("Mute") == f"A measure of the module {__name__}, which does not say what it is."
    assert definition_of("Unheard@3") == "A measure of a module that is not imported here."


def test_the_entry_of_the_software_is_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert SOFTWARE["title"] == f"{project['name']}: {project['description']}"
    assert SOFTWARE["author"] == "{" + " and ".join(one["name"] for one in project["authors"]) + "}"
    assert SOFTWARE["license"] == project["license"]


@pytest.mark.parametrize(
    ("measures", "papers"),
    [
        (["R@1"], {"vsepp"}),
        (["rsum"], {"vsepp"}),
        (["CS@5"], {"ladder_loss"}),
        (["Nsum", "R@1"], {"sam", "vsepp"}),
        (["MRR"], set()),
    ],
)
def test_papers_of_the_measures_are_named_by_their_titles(measures, papers):
    html = citation(result_of(measures, data_name="pets", data_hash="da7a"), ReportOrigin(), (), ())
    assert {name for name, title in PAPERS.items() if title in html.replace("&#x27;", "'")} == papers
    assert "protocol full, data pets" in html
    assert "da7a" in html
    entry = re.search(r"<pre>(.*?)</pre>", html, re.DOTALL)[1]
    assert entry.startswith("@software{rungwise,\n  title = {rungwise: ")
    assert entry.count("{") == entry.count("}")
    assert not re.search(r"doi|url|year", entry)
