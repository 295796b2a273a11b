"""Graphs against the model they were made from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import LinearHead, TextFeatureConfig
from rungwise.encoders._heads import MLPHead, ResidualHead
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import BagOfWordsConfig, GRUConfig
from rungwise.models import JointEmbedding, PairScorer, VSEConfig, load
from rungwise.models.export import _onnx_export as onnx_export
from rungwise.models.export import export_onnx
from rungwise.models.export._onnx_export import ExportAgreement
from rungwise.models.export._onnx_model import OnnxModel
from rungwise.similarity import Cosine, Inner, Order
from tests.models.exported import TEXTS, of_features, pictures, seeing
from tests.published import CAPTIONS, Published, photos


def beside(model: JointEmbedding, folder: Path) -> tuple[OnnxModel, tuple[ExportAgreement, ...]]:
    """The exported model, whose texts were compared alone and in padded batches."""
    found = export_onnx(model, folder)
    exported = load(folder)
    assert isinstance(exported, OnnxModel)
    assert all(one.is_close and one.cosine > 0.99999 for one in found), list(map(str, found))
    return exported, found


def same_texts(model: JointEmbedding, exported: OnnxModel) -> None:
    """In one padded batch, and each alone."""
    wanted = model.encode_text(TEXTS)
    np.testing.assert_allclose(exported.encode_text(TEXTS), wanted, atol=2e-6)
    alone = np.concatenate([exported.encode_text([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, wanted, atol=2e-6)
    np.testing.assert_array_equal(exported.too_long(TEXTS), model.too_long(TEXTS))


def test_both_sides_give_the_vectors_of_the_model(tmp_path: Path) -> None:
    model = seeing()
    exported, found = beside(model, tmp_path / "onnx")
    assert [one.what for one in found] == [
        "pictures, in batches of 1, 3, 8",
        "texts without padding",
        "texts of several lengths, padded",
    ]
    same_texts(model, exported)
    files = pictures(tmp_path / "pictures")
    wanted = model.encode_image(files, cache=tmp_path / "cache").vectors
    # Pillow resizes in place of torchvision: at most 2 levels of 255 apart.
    cosines = (exported.encode_image(files).vectors * wanted).sum(axis=1)
    assert cosines.min() > 0.999
    assert exported.stands_for == model.fingerprint
    assert (exported.dimension, exported.similarity) == (8, Cosine())


@pytest.mark.parametrize(
    ("similarity", "heads"),
    [
        (Inner(), {"image_head": MLPHead(hidden=(6,)), "text_head": LinearHead()}),
        (Order(absolute=True), {"image_head": ResidualHead(hidden=6), "text_head": MLPHead(hidden=(6,))}),
    ],
    ids=["inner", "order"],
)
def test_heads_and_similarity_are_in_the_graphs(similarity, heads, tmp_path: Path) -> None:
    model = of_features(similarity=similarity, **heads)
    exported, _ = beside(model, tmp_path)
    same_texts(model, exported)
    rows = FeatureRows(np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32))
    np.testing.assert_allclose(exported.encode_image(rows).vectors, model.encode_image(rows).vectors, atol=2e-6)
    regions = FeatureRows(np.random.default_rng(1).standard_normal((4, 3, 5)).astype(np.float32))
    np.testing.assert_allclose(exported.encode_image(regions).vectors, model.encode_image(regions).vectors, atol=2e-6)
    assert exported.similarity == similarity


def test_what_was_measured_and_known_is_written_down(tmp_path: Path) -> None:
    model = of_features()
    model.provenance = {"seed": 7}
    export_onnx(model, tmp_path / "onnx")
    facts = json.loads((tmp_path / "onnx" / "config.json").read_text())
    origin = facts["model"]["origin"]
    assert (facts["kind"], origin["fingerprint"], origin["opset"]) == ("onnx", model.fingerprint, onnx_export.OPSET)
    assert min(origin["image_cosine"], origin["text_cosine"]) > 0.99999
    assert load(tmp_path / "onnx").provenance == {"seed": 7}
    names = {file.name for file in (tmp_path / "onnx").iterdir()}
    assert names == {"README.md", "SHA256SUMS", "config.json", "image.onnx", "text.onnx", "tokenizer.json"}
    for name in ("image.onnx", "text.onnx"):
        data = (tmp_path / "onnx" / name).read_bytes()
        assert b".py" not in data, "a graph tells nothing of the machine that made it"
        onnx.checker.check_model(onnx.load_model_from_string(data))


def test_the_model_stays_as_it_was(tmp_path: Path) -> None:
    model = of_features().train()
    before = model.fingerprint
    export_onnx(model, tmp_path)
    assert model.training
    assert model.fingerprint == before


class Forgetful(JointEmbedding):
    """A model whose graph takes all of a batch for text, as one does that was traced with a mask of ones alone."""

    def embed_captions(self, texts, lengths=None):
        if torch.jit.is_tracing():
            lengths = torch.ones_like(lengths) * texts.shape[1]
        return super().embed_captions(texts, lengths)


def test_a_graph_that_forgets_lengths_is_not_written(tmp_path: Path) -> None:
    model = of_features()
    model.__class__ = Forgetful
    with pytest.raises(UserError, match=r"text.onnx: no graph .*\(texts of several lengths, padded: least"):
        export_onnx(model, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_a_library_that_cannot_be_loaded_is_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By that the command line tells too little memory from a library that is not there."""
    lacking = ImportError("failed to map segment from shared object")

    def unable(*_: object) -> None:
        raise UserError("an exported model needs onnxruntime") from lacking

    for name in ("_traced", "_captured"):
        monkeypatch.setattr(onnx_export, name, unable)
    with pytest.raises(UserError, match="no graph gives") as found:
        export_onnx(of_features(), tmp_path / "onnx")
    assert found.value.__cause__ is lacking


def test_the_other_exporter_is_asked_where_the_first_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_trace = onnx_export._traced

    def unable(*_: object) -> None:
        raise UserError("cannot be traced")

    def first(side, example, path, inputs):
        (unable if path.name == "image.onnx" else by_trace)(side, example, path, inputs)

    monkeypatch.setattr(onnx_export, "_traced", first)
    monkeypatch.setattr(onnx_export, "_captured", by_trace)
    assert len(export_onnx(of_features(), tmp_path / "onnx")) == 3
    monkeypatch.setattr(onnx_export, "_traced", unable)
    with pytest.raises(UserError, match=r"text.onnx: no graph gives the model's vectors, .*\(cannot be traced\)"):
        export_onnx(of_features(), tmp_path / "other")


class Lengths(PairScorer):
    kind, fingerprint = "lengths", "f"

    def block(self, images, captions):
        return np.zeros((len(images), len(captions)), np.float32)


def test_what_has_no_two_sides_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a model of kind 'lengths' is not exported"):
        export_onnx(Lengths(), tmp_path / "onnx")
    rows = FeatureRows(np.zeros((2, 4), np.float32))
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    config = VSEConfig(image=image, text=TextFeatureConfig(), text_head=LinearHead(), dimension=3)
    with pytest.raises(UserError, match="there is no text side to export"):
        export_onnx(JointEmbedding.create(config, rows), tmp_path / "onnx")


def test_a_side_that_no_file_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_export, "_MOST_BYTES", 100)
    with pytest.raises(UserError, match=r"image.onnx: the side's weights are \d+ bytes, and an ONNX file holds"):
        export_onnx(of_features(), tmp_path / "onnx")


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"to export a model needs onnx; run: pip install 'rungwise\[onnx\]'"):
        export_onnx(of_features(), tmp_path / "onnx")


def test_only_an_exported_model_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(UserError, match=r"holds 'holiday.jpg', which is no part of an exported model"):
        export_onnx(of_features(), tmp_path)
    export_onnx(of_features(0), tmp_path / "onnx")
    first = load(tmp_path / "onnx").fingerprint
    export_onnx(of_features(1), tmp_path / "onnx")
    assert load(tmp_path / "onnx").fingerprint != first


def test_a_text_side_with_rules_of_its_own_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = of_features()
    whole = model.text_encoder.tokenise
    monkeypatch.setattr(model.text_encoder, "tokenise", lambda texts: [one[:2] for one in whole(texts)])
    with pytest.raises(UserError, match="cuts texts in ways that tokenizer.json does not say"):
        export_onnx(model, tmp_path / "onnx")


def test_vectors_without_length_agree_with_themselves_alone() -> None:
    zero, one = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    assert onnx_export._agreement("", zero, zero).is_close
    assert not onnx_export._agreement("", zero, one).is_close
    assert not onnx_export._agreement("", one, 1.1 * one).is_close
    assert not onnx_export._agreement("", one, np.full((1, 2), np.nan, np.float32)).is_close


@pytest.mark.parametrize("family", ["bert", pytest.param("roberta", marks=pytest.mark.slow)])
def test_masks_of_transformers_are_in_the_graph(family: str, tmp_path: Path) -> None:
    """BERT counts positions from the start, RoBERTa those that are no padding: both are wrong with a mask of ones."""
    library = pytest.importorskip("tests.encoders.texts.test_transformer")
    model = library.model_of_folder(library.save_plain(tmp_path / "plain", family))
    exported, _ = beside(model, tmp_path / "onnx")
    same_texts(model, exported)
    texts = ["a red dog", "a", "dog " * 60]
    np.testing.assert_allclose(exported.encode_text(texts), model.encode_text(texts), atol=2e-6)
    assert exported.too_long(texts).tolist() == [2]


def test_counts_of_pieces_beside_the_vector(tmp_path: Path) -> None:
    library = pytest.importorskip("tests.encoders.texts.test_transformer")
    model = library.model_of_folder(library.save_plain(tmp_path / "plain", "bert"), counted_pieces=5)
    exported, _ = beside(model, tmp_path / "onnx")
    same_texts(model, exported)


@pytest.mark.parametrize(
    "options", [{"directions": "both"}, {"directions": "both", "pool": "max", "layers": 2}], ids=str
)
def test_both_directions_and_other_pools_of_a_gru(options: dict[str, Any], tmp_path: Path) -> None:
    model = of_features(text=GRUConfig(word_dimension=5, min_count=1, context_length=9, **options))
    exported, _ = beside(model, tmp_path)
    same_texts(model, exported)


@pytest.mark.parametrize(("weights", "averages"), [("idf", False), ("presence", True)])
def test_bags_of_words(weights: Any, averages: bool, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a 1 0 2\ndog 0 1 0.5\nred 3 1 1\n")
    vectors = str(tmp_path / "words.txt") if averages else None
    text = BagOfWordsConfig(min_count=1, weights=weights, word_vectors=vectors)
    model = of_features(text=text, text_head=LinearHead())
    exported, _ = beside(model, tmp_path / "onnx")
    same_texts(model, exported)
    texts = ["", "dog dog a", "giraffe"]
    np.testing.assert_allclose(exported.encode_text(texts), model.encode_text(texts), atol=2e-6)


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("hf:", "clip"),
        pytest.param("hf:", "siglip2", marks=pytest.mark.slow),
        pytest.param("open_clip:", "open_clip", marks=pytest.mark.slow),
    ],
)
def test_published_models_are_exported(prefix: str, name: str, published: Published, tmp_path: Path) -> None:
    model = load(f"{prefix}{getattr(published, name)}", "cpu")
    assert isinstance(model, JointEmbedding)
    exported, _ = beside(model, tmp_path)
    np.testing.assert_allclose(exported.encode_text(CAPTIONS), model.encode_text(CAPTIONS), atol=5e-6)
    found, wanted = (one.encode_image(photos()).vectors for one in (exported, model))
    assert (found * wanted).sum(axis=1).min() > 0.999
    np.testing.assert_array_equal(exported.too_long(CAPTIONS), model.too_long(CAPTIONS))


@pytest.mark.slow
def test_the_exporter_of_torch_export_makes_graphs_that_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript")
    model, captured = of_features(), onnx_export._captured
    by_trace = onnx_export._traced

    def first(side, example, path, inputs):
        (captured if path.name == "image.onnx" else by_trace)(side, example, path, inputs)

    monkeypatch.setattr(onnx_export, "_traced", first)
    exported, _ = beside(model, tmp_path)
    assert b".py" not in (tmp_path / "image.onnx").read_bytes()
    rows = FeatureRows(np.ones((3, 5), np.float32))
    np.testing.assert_allclose(exported.encode_image(rows).vectors, model.encode_image(rows).vectors, atol=2e-6)
