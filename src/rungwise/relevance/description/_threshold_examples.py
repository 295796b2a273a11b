"""Example pairs between one threshold and the next, so that a person can see what the thresholds separate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rungwise.core import UserError
from rungwise.core.output import embedded_jpeg, page, whole_characters
from rungwise.core.text import evenly_spread
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Degrees
from rungwise.relevance.description.describe import DegreeSample, sample

_SIDE = 180
"""Pixels of the longer side of a picture on the page."""

_INTRODUCTION = """<p>Each card is an image with its degree of relevance to a caption that was written for another
image; the image's own captions stand below. From left to right the degree falls from the rung's upper end to its lower
one.</p>
"""

_STYLE = """section > div { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1rem; }
img { margin: 0 auto .5rem; }
.degree { font-weight: 600; } .caption { font-size: 1.05rem; }
details { color: var(--soft); font-size: .85rem; } ul { margin: .2rem 0 0; padding-left: 1.1rem; }
summary { overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Rung:
    """Pairs of like relevance.

    Attributes:
        low: Lowest degree of the rung; -inf for the last rung.
        high: Lowest degree of the rung above, which does not belong to this one; inf for the first.
        share: Share of this rung among the captions of other pictures.
        images: (n,) positions of example pairs' images, by falling degree.
        captions: (n,) positions of the example pairs' captions.
        degrees: (n,) degrees of the example pairs.
    """

    low: float
    high: float
    share: float
    images: NDArray[np.int64]
    captions: NDArray[np.int64]
    degrees: NDArray[np.float32]


def rungs(source: Degrees, thresholds: Sequence[float], *, examples: int = 5, pairs: int = 1_000_000) -> list[Rung]:
    """The rungs that thresholds cut, with example pairs from the top of each to its bottom.

    Args:
        source: Source whose degrees the thresholds are on.
        thresholds: Falling degrees; one that equals a degree puts it on the upper rung.
        examples: Pairs of each rung, evenly spread over its pairs by falling degree, so that both of its ends are seen.
        pairs: Number of pairs to sample, roughly.

    Returns:
        One rung more than thresholds, the most relevant first.

    >>> from rungwise.relevance.human import Labels
    >>> source = Labels([("dog", "grass"), ("dog",), ("car",)], [0, 1, 2], degree="jaccard")
    >>> [(rung.share, rung.images.tolist(), rung.captions.tolist()) for rung in rungs(source, [0.5], examples=2)]
    [(0.3333333333333333, [0, 1], [1, 0]), (0.6666666666666666, [0, 2], [2, 1])]
    """
    cuts = [np.inf, *map(float, thresholds), -np.inf]
    if not len(thresholds) or not (np.diff(cuts) < 0).all():
        raise UserError(f"thresholds must be numbers that fall, got {list(thresholds)}")
    if examples < 1:
        raise UserError(f"examples must be at least 1, got {examples}")
    seen = sample(source, pairs=pairs)
    rows, columns = np.nonzero(~seen.own & ~np.isnan(seen.degrees))
    if not len(rows):
        raise UserError("relevance: there are no pairs to show but pictures with their own captions")
    degrees = seen.degrees[rows, columns]
    order = np.argsort(-degrees, kind="stable")
    ends = np.searchsorted(-degrees[order], -np.array(cuts[1:]), side="right")
    begins = np.concatenate(([0], ends[:-1]))
    return [
        _rung(seen, rows, columns, order[begin:end], examples, low, high)
        for begin, end, low, high in zip(begins, ends, cuts[1:], cuts, strict=False)
    ]


def _rung(
    seen: DegreeSample,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    members: NDArray[np.int64],
    examples: int,
    low: float,
    high: float,
) -> Rung:
    chosen = members[evenly_spread(len(members), examples)]
    return Rung(
        low=low,
        high=high,
        share=len(members) / len(rows),
        images=seen.images[rows[chosen]],
        captions=seen.captions[columns[chosen]],
        degrees=seen.degrees[rows[chosen], columns[chosen]],
    )


def render_rungs(found: Sequence[Rung], data: ImageCaptions) -> RenderableType:
    """The rungs as tables for the terminal: degree, the image's id and first caption, the other image's caption."""
    parts: list[RenderableType] = []
    for number, rung in enumerate(found, start=1):
        parts.append(Text(_title(number, rung)))
        table = Table(box=None, pad_edge=True)
        table.add_column("degree", justify="right")
        table.add_column("image", overflow="fold", max_width=24)
        table.add_column("its first caption")
        table.add_column("caption")
        for image, caption, degree in _examples(rung):
            own = _own_captions(data, image)
            texts = (data.image_ids[image], own[0] if own else "", data.captions[caption])
            table.add_row(f"{degree:.3f}", *(Text(whole_characters(text)) for text in texts))
        parts.append(table)
    return Group(*parts)


def rungs_page(found: Sequence[Rung], data: ImageCaptions, title: str) -> str:
    """The rungs as one HTML page that needs no other file and no script: pictures are embedded.

    Args:
        found: Rungs as :func:`rungs` returns them.
        data: Captions, and pictures where there are; a picture that cannot be read is replaced by the reason.
        title: Source and collection.
    """
    sections = []
    for number, rung in enumerate(found, start=1):
        cards = "".join(_card(data, image, caption, degree) for image, caption, degree in _examples(rung))
        empty = "" if cards else "<p>No pair of the sample is on this rung.</p>"
        sections.append(f"<section><h2>{escape(_title(number, rung))}</h2>{empty}<div>{cards}</div></section>")
    return page(title, _INTRODUCTION + "\n".join(sections), _STYLE)


def _title(number: int, rung: Rung) -> str:
    if np.isinf(rung.high):
        bounds = f"{rung.low:.4g} and above" if np.isfinite(rung.low) else "everything"
    elif np.isinf(rung.low):
        bounds = f"below {rung.high:.4g}"
    else:
        bounds = f"{rung.low:.4g} to below {rung.high:.4g}"
    return f"rung {number}: {bounds}, {100 * rung.share:.3g}% of pairs"


def _examples(rung: Rung) -> list[tuple[int, int, float]]:
    return list(zip(rung.images.tolist(), rung.captions.tolist(), rung.degrees.tolist(), strict=True))


def _own_captions(data: ImageCaptions, image: int) -> list[str]:
    return [data.captions[caption] for caption in np.flatnonzero(data.image_of_caption == image).tolist()]


def _card(data: ImageCaptions, image: int, caption: int, degree: float) -> str:
    own = "".join(f"<li>{escape(text)}</li>" for text in _own_captions(data, image))
    return (
        f"<article>{_picture(data, image)}<p class=degree>{degree:.3f}</p>"
        f"<p class=caption>{escape(data.captions[caption])}</p>"
        f"<details open><summary>{escape(data.image_ids[image])}</summary><ul>{own}</ul></details></article>"
    )


def _picture(data: ImageCaptions, image: int) -> str:
    if not data.paths:
        return ""
    from rungwise.data.pictures import thumbnail

    try:
        return embedded_jpeg(thumbnail(data.paths[image], _SIDE), data.image_ids[image])
    except UserError as error:
        return f"<p class=missing>{escape(str(error))}</p>"
