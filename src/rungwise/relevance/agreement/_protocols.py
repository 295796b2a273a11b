"""How well degrees agree with people's judgements, by the protocols of the captioning literature.

* Flickr8K's experts: tau-c over single grades, without captions of the image itself (Hessel et al. 2021, appendix A,
  who follow Anderson et al. 2016).
* Flickr8K's crowd: tau-b on the share of people who said yes, where a caption is no reference for itself (Hessel et al.
  2021).
* CrissCrossed Captions: Pearson over all image-caption pairs, and over captions of other pictures (Biten et al.
  2022, Table 1). Between captions and between images, Pearson and Spearman over all pairs; Parekh et al. (2021) print a
  Spearman of samples, which is another number.
* Pascal-50S: how often the caption that most people prefer has the higher degree, by category, and the mean over
  categories (Vedantam et al. 2015; Hessel et al. 2021).
* VATEX-EVAL: tau-b and Spearman with each annotator's grades, averaged over annotators (Shi et al. 2022, as their
  program computes them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core import UserError
from rungwise.core.disk import replacing
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.relevance._base import Positions
from rungwise.relevance.agreement._degrees import DegreesOfPairs, Source, degrees_of_pairs, degrees_of_texts
from rungwise.relevance.agreement._graders import krippendorff_alpha
from rungwise.relevance.agreement._scoring import (
    CORRELATIONS,
    Estimate,
    Numbers,
    accuracy,
    correlations,
    estimates,
    flattened,
    of_each_rater,
)
from rungwise.relevance.config import Building
from rungwise.relevance.human import Judged, Preferences, RatedPairs, RatedTexts, Ratings, means_of

DRAWS = 200
"""Default number of bootstrap draws; tau of many pairs takes some milliseconds a draw."""

SINGLE = "tau-c, single grades"
EACH = ("tau-b, each rater", "Spearman, each rater")
MEAN = "mean"
_SHOWN = {"all": "all pairs", "others": "captions of other pictures", "apart": "apart from itself"}
_SPEARMAN, _TAU_B, _TAU_C = 1, 2, 3


@dataclass(frozen=True)
class AgreementPart:
    """Measures over some of the judged items.

    Attributes:
        name: Name of this part of the items, such as a category.
        items: Number of items.
        numbers: Measure to number, in the order in which they are shown.
    """

    name: str
    items: int
    numbers: Mapping[str, Estimate]


@dataclass(frozen=True)
class Agreed:
    """How well a source agrees with people.

    Attributes:
        judged: Name of the judgement file.
        what: Kind of the judged items, such as ``"image-caption pairs"``.
        items: Number of items that were compared.
        left_out: Number of items without a degree (NaN) or a rating.
        raters: The most ratings of one item; 1 where the file has only means.
        alpha: Krippendorff's alpha (ordinal) of the raters; NaN where there are no single ratings.
        parts: Measures over all items and over parts of them.
        protocol: Protocol of the literature for such judgements.
        published: Measures of that protocol, by name.
        issues: Judgements of what the collection lacks.
        fitted: The source was fitted to these very judgements: the numbers say nothing of others.
    """

    judged: str
    what: str
    items: int
    left_out: int
    raters: int
    alpha: float
    parts: tuple[AgreementPart, ...]
    protocol: str
    published: Mapping[str, Estimate]
    issues: tuple[Issue, ...] = ()
    fitted: bool = False

    __repr__ = short_repr

    def as_plain(self) -> dict[str, Any]:
        """All numbers, each with the ends of its interval, as JSON can hold them: None where one is not defined."""
        return {
            "judged": self.judged,
            "what": self.what,
            "items": self.items,
            "left_out": self.left_out,
            "unknown": len(self.issues),
            "fitted_to_these": self.fitted,
            "raters": self.raters,
            "alpha": None if np.isnan(self.alpha) else self.alpha,
            "parts": {
                part.name: {"items": part.items} | {name: _plain(one) for name, one in part.numbers.items()}
                for part in self.parts
            },
            "protocol": self.protocol,
            "published": {name: _plain(one) for name, one in self.published.items()},
        }

    def to_json(self, path: Path | str, source: str) -> None:
        """Write all numbers to a file, whole or not at all; ``source`` is the source's name in it."""
        with replacing(Path(path)) as draft:
            draft.write_text(json.dumps({"source": source} | self.as_plain(), indent=1) + "\n", encoding="utf-8")


def _plain(one: Estimate) -> list[float | None]:
    return [None if np.isnan(number) else number for number in (one.value, one.low, one.high)]


def agree(
    source: Source,
    judged: Judged,
    data: ImageCaptions | None = None,
    *,
    references: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    building: Building | None = None,
) -> Agreed:
    """Compare a source with what people judged.

    Args:
        source: Name of a source, a source with options, or a folder of saved degrees.
        judged: Judgements as :func:`rungwise.relevance.human.read_judged` reads them.
        data: The collection that was judged; judgements that bring their texts need none.
        references: Take only the first so many references of judgements that bring their texts; None takes all.
        draws: Number of bootstrap draws over the judged items; 0 gives no intervals.
        seed: Seed of the draws.
        building: Settings and callbacks for building the source.

    >>> from rungwise.relevance.human import RatedPairs
    >>> data = ImageCaptions(("a", "b"), ("a red dog", "a dog", "a cat"), np.array([0, 0, 1]))
    >>> ratings = np.array([[5.0], [0.0], [1.0]])
    >>> judged = RatedPairs("image-caption", "table", ("a", "a", "b"), ("a#0", "b#0", "a#1"), ratings, ("", "", ""))
    >>> found = agree("tfidf", judged, data, draws=0)
    >>> [(part.name, part.items, str(part.numbers["Spearman"])) for part in found.parts]
    [('all', 3, '0.866'), ('others', 2, '-'), ('apart', 3, '0.866')]
    """
    if references is not None and references < 1:
        raise UserError(f"references must be at least 1, got {references}")
    if isinstance(judged, RatedPairs):
        if data is None:
            raise UserError(f"{judged.name}: its judgements name images and captions; give the collection they are of")
        return pairs_agreed(judged, degrees_of_pairs(source, judged, data, building=building), draws=draws, seed=seed)
    given = [texts[:references] for texts in judged.references]
    if isinstance(judged, Preferences):
        both = list(zip(judged.first, judged.second, strict=True))
        degrees = degrees_of_texts(source, judged.items, given, both, data=data, building=building)
        return preferences_agreed(judged, degrees, draws=draws, seed=seed)
    single = [(text,) for text in judged.candidates]
    degrees = degrees_of_texts(source, judged.items, given, single, data=data, building=building)
    return texts_agreed(judged, degrees[:, 0], draws=draws, seed=seed)


def pairs_agreed(judged: RatedPairs, found: DegreesOfPairs, *, draws: int = DRAWS, seed: int = 0) -> Agreed:
    """Compare degrees of rated pairs with their ratings."""
    ratings = judged.ratings[found.kept]
    known = ~np.isnan(found.degrees) & ~np.isnan(means_of(ratings))
    others = known & ~found.own
    chosen = [("all", found.degrees, known)]
    if others.any() and found.own.any():
        chosen.append(("others", found.degrees, others))
    if found.apart is not None:
        chosen.append(("apart", found.apart, known & ~np.isnan(found.apart)))
    parts = tuple(_part(name, degrees[which], ratings[which], False, draws, seed) for name, degrees, which in chosen)
    protocol, published = _published_pairs(judged, {part.name: part for part in parts})
    return Agreed(
        judged.name,
        f"{judged.between} pairs",
        int(known.sum()),
        len(known) - int(known.sum()),
        judged.raters,
        _alpha(ratings[known]),
        parts,
        protocol,
        published,
        found.issues,
        found.fitted,
    )


def texts_agreed(judged: RatedTexts, degrees: Numbers, *, draws: int = DRAWS, seed: int = 0) -> Agreed:
    """Compare (candidates,) degrees, NaN where there is none, with the ratings of the candidates."""
    known = ~np.isnan(degrees) & ~np.isnan(judged.means)
    part = _part("all", degrees[known], judged.ratings[known], True, draws, seed)
    names = EACH if judged.raters > 1 else (CORRELATIONS[_TAU_B], CORRELATIONS[_SPEARMAN])
    return Agreed(
        judged.name,
        "candidate captions",
        int(known.sum()),
        len(known) - int(known.sum()),
        judged.raters,
        _alpha(judged.ratings[known]),
        (part,),
        "VATEX-EVAL (Shi et al. 2022): with each rater's grades, averaged over raters",
        {name: part.numbers[name] for name in names},
    )


def preferences_agreed(judged: Preferences, degrees: Numbers, *, draws: int = DRAWS, seed: int = 0) -> Agreed:
    """How often the candidate that people prefer has the higher of both (pairs, 2) degrees, NaN where unknown."""
    known = np.asarray(~np.isnan(degrees).any(axis=1))
    first, second = degrees[known].T
    preferred = judged.preferred[known]
    categories, codes = np.unique(np.array(judged.categories, dtype=str)[known], return_inverse=True)

    def accuracies(at: Positions) -> Numbers:
        places = [at[codes[at] == code] for code in range(len(categories))]
        single = np.array([accuracy(first[here], second[here], preferred[here]) for here in places])
        return np.append(single, single.mean() if len(single) else np.nan)

    numbers = estimates(accuracies, int(known.sum()), draws, seed)
    counts = np.bincount(codes, minlength=len(categories))
    parts = tuple(
        AgreementPart(str(name) or "all", int(count), {"accuracy": number})
        for name, count, number in zip(categories, counts, numbers, strict=False)
    )
    return Agreed(
        judged.name,
        "pairs of candidates",
        int(known.sum()),
        len(known) - int(known.sum()),
        int(judged.votes.sum(axis=1).max(initial=0)),
        float("nan"),
        (*parts, AgreementPart(MEAN, int(known.sum()), {"accuracy": numbers[-1]})),
        "Pascal-50S (Vedantam et al. 2015): accuracy by category; ties count half",
        {"mean of categories": numbers[-1]},
    )


def _part(name: str, degrees: Numbers, ratings: Ratings, by_rater: bool, draws: int, seed: int) -> AgreementPart:
    means = means_of(ratings)
    several = ratings.shape[1] > 1
    names = (*CORRELATIONS, *((SINGLE,) if several else ()), *(EACH if several and by_rater else ()))

    def numbers(at: Positions) -> Numbers:
        found = [correlations(degrees[at], means[at])]
        if several:
            found.append(correlations(*flattened(degrees[at], ratings[at]))[[_TAU_C]])
        if several and by_rater:
            found.append(of_each_rater(degrees[at], ratings[at])[[_TAU_B, _SPEARMAN]])
        return np.concatenate(found)

    return AgreementPart(
        name, len(degrees), dict(zip(names, estimates(numbers, len(degrees), draws, seed), strict=True))
    )


def _alpha(ratings: Ratings) -> float:
    return krippendorff_alpha(ratings.T) if ratings.shape[1] > 1 else float("nan")


def _published_pairs(judged: RatedPairs, parts: Mapping[str, AgreementPart]) -> tuple[str, dict[str, Estimate]]:
    def shown(part: str, names: Sequence[str]) -> dict[str, Estimate]:
        return {f"{name}, {_SHOWN[part]}": parts[part].numbers[name] for name in names if part in parts}

    others = "others" if "others" in parts else "all"
    if judged.layout == "flickr8k-expert":
        return (
            "Flickr8K-Expert (Hessel et al. 2021): without the image's own captions",
            shown(others, (SINGLE,)),
        )
    if judged.layout == "flickr8k-crowd":
        return (
            "Flickr8K-CF (Hessel et al. 2021): no caption is a reference for itself",
            shown("apart" if "apart" in parts else "all", (CORRELATIONS[_TAU_B],)),
        )
    if judged.between == "image-caption":
        return (
            "CxC (Biten et al. 2022): all pairs, and captions of other pictures",
            shown("all", CORRELATIONS[:1]) | shown(others, CORRELATIONS[:1]),
        )
    return "Pearson and Spearman over all pairs", shown("all", CORRELATIONS[:2])
