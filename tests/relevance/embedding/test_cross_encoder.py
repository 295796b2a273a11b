import json
import shutil
import tracemalloc
from itertools import product

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import WordVectors
from rungwise.relevance.combine import Cascade
from rungwise.relevance.embedding import CBoW, PairInference
from rungwise.relevance.embedding.cross_encoder import CrossEncoder

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

CAPTIONS = ["a dog runs", "a cat sleeps on a red mat", "dog", "a dog runs"]
OWNERS = [0, 0, 1, 1]
WORDS = ["a", "dog", "cat", "runs", "sleeps", "on", "red", "mat"]


def tiny_model(folder, outputs):
    """A cross-encoder with random weights, saved as one from the hub would be."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, num_labels=outputs, initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=32).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("grader"), outputs=1)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("judge"), outputs=3)


def one_by_one(folder, pairs):
    """(pairs, outputs) logits of each pair alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return np.stack([network(**tokenizer(a, b, return_tensors="pt")).logits[0].numpy() for a, b in pairs])


def all_pairs():
    return [(a, b) for a in CAPTIONS for b in CAPTIONS]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_batches_do_not_change_scores(model, batch_size):
    source = CrossEncoder(CAPTIONS, OWNERS, model, scale="raw", inference=PairInference(batch_size))
    everything = np.arange(4)
    wanted = one_by_one(model, all_pairs())[:, 0].reshape(4, 4)
    assert wanted.std() > 0.01, "a model that says the same of all pairs tests nothing"
    np.testing.assert_allclose(source.pair_block(everything, everything), wanted, atol=1e-5)
    np.testing.assert_allclose(
        source.pair_scores(np.array([1, 0]), np.array([2, 3])), wanted[[1, 0], [2, 3]], atol=1e-5
    )


def test_scales(model, judge):
    everything = np.arange(4)
    raw = one_by_one(model, all_pairs())[:, 0].reshape(4, 4)

    def scaled(folder, **options):
        return CrossEncoder(CAPTIONS, OWNERS, folder, **options).pair_block(everything, everything)

    np.testing.assert_allclose(scaled(model, scale="sigmoid"), 1 / (1 + np.exp(-raw)), atol=1e-5)
    low, high = float(np.quantile(raw, 0.3)), float(np.quantile(raw, 0.8))
    graded = scaled(model, scale=(low, high))
    np.testing.assert_allclose(graded, ((raw - low) / (high - low)).clip(0, 1), atol=1e-4)
    assert graded.min() == 0
    assert graded.max() == 1
    logits = np.exp(one_by_one(judge, all_pairs()))
    np.testing.assert_allclose(
        scaled(judge, scale="softmax", output=2), (logits[:, 2] / logits.sum(axis=1)).reshape(4, 4), atol=1e-5
    )


def test_symmetric_scores_one_order(model):
    counted = []
    source = CrossEncoder(
        CAPTIONS, OWNERS, model, scale="raw", symmetric=True, inference=PairInference(progress=counted.append)
    )
    block = source.pair_block(np.arange(4), np.arange(4))
    np.testing.assert_array_equal(block, block.T)
    assert sum(counted) == 3 * 4 // 2, "three different texts"


def test_fingerprint_follows_model_and_scale(model, judge):
    def fingerprint(folder, captions=CAPTIONS, **options):
        return CrossEncoder(captions, OWNERS, folder, **options).fingerprint

    base = fingerprint(model, scale="raw")
    alone = PairInference(batch_size=1)
    assert base == fingerprint(str(model), CAPTIONS[::-1], scale="raw", inference=alone, reference="mean")
    others = {fingerprint(model, scale="sigmoid"), fingerprint(judge, scale="raw"), fingerprint(judge, scale="softmax")}
    assert len(others | {base}) == 4


def test_refines_what_a_cascade_lets_through(model, tmp_path):
    vectors = WordVectors({word: row for row, word in enumerate(WORDS)}, np.eye(len(WORDS), dtype=np.float32))
    coarse = CBoW(CAPTIONS, OWNERS, vectors)
    everything = np.arange(4)
    passed = coarse.pair_block(everything, everything) >= 0.5
    assert 0 < passed.sum() < 16
    fine = CrossEncoder(CAPTIONS, OWNERS, model, scale="sigmoid")
    cascade = Cascade(coarse, fine, threshold=0.5, cache=tmp_path / "scores")
    wanted = np.where(passed, fine.pair_block(everything, everything), 0)
    np.testing.assert_allclose(cascade.pair_block(everything, everything), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": "logistic"}, "scale must be"),
        ({"scale": (5, 0)}, "low < high"),
        ({"scale": "softmax"}, "has one output"),
        ({"scale": "raw", "output": 1}, "output=1 but the model has 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(model, options, said):
    with pytest.raises(UserError, match=said):
        CrossEncoder(CAPTIONS, OWNERS, model, **options)


def test_a_model_that_is_not_there_is_refused_in_one_line(tmp_path):
    with pytest.raises(UserError, match="no such folder of a cross-encoder"):
        CrossEncoder(CAPTIONS, OWNERS, tmp_path / "nowhere", scale="raw")
    with pytest.raises(UserError, match="cannot be loaded as a sequence-classification model") as caught:
        CrossEncoder(CAPTIONS, OWNERS, tmp_path, scale="raw")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("longest", ["evil", -1, 0, [8]])
def test_a_length_that_is_none_is_one_line(model, tmp_path, longest):
    folder = shutil.copytree(model, tmp_path / "model")
    said = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(said | {"model_max_length": longest}))
    with pytest.raises(UserError, match="cannot be loaded as a sequence-classification model") as caught:
        CrossEncoder(CAPTIONS, OWNERS, folder, scale="raw")
    assert "\n" not in str(caught.value)


def test_fingerprint_follows_the_vocabulary_and_the_configuration(model, tmp_path):
    base = CrossEncoder(CAPTIONS, OWNERS, model, scale="raw")
    before = base.fingerprint
    base.dense()
    swapped = {'"dog": 6': '"dog": 7', '"cat": 7': '"cat": 6'}
    for name, changes in (("tokenizer.json", swapped), ("config.json", {'"gelu"': '"relu"'})):
        folder = shutil.copytree(model, tmp_path / name)
        text = (folder / name).read_text()
        for old, new in changes.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / name).write_text(text)
        assert CrossEncoder(CAPTIONS, OWNERS, folder, scale="raw").fingerprint != before
    moved = shutil.copytree(model, tmp_path / "moved")
    assert CrossEncoder(CAPTIONS, OWNERS, moved, scale="raw").fingerprint == before


@pytest.mark.parametrize(("symmetric", "chunk_bytes"), [(False, 1), (True, 200), (False, 200), (True, 10**6)])
def test_runs_of_a_block_change_neither_scores_nor_their_number(model, monkeypatch, symmetric, chunk_bytes):
    captions = [*CAPTIONS, "cat", "red mat", "dog"]
    counted = []
    pairs = PairInference(batch_size=2, progress=counted.append)
    source = CrossEncoder(captions, range(7), model, scale="raw", symmetric=symmetric, inference=pairs)
    first, second = np.array([6, 0, 3, 4, 1]), np.array([1, 4, 5, 2, 4, 0])
    wanted = source.pair_scores(np.repeat(first, 6), np.tile(second, 5)).reshape(5, 6)
    once = sum(counted)
    counted.clear()
    monkeypatch.setattr("rungwise.relevance.embedding.cross_encoder.CHUNK_BYTES", chunk_bytes, raising=False)
    np.testing.assert_allclose(source.pair_block(first, second), wanted, atol=1e-5)
    assert (
        sum(counted)
        == once
        == len(
            {
                tuple(sorted(pair) if symmetric else pair)
                for pair in product(*([captions[c] for c in some] for some in (first, second)))
            }
        )
    )


def test_memory_of_a_block_is_bounded(model, monkeypatch):
    monkeypatch.setattr("rungwise.relevance.embedding.cross_encoder.CHUNK_BYTES", 10**6, raising=False)
    captions = [str(number) for number in range(500)]
    source = CrossEncoder(captions, range(500), model, scale="raw", inference=PairInference(batch_size=10_000))
    monkeypatch.setattr(source, "_run", lambda pairs: [0.0] * len(pairs))
    tracemalloc.start()
    source.pair_block(np.arange(500), np.arange(500))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 10**6, "a tuple for every pair would take 40 MB"


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_cache_spares_every_pair_that_was_scored(model, tmp_path, symmetric):
    ran = []

    def source(**options):
        ran.clear()
        pairs = PairInference(progress=ran.append, **options)
        return CrossEncoder(CAPTIONS, OWNERS, model, scale="raw", symmetric=symmetric, inference=pairs)

    wanted = source().pair_block([2, 0, 1], [0, 1])
    first = source(cache=tmp_path / "scores")
    np.testing.assert_array_equal(first.pair_block([2, 0, 1], [0, 1]), wanted)
    assert sum(ran) == (5 if symmetric else 6)
    np.testing.assert_array_equal(first.pair_block([2, 0, 1], [0, 1]), wanted)
    np.testing.assert_array_equal(source(cache=tmp_path / "scores").pair_block([2, 0, 1], [0, 1]), wanted)
    assert sum(ran) == 0
    assert source(cache=tmp_path / "scores").content_hash() == first.content_hash() == source().content_hash()


def test_a_cascade_finds_the_scores_of_its_cross_encoder(model, tmp_path):
    cached = CrossEncoder(CAPTIONS, OWNERS, model, scale="sigmoid", inference=PairInference(cache=tmp_path / "scores"))
    everything = cached.pair_block(range(4), range(4))
    vectors = WordVectors({word: row for row, word in enumerate(WORDS)}, np.eye(len(WORDS), dtype=np.float32))
    words = CBoW(CAPTIONS, OWNERS, vectors)
    fine = CrossEncoder(CAPTIONS, OWNERS, model, scale="sigmoid")
    cascade = Cascade(words, fine, threshold=-1, cache=tmp_path / "scores")
    np.testing.assert_array_equal(cascade.pair_block(range(4), range(4)), everything)
    assert cascade.report.scored == 0


def test_a_device_that_is_not_there_is_refused(model):
    with pytest.raises(UserError, match="device 'cuda:99' is not on this machine"):
        CrossEncoder(CAPTIONS, OWNERS, model, scale="raw", inference=PairInference(device="cuda:99"))
