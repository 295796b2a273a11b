import io

import numpy as np
from rich.console import Console

from rungwise.evaluation import evaluate, render_table


def text_of(result, width=80):
    console = Console(width=width, record=True, color_system=None, file=io.StringIO())
    console.print(render_table(result))
    return console.export_text()


def test_directions_stand_side_by_side_in_eighty_columns():
    similarity = np.random.default_rng(0).random((3, 6))
    result = evaluate(
        similarity=similarity,
        image_of_caption=[0, 0, 0, 1, 1, 1],
        relevance=similarity,
        measures=["R@1", "rsum", "MedR", "CS@100", "NCS@10(non_gt)", "SR@10(m=5,non_gt)", "Nsum(non_gt)"],
        data_name="a collection",
    )
    text = text_of(result)
    assert max(map(len, text.splitlines())) <= 80
    [line] = [line for line in text.splitlines() if " CS@100 " in line]
    assert line.count("1.0000") == 2
    assert "rsum" in text
    assert "a collection, protocol full" in text
    assert "3 images x 6 captions (0 to 3 an image)" in text
    assert "i2t/R@1: 1 of 3 queries no positive, left out" in text


def test_numbers_that_do_not_exist_are_dashes():
    result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["R@1"])
    broken = type(result)(**{**vars(result), "numbers": {**result.numbers, "i2t/R@1": float("nan")}})
    [line] = [line for line in text_of(broken).splitlines() if " R@1 " in line]
    assert " - " in line
