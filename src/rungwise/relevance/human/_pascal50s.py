"""Pascal-50S as its authors publish it: ``consensus_pascal.mat`` (votes) and ``pair_pascal.mat`` (categories).

``triplets`` has a structure for each judgement: a reference, both candidates, and 1 where the person chose the first,
-1 the second; the judgements of one pair (48 in the published file) stand together, each with a reference of its own.
``category`` has 1 to 4 for each pair, and ``new_input`` its picture with both candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core import UserError
from rungwise.core.formats import read_values
from rungwise.relevance.human._types import Preferences

_CATEGORIES = {1: "HC", 2: "HI", 3: "HM", 4: "MM"}
_TRIPLET, _PAIR = 4, 3


def mat_preferences(paths: Sequence[Path]) -> Preferences:
    """Preferences from the published MAT files.

    Args:
        paths: ``consensus_pascal.mat``, and ``pair_pascal.mat`` if it is there, in any order. Without the second one
            there are no categories, and a picture is known by its references.
    """
    triplets: tuple[Path, list[tuple[str, str, str, float]]] | None = None
    pairs: tuple[Path, list[tuple[str, str, str]], list[str]] | None = None
    for path in paths:
        found = read_values(path, ("triplets", "new_input", "category"))
        if "triplets" in found and triplets is None:
            triplets = path, [_triplet(path, n, one) for n, one in enumerate(_listed(path, found, "triplets"), start=1)]
        elif "new_input" in found and "category" in found and pairs is None:
            named = [_texts(path, n, one) for n, one in enumerate(_listed(path, found, "new_input"), start=1)]
            pairs = path, named, _categories(path, found["category"], len(named))
        else:
            raise UserError(
                f"{path}: holds neither triplets nor new_input with category, or both files hold the same; give"
                " consensus_pascal.mat and pair_pascal.mat of Pascal-50S"
            )
    if triplets is None:
        raise UserError(f"{paths[0]}: holds categories without votes; give consensus_pascal.mat too")
    path, judgements = triplets
    groups = _together(judgements)
    if pairs is None:
        references = [tuple(one[0] for one in group) for group in groups]
        pictures = {texts: f"picture {n}" for n, texts in enumerate(dict.fromkeys(references), start=1)}
        return _preferences(path, groups, [pictures[texts] for texts in references], [""] * len(groups))
    place, named, categories = pairs
    if len(named) and len(judgements) % len(named) == 0:
        size = len(judgements) // len(named)
        groups = [judgements[start : start + size] for start in range(0, len(judgements), size)] if size else []
    if len(groups) != len(named) or any(
        (first, second) != one[1:3] for (_, first, second), group in zip(named, groups, strict=True) for one in group
    ):
        raise UserError(f"{place}: its pairs are not those of {path}; give the two files of one publication")
    return _preferences(path, groups, [picture for picture, _, _ in named], categories)


def _preferences(
    path: Path, groups: Sequence[Sequence[tuple[str, str, str, float]]], items: Sequence[str], categories: Sequence[str]
) -> Preferences:
    if not groups:
        raise UserError(f"{path}: holds no judgement; give a file with some")
    chosen = [[sum(one[3] == which for one in group) for which in (1, -1)] for group in groups]
    return Preferences(
        items=tuple(items),
        first=tuple(group[0][1] for group in groups),
        second=tuple(group[0][2] for group in groups),
        votes=np.array(chosen, np.float64),
        categories=tuple(categories),
        references=tuple(tuple(dict.fromkeys(one[0] for one in group)) for group in groups),
        places=tuple(f"{path}, pair {number}" for number in range(1, len(groups) + 1)),
        name=str(path),
    )


def _together(judgements: Iterable[tuple[str, str, str, float]]) -> list[list[tuple[str, str, str, float]]]:
    """Group consecutive judgements of the same two candidates."""
    groups: list[list[tuple[str, str, str, float]]] = []
    for one in judgements:
        if not groups or groups[-1][0][1:3] != one[1:3]:
            groups.append([])
        groups[-1].append(one)
    return groups


def _listed(path: Path, found: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(found[name], list):
        raise UserError(f"{path}: {name!r} is no list of structures; give the published file")
    return list(found[name])


def _triplet(path: Path, number: int, one: Any) -> tuple[str, str, str, float]:
    parts = _parts(one)
    texts = [part for part in parts[:3] if isinstance(part, str)]
    chosen = parts[3] if len(parts) == _TRIPLET else None
    if (
        len(texts) != _TRIPLET - 1
        or not isinstance(chosen, np.ndarray)
        or chosen.size != 1
        or chosen.item() not in (1, -1)
    ):
        raise UserError(f"{path}, triplet {number}: not three texts and 1 or -1; give the published file")
    reference, first, second = (text.strip() for text in texts)
    return reference, first, second, float(chosen.item())


def _texts(path: Path, number: int, one: Any) -> tuple[str, str, str]:
    parts = _parts(one)
    if len(parts) != _PAIR or not all(isinstance(part, str) for part in parts):
        raise UserError(f"{path}, pair {number}: not a picture and two texts; give the published file")
    picture, first, second = (part.strip() for part in parts)
    return picture, first, second


def _parts(one: Any) -> list[Any]:
    """The fields of a structure or cells of a list, each without the cell around it."""
    parts = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
    return [part[0] if isinstance(part, list) and len(part) == 1 else part for part in parts]


def _categories(path: Path, numbers: Any, pairs: int) -> list[str]:
    if not isinstance(numbers, np.ndarray) or numbers.size != pairs or not np.isin(numbers, list(_CATEGORIES)).all():
        raise UserError(f"{path}: category is no list of 1 to 4 for each of its {pairs} pairs; give the published file")
    return [_CATEGORIES[int(number)] for number in numbers.ravel()]
