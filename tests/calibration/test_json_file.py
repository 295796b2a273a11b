import json
import math
from dataclasses import replace

import numpy as np
import pytest

from rungwise.calibration import Calibration, KindComparison, Known
from rungwise.core import MissingFileError, UserError
from rungwise.core.disk.sealed_lines import sealed
from tests.calibration.conftest import planted


@pytest.fixture(scope="module")
def informed():
    rng = np.random.default_rng(2)
    scores, relevance = planted(rng, 40, 100)
    known = [Known(vector=rng.normal(size=3), unknown_share=0.1, caption_scores=rng.random(100)) for _ in range(40)]
    learnt = Calibration.fit(scores, relevance, 1, known=known, source="Zählung, d'après", model_fingerprint="ab" * 32)
    kinds = (
        KindComparison("phrase", 40, 100 / 3, 61.5, -0.25, 20.0, 5 / 6, 2 / 3),
        KindComparison("unrelated", 20, 95.0, 100.0, 0.0, 10.0, math.nan, math.nan),
    )
    return replace(learnt, needs_texts=True, kinds=kinds)


def test_what_was_saved_is_loaded_to_the_bit(any_calibration, informed, world, tmp_path):
    rng = np.random.default_rng(3)
    known = Known(vector=rng.normal(size=3), caption_scores=rng.random(400))
    for calibration, facts in ((any_calibration, None), (informed, known), (informed, None)):
        calibration.save(tmp_path / "calibration.json")
        again = Calibration.load(tmp_path / "calibration.json")
        assert str(again) == str(calibration)
        assert (again.source, again.model_fingerprint) == (calibration.source, calibration.model_fingerprint)
        assert again.needs_texts == calibration.needs_texts
        assert repr(again.kinds) == repr(calibration.kinds)  # NaN is not equal to itself
        for scores in world[0][:5]:
            assert (again.degrees(scores, facts) == calibration.degrees(scores, facts)).all()
            assert (again.rungs(scores, facts) == calibration.rungs(scores, facts)).all()
            assert again.belief(scores, facts) == calibration.belief(scores, facts)
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "calibration.json").read_bytes()


def test_it_is_small_and_plain(informed, tmp_path):
    informed.save(str(tmp_path / "calibration.json"))
    assert (tmp_path / "calibration.json").stat().st_size < 200_000
    assert json.loads((tmp_path / "calibration.json").read_text(encoding="utf-8"))["format"] == "rungwise-calibration"


def test_no_file_is_no_damage(tmp_path):
    with pytest.raises(MissingFileError):
        Calibration.load(tmp_path / "calibration.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[1]", "is no calibration"),
        ("{}", "is no calibration"),
        ('{"format": "rungwise-calibration", "version": 99}', "version 99"),
        ('{"format": "rungwise-calibration", "version": 1}', "damaged"),
        ('{"format": "rungwise-calibration", "version": 1, "scale": [NaN, 1]}', "not valid JSON"),
    ],
)
def test_another_file_gets_one_line(tmp_path, text, message):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as error:
        Calibration.load(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def places_in(value, path=()):
    """Every place in a JSON value; of long lists, the first."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places_in(each, (*path, key))
    elif isinstance(value, list) and value:
        yield from places_in(value[0], (*path, 0))


def changed(value, path, new):
    """A copy with something else at one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


HOSTILE = (None, "x", "a\nb", True, -1, 0, 0.5, 1e400, 1e308, [], [[]], {}, [1] * 70_000, {"a": {}})


def refusal(path):
    """The line in which a file is refused; None if it is taken."""
    try:
        Calibration.load(path)
    except UserError as error:
        return str(error)
    return None


def test_any_change_is_seen_by_the_checksum(informed, tmp_path):
    path = tmp_path / "calibration.json"
    informed.save(path)
    value = json.loads(path.read_text(encoding="utf-8"))
    for place, new in ((("relevant_from",), 0.75), (("kinds", 0, "after"), 61.25), (("learnt", 0, "floor"), 0.5)):
        path.write_text(json.dumps(changed(value, place, new)))
        assert "checksum" in refusal(path)


def test_whatever_stands_anywhere_is_refused_in_one_line_or_judges_as_ever(informed, by_standard, world, tmp_path):
    """The checksum is right in each file: somebody wrote the file so."""
    path = tmp_path / "calibration.json"
    scores, refused, taken = world[0][0], set(), 0
    for calibration in (informed, by_standard):
        calibration.save(path)
        value = json.loads(path.read_text(encoding="utf-8"))
        del value["seal"]
        for number, place in enumerate(list(places_in(value))[1:]):
            for new in HOSTILE[number % 2 :: 2]:  # places of a kind follow each other: each kind gets all of them
                path.write_bytes(sealed(changed(value, place, new)))
                line = refusal(path)
                if line is not None:
                    refused.add(place)
                    assert line.startswith(str(path)), place
                    assert "\n" not in line, place
                    assert "checksum" not in line, place
                else:
                    taken += 1
                    loaded = Calibration.load(path)
                    assert 0 <= loaded.cut(scores) <= len(scores), (place, new)
                    assert np.isfinite(loaded.degrees(scores)).all(), (place, new)
                    assert all(kind.queries > 0 for kind in loaded.kinds), (place, new)
                    assert all("\n" not in kind.kind for kind in loaded.kinds), (place, new)
    assert taken > 20
    # Every place refuses something.
    assert refused >= {place for place in places_in(value) if place}
