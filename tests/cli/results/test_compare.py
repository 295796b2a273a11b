import csv
import json

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.evaluation import Comparison, Provenance, evaluate


def saved(path, noise, image_ids=None, **more):
    similarity = np.eye(12) + noise * np.random.default_rng(0).random((12, 12))
    result = evaluate(
        similarity=similarity,
        image_of_caption=np.arange(12),
        provenance=Provenance(data_hash="d", image_ids=image_ids),
        **more,
    )
    result.to_json(path)
    return str(path)


def test_compare_prints_the_table_and_the_queries(tmp_path, capsys):
    one = saved(tmp_path / "one.json", 3, image_ids=[f"picture-{n}.jpg" for n in range(12)])
    other = saved(tmp_path / "other.json", 0, image_ids=[f"picture-{n}.jpg" for n in range(12)])
    assert main(["compare", one, other, "--draws", "200", "--out", str(tmp_path / "c.json")]) == 0
    text = capsys.readouterr().out
    assert "rsum" in text
    assert "i2t: queries that are better in B than in A by R@1: " in text
    assert "0 -> 100  picture-" in text
    assert json.loads((tmp_path / "c.json").read_text())["draws"] == 200


def test_a_folder_in_the_place_of_the_output_is_one_line(tmp_path, capsys):
    one = saved(tmp_path / "one.json", 3)
    assert main(["compare", one, one, "--draws", "200", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"rungwise compare: {tmp_path}: a folder stands here; name a file\n"


def test_what_cannot_be_compared_is_one_line(tmp_path, capsys):
    one = saved(tmp_path / "one.json", 3)
    other = saved(tmp_path / "other.json", 0, protocol="one-caption-per-image")
    assert main(["compare", one, other]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "other.json cannot be compared with" in line
    assert "protocol one-caption-per-image against full" in line


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json"])
def test_a_comparison_is_printed_in_the_form_that_is_asked_for_and_nothing_else(form, tmp_path, capsys):
    one, other = saved(tmp_path / "one.json", 3), saved(tmp_path / "other.json", 0)
    out = tmp_path / "both.json"
    assert main(["compare", one, other, "--draws", "200", "--format", form, "--out", str(out)]) == 0
    text, messages = capsys.readouterr()
    found = Comparison.from_json(out)
    written = {"markdown": found.to_markdown, "latex": found.to_latex, "csv": found.to_csv, "json": found.to_json}
    assert text.rstrip("\n") == written[form]().rstrip("\n")
    assert f"written: {out}" in messages
    if form == "csv":
        rows = list(csv.DictReader(text.splitlines()))
        assert [row["name"] for row in rows] == [row.name for row in found.differences]
        assert float(rows[0]["difference"]) == found.differences[0].difference
    if form == "json":
        assert Comparison.from_json(text) == found
