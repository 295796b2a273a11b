"""A result as one HTML file that needs no other: tables, plots, queries with pictures, false negatives.

The page makes no request and has no script; light or dark follows the reader's system.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from itertools import pairwise

import numpy as np

from rungwise.core import UserError
from rungwise.core.output import embedded_jpeg, page
from rungwise.data import ImageCaptions
from rungwise.data.files import Picture
from rungwise.evaluation.analysis import Diagnostics, FalseNegative, TopCandidates, mean_curve, recall_curve
from rungwise.evaluation.report import _plots as plots
from rungwise.evaluation.report._cutoffs import plots_of_ends
from rungwise.evaluation.report._explanations import Explain, section_of_reasons
from rungwise.evaluation.report._labels import sections_of_labels
from rungwise.evaluation.report._origin import ReportOrigin, citation, definitions, head_of
from rungwise.evaluation.report._parts import images_of, section, table
from rungwise.evaluation.report._style import RUNG_COLOURS, STYLE
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import WAYS, Intervals, cells_of
from rungwise.evaluation.tables import PublishedRow, published_cells, sources_of
from rungwise.metrics import Direction

_SIDE = 132
"""Length in pixels of a picture's longer side on the page."""

_SHOWN = 3
"""Number of queries shown of each kind and direction."""

_RESULTS = 5
_FALSE_NEGATIVES = 9
_RANK_EDGES = (1, 2, 6, 11, 51, 101, 501, 1001, 5001, 10001, 50001)


def report_page(
    result: Result,
    found: Diagnostics,
    *,
    false_negatives: Sequence[FalseNegative] = (),
    published: Sequence[PublishedRow] = (),
    intervals: Intervals | None = None,
    beside: Diagnostics | None = None,
    names: tuple[str, str] = ("this model", "the other model"),
    has_texts: bool = True,
    curves: Result | None = None,
    explain: Explain | None = None,
    origin: ReportOrigin | None = None,
) -> str:
    """HTML of a report.

    Args:
        result: Numbers to show.
        found: Diagnostics of the same rankings, from :func:`~rungwise.evaluation.diagnose`.
        false_negatives: False negatives of the same rankings.
        published: Rows of papers to set beside the numbers.
        intervals: Bounds to print beside the numbers.
        beside: Diagnostics of another model on the same gallery, for the figure of two models.
        names: Names of the two models.
        has_texts: Whether captions have texts, so that they can be shown and their lengths plotted.
        curves: Under the protocol labels, a result of the same rankings with the measures that
            :func:`~rungwise.evaluation.report.curve_measures` names. Default: ``result``, as far as it has them.
        explain: Function that explains a pair by regions and words; None for models that cannot.
        origin: What the numbers were made from, for the head of the report.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> from rungwise.evaluation.analysis import diagnose
    >>> data = ImageCaptions(("a", "b"), ("a <b> dog", "a cat"), np.array([0, 1]))
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1])
    >>> page = report_page(result, diagnose({"similarity": np.eye(2)}, data))
    >>> "a &lt;b&gt; dog" in page, "<script" in page, "http" in page
    (True, False, False)
    """
    origin = origin or ReportOrigin()
    parts = _Page(found, has_texts)
    graded = any(lists.degrees is not None for lists in found.lists.values())
    sections = [head_of(result, origin, intervals=bool(intervals)), _numbers(result, intervals, graded)]
    if published:
        sections.append(_published(result, published, names[0]))
    if result.protocol == "labels":
        sections += sections_of_labels(result, found, curves or result)
    sections.append(section("Plots", f"<div class=plots>{drawn(_plots(found, has_texts))}</div>", _scope(found)))
    if ends := plots_of_ends(result):
        note = f"Relevance ends by: {result.ends}."
        sections.append(section("Where relevance ends", f"<div class=plots>{drawn(ends)}</div>", note))
    if found.rungs:
        sections.append(_rungs(found))
    if beside is not None:
        sections.append(_two_models(parts, beside, names))
    sections += parts.queries(false_negatives)
    if explain is not None and has_texts:
        sections.append(section_of_reasons(found, explain))
    if found.thresholds:
        sections.append(parts.false_negatives(false_negatives))
    sections.append(citation(result, origin, published, ["R", *["CS"] * bool(found.coherence)]))
    return page(result.title(), "\n".join(sections), STYLE)


def _scope(found: Diagnostics) -> str:
    return f"Drawn from the first of {len(found.folds)} galleries." if len(found.folds) > 1 else ""


def drawn(figures: Iterable[plots.Figure]) -> str:
    """HTML of several figures."""
    return "".join(figure.html() for figure in figures)


def _numbers(result: Result, intervals: Intervals | None, graded: bool) -> str:
    lines = result.notes()  # which has the warnings, too
    if intervals:
        lines.append("in brackets: 95 % bootstrap intervals over images, which are drawn with all their queries")
    note = "".join(f"<li>{escape(line)}</li>" for line in lines)
    cells = table(*cells_of(result.numbers, result.units, intervals), "Numbers")
    said = definitions(result, degrees=graded)
    return section("Numbers", f"{cells}<ul class=note>{note}</ul><h3>What they are</h3>{said}")


def _published(result: Result, rows: Sequence[PublishedRow], ours: str) -> str:
    sources = "".join(f"<li>{escape(line)}</li>" for line in sources_of(rows))
    return section(
        "Beside published rows",
        f"{table(*published_cells(result, ours, rows), 'Beside published rows')}<ul class=note>{sources}</ul>",
        "Numbers as papers print them, beside ours in the first row: rows of the same test set, gallery size, folds and"
        " captions only. Of a row in brackets: the paper by its short name below, and its table. A dash: not printed.",
    )


def _plots(found: Diagnostics, has_texts: bool) -> list[plots.Figure]:
    shown = [*_recall_curve(found), _rank_histogram(found), *_coherence(found), *_degrees(found), *_spreads(found)]
    shown.append(_hubs(found))
    if found.gap is not None:
        sides = {"images": found.gap.images, "captions": found.gap.captions}
        both = np.concatenate(list(sides.values()))
        names = ("first principal direction", "second principal direction")
        x, y = (plots.Axis(name, both[:, n].min(), both[:, n].max()) for n, name in enumerate(names))
        points = {name: [(float(a), float(b)) for a, b in side] for name, side in sides.items()}
        note = (
            f"Vectors of {len(found.gap.images):,} images and {len(found.gap.captions):,} captions, scaled to length 1"
            " and projected on the two directions in which all of them vary most (principal components). The gap is the"
            f" distance of the mean image vector from the mean caption vector: {found.gap.distance:.3f}, of 2 at most"
            " (Liang et al. 2022)."
        )
        shown.append(plots.scatter(points, x, y, f"Modality gap: {found.gap.distance:.3f}", note))
    if has_texts and "t2i" in found.lists and found.lists["t2i"].depth:
        shown.append(_by_length(found))
    return shown


_BAND = "Bands: 95 % bootstrap intervals over images, at each point by itself."


def _recall_curve(found: Diagnostics) -> list[plots.Figure]:
    curves = {}
    for way, lists in found.lists.items():
        if lists.depth and not np.isnan(lists.best_rank).all():
            gallery, owners = len(lists.occurrences), images_of(found, way)
            curves[WAYS[way]] = recall_curve(lists.best_rank, owners, gallery, lists.positives, depth=lists.depth)
    if not curves:
        return []
    x = plots.Axis("K", 1, max(2.0, *(float(curve.x[-1]) for curve in curves.values())), logarithmic=True)
    note = (
        "Percentage of queries with at least one right candidate among the first K. Chance: what a random order of the"
        f" gallery gives on average, exactly, for the right candidates that each query has. {_BAND} Where all queries"
        " agree: Wilson's interval."
    )
    y = plots.Axis("R@K, percent of queries", 0, 100)
    return [plots.lines(curves, x, y, "Recall curve", note=note, chance="chance")]


def _rank_histogram(found: Diagnostics) -> plots.Figure:
    most = max(1, *(int(lists.lengths.max()) for lists in found.lists.values()))
    starts = [edge for edge in _RANK_EDGES if edge <= most]
    ends = [*(edge - 1 for edge in starts[1:]), most]
    names = [f"{low:,}" if low == high else f"{low:,}-{high:,}" for low, high in zip(starts, ends, strict=True)]
    bins: list[float] = [*starts, most + 1]
    if any(np.isinf(lists.best_rank).any() for lists in found.lists.values()):
        names.append("not listed")
        bins.append(np.inf)
    shares: dict[str, list[float]] = {}
    for way, lists in found.lists.items():
        ranks = lists.best_rank[~np.isnan(lists.best_rank)]
        counts, _ = np.histogram(ranks, bins=bins)
        shares[WAYS[way]] = (100 * counts / max(1, len(ranks))).tolist()
    y = plots.Axis("percent of queries", 0, max(max(one) for one in shares.values()) or 1)
    note = "At which rank the first right candidate of a query stands, 1 being the first; ranges grow to the right."
    return plots.bars(shares, names, y, "Rank of the best right candidate", "rank", note)


def _coherence(found: Diagnostics) -> list[plots.Figure]:
    if not found.coherence:
        return []
    curves = {WAYS[way]: curve for way, curve in found.coherence.items()}
    steps = [float(k) for curve in curves.values() for k in curve.x]
    low, high = (ends(ends(curve.low.min(), curve.high.max(), 0.0) for curve in curves.values()) for ends in (min, max))
    x = plots.Axis("K", min(steps), max(steps), logarithmic=True)
    y = plots.Axis("CS@K", float(low) - 0.02, float(high) + 0.02)
    note = (
        "Coherent score: rank correlation (Kendall's tau-b, -1 to 1) of similarity and degree of relevance among the K"
        f" candidates that stand first. A random order has 0 on average. {_BAND}"
    )
    return [plots.lines(curves, x, y, "Coherent score by K", note=note, chance="chance, 0")]


def _degrees(found: Diagnostics) -> list[plots.Figure]:
    curves = {}
    for way, lists in found.lists.items():
        if lists.by_rank is not None:
            one = lists.by_rank
            ideal, chance = one.ideal.mean(axis=0), float(one.mean.mean())
            curves[WAYS[way]] = mean_curve(one.ranks, one.found, images_of(found, way), chance=chance, ideal=ideal)
    if not curves:
        return []
    parts = [part for one in curves.values() for part in (one.low, one.high, one.ideal, one.chance)]
    low, high = float(np.concatenate(parts).min()), float(np.concatenate(parts).max())
    x = plots.Axis("rank", 1, max(2.0, *(float(curve.x[-1]) for curve in curves.values())), logarithmic=True)
    y = plots.Axis("mean degree", min(0.0, low), high or 1.0)
    note = (
        "Mean degree of relevance of the candidate at each rank, over all queries. Best order: that of the degrees"
        f" themselves. Chance: the mean degree of all candidates. {_BAND}"
    )
    return [plots.lines(curves, x, y, "Degree of relevance by rank", note=note, chance="chance", ideal="best order")]


def _spreads(found: Diagnostics) -> list[plots.Figure]:
    held = [rung for rung in found.rungs if rung.pairs]
    if not held:
        return []
    names = [str(found.rungs.index(rung) + 1) for rung in held]
    values = [value for rung in held for value in rung.quantiles]
    room = 0.05 * (max(values) - min(values))
    y = plots.Axis("similarity", min(values) - room, max(values) + room)
    bounds = _bounds(found.thresholds)
    cut = "; ".join(f"{name}: degree {bounds[int(name) - 1]}" for name in names)
    note = (
        "How alike the model finds pairs of each rung; rungs are ranges of the degree of relevance."
        f" {cut}. {_sample(found)}"
    )
    return [
        plots.spreads(
            names,
            [rung.quantiles for rung in held],
            y,
            "Similarity by rung of relevance",
            "rung, 1 is most relevant",
            note,
        )
    ]


def _hubs(found: Diagnostics) -> plots.Figure:
    starts = [0, 1, 5, 10, 20, 50, 100, 200, 500]
    names = ["0", "1-4", "5-9", "10-19", "20-49", "50-99", "100-199", "200-499", "500+"]
    shares = {}
    for way, lists in found.lists.items():
        counts, _ = np.histogram(lists.occurrences, bins=[*starts, np.inf])
        shares[f"{WAYS[way]}, skewness {lists.hubness:.2f}"] = (100 * counts / len(lists.occurrences)).tolist()
    used = max(np.flatnonzero(np.array(list(shares.values())).max(axis=0) > 0)) + 1
    y = plots.Axis("percent of candidates", 0, max(max(one) for one in shares.values()))
    kept = {name: values[:used] for name, values in shares.items()}
    means = " and ".join(f"{lists.occurrences.mean():.3g} ({WAYS[way]})" for way, lists in found.lists.items())
    note = (
        f"Among how many queries' first ten a candidate stands; on average {means}. Skewness of these counts is near 0"
        " where all candidates are found about equally often, and large where a few of them (hubs) are found by many"
        " queries (Radovanovic et al. 2010, k = 10)."
    )
    return plots.bars(kept, names[:used], y, "Hubness: in how many top tens a candidate stands", "top tens", note)


def _by_length(found: Diagnostics) -> plots.Figure:
    lists = found.lists["t2i"]
    ranks = lists.best_rank
    lengths = np.array([len(text) for text in found.data.captions])
    edges = np.unique(np.quantile(lengths, [0, 0.2, 0.4, 0.6, 0.8, 1], method="nearest"))
    shares: dict[int, list[float]] = {k: [] for k in (1, 10) if min(k, len(lists.occurrences)) <= lists.depth}
    names, counts = [], []
    for number, low in enumerate(edges[:-1] if len(edges) > 1 else edges):
        last = number >= len(edges) - 2
        high = edges[-1] if last else edges[number + 1] - 1
        some = ranks[(lengths >= low) & (lengths <= high) & ~np.isnan(ranks)]
        names.append(f"{low}-{high}" if low < high else f"{low}")
        counts.append(len(some))
        for k, values in shares.items():
            values.append(float(100 * (some <= k).mean()) if len(some) else 0.0)
    y = plots.Axis("percent of caption queries", 0, 100)
    named = {f"R@{k}": values for k, values in shares.items()}
    title = f"{' and '.join(named)} by caption length"
    note = (
        "Caption queries by the number of letters, blanks included, in groups of about equal size:"
        f" {min(counts):,} to {max(counts):,} captions each."
    )
    return plots.bars(named, names, y, title, "characters", note)


def _sample(found: Diagnostics) -> str:
    """How many pairs the rungs are made of, and which."""
    pairs, images = sum(rung.pairs for rung in found.rungs), len(found.data)
    whole = images * len(found.data.captions)
    if pairs == whole:
        return f"All {whole:,} pairs of an image and a caption."
    if found.sampled == images:
        return f"Those {pairs:,} of {whole:,} pairs of an image and a caption that have a degree."
    known = "" if pairs == found.sampled * len(found.data.captions) else " that have a degree"
    return (
        f"A sample: {pairs:,} of {whole:,} pairs of an image and a caption, those{known} of {found.sampled:,} of"
        f" {images:,} images, which are taken at even steps through the data and not drawn."
    )


def _rungs(found: Diagnostics) -> str:
    rows = []
    for number, (rung, bounds) in enumerate(zip(found.rungs, _bounds(found.thresholds), strict=True)):
        numbers = ["-", "-", "-"]
        if rung.pairs:
            numbers = [f"{rung.quantiles[2]:.4f}", f"{rung.percentile:.1f}", f"{rung.found:.1f}"]
        rows.append([str(number + 1), bounds, f"{rung.pairs:,}", *numbers])
    head = ["rung", "degree", "pairs", "median similarity", "mean place, 0 first to 100 last", "in the first ten, %"]
    note = (
        "Where captions of each rung land in the rankings of image queries. Rungs are ranges of the degree of"
        " relevance. Mean place: 0 is the first of the ranking, 100 the last, and a random order has 50. In the first"
        f" ten: the percentage of the rung's pairs whose caption is among the first ten of its image. {_sample(found)}"
    )
    return section("By rung", table(head, rows, "By rung"), note)


def _bounds(thresholds: Sequence[float]) -> list[str]:
    if not thresholds:
        return ["all"]
    between = [f"{low:.4g} to below {high:.4g}" for high, low in pairwise(thresholds)]
    return [f"{thresholds[0]:.4g} and above", *between, f"below {thresholds[-1]:.4g}"]


def _two_models(page: _Page, other: Diagnostics, names: tuple[str, str]) -> str:
    """Section after the figure of Zhou et al. 2020: first candidates of two models for the same query, by rung."""
    ways: list[Direction] = [way for way in page.found.lists if way in other.lists]
    blocks = []
    for way in ways[-1:]:
        mine, theirs = page.found.lists[way], other.lists[way]
        if mine.candidates.shape[0] != theirs.candidates.shape[0]:
            raise UserError(
                f"the models to compare rank {len(mine.candidates)} and {len(theirs.candidates)} queries; give the"
                " same data to both"
            )
        chosen = _most_different(mine, theirs)
        for query in chosen:
            rows = "".join(
                f"<p class=model>{escape(name)}</p><ol class=strip>{page.strip(lists, query)}</ol>"
                for name, lists in zip(names, (mine, theirs), strict=True)
            )
            blocks.append(f"<div class=pair>{page.query_head(way, query)}{rows}</div>")
    note = (
        f"The first {mine.candidates.shape[1]} of both, best first, for the queries where they differ most. A square is"
        " a candidate; its colour is the degree of relevance."
    )
    content = "".join(blocks)
    return section("Two models side by side", page.legend(content) + content, note)


def _most_different(mine: TopCandidates, theirs: TopCandidates) -> list[int]:
    if mine.degrees is None or theirs.degrees is None:
        with np.errstate(invalid="ignore"):  # neither list names a right candidate
            gain = np.abs(np.log(mine.best_rank) - np.log(theirs.best_rank))
    else:
        discount = 1 / np.log2(np.arange(mine.degrees.shape[1]) + 2)
        gain = np.abs(np.nan_to_num(mine.degrees) @ discount - np.nan_to_num(theirs.degrees) @ discount)
    return [int(query) for query in np.argsort(-np.nan_to_num(gain), kind="stable")[:_SHOWN]]


class _Page:
    """Writer of queries and candidates as HTML; each picture is encoded once."""

    def __init__(self, found: Diagnostics, has_texts: bool) -> None:
        self.found = found
        self.data: ImageCaptions = found.data
        self.has_texts = has_texts
        self.thumbnail = cache(_thumbnail)

    def queries(self, false_negatives: Sequence[FalseNegative]) -> list[str]:
        counts: dict[Direction, dict[int, int]] = {}
        for one in false_negatives:
            own = counts.setdefault(one.direction, {})
            own[one.query] = own.get(one.query, 0) + 1
        best, worst, disputed = [], [], []
        for way, lists in self.found.lists.items():
            known = np.flatnonzero(~np.isnan(lists.best_rank))
            margin = np.nan_to_num(lists.margin[known])
            order = known[np.lexsort((-margin, lists.best_rank[known]))]
            best += [self._card(lists, int(query)) for query in order[:_SHOWN]]
            worst += [self._card(lists, int(query)) for query in order[::-1][:_SHOWN]]
            most = sorted(counts.get(way, {}).items(), key=lambda pair: -pair[1])[:_SHOWN]
            disputed += [self._card(lists, query) for query, _ in most]
        leads = any(np.isfinite(lists.margin).any() for lists in self.found.lists.values())
        order_of_best = ", by the largest lead over the best wrong one" if leads else ""
        shown = [
            ("Best queries", best, f"A right candidate first{order_of_best}."),
            ("Worst queries", worst, "The best right candidate stands furthest down."),
        ]
        note = "Most of the first ten are called wrong by the annotation and right by the relevance source."
        if disputed:
            shown.append(("Most disputed queries", disputed, note))
        return [section(title, self._cards(cards), note) for title, cards, note in shown]

    def _cards(self, cards: Sequence[str]) -> str:
        content = "".join(cards)
        return f"{self.legend(content)}<div class=cards>{content}</div>"

    def _card(self, lists: TopCandidates, query: int) -> str:
        rank = lists.best_rank[query]
        shown = min(_RESULTS, lists.candidates.shape[1], lists.lengths[query])
        answers = "".join(self._answer(lists, query, place) for place in range(shown))
        said = f"best right candidate at rank {rank:.0f}"
        if np.isnan(rank):
            said = "no right candidate"
        elif np.isinf(rank):
            said = f"no right candidate among the {lists.lengths[query]} that are listed"
        return f"<article>{self.query_head(lists.direction, query)}<p class=note>{said}</p><ol>{answers}</ol></article>"

    def _answer(self, lists: TopCandidates, query: int, place: int) -> str:
        candidate = int(lists.candidates[query, place])
        right = "<b class=right>right</b> " if lists.annotated[query, place] else ""
        degree = ""
        if lists.degrees is not None:
            value = lists.degrees[query, place]
            shown = "not judged" if np.isnan(value) else f"degree {value:.3g}"
            degree = f'<span class="rung {self._rung(value)}">{shown}</span> '
        shown = self._item(lists.direction, candidate)
        return f"<li>{shown}<small>{right}{degree}{_similarity(lists.scores[query, place])}</small></li>"

    def strip(self, lists: TopCandidates, query: int) -> str:
        """List cells of the first candidates of a query, each marked by its rung."""
        cells = []
        for place, candidate in enumerate(lists.candidates[query, : lists.lengths[query]].tolist()):
            value = float("nan") if lists.degrees is None else float(lists.degrees[query, place])
            marks = f"{self._rung(value)}{' annotated' if lists.annotated[query, place] else ''}"
            name = self.data.image_ids[candidate] if lists.direction == "t2i" else self.data.captions[candidate]
            title = escape(f"{place + 1}. {name}" + ("" if np.isnan(value) else f", degree {value:.3g}"))
            picture = self.picture(candidate) if lists.direction == "t2i" else ""
            cells.append(f'<li class="{marks}" title="{title}">{picture or f"<span>{place + 1}</span>"}</li>')
        return "".join(cells)

    def legend(self, content: str) -> str:
        """Legend of the colours, frames and letters that some HTML of cards or strips has."""
        cuts = self.found.thresholds
        keys = [
            f'<i class="key rung {self._colour(number)}"></i>degree {bounds}'
            for number, bounds in enumerate(_bounds(cuts) if cuts else ())
            if f"{self._colour(number)}" in content
        ]
        if "r-none" in content:
            graded = any(lists.degrees is not None for lists in self.found.lists.values())
            said = "not judged" if cuts else "degrees are not cut into rungs" if graded else "no degrees were given"
            keys.append(f'<i class="key none r-none"></i>{said}')
        if " annotated" in content:
            keys.append("<i class='key annotated'></i>framed: right, by what was counted as right")
        if "class=right" in content:
            keys.append("<b class=right>right</b>: by what was counted as right")
        if "S " in content and "</small>" in content:
            keys.append("S: similarity of query and candidate, by the model")
        return f"<p class=legend>{''.join(f'<span>{key}</span>' for key in keys)}</p>" if keys else ""

    def _rung(self, degree: float) -> str:
        if np.isnan(degree) or not self.found.thresholds:
            return "r-none"
        return self._colour(sum(degree < cut for cut in self.found.thresholds))

    def _colour(self, rung: int) -> str:
        """Class of a rung's colour. The last rung is always grey; rungs beyond the colours share the one before it."""
        last = len(RUNG_COLOURS) - 1
        return f"r{last if rung == len(self.found.thresholds) else min(rung, last - 1)}"

    def query_head(self, way: Direction, query: int) -> str:
        """Head of a query with its annotated counterpart."""
        if way == "i2t":
            own = np.flatnonzero(self.data.image_of_caption == query)[:2].tolist()
            texts = "".join(f"<p>{escape(self.data.captions[caption])}</p>" for caption in own if self.has_texts)
            name = escape(self.data.image_ids[query])
            return f"<div class=query>{self.picture(query)}<div><h3>{name}</h3>{texts}</div></div>"
        image = int(self.data.image_of_caption[query])
        return (
            f"<div class=query>{self.picture(image)}<div><h3>“{escape(self.data.captions[query])}”</h3>"
            f"<p>written for {escape(self.data.image_ids[image])}</p></div></div>"
        )

    def _item(self, way: Direction, candidate: int) -> str:
        if way == "i2t":
            return f"<span>{escape(self.data.captions[candidate])}</span>"
        return self.picture(candidate) or f"<span>{escape(self.data.image_ids[candidate])}</span>"

    def picture(self, image: int) -> str:
        """HTML of an image of the gallery; empty where it has no file."""
        if not self.data.paths:
            return ""
        return self.thumbnail(self.data.paths[image], self.data.image_ids[image])

    def false_negatives(self, found: Sequence[FalseNegative]) -> str:
        counts = {way: sum(one.direction == way for one in found) for way in WAYS}
        note = (
            f"Among the first ten candidates, {counts['i2t']:,} captions of image queries and {counts['t2i']:,} images"
            " of caption queries are called wrong by the annotation and right by the relevance source."
        )
        cards = []
        for one in [one for way in WAYS for one in [n for n in found if n.direction == way][:_FALSE_NEGATIVES]]:
            image, caption = (one.query, one.candidate) if one.direction == "i2t" else (one.candidate, one.query)
            cards.append(
                f"<article class=pair-card>{self.picture(image)}<div><p>{escape(self.data.captions[caption])}</p>"
                f"<p class=note>{escape(self.data.image_ids[image])}, {WAYS[one.direction]}, rank {one.rank}</p>"
                f"<small>degree {one.degree:.3g} (needed {one.needed:.3g}) {_similarity(one.similarity)}</small>"
                "</div></article>"
            )
        note += (
            f" Shown are up to {_FALSE_NEGATIVES} of each direction. Needed: the degree from which a candidate of this"
            " query counts as right by the relevance source. S: similarity of picture and caption, by the model."
            f" {_scope(self.found)}"
        )
        return section("False negatives of the annotation", f"<div class=cards>{''.join(cards)}</div>", note.rstrip())


def _similarity(score: float) -> str:
    """Text of a similarity; empty where rankings came as lists."""
    return "" if np.isnan(score) else f"S {score:.3f}"


def _thumbnail(path: Picture, name: str) -> str:
    from rungwise.data.pictures import thumbnail

    try:
        return embedded_jpeg(thumbnail(path, _SIDE), name)
    except UserError as error:
        return f"<span class=missing>{escape(str(error))}</span>"
