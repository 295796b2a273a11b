"""Queries as people type them: ``"beach" - "people" + dog.jpg``, ``2*"red"``, ``a beach without people``.

Signs count where they stand alone or before a word, as in ``dog -cat``; the hyphen of ``t-shirt`` is part of the word,
and ``-5`` is a number. A quotation is one text, whatever is in it.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from rungwise.core import UserError, check_length
from rungwise.core.text import near_names
from rungwise.data.layouts import PICTURE_SUFFIXES
from rungwise.index.query._negation import split_negation
from rungwise.index.query._query import LESS, GivenPicture, Query, Term, Words

_QUOTES = {
    '"': ('"',), "“": ("”", "“"), "”": ("”",), "„": ("“”",), "«": ("»",), "»": ("«»",), "‹": ("›",), "›": ("‹›",),
    "「": ("」",), "『": ("』",), "＂": ("＂",), "〝": ("〞〟",),
}  # fmt: skip
"""Marks that open a quotation, and those that close it: of the first group of which one follows, the nearest one.

In some languages the same mark stands on both sides.
"""
_SINGLE = {"'": ("'",), "‘": ("’",), "’": ("’",), "‚": ("‘’",)}
_CLOSING_SINGLE = frozenset("".join(itertools.chain.from_iterable(_SINGLE.values())))
_CLOSING = _CLOSING_SINGLE | frozenset("".join(itertools.chain.from_iterable(_QUOTES.values())))
_SIGNS = {"+": 1, "＋": 1, "-": -1, "−": -1, "－": -1}
_WEIGHT = re.compile(r"(\d{1,9}(?:[.,]\d{1,9})?)(?:\s+[*×]\s+|[*×](?=\S)|:(?=\S))(?!\d)")
_WEIGHT_AFTER = re.compile(r"\s*[*×]\s*(\d{1,9}(?:[.,]\d{1,9})?)\s*")
_ESCAPED = re.compile(r"\\([\"'“”„«»‹›「」『』＂〝〞〟‘’‚])")
"""A quote behind a backslash, which ends no quotation."""
_FILES_LOOKED_AT = 10_000


def parse_query(text: str, *, pictures: bool = True) -> Query:
    """Read a query.

    * ``"a beach" - "people"``, ``dog -cat``, ``dog + snow``: texts that are added and taken away.
    * ``2*"red" + boat``, ``2:red + boat``: weights.
    * ``dog.jpg``, ``"./my dog.jpg" + snow``, ``dog.jpg cat.jpg``: picture files, where ``pictures`` allows it.
    * ``a beach without people``, ``a dog, not a cat``: English words that take away. In quotes they are plain words.

    What is taken away counts :data:`~rungwise.index.query.LESS` unless it has a weight. Anything else is one
    plain text, as it was typed.

    Args:
        text: The typed query.
        pictures: Whether names of picture files may be opened. Files named by strangers must not be.

    Raises:
        UserError: If it is empty or too long, or names a picture file that does not exist beside other parts.

    >>> parse_query('"beach" - "people"').reading
    'pictures like "beach", less like "people"'
    >>> parse_query("a dog without a collar on a t-shirt").reading
    'pictures like "a dog on a t-shirt", less like "a collar"'
    >>> parse_query("a black-and-white photo at -5 degrees").terms
    (Term(what=Words(text='a black-and-white photo at -5 degrees'), weight=1.0),)
    """
    check_length(text, "the query")
    if not text.strip():
        raise UserError("the query is empty; write a few words about the picture")
    chunks = _chunks(text)
    terms: list[Term] = []
    notes: list[str] = []
    for chunk in chunks:
        terms += _terms_of(chunk, pictures, len(chunks) == 1, notes)
    if len(chunks) == 1 and len(terms) == 1 and terms[0].what == Words(chunks[0].body.strip()):
        terms = [Term(Words(text) if chunks[0].body == text else terms[0].what, terms[0].weight)]
    return Query(tuple(terms), tuple(notes))


@dataclass(frozen=True)
class _Piece:
    """A quoted text or a word, and its place in the typed query."""

    text: str
    quoted: bool
    start: int
    end: int


@dataclass(frozen=True)
class _Chunk:
    """The text between two signs, and the sign before it."""

    sign: int
    body: str


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    closing = _closing_marks(text)
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif end := _end_of_quote(text, at, closing):
            pieces.append(_Piece(_ESCAPED.sub(r"\1", text[at + 1 : end - 1]), True, at, end))
            at = end
        else:
            end = at + 1
            # A quote opens at the beginning of a word, after a sign or after a weight.
            while (
                end < len(text)
                and not text[end].isspace()
                and not (text[end - 1] in "+-−*×:" and _end_of_quote(text, end, closing))
            ):
                end += 1
            pieces.append(_Piece(text[at:end], False, at, end))
            at = end
    return pieces


def _closing_marks(text: str) -> Mapping[str, Sequence[int]]:
    """Places where each mark may close a quotation, ascending; found once, not anew from each mark that opens one."""
    found: dict[str, list[int]] = {}
    for place, letter in enumerate(text):
        # A quote behind a backslash closes nothing, nor does an apostrophe: 'the dog's ball'.
        if (letter in _CLOSING and text[place - 1 : place] != "\\") and (
            letter not in _CLOSING_SINGLE or not text[place + 1 : place + 2].isalnum()
        ):
            found.setdefault(letter, []).append(place)
    return found


def _end_of_quote(text: str, at: int, closing: Mapping[str, Sequence[int]]) -> int:
    """Place behind the closing mark of a quotation that opens here; 0 where none opens."""
    for marks in _QUOTES.get(text[at]) or _SINGLE.get(text[at]) or ():
        behind = ((places, bisect_right(places, at)) for places in (closing.get(mark, ()) for mark in marks))
        if end := min((places[number] for places, number in behind if number < len(places)), default=0):
            return end + 1 if text[at + 1 : end].strip() else 0
    return 0


def _chunks(text: str) -> list[_Chunk]:
    """Cut the typed query at its signs."""
    pieces = _pieces(text)
    cuts: list[tuple[int, int, int]] = []  # where a sign begins and ends, and which it is
    for number, piece in enumerate(pieces):
        if piece.quoted or piece.text[0] not in _SIGNS or number + 1 == len(pieces) == len(piece.text):
            continue
        after = pieces[number + 1] if number + 1 < len(pieces) else None
        if len(piece.text) == 1:
            counts = after is not None and (
                after.quoted or not _is_number(after.text) or bool(_WEIGHT.match(text, after.start))
            )
        else:
            following = piece.text[1]
            counts = following.isalpha() or following in "./~" or bool(_WEIGHT.match(text, piece.start + 1))
        if counts:
            cuts.append((piece.start, piece.start + 1, _SIGNS[piece.text[0]]))
    chunks: list[_Chunk] = []
    sign, start = 1, 0
    for begin, end, following_sign in [*cuts, (len(text), len(text), 1)]:
        body = text[start:begin]
        if body.strip():
            chunks.append(_Chunk(sign, body))
            sign = following_sign
        else:  # the first sign, or one after the other
            sign = sign * following_sign if begin < len(text) else sign
        start = end
    return chunks


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace(",", "").isdigit()


def _terms_of(chunk: _Chunk, pictures: bool, alone: bool, notes: list[str]) -> list[Term]:
    body, weight = chunk.body.strip(), 1.0 if chunk.sign > 0 else -LESS
    if found := _WEIGHT.match(body):
        weight, body = chunk.sign * _number(found[1]), body[found.end() :].strip()
    elif found := _WEIGHT_AFTER.fullmatch(body, _end_of_quote(body, 0, _closing_marks(body))):
        weight, body = chunk.sign * _number(found[1]), body[: found.start()]
    pieces = _pieces(body)
    if len(pieces) > 1 and all(piece.quoted for piece in pieces):
        groups: list[list[_Piece]] = [[piece] for piece in pieces]
    else:
        groups = _groups(pieces)
    lone = alone and len(groups) == 1
    terms: list[Term] = []
    for group in groups:
        if len(group) == 1 and _names_picture(group[0]):
            terms.append(_picture_term(group[0].text, weight, pictures, lone, notes))
        elif len(group) == 1 and group[0].quoted:
            terms.append(Term(Words(group[0].text.strip()), weight))
        else:
            raw = body[group[0].start : group[-1].end]
            kept, less = split_negation(raw) if chunk.sign > 0 else (raw, ())
            terms.append(Term(Words(kept), weight))
            terms += [Term(Words(one), -LESS * weight) for one in less]
    return terms


def _groups(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Names of pictures by themselves, and the pieces between them together."""
    groups: list[list[_Piece]] = []
    for piece in pieces:
        if groups and not _names_picture(piece) and not _names_picture(groups[-1][-1]):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _names_picture(piece: _Piece) -> bool:
    name = piece.text.strip()
    if "." not in name or "\0" in name or "\n" in name:
        return False
    return PureWindowsPath(name).suffix.lower() in PICTURE_SUFFIXES


def _picture_term(name: str, weight: float, pictures: bool, lone: bool, notes: list[str]) -> Term:
    """Term of a picture file; its name as words where files are not opened, or where nothing else is asked for."""
    if not pictures:
        return Term(Words(name), weight)
    try:
        path = Path(name).expanduser()
        if path.is_file():
            return Term(GivenPicture(path, name), weight)
    except (OSError, RuntimeError, ValueError):  # too long a name, or no home
        path = Path(name)
    if "://" in name:
        wrong = f"{name}: addresses are not fetched; save the picture and name its file"
    else:
        near = _near_files(path)
        wrong = f"{name}: no such picture file; {f'did you mean {near}?' if near else 'correct the name'}"
    if not lone or set(name) & {"/", "\\"}:
        raise UserError(wrong)
    notes.append(f"{wrong} It was searched for as words" if wrong.endswith("?") else f"{wrong}; searched for as words")
    return Term(Words(name), weight)


def _near_files(path: Path) -> str:
    try:
        names = [one.name for one in itertools.islice(path.parent.iterdir(), _FILES_LOOKED_AT)]
    except OSError:
        return ""
    known = [name for name in names if Path(name).suffix.lower() in PICTURE_SUFFIXES]
    near = near_names(path.name, known, least=0.7)
    return str(path.parent / near[0]) if near else ""
