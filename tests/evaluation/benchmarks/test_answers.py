"""Numbers of each benchmark against loops over the papers' equations.

Also tests rungwise.evaluation.benchmarks._questions.
"""

import json
from collections import defaultdict

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation.benchmarks import evaluate_benchmark, read_benchmark
from tests.benchmark_folders import FOLDERS, circo, draw, mmeb, sugarcrepe, winoground


@pytest.fixture
def scored():
    """Scores by example, query and candidate, drawn once, with ties."""
    draws = np.random.default_rng(3)
    table = defaultdict(lambda: int(draws.integers(0, 3)))

    def score(question):
        # One score for a pair, whichever side asks, as a model gives it.
        return np.array([table[tuple(sorted((question.query, int(one))))] for one in question.candidates], np.float32)

    return score


def test_winoground_is_text_image_and_group_score(tmp_path, scored):
    for number in range(3, 40):
        winoground(tmp_path)
        lines = (tmp_path / "examples.jsonl").read_text().splitlines()
        for more in range(3, number):
            entry = json.loads(lines[0]) | {"id": more, "caption_0": f"red {more}", "caption_1": f"{more} red"}
            lines.append(json.dumps(entry))
    (tmp_path / "examples.jsonl").write_text("\n".join(lines))
    benchmark = read_benchmark(tmp_path)
    result = evaluate_benchmark(benchmark, scored)
    place = {tuple(item): at for at, item in enumerate(benchmark.items.tolist())}
    names = {name.rpartition("/")[2].removesuffix(".png"): at for at, name in enumerate(benchmark.picture_ids)}
    totals = defaultdict(list)
    for entry in map(json.loads, lines):
        s = {}
        for c in (0, 1):
            for i in (0, 1):
                text = place[benchmark.texts.index(entry[f"caption_{c}"]), -1]
                picture = place[-1, names[entry[f"image_{i}"]]]
                s[c, i] = scored(type("Q", (), {"query": text, "candidates": [picture]}))[0]
        text = s[0, 0] > s[1, 0] and s[1, 1] > s[0, 1]
        image = s[0, 0] > s[0, 1] and s[1, 1] > s[1, 0]
        for name, value in (("text", text), ("image", image), ("group", text and image)):
            totals[name].append(100 * value)
            totals[f"{name}({entry['collapsed_tag']})"].append(100 * value)
    assert len(totals["group"]) == 39
    assert {name: pytest.approx(np.mean(own)) for name, own in totals.items()} == dict(result.numbers)


def test_sugarcrepe_has_accuracies_and_means_of_kinds(tmp_path, scored):
    benchmark = read_benchmark(sugarcrepe(tmp_path))
    result = evaluate_benchmark(benchmark, scored)
    own = defaultdict(list)
    for question in benchmark.questions:
        positive, negative = scored(question)
        own[question.group].append(100 if positive > negative else 0)
    means = {category: np.mean(values) for category, values in own.items()}
    assert result["accuracy(add)"] == pytest.approx((means["add_att"] + means["add_obj"]) / 2)
    assert result["accuracy(swap)"] == means["swap_att"]
    assert result["accuracy"] == pytest.approx(np.mean([one for values in own.values() for one in values]))
    assert result.means["accuracy(add)"] == ("accuracy(add_att)", "accuracy(add_obj)")


def test_circo_is_over_the_whole_gallery_with_the_reference_in_it(tmp_path, scored):
    benchmark = read_benchmark(circo(tmp_path))
    assert [len(one.candidates) for one in benchmark.questions] == [6, 6]
    assert benchmark.questions[0].candidates is benchmark.questions[1].candidates
    gallery = benchmark.questions[0].candidates
    said = [benchmark.picture_ids[benchmark.items[gallery[at], 1]] for at in benchmark.questions[1].right]
    assert [name[-6:] for name in said] == ["14.jpg", "15.jpg"]
    result = evaluate_benchmark(benchmark, scored)
    assert {f"{name}@{k}" for name in ("mAP", "Recall") for k in (5, 10, 25, 50)} < set(result)
    assert result.per_question["mAP@10(cardinality)"] == result.per_question["mAP@10"][:1]
    assert result["Recall@10"] == 100
    assert "test.json has no answers" in result.warnings[0]


def test_mmeb_is_the_mean_of_its_data_sets(tmp_path, scored):
    benchmark = read_benchmark(mmeb(tmp_path))
    assert [one.right.tolist() for one in benchmark.questions] == [
        [0],
        [0, 2],
        [0],
    ]  # of equal candidates each is right
    result = evaluate_benchmark(benchmark, scored)
    assert result["P@1"] == pytest.approx((result["P@1(Colours)"] + result["P@1(Changed)"]) / 2)
    assert "3 placeholders such as <|image_1|> were taken out of texts" in result.warnings


@pytest.mark.parametrize("layout", FOLDERS)
def test_examples_that_need_a_lost_picture_are_left_out(layout, tmp_path, scored):
    whole = read_benchmark(FOLDERS[layout](tmp_path))
    lost = int(whole.items[whole.questions[0].query, 1])
    if lost < 0:
        lost = int(whole.items[whole.questions[0].candidates[0], 1])
    kept = whole.without_pictures({lost})
    assert kept.left_out == {
        "unreadable picture": len({one.example for one in whole.questions} - {one.example for one in kept.questions})
    }
    assert kept.questions
    for one in kept.questions:
        asked = kept.items[[one.query, *one.candidates]]
        assert lost not in asked[:, 1]
    assert evaluate_benchmark(kept, scored).left_out == kept.left_out
    with pytest.raises(UserError, match="no question is left"):
        whole.without_pictures(set(range(len(whole.pictures))))


def test_pictures_of_a_shared_gallery_move_its_right_answers(tmp_path):
    unasked = circo(tmp_path)
    draw(unasked / "COCO2017_unlabeled/unlabeled2017/000000000001.jpg", "red")
    (unasked / "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json").unlink()
    whole = read_benchmark(unasked)
    assert "is not, to count them" in " ".join(whole.warnings)
    kept = whole.without_pictures({whole.picture_ids.index("COCO2017_unlabeled/unlabeled2017/000000000001.jpg")})
    assert [one.right.tolist() for one in kept.questions] == [[at - 1 for at in one.right] for one in whole.questions]
    assert "1 pictures of the gallery could not be read" in kept.warnings


def test_a_benchmark_is_hashed_by_what_it_asks(tmp_path):
    hashes = set()
    for layout, make in FOLDERS.items():
        folder = make(tmp_path / layout)
        hashes.add(read_benchmark(folder).content_hash())
        assert read_benchmark(folder).content_hash() in hashes
    assert len(hashes) == 4
    text = (tmp_path / "sugarcrepe/add_att.json").read_text()
    (tmp_path / "sugarcrepe/add_att.json").write_text(text.replace("a green car", "a grey car"))
    assert read_benchmark(tmp_path / "sugarcrepe").content_hash() not in hashes
