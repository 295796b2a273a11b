import re
from collections import Counter

import numpy as np
import pytest

from rungwise.scenes import SceneConfig, held_out_combinations, sample_picture, write_query
from rungwise.scenes._captions import write_captions
from rungwise.scenes._description import COLOURS, RELATIONS, SHAPES

SYNONYMS = {
    "disc": "circle",
    "plus sign": "cross",
    "crosses": "cross",
    "little": "small",
    "big": "large",
    "solid": "plain",
    "spotted": "dotted",
    "with dots": "dotted",
    "with stripes": "striped",
    "outlined": "hollow",
    "violet": "purple",
    "pale": "",
}
ATTRIBUTE_WORDS = {*SHAPES, *COLOURS, "small", "large", "plain", "striped", "dotted", "hollow"}


@pytest.fixture(scope="module")
def pictures():
    config = SceneConfig(captions_per_picture=6)
    held_out = held_out_combinations()
    return [sample_picture(config, number, held_out) for number in range(150)]


def test_every_caption_is_true_of_its_scene(pictures):
    for picture in pictures:
        for text, statement in picture.captions:
            assert statement.is_true_of(picture.scene), text


def test_words_say_what_the_statement_says(pictures):
    for picture in pictures:
        for text, statement in picture.captions:
            words = text
            for synonym, plain in SYNONYMS.items():
                words = re.sub(rf"\b{synonym}\b", plain, words)
            said = Counter(w for w in re.findall(r"[a-z]+", words.replace("discs", "circle")))
            for plural in SHAPES:
                said[plural] += 2 * said.pop(plural + "s", 0)
            stated = Counter(value for mention in statement.mentions for value in mention.stated.values())
            shared_by_two = text if re.search(r"\btwo (?!shapes[:,]|objects[:,])", text) else None
            for word in ATTRIBUTE_WORDS:
                if shared_by_two:
                    assert (said[word] > 0) == (stated[word] > 0), (text, word)
                else:
                    assert said[word] == stated[word], (text, word)
            counted = re.search(
                r"\b(three)\b|\btwo (shapes|objects)[:,]|\b(only|just|alone|nothing|among|of the)\b", text
            )
            if statement.count is None and len(picture.scene.objects) > 1:
                assert "three" not in text
            assert statement.count is None or counted, text


def test_grammar_of_articles(pictures):
    for picture in pictures:
        for text, _ in picture.captions:
            assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text), text
            assert "  " not in text
            assert text == text.strip()


def test_relation_words_name_the_stated_relation(pictures):
    words = {
        "left of": r"\bleft of\b",
        "right of": r"\bright of\b",
        "above": r"\b(above|over|upper)\b",
        "below": r"\b(below|under|beneath|lower)\b",
    }
    seen = set()
    for picture in pictures:
        for text, statement in picture.captions:
            stated = {name for name, _, _ in statement.relations}
            assert stated == {name for name in RELATIONS if re.search(words[name], text)}, text
            seen |= stated
    assert seen == set(RELATIONS)


def test_captions_of_a_picture_differ_where_they_can(pictures):
    for picture in pictures:
        if len(picture.scene.objects) > 1:
            assert len({text for text, _ in picture.captions}) == 6


def test_first_captions_do_not_depend_on_the_count(pictures):
    scene = pictures[0].scene
    few = write_captions(scene, 3, np.random.default_rng(5))
    assert few == write_captions(scene, 9, np.random.default_rng(5))[:3]


def test_query_names_both_kinds_and_is_true(pictures):
    rng = np.random.default_rng(0)
    for picture in pictures:
        if len(picture.scene.objects) > 1:
            text, statement = write_query(picture.scene, 0, 1, rng)
            a, b = picture.scene.objects[:2]
            assert statement.is_true_of(picture.scene)
            assert re.fullmatch(
                rf"an? ({a.size} )?{a.colour} {a.shape} (left of|right of|above|below) an? {b.colour} {b.shape}", text
            )
