"""What ``rungwise evaluate`` reads: a model's or anybody's scores, together with the data that they belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rungwise.cli.terminal import progress_bar, say, say_issues
from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.data.readers import read
from rungwise.data.splits import with_splits
from rungwise.evaluation.inputs import (
    owners_by_count,
    read_embeddings,
    read_owners,
    read_relevance,
    read_similarity,
    split_key,
)
from rungwise.evaluation.ranked_lists import read_ranked_lists


class Asked(Protocol):
    """The part of the command line that says what is evaluated; see :class:`rungwise.cli.evaluate.Evaluate`."""

    model: str | None
    collection: Path | None
    data: Path | None
    image_embeddings: str | None
    text_embeddings: str | None
    similarity: str | None
    ranked_lists: tuple[Path, ...]
    captions_per_image: int | None
    image_of_caption: Path | None
    split: str
    captions_only: bool
    join_restval: bool
    relevance: str | None
    cache: Path | None


@dataclass(frozen=True)
class Scored:
    """Scores and data.

    Attributes:
        scores: What ``evaluate`` and ``diagnose`` take: ``similarity``, or both kinds of embeddings.
        data: Ids, captions, ownership; made up of positions where no data were given.
        has_texts: Data were given.
        relevance: Degrees, or None.
        relevance_name: Of degrees that do not say themselves what they are.
        model_hash: Of a model of ours.
        seed: Of its training, where it is known.
        split: That was evaluated; empty where there is none.
    """

    scores: dict[str, Any]
    data: ImageCaptions
    has_texts: bool
    relevance: Any = None
    relevance_name: str = ""
    model_hash: str = ""
    seed: int | None = None
    split: str = ""


def read_scored(asked: Asked) -> Scored:
    """Read everything.

    Raises:
        UserError: If what is given does not say one thing to evaluate, or does not fit together.
    """
    embeddings = (asked.image_embeddings, asked.text_embeddings)
    given = {
        "a model": asked.model is not None,
        "--image-embeddings and --text-embeddings": any(embeddings),
        "--similarity": asked.similarity is not None,
        "--ranked-lists": bool(asked.ranked_lists),
    }
    if sum(given.values()) != 1:
        raise UserError(f"give one thing to evaluate of {', '.join(given)}; got {sum(given.values())}")
    if any(embeddings) and not all(embeddings):
        raise UserError("--image-embeddings and --text-embeddings go together; give both")
    if asked.collection is not None and asked.data is not None:
        raise UserError(f"data were given twice, {asked.collection} and --data {asked.data}; give one")
    place = asked.collection or asked.data
    if place is None and (asked.model is not None or asked.ranked_lists):
        raise UserError("a model and ranked lists need data; give --data FOLDER")
    data = None if place is None else _chosen(asked, place)
    scored = _scored(asked, data)
    relevance = _relevance(asked, scored, place)
    named = "" if asked.relevance is None else _name_of(asked.relevance)
    return replace(scored, relevance=relevance, relevance_name=named, split=asked.split if data else "")


def load_scores(given: Sequence[str], scored: Scored, cache: Path | None) -> dict[str, Any]:
    """Scores of another model for the same data: a model, a similarity file, or two files of embeddings.

    Raises:
        UserError: If they do not fit the data.
    """
    if len(given) == 2:
        return _embeddings(given[0], given[1], scored.data, scored.split, by_id=scored.has_texts)
    if len(given) != 1:
        raise UserError("--beside takes a model, a similarity file, or image and text embeddings")
    path, key = split_key(given[0])
    if path.suffix.lower() in (".npy", ".npz", ".json", ".jsonl"):
        return {"similarity": _fitting(read_similarity(path, key), scored.data, str(path), scored.split)}
    other = _encoded(given[0], scored.data, cache)
    if len(other.data) != len(scored.data):
        raise UserError(f"{given[0]}: could not read all pictures that the first model read; give the same data")
    return other.scores


def _chosen(asked: Asked, place: Path) -> ImageCaptions:
    data = read(place, join_restval=asked.join_restval, captions_only=asked.captions_only)
    say_issues(data.issues)
    if asked.split == "all":
        return data
    return with_splits(data).split(asked.split)


def _scored(asked: Asked, data: ImageCaptions | None) -> Scored:
    split = asked.split if data else ""
    if asked.model is not None and data is not None:
        return _encoded(asked.model, data, asked.cache)
    if asked.ranked_lists and data is not None:
        return Scored(
            {"similarity": read_ranked_lists(asked.ranked_lists, data.image_ids, data.caption_ids)}, data, True
        )
    if asked.similarity is not None:
        path, key = split_key(asked.similarity)
        matrix = read_similarity(path, key)
        known = data or _unnamed(asked, (matrix.shape[0], matrix.shape[1]), path)
        return Scored({"similarity": _fitting(matrix, known, str(path), split)}, known, data is not None)
    image, text = asked.image_embeddings or "", asked.text_embeddings or ""
    if data is None:
        shape = (len(read_embeddings(*split_key(image)).vectors), len(read_embeddings(*split_key(text)).vectors))
        known = _unnamed(asked, shape, split_key(image)[0])
    else:
        known = data
    return Scored(_embeddings(image, text, known, split, by_id=data is not None), known, data is not None)


def _embeddings(image: str, text: str, data: ImageCaptions, split: str, by_id: bool) -> dict[str, Any]:
    sides = {}
    for name, given, ids, what in (
        ("image_embeddings", image, data.image_ids, "images"),
        ("text_embeddings", text, data.caption_ids, "captions"),
    ):
        found = read_embeddings(*split_key(given))
        found = (found if by_id else replace(found, ids=())).ordered(ids, what + _of_split(split))
        if found.warning:
            say(f"warning: {found.warning}")
        sides[name] = found.vectors
    return sides


def _encoded(name: str, data: ImageCaptions, cache: Path | None) -> Scored:
    from rungwise.models import load  # torch and timm, which files of numbers do not need

    model = load(name)
    if not data.paths or not data.captions:
        raise UserError(f"{data.name}: evaluation needs pictures and captions; there are {len(data.captions)} captions")
    with progress_bar("pictures", len(data)) as advance:
        encoded = model.encode_image(data.paths, progress=advance, cache=cache)
    if encoded.issues:
        say(f"{len(encoded.issues)} of {len(data)} pictures could not be read and are left out, with their captions")
        say_issues(encoded.issues)
        data = data.select(np.asarray(encoded.kept))
    scores = {"image_embeddings": encoded.vectors, "text_embeddings": model.encode_text(data.captions)}
    return Scored(scores, data, True, model_hash=model.fingerprint, seed=model.provenance.get("seed"))


def _of_split(split: str) -> str:
    return "" if split in ("", "all") else f" of split {split!r} (--split all takes every one)"


def _fitting(matrix: Any, data: ImageCaptions, name: str, split: str) -> Any:
    wanted = (len(data), len(data.captions))
    if tuple(matrix.shape) == wanted:
        return matrix
    turned = "it is transposed; give its .T" if tuple(matrix.shape) == wanted[::-1] else "give scores of these data"
    raise UserError(
        f"{name}: shape {tuple(matrix.shape)} for {wanted[0]} images x {wanted[1]} captions of {data.name}"
        f"{_of_split(split)}: {turned}"
    )


def _unnamed(asked: Asked, shape: tuple[int, int], path: Path) -> ImageCaptions:
    """A collection of positions, for scores without data."""
    if (asked.captions_per_image is None) == (asked.image_of_caption is None):
        raise UserError(
            "say which caption belongs to which image: one of --data FOLDER, --captions-per-image N and"
            " --image-of-caption FILE"
        )
    if asked.captions_per_image is not None:
        owners = owners_by_count(asked.captions_per_image, shape)
    else:
        file = asked.image_of_caption or Path()
        owners = read_owners(file)
        if len(owners) != shape[1]:
            turned = ": images and captions are exchanged" if len(owners) == shape[0] else ""
            raise UserError(f"{file}: names {len(owners)} captions, but {shape[1]} were given{turned}; correct one")
        if owners.max(initial=-1) >= shape[0]:
            raise UserError(
                f"{file}, caption {int(owners.argmax())}: image {owners.max()} does not exist among {shape[0]} images"
                f" (0..{shape[0] - 1}); correct the position"
            )
    return ImageCaptions(
        tuple(f"image {number}" for number in range(shape[0])),
        tuple(f"caption {number}" for number in range(shape[1])),
        owners,
        tuple(f"caption {number}" for number in range(shape[1])),
        name=path.stem,
    )


def _name_of(relevance: str) -> str:
    """A file by its name and hash; a folder of degrees says itself what it is."""
    path = split_key(relevance)[0]
    if path.is_dir():
        return ""
    with path.open("rb") as file:
        return f"{Path(relevance).name}, hash {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def _relevance(asked: Asked, scored: Scored, place: Path | None) -> Any:
    if asked.relevance is not None:
        path, key = split_key(asked.relevance)
        data = scored.data if scored.has_texts else None
        return read_relevance(path, (len(scored.data), len(scored.data.captions)), key, data=data)
    if scored.has_texts and scored.data.layout == "scenes" and place is not None:
        from rungwise.scenes.relevance import SceneRelevance

        return SceneRelevance.load(place, scored.data)
    return None
