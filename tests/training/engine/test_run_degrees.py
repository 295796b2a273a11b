"""Degrees of a run know the training split alone, wherever they come from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions, with_share
from rungwise.losses import Ladder, MaxOfHinges, Weighted
from rungwise.relevance import CIDErD, DocumentFrequencies, TfIdf, load
from rungwise.relevance.config import Building, source_config
from rungwise.relevance.config import _words as word_sources
from rungwise.relevance.description import describe
from rungwise.scenes import SceneConfig, SceneRelevance, generate
from rungwise.training.config import BestEpoch, DataConfig, TrainConfig, config_of
from rungwise.training.engine import training_degrees, with_training_thresholds
from rungwise.training.engine._run_degrees import validation_degrees

WORDS = np.array(["dog", "cat", "snow", "red", "runs", "roof", "tin", "sleeps"])
SHARES = (0.05, 0.15)
RUNGS = {"shares": SHARES, "margins": (0.2, 0.1, 0.01), "weights": (1.0, 0.5, 0.25)}


@pytest.fixture(scope="module")
def data() -> ImageCaptions:
    """Words that are common in the test split are rare in training; captions stand in no order of their images."""
    draw = np.random.default_rng(0)
    owners = draw.permutation(np.repeat(np.arange(60), 3))
    splits = tuple("test" if image % 3 == 1 else "val" if image % 10 == 3 else "train" for image in range(60))
    captions = []
    for owner in owners:
        lean = np.arange(8, 0, -1.0) if splits[owner] == "train" else np.arange(1.0, 9) ** 2
        captions.append(" ".join(draw.choice(WORDS, 4, p=lean / lean.sum())))
    return ImageCaptions(tuple(f"i{image}" for image in range(60)), tuple(captions), owners, splits=splits)


def training_positions(data: ImageCaptions) -> tuple[np.ndarray, np.ndarray]:
    images = np.flatnonzero(np.array(data.splits) == "train")
    return images, np.flatnonzero(np.isin(data.image_of_caption, images))


def of_the_part(data: ImageCaptions, source: object) -> np.ndarray:
    """What a source of ``data.split("train")`` says, laid out by positions in the whole collection."""
    part = data.split("train")
    images, captions = training_positions(data)
    rows = [part.image_ids.index(data.image_ids[image]) for image in images]
    columns = [part.caption_ids.index(data.caption_ids[caption]) for caption in captions]
    return source.block(rows, columns)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["tfidf", "cider-d", "cider", "{kind: tfidf, tokenizer: whitespace, orders: 2}"])
def test_a_named_source_is_built_on_the_training_split_alone(name: str, data: ImageCaptions) -> None:
    found = training_degrees(DataConfig(relevance=name), data)
    images, captions = training_positions(data)
    got = found.block(images, captions)
    np.testing.assert_array_equal(got, of_the_part(data, source_config(name).build(data.split("train"))))
    everything = replace(source_config(name), frequencies="collection").build(replace(data, splits=()))
    assert np.abs(everything.block(images, captions) - got).max() > 0.02, "the two would not be told apart"
    with pytest.raises(UserError, match="must lie in"):
        found.block([data.splits.index("test")], captions)
    with pytest.raises(UserError, match="must lie in"):
        found.block(images[:1], [np.flatnonzero(~np.isin(data.image_of_caption, images))[0]])


def test_no_caption_of_another_split_reaches_a_source(data: ImageCaptions, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()

    def words(text: str) -> list[str]:
        seen.add(str(text))
        return text.split()

    monkeypatch.setitem(word_sources.TOKENISERS, "whitespace", words)
    config = DataConfig(relevance="{kind: tfidf, tokenizer: whitespace}")
    found = training_degrees(config, data)
    images, captions = training_positions(data)
    found.block(images, captions)
    with_training_thresholds(laddered(), data, found)
    assert seen <= {data.captions[caption] for caption in captions}
    assert len(seen) > 40


def laddered(**changes: object) -> TrainConfig:
    return TrainConfig(loss=config_of(Ladder)(**RUNGS), **changes)  # type: ignore[arg-type]


def test_shares_are_measured_on_the_training_split(data: ImageCaptions, tmp_path: Path) -> None:
    part = data.split("train")
    expected = describe.thresholds(source_config("tfidf").build(part), SHARES)
    config, cuts = with_training_thresholds(laddered(), data, training_degrees(DataConfig(relevance="tfidf"), data))
    assert cuts == expected
    assert config.loss.thresholds == expected
    assert config.loss.shares == ()
    assert config.loss.build().thresholds == expected
    whole = TfIdf(data.captions, data.image_of_caption)
    assert max(abs(a - b) for a, b in zip(cuts, describe.thresholds(whole, SHARES), strict=True)) > 0.01
    # Given degrees of the whole collection are measured on the training split as well.
    images, captions = training_positions(data)
    for given in (whole, CIDErD(data.captions, data.image_of_caption)):
        _, cuts = with_training_thresholds(laddered(), data, given)
        assert cuts == describe.thresholds(given, SHARES, images=images, captions=captions)
        others = given.block(images, captions)[images[:, None] != data.image_of_caption[captions][None, :]]
        for cut, share in zip(cuts, np.cumsum(SHARES), strict=True):
            assert (others >= cut).mean() == pytest.approx(share, rel=0.2)
    both = config_of(Weighted)(losses=(config_of(MaxOfHinges)(), config_of(Ladder)(**RUNGS)), weights=(1.0, 1.0))
    nested, _ = with_training_thresholds(
        TrainConfig(loss=both), data, training_degrees(DataConfig(relevance="tfidf"), data)
    )
    assert nested.loss.losses[1].thresholds == expected
    without = TrainConfig(loss=config_of(Ladder)(thresholds=(0.5,)))
    assert with_training_thresholds(without, data, whole) == (without, ())

    with pytest.raises(UserError, match="loss.shares are measured on degrees of relevance, and there are none; name"):
        with_training_thresholds(laddered(), data, None)


def test_other_training_splits_are_joined(data: ImageCaptions) -> None:
    config = DataConfig(relevance="tfidf", train=("train", "val"))
    found = training_degrees(config, data, Building(train=config.train))
    part = data.split("train", "val")
    source = TfIdf(part.captions, part.image_of_caption, images=len(part))
    image, caption = data.splits.index("val"), int(np.flatnonzero(np.isin(data.image_of_caption, [0]))[0])
    expected = source.block(
        [part.image_ids.index(data.image_ids[image])], [part.caption_ids.index(data.caption_ids[caption])]
    )
    np.testing.assert_array_equal(found.block([image], [caption]), expected)


def test_saved_degrees_of_the_training_split(data: ImageCaptions, tmp_path: Path) -> None:
    part = data.split("train")
    source = TfIdf(part.captions, part.image_of_caption, images=len(part))
    source.save(tmp_path / "part")
    found = training_degrees(DataConfig(relevance=str(tmp_path / "part")), data)
    images, captions = training_positions(data)
    np.testing.assert_array_equal(found.block(images, captions), of_the_part(data, source))
    assert with_training_thresholds(laddered(), data, found)[1] == describe.thresholds(source, SHARES)
    dense = found.dense()
    np.testing.assert_array_equal(dense[np.ix_(images, captions)], of_the_part(data, source))
    assert np.isnan(dense).sum() == dense.size - len(images) * len(captions)


def test_saved_degrees_of_the_whole_collection(data: ImageCaptions, tmp_path: Path) -> None:
    images, captions = training_positions(data)
    for kind in ("tfidf", "cider-d"):
        for frequencies in ("train", "collection"):
            source = source_config({"kind": kind, "frequencies": frequencies}).build(data)
            source.save(tmp_path / f"{kind}-{frequencies}")
        config = DataConfig(relevance=str(tmp_path / f"{kind}-train"))
        found = training_degrees(config, data)
        # Frequencies of the training split in degrees of all captions, and in degrees of its own captions alone.
        alone = training_degrees(DataConfig(relevance=kind), data)
        np.testing.assert_allclose(found.block(images, captions), alone.block(images, captions), atol=1e-5)
        refused = DataConfig(relevance=str(tmp_path / f"{kind}-collection"))
        with pytest.raises(UserError, match="its words were counted in all captions") as caught:
            training_degrees(refused, data)
        assert "\n" not in str(caught.value)
        assert refused.relevance in str(caught.value)


def test_degrees_that_are_none_or_of_other_data_are_one_line(data: ImageCaptions, tmp_path: Path) -> None:
    other = data.select(range(10))
    TfIdf(other.captions, other.image_of_caption, images=10).save(tmp_path / "other")
    changed = replace(data, captions=("something else", *data.captions[1:]))
    source_config({"kind": "tfidf", "frequencies": "train"}).build(changed).save(tmp_path / "changed")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for relevance, message in (
        (str(tmp_path / "other"), "degrees of 10 images and .*save the degrees of these data"),
        (str(tmp_path / "changed"), "save the degrees of these data"),
        (str(tmp_path / "empty"), "no relevance degrees here"),
        (str(tmp_path / "file"), "no relevance degrees here"),
        (str(tmp_path / "nowhere"), "neither a folder of saved degrees nor a source; sources are cider-d"),
        ("bleu", "neither a folder of saved degrees nor a source"),
        ("{kind: bleu}", "no source 'bleu'"),
        ("{kind: tfidf, orders: many}", "orders"),
        ("{kind: [}", "is not YAML"),
        ("{kind: labels}", "label"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            training_degrees(DataConfig(relevance=relevance), data)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", ["folder", "file"])
def test_scenes_bring_their_own(given: str, tmp_path: Path) -> None:
    data = generate(tmp_path / "scenes", SceneConfig(pictures=40, captions_per_picture=2, side=32))
    path = tmp_path / "scenes" if given == "folder" else next((tmp_path / "scenes").glob("captions*"))
    found = training_degrees(DataConfig(path=str(path)), data)
    assert isinstance(found, SceneRelevance)
    own = found.block(data.image_of_caption, np.arange(len(data.captions)))
    assert (np.diagonal(own) == 1).all()
    _, cuts = with_training_thresholds(TrainConfig(loss=config_of(Ladder)(shares=(0.1,))), data, found)
    images = np.flatnonzero(np.array(data.splits) == "train")
    assert cuts == describe.thresholds(found, (0.1,), images=images)
    with pytest.raises(
        UserError, match="the degrees that the data bring along: SceneRelevance: has no degrees of capt"
    ):
        training_degrees(DataConfig(path=str(path), reference="batch"), data)


def test_other_data_bring_none(data: ImageCaptions) -> None:
    assert training_degrees(DataConfig(), data) is None


class Object:
    """Degrees of somebody else: block and dense, and nothing more."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def block(self, images: object, captions: object) -> np.ndarray:
        return self.matrix[np.ix_(np.asarray(images), np.asarray(captions))]

    def dense(self) -> np.ndarray:
        return self.matrix


def test_shares_are_measured_on_degrees_of_any_kind(data: ImageCaptions, tmp_path: Path) -> None:
    source = TfIdf(data.captions, data.image_of_caption)
    _, expected = with_training_thresholds(laddered(), data, source)
    source.save(tmp_path / "saved")
    for given in (source.dense(), source.dense().tolist(), Object(source.dense()), load(tmp_path / "saved")):
        turned, cuts = with_training_thresholds(laddered(), data, given)  # type: ignore[arg-type]
        assert cuts == expected == turned.loss.thresholds
    for given, message in (
        (source.dense().T, r"relevance= has shape \(180, 60\) for 60 images x 180 captions: it is transposed"),
        (Object(np.eye(3)), None),
        ("tfidf", "relevance=: str is no .* table of numbers and has no block"),
        (TfIdf(["a dog"], [0]), "relevance= has degrees of 1 images and 1 captions, but"),
    ):
        with pytest.raises((UserError, IndexError), match=message) as caught:
            with_training_thresholds(laddered(), data, given)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)


def test_shares_are_measured_as_the_batch_asks(data: ImageCaptions) -> None:
    config = laddered(data=DataConfig(relevance="tfidf", reference="batch"))
    found = training_degrees(config.data, data)
    _, cuts = with_training_thresholds(config, data, found)
    images, captions = training_positions(data)
    one = [int(np.flatnonzero(data.image_of_caption == image)[image % 3]) for image in images]
    pairs = found.pair_block(one, captions)  # type: ignore[union-attr]
    others = pairs[images[:, None] != data.image_of_caption[captions][None, :]]
    for cut, share in zip(cuts, np.cumsum(SHARES), strict=True):
        assert (others >= cut).mean() == pytest.approx(share, rel=0.3)
    by_image = with_training_thresholds(laddered(), data, found)[1]
    assert by_image[0] > cuts[0] + 0.01, "the two would not be told apart"


def test_a_rung_that_is_empty_in_most_batches_is_said(data: ImageCaptions) -> None:
    lines: list[str] = []
    draw = np.random.default_rng(0)
    relevance = draw.random((60, 180)).astype(np.float32)
    rungs = {"shares": (0.001, 0.1), "margins": (0.2, 0.1, 0.01), "weights": (1.0, 0.5, 0.25)}
    config = TrainConfig(loss=config_of(Ladder)(**rungs), batch_size=16)  # type: ignore[arg-type]
    with_training_thresholds(config, data, relevance, lines.append)  # type: ignore[arg-type]
    assert len(lines) == 1
    assert lines[0].startswith("rung 1 of the loss (degrees from 0.99")
    assert "is empty in most batches: 0.00" in lines[0]
    with_training_thresholds(replace(config, batch_size=128), data, relevance, lines.append)  # type: ignore[arg-type]
    assert len(lines) == 1


def test_degrees_of_validation(data: ImageCaptions, tmp_path: Path) -> None:
    images = np.flatnonzero(np.array(data.splits) == "val")
    captions = np.flatnonzero(np.isin(data.image_of_caption, images))
    part, training = data.split("val"), data.split("train")
    corpus = DocumentFrequencies.of(training.captions, training.image_of_caption)
    expected = CIDErD(part.captions, part.image_of_caption, document_frequencies=corpus).dense()
    rows = [part.image_ids.index(data.image_ids[image]) for image in images]
    columns = [part.caption_ids.index(data.caption_ids[caption]) for caption in captions]
    expected = expected[np.ix_(rows, columns)]

    def config(name: str, of_training: str = "") -> TrainConfig:
        return TrainConfig(data=DataConfig(relevance=of_training), snapshot=BestEpoch(measure="CS@5", relevance=name))

    for one in (config("cider-d"), config("", "cider-d")):
        np.testing.assert_allclose(validation_degrees(one, data).block(images, captions), expected, atol=1e-5)
    with pytest.raises(UserError, match="must lie in"):
        validation_degrees(config("cider-d"), data).block([data.splits.index("train")], captions)
    whole = TfIdf(data.captions, data.image_of_caption)
    whole.save(tmp_path / "whole")
    TfIdf(part.captions, part.image_of_caption, images=len(part)).save(tmp_path / "val")
    TfIdf(training.captions, training.image_of_caption, images=len(training)).save(tmp_path / "train")
    saved = validation_degrees(config(str(tmp_path / "whole")), data)
    np.testing.assert_array_equal(saved.block(images, captions), whole.block(images, captions))
    assert validation_degrees(config(str(tmp_path / "val")), data).block(images, captions).shape == expected.shape
    assert validation_degrees(config(""), data) is None
    # What Python hands over is taken unless the configuration names something of its own.
    given = validation_degrees(config(""), data, whole)
    assert given is whole
    assert validation_degrees(config("cider-d"), data, whole) is not whole
    with pytest.raises(UserError, match="degrees of the training pictures alone, and snapshot.measure CS@5 needs"):
        validation_degrees(config("", str(tmp_path / "train")), data)


@pytest.mark.parametrize("name", ["cider-d", "tfidf"])
def test_degrees_that_were_made_are_found(name: str, data: ImageCaptions, tmp_path: Path) -> None:
    lines: list[str] = []
    building = Building(cache=tmp_path / "relevance", say=lines.append)
    images, captions = training_positions(data)
    first = training_degrees(DataConfig(relevance=name), data, building).block(images, captions)
    assert f"{name} of collection/train, {len(captions)} captions, made in " in lines[-1]
    assert f"kept in {tmp_path / 'relevance' / name}-" in lines[-1]
    again = training_degrees(DataConfig(relevance=name), data, building).block(images, captions)
    assert lines[-1].startswith(f"relevance: {name} of collection/train, {len(captions)} captions, found in {tmp_path}")
    np.testing.assert_array_equal(again, first)
    # The validation split, counted in the training split, is something else.
    config = TrainConfig(snapshot=BestEpoch(measure="CS@5", relevance=name))
    validation_degrees(config, data, building=building)
    assert "made in" in lines[-1]
    validation_degrees(config, data, building=building)
    assert "found in" in lines[-1]
    assert len(list((tmp_path / "relevance").glob(f"{name}-*"))) == 2


def test_a_drawn_share_is_all_that_a_source_knows(data: ImageCaptions, tmp_path: Path) -> None:
    shared = with_share(data, ("train",), 0.5, seed=0)
    images, captions = training_positions(shared)
    assert 0 < len(images) <= 0.5 * len(training_positions(data)[0])
    found = training_degrees(DataConfig(relevance="cider-d"), shared)
    np.testing.assert_array_equal(
        found.block(images, captions), of_the_part(shared, source_config("cider-d").build(shared.split("train")))
    )
    with pytest.raises(UserError, match="must lie in"):
        found.block([shared.splits.index("undrawn")], captions)
    # Degrees that were saved of the whole training split hold those of a share of it.
    whole = data.split("train")
    source = TfIdf(whole.captions, whole.image_of_caption, images=len(whole))
    source.save(tmp_path / "whole")
    saved = training_degrees(DataConfig(relevance=str(tmp_path / "whole")), shared).block(images, captions)
    full = training_degrees(DataConfig(relevance=str(tmp_path / "whole")), data).block(images, captions)
    np.testing.assert_array_equal(saved, full)
