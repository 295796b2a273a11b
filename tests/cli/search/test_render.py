import json
from dataclasses import replace
from pathlib import Path

from rich.cells import cell_len

from rungwise.calibration import RUNGS, UNJUDGED_RUNGS
from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.index import End

DOG = SearchedPage(
    "dogs/a dog.jpg",
    "/photos/dogs/a dog.jpg",
    0.31234,
    ("a black dog and a spotted dog are fighting on the pavement while a man looks on", "two dogs"),
    {"width": 500, "height": 333, "taken": "2005-07-02T10:11:12", "bytes": 9, "hash": "c0ffee", "year": 2005,
     "tags": ("dog", "street"), "price": 3.5, "sold": True, "shop": "Rome\nTermini"},
)  # fmt: skip
PLAIN = SearchedPage("b.jpg", "/photos/b.jpg", 0.2)
HERE = Path("/photos")


def lines(*hits: SearchedPage, width: int | None = 80, **other: object) -> list[str]:
    return list(SearchOutput("", hits, **other).lines(width, HERE))  # type: ignore[arg-type]


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
    several = SearchedPage("b.jpg", "/photos/b.jpg", 0.2, ("An animal.", "A dog, in SNOW.", "Snow."))
    assert list(SearchOutput("a dog in snow", (several,)).lines(80, HERE))[-1].strip() == "A dog, in SNOW. (+2)"
    assert list(SearchOutput("", (several,)).lines(80, HERE))[-1].strip() == "An animal. (+2)"


def test_wide_letters_and_codes_of_terminals_keep_their_place() -> None:
    wide = SearchedPage("犬" * 60, "/photos/" + "犬" * 60, 0.5, ("\x1b[31m" + "犬" * 60,))
    shown = lines(wide)
    assert all(cell_len(line) <= 80 for line in shown)
    assert "\x1b" not in "".join(shown)
    assert shown[1].startswith("  1  0.500  …犬")
    assert shown[2].endswith("…")


def test_ids_that_are_no_part_of_a_path_stand_beside_it() -> None:
    coco = SearchedPage("42", "/photos/val/000000000043.jpg", 0.5)
    assert lines(coco) == ["  1  0.500  42  val/000000000043.jpg"]
    assert lines(SearchedPage("7", None, 0.5)) == ["  1  0.500  7"]


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
    odd = SearchedPage("\udcff.jpg", None, None, (), {"score": 3, "price": float("nan"), "tags": ("a", "b")})
    text = SearchOutput("hünde", (DOG, odd), unknown_words=(("sneakers", ("shoes",)),), more=True).as_json()
    assert text.isascii()
    read = json.loads(text)
    assert list(read) == ["query", "hits", "unknown", "more"]
    assert read["query"] == "hünde"
    assert read["hits"][0] | {"width": 500, "shop": "Rome\nTermini", "tags": ["dog", "street"]} == read["hits"][0]
    assert read["hits"][0]["captions"] == list(DOG.captions)
    assert read["hits"][1] == {"id": "\udcff.jpg", "path": None, "score": None, "captions": [], "price": None,
                               "tags": ["a", "b"]}  # fmt: skip
    assert read["unknown"] == [{"word": "sneakers", "near": ["shoes"]}]


def judged(rungs: tuple[int, ...], shown: int, **other: object) -> SearchOutput:
    hits = tuple(
        SearchedPage(f"{place}.jpg", f"/photos/{place}.jpg", 0.5, rung=rung, degree=0.25)
        for place, rung in enumerate(rungs)
    )
    advice = () if shown else ("try other words",)
    end = End(rungs, (0.25,) * len(rungs), shown=shown, belief=0.5, source="grades", advice=advice)
    return SearchOutput("", hits, end=end, **other)  # type: ignore[arg-type]


def said(answered: SearchOutput, *, everything: bool = False) -> list[str]:
    return [line.split("  0.5")[0].strip() for line in answered.lines(80, HERE, everything=everything)]


def test_bands_have_names_and_then_relevance_ends() -> None:
    answered = judged((1, 1, 2, 4, 4), 3, more=True)
    assert said(answered) == [
        "files in .", "exactly", "1", "2", "close", "3", "-- relevance ends here --",
        "2 more, less related: --all shows them",
    ]  # fmt: skip
    assert said(answered, everything=True)[6:] == ["-- relevance ends here --", "4", "5"]
    assert [hit.id for hit in answered.until_end().hits] == ["0.jpg", "1.jpg", "2.jpg"]
    assert answered.has_ended


def test_an_answer_within_the_end_says_nothing_of_it() -> None:
    answered = judged((1, 3), 7, more=True)
    assert said(answered) == ["files in .", "exactly", "1", "loosely related", "2"]
    assert not answered.has_ended
    last = judged((3, 3), 2, more=True)
    assert said(last)[-2:] == ["-- relevance ends here --", "some more, less related: --all shows them"]
    assert said(judged((3, 3), 2))[-1] == "-- relevance ends here --"


def test_a_page_beyond_the_end_says_where_it_was() -> None:
    later = judged((4, 4), 3, first=11)
    assert said(later) == ["relevance ends after 3", "2 more, less related: --all shows them"]
    assert said(later, everything=True)[1:] == ["relevance ends after 3", "11", "12"]


def test_nothing_relevant_comes_with_what_to_try() -> None:
    nothing = judged((4, 4), 0)
    assert said(nothing) == ["nothing relevant found", "try other words", "2 more, less related: --all shows them"]
    shown = said(nothing, everything=True)
    assert shown[1:] == ["nothing relevant found", "try other words", "-- less related --", "1", "2"]


def test_programs_get_the_hits_with_their_bands() -> None:
    answered = judged((2, 4), 1, more=True, folded={"0.jpg": ("b.jpg",), "1.jpg": ("c.jpg",)})
    read = json.loads(answered.as_json())
    assert [(hit["rung"], hit["band"], hit["degree"]) for hit in read["hits"]] == [(2, "close", 0.25), (4, "", 0.25)]
    end = {"shown": 1, "left_out": 0, "nothing": False, "belief": 0.5, "source": "grades", "names": list(RUNGS),
           "remark": "", "advice": []}  # fmt: skip
    assert (read["end"], read["more"]) == (end, True)
    before = json.loads(answered.until_end().as_json())
    assert ([hit["id"] for hit in before["hits"]], before["folded"]) == (["0.jpg"], {"0.jpg": ["b.jpg"]})
    assert (before["end"], "more" in before) == (end | {"left_out": 1}, False)
    plain = SearchOutput("", (PLAIN,))
    assert "end" not in json.loads(plain.as_json())
    assert plain.until_end() == plain


def test_without_judgements_no_hit_is_called_exact_and_it_is_said_where_none_stands_out() -> None:
    def unjudged(rungs: tuple[int, ...], remark: str = "", first: int = 1) -> SearchOutput:
        judged_by_people = judged(rungs, sum(rung < 4 for rung in rungs), first=first)
        assert judged_by_people.end is not None
        end = replace(judged_by_people.end, names=UNJUDGED_RUNGS, remark=remark)
        hits = tuple(replace(hit, names=UNJUDGED_RUNGS) for hit in judged_by_people.hits)
        return replace(judged_by_people, hits=hits, end=end)

    assert said(unjudged((1, 2, 3)))[1:] == ["best matches", "1", "good matches", "2", "further matches", "3",
                                             "-- relevance ends here --"]  # fmt: skip
    poor = unjudged((2, 3), "none stands out")
    assert said(poor)[:3] == ["files in .", "none stands out", "good matches"]
    assert "none stands out" not in said(unjudged((2, 3), "none stands out", first=11))
    read = json.loads(poor.as_json())
    assert [hit["band"] for hit in read["hits"]] == ["good", "further"]
    assert (read["end"]["names"], read["end"]["remark"]) == (["best", "good", "further"], "none stands out")
    assert said(unjudged((4, 4), "nothing is much like it here"))[0] == "nothing is much like it here"
