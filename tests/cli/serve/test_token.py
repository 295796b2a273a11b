"""``rungwise token``: the line for the file on one stream, the token on the other."""

from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.serving.access import TokenFile, Visitor


def test_the_line_recognises_the_token_and_holds_it_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "ada", "grade"]) == 0
    out, err = capsys.readouterr()
    token = err.strip().rpartition(" ")[2]
    assert len(token) == 32
    assert token not in out
    (tmp_path / "tokens").write_text(out)
    assert TokenFile(tmp_path / "tokens").bearer_of(token) == Visitor("ada", "grade")


@pytest.mark.parametrize(("words", "said"), [(["a b", "read"], "no name for a token"), (["ada", "rule"], "none of")])
def test_a_mistake_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), said in err) == ("", 1, True)
