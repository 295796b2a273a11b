import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import PROTOCOLS, evaluate, protocol_named
from rungwise.evaluation._protocols import ConsecutiveFolds


def test_five_folds_are_consecutive_blocks_and_numbers_are_their_means():
    generator = np.random.default_rng(0)
    owners = np.sort(generator.integers(0, 5000, 7000))
    image = generator.standard_normal((5000, 4), dtype=np.float32)
    text = image[owners] + generator.standard_normal((7000, 4), dtype=np.float32)
    rule = ConsecutiveFolds("any captions")
    folds = evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=owners, protocol=rule)
    parts = []
    for first in range(0, 5000, 1000):
        own = (owners >= first) & (owners < first + 1000)
        block = slice(first, first + 1000)
        parts.append(
            evaluate(image_embeddings=image[block], text_embeddings=text[own], image_of_caption=owners[own] - first)
        )
    for name, number in folds.numbers.items():
        assert number == pytest.approx(np.mean([part[name] for part in parts]), rel=1e-12)
    assert folds.gallery["t2i"] == (1000,) * 5
    assert sum(folds.gallery["i2t"]) == 7000
    whole = [part.per_query("t2i/R@1") for part in parts]
    np.testing.assert_array_equal(folds.per_query("t2i/R@1"), np.concatenate(whole))


def test_five_folds_of_shuffled_captions_take_each_folds_own_captions():
    owners = np.arange(5000)[::-1].copy()
    rule = ConsecutiveFolds("one caption")
    [first, *_] = rule.folds(owners, 5000)
    np.testing.assert_array_equal(first.captions, np.arange(4000, 5000))
    result = evaluate(
        image_embeddings=np.eye(5000, 8, dtype=np.float32),
        text_embeddings=np.eye(5000, 8, dtype=np.float32)[owners],
        image_of_caption=owners,
        protocol=rule,
        measures=["R@1"],
    )
    assert result.queries == {"i2t": 5000, "t2i": 5000}


def test_one_caption_per_image_takes_the_first_of_each():
    similarity = np.array([[0.1, 0.9, 0.2, 0.8], [0.7, 0.3, 0.6, 0.4]])
    result = evaluate(
        similarity=similarity,
        image_of_caption=[1, 0, 1, 0],
        relevance=similarity,
        measures=["CS@2", "R@1"],
        protocol="one-caption-per-image",
    )
    assert result.gallery == {"i2t": (2,), "t2i": (2,)}
    assert result["i2t/CS@2"] == 1.0
    assert result["t2i/R@1"] == 100.0
    assert result.captions_per_image == {"min": 1.0, "mean": 1.0, "max": 1.0}


@pytest.mark.parametrize(("protocol", "per_image"), [("coco-1k", 5), ("coco-1k-one-caption", 1)])
def test_the_first_thousand_images_are_the_first_of_five_blocks(protocol, per_image):
    owners = np.arange(5000).repeat(5)[::-1].copy()  # captions need not stand in the order of their images
    (only,) = protocol_named(protocol).folds(owners, 5000)
    np.testing.assert_array_equal(only.images, np.arange(1000))
    mine = np.flatnonzero(owners < 1000)
    firsts = [np.flatnonzero(owners == image)[0] for image in range(1000)]
    np.testing.assert_array_equal(only.captions, mine if per_image == 5 else np.sort(firsts))


@pytest.mark.parametrize(
    ("protocol", "owners", "why"),
    [
        ("coco-1k", [0, 1, 2], "it takes the first 1000 of 5000 images, and there are 3"),
        ("coco-1k-5fold", [0, 1, 2], "wants 5 x 1000 images and there are 3"),
        ("coco-5k", [0, 1, 2], "wants 5000 images and there are 3"),
        ("flickr8k-1k", [0, 1, 2], "wants 1000 images and there are 3"),
        ("one-caption-per-image", [0, 0, 2], "1 images have no caption, the first is image 1"),
    ],
)
def test_data_that_do_not_fit_are_refused_with_the_reason(protocol, owners, why):
    with pytest.raises(UserError, match=f"protocol {protocol} does not fit the data: .*{why}"):
        evaluate(similarity=np.eye(3), image_of_caption=owners, protocol=protocol)


@pytest.mark.parametrize(
    ("protocol", "images"), [("coco-5k", 5000), ("coco-1k-5fold", 5000), ("flickr30k-1k", 1000), ("flickr8k-1k", 1000)]
)
def test_protocols_of_test_sets_want_their_five_captions_an_image(protocol, images):
    rule, owners = protocol_named(protocol), np.arange(images).repeat(5)
    surplus = np.append(owners, np.arange(images // 500))  # COCO's test images have 25,010 captions
    for fitting in (owners, surplus):
        assert sum(len(fold.captions) for fold in rule.folds(fitting, images)) == len(fitting)
    for wrong in (owners[::5], owners[:-1], np.append(surplus, owners[: images // 10])):
        with pytest.raises(UserError, match=f"wants 5 captions an image, {5 * images:,}, and there are") as caught:
            rule.folds(wrong, images)
        assert f"there are {len(wrong):,}; use protocol 'full'" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_unknown_protocol_lists_what_there_is():
    with pytest.raises(UserError, match="'cocoa' is not known; there are full, coco-5k"):
        protocol_named("cocoa")


def test_names_are_unique():
    assert len({protocol.name for protocol in PROTOCOLS}) == len(PROTOCOLS)
