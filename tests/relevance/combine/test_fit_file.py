import json

import numpy as np
import pytest

from rungwise.core import UserError, digest_of_json
from rungwise.relevance.combine import fit_table, read_fit, write_fit


def fitted(kind):
    draw = np.random.default_rng(0)
    table = draw.random((200, 2))
    return fit_table(table, table.sum(axis=1) + 0.1 * draw.random(200), kind=kind, names=("a", "b"))


@pytest.fixture(scope="module")
def fit():
    return fitted("isotonic")


@pytest.mark.parametrize("kind", ["isotonic", "monotone"])
def test_what_was_written_is_read_to_the_bit(kind, tmp_path):
    fit = fitted(kind)
    write_fit(fit, tmp_path / "fit.json")
    assert read_fit(tmp_path / "fit.json") == fit


def rewritten(path, change, seal=True):
    content = json.loads(path.read_text())
    change(content)
    if seal:
        content["checksum"] = digest_of_json({name: part for name, part in content.items() if name != "checksum"})
    path.write_text(json.dumps(content))


def test_a_file_that_was_altered_is_refused(fit, tmp_path):
    write_fit(fit, tmp_path / "fit.json")
    rewritten(tmp_path / "fit.json", lambda content: content["centres"].__setitem__(0, 9.0), seal=False)
    with pytest.raises(UserError, match="it is not as it was written"):
        read_fit(tmp_path / "fit.json")


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(content):
        for step in path:
            content = content[step]
        content[last] = value

    return change


BAD = {
    "format": put("format", "other"),
    "version": put("version", 2),
    "kind": put("kind", "linear"),
    "a list as kind": put("kind", ["isotonic"]),
    "pairs": put("pairs", True),
    "a range of one": put("grades", [1.0]),
    "no range": put("grades", [5.0, 0.0]),
    "huge": put("centres", [1e300, 0.0]),
    "text": put("centres", ["1", 0.0]),
    "one centre": put("centres", [0.0]),
    "no scale": put("scales", [0.0, 1.0]),
    "falling curve": put("curves", 0, [[0.0, 1.0], [1.0, 0.0]]),
    "knots that fall": put("curves", 0, [[1.0, 0.0], [0.0, 1.0]]),
    "no curve": put("curves", 0, []),
    "many knots": put("curves", 0, [list(range(400)), [0.0] * 400]),
    "many curves": put("curves", [[[0.0], [0.0]]] * 100),
    "many sources": put("sources", ["a"] * 1000),
    "a name of two lines": put("sources", ["a\nb", "c"]),
    "a name of no text": put("sources", [1, 2]),
    "a correlation of 2": put("cross_validated", "pearson", 2.0),
    "folds": put("cross_validated", "folds", -1),
    "no measurement": put("cross_validated", None),
    "no judgements": put("judgements", None),
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_no_fit_is_refused_in_one_line(said, fit, tmp_path):
    path = tmp_path / "fit.json"
    write_fit(fit, path)
    rewritten(path, BAD[said])
    with pytest.raises(UserError) as caught:
        read_fit(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_another_json_are_none(tmp_path):
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(UserError, match="is no fitted combination"):
        read_fit(tmp_path / "list.json")
    with pytest.raises(UserError):
        read_fit(tmp_path)
