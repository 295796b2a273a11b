from dataclasses import replace

import numpy as np
from rich.console import Console

from rungwise.evaluation import EvaluationSettings, HumanPositives, evaluate, evaluate_with_people, render_change
from rungwise.evaluation.tables._changes import change_cells

SCORES = np.array([[0.4, 0.9, 0.2], [0.1, 0.8, 0.3], [0.5, 0.6, 0.7]])
SAID = HumanPositives(np.array([[0, 1]]), ("Ada", "Bo"), 3.0, {"judgements.jsonl": "5eed"})


def test_every_number_stands_beside_that_of_the_annotation() -> None:
    measures = ["R@1", "MedR", "rsum"]
    result = evaluate_with_people(SAID, similarity=SCORES, image_of_caption=[0, 1, 2], measures=measures)
    alone = evaluate(similarity=SCORES, image_of_caption=[0, 1, 2], measures=measures)
    rows = {name: cells for name, *cells in change_cells(result)}
    assert list(rows) == list(alone.numbers)
    assert rows["i2t/R@1"] == ["66.7", "100.0", "+33.3"]
    assert rows["i2t/MedR"] == ["1.0", "1.0", "0.0"]
    for name, (before, now, _) in rows.items():
        assert (before, now) == (f"{alone[name]:.1f}", f"{result[name]:.1f}")


def test_a_change_too_small_to_be_shown_has_no_sign() -> None:
    result = evaluate_with_people(SAID, similarity=SCORES, image_of_caption=[0, 1, 2], measures=["MeanR"])
    judged = result.judgements
    assert judged is not None
    for away in (-0.001, 0.001):
        before = {name: value + away for name, value in result.numbers.items()}
        close = replace(result, judgements=replace(judged, before=before))
        assert {cells[-1] for cells in change_cells(close)} == {"0.0"}
    undefined = replace(judged, before=dict.fromkeys(result.numbers, float("nan")))
    assert {cells[-1] for cells in change_cells(replace(result, judgements=undefined))} == {"-"}


def test_the_table_fits_a_terminal_and_names_the_people() -> None:
    result = evaluate_with_people(SAID, similarity=SCORES, image_of_caption=[0, 1, 2])
    console = Console(width=80, record=True)
    console.print(render_change(result))
    text = " ".join(console.export_text().split())
    assert "annotation alone" in text
    assert "1 pair was called right by Ada, Bo (mean grade from 3)" in text
    assert "right answers that the annotation lacks: i2t 1, t2i 1" in text


def test_there_is_nothing_to_show_without_both() -> None:
    plain = evaluate(similarity=SCORES, image_of_caption=[0, 1, 2])
    assert render_change(plain) is None
    assert (
        render_change(
            evaluate(similarity=SCORES, image_of_caption=[0, 1, 2], settings=EvaluationSettings(human_positives=SAID))
        )
        is None
    )
