import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import Limits, UserError
from rungwise.index import LESS, GivenPicture, Query, Term, Words, parse_query
from rungwise.index.query import _parser as parser
from tests.colour_model import COLOURS, picture_bytes


def parts(text: str) -> list[tuple[str, float]]:
    query = parse_query(text, pictures=False)
    assert all(isinstance(term.what, Words) for term in query.terms)
    return [(term.what.text, term.weight) for term in query.terms]


@pytest.mark.parametrize(
    "text",
    [
        "two dogs running through snow",
        "  spaces  stay ",
        "a black-and-white photo",
        "t-shirt",
        "-5 degrees",
        "at -5 degrees",
        "temperature - 5",
        "5 - 3 equals 2",
        "a -- b",
        "a – b",
        "Sunset — Hawaii",
        "C++ book",
        "A+ grade",
        "a 5* hotel",
        "2:30 on a clock",
        "16:9 picture",
        "4*4 truck",
        "dog -",
        "+",
        'a man with "hello" on his shirt',
        'a 24" monitor',
        "the dogs' park",
        "rock 'n' roll",
        "dog.jpg",
        "no parking sign",
        "a sign that says no smoking",
        "a street with no parking sign",
        "a knot in a rope",
        "forget-me-not flowers",
        "not only dogs",
        "a dog not far from a house",
        "nothing but sand",
        "no",
        "without people",
        "дом у моря",
        "一隻狗",
    ],
)
def test_plain_words_stay_as_they_were_typed(text: str) -> None:
    assert parse_query(text, pictures=False) == Query((Term(Words(text)),))
    assert parse_query(text, pictures=False).reading == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"beach" - "people"', [("beach", 1), ("people", -LESS)]),
        ('"beach"-"people"+"dog"', [("beach", 1), ("people", -LESS), ("dog", 1)]),
        ("beach - people", [("beach", 1), ("people", -LESS)]),
        ("dog -cat +bird", [("dog", 1), ("cat", -LESS), ("bird", 1)]),
        ("一隻狗 - 貓", [("一隻狗", 1), ("貓", -LESS)]),
        ("“a beach” − „people“ + «sun»", [("a beach", 1), ("people", -LESS), ("sun", 1)]),
        ("'a dog' - 'the dog's ball'", [("a dog", 1), ("the dog's ball", -LESS)]),
        ('2*"red" + boat', [("red", 2), ("boat", 1)]),
        ("2:red boat + 0,5*sea", [("red boat", 2), ("sea", 0.5)]),
        ('"red"*2 - 3 * blue', [("red", 2), ("blue", -3)]),
        ('"a man" - 2*"hat"', [("a man", 1), ("hat", -2)]),
        ('-2*"red" + dog', [("red", -2), ("dog", 1)]),
        ("-cat", [("cat", -LESS)]),
        ("a + - b", [("a", 1), ("b", -LESS)]),
        ('"beach" "dog"', [("beach", 1), ("dog", 1)]),
        ('"a - b" - c', [("a - b", 1), ("c", -LESS)]),
        ('"a man without a hat"', [("a man without a hat", 1)]),
        (r'"a \"big\" dog" - cat', [('a "big" dog', 1), ("cat", -LESS)]),
        ('24" monitor - 27" tv', [('24" monitor', 1), ('27" tv', -LESS)]),
        ("t-shirt - red", [("t-shirt", 1), ("red", -LESS)]),
        ("a beach without people", [("a beach", 1), ("people", -LESS)]),
        ("2*a beach without people", [("a beach", 2), ("people", -2 * LESS)]),
        ("a beach without people + dog", [("a beach", 1), ("people", -LESS), ("dog", 1)]),
    ],
)
def test_signs_weights_and_quotes_take_a_query_apart(text: str, expected: list) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "\n", "0*dog", "a - 999999999*b", "a" * (Limits.query_characters + 1)])
def test_what_cannot_be_searched_for_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as error:
        parse_query(text)
    assert "\n" not in str(error.value)


def test_too_many_parts_are_refused() -> None:
    with pytest.raises(UserError, match="40 parts; at most 32"):
        parse_query(" + ".join(["a"] * 40))


@given(st.text(alphabet="ab -+*:2\"'“”\\.,", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        query = parse_query(text, pictures=False)
    except UserError:
        return
    assert query.terms
    assert "\n" not in query.reading


@pytest.mark.parametrize(
    "marks", ['""', "''", "“”", "„“", "„”", "””", "““", "«»", "»«", "»»", "‹›", "›‹", "››", "「」", "『』", "＂＂",
              "〝〞", "〝〟", "‘’", "’’", "‚‘", "‚’"]
)  # fmt: skip
def test_quotation_marks_of_any_language_quote(marks: str) -> None:
    first, last = marks
    assert parts(f"{first}en hund - utan snö{last}") == [("en hund - utan snö", 1.0)]
    assert parts(f"{first} un chien {last} - {first}snö{last}") == [("un chien", 1.0), ("snö", -LESS)]
    assert parts(f"{first}en hund{last} {first}snö{last}") == [("en hund", 1.0), ("snö", 1.0)]
    assert parts(f"2*{first}no people{last} + boat") == [("no people", 2.0), ("boat", 1.0)]


@pytest.mark.parametrize(
    "text", ["a 12” x 14” photo", "rock ’n’ roll", "the dog’s ball", "”", "”a", "‘tis", "a ”", "» a"]
)
def test_marks_that_quote_nothing_stay(text: str) -> None:
    assert parts(text) == [(text, 1.0)]


def slow_end_of_quote(text: str, at: int) -> int:
    """Where a quotation that opens here ends, looked for letter by letter from each mark that may open one."""
    for closing in parser._QUOTES.get(text[at]) or parser._SINGLE.get(text[at]) or ():
        for place in range(at + 1, len(text)):
            if text[place] not in closing or text[place - 1] == "\\":
                continue
            if text[place] not in "'‘’" or not text[place + 1 : place + 2].isalnum():
                return place + 1 if text[at + 1 : place].strip() else 0
    return 0


@given(st.text(alphabet="ab \"'“”„«»‹›「」『』＂〝〞〟‘’‚\\", min_size=1, max_size=30))
def test_ends_of_quotations_are_looked_up_as_they_would_be_found_one_by_one(text: str) -> None:
    closing = parser._closing_marks(text)
    found = [parser._end_of_quote(text, at, closing) for at in range(len(text))]
    assert found == [slow_end_of_quote(text, at) for at in range(len(text))]


@given(st.text(alphabet=st.characters(categories=["L"]), min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_in_quotes_any_text_is_one_part(first: str, second: str) -> None:
    quoted = second.replace("\\", "").replace('"', "")
    if quoted.strip():
        assert parts(f'{first} - "{quoted}"')[-1] == (quoted.strip(), -LESS)


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("dog.jpg", "my cat.PNG"):
        (tmp_path / name).write_bytes(picture_bytes(COLOURS["red"]))
    return tmp_path


def test_names_of_pictures_that_exist_are_pictures(pictures: Path) -> None:
    dog, cat = GivenPicture(Path("dog.jpg"), "dog.jpg"), GivenPicture(Path("my cat.PNG"), "my cat.PNG")
    assert parse_query("dog.jpg").terms == (Term(dog),)
    assert parse_query('dog.jpg "my cat.PNG"').terms == (Term(dog), Term(cat))
    assert parse_query('"beach" + 2*dog.jpg - "my cat.PNG"').terms == (
        Term(Words("beach")),
        Term(dog, 2.0),
        Term(cat, -LESS),
    )
    assert [term.what for term in parse_query("a boat dog.jpg at sea").terms] == [Words("a boat"), dog, Words("at sea")]
    assert parse_query(str(pictures / "dog.jpg")).reading == f"pictures like the picture {pictures / 'dog.jpg'}"


def test_no_file_is_opened_where_that_is_not_allowed(pictures: Path) -> None:
    assert parse_query("dog.jpg", pictures=False).terms == (Term(Words("dog.jpg")),)
    assert parse_query("beach + dog.jpg", pictures=False).terms == (Term(Words("beach")), Term(Words("dog.jpg")))
    assert parse_query("beach + dgo.jpg", pictures=False).notes == ()


def test_a_misspelt_file_is_said(pictures: Path) -> None:
    for text in ("beach + dgo.jpg", "./dgo.jpg", "dog.jpg dgo.jpg"):
        with pytest.raises(UserError, match="dgo.jpg: no such picture file; did you mean dog.jpg\\?"):
            parse_query(text)
    alone = parse_query("dgo.jpg")
    assert alone.terms == (Term(Words("dgo.jpg")),)
    assert "did you mean dog.jpg" in alone.notes[0]
    (note,) = parse_query("zzzzzz.jpg").notes
    assert note == "zzzzzz.jpg: no such picture file; correct the name; searched for as words"
    with pytest.raises(UserError, match="addresses are not fetched"):
        parse_query("https://example.org/dog.jpg + snow")


class Counted(str):
    """A text that counts how many of its letters were copied."""

    copied = 0
    __slots__ = ()

    def __getitem__(self, at: object) -> str:
        found = super().__getitem__(at)  # type: ignore[index]
        Counted.copied += len(found)
        return found


@pytest.mark.parametrize(
    "repeated",
    ["“ ", "” ", "”", "“", "„ “ ” « » ", "'a ", "' ", '"a" ', '\\"', "no , ", "without ", "a without b ", "+ ", "-a ",
     "+“", "\u3000", "\u00a0", "\n", "2* ", "- 9 ", "a.jpg ", "‘’a", "a,"],
)  # fmt: skip
def test_a_text_is_read_in_time_that_grows_as_its_length(repeated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps, and letters that are copied, are counted for a text and for one of four times its length."""

    def work(length: int) -> int:
        steps = 0

        def step(*_: object) -> object:
            nonlocal steps
            steps += 1
            return step

        text = Counted(("a " + repeated * length)[:length])
        Counted.copied, before = 0, sys.gettrace()
        sys.settrace(step)
        try:
            with suppress(UserError):
                parse_query(text, pictures=False)
        finally:
            sys.settrace(before)
        return steps + Counted.copied

    assert work(1600) < 5 * work(400)
