"""Draws docs/images/measure-*.svg: what each measure reads of a small example, and the value that it gives.

All values are computed by ``rungwise.metrics``. Run it after a change to a measure: python docs/figures/measures.py
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np

from rungwise.metrics import (
    AP11,
    CS,
    ECE,
    MAP,
    MRR,
    NCS,
    NDCG,
    SR,
    Brier,
    CutF1,
    CutPrecision,
    CutRecall,
    JudgedAP,
    JudgedNDCG,
    JudgedQueries,
    Kendall,
    MAPAtR,
    MeanDegree,
    MeanR,
    Measure,
    MedR,
    NoneAUROC,
    P,
    R,
    Rankings,
    Recall,
    RPrecision,
    Spearman,
    rank_all,
)

FOLDER = Path(__file__).parents[1] / "images"
WIDTH = 640

RIGHT = ((0, 2), (1, 4), (4, 6), (0, 1))
"""Places of the right answers of four queries, from 0."""
MORE_RIGHT = ((0, 1, 2), (0, 1, 4), (2, 4, 6), (0, 1, 3))
"""The same rankings, after people have looked for further right answers."""
PLACES = 8

GRADES = (5.0, 2.0, 4.5, 0.0, 3.0, 3.5, 1.0)
"""What people may say of seven captions of one picture, from 0 to 5, in the order in which a model ranks them."""
DEGREES = tuple(grade / 5 for grade in GRADES)
SIMILARITIES = (0.62, 0.55, 0.51, 0.44, 0.40, 0.35, 0.30)
EXPECTED = (0.95, 0.85, 0.75, 0.35, 0.55, 0.45, 0.15)
"""Degrees that a method expects of the same seven captions."""
NOBODY_ASKED = (1, 4)
"""Places, from 0, of the captions that nobody is asked about where some are judged alone."""
SHOWN = 3
RELEVANT_FROM = 0.5

BELIEFS = (0.95, 0.8, 0.7, 0.4, 0.6, 0.2, 0.1)
ANSWERABLE = (True, True, True, True, False, False, False)
"""Seven queries: how sure a method is that something is relevant, and whether something is."""

INK, PALE, BLUE, GREEN, ORANGE = "#1f2933", "#5f6b78", "#2b6cb0", "#3a8f63", "#c05621"
READ = "#fdf0d0"
"""Background of what a measure reads."""


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 13, fill: str = INK) -> str:
    """A line of text."""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">'
        f"{escape(words, quote=False)}</text>"
    )


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> str:
    """A filled rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{fill}" stroke="{stroke}"/>'


def line(first: tuple[float, float], second: tuple[float, float], stroke: str = PALE, style: str = "") -> str:
    """A straight line; ``style`` is further attributes."""
    ends = f'x1="{first[0]:g}" y1="{first[1]:g}" x2="{second[0]:g}" y2="{second[1]:g}"'
    return f'<line {ends} stroke="{stroke}" {style}/>'


def dot(x: float, y: float, fill: str) -> str:
    """A round mark."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="6" fill="{fill}" stroke="#ffffff"/>'


def sheet(title: str, height: int, parts: list[str]) -> str:
    """A whole figure on white, so that it can be read on a light and on a dark page."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
        f"<title>{escape(title, quote=False)}</title>"
    )
    return "\n".join([head, box(0, 0, WIDTH, height, "#ffffff"), *parts, "</svg>"]) + "\n"


def number(value: float) -> str:
    """A value as tables print it: percentages with one digit, others with three."""
    return f"{value:.1f}" if abs(value) > 1 else f"{value:.3f}".rstrip("0").rstrip(".")


def judged_by_places(right: tuple[tuple[int, ...], ...]) -> Rankings:
    """Rankings in which the candidate at place p has position p."""
    return rank_all([[float(PLACES - place) for place in range(PLACES)]] * len(right), [list(one) for one in right])


def graded() -> Rankings:
    """The ranking of seven captions with degrees, and with a cut after the first three."""
    said = JudgedQueries(np.array([SHOWN]), np.array([0.9]), degrees=np.array([EXPECTED]))
    return rank_all([list(SIMILARITIES)], [[0]], relevance=[list(DEGREES)], judged=said)


def grid(
    measure: Measure,
    read: Callable[[tuple[int, ...]], int],
    right: tuple[tuple[int, ...], ...] = RIGHT,
) -> str:
    """Four queries, a row each; the places that the measure reads have a coloured background."""
    rankings = judged_by_places(right)
    values = measure.per_query(rankings)
    parts = [text(150, 24, "rank", "end", 12, PALE)]
    parts += [text(180 + 40 * place, 24, str(place + 1), "middle", 12, PALE) for place in range(PLACES)]
    parts.append(text(610, 24, str(measure), "end"))
    for row, places in enumerate(right):
        top = 36 + 40 * row
        parts.append(text(150, top + 21, f"query {row + 1}", "end"))
        if read(places):
            parts.append(box(160, top - 3, 40 * read(places), 38, READ, "#d9a441"))
        for place in range(PLACES):
            fill = BLUE if place in places else "#dde3e9"
            parts.append(box(166 + 40 * place, top + 2, 28, 28, fill))
        mine = values[row] if values.ndim == 1 else values[row].mean()
        parts.append(text(610, top + 21, number(float(mine)), "end"))
    parts.append(text(160, 216, "blue: right answer", size=12, fill=PALE))
    parts.append(text(610, 216, f"all queries: {number(float(measure.aggregate(values)))}", "end"))
    return sheet(f"{measure}: four queries, their right answers by rank, and the value of each", 230, parts)


def bars(measure: Measure, k: int, note: str, cut: bool = False) -> str:
    """One query: the degree at each rank, the best order behind it, and the places that the measure reads."""
    rankings = graded()
    value = float(measure.aggregate(measure.per_query(rankings)))
    base, tall = 176, 130
    parts = [box(56, 34, 64 * k, 168, READ, "#d9a441"), text(40, base, "0", "end", 12, PALE)]
    parts += [text(40, base - tall + 4, "1", "end", 12, PALE), line((48, base), (508, base))]
    for place, (degree, best) in enumerate(zip(DEGREES, sorted(DEGREES, reverse=True), strict=True)):
        left = 64 + 64 * place
        if not cut:
            parts.append(
                f'<rect x="{left + 4}" y="{base - tall * best:g}" width="40" height="{tall * best:g}" fill="none" '
                f'stroke="{PALE}" stroke-dasharray="4 3"/>'
            )
        fill = GREEN if not cut or degree >= RELEVANT_FROM else "#c3ccd4"
        parts.append(box(left + 10, base - tall * degree, 28, tall * degree, fill))
        parts.append(text(left + 24, base + 18, str(place + 1), "middle", 12, PALE))
    if cut:
        level = base - tall * RELEVANT_FROM
        parts.append(line((48, level), (508, level), ORANGE, 'stroke-dasharray="6 4"'))
        parts.append(text(512, level + 4, f"relevant from {RELEVANT_FROM}", size=12, fill=ORANGE))
        parts.append(line((56 + 64 * k, 26), (56 + 64 * k, 206), ORANGE, 'stroke-width="3"'))
    parts.append(text(56, 22, "degree by rank", size=12, fill=PALE))
    parts.append(text(620, 22, f"{measure} = {number(value)}", "end"))
    parts.append(text(56, 222, note, size=12, fill=PALE))
    return sheet(f"{measure}: the degrees of seven captions by rank, and the value", 234, parts)


def judged_alone(measure: Measure, note: str) -> str:
    """One query of which some captions were not judged: the degrees of the others by rank, and the value."""
    degrees = [float("nan") if place in NOBODY_ASKED else degree for place, degree in enumerate(DEGREES)]
    value = float(measure.aggregate(measure.per_query(rank_all([list(SIMILARITIES)], [[0]], relevance=[degrees]))))
    base, tall = 176, 130
    parts = [text(40, base, "0", "end", 12, PALE), text(40, base - tall + 4, "1", "end", 12, PALE)]
    parts.append(line((48, base), (508, base)))
    for place, degree in enumerate(DEGREES):
        left = 64 + 64 * place
        if place in NOBODY_ASKED:
            parts.append(text(left + 24, base - 12, "?", "middle", 24, PALE))
        else:
            parts.append(box(left - 2, 34, 52, 168, READ, "#d9a441"))
            parts.append(box(left + 10, base - tall * degree, 28, tall * degree, GREEN))
        parts.append(text(left + 24, base + 18, str(place + 1), "middle", 12, PALE))
    parts.append(text(56, 22, "degree by rank; ?: nobody judged it", size=12, fill=PALE))
    parts.append(text(620, 22, f"{measure} = {number(value)}", "end"))
    parts.append(text(56, 222, note, size=12, fill=PALE))
    return sheet(f"{measure}: the degrees of five captions that were judged, by rank, and the value", 234, parts)


def slopes(measure: Measure, k: int, note: str) -> str:
    """One query: the order of the model beside the order by degree; lines that cross are pairs in the wrong order."""
    value = float(measure.aggregate(measure.per_query(graded())))
    wanted = sorted(range(k), key=lambda place: -DEGREES[place])
    parts = [
        text(150, 24, "order of the model", "middle", 12, PALE),
        text(420, 24, "order by degree", "middle", 12, PALE),
    ]
    for place in range(k):
        other = wanted.index(place)
        ends = (178, 44 + 26 * place), (392, 44 + 26 * other)
        parts.append(line(*ends, BLUE, 'stroke-width="2"'))
        parts.append(text(166, 48 + 26 * place, f"rank {place + 1}, S = {SIMILARITIES[place]:.2f}", "end", 12))
        parts.append(text(404, 48 + 26 * other, f"R = {DEGREES[place]:.2f}", "start", 12))
    height = 70 + 26 * k
    parts.append(text(620, 48, f"{measure} = {number(value)}", "end"))
    parts.append(text(40, height - 14, note, size=12, fill=PALE))
    return sheet(f"{measure}: two orders of {k} captions, joined by lines", height, parts)


def crossings(k: int) -> int:
    """How many pairs of the first k stand in the wrong order."""
    return sum(DEGREES[i] < DEGREES[j] for i in range(k) for j in range(i + 1, k))


def pairs(k: int) -> str:
    """The sentence below a figure of two orders."""
    return f"{k * (k - 1) // 2} pairs; lines cross where a pair is in the wrong order: {crossings(k)}"


def beliefs() -> str:
    """NoneAUROC: queries by belief, those with something relevant above those with nothing."""
    measure = NoneAUROC(RELEVANT_FROM)
    said = JudgedQueries(np.zeros(len(BELIEFS), dtype=np.int64), np.array(BELIEFS))
    relevance = [[0.9, 0.2] if one else [0.3, 0.1] for one in ANSWERABLE]
    rankings = rank_all([[0.9, 0.1]] * len(BELIEFS), [[0]] * len(BELIEFS), relevance=relevance, judged=said)
    value = float(measure.aggregate(measure.per_query(rankings)))
    parts = [text(170, 64, "something relevant", "end"), text(170, 114, "nothing relevant", "end")]
    for belief, answerable in zip(BELIEFS, ANSWERABLE, strict=True):
        parts.append(dot(190 + 400 * belief, 60 if answerable else 110, GREEN if answerable else ORANGE))
        parts.append(text(190 + 400 * belief, 46 if answerable else 134, f"{belief:g}", "middle", 12, PALE))
    parts += [line((190, 150), (590, 150)), text(190, 168, "0", "middle", 12, PALE)]
    parts += [text(590, 168, "1", "middle", 12, PALE), text(390, 168, "belief", "middle", 12, PALE)]
    parts.append(text(620, 22, f"{measure} = {number(value)}", "end"))
    yes = [one for one, some in zip(BELIEFS, ANSWERABLE, strict=True) if some]
    no = [one for one, some in zip(BELIEFS, ANSWERABLE, strict=True) if not some]
    right = sum(one > other for one in yes for other in no)
    said_so = f"{right} of {len(yes) * len(no)} pairs of a green and an orange query are in the right order"
    parts.append(text(40, 200, said_so, size=12, fill=PALE))
    return sheet(f"{measure}: seven queries by belief", 214, parts)


def expected(measure: Measure, note: str) -> str:
    """ECE and Brier: the degree that a method expects of each hit, against the true one."""
    value = float(measure.aggregate(measure.per_query(graded())))
    left, base, side = 80, 250, 220
    parts = [
        line((left, base), (left + side, base)),
        line((left, base), (left, base - side)),
        line((left, base), (left + side, base - side), PALE, 'stroke-dasharray="4 3"'),
        text(left + side / 2, base + 34, "expected degree", "middle", 12, PALE),
        text(left - 10, base - side - 8, "true degree", "middle", 12, PALE),
    ]
    for tick in (0.0, 0.5, 1.0):
        parts.append(text(left + side * tick, base + 16, f"{tick:g}", "middle", 12, PALE))
        parts.append(text(left - 8, base - side * tick + 4, f"{tick:g}", "end", 12, PALE))
    for said, true in zip(EXPECTED, DEGREES, strict=True):
        x = left + side * said
        parts.append(line((x, base - side * said), (x, base - side * true), ORANGE, 'stroke-width="2"'))
        parts.append(dot(x, base - side * true, GREEN))
    parts.append(text(340, 60, f"{measure} = {number(value)}"))
    parts += [text(340, 100 + 20 * row, words, size=12, fill=PALE) for row, words in enumerate(note.split("\n"))]
    return sheet(f"{measure}: expected and true degrees of seven hits", 296, parts)


def middle(measure: Measure, note: str) -> str:
    """Measures of the best rank: that of each query on a line."""
    values = measure.per_query(judged_by_places(RIGHT))
    parts = [line((80, 90), (560, 90))]
    parts += [text(80 + 68 * place, 112, str(place + 1), "middle", 12, PALE) for place in range(PLACES)]
    seen: dict[int, int] = {}
    for row, value in enumerate(values):
        above = seen.get(int(value), 0)
        seen[int(value)] = above + 1
        x, y = 80 + 68 * (float(value) - 1), 80 - 16 * above
        parts.append(dot(x, y, BLUE))
        parts.append(text(x + 10, y + 4, f"query {row + 1}", size=12))
    parts.append(text(320, 134, "rank of the best right answer", "middle", 12, PALE))
    parts.append(text(620, 24, f"{measure} = {number(float(measure.aggregate(values)))}", "end"))
    parts.append(text(40, 160, note, size=12, fill=PALE))
    return sheet(f"{measure}: the best rank of four queries", 174, parts)


def rsum() -> str:
    """Six recalls, and their sum."""
    parts, total = [], 0.0
    for row, (name, right) in enumerate((("image to text", RIGHT), ("text to image", RIGHT[1:] + RIGHT[1:2]))):
        rankings = judged_by_places(right)
        parts.append(text(150, 62 + 40 * row, name, "end"))
        for column, k in enumerate((1, 5, 10)):
            value = float(R(k).aggregate(R(k).per_query(rankings)))
            total += value
            parts.append(box(170 + 100 * column, 42 + 40 * row, 80, 30, READ, "#d9a441"))
            parts.append(text(210 + 100 * column, 62 + 40 * row, number(value), "middle"))
    parts += [text(210 + 100 * column, 30, f"R@{k}", "middle", 12, PALE) for column, k in enumerate((1, 5, 10))]
    parts.append(text(610, 82, f"rsum = {number(total)}", "end"))
    parts.append(text(40, 138, "the sum of six recalls; 600 is best", size=12, fill=PALE))
    return sheet("rsum: six recalls and their sum", 152, parts)


def nsum() -> str:
    """Three scores of each direction, and their sum."""
    parts, total = [], 0.0
    for row, name in enumerate(("image to text", "text to image")):
        parts.append(text(150, 62 + 40 * row, name, "end"))
        rankings = graded() if row == 0 else rank_all([list(SIMILARITIES)], [[0]], relevance=[list(DEGREES[::-1])])
        for column, k in enumerate((1, 5, 10)):
            value = float(NCS(k).aggregate(NCS(k).per_query(rankings)))
            total += value
            parts.append(box(170 + 100 * column, 42 + 40 * row, 80, 30, READ, "#d9a441"))
            parts.append(text(210 + 100 * column, 62 + 40 * row, number(value), "middle"))
    parts += [text(210 + 100 * column, 30, f"NCS@{k}", "middle", 12, PALE) for column, k in enumerate((1, 5, 10))]
    parts.append(text(610, 82, f"Nsum = {number(total)}", "end"))
    parts.append(text(40, 138, "the sum of six scores; 600 is best", size=12, fill=PALE))
    return sheet("Nsum: six scores and their sum", 152, parts)


def two_orders() -> str:
    """Why one right caption is not enough: two rankings of the same captions, of the same R@K."""
    parts: list[str] = []
    best = sorted(DEGREES, reverse=True)
    for row, (name, degrees) in enumerate((("model A", [best[0], *best[:0:-1]]), ("model B", best))):
        base = 150 + 170 * row
        rankings = rank_all([list(SIMILARITIES)], [[0]], relevance=[degrees])
        parts.append(text(40, base - 116, name))
        parts.append(line((40, base), (400, base)))
        for place, degree in enumerate(degrees):
            fill = BLUE if place == 0 else GREEN
            parts.append(box(48 + 50 * place, base - 100 * degree, 34, 100 * degree, fill))
            parts.append(text(65 + 50 * place, base + 16, str(place + 1), "middle", 12, PALE))
        for at, measure in enumerate((R(1), MRR(), NDCG(5), MeanDegree(3), CS(7))):
            value = float(measure.aggregate(measure.per_query(rankings)))
            parts.append(text(440, base - 90 + 24 * at, str(measure)))
            parts.append(text(610, base - 90 + 24 * at, number(value), "end"))
    parts.append(text(40, 362, "degree by rank; blue: the caption written for the picture", size=12, fill=PALE))
    return sheet("Two rankings that R@K cannot tell apart", 376, parts)


def first(k: int) -> Callable[[tuple[int, ...]], int]:
    """Reads the first k places of every query."""
    return lambda places: k


def drawn() -> dict[str, str]:
    """All figures as SVG text, by the name of their file."""
    through_last: Callable[[tuple[int, ...]], int] = lambda places: places[-1] + 1  # noqa: E731
    through_first: Callable[[tuple[int, ...]], int] = lambda places: places[0] + 1  # noqa: E731
    as_many: Callable[[tuple[int, ...]], int] = len
    figures = {
        "r": grid(R(3), first(3)),
        "recall": grid(Recall(3), first(3)),
        "medr": middle(MedR(), "floor of the median of the ranks counted from 0, plus 1"),
        "meanr": middle(MeanR(), "mean of the four ranks"),
        "mrr": grid(MRR(), through_first),
        "rsum": rsum(),
        "p": grid(P(3), first(3)),
        "map": grid(MAP(), through_last),
        "map-k": grid(MAP(4), first(4)),
        "map-r": grid(MAPAtR(), as_many),
        "rprecision": grid(RPrecision(), as_many),
        "ap11": grid(AP11(), through_last),
        "ndcg": bars(NDCG(5), 5, "dashed: the best order; each place counts less than the one before"),
        "ncs": bars(NCS(3), 3, "the green area of the first three places, divided by the dashed area there"),
        "nsum": nsum(),
        "meandegree": bars(MeanDegree(3), 3, "the mean height of the first three green bars"),
        "sr": bars(
            SR(3, m=4),
            3,
            "two of the four captions with the largest degrees are in the first three",
        ),
        "cs": slopes(CS(4), 4, pairs(4)),
        "kendall": slopes(Kendall(), len(DEGREES), pairs(len(DEGREES))),
        "spearman": slopes(Spearman(), len(DEGREES), "how far each line is from level, squared"),
        "cutf1": bars(CutF1(RELEVANT_FROM), SHOWN, "three shown, two of them relevant; four are relevant in all", True),
        "cutprecision": bars(CutPrecision(RELEVANT_FROM), SHOWN, "two of the three that are shown are relevant", True),
        "cutrecall": bars(CutRecall(RELEVANT_FROM), SHOWN, "two of the four relevant ones are shown", True),
        "noneauroc": beliefs(),
        "ece": expected(
            ECE(),
            "orange: expected minus true degree;\nadded up in each of ten bins of\nexpected degrees; sizes averaged",
        ),
        "brier": expected(Brier(), "orange: expected minus true degree;\nsquared, then averaged"),
        "judgedndcg": judged_alone(JudgedNDCG(5), "nDCG of the five that were judged, as if the others were not there"),
        "judgedap": judged_alone(
            JudgedAP(RELEVANT_FROM), f"of the five, those with a degree of {RELEVANT_FROM} are right"
        ),
        "judged": grid(MAPAtR(), as_many, MORE_RIGHT),
        "two-orders": two_orders(),
    }
    return {f"measure-{name}.svg": figure for name, figure in figures.items()}


def main() -> None:
    """Draw them all."""
    for name, figure in drawn().items():
        (FOLDER / name).write_text(figure, encoding="utf-8")


if __name__ == "__main__":
    main()
