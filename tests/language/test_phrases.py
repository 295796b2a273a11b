from rungwise.language import phrases_of, shared_phrases, typical_phrases

PRODUCTS = [
    f"{brand} {who} {colour} {what} {number}X"
    for number, (brand, who, colour, what) in enumerate(
        (brand, who, colour, what)
        for brand in ("Puma", "Nike", "Fila")
        for who in ("Men", "Women")
        for colour in ("Black", "Blue", "Red", "Green")
        for what in ("Running Shoes", "Analog Watch", "Flip Flops")
    )
]
JAPANESE = ["砂浜で遊ぶ子供", "砂浜で遊ぶ犬", "砂浜で遊ぶ女の人", "雪の中を走る犬", "公園の木", "赤い車", "古い家"]
RUSSIAN = [
    *("мальчик в красной куртке", "женщина в красной куртке", "мужчина в красной куртке"),
    *("собака на пляже", "дом у реки", "старый мост", "дети играют"),
]


def shared(texts: list[str], most: int = 4) -> tuple[str, ...]:
    return shared_phrases([phrases_of([text]) for text in texts], most)


def test_titles_of_products_give_what_several_have_and_no_title_and_no_number() -> None:
    found = shared(PRODUCTS, 5)
    assert {"Running Shoes", "Analog Watch", "Flip Flops"} <= set(found)
    assert not set(found) & set(PRODUCTS)
    assert not any(letter.isdigit() for phrase in found for letter in phrase)


def test_what_one_picture_alone_says_is_no_phrase() -> None:
    assert shared(["a red boat", "the old mill", "two white cats", "one more street"]) == ()
    assert shared([]) == ()


def test_a_word_that_nearly_all_have_says_nothing() -> None:
    assert shared([f"photo of {one}" for one in ("a cat", "a cat", "a dog", "a dog", "rain", "snow")]) == ("cat", "dog")


def test_names_of_files_are_no_phrases() -> None:
    assert shared(["IMG_1001", "IMG_1002", "IMG_1003", "DSC0001.jpg", "DSC0002.jpg", "holiday_beach_1.jpg"]) == ()


def test_no_two_share_a_word_and_the_commonest_writing_is_shown() -> None:
    texts = ["Old Bridge", "old bridge", "old bridge in rain", "new bridge", "a lake", "a hill", "a tree", "a wood"]
    assert shared(texts) == ("old bridge",)


def test_marks_part_phrases() -> None:
    assert ("dog", "cat") not in phrases_of(["a dog, cat"])
    assert ("dog", "cat") not in phrases_of(["a dog 7 cat"])
    assert ("t-shirt",) in phrases_of(["a T-Shirt."])


def test_scripts_without_blanks() -> None:
    assert shared(JAPANESE, 1) == ("砂浜で遊ぶ",)


def test_languages_of_which_nothing_is_known_here() -> None:
    assert shared(RUSSIAN, 1) == ("красной куртке",)


def test_a_group_is_called_by_what_its_members_share_and_others_lack() -> None:
    dogs = [phrases_of([f"a little dog on {place}"]) for place in ("grass", "sand", "snow")]
    usual = {phrase: 3 for one in dogs for phrase in one} | {("grass",): 9, ("sand",): 9, ("snow",): 9}
    assert next(iter(typical_phrases(dogs, usual, 30))) == "little dog"
    assert "grass" not in typical_phrases(dogs, usual, 30)


def test_long_texts_cost_no_more_than_their_beginning() -> None:
    assert len(phrases_of(["red boat " * 100_000])) == len(phrases_of(["red boat red boat red boat"]))
    assert len(phrases_of(map(str, ["red boat"] * 100_000))) == 3
