"""Lines and tables of what was learnt."""

import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from rungwise.calibration import (
    RUNGS,
    UNJUDGED_RUNGS,
    Calibration,
    CalibrationComparison,
    KindComparison,
    Known,
    TrainingQueries,
)
from rungwise.calibration._kind_comparison import ShownFor
from rungwise.jobs.calibration._render import render_comparison, render_kept, render_queries, unlearnable, verdict

PHRASES = KindComparison("phrase", 1_234, 38.9, 57.6, 16.6, 20.8, 0.81, 0.5)
ASKED = KindComparison("asked", 500, 100.0, 0.0, -100.0, -100.0, 1.0, math.nan)
VALUES = KindComparison("value", 29, 1.0, 2.0, -1.1, 3.0, 0.9, 0.9)
NOTHING = KindComparison("unrelated", 120, 80.0, 78.0, -4.9, 0.1, math.nan, math.nan)


def printed(*parts: object) -> str:
    console = Console(width=80, no_color=True)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return captured.get()


def queries(*kinds: str) -> TrainingQueries:
    degrees = np.array([[1.0, 1.0, 0.0, np.nan], [0.0] * 4][: len(kinds)])
    return TrainingQueries(
        ("a dog",) * len(kinds), kinds, np.arange(len(kinds)), degrees, degrees, np.ones_like(degrees),
        (Known(),) * len(kinds), 0.75,
    )  # fmt: skip


def test_queries_are_counted_by_kind_and_unrelated_texts_are_no_queries_of_pictures() -> None:
    assert str(render_queries(queries("phrase", "unrelated"))) == (
        "1 phrases of captions, 1 unrelated texts\n4 pictures, 2.0 relevant to a query on average"
    )


def test_no_line_is_wider_than_a_terminal() -> None:
    examples = tuple(ShownFor(f"{'a very long caption ' * at}\x1b[31m\nof {at}", 50, 154, 154, at) for at in range(12))
    found = CalibrationComparison((PHRASES, ASKED, NOTHING), "", (1.0, 1.0, 0.0), (0.45, 0.43, 0.12), examples)
    for names in (RUNGS, UNJUDGED_RUNGS):
        said = printed(*render_comparison(found, names))
        assert max(map(len, said.splitlines())) <= 80
        assert "\x1b" not in said
        for line in (
            'of the hits shown are called: "exactly" 45 %, "close" 43 %',
            f'as it is now: "{names[0]}" 100 %, "{names[1]}" 100 %',
            "154 shown, 154 of 11 right; now 50",
        ):
            assert line in said
    assert said.count(" shown, ") == 5
    assert "+18.7 [+16.6, +20.8]" in said


def test_what_a_calibration_keeps_is_shown() -> None:
    calibration = Calibration.unsupervised()
    assert "keeps no comparison" in printed(*render_kept(calibration))


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ((PHRASES, NOTHING), ""),
        ((PHRASES, ASKED), "queries that people asked lose; what would help: captions that say more"),
        ((ASKED, VALUES), "queries that people asked lose, and it cannot be excluded that values of columns do; what"),
        ((VALUES,), "it cannot be excluded that values of columns lose; what would help: more pictures"),
        ((VALUES,), "--query-file with queries of your own"),
        (
            (KindComparison("pair", 30, 1.0, 2.0, -1.1, 3.0, 0.9, 0.9),),
            "more pictures with captions, or grades of hits",
        ),
        ((), "too few; more pictures with captions, or grades of hits (rungwise serve), would help"),
    ],
)
def test_a_verdict_says_which_kinds_lose_and_what_would_help(kinds: tuple[KindComparison, ...], words: str) -> None:
    said = verdict(CalibrationComparison(kinds, "" if kinds else "too few"))
    assert words in said
    assert bool(said) == bool(words)


def test_why_nothing_can_be_learnt_is_said_of_pictures_or_of_texts() -> None:
    same = queries("phrase", "caption")
    assert "so that nothing can be learnt; captions that tell the pictures apart" in unlearnable(same)
    alike = replace(same, similarity=np.ones_like(same.similarity))
    assert unlearnable(alike).startswith("to the model all pictures are the same")
