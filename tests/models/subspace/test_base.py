"""What all fitted methods do: as dual encoders, in folders, from collections, and in little memory.

Also tests rungwise.models.subspace and rungwise.models.subspace._settings.
"""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders.texts import GRUConfig
from rungwise.models import DualEncoder, family, load, load_dual_encoder
from rungwise.models.export import export_onnx
from rungwise.models.io import FITTED
from rungwise.models.subspace import CCA, GMLDA, LCFS, MLCCA, SCM, Subspace, SubspaceConfig
from rungwise.models.subspace._base import as_rows
from rungwise.models.subspace._settings import Fitted, Gaussian
from rungwise.similarity import Cosine
from tests.models.subspace.items import METHODS, in_turn, several_labels, some_items

ITEMS = some_items(count=30)
Method = type[Subspace]
every_method = pytest.mark.parametrize("method", METHODS)
LIFTED: dict[str, Any] = {"roots": True, "pca": 0.9, "kernel": {"kind": "gaussian", "landmarks": 12}}


def fitted(method: Method, labels: Any = ITEMS.labels, **settings: Any) -> Subspace:
    return method(**settings).fit(ITEMS.images, ITEMS.texts, labels)


def a_collection(captions_of_image: Callable[[int], int]) -> ImageCaptions:
    """The items as images with captions, each of which has the text features of its image."""
    owners = np.repeat(np.arange(30), [captions_of_image(image) for image in range(30)])
    return ImageCaptions(
        tuple(str(image) for image in range(30)),
        ("",) * len(owners),
        owners,
        labels=tuple((f"class {label}",) for label in ITEMS.labels),
        features=FeatureRows(ITEMS.images.astype(np.float32)),
        text_features=FeatureRows(ITEMS.texts[owners].astype(np.float32)),
    )


def test_every_kind_is_there() -> None:
    assert {method.kind for method in METHODS} == set(FITTED)
    for method in METHODS:
        assert family(method.kind) is method
        assert method.config_type().kind == method.kind


@every_method
def test_it_is_a_dual_encoder(method: Method) -> None:
    model = fitted(method)
    assert isinstance(model, DualEncoder)
    assert model.similarity == Cosine()
    assert not model.training
    rows = FeatureRows(ITEMS.images.astype(np.float32))
    encoded = model.encode_image(rows)
    assert encoded.kept.tolist() == list(range(30))
    assert encoded.vectors.dtype == np.float32
    np.testing.assert_array_equal(encoded.vectors, model.encode_image(ITEMS.images).vectors)
    assert model.encode_image(ITEMS.images[:0]).vectors.shape == (0, model.dimension)
    texts = FeatureRows(ITEMS.texts.astype(np.float32))
    block = model.block(rows, texts)
    np.testing.assert_allclose(block, encoded.vectors @ model.encode_text(ITEMS.texts).T, atol=1e-6)
    data = a_collection(lambda image: image % 3)
    scores = model.on(data)
    images, captions = np.array([2, 5]), np.array([0, 7, 3])
    owners = data.image_of_caption[captions]
    np.testing.assert_allclose(scores.block(images, captions), block[images][:, owners], atol=1e-6)


@every_method
def test_vectors_tell_classes_apart(method: Method) -> None:
    items = some_items(5, count=120)
    model = method().fit(items.images[:80], items.texts[:80], items.labels[:80])
    scores = model.block(items.images[80:], items.texts[80:])
    same = items.labels[80:, None] == items.labels[None, 80:]
    assert scores[same].mean() > scores[~same].mean() + 0.3


@pytest.mark.parametrize(("settings", "labels"), [({}, several_labels(ITEMS)), (LIFTED, ITEMS.labels)])
@every_method
def test_a_saved_model_is_the_same(method: Method, settings: dict[str, Any], labels: Any, tmp_path: Path) -> None:
    model = fitted(method, labels, dimension=2, **settings)
    model.save_pretrained(tmp_path / "model")
    assert not list((tmp_path / "model").glob("*.p*"))
    images = model.encode_image(ITEMS.images).vectors
    for found in (load(tmp_path / "model"), load_dual_encoder(tmp_path / "model")):
        assert type(found) is method
        assert found.config == model.config
        assert found.fingerprint == model.fingerprint
        np.testing.assert_array_equal(found.encode_image(ITEMS.images).vectors, images)
        np.testing.assert_array_equal(found.encode_text(ITEMS.texts), model.encode_text(ITEMS.texts))


DAMAGE: list[tuple[list[str], Any, str]] = [
    (["fitted"], None, "model.fitted is missing"),
    (["fitted", "components"], 0, "fitted.components: must be at least 1"),
    (["fitted", "components"], 3, "the files belong to different models"),
    (["fitted", "components"], 10**6, "the files belong to different models"),
    (["fitted", "components"], 10**12, "fitted.components: must be at most"),
    (["fitted", "components"], "two", "fitted.components: must be a whole number"),
    (["fitted", "image_landmarks"], 0, "the files belong to different models"),
    (["fitted", "image_landmarks"], -1, "fitted.image_landmarks: must be at least 0"),
    (["fitted", "text_landmarks"], 11, "the files belong to different models"),
    (["fitted", "classes"], [1, 2], "fitted.classes.0: must be text"),
    (["fitted", "more"], 1, "fitted.more: unexpected"),
    (["roots"], False, "the files belong to different models"),
    (["image", "width"], None, "model.image.width is missing"),
    (["text", "width"], 9, "the files belong to different models"),
    (["pca"], 0, "pca: must be above 0"),
]


def refusal(folder: Path, place: list[str], value: Any) -> str:
    """What is said of a folder in whose configuration a value was changed."""
    facts = json.loads((folder / "config.json").read_text())
    inner = facts["model"]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    (folder / "config.json").write_text(json.dumps(facts))
    with pytest.raises(UserError) as caught:
        load(folder, "cpu", altered=True)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


@pytest.mark.parametrize(("method", "damage"), in_turn([CCA, SCM], DAMAGE))
def test_a_damaged_folder_is_refused(method: Method, damage: tuple[list[str], Any, str], tmp_path: Path) -> None:
    place, value, words = damage
    fitted(method, dimension=2, **LIFTED).save_pretrained(tmp_path)
    assert words in refusal(tmp_path, place, value)


@pytest.mark.parametrize("classes", [[], ["a"], ["a", "b", "c", "d"]])
def test_classes_of_a_folder_are_as_many_as_its_numbers(classes: list[str], tmp_path: Path) -> None:
    fitted(SCM).save_pretrained(tmp_path)
    assert "the files belong to different models" in refusal(tmp_path, ["fitted", "classes"], classes)


def test_models_of_rows_have_no_side_to_export(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="reads rows of features in place of texts: there is no text side to export"):
        export_onnx(fitted(GMLDA), tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


@every_method
def test_a_collection_is_fitted_with_an_image_for_each_caption(method: Method) -> None:
    data = a_collection(lambda image: image % 3)
    model = method.create(method.config_type(), data.texts, data.features)
    views = model.views_of(model.read(data, np.arange(30)))
    assert len(views) == len(data.captions)
    model.fit_views(views)
    owners = data.image_of_caption
    alone = method().fit(ITEMS.images[owners], ITEMS.texts[owners], [f"class {one}" for one in ITEMS.labels[owners]])
    np.testing.assert_allclose(
        model.block(ITEMS.images, ITEMS.texts), alone.block(ITEMS.images, ITEMS.texts), atol=1e-6
    )
    again = model.told(dimension=1).fit_views(views)
    assert (again.dimension, again.config.fitted.components) == (3 if method is SCM else 1, 1)
    assert model.config.dimension == 64


def test_sides_that_are_trained_are_refused() -> None:
    config = replace(CCA.config_type(), text=GRUConfig(min_count=1))
    with pytest.raises(UserError, match=r"model\.text: gru is trained, and a fitted model reads encoders that stay"):
        CCA.create(config, ["a dog"], FeatureRows(ITEMS.images))
    with pytest.raises(UserError, match="a side of this model is an encoder; use rungwise train"):
        CCA(config).fit(ITEMS.images, ITEMS.texts)


@every_method
def test_nothing_is_as_large_as_all_pairs_of_items(method: Method) -> None:
    items = some_items(0, count=6000, widths=(16, 8), classes=10)
    labels = several_labels(items) if method is MLCCA else items.labels
    settings: dict[str, Any] = {"likeness": "exp"} if method is MLCCA else {}
    fitted(method, **settings)  # imports what it takes
    tracemalloc.start()
    try:
        method(**settings).fit(items.images, items.texts, labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6  # 6,000 x 6,000 numbers take 288e6, and yes or no for each pair 36e6


def test_the_kernel_has_at_most_as_many_landmarks_as_items() -> None:
    kernel = fitted(GMLDA, kernel=Gaussian(landmarks=12)).config.fitted
    assert (kernel.image_landmarks, kernel.text_landmarks) == (12, 12)
    assert fitted(GMLDA, kernel="gaussian").config.fitted.image_landmarks == 30


def test_another_seed_draws_other_landmarks() -> None:
    first, second = (fitted(CCA, kernel=Gaussian(landmarks=12, seed=seed)) for seed in (0, 1))
    assert first.fingerprint != second.fingerprint


def test_settings_are_told_by_name_or_as_a_configuration() -> None:
    settings = {"dimension": np.int64(3), "sparsity": np.float64(0.5)}
    assert LCFS(**settings).config == LCFS(LCFS.config_type(dimension=3, sparsity=0.5)).config
    assert "fitted" not in str(LCFS.__signature__)  # type: ignore[attr-defined]
    assert "sparsity" in str(LCFS.__signature__)  # type: ignore[attr-defined]


def test_sizes_of_a_fit_are_checked() -> None:
    assert Fitted(3).classes == ()
    assert SubspaceConfig().fitted is None
    with pytest.raises(UserError, match=r"text_landmarks: must be at least 0"):
        Fitted(3, text_landmarks=-1)


def test_rows_of_files_are_rows() -> None:
    rows = FeatureRows(ITEMS.images)
    assert as_rows(rows, "image features") is rows
    found = CCA().fit(rows, FeatureRows(ITEMS.texts))
    assert found.fingerprint == CCA().fit(ITEMS.images, ITEMS.texts).fingerprint
