"""Queries, candidates, degrees and what is known of each, for ``cutting.py``."""

from __future__ import annotations

import csv
import gzip
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Known
from rungwise.data import ImageCaptions, read
from rungwise.index.stores import words_of
from rungwise.models import DualEncoder
from rungwise.relevance import BiEncoder, Degrees, HumanJudgements, TfIdf
from rungwise.relevance.precomputed import load
from rungwise.scenes import SceneConfig, SceneRelevance, generate

Rows = NDArray[np.float32]

SOURCES: dict[str, tuple[Callable[..., Degrees], float]] = {"minilm": (BiEncoder, 0.5), "tfidf": (TfIdf, 0.25)}
"""Sources of degrees, and from which degree on a candidate is relevant: about 16 of 1,000 pictures of Flickr8K."""
CROWD = "Flickr8k_text/CrowdFlowerAnnotations.txt"
CROWD_FROM = 0.5
OTHERS = 600
"""Questions from each other world."""


@dataclass(frozen=True)
class Asked:
    """Queries and an index.

    Attributes:
        images: (candidates, D) vectors.
        captions: (captions, D) text vectors of the captions of the index.
        image_of_caption: (captions,) candidate of each, ascending.
        texts: (queries, D) text vectors.
        own: (queries,) the caption that the query is, which is left out of what is known; -1 for none.
        unknown: (queries,) share of unknown words.
        similarity: (queries, candidates).
        relevance: (queries, candidates) degrees.
        groups: (queries,) queries of one picture are drawn together in intervals.
    """

    images: Rows
    captions: Rows
    image_of_caption: NDArray[np.int64]
    texts: Rows
    own: NDArray[np.int64]
    unknown: NDArray[np.float64]
    similarity: Rows
    relevance: Rows
    groups: NDArray[np.int64]

    def known(self, captions: bool) -> list[Known]:
        """What a search knows of every query; with the likeness of the query to captions of the hits, or without."""
        starts = np.flatnonzero(np.append(True, np.diff(self.image_of_caption) > 0))
        captioned = self.image_of_caption[starts]
        out = []
        for query, vector in enumerate(self.texts):
            scores = None
            if captions:
                likeness = self.captions @ vector
                if self.own[query] >= 0:
                    likeness[self.own[query]] = -1.0
                scores = np.full(len(self.images), np.nan)
                scores[captioned] = np.maximum.reduceat(likeness, starts)
            out.append(Known(vector=vector, unknown_share=float(self.unknown[query]), caption_scores=scores))
        return out

    def only(self, images: NDArray[np.int64], queries: NDArray[np.int64]) -> Asked:
        """These candidates, ascending, asked by these queries."""
        place = np.full(len(self.images), -1)
        place[images] = np.arange(len(images))
        kept = np.flatnonzero(place[self.image_of_caption] >= 0)
        caption = np.full(len(self.image_of_caption) + 1, -1)
        caption[kept] = np.arange(len(kept))
        return replace(
            self,
            images=self.images[images],
            captions=self.captions[kept],
            image_of_caption=place[self.image_of_caption[kept]],
            texts=self.texts[queries],
            own=caption[self.own[queries]],
            unknown=self.unknown[queries],
            similarity=self.similarity[np.ix_(queries, images)],
            relevance=self.relevance[np.ix_(queries, images)],
            groups=self.groups[queries],
        )

    def questions(self, model: DualEncoder, texts: Sequence[str]) -> Asked:
        """The same index asked by other texts, to which nothing is relevant."""
        vectors = model.encode_text(texts)
        return replace(
            self,
            texts=vectors,
            own=np.full(len(texts), -1),
            unknown=unknown_shares(model, texts),
            similarity=model.similarity.array(vectors, self.images),
            relevance=np.zeros((len(texts), len(self.images)), np.float32),
            groups=np.arange(len(texts)),
        )


def asked(model: DualEncoder, data: ImageCaptions, degrees: Degrees, queries: int, seed: int = 0) -> Asked:
    """All pictures of a collection, asked by its captions, or by some drawn at random."""
    encoded = model.encode_image(data.pictures)
    if encoded.issues:
        raise SystemExit(str(encoded.issues[0]))
    captions, images = model.encode_captions(data.captions), np.arange(len(data))
    total = len(captions)
    chosen = np.sort(np.random.default_rng(seed).choice(total, min(queries, total), replace=False))
    return Asked(
        encoded.vectors,
        captions,
        np.asarray(data.image_of_caption),
        captions[chosen],
        chosen,
        unknown_shares(model, [data.captions[one] for one in chosen.tolist()]),
        model.similarity.array(captions[chosen], encoded.vectors),
        np.clip(degrees.block(images, chosen).T, 0.0, 1.0),  # cosines of texts stray a little beyond
        np.asarray(data.image_of_caption)[chosen],
    )


def flickr8k(model: DualEncoder, folder: Path, source: str, queries: int, keep: Path | None) -> tuple[Asked, Asked]:
    """Validation and test split, by a source of degrees over each split's own captions."""
    data = read(folder)
    out = []
    for name in ("val", "test"):
        part = data.split(name)
        out.append(asked(model, part, degrees_of(source, part, keep and keep / f"{source}-{name}"), queries))
    return out[0], out[1]


def degrees_of(source: str, data: ImageCaptions, kept: Path | None) -> Degrees:
    """Degrees by a source, from the folder that keeps them, if there is one."""
    made = SOURCES[source][0](data.captions, data.image_of_caption, images=len(data))
    if kept is None:
        return made
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        made.save(kept)
    return load(kept, expected=made)


def crowd(test: Asked, folder: Path) -> Asked:
    """The test split by what people said: the share of yes votes; NaN where nobody was asked."""
    part = read(folder).split("test")
    judged = HumanJudgements.read(folder / CROWD, part).dense().T[test.own]
    some = np.flatnonzero((judged >= CROWD_FROM).any(axis=1))
    return replace(test, relevance=judged).only(np.arange(len(test.images)), some)


def scenes(model: DualEncoder, pictures: int, queries: int, seed: int, side: int) -> tuple[Asked, ImageCaptions]:
    """Fresh scenes in which no combination is held out, asked by their captions; degrees are exact."""
    config = SceneConfig(pictures, side=side, seed=seed, val_share=0, test_share=0, held_out_share=0)
    with tempfile.TemporaryDirectory() as folder:
        data = generate(Path(folder), config)
        return asked(model, data, SceneRelevance.load(Path(folder), data), queries), data


def unknown_shares(model: DualEncoder, texts: Sequence[str]) -> NDArray[np.float64]:
    """(texts,) the share of the words of each that the model does not know."""
    return np.array([len(set(model.unknown_words(text))) / max(1, len(set(words_of(text)))) for text in texts]).clip(
        0, 1
    )


def worlds(root: Path, words: Path | None) -> dict[str, list[str]]:
    """Questions from other worlds, by name, drawn with a fixed seed: nothing is fitted to them."""
    draw = np.random.default_rng(0)
    genres: dict[str, dict[str, None]] = {"news": {}, "forum": {}}
    for part in ("train", "dev", "test"):
        with (root / f"stsbenchmark/sts-{part}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                genre = row[0].removeprefix("main-").rstrip("s") if row[0] != "main-news" else "news"
                if genre in genres:
                    genres[genre].update(dict.fromkeys(row[5:7]))
    out = {name: list(sentences) for name, sentences in genres.items()}
    with gzip.open(root / "flickr30k/captions.de.token.gz", "rt", encoding="utf-8") as lines:
        out["German"] = [line.rstrip("\n").split("\t")[-1] for line in lines]
    out = {name: [texts[one] for one in draw.permutation(len(texts))[:OTHERS]] for name, texts in out.items()}
    if words is not None:
        known = [line.split(" ", 1)[0] for line in words.read_text(encoding="utf-8").splitlines()]
        out["words"] = [" ".join(draw.choice(known, draw.integers(3, 12))) for _ in range(OTHERS)]
    return out
