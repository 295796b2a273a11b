import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation.inputs import read_degree_lines, read_relevance

IMAGES, CAPTIONS = ("a.jpg", "b c.jpg"), ("x", "y", "z")


def read(folder, text, name="degrees.tsv", images=IMAGES, captions=CAPTIONS):
    (folder / name).write_text(text, encoding="utf-8")
    return read_degree_lines(folder / name, images, captions)


def test_a_table_and_qrels_of_both_directions_say_the_same(tmp_path):
    wanted = [[0.0, 0.25, 0.0], [-1.5, 0.0, 3.0]]
    table = "image\tcaption\tdegree\na.jpg\ty\t0.25\nb c.jpg\tx\t-1.5\n\nb%20c.jpg\tz\t3\n"
    assert read(tmp_path, table).tolist() == wanted
    assert read(tmp_path, table.replace("\n", "\r\n")).tolist() == wanted
    assert read(tmp_path, "a 0 y 0.25\nb%20c.jpg 0 x -1.5\nb%20c.jpg Q0 z 3\n", "q.qrels").tolist() == wanted
    assert read(tmp_path, "y 0 a 0.25\nx\t0\tb%20c.jpg\t-1.5\nz 0 b%20c.jpg 3\n", "q.txt").tolist() == wanted
    found = read_relevance(tmp_path / "q.txt", (2, 3), ids=(IMAGES, CAPTIONS))
    np.testing.assert_array_equal(found, wanted)


def test_where_ids_do_not_tell_the_direction_the_name_does(tmp_path):
    numbers = ("1", "2", "3")
    for way, wanted in (("i2t", [5, 0]), ("t2i", [0, 5])):
        found = read(tmp_path, "1 0 2 5\n", f"q.{way}.qrels", numbers, numbers)
        assert [found[0, 1], found[1, 0]] == wanted
    with pytest.raises(UserError, match="the direction is not clear; end its name with .i2t or .t2i"):
        read(tmp_path, "1 0 2 5\n", "q.qrels", numbers, numbers)
    assert read(tmp_path, "image\tcaption\tdegree\n1\t2\t5\n", "q.tsv", numbers, numbers)[0, 1] == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.jpg 0 y\n", "line 1: has 3 columns; write image, caption and degree under a line that says so, or qrels"),
        ("image\tcaption\tdegree\na.jpg\ty\n", "line 2: has 2 columns"),
        ("a.jpg 0 y 1\na.jpg 0 z one\n", "line 2: 'one' is no degree; write a finite number"),
        ("a.jpg 0 y nan\n", "line 1: 'nan' is no degree"),
        ("a.jpg 0 y 1e999\n", "line 1: '1e999' is no degree"),
        ("a.jpg 0 y 1\nq.jpg 0 z 1\n", "line 2: 'q.jpg' is not known as the id of an image or a caption; give degrees"),
        ("y 0 a.jpg 1\ny 0 q.jpg 1\n", "line 2: 'q.jpg' is not known"),
        ("a.jpg 0 y 1\na 0 y 1\n", "line 2: 'a' with 'y' stands twice; give a pair one degree"),
        ("", "the file is empty"),
    ],
)
def test_every_mistake_gets_a_line(tmp_path, text, said):
    with pytest.raises(UserError, match=said) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "degrees.tsv") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_ending_is_refused(tmp_path):
    (tmp_path / "q.csv").write_text("a 0 x 1\n")
    with pytest.raises(UserError, match=r"lines of ids and degrees \(.tsv, .qrels, .trec, .txt\); give one"):
        read_relevance(tmp_path / "q.csv", (2, 3), ids=(IMAGES, CAPTIONS))
