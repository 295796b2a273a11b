from rungwise.index import Item
from rungwise.language import phrases_of, shared_phrases
from rungwise.serving.state._texts_of_items import texts_of


def test_holiday_photos_without_captions_are_called_by_their_folders() -> None:
    items = [
        Item(
            str(n),
            None,
            columns={"file": f"IMG_{n}.JPG", "folder": f"2023 Italy/{('Rome', 'Pisa')[n % 2]}", "hash": "a b"},
        )
        for n in range(10)
    ]
    captions, columns, folders = texts_of(items)
    assert not any(captions)
    assert not any(columns)
    assert shared_phrases([phrases_of(one) for one in folders], 4) == ("Pisa", "Rome")
