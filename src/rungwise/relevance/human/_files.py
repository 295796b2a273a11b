"""Any file of people's judgements, known by what it holds: CxC, Flickr8K, Pascal-50S and VATEX-EVAL layouts.

* CrissCrossed Captions (Parekh et al. 2021): ``sits_*`` (columns ``caption``, ``image``), ``sts_*`` (``caption1``,
  ``caption2``) and ``sis_*`` (``image1``, ``image2``), with ``agg_score``; in the ``*_raw`` files, a line for each
  rating. Any table with these columns and a grade is read alike.
* The judgement file that rungwise writes (:mod:`rungwise.relevance.human._log`): a column of ratings for each grader.
* Flickr8K (Hodosh et al. 2013): three experts' grades a line, or counts of the crowd.
* Pascal-50S (Vedantam et al. 2015) and VATEX-EVAL (Shi et al. 2022): see :mod:`rungwise.relevance.human._texts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rungwise.core import UserError, opened_file
from rungwise.core.disk.sealed_lines import a_sealed_line
from rungwise.relevance.human._judgement_tables import GRADE_COLUMNS, flickr8k_crowd, flickr8k_layout, flickr8k_rows
from rungwise.relevance.human._log import is_judgement_line, read_judgements
from rungwise.relevance.human._pascal50s import mat_preferences
from rungwise.relevance.human._rows import RATING, JudgementRows, ratings_of, rows_of, text_of
from rungwise.relevance.human._texts import is_preferences, is_rated_texts, preferences, rated_texts
from rungwise.relevance.human._types import Between, Judged, Layout, RatedPairs, in_columns

_HEAD = 132
_MAT_MARKS, _MAT_MARK_AT = (b"IM", b"MI"), slice(126, 128)
_HDF5, _NUMPY = b"\x89HDF", b"\x93NUMPY"
_PICKLE = tuple(bytes([0x80, version]) for version in range(2, 6))
_SIDES: dict[Between, tuple[str, str]] = {
    "image-caption": ("image", "caption"),
    "caption-caption": ("caption1", "caption2"),
    "image-image": ("image1", "image2"),
}


def read_judged(paths: Sequence[Path | str]) -> Judged:
    r"""Read a file of people's judgements, whose layout is known by its content; Pascal-50S comes in two MAT files.

    ``paths`` is one file, or Pascal-50S's votes and categories in any order.

    Raises:
        UserError: If a file cannot be read or is none of these; or a line has another form, which is named.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "sts.csv"
    >>> _ = file.write_text("caption1,caption2,agg_score,sampling_method\n7,8,2.5,c2c_isim\n")
    >>> judged = read_judged([file])
    >>> judged.between, judged.first, judged.means
    ('caption-caption', ('7',), array([2.5]))
    """
    files = [Path(path) for path in paths]
    if not files:
        raise UserError("judgements: no file is given; give one")
    heads = [_head(path) for path in files]
    for path, head in zip(files, heads, strict=True):
        _refuse_pickles(path, head)
    if all(head[_MAT_MARK_AT] in _MAT_MARKS or head.startswith(_HDF5) for head in heads):
        return mat_preferences(files)
    if len(files) > 1:
        raise UserError(f"{files[1]}: only Pascal-50S has two files, which are MAT files; give one file of judgements")
    (path,) = files
    line = a_sealed_line(path)
    if line is not None and is_judgement_line(line):
        return _graded(path)
    layout = flickr8k_layout(path)
    return _of_rows(rows_of(path)) if layout is None else _flickr8k(path, layout)


def _head(path: Path) -> bytes:
    with opened_file(path, None) as file:
        return file.read(_HEAD)


def _refuse_pickles(path: Path, head: bytes) -> None:
    if head.startswith((_NUMPY, *_PICKLE)):
        raise UserError(
            f"{path}: is a file of NumPy or pickle, which could run a program and is never read; write JSON lines of"
            ' {"video": ..., "candidate": ..., "references": [...], "scores": [...]}, as the page on agreement shows'
        )


def _graded(path: Path) -> RatedPairs:
    found = read_judgements(path)
    if not len(found):
        raise UserError(f"{path}: holds no judgement that counts; give a file with some")
    # The same pair with another text is another one.
    read = [(one.pair, one.text_hash) for one in found]
    lines: dict[tuple[tuple[str, str], str], int] = {}
    for key, line in zip(read, found.lines, strict=True):
        lines.setdefault(key, line)
    return RatedPairs(
        "image-caption",
        "table",
        tuple(image for (image, _), _ in lines),
        tuple(caption for (_, caption), _ in lines),
        found.ratings(texts_apart=True).T,
        tuple(f"{path}, line {line}" for line in lines.values()),
        str(path),
        tuple(text_hash for _, text_hash in lines),
        found.issues,
    )


def _flickr8k(path: Path, layout: Layout) -> RatedPairs:
    if layout == "flickr8k-crowd":
        crowd = [
            (where, image, caption, [float("nan") if share is None else share])
            for where, image, caption, share in flickr8k_crowd(path)
        ]
        return _pairs("image-caption", layout, crowd, path)
    experts = [
        (where, image, caption, _expert_grades(grades, where)) for where, image, caption, grades in flickr8k_rows(path)
    ]
    return _pairs("image-caption", layout, experts, path)


def _expert_grades(grades: list[float], where: str) -> list[float]:
    if not all(grade in (1, 2, 3, 4) for grade in grades):
        raise UserError(f"{where}: experts' grades are 1 to 4, found {', '.join(f'{grade:g}' for grade in grades)}")
    return grades


def _of_rows(table: JudgementRows) -> Judged:
    if is_preferences(table):
        return preferences(table)
    for between, (first, second) in _SIDES.items():
        if {first, second} <= set(table.columns):
            return _table(table, between, first, second)
    if is_rated_texts(table):
        return rated_texts(table)
    raise UserError(
        f"{table.path}: its columns ({', '.join(table.columns)[:200] or 'none'}) are those of no judgements; give image"
        " and caption, caption1 and caption2, or image1 and image2, with grade; candidate with scores; or first and"
        " second with votes_first and votes_second"
    )


def _table(table: JudgementRows, between: Between, first: str, second: str) -> RatedPairs:
    graded = [name for name in GRADE_COLUMNS if name in table.columns][:1]
    if not graded and not any(RATING.fullmatch(name) for name in table.columns):
        # The raw files of CxC: two ids, the rating, how the pair was sampled.
        rest = [name for name in table.columns if name not in (first, second, "sampling_method")]
        if len(rest) != 1:
            raise UserError(
                f"{table.path}: no column holds a grade, found {', '.join(table.columns)}; call it grade, or score_1,"
                " score_2 for several people"
            )
        graded = rest
    rows = [
        (where, text_of(cells, (first,), where), text_of(cells, (second,), where), ratings_of(cells, graded, where))
        for where, cells in table.rows
    ]
    return _pairs(between, "table", rows, table.path)


def _pairs(
    between: Between, layout: Layout, rows: Sequence[tuple[str, str, str, list[float]]], path: Path
) -> RatedPairs:
    """Rated pairs; several lines of one pair are its ratings."""
    if not rows:
        raise UserError(f"{path}: holds no judgement; give a file with some")
    together: dict[tuple[str, str], list[float]] = {}
    places: dict[tuple[str, str], str] = {}
    for where, first, second, ratings in rows:
        together.setdefault((first, second), []).extend(ratings)
        places.setdefault((first, second), where)
    found = tuple(places.values())
    return RatedPairs(
        between,
        layout,
        tuple(first for first, _ in together),
        tuple(second for _, second in together),
        in_columns(list(together.values()), found),
        found,
        str(path),
    )
