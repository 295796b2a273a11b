import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.data.layouts import clean_caption
from rungwise.language import tokenisers
from rungwise.language.tokenisers import character_bigrams, icu_words, ptb, unicode_words, whitespace

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
    for tokeniser in (ptb, whitespace, unicode_words, character_bigrams, icu_words):
        for token in tokeniser(text):
            assert token
            assert not any(mark.isspace() for mark in token)


UNSPACED = {
    "Chinese": ("一只棕色的狗在草地上奔跑。", "一只 棕色 的 狗 在 草地 上 奔跑"),
    "Japanese": ("茶色い犬が草の上を走っている。", "茶色い 犬 が 草 の 上 を 走 って いる"),
    "katakana": ("コーヒーを飲む", "コーヒー を 飲む"),
    "repetition": ("人々が公園で遊ぶ", "人々 が 公園 で 遊ぶ"),
    "Thai": ("สุนัขสีน้ำตาลกำลังวิ่งอยู่บนหญ้า", "สุนัข สี น้ำตาล กำลัง วิ่ง อยู่ บน หญ้า"),
    "Lao": ("ໝາແລ່ນ", "ໝາ ແລ່ນ"),
    "Khmer": ("ឆ្កែកំពុងរត់", "ឆ្កែ កំពុង រត់"),
}
"""Sentences, and their words as a reader of the language would part them, but for Japanese endings."""


@pytest.mark.parametrize("language", UNSPACED)
def test_icu_finds_words_where_no_spaces_part_them(language):
    text, words = UNSPACED[language]
    assert icu_words(text) == words.split()
    assert icu_words(f"A dog, {text} U-Bahn") == ["a", "dog", *words.split(), "u-bahn"]


@pytest.mark.parametrize("language", UNSPACED)
def test_tokens_of_unspaced_scripts_hold_every_character(language):
    text = UNSPACED[language][0].rstrip("。")
    characters = unicode_words(text)
    assert "".join(icu_words(text)) == "".join(characters)
    assert character_bigrams(text) == [one + other for one, other in pairwise(characters)]


@given(st.text("abc ABC-'ß ü1,."))
def test_where_words_are_parted_all_tokenisers_of_any_script_agree(text):
    assert icu_words(text) == character_bigrams(text) == unicode_words(text)


def test_a_character_that_stands_alone_is_a_token():
    assert character_bigrams("犬 runs 犬が") == ["犬", "runs", "犬が"]


def test_german_words_stay_whole():
    assert icu_words("Die Männer fahren U-Bahn, 3 Straßen weit.") == [
        "die",
        "männer",
        "fahren",
        "u-bahn",
        "3",
        "strassen",
        "weit",
    ]


def test_without_icu_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    tokenisers._breaker.cache_clear()
    with pytest.raises(UserError) as caught:
        icu_words("犬が走る")
    tokenisers._breaker.cache_clear()
    assert "pip install 'rungwise[languages]'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tokeniser", [ptb, unicode_words, whitespace, character_bigrams, icu_words])
@pytest.mark.parametrize(
    "raw", ["A \x1b[31mred\0 dog.", "\x9b2J", "\ud83d", "A \udcff cat.", "\u202eA pup.", "\x1c\x85"]
)
def test_what_readers_let_through_gives_tokens_that_every_file_takes(tokeniser, raw):
    text, _ = clean_caption(raw)
    tokens = tokeniser(text)
    assert tokens or not any(character.isalpha() for character in text)
    "\0".join(tokens).encode()
    assert not any(character in token for token in tokens for character in "\0\x1b\x9b")
