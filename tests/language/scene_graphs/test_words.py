from rungwise.language.scene_graphs import words as known


def listed() -> dict[str, frozenset[str]]:
    return {name: value for name, value in vars(known).items() if name.isupper() and isinstance(value, frozenset)}


def test_all_words_stand_in_lower_case_without_spaces_around_them():
    assert len(listed()) > 15
    for name, words in listed().items():
        assert all(word == word.lower().strip() != "" for word in words), name


def test_relations_of_several_words_have_names():
    for words, names in known.PHRASES.items():
        assert len(words) > 1, words
        assert names, words
        assert all(names), words


def test_lists_within_lists():
    assert known.TWO <= known.PARTITIVES
    assert known.KINDS <= known.PARTITIVES
    assert not known.SINGLE - known.DETERMINERS - known.NUMBERS.keys()
    assert all(word.endswith("ing") for word in known.TRANSITIVE)
    assert known.WHOLE_ROOTS.keys() <= set(known.WHOLE.values())


def test_what_counts_is_neither_a_thing_of_its_own_nor_a_word_of_place():
    assert not known.DETERMINERS & known.PREPOSITIONS
    assert not known.DETERMINERS & known.PRONOUNS
    assert all(value.isdigit() for value in known.NUMBERS.values())
