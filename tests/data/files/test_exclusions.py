from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from rungwise.core import UserError
from rungwise.data.files import IGNORE_FILE, Exclusions, read_exclusions


def is_left_out(lines: list[str], path: str) -> bool:
    """Whether a path or one of the folders around it is left out."""
    return Exclusions(lines, "exclude").leaves_out(path)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.png", ["a.png", "x/b.png", "d.png/a.jpg"], ["a.PNG", "a.png.jpg"]),
        ("drafts/", ["drafts/a.jpg", "x/drafts/a.jpg"], ["drafts", "drafts.jpg"]),
        ("/drafts", ["drafts/a.jpg", "drafts"], ["x/drafts"]),
        ("a/b", ["a/b", "a/b/c.jpg"], ["x/a/b", "a/bb"]),
        ("**/old/**", ["old/a.jpg", "x/old/y/a.jpg"], ["old", "x/old.jpg"]),
        ("IMG_*_edited*.jpg", ["IMG_1_edited.jpg", "x/IMG__edited2.jpg"], ["IMG_1.jpg"]),
        ("a/**/z.jpg", ["a/z.jpg", "a/b/c/z.jpg"], ["z.jpg", "b/a/z.jpg"]),
        ("[0-9]?.jpg", ["1a.jpg"], ["aa.jpg", "1.jpg", "1/.jpg"]),
        ("x[!a].jpg", ["xb.jpg"], ["xa.jpg", "x/.jpg"]),
        ("\\#a", ["#a"], ["a"]),
        ("# a", [], ["# a", "a"]),
        ("  ", [], ["a", " "]),
        ("*", ["a", "a/b"], []),
        ("Köln/", ["Ko\u0308ln/a.jpg"], ["Koln/a.jpg"]),
    ],
)
def test_patterns_mean_what_they_mean_to_git(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in (*yes, *no) if is_left_out([pattern], path)] == yes


def test_the_last_pattern_that_matches_decides() -> None:
    lines = ["*.jpg", "!keep*.jpg", "keep-not.jpg"]
    assert [is_left_out(lines, name) for name in ("a.jpg", "keep.jpg", "keep-not.jpg", "a.png")] == [
        True, False, True, False,
    ]  # fmt: skip
    assert [is_left_out(["/*", "!/a"], path) for path in ("a/x.jpg", "b/x.jpg")] == [False, True]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "*", "?", "/", "ab", "[ab]", "**/"]), min_size=1, max_size=7).map("".join),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join),
)
def test_a_pattern_matches_as_the_librarys_own_expression_does(pattern: str, path: str) -> None:
    # The library reads several ** beside * in one name otherwise than git.
    if "***" in pattern or "?**" in pattern or "]**" in pattern or "a**" in pattern or "b**" in pattern:
        return
    assert is_left_out([pattern], path) == bool(GitIgnoreSpec.from_lines([pattern]).match_file(path))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a*a*a*a*a*a*a*b", "a" * 255),
        ("*a" * 400, "a" * 255),
        ("*?*?*?*?*?b", "a" * 255),
        ("**/a/**/a/**/a/**/a/**/b", "/".join("a" * 2000)),
        ("**/a*a*a/**/a*a/**/b*b", "/".join(["a" * 100] * 40)),
        ("[a]*[a]*[a]*[a]*[a]*[b]", "a" * 255),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    """The library's own expressions would not come to an end here."""
    assert Exclusions([pattern], "exclude").verdict(path) is None


@pytest.mark.parametrize("line", ["a\\", "[z-a]", "x" * 1001])
def test_a_line_that_is_no_pattern_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pattern") as caught:
        Exclusions(["a", line], "exclude")
    assert "\n" not in str(caught.value)
    (tmp_path / IGNORE_FILE).write_text(f"a\n{line}\n")
    with pytest.raises(UserError, match="rungwiseignore, line 2: "):
        read_exclusions(tmp_path / IGNORE_FILE)


def test_there_are_bounds_and_line_ends_of_windows(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="more than 1000 patterns"):
        Exclusions(["a"] * 1001, "exclude")
    (tmp_path / IGNORE_FILE).write_bytes(b"\xef\xbb\xbf*.png\r\nb/\r\n")
    rules = read_exclusions(tmp_path / IGNORE_FILE)
    assert [rules.verdict(path) for path in ("a.png", "b/", "b")] == [True, True, None]
    (tmp_path / IGNORE_FILE).write_bytes(b"")
    assert read_exclusions(tmp_path / IGNORE_FILE).verdict("a") is None
