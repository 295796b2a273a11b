"""CVSE against nested loops, and from training to search. Also tests rungwise.models.regions.consensus._config."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig, TransformerConfig
from rungwise.evaluation import evaluate
from rungwise.index import Index, Searcher
from rungwise.losses import MaxOfHinges
from rungwise.models import load
from rungwise.models.export import export_onnx
from rungwise.models.regions._self_attention import SelfAttention
from rungwise.models.regions.consensus._concepts import ConceptConfig
from rungwise.models.regions.consensus._config import CVSEConfig
from rungwise.models.regions.consensus._cvse import CVSE, ConceptBatch, Levels
from rungwise.training.config import LossConfig, TrainConfig, config_of
from rungwise.training.engine import train
from rungwise.training.steps._strategies import CachedGradients
from tests.encoders.texts.test_transformer import save_plain
from tests.models.regions.consensus_loops import (
    compare,
    divergence_loops,
    graph_loops,
    label_loops,
    mixed_up,
    score_loops,
    stacked,
)
from tests.models.regions.loops import Vector as Row
from tests.models.regions.loops import dot, self_attention, unit, weighted
from tests.training.every_loss import NAMED
from tests.training.every_run import Degrees

CAPTIONS = ["a red dog runs", "a blue cat", "two dogs and a cat", "a red ball", "a man runs", "a blue man"]
FEATURES, CONCEPTS = 5, ConceptConfig(min_count=1, most_share=0.5, width=3)


def features(images: int = 3, regions: int = 4, seed: int = 0) -> FeatureRows:
    draw = np.random.default_rng(seed)
    return FeatureRows(draw.normal(size=(images, regions, FEATURES)).astype(np.float32))


def config(**changes: object) -> CVSEConfig:
    text = GRUConfig(word_dimension=4, min_count=1, directions="both")
    given = CVSEConfig(image=FeatureConfig(), text=text, dimension=6, concepts=CONCEPTS)
    return replace(given, **changes)


def make(regions: int = 4, **changes: object) -> CVSE:
    torch.manual_seed(0)
    return CVSE.create(config(**changes), CAPTIONS, features(regions=regions)).eval()


def levels_by_loops(model: CVSE, instances: list[Row], image: bool, labels: Tensor | None) -> tuple[list[Row], ...]:
    """Fused, instance and consensus vectors, and scores of concepts."""
    concepts = graph_loops(model.graph)
    attention = model.image_concepts if image else model.text_concepts
    scores = score_loops(attention, instances, concepts, model.training)
    if labels is not None:
        scores = label_loops(scores, labels, 0.35, 10.0)
    consensus = [unit(weighted(one, concepts)) for one in scores]
    fused = [
        unit([0.85 * a + 0.15 * b for a, b in zip(one, other, strict=True)])
        for one, other in zip(instances, consensus, strict=True)
    ]
    return fused, instances, consensus, scores


def words_by_loops(attention: SelfAttention, words: Tensor, lengths: Sequence[int]) -> list[Row]:
    return [self_attention(attention, one[None, :length], False)[0] for one, length in zip(words, lengths, strict=True)]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("regions", "lengths"), [(1, (1, 1)), (3, (4, 1, 2)), (2, (3, 3))])
def test_similarity_and_gradients_are_those_of_nested_loops(regions, lengths, training):
    model = mixed_up(make(regions, dropout=0.0))
    assert model.text_attention.unit_mean  # as the program has it, which the loops read here
    assert not model.image_attention.unit_mean
    model.graph.nodes.weight.data.sub_(0.7)
    model.train(training)
    n, concepts = len(lengths), len(model.concepts)
    sets = torch.randn(n, regions, 6, dtype=torch.float64, requires_grad=True)
    words = torch.randn(n, max(lengths), 6, dtype=torch.float64, requires_grad=True)
    labels = (torch.rand(n, concepts) < 0.3).double()
    texts = model.levels_of_words(words, torch.tensor(lengths), labels)
    found = model.scored(model.levels_of_regions(sets), texts)

    image = levels_by_loops(model, self_attention(model.image_attention, sets, training), True, None)
    text = levels_by_loops(model, words_by_loops(model.text_attention, words, lengths), False, labels)
    blocks = [stacked([[dot(one, other) for other in text[at]] for one in image[at]]) for at in range(3)]
    inputs = (sets, words, *(one for name, one in model.named_parameters() if _is_compared(name, training)))
    compare(found.similarity, blocks[0], *inputs)
    hinge = MaxOfHinges(0.2)
    expected = 3 * hinge(blocks[0]) + 5 * hinge(blocks[1]) + hinge(blocks[2]) + 2 * divergence_loops(image[3], text[3])
    compare(found.loss(hinge), expected, *inputs)


def _is_compared(name: str, training: bool) -> bool:
    """Those whose gradient is not zero but for rounding: softmax, and batch norm in training, take out a shift."""
    shifts = ["common.bias", *(["concept.bias", "instance.bias", "image_attention.whole.bias"] if training else [])]
    known = name.startswith(("graph", "image_attention", "text_attention", "image_concepts", "text_concepts"))
    return known and not name.endswith(tuple(shifts))


def test_autocast_rounds_encoders_alone():
    model = make()
    batch = ConceptBatch(
        torch.randn(3, 4, FEATURES), torch.tensor([[4, 5], [6, 7], [5, 4]]), torch.tensor([2, 2, 1]), torch.eye(3, 10)
    )
    exact, rounded = model.score(batch), model.score(batch, lambda: torch.autocast("cpu", torch.bfloat16))
    for one in (rounded.similarity, *(block for _, block in rounded.further), rounded.own):
        assert one.dtype == torch.float32
    torch.testing.assert_close(rounded.similarity, exact.similarity, atol=0.03, rtol=0)
    assert not torch.equal(rounded.similarity, exact.similarity)


def equal(found: Levels, expected: Levels) -> None:
    for name in ("fused", "instance", "consensus", "scores"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)


def test_what_stands_after_a_text_changes_nothing():
    model = mixed_up(make())
    words, lengths = torch.randn(2, 4, 6, dtype=torch.float64), torch.tensor([2, 4])
    labels = torch.zeros(2, len(model.concepts))
    expected = model.levels_of_words(words, lengths, labels)
    other = words.clone()
    other[0, 2:] = math.nan
    equal(model.levels_of_words(other, lengths, labels), expected)
    longer = torch.cat([words, torch.full((2, 3, 6), 1e30, dtype=torch.float64)], dim=1)
    equal(model.levels_of_words(longer, lengths, labels), expected)


def test_order_and_batches_do_not_matter():
    model, rows = make(), features(5)
    texts = [*CAPTIONS, "", "unheard of words", "a red dog runs a red dog runs a red dog runs"]
    together, images = model.encode_text(texts), model.encode_image(rows).vectors
    for position, text in enumerate(texts):
        np.testing.assert_allclose(model.encode_text([text])[0], together[position], atol=1e-6)
    np.testing.assert_allclose(model.encode_text(texts, batch=2), together, atol=1e-6)
    np.testing.assert_allclose(model.encode_image(rows.take([3, 0])).vectors, images[[3, 0]], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_a_text_knows_the_concepts_of_its_words_whatever_its_encoder_knows():
    model = make(level="consensus", text=GRUConfig(word_dimension=4, min_count=5))
    assert {"dog", "cat"} <= set(model.concepts.words)
    dog, cat, none = model.encode_text(["dog", "cat", "zyx"])  # all are <unk> to the encoder
    assert abs(dog - cat).max() > 1e-3
    assert abs(dog - none).max() > 1e-3


def test_levels_can_be_chosen():
    torch.manual_seed(0)
    models = {level: make(level=level) for level in ("fused", "instance", "consensus")}
    weights = models["fused"].state_dict()
    found = {}
    for level, model in models.items():
        model.load_state_dict(weights)
        found[level] = (model.encode_text(CAPTIONS), model.encode_image(features()).vectors)
    for instance, consensus, fused in zip(found["instance"], found["consensus"], found["fused"], strict=True):
        mixed = 0.85 * instance + 0.15 * consensus
        np.testing.assert_allclose(fused, mixed / np.linalg.norm(mixed, axis=1, keepdims=True), atol=1e-6)
    assert len({model.fingerprint for model in models.values()}) == 3


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_two_levels_are_one_vector(share, tmp_path: Path):
    model, alone = make(consensus_share=share), {level: make(level=level) for level in ("fused", "consensus")}
    for one in alone.values():
        one.load_state_dict(model.state_dict())
    images, texts = model.encode_image(features()).vectors, model.encode_text(CAPTIONS)
    assert model.dimension == images.shape[1] == texts.shape[1] == 2 * model.config.dimension == 12
    for vectors in (images, texts):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    fused, consensus = (one.block(features(), CAPTIONS) for one in alone.values())
    expected = (1 - share) * fused + share * consensus
    np.testing.assert_allclose(model.block(features(), CAPTIONS), expected, atol=1e-6)
    assert not np.allclose(expected, fused, atol=1e-4)
    batch = ConceptBatch(torch.randn(2, 4, FEATURES), torch.tensor([[4], [5]]), torch.tensor([1, 1]), torch.eye(2, 10))
    images, texts = model.embed(batch)
    assert images.shape == texts.shape == (2, 12)
    assert f"vectors of 12 numbers, whose similarity is {1 - share:g} of the fused level" in " ".join(model.remarks())
    model.save_pretrained(tmp_path / "model")
    assert "by vectors of 12 numbers" in (tmp_path / "model" / "README.md").read_text()
    again = load(tmp_path / "model")
    assert isinstance(again, CVSE)
    assert (again.dimension, again.fingerprint) == (12, model.fingerprint)
    assert model.fingerprint != alone["fused"].fingerprint


def test_the_loss_of_a_batch_does_not_know_how_vectors_are_compared():
    batch = ConceptBatch(torch.randn(2, 4, FEATURES), torch.tensor([[4], [5]]), torch.tensor([1, 1]), torch.eye(2, 10))
    one, other = (make(consensus_share=share).score(batch, within=True) for share in (0.0, 0.05))
    assert torch.equal(one.loss(MaxOfHinges(0.2)), other.loss(MaxOfHinges(0.2)))
    assert torch.equal(one.similarity, other.similarity)


def test_a_share_of_nothing_is_no_part_of_a_fingerprint():
    known = make()._identity()[0]
    assert "consensus_share" not in known
    assert "training_concepts" not in make(training_concepts="picture", consensus_share=0.1)._identity()[0]


def test_labels_in_training_are_those_of_the_picture_where_asked_for():
    data = ImageCaptions(
        paths=(),
        image_ids=("a", "b", "c"),
        captions=tuple(CAPTIONS),
        image_of_caption=np.array([0, 1, 0, 2, 2, 0]),
        splits=("train",) * 3,
        features=features(),
    )
    labels, vectors = {}, {}
    for whose in ("caption", "picture"):
        model = make(training_concepts=whose)
        pairs = model.read(data, np.array([0, 2]))
        labels[whose] = model.batch(pairs, np.array([4, 0, 2])).labels
        vectors[whose] = model.scores_of(pairs).matrix()
    words = make().concepts.words
    for row, text in enumerate(("a blue man", "a red dog runs", "a red ball")):  # captions 5, 0 and 3
        assert labels["caption"][row].tolist() == [float(word in text.split()) for word in words]
    first, last = (" ".join(CAPTIONS[text] for text in some).split() for some in ((0, 2, 5), (3, 4)))
    for row, together in enumerate((first, first, last)):
        assert labels["picture"][row].tolist() == [float(word in together) for word in words]
    np.testing.assert_array_equal(vectors["caption"], vectors["picture"])


def test_the_parameters_are_as_many_as_the_equations_say():
    """At the sizes of the authors' program, of all that an equation reads.

    The program makes more: two layers of visual self-attention (fc2_2 and fc4) with a batch norm and one of the graph
    (joint_att_emb) that nothing calls, and three matrices of 300 x 300 that are declared trainable and never are.
    """
    f, d, w, c, r = 2048, 1024, 300, 300, 36
    captions = [f"word{number} and word{number + 1}" for number in range(c)]
    vocabulary = c + 1 + len(("and", "<pad>", "<unk>", "<start>", "<end>"))
    rows, text = FeatureRows(np.zeros((1, r, f), np.float32)), GRUConfig(min_count=1, directions="both")
    concepts = ConceptConfig(min_count=1, width=w)
    model = CVSE.create(CVSEConfig(image=FeatureConfig(), text=text, concepts=concepts), captions, rows)
    assert (len(model.concepts), model.config.regions, model.config.dimension) == (c, r, d)
    attention = (d * d + d) + (d * d + d) + (d + 1)  # W_l and b_l, W_g and b_g, w and b
    parts = {
        "image_projection": f * d + d,
        "text_encoder": vocabulary * w + 2 * (3 * d * w + 3 * d * d + 2 * 3 * d),
        "image_attention": attention + 2 * r + 2 * d,
        "text_attention": attention,
        "image_concepts": attention + 2 * 2 * d,
        "text_concepts": attention + 2 * 2 * d,
        "graph": w * (d // 2) + (d // 2) * d + c * w,  # W_1, W_2, E
    }
    assert {name: sum(one.numel() for one in model.get_submodule(name).parameters()) for name in parts} == parts
    assert sum(one.numel() for one in model.parameters()) == sum(parts.values())
    # Without words and start vectors, of which the data say how many: 2,098,176 + 8,146,944 + 2,102,345 + 2,100,225 +
    # 2 * 2,104,321 + 677,888.
    assert sum(parts.values()) - vocabulary * w - c * w == 19_334_220


def world(images: int = 24) -> ImageCaptions:
    """Four kinds of pictures, whose regions say which; 4 to validate, 4 to test, the others to train with."""
    draw, names = np.random.default_rng(1), ("red dog", "blue cat", "green ball", "white man")
    meanings = draw.normal(size=(4, 1, FEATURES))
    rows = (meanings[np.arange(images) % 4] + 0.1 * draw.normal(size=(images, 4, FEATURES))).astype(np.float32)
    captions = [phrase.format(names[image % 4]) for image in range(images) for phrase in ("a {}", "one {} here")]
    return ImageCaptions(
        paths=(),
        image_ids=tuple(f"{image}.jpg" for image in range(images)),
        captions=tuple(captions),
        image_of_caption=np.repeat(np.arange(images), 2),
        splits=("train",) * (images - 8) + ("val",) * 4 + ("test",) * 4,
        features=FeatureRows(rows),
    )


def small(loss: LossConfig, **changes: object) -> TrainConfig:
    model = config(concepts=replace(CONCEPTS, most_share=0.3), dropout=0.0)
    return TrainConfig(
        model=model, loss=loss, **{"epochs": (20,), "learning_rates": (1e-2,), "batch_size": 8, "logs": ()} | changes
    )


@pytest.mark.parametrize("options", [{}, {"consensus_share": 0.05, "training_concepts": "picture"}])
def test_trained_saved_loaded_evaluated_indexed(options, tmp_path: Path):
    data = world(48)
    changed = small(config_of(MaxOfHinges)(), epochs=(12,), learning_rates=(5e-3,))
    changed = replace(changed, model=replace(changed.model, **options))
    result = train(changed, data, tmp_path / "run", device="cpu")
    model = load(result.model_folder)
    assert isinstance(model, CVSE)
    assert set(model.concepts.words) == {"red", "dog", "blue", "cat", "green", "ball", "white", "man"}
    assert result.history[-1]["loss"] < result.history[0]["loss"] / 2
    test = data.split("test")
    scores = model.on(test)
    assert evaluate(**scores.for_evaluation(), image_of_caption=test.image_of_caption)["t2i/R@1"] > 90
    validation = model.on(data.split("val"))
    measured = evaluate(**validation.for_evaluation(), image_of_caption=validation.data.image_of_caption)
    assert measured["rsum"] == pytest.approx(result.best_rsum, abs=1e-6)
    three = data.select([0, 1, 2])
    found = Searcher(Index.build(three, model, tmp_path / "index"), model).search_text("one blue cat", 3)
    assert found[0].id == three.image_ids[1]
    assert found[0].score == pytest.approx(model.block(three.features, ["one blue cat"])[1, 0], abs=1e-6)
    assert Index.open(tmp_path / "index").manifest.dimension == model.dimension == (12 if options else 6)


@pytest.mark.parametrize("loss", NAMED, ids=lambda loss: loss.kind)
def test_every_loss_trains_it(loss: LossConfig, tmp_path: Path):
    data = world(16)
    labelled = replace(data, labels=tuple((label,) for label in "rbgw" * 4))
    changed = small(loss, epochs=(1,))
    result = train(changed, labelled, tmp_path / "run", relevance=Degrees(labelled), device="cpu")
    assert all(math.isfinite(row["loss"]) for row in result.history)


def test_steps_of_vectors_alone_are_refused(tmp_path: Path):
    with pytest.raises(UserError, match="adds losses of its own; set step: plain"):
        train(small(config_of(MaxOfHinges)(), step=CachedGradients(chunk=4)), world(), tmp_path / "run", device="cpu")


def saved(folder: Path, **changes: object) -> CVSE:
    model = make(**changes)
    model.save_pretrained(folder)
    return model


def test_saved_and_loaded_it_encodes_alike(tmp_path: Path):
    model = saved(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, CVSE)
    assert again.fingerprint == model.fingerprint
    assert again.config == model.config
    assert again.concepts == model.concepts
    assert (tmp_path / "model" / "concepts.txt").read_text().split() == list(model.concepts.words)
    assert torch.equal(again.graph.adjacency, model.graph.adjacency)
    np.testing.assert_array_equal(again.encode_text(CAPTIONS), model.encode_text(CAPTIONS))
    np.testing.assert_array_equal(again.encode_image(features()).vectors, model.encode_image(features()).vectors)


def test_other_concepts_are_another_model():
    first, second = make(), make()
    second.load_state_dict(first.state_dict())
    assert first.fingerprint == second.fingerprint
    words = first.concepts.words
    second.concepts = type(first.concepts)((*words[1:], words[0]))
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("concepts.txt", lambda text: text + "zebra\n", r"concepts.txt: 11 concepts, but config.json counts 10"),
        ("concepts.txt", lambda text: "", r"concepts.txt: 0 words, where concepts must be 2\.\.8192"),
        (
            "concepts.txt",
            lambda text: text.replace("dog\n", "a dog\n"),
            r"concepts.txt, line \d+: 'a dog' is no single word",
        ),
        ("concepts.txt", None, r"concepts.txt: missing"),
        ("config.json", lambda text: text.replace('"regions": 4', '"regions": null'), "model.regions is missing"),
        ("config.json", lambda text: text.replace('"regions": 4', '"regions": 5'), r"\(4,\), but config.json asks for"),
        (
            "config.json",
            lambda text: text.replace('"count": 10', '"count": 8000000'),
            "count: must be at most 8192",
        ),
    ],
)
def test_damaged_folders_are_one_line(name, change, message, tmp_path: Path):
    model = saved(tmp_path / "model")
    assert len(model.concepts) == 10
    file = tmp_path / "model" / name
    text = file.read_text()
    if change is None:
        file.unlink()
    else:
        assert change(text) != text
        file.write_text(change(text))
    with pytest.raises(UserError, match=message) as refused:
        load(tmp_path / "model", altered=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("rows", [3, 12])
def test_a_graph_of_another_size_is_one_line(rows: int, tmp_path: Path):
    saved(tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    save_file(weights | {"graph.adjacency": torch.eye(rows)}, tmp_path / "model" / "model.safetensors")
    with pytest.raises(UserError, match=rf"graph.adjacency: \({rows}, {rows}\), but config.json asks for \(10, 10\)"):
        load(tmp_path / "model", altered=True)


def test_a_graph_that_holds_no_numbers_is_one_line(tmp_path: Path):
    saved(tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    weights["graph.adjacency"][0, 1] = math.nan
    save_file(weights, tmp_path / "model" / "model.safetensors")
    with pytest.raises(UserError, match="graph.adjacency: holds NaN or infinite numbers"):
        load(tmp_path / "model", altered=True)


def test_concepts_and_vectors_of_files(tmp_path: Path):
    (tmp_path / "words.txt").write_text("dog\ncat\nzebra\n")
    (tmp_path / "glove.txt").write_text("dog 1 2\ncat 3 4\nhorse 5 6\n")
    files = ConceptConfig(file=str(tmp_path / "words.txt"), word_vectors=str(tmp_path / "glove.txt"))
    model = make(concepts=files)
    assert model.concepts.words == ("dog", "cat", "zebra")
    assert (model.config.concepts.count, model.config.concepts.width) == (3, 2)
    assert model.graph.nodes.weight[:2].tolist() == [[1, 2], [3, 4]]
    assert not model.graph.nodes.weight.requires_grad
    assert "concepts: glove.txt: vectors for 2 of 3 words (66.7 %)" in model.remarks()
    model.save_pretrained(tmp_path / "model")
    for name in ("words.txt", "glove.txt"):
        (tmp_path / name).unlink()
    again = load(tmp_path / "model")
    assert isinstance(again, CVSE)
    assert again.fingerprint == model.fingerprint
    assert not again.graph.nodes.weight.requires_grad
    assert str(tmp_path) not in (tmp_path / "model" / "config.json").read_text()


def test_concepts_of_other_captions_are_one_line(tmp_path: Path):
    (tmp_path / "words.txt").write_text("zebra\ngiraffe\n")
    message = r"words.txt: none of its 2 words stands in the 6 training captions; give concepts of this collection"
    with pytest.raises(UserError, match=message):
        make(concepts=ConceptConfig(file=str(tmp_path / "words.txt")))
    with pytest.raises(UserError, match=r"^0 words stand in at least 9 and at most 50 % of the 6 training captions"):
        make(concepts=replace(CONCEPTS, min_count=9))


def test_a_transformer_reads_texts_whose_concepts_are_words(tmp_path: Path):
    save_plain(tmp_path / "bert", "bert")
    model = make(text=TransformerConfig(model=str(tmp_path / "bert")))
    assert model.text_encoder.state_width != model.config.dimension
    texts = [*CAPTIONS, "zyx dog"]
    found = model.encode_text(texts)
    model.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_allclose(again.encode_text(texts[::-1])[::-1], found, atol=1e-6)  # type: ignore[attr-defined]


def test_pictures_under_a_backbone_whose_map_is_kept(tmp_path: Path):
    draw, paths = np.random.default_rng(0), [tmp_path / f"{number}.png" for number in range(3)]
    for path in paths:
        Image.fromarray(draw.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=64, pool="regions", l2_normalise=False)
    torch.manual_seed(0)
    model = CVSE.create(config(image=image), CAPTIONS).eval()
    assert model.config.regions == model.backbone.regions == 4
    vectors = model.encode_image(paths, cache=tmp_path / "cache").vectors
    assert vectors.shape == (3, 6)
    alone = model.prepare_image(paths[1].read_bytes())().vectors
    np.testing.assert_allclose(alone[0], vectors[1], atol=1e-5)
    model.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_allclose(again.encode_image(paths, cache=tmp_path / "cache").vectors, vectors, atol=1e-6)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, FEATURES), "the pictures have 3 regions, but the model was made for 4"),
        ((2, FEATURES), "one vector .*, and .* reads regions"),
        ((2, 4, FEATURES + 1), "features of length 6, but the model reads features of length 5"),
    ],
)
def test_other_pictures_are_one_line(shape, message):
    with pytest.raises(UserError, match=message):
        make().encode_image(FeatureRows(np.zeros(shape, np.float32)))


def test_data_without_regions_or_words_are_one_line():
    with pytest.raises(UserError, match="a model of kind 'cvse' reads regions; give an array"):
        CVSE.create(config(), CAPTIONS, FeatureRows(np.zeros((2, 5), np.float32)))
    with pytest.raises(UserError, match="rows of features in place of texts"):
        CVSE.create(config(), FeatureRows(np.zeros((2, 5), np.float32)), features())
    with pytest.raises(UserError, match="rows of features in place of texts"):
        make().encode_text(FeatureRows(np.zeros((2, 5), np.float32)))
    with pytest.raises(UserError, match="model.regions is 7, but each picture has 4 regions; leave it out"):
        CVSE.create(config(regions=7), CAPTIONS, features())
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=64)
    with pytest.raises(UserError, match="set model.image.pool: regions"):
        CVSE.create(config(image=image), CAPTIONS)


def test_it_is_not_exported(tmp_path: Path):
    with pytest.raises(UserError, match="'cvse' is not exported: it reads the words of a text beside its tokens"):
        export_onnx(make(), tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, "cvse.alpha: must be at most 1"),
        ({"label_share": -0.1}, "cvse.label_share: must be at least 0"),
        ({"divergence_weight": -1.0}, "cvse.divergence_weight: must be at least 0"),
        ({"fused_weight": math.nan}, "cvse.fused_weight: must be a finite number"),
        ({"dropout": 1.0}, "cvse.dropout: must be below 1"),
        ({"smoothing": 0.0}, "cvse.smoothing: must be above 0"),
        ({"regions": 0}, "cvse.regions: must be at least 1"),
        ({"dimension": 0}, "cvse.dimension: must be at least 1"),
        (
            {"consensus_share": 0.05, "alpha": 0.0},
            "cvse.alpha is 0, so that the fused level is the consensus level",
        ),
        ({"consensus_share": 1.0}, "cvse.consensus_share: must be below 1"),
        ({"training_concepts": "image"}, "cvse.training_concepts: must be 'caption' or 'picture'"),
        (
            {"consensus_share": 0.05, "level": "instance"},
            "cvse.consensus_share is 0.05 beside the fused level, and cvse.level: instance takes one level alone",
        ),
        (
            {"training_concepts": "picture", "label_share": 0.0},
            "cvse.label_share is 0, so that no text has labels, and cvse.training_concepts: picture says whose",
        ),
    ],
)
def test_settings_that_mean_nothing_are_one_line(options, message):
    with pytest.raises(UserError, match=f"^{message}"):
        CVSEConfig(**options)
