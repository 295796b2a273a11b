"""What every scorer of regions does, on SCAN."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import computed_in
from rungwise.evaluation import evaluate
from rungwise.models import DualEncoder, load
from rungwise.models import _contracts as contracts
from rungwise.models.regions import _base as base
from rungwise.models.regions import first_kept
from rungwise.models.regions._base import SetScores
from rungwise.models.regions._scan import SCAN, SCANConfig
from tests.models.regions.small import CAPTIONS, coloured_regions, pictures_in, sides_of_features, sides_of_pictures


def of_pictures(**changes: object) -> SCAN:
    torch.manual_seed(0)
    return SCAN.create(SCANConfig(**sides_of_pictures(), dimension=6, **changes), CAPTIONS).eval()


def of_features(data: ImageCaptions, dimension: int = 16) -> SCAN:
    torch.manual_seed(0)
    return SCAN.create(SCANConfig(**sides_of_features(), dimension=dimension), data.captions, data.features).eval()


def test_it_is_no_dual_encoder() -> None:
    assert not isinstance(of_pictures(), DualEncoder)


def test_a_collection_is_scored_as_its_pictures_and_texts_are(tmp_path: Path) -> None:
    model, paths = of_pictures(), pictures_in(tmp_path / "pictures")
    data = ImageCaptions(
        tuple(path.name for path in paths), CAPTIONS, np.arange(8) % 4, tuple(map(str, range(8))), paths=tuple(paths)
    )
    scores = model.on(data, cache=tmp_path / "cache")
    whole = scores.block(np.arange(4), np.arange(8))
    assert whole.shape == scores.shape == (4, 8)
    np.testing.assert_allclose(model.block(paths, CAPTIONS), whole, atol=1e-5)
    np.testing.assert_allclose(model.block([path.read_bytes() for path in paths], CAPTIONS), whole, atol=1e-5)
    np.testing.assert_allclose(scores.block([2, 0], [5, 1, 7]), whole[[2, 0]][:, [5, 1, 7]], atol=1e-6)
    np.testing.assert_allclose(scores.for_evaluation()["similarity"], whole, atol=1e-6)


def test_more_pairs_than_memory_is_given_are_asked_for_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = coloured_regions()
    scores = of_features(data).on(data)
    wanted = evaluate(**scores.for_evaluation(), image_of_caption=data.image_of_caption)
    monkeypatch.setattr(contracts, "MATRIX", 10)
    asked = scores.for_evaluation()
    assert asked["similarity"] is scores
    assert evaluate(**asked, image_of_caption=data.image_of_caption).numbers == wanted.numbers


def test_pictures_that_cannot_be_read_are_left_out_and_listed(tmp_path: Path) -> None:
    model, paths = of_pictures(), pictures_in(tmp_path / "pictures")
    paths[1].write_bytes(b"no picture")
    data = ImageCaptions(
        tuple(path.name for path in paths), CAPTIONS, np.arange(8) % 4, tuple(map(str, range(8))), paths=tuple(paths)
    )
    scores = model.on(data, cache=tmp_path / "cache")
    assert scores.kept.tolist() == [0, 2, 3]
    assert len(scores.issues) == 1
    assert scores.shape == (3, 6)
    with pytest.raises(UserError, match=r"1\.png"):
        model.block(paths, CAPTIONS)


def test_saved_and_loaded_it_scores_alike(tmp_path: Path) -> None:
    model, paths = of_pictures(attend="i2t", smoothing=4.0), pictures_in(tmp_path / "pictures")
    model.save_pretrained(tmp_path / "model", {"data": "nothing"})
    again = load(tmp_path / "model")
    assert isinstance(again, SCAN)
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.block(paths, CAPTIONS), model.block(paths, CAPTIONS))


def test_its_fingerprint_is_of_all_that_a_score_depends_on() -> None:
    fingerprints = {of_pictures(**changes).fingerprint for changes in ({}, {"smoothing": 4.0}, {"pooling": "mean"})}
    assert len(fingerprints) == 3
    assert of_pictures().fingerprint in fingerprints


def test_a_batch_is_scored_as_a_collection_is() -> None:
    data = coloured_regions()
    model = of_features(data)
    pairs = model.read(data, np.arange(len(data)))
    chosen = np.array([3, 0, 7, 8, 20])
    batch = model.batch(pairs, chosen)
    block = model.score(batch).similarity
    assert block.requires_grad
    scores = model.scores_of(pairs)
    np.testing.assert_allclose(block.detach(), scores.block(pairs.image[chosen], chosen), atol=1e-6)
    model.recompute_layers()
    torch.testing.assert_close(model.score(batch).similarity, block)


def test_padding_of_a_batch_changes_no_score() -> None:
    data = coloured_regions()
    model = of_features(data)
    pairs = model.read(data, np.arange(len(data)))
    batch = model.batch(pairs, np.arange(6))
    longer = torch.cat([batch.texts, torch.full((6, 3), 4)], dim=1)
    same = base.EncoderBatch(batch.rows, longer, batch.lengths)
    torch.testing.assert_close(model.score(same).similarity, model.score(batch).similarity)


def test_under_autocast_products_are_rounded_once() -> None:
    data = coloured_regions()
    model = of_features(data, dimension=64)
    pairs = model.read(data, np.arange(len(data)))
    exact = model.scores_of(pairs, nullcontext)
    half = model.scores_of(pairs, lambda: torch.autocast("cpu", torch.bfloat16))
    assert half.regions.dtype == half.words.words.dtype == torch.bfloat16
    everything = np.arange(len(data)), np.arange(len(pairs))
    difference = np.abs(exact.block(*everything) - half.block(*everything))
    assert 0 < difference.max() < 0.03


@pytest.mark.parametrize(("kept", "kind"), [(0.985, "bfloat16"), (0.975, "float32")])
def test_auto_compares_in_half_where_the_ranking_stays_and_says_so(
    monkeypatch: pytest.MonkeyPatch, kept: float, kind: str
) -> None:
    data = coloured_regions()
    model = of_features(data, dimension=64)
    monkeypatch.setattr(base, "first_kept", lambda exact, quick: kept)
    said: list[str] = []
    with computed_in("auto", say=said.append):
        scores = model.on(data)
    assert scores.regions.dtype == scores.words.words.dtype == getattr(torch, kind)
    assert said[-1].startswith(f"pairs compared in {kind}: bfloat16 leaves {100 * kept:.1f} %")


def test_a_precision_that_is_asked_for_is_taken() -> None:
    data = coloured_regions()
    model = of_features(data, dimension=64)
    with computed_in("bfloat16"):
        assert model.on(data).regions.dtype == torch.bfloat16
    assert model.on(data).regions.dtype == torch.float32


def test_the_probe_takes_queries_of_both_directions_from_the_whole_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    data = coloured_regions()
    monkeypatch.setattr(base, "PROBE", 3)
    monkeypatch.setattr(base, "PROBE_GALLERY", 5)
    seen: list[tuple[list[int], list[int]]] = []
    block = SetScores.block

    def watched(scores: SetScores, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        seen.append((images.tolist(), captions.tolist()))
        return block(scores, images, captions)

    monkeypatch.setattr(SetScores, "block", watched)
    with computed_in("auto"):
        of_features(data, dimension=64).on(data)
    count, captions = len(data), len(data.captions)
    assert [len(one) for one in seen[0]] == [3, 5]
    assert [len(one) for one in seen[1]] == [5, 3]
    assert seen[0][0] == [0, round((count - 1) / 2), count - 1]
    assert seen[1][1] == [0, round((captions - 1) / 2), captions - 1]


def test_first_candidates_that_two_rankings_share() -> None:
    draw = np.random.default_rng(0)
    one, other = draw.normal(size=(6, 30)), draw.normal(size=(6, 30))
    shares = []
    for row, second in zip(one, other, strict=True):
        first = sorted(range(30), key=lambda at, row=row: -row[at])[:4]
        shares.append(len(set(first) & set(sorted(range(30), key=lambda at, s=second: -s[at])[:4])) / 4)
    assert first_kept(one, other, k=4) == pytest.approx(sum(shares) / len(shares))
    assert first_kept(one, one) == 1.0
    assert first_kept(one[:, :0], one[:, :0]) == first_kept(one[:0], one[:0]) == 1.0


def test_features_of_another_width_or_vectors_are_refused() -> None:
    data = coloured_regions()
    model = of_features(data)
    with pytest.raises(UserError, match="features of length 9"):
        model.block(FeatureRows(np.zeros((2, 5, 9), np.float32)), ["a dog"])
    with pytest.raises(UserError, match="one vector of 7 numbers for each image"):
        model.block(FeatureRows(np.zeros((2, 7), np.float32)), ["a dog"])
    with pytest.raises(UserError, match="rows of features in place of texts"):
        model.block(data.features, FeatureRows(np.zeros((2, 7), np.float32)))


def test_no_pictures_and_no_texts_have_no_scores() -> None:
    data = coloured_regions()
    model = of_features(data)
    assert model.block(data.features, []).shape == (48, 0)
    scores = model.on(data.select([]))
    assert isinstance(scores, SetScores)
    assert scores.matrix().shape == (0, 0)
