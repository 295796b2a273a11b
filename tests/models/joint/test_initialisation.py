"""Models that begin from the weights of another one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import AdapterHead, FeatureConfig, LinearHead, NoHead
from rungwise.encoders._heads import MLPHead, ResidualHead, StackHead
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, VSEConfig, load
from rungwise.models.joint import as_it_is, with_new_heads, with_weights_that_fit

IMAGE = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
WORDS = ["a red boat", "a green hill", "two boats"]
OTHERS = ["one small harbour", "a hill"]


def model(seed: int = 0, **options: object) -> JointEmbedding:
    torch.manual_seed(seed)
    config = VSEConfig(image=IMAGE, text=GRUConfig(word_dimension=4, min_count=1), dimension=8)
    return JointEmbedding.create(replace(config, **options), WORDS).eval()


def vectors(of: JointEmbedding) -> list[np.ndarray]:
    pixels = torch.randint(0, 256, (3, 3, 32, 32), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    with torch.no_grad():
        return [of.eval().embed_images(pixels).numpy(), of.encode_text(WORDS)]


def assert_alike(one: JointEmbedding, other: JointEmbedding) -> None:
    for here, there in zip(vectors(one), vectors(other), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-6)


@pytest.mark.parametrize("trained", [True, False])
def test_a_model_as_it_is_begins_where_the_other_ended(trained: bool) -> None:
    begun = as_it_is(model(), image=trained, text=True)
    assert_alike(begun.model, model())
    assert begun.new == ()
    assert begun.model.config.image.frozen is not trained
    backbone = [one.requires_grad for one in begun.model.backbone.parameters()]
    assert backbone == [trained] * len(backbone)
    assert all(one.requires_grad for one in begun.model.text_encoder.parameters())


@pytest.mark.parametrize("head", [LinearHead(), ResidualHead(hidden=4), MLPHead(hidden=(4,))])
def test_adapters_on_any_head_begin_as_the_model_that_they_adapt(head: object, tmp_path: Path) -> None:
    start = model(image_head=head, text_head=head)
    begun = with_new_heads(model(image_head=head, text_head=head), AdapterHead(hidden=4), AdapterHead(hidden=4))
    assert begun.model.config.image_head == StackHead(of=(head, AdapterHead(hidden=4)))
    assert_alike(begun.model, start)
    assert not any(one.requires_grad for one in begun.model.backbone.parameters())
    begun.model.save_pretrained(tmp_path / "model")
    assert load(tmp_path / "model", "cpu").fingerprint == begun.model.fingerprint != start.fingerprint
    again = with_new_heads(begun.model, AdapterHead(hidden=4), NoHead())
    assert len(again.model.config.image_head.of) == 3
    assert again.model.config.text_head == begun.model.config.text_head
    assert_alike(again.model, start)


def test_another_head_on_one_side_says_what_is_new() -> None:
    begun = with_new_heads(model(), LinearHead(), NoHead())
    assert begun.taken == ("image encoder", "text encoder", "image head (2 of 4 tensors)")
    start = model()
    assert torch.equal(begun.model.image_projection[0].weight, start.image_projection.weight)
    begun = with_new_heads(model(image_head=NoHead(), dimension=model().backbone.features), LinearHead(), NoHead())
    assert begun.new == ("image head",)


def test_the_heads_of_convse_stand_on_those_of_vsepp() -> None:
    mlp = MLPHead(hidden=(6,))
    config = replace(model().config, image_head=StackHead(of=(LinearHead(), mlp)), text_head=mlp)
    begun = with_weights_that_fit(config, model(), OTHERS)
    start, new = model(), begun.model
    assert torch.equal(new.image_projection[0].weight, start.image_projection.weight)
    assert torch.equal(new.text_encoder.words.weight, start.text_encoder.words.weight)
    assert new.text_encoder.tokenise(["two boats"]) == start.text_encoder.tokenise(["two boats"])
    assert set(begun.taken) == {"image encoder", "text encoder", "image head (2 of 6 tensors)"}
    assert begun.new == ("text head",)
    assert new.config.image.frozen


def test_an_encoder_of_another_make_begins_anew() -> None:
    config = replace(model().config, text=GRUConfig(word_dimension=5, min_count=1))
    begun = with_weights_that_fit(config, model(), OTHERS)
    assert begun.taken == ("image encoder", "image head")
    assert begun.new == ("text encoder",)
    start = model()
    for here, there in zip(begun.model.backbone.parameters(), start.backbone.parameters(), strict=True):
        assert torch.equal(here, there)
    assert "harbour" in begun.model.text_encoder.tokenizer.get_vocab()
    wider = with_weights_that_fit(replace(model().config, dimension=6), model(), OTHERS)
    assert wider.new == ("text encoder", "image head")


def test_a_configuration_says_what_of_an_encoder_is_trained_and_seen() -> None:
    seen = replace(IMAGE, frozen=False, crops="RC", batch_norm="frozen")
    begun = as_it_is(model(), image=True, text=True, like=replace(model().config, image=seen)).model
    start = model()
    assert begun.config.image == begun.backbone.config == seen
    assert begun.backbone.preprocessing.crops == "RC"
    assert begun.backbone.preprocessing.mirrored
    assert all(one.requires_grad for one in begun.backbone.parameters())
    for name, tensor in start.backbone.state_dict().items():
        assert torch.equal(begun.backbone.state_dict()[name], tensor)
    begun.train()
    norms = [one for one in begun.backbone.modules() if isinstance(one, torch.nn.BatchNorm2d)]
    assert norms
    assert not any(one.training for one in norms)


def test_what_either_side_freezes_is_not_trained() -> None:
    free, frozen = replace(IMAGE, frozen=False), replace(model().config.text, frozen=True)
    for trained, image in ((True, free), (False, IMAGE)):
        begun = as_it_is(model(), image=True, text=True, like=replace(model().config, image=image))
        assert begun.model.config.image.frozen is not trained
    begun = as_it_is(model(), image=False, text=True, like=replace(model().config, image=free, text=frozen)).model
    assert begun.config.image.frozen
    assert begun.config.text.frozen
    assert not any(one.requires_grad for one in begun.text_encoder.parameters())


def test_a_configuration_of_another_encoder_is_refused() -> None:
    other = replace(model().config, image=replace(IMAGE, size=64))
    with pytest.raises(UserError, match=r"model.image describes another encoder .* \(size: 64, not 32\)"):
        as_it_is(model(), image=True, text=True, like=other)
    rows = replace(model().config, image=FeatureConfig())  # rows of features stand in for a backbone, and back
    assert not as_it_is(model(), image=False, text=True, like=rows).new
    features = FeatureRows(np.zeros((3, 5), np.float32))
    of_rows = JointEmbedding.create(replace(rows, image=FeatureConfig()), WORDS, features)
    assert as_it_is(of_rows, image=True, text=True, like=rows).model.config.image.width == 5


def test_an_encoder_that_sees_another_part_of_a_picture_has_the_same_weights() -> None:
    start = model()
    with torch.no_grad():
        next(start.backbone.parameters()).add_(1.0)
    begun = with_weights_that_fit(replace(start.config, image=replace(IMAGE, crops="10C")), start, WORDS)
    assert begun.new == ()
    assert torch.equal(next(begun.model.backbone.parameters()), next(start.backbone.parameters()))
    assert begun.model.backbone.preprocessing.crops == "10C"


@pytest.mark.parametrize(("width", "taken"), [(8, True), (None, False)])
def test_a_space_of_another_width_keeps_the_text_encoder_where_its_states_stay(width: int | None, taken: bool) -> None:
    words = GRUConfig(word_dimension=4, min_count=1, width=width)
    start = model(text=words)
    mlp = MLPHead(hidden=(6,))
    config = VSEConfig(
        image=IMAGE, text=words, dimension=3, image_head=StackHead(of=(LinearHead(), mlp), width=8), text_head=mlp
    )
    begun = with_weights_that_fit(config, start, WORDS)
    assert ("text encoder" in begun.taken) is taken
    assert "image encoder" in begun.taken
    # The linear layer below the new head is that of the other model.
    assert torch.equal(begun.model.image_projection[0].weight, start.image_projection.weight)
    assert begun.model.encode_text(WORDS).shape == (3, 3)
    if taken:
        ours, theirs = begun.model.text_encoder.state_dict(), start.text_encoder.state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_what_the_file_of_an_encoders_weights_said_goes_with_the_encoder(tmp_path: Path) -> None:
    start = model()
    start.backbone.weights_warning = "weights 'a' say input 64, and the configuration has input 32"
    start.save_pretrained(tmp_path / "start", {"seed": 3})
    start = load(tmp_path / "start", "cpu")
    assert start.provenance == {
        "seed": 3,
        "weights_warning": "weights 'a' say input 64, and the configuration has input 32",
    }
    assert not start.remarks(), "it is said where the file is read"
    same = with_weights_that_fit(replace(start.config, image_head=MLPHead(hidden=(4,))), start, WORDS).model
    other = with_weights_that_fit(replace(start.config, image=replace(IMAGE, size=48)), start, WORDS).model
    for begun in (as_it_is(start, image=True, text=True).model, with_new_heads(start, NoHead(), NoHead()).model, same):
        assert begun.weights_warning == start.weights_warning
    assert other.weights_warning == ""
    same.save_pretrained(tmp_path / "same", {"seed": 4})
    assert load(tmp_path / "same", "cpu").provenance == {"seed": 4, "weights_warning": start.weights_warning}
