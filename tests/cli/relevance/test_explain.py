import pytest

from rungwise.cli import main as command


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WNSEARCHDIR", "")
    (tmp_path / "captions.csv").write_text(
        "image,caption\na.jpg,a small red circle left of a blue square\na.jpg,a red circle\nb.jpg,a dog\n",
        encoding="utf-8",
    )
    return "captions.csv"


def run(capsys, *arguments):
    status = command(["relevance", "explain", *arguments])
    out = capsys.readouterr()
    return status, out.out.splitlines(), out.err


def test_facts_that_match_and_that_are_missing_are_named(data, capsys):
    status, lines, _ = run(capsys, data, "a.jpg", "a blue square right of a large circle")
    assert status == 0
    assert lines == [
        "caption: a small red circle left of a blue square",
        "caption: a red circle",
        "text: a blue square right of a large circle",
        "degree 0.727",
        "in both: circle, circle - left of - square, square, square: blue",
        "only in the text: circle: large",
        "only in the captions: circle: red, circle: small",
    ]


def test_options_of_the_source_apply(data, capsys):
    _, lines, _ = run(capsys, data, "a", "a red circle and a dog", "--measure", "precision")
    assert "degree 0.667" in lines
    _, lines, _ = run(capsys, data, "a.jpg", "a.jpg#1", "--leave-one-out")
    assert lines[:3] == ["caption: a small red circle left of a blue square", "text: a red circle", "degree 0.500"]


def test_the_data_are_read_as_a_layout_that_is_named(data, tmp_path, capsys):
    (tmp_path / "words.token.txt").write_text("c.jpg#0\ta cat\n")
    assert run(capsys, ".", "a.jpg", "a dog")[0] == 2
    assert run(capsys, ".", "a.jpg", "a dog", "--layout", "table")[0] == 0


def test_a_text_without_facts_is_named(data, capsys):
    _, lines, _ = run(capsys, data, "a.jpg", "😀")
    assert lines[3:5] == ["degree 0.000", "in both: nothing"]
    assert lines[-1] == "the text states no fact that the parser finds; the built-in one reads English"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("c.jpg", "a dog"), "has no picture 'c.jpg'; give one of its ids, such as 'a.jpg', 'b.jpg'"),
        (("b.jpg", "b.jpg#0", "--leave-one-out"), "b.jpg: has no other caption to compare with"),
        (("a.jpg", "a dog", "--least", "0.5"), "--least changes nothing without --likeness"),
    ],
)
def test_a_mistake_gets_one_line(data, capsys, arguments, message):
    status, _, err = run(capsys, data, *arguments)
    assert status == 2
    assert message in " ".join(err.split())
