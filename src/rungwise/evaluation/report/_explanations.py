"""Report section on why pictures were found first: which of their regions answered which words of a caption.

Regions that say little to a word fade to grey, so that it can be read without colours, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

import numpy as np

from rungwise.core import UserError
from rungwise.core.output import embedded_jpeg
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows, Picture
from rungwise.evaluation.analysis import Diagnostics, TopCandidates
from rungwise.evaluation.report._parts import section
from rungwise.similarity import Explanation

Explain = Callable[[Picture | FeatureRows, str], Explanation]
"""Function that says which regions of a picture answered which words; UserError where the picture is unreadable."""

_QUERIES = 3
"""Number of queries shown with a right first hit, and with a wrong one."""
_WORDS = 4
_SIDE = 224
_FADED = 0.82
"""Opacity of the veil over a region that says nothing to a word."""
_REGIONS = 3
"""Number of regions listed by their numbers where their boxes are unknown."""


def section_of_reasons(found: Diagnostics, explain: Explain) -> str:
    """HTML section with caption queries whose first hit is right or wrong, and the regions that answered their words.

    It is empty where no caption queries are ranked.
    """
    lists = found.lists.get("t2i")
    if lists is None:
        return ""
    right, wrong = _chosen(lists)
    cards = "".join(_card(found.data, lists, query, explain) for query in (*right, *wrong))
    note = (
        f"The first hits of caption queries: {len(right)} right ones, {len(wrong)} wrong ones. Of each, the words that"
        " count most in the score, and what answered them: regions fade from the strongest, which is framed, to the"
        " weakest. The number is the cosine of a word and what it attended to; the percentage is how much it counts."
    )
    if not cards:
        return ""
    best, faded = "the strongest region", "regions that say little to the word"
    keys = (f"<i class='key best'></i>{best}", f"<i class='key faded'></i>{faded}")
    legend = f"<p class=legend>{''.join(f'<span>{key}</span>' for key in keys)}</p>" if "class=seen" in cards else ""
    return section("Why these hits", f"{legend}<div class=reasons>{cards}</div>", note)


def _chosen(lists: TopCandidates) -> tuple[list[int], list[int]]:
    """Queries with a right first hit, by their lead; and those with a wrong one, by the rank of a right candidate.

    Within each kind, no picture is shown twice.
    """
    known = np.flatnonzero(~np.isnan(lists.best_rank) & (lists.lengths > 0))
    margin = np.nan_to_num(lists.margin[known])
    order = known[np.lexsort((-margin, lists.best_rank[known]))].tolist()
    of_kinds: list[list[int]] = []
    for is_right in (True, False):
        of_picture: dict[int, int] = {}
        for query in order:
            if lists.annotated[query, 0] == is_right:
                of_picture.setdefault(int(lists.candidates[query, 0]), query)
        of_kinds.append(list(of_picture.values())[:_QUERIES])
    return of_kinds[0], of_kinds[1]


def _card(data: ImageCaptions, lists: TopCandidates, query: int, explain: Explain) -> str:
    image, text = int(lists.candidates[query, 0]), data.captions[query]
    name = data.image_ids[image]
    said = (
        "right" if lists.annotated[query, 0] else f"wrong; the best right one is at rank {lists.best_rank[query]:.0f}"
    )
    head = f"<h3>“{escape(text)}”</h3><p class=note>first hit: {escape(name)}, {escape(said)}</p>"
    pictures = data.pictures
    try:
        picture = pictures.take(np.array([image])) if isinstance(pictures, FeatureRows) else pictures[image]
        reasons = explain(picture, text)
        shown = (
            "".join(_drawn(reasons, picture, name))
            if reasons.boxes is not None and not isinstance(picture, FeatureRows)
            else _listed(reasons)
        )
    except UserError as error:
        shown = f"<p class=missing>{escape(str(error))}</p>"
    return f"<article>{head}<div class=words-found>{shown}</div></article>"


def _drawn(reasons: Explanation, picture: Picture, name: str) -> Iterator[str]:
    from rungwise.data.pictures import thumbnail

    jpeg = thumbnail(picture, _SIDE)
    for word in reasons.decisive(_WORDS):
        where = reasons.where(word)
        image = embedded_jpeg(jpeg, f"{name}, where “{reasons.words[word]}” was found: {where}")
        caption = f"<b>{escape(reasons.words[word])}</b> <small>{_numbers(reasons, word)}, {where}</small>"
        yield f"<figure><div class=seen>{image}{_veil(reasons, word)}</div><figcaption>{caption}</figcaption></figure>"


def _veil(reasons: Explanation, word: int) -> str:
    """SVG that fades the regions of a picture, in thousandths of its sides."""
    assert reasons.boxes is not None
    boxes = np.round(1000 * reasons.boxes).astype(int)
    left, top, right, bottom = boxes.T
    seen = (right > left) & (bottom > top)
    weights = reasons.weights[word]
    # From the weakest to the strongest, because attention of some models differs little between regions.
    spread = float(weights.max() - weights.min())
    fading = _FADED * (weights.max() - weights) / (spread or 1.0)
    parts = [_outside(boxes[seen])] if seen.any() else []
    for (x, y, to_x, to_y), by in zip(boxes[seen].tolist(), fading[seen].tolist(), strict=True):
        parts.append(f'<rect x="{x}" y="{y}" width="{to_x - x}" height="{to_y - y}" fill-opacity="{by:.2f}"/>')
    x, y, to_x, to_y = boxes[int(np.where(seen, weights, -1).argmax())].tolist()
    parts.append(f'<rect class="best" x="{x}" y="{y}" width="{to_x - x}" height="{to_y - y}"/>')
    return f'<svg class="veil" viewBox="0 0 1000 1000" preserveAspectRatio="none">{"".join(parts)}</svg>'


def _outside(boxes: np.ndarray) -> str:
    """SVG that fades the part of the picture that the model did not see."""
    (left, top), (right, bottom) = boxes[:, :2].min(axis=0).tolist(), boxes[:, 2:].max(axis=0).tolist()
    path = f"M0 0H1000V1000H0ZM{left} {top}V{bottom}H{right}V{top}Z"
    return f'<path d="{path}" fill-opacity="{_FADED}"/>'


def _listed(reasons: Explanation) -> str:
    """The words with the numbers of their regions, where the regions have no boxes."""
    lines = []
    for word in reasons.decisive(_WORDS):
        first = np.argsort(-reasons.weights[word], kind="stable")[:_REGIONS].tolist()
        regions = ", ".join(f"{region} ({100 * reasons.weights[word, region]:.0f} %)" for region in first)
        name = escape(reasons.words[word])
        lines.append(f"<li><b>{name}</b> <small>{_numbers(reasons, word)}; regions {regions}</small></li>")
    note = "Regions are counted from 0, as their rows stand in the file, which does not say where they lie."
    return f"<ul>{''.join(lines)}</ul><p class=note>{note}</p>"


def _numbers(reasons: Explanation, word: int) -> str:
    return f"{reasons.answers[word]:.2f}, {100 * reasons.shares[word]:.0f} % of S"
