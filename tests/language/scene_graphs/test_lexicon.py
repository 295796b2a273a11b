import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rungwise.core import UserError
from rungwise.language.scene_graphs import _lexicon as lexicon
from rungwise.language.scene_graphs import kinds_of
from rungwise.language.scene_graphs._lexicon import form_of, guessed_kinds, usually

WATCHED = """
import pickle, sys
from unittest import mock
refused = mock.Mock(side_effect=AssertionError("unpickled"))
events = []
sys.addaudithook(lambda event, _: events.append(event) if event.startswith(("pickle.", "socket.")) else None)
with mock.patch.multiple(pickle, load=refused, loads=refused, Unpickler=refused):
    from rungwise.language.scene_graphs.chunking import parse
    print(len(parse("A blurkeling man qwertied two horsezz in the grassier grass.")) > 3, events)
"""


@pytest.fixture
def read_anew() -> Iterator[None]:
    """The lists are read when they are next asked for, and what a test made of them is forgotten."""
    for known in (lexicon._lists, kinds_of):
        known.cache_clear()
    yield
    for known in (lexicon._lists, kinds_of):
        known.cache_clear()


@pytest.mark.parametrize(
    ("word", "kind", "root"),
    [
        ("men", "noun", "man"),
        ("people", "noun", "person"),
        ("leaves", "noun", "leaf"),
        ("leaves", "verb", "leave"),
        ("glasses", "noun", "glasses"),
        ("riding", "verb", "ride"),
        ("thrown", "verb", "throw"),
        ("red", "adjective", "red"),
        ("quickly", "adverb", "quickly"),
    ],
)
def test_a_word_has_a_root_as_each_kind(word, kind, root):
    assert kinds_of(word)[kind] == root


def test_a_word_of_no_list_is_guessed_by_its_ending():
    assert not kinds_of("blurkels")
    assert guessed_kinds("blurkels") == {"noun": "blurkel"}
    assert guessed_kinds("blurked") == {"verb": "blurk", "adjective": "blurked"}
    assert guessed_kinds("blurkly") == {"adverb": "blurkly"}
    assert guessed_kinds("blur-ky") == {"adjective": "blur-ky", "noun": "blur-ky"}
    assert guessed_kinds("blurkess") == {"noun": "blurkess"}


@pytest.mark.parametrize("word", ["", "s", "ed", "ing", "ly", "-", "x"])
def test_a_guess_never_leaves_an_empty_root(word):
    assert all(root or not word for root in guessed_kinds(word).values())


def test_forms_of_verbs():
    forms = {word: form_of(word, kinds_of(word)) for word in ("ride", "rides", "riding", "rode", "ridden")}
    assert forms == {"ride": "", "rides": "s", "riding": "ing", "rode": "ed", "ridden": "ed"}


def test_what_a_word_mostly_is():
    assert usually("dog", "NN")
    assert usually("sits", "VBZ")
    assert not usually("dog", "VB")
    assert not usually("blurkels", "NN")


@pytest.mark.parametrize("module", ["lemminflect", "textblob"])
def test_a_missing_list_gets_one_line_that_says_what_to_install(module, monkeypatch, read_anew):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find(name))
    with pytest.raises(
        UserError, match=rf"^a scene graph needs {module}; run: pip install 'rungwise\[scene-graphs\]'$"
    ):
        kinds_of("dog")


def test_a_list_without_its_file_gets_one_line_that_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "textblob").mkdir()
    (tmp_path / "textblob" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "textblob", raising=False)
    with pytest.raises(UserError, match=r"en-lexicon.txt: not found, .*; run: pip install --force-reinstall textblob$"):
        lexicon._usual_tags()


@pytest.mark.slow
def test_nothing_is_unpickled_and_nothing_fetched():
    found = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "[]"]


def test_what_words_mostly_are_is_what_textblob_reads():
    from textblob.en import lexicon as theirs

    assert lexicon._lists().usual == dict(theirs.items())


def test_threads_that_ask_at_once_all_get_the_whole_lists(read_anew):
    with ThreadPoolExecutor(2) as pool:
        (size,) = set(pool.map(lambda _: len(lexicon._lists().usual), range(2)))
    assert size > 90_000
