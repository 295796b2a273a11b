from pathlib import Path

from rungwise.index import Index
from rungwise.serving.state._picture_cache import PictureCache
from tests.colour_model import ColourModel, colour_pictures


def test_pictures_are_looked_up_once(tmp_path: Path) -> None:
    index = Index.build(colour_pictures(tmp_path / "photos", ["red", "blue", "green"]), ColourModel(), tmp_path / "i")
    looked, found = [], index.found

    def counted(ids: list[str]) -> dict[str, object]:
        looked.append(list(ids))
        return found(ids)

    index.found = counted  # type: ignore[method-assign]
    at_hand = PictureCache(index, most=2)
    assert list(at_hand(["1-blue", "none", "0-red"])) == ["1-blue", "0-red"]
    assert list(at_hand(["0-red", "1-blue"])) == ["0-red", "1-blue"]
    assert looked == [["1-blue", "none", "0-red"]]
    assert list(at_hand(["2-green"])) == ["2-green"]
    assert list(at_hand(["1-blue"])) == ["1-blue"]  # it was the first to go
    assert looked[1:] == [["2-green"], ["1-blue"]]
