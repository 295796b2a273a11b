"""Our models, search and degrees under mteb itself. Also tests rungwise.integrations.mteb._mteb_task."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from rungwise.calibration import FlatThreshold, TopK
from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import FeatureRows, ImageCaptions, read
from rungwise.data.pictures import load_array
from rungwise.evaluation import EvaluationSettings, evaluate
from rungwise.metrics import JudgedQueries
from rungwise.models import DualEncoder, EncodedImages
from rungwise.relevance import HumanJudgements, TfIdf
from rungwise.relevance.human import Judgement
from rungwise.similarity import Cosine, Order

pytestmark = pytest.mark.slow  # importing mteb alone takes seconds
WAYS = ("i2t", "t2i")
LEVELS = (0.5, 0.75, 0.9)
FLOATS = ("nDCG@10", "NCS@10", "CS@5", "R@1", "R@5", "MedR")


@pytest.fixture(scope="module")
def ours() -> ModuleType:
    from rungwise.integrations import mteb

    return mteb


class Shades(DualEncoder):
    """A picture is its mean colour, and a text a colour drawn by its words; no two of them are alike."""

    dimension, fingerprint, similarity, kind = 3, "5hade5" * 10, Cosine(), "shades"

    def encode_image(self, pictures: Any, *, progress: Any = None, cache: Any = None) -> EncodedImages:
        rows = np.array([load_array(one).mean(axis=(1, 2)) for one in pictures], np.float32).reshape(-1, 3)
        return EncodedImages(self._unit(rows), np.arange(len(rows)))

    def encode_text(self, texts: Any) -> NDArray[np.float32]:
        drawn = [np.random.default_rng(list(text.encode())).random(3) for text in texts]
        return self._unit(np.array(drawn, np.float32).reshape(-1, 3))

    @staticmethod
    def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> ImageCaptions:
    """Fifteen pictures with no caption, one or two."""
    folder, draw = tmp_path_factory.mktemp("shades"), np.random.default_rng(0)
    owners = [image for image in range(15) for _ in range(image % 3)]
    for image in range(15):
        pixels = np.broadcast_to(draw.integers(0, 255, 3, dtype=np.uint8), (20, 30, 3))
        Image.fromarray(pixels).save(folder / f"{image}.png")
    names = tuple(f"{image}.png" for image in range(15))
    texts = tuple(f"caption {number}" for number in range(len(owners)))
    paths = tuple(folder / name for name in names)
    return ImageCaptions(names, texts, np.array(owners), paths=paths, name="fifteen shades")


@pytest.fixture(scope="module")
def degrees(data: ImageCaptions) -> NDArray[np.float32]:
    """Float degrees; every query has one above the first level."""
    drawn = np.random.default_rng(1).random((len(data), len(data.captions))).astype(np.float32)
    drawn[np.arange(15), np.arange(15)] = 0.95
    return drawn


def scores_of(result: Any) -> dict[str, Any]:
    return result.task_results[0].scores["test"][0]


def measured(data: ImageCaptions, relevance: Any, measures: Any, model: DualEncoder | None = None) -> Any:
    scores = (model or Shades()).on(data).for_evaluation()
    return evaluate(**scores, image_of_caption=data.image_of_caption, relevance=relevance, measures=measures)


def slow_ndcg(scores: NDArray[Any], gains: NDArray[Any], k: int) -> float:
    """nDCG@k of (queries, candidates), by loops."""
    found = []
    for query in range(len(scores)):
        order = sorted(range(scores.shape[1]), key=lambda one: -scores[query, one])
        got = sum(gains[query, one] / math.log2(rank + 2) for rank, one in enumerate(order[:k]))
        ideal = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(sorted(gains[query], reverse=True)[:k]))
        found.append(got / ideal)
    return sum(found) / len(found)


@pytest.mark.parametrize("way", WAYS)
def test_mteb_counts_the_gains_as_we_do_and_the_degrees_stand_beside(
    way: str, ours: ModuleType, data: ImageCaptions, degrees: NDArray[np.float32], tmp_path: Path
) -> None:
    gains = np.searchsorted(LEVELS, degrees, side="right").astype(np.float32)
    task = ours.DegreeTask(data, degrees, way, levels=LEVELS, measures=FLOATS)
    found = scores_of(ours.evaluate(Shades(), task, folder=tmp_path))
    on_gains = measured(data, gains, ["nDCG@10"])
    assert found["ndcg_at_10"] == pytest.approx(on_gains[f"{way}/nDCG@10"] / 100, abs=5.1e-6)  # which mteb rounds
    scores = Shades().on(data).matrix()
    by_loops = slow_ndcg(*((scores, gains) if way == "i2t" else (scores.T, gains.T)), 10)
    assert found["ndcg_at_10"] == pytest.approx(by_loops, abs=5.1e-6)
    on_degrees = measured(data, degrees, FLOATS)
    assert {f"{way}/{one}": found[f"{way}/{one}"] for one in FLOATS} == pytest.approx(
        {name: one for name, one in on_degrees.numbers.items() if name.startswith(way)}, abs=1e-9
    )
    assert found["main_score"] == found["ndcg_at_10"]
    assert found["rungwise"]["levels"] == list(LEVELS)
    assert "levels 0.5, 0.75, 0.9" in task.metadata.description
    place = tmp_path / "results" / "rungwise__shades" / Shades().fingerprint[:40] / f"fifteen-shades-{way}.json"
    written = json.loads(place.read_text())["scores"]["test"][0]
    assert written["rungwise"] == found["rungwise"]
    assert {name: written[name] for name in found if "/" in name} == pytest.approx(
        {name: one for name, one in found.items() if "/" in name}, abs=5.1e-7
    )  # mteb writes six decimals


@pytest.mark.parametrize("way", WAYS)
def test_its_hit_rate_is_our_recall(way: str, ours: ModuleType, data: ImageCaptions) -> None:
    own = data.positives(np.arange(len(data)), np.arange(len(data.captions))).astype(float)
    task = ours.DegreeTask(data, own, way, levels=(1,), measures=["R@1", "R@5"])
    found, alone = scores_of(ours.evaluate(Shades(), task)), measured(data, None, ["R@1", "R@5"])
    for k in (1, 5):
        assert 100 * found[f"hit_rate_at_{k}"] == pytest.approx(alone[f"{way}/R@{k}"], abs=5.1e-4)
        assert found[f"{way}/R@{k}"] == pytest.approx(alone[f"{way}/R@{k}"], abs=1e-9)
    assert found["rungwise"]["queries"] == (10 if way == "i2t" else len(data.captions))


@pytest.mark.parametrize("way", WAYS)
def test_an_unsymmetric_similarity_has_its_sides(
    way: str, ours: ModuleType, data: ImageCaptions, degrees: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Shades()
    monkeypatch.setattr(Shades, "similarity", Order())
    found = scores_of(ours.evaluate(model, ours.DegreeTask(data, degrees, way, levels=LEVELS)))
    assert found[f"{way}/nDCG@10"] == pytest.approx(measured(data, degrees, ["nDCG@10"], model)[f"{way}/nDCG@10"])


def test_equal_scores_stand_by_falling_id_in_mteb_and_by_position_here(
    ours: ModuleType, data: ImageCaptions, degrees: NDArray[np.float32]
) -> None:
    task = ours.DegreeTask(data, degrees, "i2t", levels=LEVELS, measures=["nDCG@1"])
    same = {image: dict.fromkeys(data.caption_ids, 0.5) for image in data.image_ids}
    assert task.values(same)["nDCG@1"] == pytest.approx(100 * degrees[:, 0] / degrees.max(axis=1))


def test_lists_end_where_the_search_says(ours: ModuleType, data: ImageCaptions, degrees: NDArray[np.float32]) -> None:
    measures = ["nDCG@10", "R@5", "NCS@10(non_gt)", "CutF1(0.5)"]
    task = ours.DegreeTask(data, degrees, "t2i", levels=LEVELS, measures=measures)
    found = scores_of(ours.evaluate(ours.MtebSearch(Shades(), ends=TopK(3)), task))
    settings = EvaluationSettings(ends=TopK(3))
    scores, gains = Shades().on(data).matrix().T, np.searchsorted(LEVELS, degrees.T, side="right")
    alone = evaluate(
        similarity=scores.T, image_of_caption=data.image_of_caption, relevance=degrees, measures=["CutF1(0.5)", "R@3"],
        settings=settings,
    )  # fmt: skip
    assert found["t2i/CutF1(t=0.5)"] == pytest.approx(alone["t2i/CutF1(t=0.5)"])
    assert found["t2i/R@5"] == pytest.approx(alone["t2i/R@3"])
    cut = np.where(np.argsort(np.argsort(-scores, axis=1), axis=1) < 3, 1, 0)
    for name, of, unit in (("ndcg_at_10", gains, 1), ("t2i/nDCG@10", degrees.T, 100)):
        got = [slow_ndcg(scores[[q]], of[[q]] * cut[[q]], 10) for q in range(len(scores)) if (of[q] * cut[q]).any()]
        best = [
            slow_best(of[q] * cut[q], 10) / slow_best(of[q], 10) for q in range(len(scores)) if (of[q] * cut[q]).any()
        ]
        assert found[name] == pytest.approx(unit * float(np.dot(got, best)) / len(scores), abs=5.1e-6 * unit)


def slow_best(gains: NDArray[Any], k: int) -> float:
    """The best sum that can be had of these gains."""
    return sum(float(gain) / math.log2(rank + 2) for rank, gain in enumerate(sorted(gains, reverse=True)[:k]))


def test_a_query_without_a_hit_counts_nothing(ours: ModuleType, data: ImageCaptions, degrees: Any) -> None:
    task = ours.DegreeTask(data, degrees, "t2i", levels=LEVELS, measures=["nDCG@10", "R@5"])
    found = scores_of(ours.evaluate(ours.MtebSearch(Shades(), ends=FlatThreshold(2.0)), task))
    assert [found[name] for name in ("ndcg_at_10", "t2i/nDCG@10", "t2i/R@5")] == [0, 0, 0]
    own = scores_of(ours.evaluate(ours.MtebSearch(Shades()), task))  # without judgements, by unrelated texts
    assert 0 <= own["recall_at_100"] < 1


def test_shown_candidates_need_not_be_the_best(ours: ModuleType, data: ImageCaptions, degrees: Any) -> None:
    class Odd:
        def judge(self, scores: Any, direction: str, queries: Any) -> JudgedQueries:
            shown = np.zeros(scores.shape, bool)
            shown[:, [0, 2]] = True
            return JudgedQueries(np.full(len(scores), 2), np.ones(len(scores)), shown=shown)

    task, seen = ours.DegreeTask(data, degrees, "t2i", levels=LEVELS), {}
    task.values = lambda results: seen.update(results) or {"nDCG@10": np.zeros(1), "NCS@10": np.zeros(1)}
    ours.evaluate(ours.MtebSearch(Shades(), ends=Odd()), task)
    assert {frozenset(own) for own in seen.values()} == {frozenset({"0.png", "2.png"})}


def test_an_end_is_judged_among_all_where_mteb_names_candidates(ours: ModuleType, data: ImageCaptions) -> None:
    task = ours.DegreeTask(data, np.ones((len(data), len(data.captions))), "t2i", levels=(1,))
    search, split = ours.MtebSearch(Shades(), ends=TopK(len(data))), task.dataset["default"]["test"]
    search.index(split["corpus"], encode_kwargs={})
    listed = {one: ["3.png", "1.png"] for one in data.caption_ids[1:]}
    found = search.search(split["queries"], top_k=1, encode_kwargs={}, top_ranked=listed)
    assert {len(own) for own in list(found.values())[1:]} == {1}
    assert found[data.caption_ids[0]] == {}
    assert {one for own in found.values() for one in own} <= {"1.png", "3.png"}


def test_the_protocols_are_kept(ours: ModuleType, data: ImageCaptions) -> None:
    import mteb

    encoder, search = ours.MtebEncoder(Shades(), name="we/shades"), ours.MtebSearch(Shades())
    kinds = (mteb.EncoderProtocol, mteb.SearchProtocol)
    assert [isinstance(encoder, one) for one in kinds] == [True, False]
    assert [isinstance(search, one) for one in kinds] == [False, True]
    assert (encoder.mteb_model_meta.name, search.mteb_model_meta.name) == (
        "we/shades", "rungwise/shades-with-an-end",
    )  # fmt: skip
    first, second = Shades().encode_text(["a", "b"]), Shades().encode_text(["c", "d"])
    assert np.allclose(encoder.similarity_pairwise(first, second), np.diagonal(encoder.similarity(first, second)))
    assert encoder.similarity(first[0], second).shape == (1, 2)
    with pytest.raises(UserError, match="has both a text and a picture; our models read one"):
        encoder.encode([{"text": ["a"], "image": [Image.new("RGB", (2, 2))]}])
    with pytest.raises(UserError, match="neither"):
        encoder.encode([{"audio": [0]}])
    assert encoder.encode([]).shape == (0, 3)


def test_judgements_of_people_are_degrees(ours: ModuleType, data: ImageCaptions, tmp_path: Path) -> None:
    """A table as CxC's, and ECCV Caption's two files; pairs that nobody judged count 0."""
    table = tmp_path / "sits.csv"
    table.write_text(f"caption,image,agg_score\n{data.caption_ids[0]},1.png,4.2\n{data.caption_ids[1]},3.png,1.0\n")
    task = ours.DegreeTask(data, HumanJudgements.read(table, data), "t2i", levels=(1, 3, 5))
    assert task.gains == {data.caption_ids[0]: {"1.png": 2}, data.caption_ids[1]: {"3.png": 1}}
    found = scores_of(ours.evaluate(Shades(), task))
    assert found["rungwise"]["pairs_without_degree"] == len(data) * len(data.captions) - 2
    assert found["rungwise"]["queries"] == 2
    i2t, t2i = tmp_path / "i2t.json", tmp_path / "t2i.json"
    i2t.write_text(json.dumps({"1.png": [data.caption_ids[0], data.caption_ids[2]]}))
    t2i.write_text(json.dumps({data.caption_ids[0]: ["1.png"]}))
    task = ours.DegreeTask(data, HumanJudgements.eccv(i2t, t2i, data), "i2t", levels=(1,))
    assert task.gains == {"1.png": {data.caption_ids[0]: 1, data.caption_ids[2]: 1}}


def test_what_people_graded_here_is_a_task(ours: ModuleType, data: ImageCaptions, tmp_path: Path) -> None:
    said = [("Ada", 4), ("Bo", 3)], [("Ada", 1)]
    lines = [
        Judgement(
            data.image_ids[1], data.caption_ids[at], grade, who, "2026-05-01T12:00:00Z", hash_of_text(text)
        ).line()
        for at, (text, grades) in enumerate(zip(data.captions, said, strict=False))
        for who, grade in grades
    ]
    (tmp_path / "grades.jsonl").write_bytes(b"".join(lines))
    graded = HumanJudgements.read(tmp_path / "grades.jsonl", data)
    task = ours.DegreeTask(data, graded, "t2i", levels=(1, 2, 3, 4))
    assert task.gains == {data.caption_ids[0]: {data.image_ids[1]: 3}, data.caption_ids[1]: {data.image_ids[1]: 1}}


def test_a_float_measure_may_be_the_main_score(ours: ModuleType, data: ImageCaptions, degrees: Any) -> None:
    task = ours.DegreeTask(
        data, degrees, "i2t", levels=LEVELS, name="Mine", main_score="i2t/NCS@10", languages=("deu-Latn",)
    )
    found = scores_of(ours.evaluate(Shades(), task))
    assert found["main_score"] == found["i2t/NCS@10"]
    assert found["languages"] == ["deu-Latn"]
    task.unload_data()
    assert scores_of(ours.evaluate(Shades(), task))["main_score"] == found["main_score"]


def test_what_a_result_depends_on_changes_the_revision(ours: ModuleType, data: ImageCaptions, degrees: Any) -> None:
    asked = [
        (degrees, "i2t", LEVELS), (degrees, "t2i", LEVELS), (degrees, "i2t", (0.5,)), (1 - degrees, "i2t", LEVELS)
    ]  # fmt: skip
    tasks = [ours.DegreeTask(data, one, way, levels=levels) for one, way, levels in asked]
    assert len({one.metadata.revision for one in tasks}) == 4


def test_a_picture_that_is_none_gets_a_line(
    ours: ModuleType, data: ImageCaptions, degrees: Any, tmp_path: Path
) -> None:
    (tmp_path / "0.png").write_bytes(b"no picture")
    for place in (tmp_path / "0.png", tmp_path / "missing.png"):
        spoilt = replace(data, paths=(place, *data.paths[1:]))
        with pytest.raises(UserError, match=r"a picture cannot be read \(.*png'?\); leave it out"):
            ours.evaluate(Shades(), ours.DegreeTask(spoilt, degrees, "t2i", levels=LEVELS))


def test_mistakes_get_a_line(ours: ModuleType, data: ImageCaptions, degrees: Any) -> None:
    def task(*, of: ImageCaptions = data, relevance: Any = degrees, way: str = "i2t", **given: Any) -> Any:
        return ours.DegreeTask(of, relevance, way, **{"levels": LEVELS, **given})

    rows = FeatureRows(np.zeros((len(data), 4), np.float32))
    for make, line in (
        (lambda: task(way="both"), "direction must be 'i2t' or 't2i', got 'both'"),
        (lambda: task(of=replace(data, paths=(), features=rows)), "give data with picture files and captions"),
        (lambda: task(levels=(0.5, 0.5)), r"levels must be rising numbers, got \[0.5, 0.5\]"),
        (lambda: task(levels=()), "levels must be rising numbers"),
        (lambda: task(levels=(7,)), "levels: no pair of fifteen shades has a degree of 7; give lower ones"),
        (lambda: task(measures=["rsum"]), "rsum is a sum over both directions"),
        (lambda: task(measures=["SR@10"]), "SR@10 reads right candidates of its own"),
        (lambda: task(relevance=degrees[:9]), "for 15 images x 15 captions"),
        (lambda: ours.MtebEncoder("model"), "str: gives no vectors"),
        (lambda: ours.MtebEncoder(Shades(), name="shades"), "mteb takes names such as organisation/model"),
    ):
        with pytest.raises(UserError, match=line):
            make()
    with pytest.raises(UserError, match="MedR reads whole rankings, and mteb's lists name as few as 2 of 15"):
        ours.evaluate(ours.MtebSearch(Shades(), ends=TopK(2)), task(measures=["MedR"]))


@pytest.mark.real_data
def test_flickr8k(ours: ModuleType, real_data: Path) -> None:
    """Sixty photos with their captions, and degrees by words and by the crowd."""
    data = read(real_data / "flickr8k").split("test").select(range(60))
    words = TfIdf(data.captions, data.image_of_caption, images=len(data))
    crowd = HumanJudgements.read(real_data / "flickr8k" / "Flickr8k_text" / "CrowdFlowerAnnotations.txt", data)
    for way in WAYS:
        task = ours.DegreeTask(data, words, way, levels=(0.1, 0.2, 0.4))
        found = scores_of(ours.evaluate(Shades(), task))
        alone = measured(data, words, ["nDCG@10", "NCS@10"])
        assert found["rungwise"]["queries"] == len(data if way == "i2t" else data.captions)
        for one in ("nDCG@10", "NCS@10"):
            assert found[f"{way}/{one}"] == pytest.approx(alone[f"{way}/{one}"], abs=1e-9)
    task = ours.DegreeTask(data, crowd, "t2i", levels=(0.2, 0.6))
    assert scores_of(ours.evaluate(Shades(), task))["rungwise"]["queries"] == len(task.gains)
