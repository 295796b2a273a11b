import sys

import pytest

from rungwise.core import UserError
from rungwise.encoders.pretrained.open_clip import _text_cleaning as text_cleaning
from rungwise.encoders.pretrained.open_clip import cleaner
from tests.published import CAPTIONS

ODD = (
    "",
    "  two   blanks\tand\nlines ",
    "Don't! (really): a_cat & #5 {x}",
    "&amp;amp; &lt;b&gt;",
    "schÃ¶n â€” Ã©tÃ©",
    "ﬁne “quotes” …",
    "\u00a0Ünïcode\u3000狗",
)


@pytest.mark.parametrize("kind", ["lower", "whitespace", "canonicalize"])
def test_it_is_what_open_clip_does(kind: str) -> None:
    library = pytest.importorskip("open_clip.tokenizer").get_clean_fn(kind)
    ours = cleaner(kind)  # type: ignore[arg-type]
    assert ours is not None
    for text in (*CAPTIONS, *ODD):
        assert ours(text) == library(text)


def test_nothing_is_nothing() -> None:
    assert cleaner("none") is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text_cleaning._ftfy.cache_clear()
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(UserError, match=r"needs ftfy; run: pip install 'rungwise\[onnx\]'"):
        cleaner("lower")
    text_cleaning._ftfy.cache_clear()
