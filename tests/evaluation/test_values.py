"""What results and comparisons print and turn into.

Also tests rungwise.core.output._text_tables. Also tests rungwise.evaluation.statistics._number_cells.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.output import MOST_LINES, WIDTH
from rungwise.evaluation import Comparison, Provenance, Result, compare, evaluate


def measured(seed: int, images: int = 20, captions: int = 40, **provenance) -> Result:
    scores = np.random.default_rng(seed).random((images, captions))
    owners = np.arange(captions) % images
    measures = ["R@1", "R@5", "MedR", "MRR", "rsum"]
    return evaluate(similarity=scores, image_of_caption=owners, measures=measures, provenance=Provenance(**provenance))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 30), st.text(max_size=20))
def test_what_one_function_writes_the_other_reads(seed, images, captions, name):
    name = name.encode("utf-8", "replace").decode()
    first = measured(seed, images, captions, data_name=name)
    second = measured(seed + 1, images, captions, data_name=name)
    again = Result.from_json(first.to_json())
    assert again == first
    assert again.to_json() == first.to_json()
    found = compare([again, Result.from_json(second.to_json())], draws=50)
    assert found == compare([first, second], draws=50)
    assert Comparison.from_json(found.to_json()).to_json() == found.to_json()


def test_a_text_and_a_file_are_the_same(tmp_path):
    result = measured(0)
    assert result.to_json(tmp_path / "r.json") is None
    assert (tmp_path / "r.json").read_text() == result.to_json()


def test_an_altered_comparison_is_refused():
    text = compare([measured(0), measured(1)], draws=50).to_json()
    content = json.loads(text)
    content["differences"][0]["pictures"]["p"] = 0.001
    with pytest.raises(UserError, match="the comparison was altered after it was written; compare again"):
        Comparison.from_json(json.dumps(content))
    with pytest.raises(UserError, match="the comparison is damaged"):
        Comparison.from_json(json.dumps({**json.loads(text), "level": "high"}))
    with pytest.raises(UserError, match="is not a rungwise-comparison/1 file"):
        Comparison.from_json(measured(0).to_json())


@pytest.mark.parametrize("value", [measured(0), compare([measured(0), measured(1)], draws=50)], ids=["one", "two"])
def test_a_value_prints_few_lines_and_html_without_a_script(value):
    assert len(repr(value).splitlines()) <= MOST_LINES
    assert max(map(len, repr(value).splitlines())) <= WIDTH
    assert "<script" not in value._repr_html_()
    assert r"\toprule" in value.to_latex()
    assert value.to_markdown().startswith("| measure |")


def test_names_of_strangers_are_escaped():
    result = measured(0, data_name="<script>alert(1)</script>\x1b[31m")
    html = result._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html + repr(result) + result.to_markdown() + result.to_latex()


def test_frames_have_a_row_for_each_number():
    pytest.importorskip("pandas")
    result = measured(0)
    frame = result.to_frame()
    assert dict(frame["value"]) == dict(result.numbers)
    assert frame.loc["i2t/R@1", ["low", "high"]].tolist() == list(result.interval("i2t/R@1"))
    bare = replace(result, _per_query={}, _image_of_query={}, _query_ids={}).to_frame()
    assert bare["low"].isna().all()
    found = compare([result, measured(1)], draws=50)
    assert found.to_frame().loc["rsum", "p_holm"] == found["rsum"].pictures.p_holm
