"""Against programs of others where definitions agree: per query, to 1e-9."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.metrics import DIRECTIONS, CheckedDegrees, MatrixSource, Positives, ProductSource, measure_all, parse

QUERIES, GALLERY = 25, 60


def peer(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: no comparison with it")


@pytest.fixture(scope="module")
def world():
    """Scores without ties, since programs break ties differently, and whole grades, since others know no degrees."""
    generator = np.random.default_rng(0)
    scores = generator.permutation(QUERIES * GALLERY).reshape(QUERIES, GALLERY) / 1000.0
    grades = generator.choice([0, 0, 0, 1, 2, 3], size=(QUERIES, GALLERY))
    grades[:, 0] = 1  # somebody is right for every query
    return scores, grades


def ours(world, names):
    """One value per query, image queries; whatever has a grade is a positive."""
    scores, grades = world
    positives = [np.flatnonzero(row > 0) for row in grades]
    starts = np.cumsum([0, *map(len, positives)])
    right = {
        "i2t": Positives(starts, np.concatenate(positives)),
        "t2i": Positives(np.zeros(GALLERY + 1, dtype=np.int64), np.empty(0, dtype=np.int64)),
    }
    degrees = CheckedDegrees(lambda i, c: grades[i][:, c].astype(float), np.arange(QUERIES), np.arange(GALLERY))
    owners = np.zeros(GALLERY, dtype=np.int64)
    found = measure_all(MatrixSource(scores), owners, [parse(name) for name in names], degrees, positives=right)
    return {name: found.values["i2t", parse(name)] for name in names}


SAME_AS_RANX = {
    "R@5": "hit_rate@5",
    "Recall@10": "recall@10",
    "MRR": "mrr",
    "MAP": "map",
    "P@10": "precision@10",
    "RPrecision": "r-precision",
    "nDCG@10": "ndcg@10",
}
SAME_AS_IR_MEASURES = {
    "R@5": "Success@5",
    "Recall@10": "R@10",
    "MRR": "RR",
    "MAP": "AP",
    "P@10": "P@10",
    "RPrecision": "Rprec",
    "nDCG@10": "nDCG@10",
}


@pytest.mark.slow
def test_ranx(world):
    ranx = peer("ranx")
    scores, grades = world
    run = {f"q{q:02}": {f"d{d}": float(scores[q, d]) for d in range(GALLERY)} for q in range(QUERIES)}
    right = {f"q{q:02}": {f"d{d}": int(grades[q, d]) for d in np.flatnonzero(grades[q])} for q in range(QUERIES)}
    theirs = ranx.evaluate(
        ranx.Qrels(right), ranx.Run(run), list(SAME_AS_RANX.values()), return_mean=False, make_comparable=True
    )
    for name, values in ours(world, SAME_AS_RANX).items():
        np.testing.assert_allclose(values, 100 * theirs[SAME_AS_RANX[name]], rtol=0, atol=1e-9, err_msg=name)


def test_ir_measures(world):
    ir_measures = peer("ir_measures")
    scores, grades = world
    run = [ir_measures.ScoredDoc(f"{q}", f"{d}", scores[q, d]) for q in range(QUERIES) for d in range(GALLERY)]
    right = [ir_measures.Qrel(f"{q}", f"{d}", int(grades[q, d])) for q in range(QUERIES) for d in range(GALLERY)]
    measures = {ir_measures.parse_measure(theirs): name for name, theirs in SAME_AS_IR_MEASURES.items()}
    found = ours(world, SAME_AS_IR_MEASURES)
    seen = 0
    for one in ir_measures.iter_calc(list(measures), right, run):
        name = measures[one.measure]
        assert 100 * one.value == pytest.approx(found[name][int(one.query_id)], abs=1e-9), name
        seen += 1
    assert seen == len(measures) * QUERIES


def test_precision_at_levels_of_recall_is_that_of_trec_eval(world):
    ir_measures = peer("ir_measures")
    scores, grades = world
    run = [ir_measures.ScoredDoc(f"{q}", f"{d}", scores[q, d]) for q in range(QUERIES) for d in range(GALLERY)]
    right = [ir_measures.Qrel(f"{q}", f"{d}", int(grades[q, d])) for q in range(QUERIES) for d in range(GALLERY)]
    levels = [ir_measures.parse_measure(f"IPrec@{tenths / 10:.1f}") for tenths in range(11)]
    found = ours(world, ["AP11"])["AP11"]
    theirs = np.full_like(found, np.nan)
    for one in ir_measures.iter_calc(levels, right, run):
        theirs[int(one.query_id), levels.index(one.measure)] = 100 * one.value
    # It takes int(0.7 * 33 + 0.9) positives to reach 0.7 of 33: 23, since the product slips, where 24 are needed.
    positives = (grades > 0).sum(axis=1)
    slips = [[int(t / 10 * n + 0.9) != -(-t * n // 10) for t in range(11)] for n in positives.tolist()]
    assert np.sum(slips) < len(slips)
    np.testing.assert_allclose(found[~np.array(slips)], theirs[~np.array(slips)], rtol=0, atol=1e-9)


def test_average_precision_of_the_first_ranks_is_that_of_torchmetrics(world):
    """It divides by the positives among the first K; it takes scores of 0 and below as not retrieved."""
    retrieval, torch = peer("torchmetrics.functional.retrieval"), peer("torch")
    scores, grades = world
    theirs = [
        100 * float(retrieval.retrieval_average_precision(torch.tensor(row + 1), torch.tensor(own > 0), top_k=7))
        for row, own in zip(scores, grades, strict=True)
    ]
    np.testing.assert_allclose(ours(world, ["MAP@7"])["MAP@7"], theirs, rtol=0, atol=1e-4)  # theirs is in float32


def test_average_precision_of_what_is_possible_is_that_of_trec_eval_but_for_the_divisor(world):
    ir_measures = peer("ir_measures")
    scores, grades = world
    run = [ir_measures.ScoredDoc(f"{q}", f"{d}", scores[q, d]) for q in range(QUERIES) for d in range(GALLERY)]
    right = [ir_measures.Qrel(f"{q}", f"{d}", int(grades[q, d])) for q in range(QUERIES) for d in range(GALLERY)]
    positives = (grades > 0).sum(axis=1)
    found = ours(world, ["MAP@10(of_possible)"])["MAP@10(of_possible)"]
    for one in ir_measures.iter_calc([ir_measures.parse_measure("AP@10")], right, run):
        query = int(one.query_id)
        of_all = found[query] * min(10, positives[query]) / positives[query]
        assert 100 * one.value == pytest.approx(of_all, abs=1e-9)


@pytest.mark.slow
def test_eccv_caption_on_its_own_files():
    """The positives that come with the program, COCO's captions and images by their numbers, made-up embeddings."""
    peer("eccv_caption")
    metrics = importlib.import_module("eccv_caption").Metrics()
    data = Path(importlib.import_module("eccv_caption").__file__).parent / "data"
    caption_ids = np.load(data / "coco_test_ids.npy")
    of_caption = {
        int(key): own[0] for key, own in json.loads((data / "original_caption_to_image.json").read_text()).items()
    }
    image_ids = np.array(list(dict.fromkeys(int(of_caption[int(one)]) for one in caption_ids)))
    image_at, caption_at = ({int(one): at for at, one in enumerate(ids)} for ids in (image_ids, caption_ids))
    owners = np.array([image_at[int(of_caption[int(one)])] for one in caption_ids])
    generator = np.random.default_rng(0)
    image = generator.standard_normal((len(image_ids), 8), dtype=np.float32)
    text = image[owners] + generator.standard_normal((len(owners), 8), dtype=np.float32)
    source = ProductSource(image, text, np.argsort(owners, kind="stable"))

    # ECCV names two captions outside the gallery: the program counts them among R, though nobody can retrieve them.
    checked = metrics.eccv_gts["i2t"]
    metrics.eccv_gts["i2t"] = {key: [one for one in own if one in caption_at] for key, own in checked.items()}
    lists = {"i2t": {}, "t2i": {}}
    ids = {"i2t": (image_ids, caption_ids), "t2i": (caption_ids, image_ids)}
    for way, blocks in (("i2t", source.rows(500)), ("t2i", source.columns(2500))):
        for which, scores in blocks:
            some = np.argpartition(-scores, 100, axis=1)[:, :100]
            order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
            best = np.take_along_axis(some, order, axis=1)
            lists[way] |= dict(zip(ids[way][0][which].tolist(), ids[way][1][best].tolist(), strict=True))
    wanted = ("coco_5k_recalls", "cxc_recalls", "eccv_r1", "eccv_map_at_r", "eccv_rprecision")
    theirs = metrics.compute_all_metrics(lists["i2t"], lists["t2i"], target_metrics=wanted, Ks=(1, 5, 10))

    at = {"i2t": (image_at, caption_at), "t2i": (caption_at, image_at)}
    recalls = {f"r{k}": f"R@{k}" for k in (1, 5, 10)}
    for gts, names in (
        (metrics.coco_gts, {f"coco_5k_{key}": value for key, value in recalls.items()}),
        (metrics.cxc_gts, {f"cxc_{key}": value for key, value in recalls.items()}),
        (metrics.eccv_gts, {"eccv_r1": "R@1", "eccv_map_at_r": "MAP@R", "eccv_rprecision": "RPrecision"}),
    ):
        right = {}
        for way in DIRECTIONS:
            queries, candidates = at[way]
            own = {queries[key]: sorted(candidates[one] for one in found) for key, found in gts[way].items()}
            rows = [own.get(query, []) for query in range(len(queries))]
            starts = np.cumsum([0, *map(len, rows)])
            right[way] = Positives(starts, np.array([one for row in rows for one in row], dtype=np.int64))
        found = measure_all(source, owners, [parse(name) for name in names.values()], positives=right)
        for key, name in names.items():
            for way in DIRECTIONS:
                number = parse(name).aggregate(found.values[way, parse(name)])
                assert number == pytest.approx(100 * theirs[key][way], abs=1e-9), (key, way)
