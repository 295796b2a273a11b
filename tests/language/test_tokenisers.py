import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.data.gathering import clean_caption
from rungwise.language.tokenisers import ptb, unicode_words, whitespace

JAVA = {
    "": "",
    "Two men (one old) sit .": "two men -lrb- one old -rrb- sit",
    "He doesn't; they're 50% off!": "he does n't they 're 50 % off",
    'The dog\'s T-shirt -- from the U.S. - is "red".': "the dog 's t-shirt from the u.s. is red",
    "Mr. Smith cannot see 1,000 birds at 5:30": "mr. smith can not see 1,000 birds at 5:30",
    "Texas A&amp;M player ... and O'Clock": "texas a&m player and o'clock",
    "a fork.A pipe, and/or 1/2 of it": "a fork.a pipe and/or 1/2 of it",
}
"""Texts and what Stanford's PTBTokenizer 3.4.1, called as the captioning tools do, makes of them."""


@pytest.mark.parametrize("text", JAVA)
def test_ptb_equals_the_java_program(text):
    assert ptb(text) == JAVA[text].split()


def test_whitespace_keeps_punctuation():
    assert whitespace("A Man,  in a\that.") == ["a", "man,", "in", "a", "hat."]


def test_unicode_words_compose_and_fold():
    assert unicode_words("Zwei Ma\u0308nner auf der STRASSE") == ["zwei", "männer", "auf", "der", "strasse"]
    assert unicode_words("Straße") == ["strasse"]
    assert unicode_words("собака бежит!") == ["собака", "бежит"]
    assert unicode_words("ένας ΣΚΎΛΟΣ") == ["ένασ", "σκύλοσ"]
    assert unicode_words("कुत्ता दौड़ता है।") == ["कुत्ता", "दौड़ता".replace("ड़", "ड\u093c"), "है"]
    assert unicode_words("犬が走る") == ["犬", "が", "走", "る"]
    assert unicode_words("l’homme d'ici — oui…") == ["l’homme", "d'ici", "oui"]


@given(st.text())
def test_no_text_breaks_a_tokeniser(text):
    for tokeniser in (ptb, whitespace, unicode_words):
        for token in tokeniser(text):
            assert token
            assert not any(mark.isspace() for mark in token)


@pytest.mark.parametrize("tokeniser", [ptb, unicode_words, whitespace])
@pytest.mark.parametrize(
    "raw", ["A \x1b[31mred\0 dog.", "\x9b2J", "\ud83d", "A \udcff cat.", "\u202eA pup.", "\x1c\x85"]
)
def test_what_readers_let_through_gives_tokens_that_every_file_takes(tokeniser, raw):
    text, _ = clean_caption(raw)
    tokens = tokeniser(text)
    assert tokens or not any(character.isalpha() for character in text)
    "\0".join(tokens).encode()
    assert not any(character in token for token in tokens for character in "\0\x1b\x9b")
