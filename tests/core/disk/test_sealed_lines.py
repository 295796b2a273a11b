import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import append, hash_of_text, is_sealed, read_sealed, sealed, unsealed

PLAIN = st.dictionaries(
    st.text(max_size=5).filter(lambda key: key != "seal"),
    st.one_of(st.text(max_size=20), st.integers(), st.booleans(), st.none()),
    max_size=5,
)


def lines_of(path: Path) -> list[object]:
    return [one for _, one in read_sealed(path, lambda plain: plain["n"])[0]]


@given(PLAIN)
def test_a_line_says_what_was_sealed(plain: dict[str, object]) -> None:
    line = sealed(plain)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert unsealed(line) == plain
    assert is_sealed(line)


@given(PLAIN.filter(bool), st.data())
def test_a_changed_value_breaks_the_seal(plain: dict[str, object], data: st.DataObject) -> None:
    content = json.loads(sealed(plain))
    key = data.draw(st.sampled_from(sorted(plain)))
    content[key] = "another value that nobody drew, being too long"
    with pytest.raises(ValueError, match="checksum"):
        unsealed(json.dumps(content).encode())


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"1", b'"seal"', b"\xff\xfe", b"[" * 100_000, b'{"n": 1}', b"NaN"])
def test_other_lines_are_damaged(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(sealed({"n": 1}) + line + b"\n" + sealed({"n": 3}))
    sound, damaged = read_sealed(path, lambda plain: plain["n"])
    assert sound == [(1, 1), (3, 3)]
    assert [number for number, _ in damaged] == ([2] if line else [])
    assert not is_sealed(line)


@pytest.mark.parametrize("length", [1 << 18, (1 << 20) + 7])
def test_a_line_that_is_too_long_is_one_damaged_line(tmp_path: Path, length: int) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(sealed({"n": 1}) + b"x" * length + b"\n" + sealed({"n": 2}) + b"x" * length)
    sound, damaged = read_sealed(path, lambda plain: plain["n"])
    assert sound == [(1, 1), (3, 2)]
    assert [number for number, _ in damaged] == [2, 4]


def test_what_was_cut_off_does_not_harm_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    append(path, sealed({"n": 1}), 1000, list, "numbers")
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        path.write_bytes(whole + sealed({"n": 2})[:cut])
        append(path, sealed({"n": 3}), 1000, list, "numbers")
        assert lines_of(path) == [1, 3], cut


def test_a_full_file_is_written_anew_and_refused_if_that_does_not_help(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    for number in range(20):
        append(path, sealed({"n": number}), 200, lambda: [sealed({"n": -1})], "numbers")
    assert path.stat().st_size < 300
    assert lines_of(path)[0] == -1
    with pytest.raises(UserError, match=r"lines\.jsonl: full of numbers \(10 bytes\); move the file away"):
        append(path, sealed({"n": 1}), 10, lambda: [sealed({"n": -1})], "numbers")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(sealed({"n": 1}))
    (tmp_path / "lines.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(UserError, match="a link stands here"):
        append(tmp_path / "lines.jsonl", sealed({"n": 2}), 1000, list, "numbers")


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert read_sealed(tmp_path / "none", dict) == ([], [])


def test_the_hash_of_a_text_is_that_of_its_bytes() -> None:
    assert hash_of_text("ein Hündchen") == hashlib.sha256("ein Hündchen".encode()).hexdigest()
    assert hash_of_text("\udcc3") != hash_of_text("\udcc4")
