import os
from collections import Counter
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.language.scene_graphs import Synonyms, wordnet_folder
from rungwise.language.scene_graphs._synonyms import _OWN

INDEX = {
    "noun": [
        "  1 This software and database is being provided to you by nobody.",
        "dog n 2 5 @ ~ #m #p %p 2 1 02084071 10114209  ",
        "domestic_dog n 1 2 @ ~ 1 0 02084071  ",
        "frump n 1 1 @ 1 0 10114209  ",
        "cur n 1 0 1 0 02084099  ",
    ],
    "verb": ["sprint v 1 2 @ + 1 0 02082690  ", "race v 1 2 @ + 1 0 02082690  "],
    "adj": ["crimson a 1 1 & 1 0 00381097  ", "red a 1 1 & 1 1 00381097  "],
    "adv": ["quickly r 1 1 ! 1 1 00085811  "],
}
"""Entries in the form of WordNet 3.0's index files."""


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    folder = tmp_path / "dict"
    folder.mkdir()
    for kind, lines in INDEX.items():
        (folder / f"index.{kind}").write_text("\n".join([*lines, ""]))
    return folder


@pytest.fixture
def nowhere(monkeypatch, tmp_path: Path) -> Path:
    """A machine without WordNet."""
    monkeypatch.setattr("rungwise.language.scene_graphs._synonyms._PLACES", ())
    for name in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_word_stands_in_one_line_of_the_own_list():
    assert max(Counter(word for line in _OWN for word in line.split()).values()) == 1


def test_words_of_the_own_list():
    own = Synonyms.own()
    assert own.same("kid", "child")
    assert own.same("plus sign", "cross")
    assert own.same("blurkel", "blurkel")
    assert not own.same("kid", "baby")
    assert not own.same("blurkel", "dog")
    assert own.of("blurkel") == frozenset()


def test_words_of_one_set_of_wordnet_mean_the_same(wordnet):
    found = Synonyms.wordnet(wordnet)
    assert found.same("dog", "domestic dog")
    assert found.same("dog", "frump")
    assert found.same("race", "sprint")
    assert not found.same("domestic dog", "frump")  # each of them is the dog in another sense
    assert not found.same("cur", "dog")
    assert not found.same("software", "database")
    assert found.same("kid", "child")
    assert found.same("dog", "puppy")


def test_a_set_of_nouns_is_none_of_verbs_with_the_same_place(wordnet):
    with (wordnet / "index.verb").open("a") as file:
        file.write("bark v 1 0 1 0 02084071  \n")
    assert not Synonyms.wordnet(wordnet).same("bark", "dog")


def test_the_fingerprint_is_that_of_what_was_read(wordnet):
    before = Synonyms.wordnet(wordnet)
    assert before.fingerprint == Synonyms.wordnet(str(wordnet)).fingerprint != Synonyms.own().fingerprint
    with (wordnet / "index.noun").open("a") as file:
        file.write("hound n 1 0 1 0 02084099  \n")
    after = Synonyms.wordnet(wordnet)
    assert after.fingerprint != before.fingerprint
    assert after.same("hound", "cur")
    assert not before.same("hound", "cur")


@pytest.mark.parametrize(
    "line",
    ["dog", "dog n", "dog n x 0 1 0 1", "dog n 2 0 1 0 02084071", "dog n 1 -3 1 0 02084071", "dog n 1 0 1 0 wolf",
     "dog n 1 99 @ 1 0 02084071", "\x00\x01", "{"],
)  # fmt: skip
def test_a_damaged_line_gets_one_line_with_its_place(line, wordnet):
    (wordnet / "index.adj").write_text(f"{INDEX['adj'][0]}\n{line}\n")
    with pytest.raises(UserError) as caught:
        Synonyms.wordnet(wordnet)
    assert str(caught.value) == (
        f"{wordnet / 'index.adj'}, line 2: is no entry of WordNet's index; give the folder of its dictionary files"
    )


def test_a_missing_file_and_a_missing_folder_get_one_line(wordnet):
    (wordnet / "index.adv").unlink()
    for folder in (wordnet, wordnet / "nothing"):
        with pytest.raises(UserError, match=r"index\.noun, .* not found; give the folder of WordNet's dictionary"):
            Synonyms.wordnet(folder)


def test_bytes_that_are_no_text_get_one_line(wordnet):
    (wordnet / "index.noun").write_bytes(b"dog n \xff\xfe\n")
    with pytest.raises(UserError) as caught:
        Synonyms.wordnet(wordnet)
    assert str(wordnet / "index.noun") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_wordnet_the_own_list_is_what_there_is(nowhere):
    assert wordnet_folder() is None
    assert Synonyms.installed().fingerprint == Synonyms.own().fingerprint


@pytest.mark.parametrize("name", ["WNSEARCHDIR", "WNHOME", "NLTK_DATA"])
def test_wordnet_is_found_where_a_variable_says(name, wordnet, nowhere, monkeypatch):
    folder = wordnet
    if name == "WNHOME":
        monkeypatch.setenv(name, str(wordnet.parent))
    elif name == "NLTK_DATA":
        folder = nowhere / "data/corpora/wordnet"
        folder.parent.mkdir(parents=True)
        folder.symlink_to(wordnet)
        monkeypatch.setenv(name, os.pathsep.join(("/nothing/here", str(nowhere / "data"))))
    else:
        monkeypatch.setenv(name, str(wordnet))
    assert wordnet_folder() == folder
    assert Synonyms.installed().same("race", "sprint")


def test_a_folder_without_all_files_is_not_taken(wordnet, nowhere, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(wordnet))
    (wordnet / "index.adv").unlink()
    assert wordnet_folder() is None
