"""Every fitted method with data that are wrong or degenerate: it is fitted without a warning, or says why not."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.models.subspace import CCA, GMLDA, GMMFA, LCFS, LGCFL, SCM, MvDA, Subspace
from tests.models.subspace.items import METHODS, SUPERVISED, in_turn, several_labels, some_items

ITEMS = some_items(count=30)
IMAGES, TEXTS, LABELS = ITEMS.images, ITEMS.texts, ITEMS.labels
Method = type[Subspace]
every_method = pytest.mark.parametrize("method", METHODS)
every_supervised = pytest.mark.parametrize("method", SUPERVISED)
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"pca": 1.0},
    {"pca": 0.5},
    {"roots": True},
    {"kernel": "gaussian"},
    {"regularisation": 0.0},
)


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def settings_of(method: Method) -> list[dict[str, Any]]:
    known = method.config_type.__dataclass_fields__
    return [settings for settings in SETTINGS if settings.keys() <= known.keys()]


def fits(method: Method, images: Any, texts: Any, labels: Any = LABELS, **settings: Any) -> Subspace:
    """Vectors are finite and of length 1, or 0 for a row at the centre."""
    model = method(**settings).fit(images, texts, labels)
    for vectors in (model.encode_image(np.asarray(images)).vectors, model.encode_text(np.asarray(texts))):
        assert vectors.shape == (len(images), model.dimension)
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1).max() == pytest.approx(1, abs=1e-5)
    return model


def refused(method: Method, images: Any, texts: Any, labels: Any = LABELS, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        method(**settings).fit(images, texts, labels)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


DEGENERATE = {
    "a column twice": (np.hstack([IMAGES, IMAGES]), TEXTS),
    "a column of one number": (np.hstack([IMAGES, np.full((30, 1), 3.3)]), np.hstack([np.zeros((30, 1)), TEXTS])),
    "one column": (IMAGES[:, :1], TEXTS[:, :1]),
    "wider than long": (np.random.default_rng(0).normal(size=(10, 50)), np.random.default_rng(1).normal(size=(10, 40))),
    "far from 0": (IMAGES + 1e4, TEXTS - 1e4),
    "large and small": (1e6 * IMAGES, 1e-6 * TEXTS),
    "very large": (1e15 * IMAGES, TEXTS),
    "very small": (1e-15 * IMAGES, TEXTS),
    "whole numbers": ((10 * IMAGES).astype(np.int16), (10 * TEXTS).astype(np.int64)),
    "half numbers": (IMAGES.astype(np.float16), TEXTS.astype(np.float16)),
    "regions": (np.stack([IMAGES, IMAGES + 1], axis=1), TEXTS),
    "few items": (IMAGES[:4], TEXTS[:4]),
}


@pytest.mark.parametrize("case", DEGENERATE)
@every_method
def test_degenerate_features_are_fitted(method: Method, case: str) -> None:
    """With the usual settings, and with others in turn."""
    images, texts = DEGENERATE[case]
    labels = np.arange(len(images)) % 2 if len(images) < 30 else LABELS
    usual, *others = settings_of(method)
    turn = METHODS.index(method) + list(DEGENERATE).index(case)
    for settings in (usual, others[turn % len(others)]):
        fits(method, images, texts, labels, **settings)


@every_method
def test_a_class_may_have_one_item(method: Method) -> None:
    for settings in settings_of(method):
        fits(method, IMAGES, TEXTS, [7, *LABELS[1:].tolist()], **settings)


@every_method
def test_every_class_may_have_one_item_where_nothing_is_kept_together(method: Method) -> None:
    for settings in settings_of(method):
        if method is GMLDA:
            assert "image features do not vary within classes" in refused(method, IMAGES, TEXTS, range(30), **settings)
        elif method is GMMFA:
            assert "every class has one item" in refused(method, IMAGES, TEXTS, range(30), **settings)
        else:
            fits(method, IMAGES, TEXTS, range(30), **settings)


@every_method
def test_features_may_be_the_classes(method: Method) -> None:
    one_hot = np.eye(3)[LABELS]
    for settings in settings_of(method):
        if method in (GMLDA, GMMFA):
            assert "do not vary within classes" in refused(method, one_hot, one_hot, **settings)
        else:
            fits(method, one_hot, one_hot, **settings)


@every_supervised
def test_one_class_tells_nothing_apart(method: Method) -> None:
    assert "all 30 labelled items are of one class, 'art'" in refused(method, IMAGES, TEXTS, ["art"] * 30)


@every_supervised
def test_labels_are_asked_for(method: Method) -> None:
    assert "reads class labels, and there are none; give labels" in refused(method, IMAGES, TEXTS, None)
    for labels in ([None] * 30, [""] * 30, [()] * 30, np.full(30, np.nan), np.zeros((30, 2))):
        assert "label" in refused(method, IMAGES, TEXTS, labels)
    assert "label" in refused(method, IMAGES, TEXTS, ["art", *[None] * 29])


def test_cca_reads_no_labels() -> None:
    alone = CCA().fit(IMAGES, TEXTS)
    assert alone.fingerprint == CCA().fit(IMAGES, TEXTS, None).fingerprint
    labelled = CCA().fit(IMAGES, TEXTS, [None] * 30)
    np.testing.assert_array_equal(labelled.block(IMAGES, TEXTS), alone.block(IMAGES, TEXTS))


@pytest.mark.parametrize(("method", "missing"), in_turn(SUPERVISED, [None, float("nan"), "", (), np.float32("nan")]))
def test_items_without_a_label_are_left_out_and_counted(method: Method, missing: Any) -> None:
    labels = [missing if item % 5 == 4 else int(label) for item, label in enumerate(LABELS)]
    model = fits(method, IMAGES, TEXTS, labels)
    (issue,) = model.issues
    assert (issue.kind, issue.where) == ("no label", "6 of 30 items")
    if method is not SCM:  # its first stage reads all pairs
        kept = np.arange(30) % 5 != 4
        alone = method().fit(IMAGES[kept], TEXTS[kept], LABELS[kept])
        np.testing.assert_allclose(model.block(IMAGES, TEXTS), alone.block(IMAGES, TEXTS), atol=1e-5)
        assert not alone.issues


@every_supervised
def test_several_labels_are_fitted(method: Method) -> None:
    for settings in settings_of(method):
        model = fits(method, IMAGES, TEXTS, several_labels(ITEMS), **settings)
        assert not model.config.fitted.single


@pytest.mark.parametrize(("method", "number"), in_turn(METHODS, [np.nan, np.inf, -np.inf, 1e300]))
def test_numbers_that_are_none_name_their_row(method: Method, number: float) -> None:
    images, texts = IMAGES.copy(), TEXTS.copy()
    images[4, 2] = number
    assert "row 4 (from 0): holds numbers that are not finite" in refused(method, images, TEXTS)
    texts[7, 1] = number
    assert "row 7 (from 0): holds numbers that are not finite" in refused(method, IMAGES, texts, kernel="gaussian")


@pytest.mark.parametrize(("method", "number"), in_turn(METHODS, [0.0, 3.3, 1e-20]))
def test_features_must_vary(method: Method, number: float) -> None:
    for settings in settings_of(method):
        told = refused(method, np.full((30, 5), number), TEXTS, **settings)
        assert "image features do not vary: every row is the same" in told
        told = refused(method, IMAGES, np.full((30, 4), number), **settings)
        assert "text features do not vary: every row is the same" in told


NO_DATA: list[tuple[Any, Any, Any, str]] = [
    (IMAGES[:20], TEXTS, LABELS, "image_features has 20 rows and text_features has 30"),
    (IMAGES, TEXTS, LABELS[:20], "labels: 20 of them for 30 rows"),
    (IMAGES, TEXTS, np.eye(3)[LABELS[:20]], "labels: 20 of them for 30 rows"),
    (IMAGES[:, 0], TEXTS, LABELS, "image_features: an array of shape (30,)"),
    (IMAGES, TEXTS[:, 0], LABELS, "text_features: an array of shape (30,)"),
    (IMAGES, np.stack([TEXTS, TEXTS], axis=1), LABELS, "text_features: rows of shape (2, 4)"),
    (5.0, TEXTS, LABELS, "image_features: an array of shape ()"),
    ([[1.0, 2.0], [3.0]], TEXTS, LABELS, "image_features: rows of several lengths"),
    (IMAGES.astype(object), TEXTS, LABELS, "and type object"),
    (IMAGES.astype(str), TEXTS, LABELS, "and type <U"),
    (IMAGES.astype(complex), TEXTS, LABELS, "and type complex128"),
    (IMAGES[:, :0], TEXTS, LABELS, "image.width: must be at least 1 (got 0)"),
    (IMAGES, TEXTS, 2 * np.eye(3)[LABELS], "holds 0 and 1 alone"),
    (IMAGES, TEXTS, "a" * 30, "expected one label for each row"),
    (IMAGES[:1], TEXTS[:1], LABELS[:1], "at least two items, got 1; give more"),
    (IMAGES[:0], TEXTS[:0], LABELS[:0], "at least two items, got 0; give more"),
]


@pytest.mark.parametrize(("method", "given"), in_turn(METHODS, NO_DATA))
def test_what_is_no_data_is_refused(method: Method, given: tuple[Any, Any, Any, str]) -> None:
    images, texts, labels, words = given
    assert words in refused(method, images, texts, labels)
    assert words in refused(method, images, texts, labels, kernel="gaussian")


@every_method
def test_lists_and_tensors_are_rows(method: Method) -> None:
    expected = method().fit(IMAGES, TEXTS, LABELS).block(IMAGES, TEXTS)
    lists = method().fit(IMAGES.tolist(), TEXTS.tolist(), LABELS.tolist())
    np.testing.assert_array_equal(lists.block(IMAGES, TEXTS), expected)
    tensors = method().fit(torch.from_numpy(IMAGES), torch.from_numpy(TEXTS), torch.from_numpy(LABELS))
    np.testing.assert_array_equal(tensors.block(torch.from_numpy(IMAGES), torch.from_numpy(TEXTS)), expected)


@every_method
def test_a_larger_dimension_than_there_are_directions_is_what_there_is(method: Method) -> None:
    wide, narrow = fits(method, IMAGES, TEXTS, dimension=1_000_000), fits(method, IMAGES, TEXTS, dimension=1)
    assert wide.dimension <= 9
    assert narrow.dimension == (3 if method is SCM else 1)


@every_method
def test_a_model_that_is_not_fitted_says_so(method: Method) -> None:
    model = method()
    asked = (
        lambda: model.encode_image(IMAGES),
        lambda: model.encode_text(TEXTS),
        lambda: model.block(IMAGES, TEXTS),
        lambda: model.fingerprint,
        lambda: model.dimension,
        lambda: model.device,
        lambda: model.save_pretrained("nowhere"),
    )
    for ask in asked:
        with pytest.raises(UserError, match=f"a model of kind '{method.kind}' that is not fitted yet; call fit first"):
            ask()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        model.nothing  # noqa: B018


@every_method
def test_a_refused_fit_may_be_repeated(method: Method) -> None:
    model = method()
    with pytest.raises(UserError):
        model.fit(IMAGES, TEXTS[:3], LABELS)
    assert model.fit(IMAGES, TEXTS, LABELS).fingerprint == method().fit(IMAGES, TEXTS, LABELS).fingerprint
    narrower = model.fit(IMAGES[:, :3], TEXTS[:, :2], LABELS)
    assert narrower.fingerprint == method().fit(IMAGES[:, :3], TEXTS[:, :2], LABELS).fingerprint


NO_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"nothing": 1}, "nothing: unexpected, there is no such setting"),
    ({"dimension": 0}, "dimension: must be at least 1"),
    ({"dimension": "many"}, "dimension: must be a whole number"),
    ({"pca": 0}, "pca: must be above 0"),
    ({"pca": float("nan")}, "pca: must be"),
    ({"kernel": "laplace"}, "kernel: Input tag 'laplace'"),
    ({"kernel": {"kind": "gaussian", "gamma": -1.0}}, "gamma: must be above 0"),
    ({"kind": "vse"}, "kind: must be"),
]


@pytest.mark.parametrize(("method", "given"), in_turn(METHODS, NO_SETTINGS))
def test_settings_are_checked(method: Method, given: tuple[dict[str, Any], str]) -> None:
    settings, words = given
    with pytest.raises(UserError) as caught:
        method(**settings)
    assert str(caught.value).startswith(f"{method.__name__}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "regularisation"),
    in_turn([method for method in METHODS if method not in (LCFS, LGCFL)], [-1.0, float("nan"), float("inf")]),
)
def test_regularisation_is_checked(method: Method, regularisation: float) -> None:
    with pytest.raises(UserError, match="regularisation: must be"):
        method(regularisation=regularisation)


@pytest.mark.parametrize("method", [LCFS, LGCFL])
def test_sparsity_chooses_among_features_that_follow_from_others(method: Method) -> None:
    twice = np.hstack([IMAGES, IMAGES])
    for sparsity in (1e-6, 1e-3, 1e6):
        fits(method, twice, TEXTS, sparsity=sparsity)
    assert "sparsity is too small to choose among them" in refused(method, twice, TEXTS, sparsity=1e-30)
    fits(method, IMAGES, TEXTS, sparsity=1e-30)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda model: model.encode_image(IMAGES[:, :3]), "features of length 3, but the model reads features"),
        (lambda model: model.encode_text(TEXTS[:, :3]), "features of shape (3,), but the model reads features"),
        (lambda model: model.encode_image(IMAGES[0]), "image features: an array of shape (5,)"),
        (lambda model: model.encode_text(np.full((2, 4), np.nan)), "row 0 (from 0): holds numbers that are not finite"),
        (lambda model: model.encode_text(["a dog"]), "reads no words"),
        (lambda model: model.encode_image([b"a picture"]), "reads no pictures"),
    ],
)
def test_what_a_fitted_model_does_not_read_is_refused(ask: Any, words: str) -> None:
    with pytest.raises(UserError) as caught:
        ask(MvDA().fit(IMAGES, TEXTS, LABELS))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
