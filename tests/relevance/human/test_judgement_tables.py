import pytest

from rungwise.core import UserError
from rungwise.relevance.human._judgement_tables import read_graded


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("a\tb#0\t1\t3\t0\n", [("a", "b#0", 1.0)]),
        ("a\tb#0\t0\t0\t3\n", [("a", "b#0", 0.0)]),
        ("a\tb#0\t0\t0\t0\n", [("a", "b#0", None)]),
        ("a\tb#0\t1\t2\t3\n", [("a", "b#0", 2.0)]),
        ("Caption,IMAGE, agg_score \nx:sentid:7, a ,2.5\n", [("a", "x:sentid:7", 2.5)]),
        ("worker\tcity\timage\tcaption\tgrade\n1\tBonn\ta\tb#0\t2\n", [("a", "b#0", 2.0)]),
        ('image,caption,grade,text\na,b,2,"one\ntwo"\nc,d,-1,\n', [("a", "b", 2.0), ("c", "d", -1.0)]),
    ],
    ids=["crowd", "crowd that said no", "crowd without votes", "experts", "csv", "tsv of as many columns", "quoted"],
)
def test_a_file_is_known_by_what_it_holds(tmp_path, content, wanted):
    file = tmp_path / "renamed"
    file.write_text(content)
    assert [judgement[1:] for judgement in read_graded(file)] == wanted


def test_every_judgement_names_its_line(tmp_path):
    file = tmp_path / "grades.csv"
    file.write_text("image,caption,grade\na,b,1\nc,d,2\n")
    assert [judgement[0] for judgement in read_graded(file)] == [f"{file}, line 2", f"{file}, line 3"]
    file.write_text("image,caption,grade\na,b,1\nc,d,two\n")
    with pytest.raises(UserError, match=r"grades.csv, line 3: 'two' is no grade; write a number"):
        list(read_graded(file))
