import base64
import struct

import pytest
from tokenizers import normalizers

from rungwise.core import UserError
from rungwise.encoders.vocabulary._character_maps import check_character_map

HAS_VALUE, VALUE = 1 << 8, 1 << 31


def double_array(rules: dict[str, str]) -> tuple[list[int], bytes]:
    """The trie of a table as SentencePiece lays it out; each node has a block of 256 units of its own."""
    texts = b""
    trie: dict[int, dict] = {}
    values: dict[int, int] = {}
    for source, target in rules.items():
        node = trie
        for byte in source.encode():
            node = node.setdefault(byte, {})
        values[id(node)] = len(texts)
        texts += target.encode() + b"\0"
    units = [0] * 256

    def lay(node: dict[int, dict], at: int, label: int) -> None:
        block = len(units)
        units.extend([0] * 256)
        has = HAS_VALUE if id(node) in values else 0
        offset = block ^ at
        units[at] = (offset << 10) | has | label
        if has:
            units[block] = VALUE | values[id(node)]
        for byte, child in node.items():
            lay(child, block ^ byte, byte)

    lay(trie, 0, 0)
    return units, texts


def packed(units: list[int], texts: bytes) -> str:
    array = struct.pack(f"<{len(units)}I", *units)
    return base64.b64encode(struct.pack("<I", len(array)) + array + texts).decode()


def character_map(rules: dict[str, str]) -> str:
    return packed(*double_array(rules))


RULES = {"\uff41": "a", "\u2460": "1", "\ufdfa": "صلى الله"}


def test_a_sound_table_is_taken_and_does_what_it_says() -> None:
    encoded = character_map(RULES)
    check_character_map(encoded, "here")
    table = normalizers.Precompiled(base64.b64decode(encoded))
    assert table.normalize_str("\uff41 \u2460 \ufdfa b") == "a 1 صلى الله b"


def beyond(units: list[int], texts: bytes) -> str:
    return packed([(1 << 29) | units[0] & 0x3FF, *units[1:]], texts)


def value_beyond(units: list[int], texts: bytes) -> str:
    return packed([VALUE | 5000 if unit & VALUE else unit for unit in units], texts)


def value_inside_a_character(units: list[int], texts: bytes) -> str:
    return packed([VALUE | 5 if unit & VALUE else unit for unit in units], texts)


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (None, "expected a text in base64"),
        ("%", "not base64"),
        ("", "cut off"),
        (packed([0] * 256, b"")[:40], "cut off"),
        (base64.b64encode(struct.pack("<I", 6) + b"123456abc").decode(), "cut off"),
        (packed([0] * 256, b"\xff\xfe"), "its texts are no UTF-8"),
        (character_map({"a": "b" * 65}), "a text of more than 64 bytes stands for one character"),
        (packed([0] * 255, b"a\0"), "a step leads beyond its end"),
        (beyond(*double_array(RULES)), "a step leads beyond its end"),
        (value_beyond(*double_array(RULES)), "a value leads beyond its texts"),
        (value_inside_a_character(*double_array(RULES)), "a value leads into the middle of a character"),
    ],
)
def test_tables_that_would_end_the_program_are_refused(encoded: object, message: str) -> None:
    with pytest.raises(UserError, match=f"^here: precompiled_charsmap: {message}; copy"):
        check_character_map(encoded, "here")
