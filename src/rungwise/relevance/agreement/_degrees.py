"""A source's degrees of what people judged: pairs of a collection, or texts that come with the judgements."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions, Issue
from rungwise.relevance._array import as_degrees
from rungwise.relevance._base import Degrees, Positions
from rungwise.relevance._caption_pairs import CaptionPairs, answers_caption_pairs, caption_pairs
from rungwise.relevance.combine import pair_degrees
from rungwise.relevance.config import Building, SourceConfig, degrees_of, names_source, source_config, training_images
from rungwise.relevance.embedding import ImagePairs
from rungwise.relevance.human import Finder, HumanJudgements, RatedPairs, refuse_other_captions

Numbers = NDArray[np.float64]
Source = str | Mapping[str, Any] | SourceConfig | Degrees
"""What :func:`rungwise.relevance.config.degrees_of` takes, or a source that is built already."""

_REFERENCES, _CANDIDATES = "references", "candidates"


@dataclass(frozen=True)
class DegreesOfPairs:
    """Degrees of the judged pairs that a collection has.

    Attributes:
        kept: (n,) ascending positions of these pairs among all judged pairs.
        degrees: (n,) degrees, NaN where the source has none.
        apart: (n,) degrees where no caption is a reference for itself; None where the source has no such choice.
        own: (n,) bool: a caption and its image, or two captions of one image.
        issues: Judgements of what the collection lacks.
        fitted: The source was fitted to these very judgements, so that they cannot judge it.
    """

    kept: Positions
    degrees: Numbers
    apart: Numbers | None
    own: NDArray[np.bool_]
    issues: tuple[Issue, ...]
    fitted: bool = False


def degrees_of_pairs(
    source: Source, judged: RatedPairs, data: ImageCaptions, *, building: Building | None = None
) -> DegreesOfPairs:
    """Ask a source for the pairs that people rated.

    Captions with captions are asked by caption pair; a source that has none, such as CIDEr, takes every caption for an
    image of its own, while words stay as rare as they are in the collection. Images with images are asked by image of
    a source that can be (:class:`rungwise.relevance.embedding.ImagePairs`); of others they get the mean over all
    pairs of their captions.

    Args:
        source: Name of a source, a source with options, a folder of saved degrees, or degrees of the collection.
        judged: Pairs with people's ratings.
        data: The collection that was judged, with its ids.
        building: Settings and callbacks for building the source.

    Raises:
        UserError: If the collection has none of the pairs, most were judged with other captions, or the source cannot
            be built or asked.
    """
    building = building or Building()
    kept, first, second, issues = _positions(judged, data)
    built = as_degrees(source, data) if isinstance(source, Degrees) else degrees_of(source, data, building=building)
    owners = data.image_of_caption
    if judged.between == "image-image":
        found = _of_images(built, data, first, second)
        return DegreesOfPairs(kept, found, None, np.zeros(len(kept), np.bool_), issues)
    if judged.between == "caption-caption":
        found = _of_captions(source, built, data, first, second, building)
        return DegreesOfPairs(kept, found, None, owners[first] == owners[second], issues)
    own = owners[second] == first
    degrees = pair_degrees(built, first, second)
    other = leaving_one_out(built) if own.any() else None
    apart = None
    if other is not None:  # what was not written for an image is no reference of it
        apart = degrees.copy()
        apart[own] = pair_degrees(other, first[own], second[own])
    grades = judged.means[kept]
    known = ~np.isnan(grades)
    people = HumanJudgements(first[known], second[known], grades[known], (len(data), len(data.captions)))
    return DegreesOfPairs(kept, degrees, apart, own, issues, people.content_hash() in _learned_from(built))


def _learned_from(source: Degrees) -> Iterator[str]:
    """Hashes of the judgements that regressions in a source were fitted to, as far as it tells."""
    fit = source.options().get("fit")
    if isinstance(fit, Mapping):
        yield str(fit.get("judgements"))
    for part in getattr(source, "sources", ()):
        yield from _learned_from(part)


def leaving_one_out(source: Degrees) -> Degrees | None:
    """A copy of the source where no caption is a reference for itself; None for a source without that choice."""
    parts: Sequence[Degrees] = getattr(source, "sources", ())
    others = [leaving_one_out(part) for part in parts]
    if not hasattr(source, "leave_one_out") and all(other is None for other in others):
        return None
    changed: Any = copy.copy(source)
    if parts:
        changed.sources = tuple(other or part for other, part in zip(others, parts, strict=True))
    else:
        changed.leave_one_out = True
    return changed  # type: ignore[no-any-return]


def _positions(judged: RatedPairs, data: ImageCaptions) -> tuple[Positions, Positions, Positions, tuple[Issue, ...]]:
    images, captions = Finder(data.image_ids), Finder(data.caption_ids)
    kinds = judged.between.split("-")
    find = [images if kind == "image" else captions for kind in kinds]
    kept, places = [], []
    issues, other = list(judged.issues), []
    for at, (where, *ids) in enumerate(zip(judged.places, judged.first, judged.second, strict=True)):
        found = [finder(one) for finder, one in zip(find, ids, strict=True)]
        here = [one for one in found if one is not None]
        if len(here) < len(found):
            unknown = found.index(None)
            issues.append(Issue(f"judgement of an unknown {kinds[unknown]}", where, repr(ids[unknown])))
        elif judged.text_hashes and hash_of_text(data.captions[here[1]]) != judged.text_hashes[at]:
            other.append(Issue("judgement of another caption", where, f"{ids[1]!r} had another text"))
        else:
            kept.append(at)
            places.append(here)
    refuse_other_captions(judged.name, other, len(kept), len(judged))
    issues += other
    if not kept:
        first = f", such as {issues[0].detail} ({issues[0].where})" if issues else ""
        raise UserError(
            f"{judged.name}: none of its {len(issues)} judgements is of {data.name}{first};"
            " give the collection that was judged, with its ids"
        )
    first, second = np.array(places, np.int64).T
    return np.array(kept, np.int64), first, second, tuple(issues)


def _of_captions(
    source: Source, built: Degrees, data: ImageCaptions, first: Positions, second: Positions, building: Building
) -> Numbers:
    if answers_caption_pairs(built):
        return _listed(built, first, second)
    if isinstance(source, Degrees) or (isinstance(source, str) and not names_source(source)):
        return _listed(caption_pairs(built), first, second)  # says why degrees that are there cannot be asked
    single = ImageCaptions(data.caption_ids, data.captions, np.arange(len(data.captions)), data.caption_ids)
    counted = data
    if len(training_images(data, building.train)) in (0, len(data)):
        counted = replace(data, splits=(building.train[0],) * len(data))
    config = source_config(source)
    if getattr(config, "frequencies", None) == "collection":
        config = replace(config, frequencies=None)  # type: ignore[call-arg]
    alone = config.build(single, building=Building(train=building.train, whole=counted, frequencies="train"))
    return pair_degrees(alone, first, second)


def _of_images(built: Degrees, data: ImageCaptions, first: Positions, second: Positions) -> Numbers:
    if isinstance(built, ImagePairs):
        return _grouped(built.image_block, first, second)
    captions = data.captions_of_image
    by_caption = built if answers_caption_pairs(built) else None
    out = np.full(len(first), np.nan)
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        mine, its = captions[one], captions[other]
        if not len(mine) or not len(its):
            continue
        if by_caption is not None:
            out[at] = by_caption.pair_block(mine, its).mean()
        else:
            out[at] = (built.block([one], its).mean() + built.block([other], mine).mean()) / 2
    return out


def _listed(source: CaptionPairs, first: Positions, second: Positions) -> Numbers:
    """(n,) degrees of single caption pairs."""
    scored = getattr(source, "pair_scores", None)  # a model takes many pairs at once
    return np.asarray(scored(first, second), np.float64) if scored else _grouped(source.pair_block, first, second)


def _grouped(block: Any, first: Positions, second: Positions) -> Numbers:
    out = np.empty(len(first))
    order = np.argsort(first, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(first[order])) + 1):
        out[part] = block(first[part[:1]], second[part])[0]
    return out


def degrees_of_texts(
    source: Source,
    items: Sequence[str],
    references: Sequence[Sequence[str]],
    candidates: Sequence[Sequence[str]],
    *,
    data: ImageCaptions | None = None,
    building: Building | None = None,
) -> Numbers:
    """Ask a source for candidate captions that are in no collection: it is built on them and their references.

    A candidate is no reference, and no word is counted in one: how rare words are is counted among the references.

    Args:
        source: Name of a source, or a source with options; degrees that are computed already know no new texts and are
            refused.
        items: (n,) ids of pictures or videos.
        references: (n,) captions of each item by people; where there are none, those of ``data`` are taken.
        candidates: (n,) candidates of each item, equally many.
        data: A collection with captions of the items; only where references are missing.
        building: Settings and callbacks for building the source.

    Returns:
        (n, candidates of each) degrees.

    >>> degrees_of_texts("tfidf", ["v", "w"], [["a red dog"], ["a cat"]], [["a red dog"], ["a dog"]]).round(2)
    array([[1.],
           [0.]])
    """
    saved = isinstance(source, str) and not names_source(source) and Path(source).expanduser().exists()
    if isinstance(source, Degrees) or saved:
        name = source.title() if isinstance(source, Degrees) else source
        raise UserError(
            f"{name}: saved degrees know no new texts, and these judgements bring their own; give a source, such as"
            " tfidf or '{kind: tfidf, reference: mean}'"
        )
    images: dict[tuple[str, ...], int] = {}
    of_items = [images.setdefault(given, len(images)) for given in _references(items, references, data)]
    texts = {text: at for at, text in enumerate(dict.fromkeys(one for some in candidates for one in some))}
    captions = [text for given in images for text in given]
    owners = [at for given, at in images.items() for _ in given]
    collection = ImageCaptions(
        image_ids=tuple(f"{_REFERENCES} {at}" for at in range(len(images)))
        + tuple(f"{_CANDIDATES} {at}" for at in range(len(texts))),
        captions=(*captions, *texts),
        image_of_caption=np.array([*owners, *range(len(images), len(images) + len(texts))], np.int64),
        splits=(_REFERENCES,) * len(images) + (_CANDIDATES,) * len(texts),
        name="judged texts",
    )
    outer = building or Building()
    # What a source says of its collection is of the one that is made up here.
    inner = replace(outer, train=(_REFERENCES,), frequencies="train", whole=collection, say=lambda _: None)
    built = source_config(source).build(collection, building=inner)
    if built.frequencies_from is not None:
        outer.say("how rare a word is, is counted among the references alone")
    counts = [len(some) for some in candidates]
    rows = np.repeat(np.array(of_items, np.int64), counts)
    columns = np.array([len(captions) + texts[one] for some in candidates for one in some], np.int64)
    return pair_degrees(built, rows, columns).reshape(len(items), -1)


def _references(
    items: Sequence[str], references: Sequence[Sequence[str]], data: ImageCaptions | None
) -> list[tuple[str, ...]]:
    find = None if data is None else Finder(data.image_ids)
    captions = [] if data is None else data.captions_of_image
    found = []
    for item, given in zip(items, references, strict=True):
        texts = tuple(given)
        if not texts and find is not None and data is not None and (at := find(item)) is not None:
            texts = tuple(data.captions[position] for position in captions[at])
        if not texts:
            raise UserError(
                f"judgements: {item!r} comes without references"
                + (
                    "; give a collection with captions of the judged pictures"
                    if data is None
                    else f" and is not in {data.name}"
                )
            )
        found.append(texts)
    return found
