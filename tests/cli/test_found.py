import json
from pathlib import Path

from rich.cells import cell_len

from rungwise.cli.found import Answered, Shown

DOG = Shown(
    "dogs/a dog.jpg",
    "/photos/dogs/a dog.jpg",
    0.31234,
    ("a black dog and a spotted dog are fighting on the pavement while a man looks on", "two dogs"),
    {"width": 500, "height": 333, "taken": "2005-07-02T10:11:12", "bytes": 9, "hash": "c0ffee", "year": 2005,
     "tags": ("dog", "street"), "price": 3.5, "sold": True, "shop": "Rome\nTermini"},
)  # fmt: skip
PLAIN = Shown("b.jpg", "/photos/b.jpg", 0.2)
HERE = Path("/photos")


def lines(*hits: Shown, width: int | None = 80, **other: object) -> list[str]:
    return list(Answered("", hits, **other).lines(width, HERE))  # type: ignore[arg-type]


def test_a_hit_takes_two_lines_of_a_terminal_at_most() -> None:
    assert lines(DOG, PLAIN) == [
        "files in .",
        "  1  0.312  dogs/a dog.jpg                                   2005-07-02  500x333",
        "            a black dog and a spotted dog are fighting on the pavement while a…",
        "  2  0.200  b.jpg",
    ]
    assert max(map(len, lines(DOG, PLAIN))) <= 80


def test_a_pipe_gets_everything_and_facts_stay_on_the_first_line() -> None:
    assert lines(DOG, width=None)[1:] == [
        "  1  0.312  dogs/a dog.jpg  2005-07-02  500x333",
        "            a black dog and a spotted dog are fighting on the pavement while a man looks on (+1)"
        "  tags: dog, street  price: 3.5  sold: yes  shop: Rome Termini",
    ]


def test_of_several_captions_the_one_is_shown_that_says_what_was_asked_for() -> None:
    several = Shown("b.jpg", "/photos/b.jpg", 0.2, ("An animal.", "A dog, in SNOW.", "Snow."))
    assert list(Answered("a dog in snow", (several,)).lines(80, HERE))[-1].strip() == "A dog, in SNOW. (+2)"
    assert list(Answered("", (several,)).lines(80, HERE))[-1].strip() == "An animal. (+2)"


def test_wide_letters_and_codes_of_terminals_keep_their_place() -> None:
    wide = Shown("犬" * 60, "/photos/" + "犬" * 60, 0.5, ("\x1b[31m" + "犬" * 60,))
    shown = lines(wide)
    assert all(cell_len(line) <= 80 for line in shown)
    assert "\x1b" not in "".join(shown)
    assert shown[1].startswith("  1  0.500  …犬")
    assert shown[2].endswith("…")


def test_ids_that_are_no_part_of_a_path_stand_beside_it() -> None:
    coco = Shown("42", "/photos/val/000000000043.jpg", 0.5)
    assert lines(coco) == ["  1  0.500  42  val/000000000043.jpg"]
    assert lines(Shown("7", None, 0.5)) == ["  1  0.500  7"]


def test_what_is_odd_is_said_around_the_hits() -> None:
    shown = lines(
        PLAIN,
        unknown=("the model does not know 'sneakers'; near words it knows: shoes",),
        reading='pictures like "a", less like "b"',
        notes=("full text found 2",),
        folded={"b.jpg": ("c.jpg", "d.jpg")},
        captions=(("a dog", 0.5),),
        first=11,
    )
    assert shown[:2] == [
        "the model does not know 'sneakers'; near words it knows: shoes",
        'read as: pictures like "a", less like "b"',
    ]
    assert shown[3].startswith(" 11  0.200  b.jpg")
    assert shown[3].endswith("  +2 alike")
    assert shown[4:] == ["score  caption", "0.500  a dog", "full text found 2"]
    assert lines() == ["nothing found"]


def test_json_has_the_columns_as_keys_of_the_hit() -> None:
    odd = Shown("\udcff.jpg", None, None, (), {"score": 3, "price": float("nan"), "tags": ("a", "b")})
    text = Answered("hünde", (DOG, odd), unknown_words=(("sneakers", ("shoes",)),), more=True).as_json()
    assert text.isascii()
    read = json.loads(text)
    assert list(read) == ["query", "hits", "unknown", "more"]
    assert read["query"] == "hünde"
    assert read["hits"][0] | {"width": 500, "shop": "Rome\nTermini", "tags": ["dog", "street"]} == read["hits"][0]
    assert read["hits"][0]["captions"] == list(DOG.captions)
    assert read["hits"][1] == {"id": "\udcff.jpg", "path": None, "score": None, "captions": [], "price": None,
                               "tags": ["a", "b"]}  # fmt: skip
    assert read["unknown"] == [{"word": "sneakers", "near": ["shoes"]}]
