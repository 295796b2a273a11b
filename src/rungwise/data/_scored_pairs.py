r"""Pairs of texts that people scored: STS-Benchmark's files, or a table with two columns of texts and one of scores.

STS-Benchmark's lines have no header: genre, file, year, id, score, and the two sentences, separated by tabs, at times
with licences behind them. Quotation marks are ordinary characters. Both kinds are recognised by content: what names its
columns in its first line is a table, however many columns and numbers it has, such as the ``train.tsv`` of GLUE.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_json, require_there, unreadable, user_path
from rungwise.core.output import short_repr
from rungwise.data._collection import NO_SPLIT, Issue
from rungwise.data.files import read_lines
from rungwise.data.layouts import Table, clean_caption, folder_name, read_table, split_in_file_name, split_name

TRAIN, DEV, TEST = "train", "val", "test"
"""Names of the splits here, whatever the data call them."""

TEXT_COLUMNS = (
    ("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("text1", "text2"), ("text_1", "text_2"),
    ("caption1", "caption2"), ("caption_1", "caption_2"), ("first", "second"), ("texta", "textb"),
    ("sentence_a", "sentence_b"), ("text_a", "text_b"),
)  # fmt: skip
"""Names of the two columns of texts; the first pair that is present counts."""

SCORE_COLUMNS = ("score", "grade", "agg_score", "rating", "similarity", "relatedness_score", "label")
"""Names of the column of scores; the first present one counts."""

_SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet")
_STS_SCORE, _STS_TEXTS = 4, (5, 6)
_LOOKED_AT = 20
"""Number of lines by which STS-Benchmark's layout is recognised."""


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of texts with a score each.

    Attributes:
        first: (pairs,) texts.
        second: (pairs,) texts.
        scores: (pairs,) float64, on the scale of the data.
        splits: (pairs,) ``"train"``, ``"val"``, ``"test"`` or any other name in the data.
        name: Name of the pairs in tables and results.
        layout: ``"stsbenchmark"`` or ``"table"``.
        issues: Rows that were skipped or doubted.

    >>> pairs = ScoredPairs(("a dog", "a cat"), ("a pup", "a car"), np.array([4.0, 0.5]), ("train", "val"))
    >>> len(pairs), pairs.split("val").second
    (2, ('a car',))
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: NDArray[np.float64]
    splits: tuple[str, ...]
    name: str = "pairs"
    layout: str = "table"
    issues: tuple[Issue, ...] = field(default=(), repr=False)

    __repr__ = short_repr

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.first)

    def split(self, name: str) -> ScoredPairs:
        """The pairs of one split, in their order."""
        return self.select([place for place, split in enumerate(self.splits) if split == name])

    def select(self, places: Sequence[int] | NDArray[np.int64]) -> ScoredPairs:
        """The pairs at these positions."""
        chosen = np.asarray(places, np.int64)
        first, second, splits = (
            tuple(values[place] for place in chosen.tolist()) for values in (self.first, self.second, self.splits)
        )
        return replace(self, first=first, second=second, splits=splits, scores=self.scores[chosen])

    def content_hash(self) -> str:
        """Hash of the texts, the scores and the splits."""
        return digest_of_json([self.first, self.second, self.scores.tolist(), self.splits])


def read_scored_pairs(path: Path | str) -> ScoredPairs:
    r"""Read pairs that people scored.

    Args:
        path: A file, or a folder of files whose names tell their splits, such as ``sts-train.csv``, ``sts-dev.csv`` and
            ``sts-test.csv``.

    Returns:
        The pairs of all splits; without splits all are in :data:`rungwise.data.NO_SPLIT`. Rows that lack a
        text or have no number as their score are left out, and listed in ``issues``.

    Raises:
        UserError: If there is no such file, it cannot be read, columns are missing, or no row can be used.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "pairs.csv").write_text("caption1,caption2,rating\na dog,a pup,4\na dog,,1\n")
    >>> pairs = read_scored_pairs(folder / "pairs.csv")
    >>> pairs.first, pairs.scores.tolist(), pairs.issues[0].detail
    (('a dog',), [4.0], 'a text is missing')
    """
    path = user_path(path)
    require_there(path)
    files = _files(path)
    of_file = [split_in_file_name(file) if path.is_dir() else None for file in files]
    gathered = _Gathered()
    layouts = set()
    for file, split in zip(files, of_file, strict=True):
        if _is_stsbenchmark(file):
            layouts.add("stsbenchmark")
            gathered.rows(file, _sts_rows(file), split)
        else:
            layouts.add("table")
            gathered.rows(file, _table_rows(read_table(file, by_lines=True)), split)
    pairs = gathered.pairs(folder_name(path) if path.is_dir() else path.stem, "/".join(sorted(layouts)))
    if not len(pairs):
        skipped = f"{len(pairs.issues)} skipped"
        if pairs.issues:
            skipped += f", the first one in {pairs.issues[0].where}: {pairs.issues[0].detail}"
        raise UserError(f"{path}: no row has two texts and a number ({skipped}); {_REMEDY}")
    return pairs


_REMEDY = "give two columns of texts and one of scores"


def score_range(pairs: ScoredPairs) -> tuple[float, float]:
    """The lowest and the highest score of the training pairs; a UserError if all are equal."""
    scores = pairs.split(TRAIN).scores
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        raise UserError(f"{pairs.name}: every training pair has the score {low:g}; give pairs with different scores")
    return low, high


def within(pairs: ScoredPairs, low: float, high: float) -> ScoredPairs:
    """The pairs whose scores lie in ``low``..``high``; the others become issues.

    >>> pairs = ScoredPairs(("a", "b"), ("c", "d"), np.array([1.0, 9.0]), ("train", "test"))
    >>> [(issue.where, issue.detail) for issue in within(pairs, 0, 5).issues]
    [("test: 'b' and 'd'", 'score 9 lies outside of 0..5')]
    """
    fits = (pairs.scores >= low) & (pairs.scores <= high)
    issues = [
        Issue(
            "row skipped",
            f"{pairs.splits[place]}: {pairs.first[place]!r} and {pairs.second[place]!r}",
            f"score {pairs.scores[place]:g} lies outside of {low:g}..{high:g}",
        )
        for place in np.flatnonzero(~fits).tolist()
    ]
    return replace(pairs.select(np.flatnonzero(fits)), issues=(*pairs.issues, *issues))


def with_drawn_splits(pairs: ScoredPairs, *, seed: int = 0) -> ScoredPairs:
    """Give splits to pairs without any, or draw ``"val"`` from the training pairs where it is missing.

    A tenth of the pairs is ``"val"``, and another ``"test"`` where there are no splits at all and a tenth are at least
    three. Pairs that share a text stay on one side, and so do those that hang together by other pairs.

    Args:
        pairs: Pairs of texts; those that have ``"train"`` and ``"val"`` stay as they are.
        seed: Seed of the draw.

    Raises:
        UserError: If there are splits and none is ``"train"``, or too many pairs hang together by their texts.

    >>> texts = [str(number) for number in range(40)]
    >>> drawn = with_drawn_splits(ScoredPairs(tuple(texts), tuple(texts), np.arange(40.0), ("none",) * 40))
    >>> sorted(Counter(drawn.splits).items())
    [('test', 4), ('train', 32), ('val', 4)]
    """
    count = Counter(pairs.splits)
    whole = set(count) == {NO_SPLIT}
    if not (whole or count[TRAIN]):
        raise UserError(
            f"{pairs.name}: no pair is in split 'train'; there are {', '.join(sorted(count))}; name one of them so"
        )
    if count[TRAIN] and count[DEV]:
        return pairs
    drawn_from = np.flatnonzero([split == (NO_SPLIT if whole else TRAIN) for split in pairs.splits])
    tenth = round(0.1 * len(drawn_from))
    wanted = {TEST: tenth if whole and tenth >= _FEWEST else 0, DEV: max(_FEWEST, tenth)}
    group = _hanging_together(pairs.select(drawn_from))
    groups = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    splits = np.array(pairs.splits, dtype=object)
    taken: Counter[str] = Counter()
    for one in np.random.default_rng(seed).permutation(len(groups)).tolist():
        split = next((name for name in wanted if taken[name] + len(groups[one]) <= wanted[name]), TRAIN)
        taken[split] += len(groups[one])
        splits[drawn_from[groups[one]]] = split
    if taken[DEV] < _FEWEST or taken[TRAIN] < _FEWEST:
        raise UserError(
            f"{pairs.name}: of {len(drawn_from)} pairs too many share texts or there are too few of them to draw some"
            " that choose the epoch; give a column 'split' with train, dev and test"
        )
    return replace(pairs, splits=tuple(splits.tolist()))


_FEWEST = 3
"""Fewest pairs of a split; from fewer a correlation means nothing."""


def sharing_texts(pairs: ScoredPairs, split: str) -> int:
    """Number of pairs of a split that have a text in common with a training pair."""
    train, other = pairs.split(TRAIN), pairs.split(split)
    seen = {*train.first, *train.second}
    return sum(one in seen or two in seen for one, two in zip(other.first, other.second, strict=True))


def _hanging_together(pairs: ScoredPairs) -> NDArray[np.int64]:
    """(pairs,) number of the group of each pair; pairs are in one group if texts link them, directly or not."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number = {text: place for place, text in enumerate(dict.fromkeys((*pairs.first, *pairs.second)))}
    first, second = (np.array([number[text] for text in texts]) for texts in (pairs.first, pairs.second))
    edges = coo_array((np.ones(len(pairs), np.int8), (first, second)), shape=(len(number), len(number)))
    _, group = connected_components(edges, directed=False)
    found: NDArray[np.int64] = np.unique(group[first], return_inverse=True)[1]
    return found


class _Gathered:
    """Collects rows of several files."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, float, str]] = []
        self._issues: list[Issue] = []

    def rows(self, file: Path, rows: Iterator[tuple[str, Sequence[str] | str]], split_of_file: str | None) -> None:
        for place, cells in rows:
            where = f"{file}, {place}"
            if isinstance(cells, str):
                self._issues.append(Issue("row skipped", where, cells))
                continue
            written, one, two, split = cells
            first, second = clean_caption(one), clean_caption(two)
            try:
                score = float(written)
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                self._issues.append(Issue("row skipped", where, f"the score {written.strip()[:40]!r} is no number"))
            elif not (first[0] and second[0]):
                self._issues.append(Issue("row skipped", where, first[1] or second[1] or "a text is missing"))
            else:
                if first[1] or second[1]:
                    self._issues.append(Issue("text changed", where, first[1] or second[1]))
                self._rows.append((first[0], second[0], score, split_of_file or split_name(split.strip())))

    def pairs(self, name: str, layout: str) -> ScoredPairs:
        first, second, scores, splits = zip(*self._rows, strict=True) if self._rows else ((), (), (), ())
        return ScoredPairs(first, second, np.array(scores, np.float64), splits, name, layout, tuple(self._issues))


def _files(path: Path) -> list[Path]:
    """The file itself, or the files of a folder whose names tell different splits."""
    if not path.is_dir():
        return [path]
    try:
        there = sorted(one for one in path.iterdir() if one.is_file() and one.suffix.lower() in _SUFFIXES)
    except OSError as error:
        raise unreadable(path, error) from error
    named = [one for one in there if split_in_file_name(one) is not None]
    if not named:
        raise UserError(
            f"{path}: holds no file of scored pairs whose name speaks of a split, such as sts-train.csv; give such"
            " files, or one file"
        )
    twice = [name for name, count in Counter(map(split_in_file_name, named)).items() if count > 1]
    if twice:
        both = ", ".join(one.name for one in named if split_in_file_name(one) == twice[0])
        raise UserError(f"{path}: {both} are of one split; leave one of them, or give a single file")
    return named


def _is_stsbenchmark(path: Path) -> bool:
    """Whether the first lines name no columns, have seven cells or more, and a number in the fifth."""
    if path.suffix.lower() in (".parquet", ".jsonl", ".ndjson"):
        return False
    found = 0
    for number, (_, line) in enumerate(read_lines(path)):
        cells = line.split("\t")
        if number == _LOOKED_AT:
            break
        if number == 0 and all(_columns(Table(path, tuple(cells), []))):
            return False
        numeric = len(cells) > max(_STS_TEXTS) and _is_number(cells[_STS_SCORE])
        if number == 0 and not numeric and len(cells) <= max(_STS_TEXTS):
            return False
        found += numeric
    return 2 * found > min(number + 1, _LOOKED_AT)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sts_rows(path: Path) -> Iterator[tuple[str, Sequence[str] | str]]:
    """Place, then score and texts without a split of each line, or the reason to skip it."""
    for number, line in read_lines(path):
        cells = line.split("\t")
        if len(cells) <= max(_STS_TEXTS):
            yield f"line {number}", f"{len(cells)} cells parted by tabs where 7 belong"
        else:
            yield f"line {number}", (cells[_STS_SCORE], *(cells[at] for at in _STS_TEXTS), "")


def _columns(table: Table) -> tuple[tuple[str, str] | None, str | None]:
    """Names of the columns of both texts and of the score; None where there is no such column."""
    texts = next((names for names in TEXT_COLUMNS if all(table.column((name,)) for name in names)), None)
    return texts, table.column(SCORE_COLUMNS)


def _table_rows(table: Table) -> Iterator[tuple[str, Sequence[str] | str]]:
    (texts, score), split = _columns(table), table.column(("split", "subset"))
    if texts is None or score is None:
        found = ", ".join(map(repr, table.columns[:10])) or "none"
        lacks = " and ".join(
            ["two texts (such as sentence1 and sentence2)"] * (texts is None)
            + ["the score (such as score)"] * (score is None)
        )
        raise UserError(
            f"{table.path}, line 1: no column says {lacks}; it has {found}; rename them, add a header, or move away a"
            " file that nobody scored"
        )
    columns = [score, *(table.column((name,)) or "" for name in texts), split]
    for place, cells in table.rows:
        if isinstance(cells, str):
            yield place, cells
        else:
            given = (cells.get(column) if column else None for column in columns)
            yield place, tuple(str(one) if isinstance(one, str | int | float) else "" for one in given)
