"""VSRN as a model: scored, trained, saved, indexed, exported."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig, FeatureInput, TextFeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig, GRUEncoder, TransformerConfig, learn_vocabulary
from rungwise.encoders.texts._gru import END
from rungwise.evaluation import evaluate
from rungwise.index import Index, Searcher
from rungwise.losses import AdaptiveListwise, MaxOfHinges
from rungwise.models import ParameterPlace, load
from rungwise.models.export import export_onnx
from rungwise.models.export._onnx_model import OnnxModel
from rungwise.models.regions._caption_head import CaptionHeadConfig
from rungwise.models.regions._vsrn import VSRN, VSRNConfig
from rungwise.training.config import LossConfig, TrainConfig, config_of
from rungwise.training.distributed import Processes
from rungwise.training.engine import train
from rungwise.training.steps import Plain, StepContext
from rungwise.training.steps._strategies import CachedGradients, GlobalNegativesStep
from tests.hostile.configured import sentence_model
from tests.models.exported import TEXTS, pictures
from tests.models.regions import vsrn_loops as loops
from tests.training.conftest import dies_at
from tests.training.every_loss import NAMED

NAMES = ("red", "green", "blue", "white")
PHRASES = ("a {} picture", "something that is all {}", "{}")
SMALL = CaptionHeadConfig(hidden=6, word_dimension=4, dropout=0.0)


def features(images: int = 24, regions: int = 5, seed: int = 1) -> ImageCaptions:
    """Rows of regions: a direction for each of four names, noise, and one to three captions each."""
    draw = np.random.default_rng(seed)
    meanings = np.random.default_rng(0).normal(size=(4, 7))
    rows = meanings[np.arange(images) % 4][:, None] + 0.1 * draw.normal(size=(images, regions, 7))
    captions = [(PHRASES[at].format(NAMES[one % 4]), one) for one in range(images) for at in range(1 + one % 3)]
    return ImageCaptions(
        tuple(f"{one}.jpg" for one in range(images)),
        tuple(caption for caption, _ in captions),
        np.array([one for _, one in captions]),
        features=FeatureRows(rows.astype(np.float32)),
        splits=tuple("train" if one < 2 * images // 3 else "val" for one in range(images)),
        name="regions",
    )


def small(**options: Any) -> VSRNConfig:
    settings: dict[str, Any] = {
        "image": FeatureConfig(l2_normalise=False),
        "text": GRUConfig(word_dimension=5, min_count=1),
        "dimension": 8,
        "layers": 2,
        "captions": SMALL,
    }
    return VSRNConfig(**(settings | options))


def make(data: ImageCaptions, seed: int = 0, **options: Any) -> VSRN:
    """A model whose graph convolutions do something."""
    torch.manual_seed(seed)
    model = VSRN.create(small(**options), data.texts, data.features)
    for convolution in model.image_projection.convolutions:
        torch.nn.init.uniform_(convolution.norm.weight, 0.5, 1)
    return model


def seeing(**options: Any) -> ImageConfig:
    return ImageConfig(
        "test_resnet.r160_in1k", weights="random", size=64, pool="regions", **({"l2_normalise": False} | options)
    )


def test_the_loss_of_a_batch_is_that_of_the_equations() -> None:
    data = features(6)
    model = make(data, captions=replace(SMALL, weight=0.5)).train()
    pairs = model.read(data, np.arange(len(data)))
    chosen = np.array([0, 2, 3, 7])
    batch = model.batch(pairs, chosen)
    scored = model.score(batch, within=True)
    rows = loops.scalars(batch.rows.double())
    w = {name: loops.scalars(one.double()) for name, one in model.image_projection.named_parameters()}
    related = loops.related(w, rows, layers=2, normalise="features", normalise_first=True)
    images = torch.stack([torch.stack(one) for one in loops.gathered(w, related, batch_norm=False)])
    texts = model.text_encoder(batch.texts, batch.lengths).double()
    wanted = [[F.cosine_similarity(image, text, dim=0) for text in texts] for image in images]
    expected = torch.stack([torch.stack(one) for one in wanted]).float()
    torch.testing.assert_close(scored.similarity, expected, atol=1e-5, rtol=1e-5)
    w = {name: loops.scalars(one.double()) for name, one in model.caption_head.named_parameters()}
    told = loops.caption_loss(w, related, [pairs.texts[one] for one in chosen])
    torch.testing.assert_close(scored.own, 0.5 * told.float(), atol=1e-4, rtol=1e-5)
    loss = MaxOfHinges()
    torch.testing.assert_close(scored.loss(loss), loss(expected) + 0.5 * told.float(), atol=1e-4, rtol=1e-5)
    for within, vectors in zip((scored.image_similarity, scored.text_similarity), scored.vectors, strict=True):
        torch.testing.assert_close(within, vectors @ vectors.T)


def test_without_a_weight_there_is_no_caption_head() -> None:
    data = features(6)
    model = make(data, captions=replace(SMALL, weight=0.0))
    assert model.caption_head is None
    assert not [name for name in model.state_dict() if name.startswith("caption_head")]
    scored = model.score(model.batch(model.read(data, np.arange(6)), np.arange(4)))
    assert scored.own is None
    assert not model.adds_losses
    assert make(data).adds_losses
    for step in (CachedGradients(), GlobalNegativesStep()):
        step.check(model, MaxOfHinges(), Processes(), lists=False)
        with pytest.raises(UserError, match="a model of kind 'vsrn' adds losses of its own; set step: plain"):
            step.check(make(data), MaxOfHinges(), Processes(), lists=False)
    Plain().check(model, AdaptiveListwise(), Processes(), lists=True)
    with pytest.raises(UserError, match="label_lists takes the loss of vectors alone, .*'vsrn' adds losses"):
        Plain().check(make(data), AdaptiveListwise(), Processes(), lists=True)


def stepped(model: VSRN, data: ImageCaptions) -> float:
    """Gradients of one plain step on 8 pairs."""
    pairs = model.read(data, np.arange(len(data)))
    work = StepContext(model, pairs, None, nullcontext, Processes(), list(model.parameters()))
    return float(Plain().backward(work, MaxOfHinges(reduction="sum"), np.arange(8), seed=0).value)


def test_both_losses_reach_the_regions_and_no_weight_is_left_out() -> None:
    data = features(6)
    both, alone = make(data).train(), make(data, captions=replace(SMALL, weight=0.0)).train()
    alone.load_state_dict({name: one for name, one in both.state_dict().items() if name in alone.state_dict()})
    assert stepped(both, data) > stepped(alone, data) + 1
    assert all(float(one.grad.abs().max()) > 0 for one in both.parameters())
    found, without = both.image_projection.projection.weight.grad, alone.image_projection.projection.weight.grad
    assert not torch.allclose(found, without)
    for mine, theirs in zip(both.text_encoder.parameters(), alone.text_encoder.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("loss", NAMED, ids=lambda one: one.kind)
def test_every_loss_takes_its_similarities(loss: LossConfig) -> None:
    data = features(12)
    model = make(data).train()
    batch = model.batch(model.read(data, np.arange(12)), np.arange(16))
    function = loss.build()
    scored = model.score(batch, within=function.reads.within)
    degrees = torch.rand(16, 16, generator=torch.Generator().manual_seed(0))
    degrees[degrees < 0.5] = 0
    own = torch.from_numpy(data.image_of_caption[:16])
    value = scored.loss(
        lambda block: function(
            block,
            degrees.fill_diagonal_(1) if function.reads.relevance else None,
            own[:, None] == own[None, :],
            image_similarity=scored.image_similarity,
            text_similarity=scored.text_similarity,
        )
    )
    value.backward()
    assert torch.isfinite(value)
    assert value > scored.own
    assert float(model.text_encoder.words.weight.grad.abs().max()) > 0


def test_saved_and_loaded_it_encodes_and_tells_alike(tmp_path: Path) -> None:
    data = features(6)
    model = make(data, batch_norm=True, normalise="regions", text=GRUConfig(word_dimension=5, min_count=1, width=3))
    model.train()
    stepped(model, data)  # moves the statistics
    model.eval().save_pretrained(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["kind"] == "vsrn"
    again = load(tmp_path / "model", "cpu")
    assert isinstance(again, VSRN)
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.encode_image(data.features).vectors, model.encode_image(data.features).vectors)
    np.testing.assert_array_equal(again.encode_text(data.texts), model.encode_text(data.texts))
    pairs = model.read(data, np.arange(6))
    told = [one.score(one.batch(pairs, np.arange(5))).own for one in (model, again)]
    torch.testing.assert_close(told[0], told[1], rtol=0, atol=0)


def test_the_fingerprint_is_of_what_decides_a_vector() -> None:
    data = features(6)
    model = make(data)
    known = model.fingerprint
    with torch.no_grad():
        model.caption_head.out.bias += 1
    assert model.fingerprint == known
    other = make(data, captions=replace(SMALL, weight=2.0, longest=9))
    assert other.fingerprint == known
    for changed in ({"normalise": "regions"}, {"normalise_first": False}, {"layers": 3}, {"batch_norm": True}):
        assert make(data, **changed).fingerprint != known
    with torch.no_grad():
        model.image_projection.convolutions[0].norm.bias += 1
    assert model.fingerprint != known


def hits(model: Any, data: ImageCaptions) -> float:
    """Share of the captions whose best picture is of their name."""
    scores = model.on(data)
    best = scores.block(np.arange(len(data)), np.arange(len(data.captions))).argmax(axis=0)
    return float(np.mean(best % 4 == data.image_of_caption % 4))


def config_for(model: VSRNConfig, **changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "model": model,
        "loss": config_of(MaxOfHinges)(reduction="sum"),
        "epochs": (12, 2),
        "learning_rates": (1e-2, 1e-3),
        "batch_size": 16,
    }
    return TrainConfig(**(settings | changes))


def test_trained_evaluated_indexed_and_searched(tmp_path: Path) -> None:
    data = features(48)
    result = train(config_for(small()), data, tmp_path / "run")
    assert result.history[-1]["loss"] < 0.6 * result.history[0]["loss"]
    model = load(result.model_folder, "cpu")
    held_out = data.split("val")
    assert hits(model, held_out) > 0.9
    scores = model.on(held_out)
    measured = evaluate(**scores.for_evaluation(), image_of_caption=held_out.image_of_caption)
    assert measured["rsum"] == pytest.approx(result.best_rsum, abs=1e-6)
    index = Index.build(held_out, model, tmp_path / "index")
    found = Searcher(index, model).search_text("a blue picture", 3)
    assert {int(hit.id.removesuffix(".jpg")) % 4 for hit in found} == {2}


def test_captions_that_the_head_cuts_are_counted() -> None:
    data = features(12)
    said = make(data, captions=replace(SMALL, longest=5)).remarks()
    assert said == ("8 of 24 captions are longer than the 5 tokens that the caption head decodes: cut",)
    assert make(data).remarks() == ()


def test_a_run_that_was_killed_goes_on_with_its_caption_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, config = features(), config_for(small(captions=replace(SMALL, dropout=0.2)), epochs=(2, 1))
    whole = train(config, data, tmp_path / "whole")
    with monkeypatch.context() as patch:
        dies_at(patch, 4)
        with pytest.raises(SystemError):
            train(config, data, tmp_path / "killed")
    again = train(config, data, tmp_path / "killed", resume=True)
    one, other = (load(result.model_folder, "cpu") for result in (whole, again))
    assert isinstance(one, VSRN)
    assert isinstance(other, VSRN)
    torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("frozen", [True, False])
def test_pictures_under_a_backbone_with_regions(frozen: bool, tmp_path: Path) -> None:
    paths = pictures(tmp_path / "pictures", 6)
    captions = tuple(f"a square number {one}" for one in range(6))
    data = ImageCaptions(
        tuple(path.name for path in paths), captions, np.arange(6), paths=tuple(paths),
        splits=("train", "train", "train", "train", "val", "val"), name="squares",
    )  # fmt: skip
    config = config_for(small(image=seeing(frozen=frozen)), epochs=(1, 1), batch_size=4)
    result = train(config, data, tmp_path / "run", cache=tmp_path / "cache")
    model = load(result.model_folder, "cpu")
    assert isinstance(model, VSRN)
    assert model.backbone.regions == 4
    vectors = model.encode_image(paths, cache=tmp_path / "cache").vectors
    in_memory = model.encode_image([path.read_bytes() for path in paths]).vectors
    np.testing.assert_allclose(in_memory, vectors, atol=1e-5)
    np.testing.assert_allclose(model.prepare_image(paths[0].read_bytes())().vectors[0], vectors[0], atol=1e-5)
    assert model.part_of("caption_head.out.weight") == ParameterPlace()
    index = Index.build(data.split("train").select([0, 1, 2]), model, tmp_path / "index", store="exact")
    assert len(Searcher(index, model).search_text("a square number 1", 3)) == 3
    export_onnx(model, tmp_path / "onnx")
    exported = load(tmp_path / "onnx")
    assert (exported.encode_image(paths).vectors * vectors).sum(axis=1).min() > 0.99  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{}, {"batch_norm": True, "normalise": "regions"}], ids=["coco", "other"])
def test_exported_it_gives_the_same_vectors_for_any_number_of_regions(options: Any, tmp_path: Path) -> None:
    model = make(features(6), **options).eval()
    export_onnx(model, tmp_path / "onnx")
    exported = load(tmp_path / "onnx")
    assert isinstance(exported, OnnxModel)
    assert exported.stands_for == model.fingerprint
    for regions in (1, 5, 36):
        rows = features(9, regions, seed=5).features
        found = exported.encode_image(rows).vectors
        np.testing.assert_allclose(found, model.encode_image(rows).vectors, atol=5e-6)
    np.testing.assert_allclose(exported.encode_text(TEXTS), model.encode_text(TEXTS), atol=2e-6)
    assert b"caption_head" not in (tmp_path / "onnx" / "image.onnx").read_bytes()
    with pytest.raises(UserError, match=r"one vector for each image, but the model reads regions; give an array"):
        exported.encode_image(FeatureRows(np.zeros((2, 7), np.float32)))


def test_the_words_of_a_frozen_encoder_are_told_too(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    sentence_model(tmp_path / "sentences")
    data = features(12)
    for frozen in (True, False):
        text = TransformerConfig(model=str(tmp_path / "sentences"), frozen=frozen)
        model = make(data, text=text)
        assert model.caption_head.words.num_embeddings == 7, "the tokenizer's vocabulary"
        assert model.text_projection.weight.shape == (8, 2)
        pairs = model.read(data, np.arange(12), cache=tmp_path / "cache")
        batch = model.batch(pairs, np.array([0, 1, 2]))
        assert (batch.lengths is None) == frozen
        tokens = [batch.words[row, :n].tolist() for row, n in enumerate(batch.word_lengths)]
        assert tokens == model.text_encoder.tokenise(data.captions[:3])
        assert model.score(batch).own > 0
        train(config_for(small(text=text), epochs=(1, 1)), data, tmp_path / f"run {frozen}", cache=tmp_path / "cache")


def test_of_one_pair_there_is_a_step_too() -> None:
    data = features(4, regions=1)
    model = make(data, batch_norm=True).train()
    pairs = model.read(data, np.arange(4))
    scored = model.score(model.batch(pairs, np.array([2])))
    (scored.similarity.sum() + scored.own).backward()
    assert torch.isfinite(model.image_projection.projection.weight.grad).all()


def test_it_computes_in_bfloat16_too(tmp_path: Path) -> None:
    result = train(config_for(small(), precision="bfloat16", epochs=(6, 1)), features(32), tmp_path / "run")
    assert result.history[-1]["loss"] < 0.8 * result.history[0]["loss"]


def test_what_does_not_fit_is_one_line(tmp_path: Path) -> None:
    data = features(6)
    flat = FeatureRows(np.zeros((6, 7), np.float32))
    with pytest.raises(UserError, match=r"one vector of 7 numbers .* a model of kind 'vsrn' reads regions; give an"):
        VSRN.create(small(), data.texts, flat)
    with pytest.raises(UserError, match=r"one vector of 7 numbers .* a model of kind 'vsrn' reads regions; give an"):
        make(data).encode_image(flat)
    with pytest.raises(UserError, match="set model.image.pool: regions"):
        VSRN.create(small(image=replace(seeing(), pool="backbone")), data.texts)
    words = FeatureRows(np.zeros((len(data.captions), 3), np.float32))
    of_rows = small(text=TextFeatureConfig())
    with pytest.raises(UserError, match="have rows of features in place of texts; set model.captions.weight: 0"):
        VSRN.create(of_rows, words, data.features)
    silent = replace(of_rows, captions=replace(SMALL, weight=0.0))
    assert VSRN.create(silent, words, data.features).encode_text(words).shape == (len(words), 8)
    with pytest.raises(UserError, match="layers: must be at least 1"):
        small(layers=0)


def test_a_head_that_config_does_not_name_is_refused(tmp_path: Path) -> None:
    model = make(features(6))
    model.save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    facts = json.loads(file.read_text())
    facts["model"]["captions"]["weight"] = 0.0
    file.write_text(json.dumps(facts))
    with pytest.raises(UserError, match=r"caption_head.*config.json asks for no such tensor"):
        load(tmp_path / "model", "cpu", altered=True)


@pytest.mark.parametrize("flickr", [False, True])
def test_parameters_are_as_many_as_the_authors(flickr: bool) -> None:
    """Counted from the equations, at the sizes of the program: D 2048, words 300, hidden 512."""
    words = ["dog", "cat", "on", "grass"]
    captions = [" ".join(words)]
    v, d, f, e, h = len(words) + 4, 2048, 2048, 300, 512  # with <pad>, <unk>, <start>, <end>
    with torch.device("meta"):
        model = VSRN(
            VSRNConfig(image=FeatureConfig(width=f), normalise_first=not flickr, batch_norm=flickr),
            FeatureInput(f),
            lambda: GRUEncoder(learn_vocabulary(captions, 1), e, d),
        )
    assert model.text_encoder.tokenizer.token_to_id(END) == 3
    linear = f * d + d
    convolution = 4 * (d * d + d) + 2 * d  # theta, phi, g, W_r; scale and shift
    region_gru = 3 * (d * d + d * d + 2 * d)
    image = linear + 4 * convolution + region_gru + (2 * d if flickr else 0)
    text = v * e + 3 * (e * d + d * d + 2 * d)
    encoder = (d * h + h) + 3 * (h * h + h * h + 2 * h)
    attention = (2 * h * h + h) + h
    decoder = v * e + 3 * ((e + h) * h + h * h + 2 * h) + (h * v + v)
    assert image == (96_536_576 if flickr else 96_532_480)
    assert encoder + attention == 3_150_336
    parts = {"image_projection": image, "text_encoder": text, "caption_head": encoder + attention + decoder}
    counted = {part: sum(one.numel() for one in model.get_submodule(part).parameters()) for part in parts}
    assert counted == parts
    assert sum(one.numel() for one in model.parameters()) == sum(parts.values())
    assert model.config.captions.longest == 60
