"""Hostile texts in place of good ones: encodings, control characters, and what JSON, tables and YAML allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

Altered = tuple[str, bytes, Any]
"""Name of the attack, bytes of the file, and whether the format's own rules are broken (see Damage.kind)."""

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\u202e"
DIGITS = "9" * 5000

EVIL_VALUES: tuple[tuple[str, str], ...] = (
    ("null", "null"),
    ("true", "true"),
    ("an empty list", "[]"),
    ("an empty object", "{}"),
    ("a text", '"x"'),
    ("an empty text", '""'),
    ("-1", "-1"),
    ("2**63", str(2**63)),
    ("1e400", "1e400"),
    ("NaN", "NaN"),
    ("5,000 digits", DIGITS),
    ("half a character", '"\\ud83d"'),
    ("a NUL", '"a\\u0000b"'),
    ("escape codes", json.dumps(ESCAPES)),
    ("a path upwards", '"../../../../etc/passwd"'),
    ("a device", '"/dev/zero"'),
    ("an over-long text", json.dumps("x" * 100_000)),
    ("lists 100,000 deep", "[" * 100_000 + "]" * 100_000),
)
_MARK = "\ue000here\ue000"
_PLACES = 10


def altered_text(text: str) -> Iterator[Altered]:
    """Other encodings, line ends and characters."""
    yield "UTF-16", text.encode("utf-16"), "content"
    yield "UTF-16 without mark", text.encode("utf-16-le"), "content"
    yield "UTF-32", text.encode("utf-32"), "content"
    yield "with a mark", b"\xef\xbb\xbf" + text.encode(), "content"
    yield "Latin-1", text.replace("e", "é").encode("latin-1", "replace"), "content"
    yield "a surrogate in UTF-8", text.replace("e", "\ud83d", 1).encode("utf-8", "surrogatepass"), "content"
    yield "NULs between letters", text.replace("e", "e\0").encode(), "content"
    yield "escape codes", text.replace("e", ESCAPES, 1).encode(), "content"
    yield "old Macintosh line ends", text.replace("\n", "\r").encode(), "content"
    yield "blank lines only", b"\n" * 5000, "content"
    yield "one line of 4 MB", b"x" * 4_000_000, "content"
    yield "no line end", text.rstrip("\n").encode(), "content"


def altered_json(text: str, lines: bool, draw: Random) -> Iterator[Altered]:
    """Wrong values at places drawn from all of the document, missing and doubled keys, endless depth."""
    yield "lists 200,000 deep", b"[" * 200_000, "structure"
    yield "lists 200,000 deep, closed", b"[" * 200_000 + b"]" * 200_000, "content"
    yield "objects 100,000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "content"
    for name, value in EVIL_VALUES:
        yield f"nothing but {name}", value.encode("utf-8", "surrogatepass"), "content"
    whole, head = (text.splitlines()[0], text.split("\n", 1)[1]) if lines else (text, "")
    document = json.loads(whole)
    places = list(_places(document))
    for place in draw.sample(places, min(_PLACES, len(places))):
        marked = json.dumps(with_value(document, place, _MARK), ensure_ascii=False)
        spot = "/".join(str(part) for part in place)
        for name, value in draw.sample(EVIL_VALUES, 4):
            changed = marked.replace(f'"{_MARK}"', value) + ("\n" + head if lines else "")
            yield f"{spot} is {name}", changed.encode(), "content"
        if isinstance(place[-1], str):
            without = json.dumps(with_value(document, place, None, remove=True)) + ("\n" + head if lines else "")
            yield f"{spot} is missing", without.encode(), "content"
    if isinstance(document, dict) and document:
        key = next(iter(document))
        yield "a key twice", (whole.replace("{", f'{{"{key}": 1, ', 1) + head).encode(), "content"
        yield "a key more", (whole.replace("{", '{"surprise": 1, ', 1) + "\n" + head).encode(), "content"


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*at, key)
        yield from _places(one, (*at, key))


def with_value(value: Any, place: tuple[Any, ...], new: Any, remove: bool = False) -> Any:
    """A copy with another value at one place, or without it."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(place) > 1:
        copy[place[0]] = with_value(copy[place[0]], place[1:], new, remove)
    elif remove:
        del copy[place[0]]
    else:
        copy[place[0]] = new
    return copy


def altered_table(text: str) -> Iterator[Altered]:
    """Quotes, commas, cells and numbers that no table should have."""
    lines = text.splitlines()
    body = lines[-1]
    cells = {
        "a quote that never ends": f'"{body}',
        "quotes inside": body.replace("e", '"e"', 1),
        "a cell of 200,000 letters": body + "x" * 200_000,
        "a thousand cells more": body + ",x\t" * 1000,
        "no cells": ",,,,",
        "5,000 digits": f"{body}{DIGITS}",
        "nothing but 5,000 digits": DIGITS,
        "not a number": body.replace("0", "nan").replace("1", "nan"),
        "infinity": body.replace("0", "inf").replace("1", "1e400"),
        "below nothing": body.replace("0", "-1"),
        "a path upwards": body.replace(body.split(",")[0].split("\t")[0], "../../../../../../etc/passwd"),
        "a device as the name": body.replace(body.split(",")[0].split("\t")[0], "/dev/zero"),
        "a name of 5,000 letters": body.replace(body.split(",")[0].split("\t")[0], "n" * 5000 + ".png"),
        "a name with NUL": body.replace(body.split(",")[0].split("\t")[0], "a\0b.png"),
        "a script": "<script>alert(1)</script>" + body,
        "a formula": "=cmd|' /C calc'!A0," + body,
    }
    for name, line in cells.items():
        yield f"last line: {name}", "\n".join([*lines[:-1], line, ""]).encode(), "content"
        yield f"first line: {name}", "\n".join([line, *lines[1:], ""]).encode(), "content"
    yield "the first line alone", f"{lines[0]}\n".encode(), "content"
    yield "the last line 20,000 times", f"{text}{(body + chr(10)) * 20_000}".encode(), "content"


def altered_yaml(text: str) -> Iterator[Altered]:
    """What YAML allows and a configuration never needs."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    yield "a bomb of aliases", "\n".join(lines).encode(), "content"
    merged = ["base: &m0 {a: 1}"] + [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, 25)]
    yield "a bomb of merges", "\n".join(merged).encode(), "content"
    yield "lists 20,000 deep", b"[" * 20_000, "structure"
    yield "mappings 5,000 deep", "\n".join(" " * n + "a:" for n in range(5000)).encode(), "content"
    yield "an object of Python", b"!!python/object/apply:os.abort []", "content"
    yield "a tag of nobody", b"!nobody {a: 1}", "content"
    yield "a list that holds itself", b"&a [*a]", "content"
    yield "a mapping that holds itself", b"&a {model: *a}", "content"
    yield "a date that there is not", b"seed: 2024-99-99", "content"
    yield "a tab", b"seed:\t1\n\tepochs: 2", "content"
    yield "two documents", f"{text}\n---\n{text}".encode(), "content"
    yield "a list", b"- 1\n- 2\n", "content"
    yield "keys that are lists", b"? [a, b]\n: 1\n", "content"
    yield "a key twice", f"{text}\nseed: 1\nseed: 2\n".encode(), "content"
    for number in (DIGITS, "0x" + "f" * 5000, "-1", ".nan", ".inf", "1e400", "1:2:3", "~", "yes", "0o17", "1_0"):
        for key in ("seed", "batch_size", "clip_norm", "checkpoint_steps", "epochs", "learning_rates"):
            changed = "\n".join(line for line in text.splitlines() if not line.startswith(f"{key}:"))
            yield f"{key}: {number[:20]}", f"{changed}\n{key}: {number}\n".encode(), "content"
