"""Collections with class labels for ``labels.py``: the Wikipedia set, and generated scenes whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.data import ImageCaptions, read, with_validation
from rungwise.data.files import FeatureRows
from rungwise.encoders import PictureSide
from rungwise.encoders.images import ImageConfig, picture_features
from rungwise.encoders.texts import BagOfWordsConfig
from rungwise.encoders.vocabulary import pad
from rungwise.relevance import Degrees
from rungwise.scenes import Mention, SceneConfig, SceneObject, SceneRelevance, generate, load_scene_file

Attribute = Literal["shape", "colour"]
Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Labelled:
    """Documents with labels, the same rows of features for every method.

    Attributes:
        title: What the labels are.
        data: With splits ``train``, ``val`` and ``test``.
        degrees: Exact degrees of relevance of the test split, where they are known.
        oracles: By name, (test images, test captions) scores of rankings that know what no model is told.
    """

    title: str
    data: ImageCaptions
    degrees: Degrees | None
    oracles: dict[str, Scores]


def wikipedia(folder: Path) -> Labelled:
    """The published features; a tenth of the training documents validates.

    Args:
        folder: Of the set.
    """
    return Labelled("Wikipedia, one category a document", with_validation(read(folder)), None, {})


def scenes(
    pictures: int, attributes: Sequence[Attribute], weights: Path, folder: Path, say: Callable[[str], None]
) -> list[Labelled]:
    """Pictures of scenes with one caption each, labelled by what they show.

    Args:
        pictures: How many.
        attributes: Whose values are the labels, a collection for each.
        weights: Of MobileNetV2 in timm's layout, trained with the padding of TensorFlow.
        folder: Where the scenes are made.
        say: Told what takes long.
    """
    config = SceneConfig(pictures, captions_per_picture=1, val_share=0.1, test_share=0.2, held_out_share=0)
    say(f"drawing {pictures:,} pictures")
    drawn = generate(folder, config)
    say("reading them with MobileNetV2")
    images = _image_rows(drawn, weights)
    texts = _text_rows(drawn)
    data = replace(drawn, paths=(), features=FeatureRows(images), text_features=FeatureRows(texts))
    return [_labelled(data, folder, attribute) for attribute in attributes]


def _image_rows(data: ImageCaptions, weights: Path) -> Scores:
    """(pictures, 1280) of the frozen backbone."""
    half = (0.5, 0.5, 0.5)
    config = ImageConfig(
        backbone="mobilenetv2_100",
        weights=str(weights),
        options={"pad_type": "same"},
        mean=half,
        std=half,
        crop=1.0,
    )
    side = config.build()
    assert isinstance(side, PictureSide)
    features, kept, _ = picture_features(side, data.paths)
    assert len(kept) == len(data)
    return features.float().numpy()


def _text_rows(data: ImageCaptions) -> Scores:
    """(captions, words) weighted counts of the words of the training captions, each row of length 1."""
    encoder = BagOfWordsConfig().build(data.split("train").captions)
    rows = encoder(*pad(encoder.tokenise(data.captions))).numpy()
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def _labelled(data: ImageCaptions, folder: Path, attribute: Attribute) -> Labelled:
    file = load_scene_file(folder)
    shown = [_values(file.scene_of(one).objects, attribute) for one in data.image_ids]
    labelled = replace(data, labels=tuple(tuple(sorted(own)) for own in shown), name=f"scenes by {attribute}")
    test = labelled.split("test")
    stated = [_values(file.statement_of(one).mentions, attribute) for one in test.caption_ids]
    silent = sum(not own for own in stated) / len(stated)
    degrees = SceneRelevance.load(folder, test)
    oracles = {"oracle of labels": _by_stated_labels(test, stated), "oracle of degrees": degrees.dense()}
    title = f"Scenes, labels are the {attribute}s a picture shows; {silent:.0%} of the test captions name none"
    return Labelled(title, labelled, degrees, oracles)


def _values(things: tuple[SceneObject, ...] | tuple[Mention, ...], attribute: Attribute) -> frozenset[str]:
    return frozenset(value for one in things if (value := getattr(one, attribute)) is not None)


def _by_stated_labels(test: ImageCaptions, stated: list[frozenset[str]]) -> Scores:
    """Pairs that share a label that the caption states come first; all of these are right.

    What a caption leaves unsaid may still be right. So of the other pairs those come first whose picture shows more
    labels, and for a picture those whose caption states fewer.
    """
    scores = np.zeros((len(test), len(stated)), np.float32)
    for image, shown in enumerate(map(frozenset, test.labels)):
        for caption, said in enumerate(stated):
            scores[image, caption] = 10 * bool(shown & said) + len(shown) - len(said)
    return scores
