"""Training cross-encoders. Also tests rungwise.training.pair_models._model_folders."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk import check_seal
from rungwise.data import ImageCaptions
from rungwise.language import WordVectors, load_pair_model
from rungwise.relevance import Cascade, CBoW, CrossEncoder, PairInference
from rungwise.relevance.config import source_config
from rungwise.training.pair_models import PairTraining, TrainingObserver, pair_scores, train_cross_encoder
from rungwise.training.pair_models._cross_encoders import texts_of
from tests.scored import WORDS, scored_pairs, tiny_encoder

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

SETTINGS = PairTraining(epochs=4, batch_size=8, learning_rate=5e-3, seed=1)
PAIRS = scored_pairs(40)


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    return train_cross_encoder(PAIRS, tmp_path_factory.mktemp("grader") / "grader", encoder, SETTINGS, device="cpu")


def test_it_learns_and_says_how_well(grader):
    found, said = grader.found, grader.said
    train, dev, test = map(scored_pairs(160).split, ("train", "val", "test"))
    assert np.square(pair_scores(found.model, train) - train.scores / 5).mean() < 0.25 * np.var(train.scores / 5)
    assert found.test.pearson > 0.95
    for one, part in ((found.dev, dev), (found.test, test)):
        assert one.pairs == len(part) == 20
        assert one.pearson == pytest.approx(np.corrcoef(pair_scores(found.model, part), part.scores)[0, 1])
    assert found.scale == (0, 5)
    assert len(said) == 20
    assert f"dev {found.dev.numbers}" in said[found.best_epoch - 1]
    assert max(map(len, said)) < 80


def test_scores_are_the_same_wherever_it_is_loaded(trained):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    wanted = pair_scores(trained.model, PAIRS)
    assert wanted.min() >= 0
    assert wanted.max() <= 1
    theirs = sentence_transformers.CrossEncoder(str(trained.folder), device="cpu", local_files_only=True)
    found = theirs.predict(list(zip(PAIRS.first, PAIRS.second, strict=True)), show_progress_bar=False)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    captions = (*PAIRS.first, *PAIRS.second)
    ours = CrossEncoder(captions, range(80), trained.folder, scale="sigmoid")
    np.testing.assert_allclose(ours.pair_scores(np.arange(40), np.arange(40, 80)), wanted, atol=1e-5)


def test_it_is_the_fine_stage_of_a_cascade(trained, tmp_path):
    captions, owners = ["dog cat", "cat dog", "boat horse", "dog boat"], [0, 0, 1, 2]
    vectors = WordVectors({word: row for row, word in enumerate(WORDS)}, np.eye(len(WORDS), dtype=np.float32))
    coarse = CBoW(captions, owners, vectors)
    fine = CrossEncoder(captions, owners, trained.folder, scale="sigmoid", inference=PairInference(device="cpu"))
    cascade = Cascade(coarse, fine, threshold=0.4, cache=tmp_path / "scores")
    everything = np.arange(4)
    passes = coarse.pair_block(everything, everything) >= 0.4
    found = cascade.pair_block(everything, everything)
    np.testing.assert_allclose(found, np.where(passes, fine.pair_block(everything, everything), 0), atol=1e-5)
    assert 0 < passes.sum() < 16


@pytest.mark.parametrize("kind", ["cross-encoder", "cascade"])
def test_configurations_find_the_scale_in_its_folder(trained, tmp_path, kind):
    data = ImageCaptions(("a", "b"), ("dog cat", "boat horse"), np.array([0, 1]))
    more = {"coarse": {"kind": "tfidf"}, "threshold": 0.0, "cache": tmp_path / "s"} if kind == "cascade" else {}
    named = {"kind": kind, "model": str(trained.folder), "device": "cpu", **more}
    found = source_config(named).build(data)
    said = source_config({**named, "scale": "sigmoid"}).build(data)
    np.testing.assert_array_equal(found.dense(), said.dense())
    in_one_order = source_config({**named, "symmetric": True, "reference": "paired"}).build(data)
    turned = in_one_order.pair_block([0, 1], [1, 0])
    assert turned[0, 0] == turned[1, 1]
    config = json.loads((trained.folder / "config.json").read_text())
    assert config.pop("rungwise") == {"scale": "sigmoid"}
    assert config["sentence_transformers"]["activation_fn"] == "torch.nn.modules.activation.Sigmoid"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=f"{kind} needs scale"):
        source_config({**named, "model": str(tmp_path)}).build(data)
    with pytest.raises(UserError, match=r"needs scale: .* \(\./gone is no folder here, which could say it\)"):
        source_config({**named, "model": "./gone"}).build(data)


def test_the_folder_is_sealed_and_its_card_says_what_it_is_made_of(trained):
    check_seal(trained.folder)
    card = (trained.folder / "README.md").read_text()
    for text in (PAIRS.content_hash(), "began from: encoder", f"Pearson: {round(trained.test.pearson, 4)}", "seed: 1"):
        assert text in card
    for file in trained.folder.iterdir():
        if file.suffix in (".json", ".md"):
            assert str(trained.folder.parent) not in file.read_text(), "places of this machine are nobody's business"


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_one_seed_gives_one_model(encoder, trained, tmp_path):
    torch.rand(5)
    again = train_cross_encoder(PAIRS, tmp_path / "again", encoder, SETTINGS, device="cpu")
    assert weights(again.folder) == weights(trained.folder)
    short = replace(SETTINGS, epochs=1)
    ours, other = (
        train_cross_encoder(PAIRS, tmp_path / str(seed), encoder, replace(short, seed=seed), device="cpu")
        for seed in (1, 2)
    )
    assert weights(ours.folder) != weights(other.folder)


@pytest.mark.parametrize("loss", ["bce", "mse"])
def test_the_loss_is_that_of_its_name(encoder, tmp_path, loss):
    said = []
    settings = replace(SETTINGS, epochs=1, learning_rate=1e-12, loss=loss, batch_size=1000)
    plain = tiny_encoder(tmp_path / "encoder")
    config = json.loads((plain / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (plain / "config.json").write_text(json.dumps(config))
    found = train_cross_encoder(
        PAIRS, tmp_path / "x", plain, settings, device="cpu", watching=TrainingObserver(said.append)
    )
    train = PAIRS.split("train")
    turned = np.random.default_rng([1, 0, 1]).random(len(train)) < 0.5
    first, second = texts_of(train, np.arange(len(train)), turned)
    scores = pair_scores(found.model, replace(train, first=tuple(first), second=tuple(second))).astype(np.float64)
    wanted = train.scores / 5
    by_hand = [
        (s - w) ** 2 if loss == "mse" else -(w * np.log(s) + (1 - w) * np.log(1 - s))
        for s, w in zip(scores, wanted, strict=True)
    ]
    assert f"loss {np.mean(by_hand):.4f}" in said[0]


def test_an_interruption_leaves_what_was_there(encoder, trained, tmp_path):
    def stop(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_cross_encoder(PAIRS, tmp_path / "x", encoder, SETTINGS, device="cpu", watching=TrainingObserver(stop))
    assert list(tmp_path.iterdir()) == []
    before = {file.name: file.read_bytes() for file in trained.folder.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        train_cross_encoder(PAIRS, trained.folder, encoder, SETTINGS, device="cpu", watching=TrainingObserver(stop))
    assert {file.name: file.read_bytes() for file in trained.folder.iterdir()} == before


def test_a_folder_of_somebody_else_is_refused(encoder, tmp_path):
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(UserError, match=r"holds 'holiday\.jpg', which is no part of a model of pairs"):
        train_cross_encoder(PAIRS, tmp_path, encoder, SETTINGS)
    assert [file.name for file in tmp_path.iterdir()] == ["holiday.jpg"]


def test_dev_pairs_that_cannot_choose_an_epoch_are_refused(encoder, tmp_path):
    scores = np.where(np.array(PAIRS.splits) == "val", 3.0, PAIRS.scores)
    with pytest.raises(UserError, match=r"the dev pairs \(5\) all have the score 3, so that no epoch"):
        train_cross_encoder(replace(PAIRS, scores=scores), tmp_path / "x", encoder, SETTINGS, device="cpu")
    assert list(tmp_path.iterdir()) == []


def test_weights_that_were_saved_in_bfloat16_are_trained_in_float32(encoder, tmp_path):
    import transformers

    half = tiny_encoder(tmp_path / "half")
    transformers.AutoModel.from_pretrained(half, dtype=torch.bfloat16).save_pretrained(half)
    assert transformers.AutoModel.from_pretrained(half).dtype == torch.bfloat16
    settings = replace(SETTINGS, epochs=1, learning_rate=1e-5)
    found = train_cross_encoder(PAIRS, tmp_path / "x", half, settings, device="cpu")
    assert found.model.network.dtype == torch.float32
    before, after = load_pair_model(half, outputs=1).network.bert, found.model.network.bert
    changed = [(a != b).any().item() for a, b in zip(before.parameters(), after.parameters(), strict=True)]
    assert np.mean(changed) > 0.8, "steps of 1e-5 would be lost in bfloat16"


def test_a_model_that_gives_no_numbers_is_no_source(trained, tmp_path):
    shutil.copytree(trained.folder, tmp_path / "broken")
    broken = load_pair_model(tmp_path / "broken")
    with torch.no_grad():
        broken.network.classifier.weight.fill_(math.nan)
    broken.network.save_pretrained(tmp_path / "broken")
    pairs = PairInference(cache=tmp_path / "scores")
    source = CrossEncoder(["dog cat", "boat"], [0, 1], tmp_path / "broken", scale="sigmoid", inference=pairs)
    with pytest.raises(UserError, match="broken: gives a pair of captions a score that is NaN or infinite"):
        source.dense()


def test_a_scale_leaves_out_what_does_not_fit(encoder, tmp_path):
    settings = replace(SETTINGS, epochs=1)
    found = train_cross_encoder(PAIRS, tmp_path / "x", encoder, settings, scale=(0, 4), device="cpu")
    assert found.scale == (0, 4)
    assert found.dev.pairs == sum(PAIRS.split("val").scores <= 4)
    for scale, said in (
        ((5, 0), "low < high"),
        ((0, math.inf), "low < high"),
        ((7, 9), "no pair is left that is scored on 7..9"),
    ):
        with pytest.raises(UserError, match=said):
            train_cross_encoder(PAIRS, tmp_path / "y", encoder, settings, scale=scale)
    with pytest.raises(UserError, match="no pair is in split 'val'"):
        train_cross_encoder(PAIRS.split("train"), tmp_path / "y", encoder, settings)
