from dataclasses import replace
from typing import Any

import pytest
import yaml

from rungwise.models.io import EvaluationTable, model_card, with_table
from rungwise.models.io._card import escaped, tables_of

TABLE = EvaluationTable(
    data="Flickr8K test",
    data_hash="a1",
    model_hash="b2",
    protocol="full",
    head=("measure", "image to text", "text to image", "unit"),
    rows=(("R@1", "12.5 [11.0, 14.0]", "9.5 [8.5, 10.5]", "percent"), ("rsum", "", "215.3", "percent")),
    notes=("1000 images x 5000 captions (5 an image)",),
    numbers={"i2t/R@1": 12.5, "t2i/R@1": 9.53, "rsum": 215.27},
    version="0.1.0",
)
HOSTILE = "a | b\n---\n```\n# <img src=x onerror=y> [x](javascript:y) \x1b]0;x\x07 !!python/object:os.system {{x}}"


def parts(card: str) -> tuple[dict[str, Any], str]:
    _, header, rest = card.split("---\n", 2)
    return yaml.safe_load(header), rest


def test_the_header_is_yaml_and_the_facts_can_be_read_back() -> None:
    facts = {"model": {"kind": "vse", "dimension": 8}, "data": "Käse: 100 %", "validation": {"rsum": 312.5}}
    header, rest = parts(model_card(facts))
    assert header["library_name"] == "rungwise"
    assert yaml.safe_load(rest.split("```yaml\n")[1].removesuffix("```\n")) == facts
    assert "Käse" in rest


def test_the_code_on_it_names_what_the_package_has() -> None:
    code = model_card({}).split("```python\n")[1].split("```")[0]
    imports = [line for line in code.splitlines() if line.startswith("from rungwise")]
    assert imports
    for line in imports:
        exec(line, {})
    compile(code, "card", "exec")


def test_an_evaluation_becomes_a_table_and_numbers_that_hubs_read() -> None:
    header, rest = parts(model_card(with_table({"data": "Flickr8K"}, TABLE)))
    assert "### Flickr8K test, protocol full" in rest
    assert "| R@1 | 12.5 \\[11.0, 14.0\\] | 9.5 \\[8.5, 10.5\\] | percent |" in rest
    assert "* 1000 images x 5000 captions (5 an image)" in rest
    (model,) = header["model-index"]
    (found,) = model["results"]
    assert found["dataset"] == {"type": "flickr8k-test", "name": "Flickr8K test, protocol full"}
    metrics = {one["name"]: (one["type"], one["value"]) for one in found["metrics"]}
    assert metrics == {"i2t/R@1": ("r_at_1", 12.5), "t2i/R@1": ("r_at_1", 9.53), "rsum": ("rsum", 215.27)}
    assert "evaluations" not in rest.split("```yaml")[1]
    assert header["pipeline_tag"] == "zero-shot-image-classification"


def test_the_last_table_of_the_same_data_and_protocol_counts() -> None:
    facts = with_table(with_table({}, TABLE), replace(TABLE, protocol="flickr8k-1k"))
    again = with_table(facts, replace(TABLE, rows=(("R@1", "13.0", "10.0", "percent"),)))
    assert [(one.protocol, one.rows[0][1]) for one in tables_of(again)] == [
        ("flickr8k-1k", "12.5 [11.0, 14.0]"),
        ("full", "13.0"),
    ]


def test_texts_of_strangers_stay_texts() -> None:
    table = replace(TABLE, data=HOSTILE, protocol=HOSTILE, notes=(HOSTILE,), numbers={HOSTILE: 1.0})
    facts = with_table({"data": HOSTILE, "note": "a\n\n```\n\n# no heading\n", "license": "mit\nx: y"}, table)
    header, rest = parts(model_card(facts))
    assert "license" not in header
    assert header["model-index"][0]["results"][0]["dataset"]["name"].startswith("a | b ---")
    shown, block = rest.split("\n````yaml\n")
    assert not [line for line in shown.splitlines() if line.startswith(("# <", "---"))]
    assert "<img" not in shown.replace("\\<img", "")
    assert "\x1b" not in rest
    assert yaml.safe_load(block.split("````")[0])["note"] == "a\n\n```\n\n# no heading\n"
    assert shown.count("```") == 4  # the examples alone


@pytest.mark.parametrize(
    "said",
    [
        "text", 3, [1], [{}], [{"data": "x"}], [["a"]], {"a": 1},
        [{"data": "x", "data_hash": "", "model_hash": "", "protocol": "p", "head": ["a"], "rows": [["b", "c"]]}],
        [{"data": "x", "data_hash": "", "model_hash": "", "protocol": "p", "head": ["a"], "rows": [["b"]], "more": 1}],
        [{"data": "x", "data_hash": "", "model_hash": "", "protocol": "p", "head": 1, "rows": None}],
        [{"data": "x", "data_hash": "", "model_hash": "", "protocol": "p", "head": [], "rows": [],
          "numbers": {"a": 1e999}}],
    ],
)  # fmt: skip
def test_what_is_no_table_is_passed_over(said: object) -> None:
    facts = {"evaluations": said}
    header, rest = parts(model_card(facts))
    assert "Not evaluated yet" in rest
    assert header["library_name"] == "rungwise"


def test_a_licence_and_the_models_it_was_made_from_are_said() -> None:
    sides = {"image": {"source": "hf:openai/clip-vit-base-patch32"}, "text": {"source": "st:/home/somebody/model"}}
    header, _ = parts(model_card({"model": sides, "license": "cc-by-4.0"}))
    assert header["license"] == "cc-by-4.0"
    assert header["base_model"] == ["openai/clip-vit-base-patch32"]


def test_marks_are_escaped() -> None:
    assert escaped("a*b_c`d`\n<e>") == r"a\*b\_c\`d\` \<e\>"
