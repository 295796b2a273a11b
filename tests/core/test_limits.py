import threading
from dataclasses import fields

import pytest

from rungwise.core import Limits, UserError, limited, limits, readable, too_large, variable
from rungwise.core import _limits as module
from rungwise.core._limits import from_environment
from tests.pages import pages_below


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("7 k", 7 << 10), ("2MiB", 2 << 20), ("1 gb", 1 << 30), ("3T", 3 << 40), ("9B", 9)]
)
def test_sizes(text, size):
    assert from_environment({"RUNGWISE_MAX_JSON_BYTES": text}) == Limits(json_bytes=size)


@pytest.mark.parametrize("text", ["-1", "1.5 GiB", "9" * 30, "much", "0x10", "1 PiB"])
def test_what_is_no_size(text):
    with pytest.raises(UserError, match="RUNGWISE_MAX_TEXT_BYTES: .* is no size; give a number"):
        from_environment({"RUNGWISE_MAX_TEXT_BYTES": text})


def test_the_environment_is_read_when_limits_are_first_asked_for(monkeypatch):
    monkeypatch.setenv("RUNGWISE_MAX_PICTURE_PIXELS", "1000")
    monkeypatch.setattr(module, "_current", None)
    assert limits().picture_pixels == 1000


def test_other_limits_hold_in_all_threads_and_end_with_the_block():
    before, seen = limits(), []
    with limited(text_bytes=5), limited(json_bytes=6):
        thread = threading.Thread(target=lambda: seen.append(limits()))
        thread.start()
        thread.join()
    assert (seen[0].text_bytes, seen[0].json_bytes) == (5, 6)
    assert limits() == before


def test_messages_name_the_remedy():
    with limited(picture_pixels=1000):
        assert str(too_large("a.png", 5000, "picture_pixels")) == (
            "a.png: 5,000 pixels, where at most 1,000 are read; if it is meant, set RUNGWISE_MAX_PICTURE_PIXELS=5000"
        )
    assert readable(3 << 30) == "3.0 GiB"


def test_the_documentation_lists_every_limit_with_its_default():
    page = pages_below("operate")
    for field in fields(Limits):
        size = getattr(Limits(), field.name)
        shown = readable(size) if field.name.endswith(("_bytes", "_memory")) else f"{size:,}"
        assert f"| `{variable(field.name)}` | {shown} |" in page
