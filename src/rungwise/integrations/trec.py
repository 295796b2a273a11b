"""Rankings and degrees for the programs of TREC in memory, and their numbers beside ours.

ranx, ir_measures and pytrec_eval know whole-number degrees alone, which stand in qrels. Each is imported when it is
asked for: the import of ranx alone takes longer than most evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, require
from rungwise.core.compute import top_columns
from rungwise.evaluation import DEPTH, levels_of
from rungwise.metrics import Measure, as_floats, parse

__all__ = ["Program", "measured_by", "qrels_of", "run_of"]

Program = Literal["ranx", "ir_measures", "pytrec_eval"]

Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]
_Values = dict[str, dict[str, float]]

_NAMES: dict[str, dict[Program, str]] = {
    "R": {"ranx": "hit_rate", "ir_measures": "Success", "pytrec_eval": "success"},
    "Recall": {"ranx": "recall", "ir_measures": "R", "pytrec_eval": "recall"},
    "P": {"ranx": "precision", "ir_measures": "P", "pytrec_eval": "P"},
    "MRR": {"ranx": "mrr", "ir_measures": "RR", "pytrec_eval": "recip_rank"},
    "MAP": {"ranx": "map", "ir_measures": "AP", "pytrec_eval": "map"},
    "RPrecision": {"ranx": "r-precision", "ir_measures": "Rprec", "pytrec_eval": "Rprec"},
    "nDCG": {"ranx": "ndcg", "ir_measures": "nDCG", "pytrec_eval": "ndcg_cut"},
}
"""Names of measures in the programs, without the cutoff."""


def run_of(
    scores: ArrayLike, query_ids: Sequence[str], candidate_ids: Sequence[str], depth: int = DEPTH
) -> dict[str, dict[str, int]]:
    """Our ranking of each query, with scores that fall by one a rank, so that no program makes ties.

    Args:
        scores: (queries, candidates) similarities. Ties go to the lower candidate, as in our measures.
        query_ids: (queries,) ids.
        candidate_ids: (candidates,) ids.
        depth: Largest number of candidates of a query.

    >>> run_of([[0.1, 0.7, 0.7]], ["q"], ["a", "b", "c"], depth=2)
    {'q': {'b': 2, 'c': 1}}
    """
    listed = top_columns(_table(scores, query_ids, candidate_ids), depth)
    return {
        query: {candidate_ids[place]: len(own) - rank for rank, place in enumerate(own)}
        for query, own in zip(query_ids, listed.tolist(), strict=True)
    }


def qrels_of(
    degrees: ArrayLike, query_ids: Sequence[str], candidate_ids: Sequence[str], levels: int
) -> dict[str, dict[str, int]]:
    """Degrees as whole numbers, by the rule of ``rungwise evaluate --levels``; level 0 is left out.

    Args:
        degrees: (queries, candidates) degrees. Annotation is a matrix of 0 and 1 with one level.
        query_ids: (queries,) ids.
        candidate_ids: (candidates,) ids.
        levels: The level of the largest degree.

    >>> qrels_of([[0.0, 0.5, 1.0], [0.1, 0.0, 0.0]], ["p", "q"], ["a", "b", "c"], levels=4)
    {'p': {'b': 2, 'c': 4}}
    """
    table = _table(degrees, query_ids, candidate_ids)
    largest = float(np.nanmax(table, initial=0.0))
    if levels < 1 or not largest > 0:
        raise UserError(f"qrels need a degree above 0 and levels of at least 1, got {largest:g} and {levels}")
    found = {}
    for query, row in zip(query_ids, levels_of(table, levels, largest), strict=True):
        if own := {candidate_ids[place]: int(row[place]) for place in np.flatnonzero(row).tolist()}:
            found[query] = own
    return found


def measured_by(
    program: Program,
    run: Run | Path | str,
    qrels: Qrels | Path | str,
    measures: Iterable[str | Measure],
    *,
    missing_queries: Literal["refuse", "zero"] = "refuse",
) -> dict[str, float]:
    """Numbers of another program for a run and qrels, under our names and in percent, as ours are.

    Args:
        program: ``"ranx"``, ``"ir_measures"`` or ``"pytrec_eval"``.
        run: A file, which the program reads itself, or scores by query and candidate.
        qrels: A file, or whole-number degrees by query and candidate.
        measures: Of R@K, Recall@K, P@K, MRR, MAP, RPrecision and nDCG@K.
        missing_queries: What becomes of queries of the qrels that the run lacks: refused, or counted 0.

    Returns:
        The mean over all queries of the qrels, by measure.

    Raises:
        MissingExtraError: If the program is not installed.
        UserError: If the program has no such measure, or the run lacks queries.

    >>> found = measured_by("pytrec_eval", {"q": {"a": 2, "b": 1}}, {"q": {"b": 1}}, ["R@1", "MRR"])
    >>> found
    {'R@1': 0.0, 'MRR': 50.0}
    """
    require(program, "this comparison")
    theirs = {str(one): _theirs(program, parse(one) if isinstance(one, str) else one) for one in measures}
    queries, lacking, values = _PROGRAMS[program](run, qrels, list(theirs.values()))
    if not queries:
        raise UserError("the qrels name no query; give some")
    if lacking and missing_queries == "refuse":
        raise UserError(
            f"the run lacks {len(lacking)} of {len(queries)} queries, the first is {min(lacking)!r}; give a whole run,"
            " or missing_queries='zero'"
        )
    # One mean for all: by themselves some programs average over the queries that both files have.
    return {
        ours: 100.0 * math.fsum(values[name].get(query, 0.0) for query in queries) / len(queries)
        for ours, name in theirs.items()
    }


def _theirs(program: Program, measure: Any) -> str:
    own, cutoff = _NAMES.get(measure.name, {}).get(program), getattr(measure, "k", None)
    plain = measure.name if cutoff is None else f"{measure.name}@{cutoff}"
    if own is None or str(measure) != plain or (measure.name == "MAP" and cutoff is not None):
        raise UserError(f"{measure}: {program} has no such measure; ask for {', '.join(_NAMES)}")
    return own if cutoff is None else f"{own}{'_' if program == 'pytrec_eval' else '@'}{cutoff}"


def _by_ranx(run: Run | Path | str, qrels: Qrels | Path | str, names: list[str]) -> tuple[set[str], set[str], _Values]:
    import ranx

    right = ranx.Qrels.from_file(str(qrels), kind="trec") if _is_file(qrels) else ranx.Qrels(_plain(qrels))
    ranked = ranx.Run.from_file(str(run), kind="trec") if _is_file(run) else ranx.Run(_plain(run, float))
    queries, listed = set(right.keys()), set(ranked.keys())
    ranx.evaluate(right, ranked, names, make_comparable=True)
    return queries, queries - listed, {name: dict(ranked.scores[name]) for name in names}


def _by_ir_measures(
    run: Run | Path | str, qrels: Qrels | Path | str, names: list[str]
) -> tuple[set[str], set[str], _Values]:
    import ir_measures

    program: Any = ir_measures  # whose readers have no types
    right: Any = list(program.read_trec_qrels(str(qrels))) if _is_file(qrels) else _plain(qrels)
    ranked: Any = list(program.read_trec_run(str(run))) if _is_file(run) else _plain(run, float)
    queries, listed = (set(one) if isinstance(one, dict) else {row.query_id for row in one} for one in (right, ranked))
    values: _Values = {name: {} for name in names}
    for one in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], right, ranked):
        values[str(one.measure)][one.query_id] = one.value
    return queries, queries - listed, values


def _by_pytrec_eval(
    run: Run | Path | str, qrels: Qrels | Path | str, names: list[str]
) -> tuple[set[str], set[str], _Values]:
    import pytrec_eval

    found: list[Any] = []
    for given, kind, parse_file in ((qrels, int, pytrec_eval.parse_qrel), (run, float, pytrec_eval.parse_run)):
        if _is_file(given):
            with Path(str(given)).open(encoding="utf-8") as file:
                found.append(parse_file(file))
        else:
            found.append(_plain(given, kind))
    right, ranked = found
    measured = pytrec_eval.RelevanceEvaluator(right, set(names)).evaluate(ranked)
    values = {name: {query: own[name] for query, own in measured.items()} for name in names}
    return set(right), set(right) - set(ranked), values


_PROGRAMS = {"ranx": _by_ranx, "ir_measures": _by_ir_measures, "pytrec_eval": _by_pytrec_eval}


def _is_file(given: object) -> bool:
    return isinstance(given, str | Path)


def _plain(given: Any, kind: type = int) -> dict[str, dict[str, Any]]:
    """Dictionaries of plain numbers, which compiled programs ask for."""
    return {query: {candidate: kind(value) for candidate, value in own.items()} for query, own in given.items()}


def _table(values: ArrayLike, query_ids: Sequence[str], candidate_ids: Sequence[str]) -> Any:
    table = as_floats(values)
    if table.shape != (len(query_ids), len(candidate_ids)):
        raise UserError(
            f"{len(query_ids)} queries and {len(candidate_ids)} candidates for an array of shape {table.shape}; give an"
            " id each"
        )
    return table
