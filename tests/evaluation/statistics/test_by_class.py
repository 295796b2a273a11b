import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.formats import as_json, read_as
from rungwise.evaluation import ByClass, EvaluationSettings, RankedLists, Result, by_class, evaluate
from rungwise.evaluation.judgements import positives_from_labels
from rungwise.metrics import parse

MEASURES = ("MAP", "MAP@3", "P@2", "AP11", "MedR")


def measured(similarity, labels, owners, measures=MEASURES):
    return evaluate(
        similarity=similarity,
        image_of_caption=owners,
        measures=measures,
        protocol="labels",
        settings=EvaluationSettings(positives=positives_from_labels(labels, owners)),
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_number_is_that_of_the_queries_that_have_the_class(data):
    images, captions = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    owners = data.draw(st.lists(st.integers(0, images - 1), min_size=captions, max_size=captions))
    names = st.sets(st.sampled_from("abc"), max_size=3).map(sorted)
    labels = data.draw(st.lists(names, min_size=images, max_size=images))
    result = measured(np.random.default_rng(0).integers(0, 4, (images, captions)), labels, owners)
    found = by_class(result, labels)
    for way, asking in (("i2t", labels), ("t2i", [labels[owner] for owner in owners])):
        assert found.without_label[way] == sum(not own for own in asking)
        assert [one.label for one in found.classes[way]] == sorted({label for own in asking for label in own})
        for one in found.classes[way]:
            members = [query for query, own in enumerate(asking) if one.label in own]
            assert one.queries == len(members)
            for name in MEASURES:
                wanted = parse(name).aggregate(np.array([result.per_query(f"{way}/{name}")[q] for q in members]))
                assert one.numbers[name] == pytest.approx(wanted, nan_ok=True)


def test_numbered_classes_are_in_the_order_of_their_numbers():
    labels, owners = [10, 2, "dog", 1], np.arange(4)
    found = by_class(measured(np.eye(4), labels, owners), labels)
    assert [one.label for one in found.classes["i2t"]] == ["1", "2", "10", "dog"]


def test_with_one_label_each_the_classes_make_up_the_whole():
    labels = [str(n % 3) for n in range(30)]
    result = measured(np.random.default_rng(0).random((30, 30)), labels, np.arange(30), ["MAP", "P@10"])
    found = by_class(result, labels)
    for name in ("MAP", "P@10"):
        whole = sum(one.queries * one.numbers[name] for one in found.classes["i2t"]) / 30
        assert whole == pytest.approx(result[f"i2t/{name}"])
    assert found.notes() == []


def test_sums_have_no_classes_and_absent_directions_neither():
    lists = RankedLists({"t2i": [[0, 1], [1, 0]]}, (2, 2))
    found = by_class(evaluate(similarity=lists, image_of_caption=[0, 1], measures=["R@1", "rsum"][:1]), ["a", "b"])
    assert list(found.classes) == ["t2i"]
    found = by_class(evaluate(similarity=np.eye(2), image_of_caption=[0, 1]), ["a", "b"])
    assert "rsum" not in found.classes["i2t"][0].numbers


def test_results_that_do_not_fit_are_refused(tmp_path):
    result = measured(np.eye(3), ["a", "b", "a"], np.arange(3))
    with pytest.raises(UserError, match="labels of 2 images, and image 2 was measured; give"):
        by_class(result, ["a", "b"])
    with pytest.raises(UserError, match="no values per query; evaluate again"):
        by_class(replace(result, _per_query={}), ["a", "b", "a"])
    folds = evaluate(similarity=np.eye(5000), image_of_caption=np.arange(5000), measures=["R@1"])
    several = type(folds)(**{**vars(folds), "gallery": {"i2t": (2500, 2500), "t2i": (2500, 2500)}})
    with pytest.raises(UserError, match="several galleries; evaluate under protocol 'labels'"):
        by_class(several, ["a"] * 5000)


def test_it_is_kept_in_the_file_of_the_result(tmp_path):
    labels = ["a", ["b", "c"], []]
    bare = measured(np.eye(3), labels, [0, 1, 2], ["MAP"])
    found = by_class(bare, labels)
    result = type(bare)(**{**vars(bare), "by_class": found})
    for written in (result, replace(result, _per_query={}, _image_of_query={}, _query_ids={})):
        written.to_json(tmp_path / "r.json")
        assert Result.from_json(tmp_path / "r.json").by_class == found
    bare.to_json(tmp_path / "bare.json")
    assert "by_class" not in json.loads((tmp_path / "bare.json").read_text())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"queries": 9}, "9 of 3 queries"),
        ({"numbers": {"P@7": 1.0}}, "P@7 was not measured"),
        ({"numbers": {"MAP": 101.0}}, "MAP is 101, where 0..100 is possible"),
        ({"numbers": {"MAP": "many"}}, "by_class.classes.i2t.0.numbers.MAP: must be a number"),
        ({"numbers": {"MAP": 12.5}}, "altered"),
    ],
)
def test_damaged_classes_of_a_file_are_refused(tmp_path, change, why):
    labels = ["a", "b", "a"]
    bare = measured(np.eye(3), labels, [0, 1, 2], ["MAP"])
    type(bare)(**{**vars(bare), "by_class": by_class(bare, labels)}).to_json(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text())
    content["by_class"]["classes"]["i2t"][0] |= change
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=why):
        Result.from_json(tmp_path / "r.json")


def test_plain_values_read_back():
    labels = ["a", "b"]
    found = by_class(measured(np.eye(2), labels, [0, 0], ["MAP"]), labels)
    again = read_as(ByClass, as_json(found))
    assert again.without_label == found.without_label
    assert math.isnan(again.classes["i2t"][1].numbers["MAP"])  # no caption has the label
