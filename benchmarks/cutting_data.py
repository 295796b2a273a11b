"""Collections, queries by kind and their truth, for ``cutting.py``."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import OTHER_UNRELATED, UNRELATED, Known, TrainingQueries
from rungwise.data import ImageCaptions, read
from rungwise.evaluation import similarity_source
from rungwise.models import DualEncoder, EncodedImages
from rungwise.quality.typed_queries import TextedPictures, TextEvidence
from rungwise.quality.typed_queries._drawing import phrases
from rungwise.quality.typed_queries._statements import reader_of, statements_of
from rungwise.scenes import SceneConfig, generate, load_scene_file, read_statement
from rungwise.scenes._description import COLOURS, SHAPES, TEXTURES
from rungwise.similarity import Cosine, unit_rows

RELEVANT_FROM = 0.75
BRANDS, LINES = ("Nordo", "Puma", "Kelva", "Tirso", "Amra", "Belmo"), ("Race", "Classic", "Urban", "Luna", "Basic")
SYNONYMS = {"circle": "disc", "cross": "plus sign"}
NOUNS = [
    "dog",
    "cat",
    "horse",
    "car",
    "bus",
    "bicycle",
    "boat",
    "train",
    "plane",
    "chair",
    "table",
    "lamp",
    "guitar",
    "piano",
    "drum",
    "ball",
    "kite",
    "umbrella",
    "bag",
    "shoe",
    "hat",
    "shirt",
    "coat",
    "clock",
    "vase",
    "bottle",
    "cup",
    "plate",
    "pizza",
    "cake",
    "apple",
    "banana",
    "tree",
    "flower",
    "bridge",
    "tower",
]
PLACES = ["beach", "street", "park", "forest", "kitchen", "office", "garden", "station"]


@dataclass(frozen=True)
class Asked:
    """A query: its text, the pictures that it is true of, and the caption of the collection that it is, or -1."""

    text: str
    relevant: NDArray[np.bool_] = field(repr=False)
    caption: int = -1


@dataclass(frozen=True)
class World:
    """What a calibration is fitted to, the index that is asked, and queries of each kind with their truth."""

    name: str
    fit: TextedPictures
    index: TextedPictures
    asked: dict[str, list[Asked]]

    def queries(self, kind: str, texts: bool = True) -> TrainingQueries:
        """The queries of a kind as an index with its texts, or without, sees them; nothing is fitted to them."""
        model, pictures = self.index.model, len(self.index.ids)
        some = self.asked[kind]
        vectors = np.asarray(model.encode_text([one.text for one in some]), np.float32)
        known = TextEvidence(self.index).known(
            [one.text for one in some], vectors, np.array([one.caption for one in some], np.int64)
        )
        relevance = np.stack([one.relevant for one in some]).astype(np.float32)
        return TrainingQueries(
            tuple(one.text for one in some),
            (kind,) * len(some),
            np.arange(len(some)),
            np.asarray(model.similarity.array(self.index.images, vectors).T, np.float32),
            relevance,
            np.zeros((len(some), pictures), np.float32),
            tuple(known if texts else (bare(one) for one in known)),
            1.0,
            self.index.scores(UNRELATED),
        )


def bare(known: Known) -> Known:
    """What is known of a query in an index without texts."""
    return known.of_query


def in_other_half(statement: frozenset[tuple[str, ...]]) -> bool:
    """Whether a statement is kept for judging: none of those belongs to a fit."""
    return zlib.crc32(repr(sorted(statement)).encode()) % 2 == 1


def unrelated(pictures: int) -> list[Asked]:
    """Texts that fit nothing, and that nothing is fitted to."""
    return [Asked(text, np.zeros(pictures, bool)) for text in OTHER_UNRELATED]


def texted(
    model: DualEncoder, data: ImageCaptions, keep: Path | None = None, columns: dict[str, Any] | None = None
) -> TextedPictures:
    """A collection as a model sees it; its vectors are kept in a file where one is named."""
    if keep is not None and keep.exists():
        stored = np.load(keep)
        images, texts = stored["images"], stored["texts"]
    else:
        images, texts = model.encode_image(data.pictures).vectors, np.asarray(model.encode_captions(data.captions))
        if keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            np.savez(keep, images=images, texts=texts)
    source = similarity_source(image_embeddings=images, text_embeddings=texts, image_of_caption=data.image_of_caption)
    found = TextedPictures.of_scores(model, source, data)
    assert found is not None
    return replace(found, columns=columns or {})


def with_captions(whole: TextedPictures, kept: NDArray[np.int64]) -> TextedPictures:
    """The same pictures with some of their captions."""
    return replace(
        whole,
        captions=tuple(whole.captions[at] for at in kept.tolist()),
        owners=whole.owners[kept],
        caption_vectors=whole.caption_vectors[kept],
    )


def photos(model: DualEncoder, folder: Path, keep: Path | None, count: int = 300, seed: int = 1) -> World:
    """Photos with several captions: the index holds one of each, and the others tell what is true.

    Phrases and captions are drawn from the others. A phrase is true of a picture where the facts of the others state
    three quarters of it, a caption also of its own picture.
    """
    data = read(folder)
    fit, whole = (
        texted(model, data.split(name), keep and keep / f"{folder.name}-{name}.npz") for name in ("val", "test")
    )
    first, asked = photo_queries(whole, count, seed)
    return World(f"{folder.name}, test photos", fit, with_captions(whole, first), asked)


def photo_queries(whole: TextedPictures, count: int, seed: int) -> tuple[NDArray[np.int64], dict[str, list[Asked]]]:
    """The first caption of each photo, for an index, and queries drawn from the others, by kind."""
    first = np.flatnonzero(np.diff(whole.owners, prepend=-1) > 0)
    rest = np.setdiff1d(np.arange(len(whole.captions)), first)
    others = with_captions(whole, rest)
    reader, _ = reader_of(others.captions)
    told = statements_of(others.captions, others.owners, len(whole.ids), reader)
    drawn = [one for one in phrases(others.captions, told, reader, 3 * count, seed) if in_other_half(one.statement)]
    true = told.shares([one.statement for one in drawn]) >= RELEVANT_FROM
    asked = {"phrase": [Asked(one.text, row) for one, row in zip(drawn[:count], true, strict=False)]}
    some = np.random.default_rng(seed).choice(len(rest), count, replace=False)
    true = told.shares([told.of_texts[at] for at in some]) >= RELEVANT_FROM
    true[np.arange(count), others.owners[some]] = True
    asked["caption"] = [Asked(others.captions[at], row) for at, row in zip(some.tolist(), true, strict=True)]
    asked["unrelated"] = unrelated(len(whole.ids))
    return first, asked


def drawn_scenes(pictures: int, seed: int, side: int = 64) -> tuple[ImageCaptions, list[Any], Path]:
    """Fresh scenes with what they show."""
    folder = Path(tempfile.mkdtemp())
    config = SceneConfig(pictures, side=side, seed=seed, val_share=0, test_share=0, held_out_share=0)
    data = generate(folder, config)
    file = load_scene_file(folder)
    return data, [file.scene_of(one) for one in data.image_ids], folder


def scenes(model: DualEncoder, pictures: int = 2000, count: int = 250, seed: int = 1) -> World:
    """Generated scenes, of which all is known; the index holds one caption of each."""
    fit = texted(model, drawn_scenes(1000, 101)[0])
    data, shown, _ = drawn_scenes(pictures, 102)
    whole = texted(model, data)
    first = np.flatnonzero(np.diff(whole.owners, prepend=-1) > 0)
    rest = np.setdiff1d(np.arange(len(whole.captions)), first)
    others = with_captions(whole, rest)
    reader, _ = reader_of(others.captions)
    told = statements_of(others.captions, others.owners, pictures, reader)
    drawn = [
        one.text for one in phrases(others.captions, told, reader, 6 * count, seed) if in_other_half(one.statement)
    ]
    captions = [others.captions[at] for at in np.random.default_rng(seed).choice(len(rest), 2 * count, replace=False)]
    asked = {"phrase": _true(drawn, shown, 0.6)[:count], "caption": _true(captions, shown, 1.0)[:count]}
    asked["unrelated"] = unrelated(pictures)
    return World("generated scenes", fit, with_captions(whole, first), asked)


def _true(texts: Sequence[str], shown: Sequence[Any], most: float) -> list[Asked]:
    found = []
    for text in texts:
        statement = read_statement(text)
        if statement is not None:
            row = np.array([statement.is_true_of(scene) for scene in shown])
            if row.any() and row.mean() <= most:
                found.append(Asked(text, row))
    return found


def shop(model: DualEncoder, pictures: int = 2000, seed: int = 1) -> World:
    """Scenes as products: a title each, and values of columns typed; the first object of a scene is the article."""
    made = []
    for number, (count, drawn) in enumerate(((1000, 101), (pictures, 102))):
        data, shown, _ = drawn_scenes(count, drawn)
        titles = _titles(shown, seed + number)
        told = replace(data, captions=titles, caption_ids=(), image_of_caption=np.arange(count))
        first = [scene.objects[0] for scene in shown]
        columns = {
            "article": tuple(frozenset((one.shape,)) for one in first),
            "colour": tuple(frozenset((one.colour,)) for one in first),
        }
        made.append((texted(model, told, columns=columns), first))
    (fit, _), (index, first) = made
    values = [
        Asked(value, np.array([value in (one.shape, one.colour, one.texture) for one in first]))
        for value in (*SHAPES, *COLOURS, *TEXTURES)
    ]
    pairs = [
        Asked(f"{colour} {shape}", np.array([(one.colour, one.shape) == (colour, shape) for one in first]))
        for colour in COLOURS
        for shape in SHAPES
    ]
    asked = {"value": values, "pair": pairs, "unrelated": unrelated(pictures)}
    asked = {kind: [one for one in some if kind == "unrelated" or one.relevant.any()] for kind, some in asked.items()}
    return World("scenes as a shop, titles alone in the index", fit, replace(index, columns={}), asked)


def _titles(shown: Sequence[Any], seed: int) -> tuple[str, ...]:
    rng, titles = np.random.default_rng(seed), []
    for scene in shown:
        one, words = scene.objects[0], [BRANDS[rng.integers(len(BRANDS))]]
        for share, word in (
            (0.4, LINES[rng.integers(len(LINES))]),
            (0.4, one.size),
            (0.5, one.texture),
            (0.8, one.colour),
        ):
            words += [word] if rng.random() < share else []
        words.append(SYNONYMS.get(one.shape, one.shape) if rng.random() < 0.3 else one.shape)
        titles.append(" ".join(word.capitalize() for word in words))
    return tuple(titles)


class Made(DualEncoder):
    """Vectors made to behave like those of published models: made, and said to be.

    Each noun, colour and place is a direction. Pictures and texts lie in two narrow cones (the modality gap), so that
    cosines of a picture and a text are .2 to .35; some pictures are near every text (hubs).
    """

    dimension, fingerprint, similarity, reads_pictures = 256, "made", Cosine(), False

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.words = {
            word: row / np.linalg.norm(row)
            for word, row in zip((*NOUNS, *COLOURS, *PLACES), rng.normal(size=(99, self.dimension)), strict=False)
        }
        both = rng.normal(size=(2, self.dimension))
        both /= np.linalg.norm(both, axis=1, keepdims=True)
        self.of_images, self.of_texts = both[0], 0.3 * both[0] + 0.95 * both[1]

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, D) vectors: the words that are known, and a direction of its own for each text."""
        rows = []
        for text in texts:
            words = [self.words[word] for word in text.lower().replace(".", "").split() if word in self.words]
            own = np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.dimension) / 16
            meaning = np.sum(words, axis=0) / max(1, len(words)) ** 0.5 if words else 0.0
            rows.append(self.of_texts + 0.5 * meaning + 0.25 * own)
        return unit_rows(np.array(rows, np.float32))

    def encode_image(self, pictures: Any, *, progress: Any = None, cache: Any = None) -> EncodedImages:
        """Rows of vectors, as they are."""
        return EncodedImages(unit_rows(pictures[:]), np.arange(len(pictures)))


def made(pictures: int = 8000, count: int = 300, seed: int = 1, model: Made | None = None) -> World:
    """Made vectors with captions that mention a part of what the pictures hold."""
    model = model or Made()
    fit, _ = _made_pictures(model, 1000, 5, seed)
    index, holds = _made_pictures(model, pictures, 1, seed + 1)
    rng = np.random.default_rng(seed)
    asked: dict[str, list[Asked]] = {"phrase": [], "pair": [], "caption": []}
    has = {word: np.array([word in one for one in holds]) for word in model.words}
    for word in model.words:
        asked["phrase"].append(Asked(word, has[word]))
    pairs = [(colour, noun) for colour in COLOURS for noun in NOUNS]
    for at in rng.permutation(len(pairs))[:count]:
        colour, noun = pairs[at]
        row = np.array([(colour, noun) in one for one in holds])
        if row.any():
            asked["pair"].append(Asked(f"{colour} {noun}", row))
    for at in rng.choice(pictures, count, replace=False).tolist():
        colour, noun = next(one for one in holds[at] if isinstance(one, tuple))
        place = next(one for one in holds[at] if one in PLACES)
        row = np.array([(colour, noun) in one and place in one for one in holds])
        asked["caption"].append(Asked(f"There is a {colour} {noun} to be seen in the {place}.", row))
    asked["unrelated"] = unrelated(pictures)
    return World(f"made vectors, {pictures:,} pictures", fit, index, asked)


def _made_pictures(model: Made, pictures: int, captions: int, seed: int) -> tuple[TextedPictures, list[set[Any]]]:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(NOUNS), 0.7))
    rows, holds, texts, owners = [], [], [], []
    for at in range(pictures):
        things = [(str(rng.choice(COLOURS)), str(rng.choice(NOUNS, p=shares))) for _ in range(rng.integers(1, 3))]
        place = str(rng.choice(PLACES))
        words = [*(word for thing in things for word in thing), place]
        meaning = np.sum([model.words[word] for word in words], axis=0) / len(words) ** 0.5
        hub = 0.25 * model.of_texts if rng.random() < 0.02 else 0.0
        rows.append(model.of_images + 0.5 * meaning + hub + 0.5 * rng.normal(size=model.dimension) / 16)
        holds.append({*words, *things, place})
        for _ in range(captions):
            colour, noun = things[rng.integers(len(things))]
            said = f"a {colour} {noun}" if rng.random() < 0.6 else f"a {noun}"
            texts.append(f"{said} in the {place}" if rng.random() < 0.5 else said)
            owners.append(at)
    collection = TextedPictures(
        model,
        tuple(map(str, range(pictures))),
        unit_rows(np.array(rows, np.float32)),
        tuple(texts),
        np.array(owners),
        model.encode_text(texts),
        {},
        "made vectors",
    )
    return collection, holds


def smaller(world: World, pictures: int) -> World:
    """The same index with its first pictures alone."""
    kept = np.flatnonzero(world.index.owners < pictures)
    index = with_captions(world.index, kept)
    index = replace(index, ids=index.ids[:pictures], images=index.images[:pictures])
    asked = {
        kind: [
            replace(one, relevant=one.relevant[:pictures])
            for one in some
            if kind == "unrelated" or one.relevant[:pictures].any()
        ]
        for kind, some in world.asked.items()
    }
    return replace(world, name=f"{world.name}, the first {pictures:,}", index=index, asked=asked)
