import pytest

from rungwise.language.scene_graphs._tagging import tagged, tokens


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A man.", ["a", "man"]),
        ("A man...", ["a", "man"]),
        ("It isn't, is it?", ["it", "is", "n't", ",", "is", "it"]),
        ("It can't, won't and cannot", ["it", "can", "n't", ",", "will", "n't", "and", "can", "not"]),
        ("the man’s T-shirt", ["the", "man", "'s", "t-shirt"]),
        ("a dog &amp; a cat", ["a", "dog", "&", "a", "cat"]),
        ("12 red balls", ["12", "red", "balls"]),
        ("two hot dogs", ["two", "hot dogs"]),
        ("a dog\n on\ta\u00a0mat", ["a", "dog", "on", "a", "mat"]),
        ("😀 _ # \x00", []),
        ("", []),
        (".", []),
    ],
)
def test_tokens(caption, expected):
    assert tokens(caption) == expected


@pytest.mark.parametrize(
    ("caption", "kinds"),
    [
        ("two red balls", ["number", "adjective", "noun"]),
        ("the man's hat", ["determiner", "noun", "owner", "noun"]),
        ("it's red", ["pronoun", "be", "adjective"]),
        ("a snow covered mountain", ["determiner", "adjective", "adjective", "noun"]),
        ("that umbrella", ["determiner", "noun"]),
        ("a dog that barks", ["determiner", "noun", "who", "verb"]),
        ("an orange", ["determiner", "noun"]),
        ("an orange ball", ["determiner", "adjective", "noun"]),
        ("two dogs like balls", ["number", "noun", "preposition", "noun"]),
        ("someone", ["noun"]),
        ("a dog: a cat", ["determiner", "noun", "comma", "determiner", "noun"]),
    ],
)
def test_kinds(caption, kinds):
    assert [word.kind for word in tagged(tokens(caption))] == kinds


def test_roots_and_numbers():
    words = tagged(tokens("Seven women were riding 3 ponies"))
    assert [word.root for word in words] == ["7", "woman", "were", "ride", "3", "pony"]
    assert [word.form for word in words if word.kind in ("noun", "verb")] == ["s", "ing", "s"]


def test_no_words_are_no_words():
    assert tagged([]) == []
