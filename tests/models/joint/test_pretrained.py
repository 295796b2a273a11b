"""Published models as models. Also tests rungwise.models._loading."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.encoders import AdapterHead
from rungwise.encoders.pretrained import ModelSource
from rungwise.encoders.pretrained import _sides as sides
from rungwise.index import Index, Searcher
from rungwise.models import JointEmbedding, VSEConfig, load
from rungwise.models.joint.pretrained import open_published
from tests.published import CAPTIONS, Published, photos

KINDS = {
    "clip": "hf",
    "siglip2": "hf",
    "naflex": "hf",
    "open_clip": "open_clip",
    "open_clip_siglip": "open_clip",
    "sentence": "st",
}


@pytest.fixture
def collection(tmp_path: Path) -> ImageCaptions:
    paths = []
    for number, file in enumerate(photos()):
        paths.append(tmp_path / f"{number}.{Image.open(io.BytesIO(file)).format}".lower())
        paths[-1].write_bytes(file)
    owners = np.arange(len(CAPTIONS)) % len(paths)
    return ImageCaptions(tuple(path.name for path in paths), CAPTIONS, owners, paths=tuple(paths))


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_copy_needs_neither_the_source_nor_its_name(
    name: str, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(f"{KINDS[name]}:{getattr(published, name)}", "cpu")
    assert isinstance(model, JointEmbedding)
    model.save_pretrained(tmp_path / "model")
    monkeypatch.setattr(sides, "open_image", lambda source: pytest.fail("looked at the source"))
    monkeypatch.setattr(sides, "open_text", lambda source: pytest.fail("looked at the source"))
    again = load(tmp_path / "model", "cpu")
    assert again.fingerprint == model.fingerprint
    assert np.array_equal(again.encode_text(CAPTIONS), model.encode_text(CAPTIONS))
    assert np.array_equal(again.encode_image(photos()).vectors, model.encode_image(photos()).vectors)


@pytest.mark.parametrize("name", ["clip", "naflex", "open_clip", "sentence"])
def test_a_folder_without_a_prefix_is_the_same_model(name: str, published: Published) -> None:
    folder = getattr(published, name)
    assert load(folder, "cpu").fingerprint == load(f"{KINDS[name]}:{folder}", "cpu").fingerprint


def test_a_published_model_builds_an_index_and_searches_it(
    published: Published, collection: ImageCaptions, tmp_path: Path
) -> None:
    model = load(f"hf:{published.siglip2}", "cpu")
    index = Index.build(collection, model, tmp_path / "index")
    hits = Searcher(index, load(published.siglip2, "cpu")).search_text(CAPTIONS[0], k=3)
    scores = model.encode_text(CAPTIONS[:1]) @ model.encode_image(photos()).vectors.T
    assert [hit.id for hit in hits] == [collection.image_ids[row] for row in np.argsort(-scores[0])[:3]]


def test_vectors_of_pictures_are_computed_once(
    published: Published, collection: ImageCaptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(f"hf:{published.clip}", "cpu").encode_image(collection.pictures, cache=tmp_path / "cache").vectors
    monkeypatch.setattr(sides.PretrainedImageSide, "forward", lambda *_: pytest.fail("computed again"))
    again = load(f"st:{published.sentence}", "cpu").encode_image(collection.pictures, cache=tmp_path / "cache").vectors
    assert np.array_equal(first, again)


def test_halves_of_different_models_are_refused(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    other = sides.open_text(f"hf:{published.siglip2}")
    monkeypatch.setattr(sides, "open_text", lambda source: other)
    with pytest.raises(UserError, match="vectors of pictures have 24 numbers, those of texts 32"):
        open_published(ModelSource("hf", str(published.clip)), "cpu")


@pytest.mark.parametrize(
    ("name", "frozen"), [("clip", True), ("naflex", False), pytest.param("open_clip", False, marks=pytest.mark.slow)]
)
def test_a_published_model_is_given_heads_and_trained(
    name: str, frozen: bool, published: Published, collection: ImageCaptions, tmp_path: Path
) -> None:
    place = f"{KINDS[name]}:{getattr(published, name)}"
    plain = load(place, "cpu")
    config = VSEConfig(
        image=sides.PretrainedImageConfig(place, frozen=frozen),
        text=sides.PretrainedTextConfig(place, frozen=frozen),
        dimension=plain.dimension,
        image_head=AdapterHead(hidden=8, dropout=0.0),
        text_head=AdapterHead(hidden=8, dropout=0.0),
    )
    model = JointEmbedding.create(config, CAPTIONS)
    # Adapters add nothing at first.
    assert model.encode_text(CAPTIONS) == pytest.approx(plain.encode_text(CAPTIONS), abs=1e-5)
    pairs = model.train().read(collection, np.arange(len(collection)), cache=tmp_path / "cache")
    images, texts = model.embed(model.batch(pairs, np.arange(len(pairs.captions))))
    (images - texts).square().sum().backward()
    trained = {key for key, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()}
    assert any(key.startswith("image_projection") for key in trained)
    assert any(key.startswith("backbone.network") for key in trained) == (not frozen)
    assert any(key.startswith("text_encoder.network") for key in trained) == (not frozen)
    model.save_pretrained(tmp_path / "model")
    assert load(tmp_path / "model", "cpu").fingerprint == model.fingerprint
