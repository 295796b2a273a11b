"""Texts made of one unit again and again: whatever reads a text takes a time in proportion to its length.

Every entry point is given what it knows (signs, words, patterns' own letters), alone and in pairs, behind a beginning
and before an end that makes a pattern fail at the last place, 1,000 to 32,000 times. Processor time is compared at
doubled lengths: twice the text may take twice the time, and not four times.
"""

from __future__ import annotations

import ast
import gc
import importlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, product
from pathlib import Path
from re import _constants as signs  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import SimpleNamespace
from typing import Any

from rungwise.core import UserError, limited
from tests.hostile.choice import Choice
from tests.hostile.counting import Case, Verdict
from tests.house import PACKAGE, modules

FAMILY = "texts"

MOST = 32_000
"""Repetitions of a unit."""
STEPS = (250, 1_000, 4_000, 16_000, MOST)
"""How often a unit is repeated, until it takes too long; the ratio is that of the last doubling."""
FLOOR = 0.02
"""Seconds: what takes less at the end is not judged by its ratio."""
SUSPECT = 0.0005
"""Seconds for 4,000 repetitions, below which a time that grows with the square is some hundredths at the end."""
MOST_RATIO = 3.0
"""Of times at doubled lengths: 2 where time is in proportion, 4 where it grows with the square."""
CLEAR = 1.0
"""Seconds: what takes more and grows faster than its text from one step to the next is not tried any longer."""
MOST_SECONDS = 6.0
"""Of processor, for any text of these."""

COMMON = (
    *(" ", "\n", "\t", "a", "a ", "ab", "A", "é", "e\u0301", "\u0301\u0327", "ß", "İ", "一", "ก", "ကြ", "\U0001f600"),
    *("\u200d", ".", ",", ";", ":", "-", "--", "_", "'", "’", '"', "“ ", "„", "(", ")", "()", "[", "]", "{", "}", "<"),
    *(">", "\\", "/", "|", "&", "&amp;", "&#9", "&lt", "#", "@", "a@", "a@a.", "%", "+", "*", "=", "~", "`", "^", "$"),
    *("!", "?", "0", "9,", "1.", "a.", "a-", "a'", "n't ", "x=", "http://", "www.", "No ", "the "),
)  # fmt: skip
FRAMES = (("", ""), ("a ", " x"), ("", "!"), ("x", "\\"), ("", "\n"), ("1", "1"))
"""A beginning and an end."""


@dataclass(frozen=True)
class Entry:
    """Something that reads a text.

    Attributes:
        name: For the table.
        read: It; what it refuses by a :class:`UserError` is refused.
        units: What it knows, besides :data:`COMMON`.
        frames: Beginnings and ends.
        common: Whether :data:`COMMON` is tried, too.
    """

    name: str
    read: Callable[[str], object]
    units: tuple[str, ...] = ()
    frames: tuple[tuple[str, str], ...] = FRAMES
    common: bool = True

    def texts(self) -> Iterator[tuple[str, str, tuple[str, str]]]:
        """Each attack: its name, the unit, the frame. Units alone, then pairs of them."""
        own = tuple(dict.fromkeys((*self.units, *(COMMON if self.common else ()))))
        for unit, frame in product(own, self.frames):
            yield f"{unit!r} between {frame[0]!r} and {frame[1]!r}", unit, frame
        for first, second in product(self.units, own):
            if first != second:
                yield f"{first + second!r} pair", first + second, ("", "")
                yield f"{first + second!r} pair, framed", first + second, self.frames[-1]


@dataclass
class Measured:
    """What became of one attack."""

    longest: int
    ratio: float
    seconds: float
    wrong: str = ""


def seconds(read: Callable[[str], object], text: str) -> float:
    """Of processor that one reading takes, refused or not."""
    gc.disable()  # which looks through all that there is whenever some thousand things were made
    try:
        started = time.process_time()
        with suppress(UserError):
            read(text)
        return time.process_time() - started
    finally:
        gc.enable()


def measured(entry: Entry, unit: str, frame: tuple[str, str]) -> Measured:
    """Time one attack at growing lengths, and judge it at the largest doubling."""

    def at(count: int, more: int = 0) -> float:
        # No two texts are the same: some readers remember what they read.
        return seconds(entry.read, frame[0] + unit * (count + more) + frame[1])

    found = Measured(0, 0.0, 0.0)
    before, times = 0.0, 0
    for count in STEPS:
        before, took = found.seconds, at(count)  # seconds of half as many, in the end
        found.longest, found.seconds = len(unit) * count, took
        steep = took > CLEAR and 0 < times < MOST // 2 and took / before > MOST_RATIO / 2 * count / times
        times = count
        if steep or took > MOST_SECONDS:  # nobody waits for what grows with the cube
            found.wrong = f"{took:.1f} s for {count} times {unit!r}"
            return found
        if count == 4_000 and took < SUSPECT:
            return found
    found.ratio = found.seconds / max(before, 1e-6)
    if found.seconds < FLOOR or found.ratio < MOST_RATIO:
        return found
    half = min(at(MOST // 2, more) for more in range(1, 4))
    whole = min(found.seconds, *(at(MOST, more) for more in range(1, 4)))
    found.ratio, found.seconds = whole / max(half, 1e-6), whole
    if found.ratio > MOST_RATIO and whole > FLOOR and _goes_on(at, whole):
        found.wrong = f"{half:.2f} s for {MOST // 2} times {unit!r}, {whole:.2f} s for {MOST} times"
    return found


def _goes_on(at: Callable[..., float], whole: float) -> bool:
    """Whether the next doubling costs as much again; a step from one way of reading to another does not."""
    return min(at(2 * MOST, more) for more in range(1, 4)) > MOST_RATIO * whole


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case | str]:
    """Every entry point with its texts.

    Of pairs a tenth is played, unless ``--only`` names some. What an entry point itself knows is played first: a share
    of a twentieth has all of that.
    """
    with limited(query_characters=1 << 30):
        for entry in chain(entries(), patterns(), requests(scratch), files(world, scratch)):
            for name, unit, frame in entry.texts():
                own = 20.0 if unit in entry.units else 1.0
                fraction = 0.1 if " pair" in name and not choice.only else own
                if choice.takes(f"{entry.name}: {name}", fraction):
                    yield judged(entry, name, unit, frame)


def judged(entry: Entry, name: str, unit: str, frame: tuple[str, str]) -> Case:
    """One attack as a case; ``wrong`` if its time is not in proportion."""
    try:
        found = measured(entry, unit, frame)
    except Exception as error:
        return Case(FAMILY, entry.name, name, "traceback", f"{type(error).__name__}: {error}"[:300])
    verdict: Verdict = "wrong" if found.wrong else "accepted"
    detail = found.wrong or f"{found.longest} characters, {found.seconds:.3f} s, ratio {found.ratio:.2f}"
    return Case(FAMILY, entry.name, name, verdict, detail)


_DETAIL = re.compile(r"(\d+) characters, ([\d.]+) s, ratio ([\d.]+)")


def table(cases: Iterable[Case]) -> str:
    """One line an entry point: texts tried, the longest, the worst ratio and the most seconds of processor."""
    lines: dict[str, list[float]] = {}
    for case in cases:
        if case.family == FAMILY:
            row = lines.setdefault(case.subject, [0, 0, 0, 0, 0])
            row[0] += 1
            row[4] += case.verdict != "accepted"
            if said := _DETAIL.fullmatch(case.detail):
                row[1:4] = [
                    max(old, float(new)) for old, new in zip(row[1:4], (said[1], said[3], said[2]), strict=True)
                ]
    width = max(map(len, lines), default=0)
    head = f"{'':{width}}{'texts':>8}{'longest':>10}{'ratio':>8}{'seconds':>9}{'bad':>5}"
    return "\n".join(
        [head, *(f"{name:{width}}{row[0]:>8.0f}{row[1]:>10.0f}{row[2]:>8.2f}{row[3]:>9.2f}{row[4]:>5.0f}"
                 for name, row in lines.items())]
    )  # fmt: skip


# --- what reads a text -----------------------------------------------------------------------------------------------

_NEGATION = (
    *(" not ", " no ", "no , ", "without ", " and no ", " or ", " nor ", ", and ", " but ", " with ", " that is "),
    *(" there is ", ", ", " on ", " in front of ", " next to ", "its ", "top ", " no-", "a no ", ".no", "says no "),
)
_QUERY = (
    "“ ",
    "” ",
    '" ',
    "« ",
    "' ",
    "‘",
    "‚ ",
    '\\"',
    '-"',
    "- ",
    "+ ",
    "2*",
    "2 * ",
    " * 3",
    "a.jpg ",
    "5 ",
    "0,5*",
)
_WHERE = (
    "(",
    "not ",
    "a=1 and ",
    "a=1 or ",
    "a in (1,",
    "1,",
    "'",
    "''",
    "\\'",
    "x.",
    ">=",
    "1e",
    "0.",
    "“",
    "`",
    "x has 'a' and ",
)
_SCENE = ("red ", "two ", "circle ", "left of ", "and ", "one of them ", "alone ", "with stripes ", "a ", ", ")
_GRAPH = (
    "a man ",
    "riding ",
    "'s ",
    "and ",
    "as well ",
    "no longer ",
    "of ",
    "picture of ",
    "who ",
    "on ",
    "red ",
    "has been ",
)
_YAML = (
    "[",
    "{",
    "- ",
    "a: ",
    "? ",
    "&a ",
    "*a ",
    "!!",
    "'",
    '"',
    "|\n",
    ">\n",
    "#",
    "a: 1\n",
    " a:\n",
    "1:",
    "1_",
    "<<: ",
    "- [",
    "[a, ",
)
_JSON = ("[", "{", '{"a":', '"', '\\"', "\\u0000", "1", "1e", "[1,", '"a":1,', "nul", "-", "\ufeff")
_WORDS_OF_MODEL = (
    "dog",
    "##gy",
    "'s",
    "``",
    "''",
    "...",
    "cannot ",
    "mr. ",
    ")",
    ". )",
    "«",
    "n't",
    "'re",
    "<|endoftext|>",
)


_REQUEST = (
    *("localhost", "[", "::1", ":", "%", "http://", "a=b; ", '"\\"', "\\101", "; ", "Bearer ", "token=a&", "&", "%41"),
    *(";", "0-1,", "-1,", "*/*,", "text/html;q=", '{"query":'),
)


def entries() -> Iterator[Entry]:
    """Functions that read a text; those of files are :func:`files`."""
    yield from _of_queries()
    yield from _of_captions()
    yield from _of_tokenizers()
    yield from _of_settings()
    yield from _of_requests()
    yield from _of_short_functions()


def _of_queries() -> Iterator[Entry]:
    from rungwise.evaluation.report._plots import text_width
    from rungwise.index.cutoff import _hit_texts as hit_texts
    from rungwise.index.filters import Condition, Where, understood
    from rungwise.index.filters import _dates as dates
    from rungwise.index.filters import _parser as where_text
    from rungwise.index.query import _parser as query_text
    from rungwise.index.query import _unknown_words as unknown_words
    from rungwise.index.query._negation import split_negation
    from rungwise.index.stores import _bm25 as bm25
    from rungwise.metrics import parse
    from rungwise.planning import parse_count
    from rungwise.quality.typed_queries import _statements as statements
    from rungwise.scenes import read_text

    cue = (*FRAMES, ("a without b", "x"), ("a no ", " ,"), ("a beach not ", " on"))
    yield Entry("query", partial(query_text.parse_query, pictures=False), (*_QUERY, *_NEGATION), cue)
    yield Entry("query with pictures", query_text.parse_query, ("a.jpg ", "./a", "-a.jpg "), (("", ""), ("", "/a.jpg")))
    yield Entry("negation", split_negation, _NEGATION, cue)
    yield Entry("filter", _written_again, _WHERE, (*FRAMES, ("x == '", "'"), ("x in (", ")"), ("(" * 49, "")))

    def folder(text: str) -> object:
        return understood(Where((Condition("folder", "==", text),)), {})

    def columns(text: str) -> None:
        where_text.check_columns(Where((Condition(text or "x", "==", 1),)), ["a" * 1000, "title", "no" * 500, "year"])

    yield Entry("column of a filter", columns)
    yield Entry("date of a filter", dates.period, ("1 ", "2020-", "may ", "T10:20:", "1.", " of ", "１", "–"))
    yield Entry("a text as a date", dates.is_period, ("1 ", "2020-", "may ", "T10:20:", "1.", " of ", "１", "–"))
    yield Entry("folder of a filter", folder, ("a/", "\\", "./", "/.", "é"))
    yield Entry("words of the full text", bm25.words_of)
    yield Entry("length of a query", hit_texts.length_of, ("雪", "雪 ", "ก"))
    yield Entry("width of a text in a figure", text_width)
    yield Entry("words that a caption states", statements.words_in, ("dogs ", "ss ", "雪"))
    yield Entry("words that hold a text", lambda text: bm25.WordIndex([("a", text)]).best(text[:2000], 5))
    known = frozenset(f"{a}{b}{c}word" for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij")
    model = SimpleNamespace(known_words=known, unknown_words=lambda text: tuple(dict.fromkeys(bm25.words_of(text))))
    pieces = SimpleNamespace(known_words=known, unknown_words=lambda _: ())
    for name, one in (("a vocabulary of words", model), ("a vocabulary of pieces", pieces)):
        yield Entry(f"unknown words, {name}", partial(_unknown, one, unknown_words.unknown_words),
                    ("abcword ", "aword", "words "))  # fmt: skip
    yield Entry("scene text", read_text, _SCENE)
    yield Entry(
        "measure", parse, ("R@1", "nDCG@", "(", "t=", "t,", "@R"), (("", ""), ("nDCG@10(", ")"), ("CutF1(t=", ")"))
    )
    yield Entry("count", parse_count, ("1,", "1.", "k"))


def _unknown(model: Any, find: Callable[..., Any], text: str) -> object:
    """With as many different words as there are units: each place of the text has its number."""
    numbered = " ".join(f"{word}{_letters(place)}" for place, word in enumerate(text.split()[:400]))
    return find([numbered or text], model, lambda _: False, lambda: ("dog", "cat", text[:300]))


def _letters(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(number))


def _written_again(text: str) -> object:
    from rungwise.index.filters import columns_of, parse_where, write_where

    where = parse_where(text)
    return columns_of(where), parse_where(write_where(where))


def _of_captions() -> Iterator[Entry]:
    from rungwise.data import _columns as columns
    from rungwise.data import _inspection as inspection
    from rungwise.data.layouts import _gatherer as gatherer
    from rungwise.language import _stemming as stemming
    from rungwise.language import tokenisers
    from rungwise.language.scene_graphs.chunking import parse
    from rungwise.scenes._captions import plural_of

    for name in ("ptb", "whitespace", "unicode_words", "character_bigrams", "icu_words"):
        yield Entry(
            f"tokeniser {name}", getattr(tokenisers, name), ("a.a", "can't", "don't ", "1,0", "a&b", "o'a", "a/b", "-+")
        )
    for language in ("english", "german", "russian", "turkish", "arabic", "finnish"):
        yield Entry(
            f"stemmer, {language}", partial(_stem, stemming, language), ("ing", "ness", "lar", "ost", "ла", "ال")
        )
    yield Entry("scene graph", parse, _GRAPH)
    yield Entry("caption", gatherer.clean_caption, ("\x1b", "\x07 ", "\ud83d"))
    yield from _of_files_beside_pictures()
    yield Entry("split's name", gatherer.split_in_words, ("train", "val_"))
    yield Entry("cells of a column", _cells, ('["a",', "a;", ",", "1.0", "rungwise.", "tags"))
    yield Entry("cell that may be a date", columns.is_date, ("2020-05-31T10:20:30.", "0", " +02"))
    yield Entry("column's name", lambda text: columns.own_name(text, {"a": 1}), ("rungwise.", "id", "_"))
    yield Entry("caption that is inspected", _inspected)
    yield Entry("noun", plural_of)
    assert inspection


def _of_files_beside_pictures() -> Iterator[Entry]:
    from rungwise.data.files import Exclusions
    from rungwise.data.sidecars import clean_text, read_xmp
    from rungwise.data.sidecars._takeout import PictureNames, columns_of_takeout

    beginning = f"{'a' * 50}.jpg"
    names = PictureNames(["a.jpg", "a(1).jpg", beginning, "a-edited.jpg"])
    rules = Exclusions(["*a*a*a*b", "**/a/**/a/**/b", "a/", "!*?*[ab]*c", "/a/**"], "exclude")
    about = {"title": "a.jpg", "photoTakenTime": {"timestamp": "1"}}
    yield Entry("text of XMP", lambda text: clean_text(text, len(text)), ("\x1b", "\r\n"))
    yield Entry("packet of XMP", lambda text: read_xmp(text.encode("utf-8", "replace")), ("<a>", "<a ", "a='", "<!--"))
    yield Entry("name of a file of Takeout", lambda text: names.of(f"{text}.json", "a.jpg"), ("(", "(1)", ".s", ")"))
    yield Entry("title in Takeout", lambda text: names.of("a.jpg.json", text), ("&#39;", "-edited", "(1)"))
    yield Entry("description in Takeout", lambda text: columns_of_takeout(about | {"description": text}), ("&#39;",))
    yield Entry("path that patterns may leave out", rules.verdict, ("a/", "/a", "aa", "b/"))
    yield Entry("pattern of what is left out", lambda text: Exclusions([text], "exclude"), ("**/", "[a]", "\\a", "?*"))


def _stem(stemming: Any, language: str, text: str) -> object:
    from rungwise.language.tokenisers import unicode_words

    return stemming.stemmed(unicode_words, language)(text)


def _cells(text: str) -> object:
    from rungwise.data import _columns as columns

    return [columns.typed(name, [text, "a"], parse=True) for name in ("tags", "title", "year")]


def _inspected(text: str) -> object:
    import numpy as np

    from rungwise.data import ImageCaptions, inspect

    return inspect(
        ImageCaptions(("a",), (text.encode("utf-8", "replace").decode() or "a",), np.zeros(1, int), ("a#0",), name="x")
    )


def _of_tokenizers() -> Iterator[Entry]:
    from rungwise.encoders.pretrained.open_clip import cleaner
    from rungwise.encoders.texts import _gru as texts
    from rungwise.encoders.vocabulary import pieces, tokenise, treebank_vocabulary, unknown_words
    from rungwise.language._model_folders import repeats_a_repetition

    captions = ["a dog's red cat, cannot run", "mr. bean isn't here ...", "一隻狗 runs"] * 3
    made = {
        "words": texts.learn_vocabulary(captions, 1),
        "words, unspaced apart": texts.learn_vocabulary(captions, 1, unspaced="characters"),
        "treebank": treebank_vocabulary(
            {word: at for at, word in enumerate(("<pad>", "<start>", "<end>", "<unk>", "a"))}
        ),
        **_made_tokenizers(),
    }
    for name, tokenizer in made.items():

        def read(text: str, tokenizer: Any = tokenizer) -> object:
            return tokenise(tokenizer, [text]), pieces(tokenizer, text), unknown_words(tokenizer, text)

        yield Entry(f"vocabulary, {name}", read, _WORDS_OF_MODEL)
    for kind in ("lower", "canonicalize"):
        clean = cleaner(kind)
        assert clean is not None
        yield Entry(
            f"text for open_clip, {kind}", clean, ("&amp;amp;", "Ã©", "â€", "\x9d", "&#", "\x1b[31m", "\ufeff", "ﬁ")
        )
    yield Entry("pattern of a tokenizer", repeats_a_repetition, ("[", "(", "(a+", "[^", "\\", "{1,", "]", "|"))


def _made_tokenizers() -> dict[str, Any]:
    """Small ones of each kind that published models have, trained here."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    from rungwise.encoders.vocabulary._tokenizer import PATTERNS

    texts = ["a dog's red cat cannot run", "aaaa aaab abab", "the man isn't here", "一隻狗 runs"] * 5
    byte_level = Tokenizer(models.BPE(unk_token=None))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    byte_level.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
    )
    clip = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    clip.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    clip.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(max(PATTERNS, key=len)), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    clip.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False),
    )
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    )
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.train_from_iterator(
        texts, trainers.UnigramTrainer(vocab_size=60, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    )
    return {"byte-level BPE": byte_level, "CLIP": clip, "WordPiece": pieces, "Unigram": unigram}


def _of_settings() -> Iterator[Entry]:
    from rungwise.core import _configuration as configuration
    from rungwise.core import _untrusted_files as untrusted_files
    from rungwise.core._limits import from_environment
    from rungwise.core.output import _printable as printable
    from rungwise.core.text import _setting_names as setting_names
    from rungwise.data.layouts import _picture_tables as picture_tables
    from rungwise.index.update._image_metadata import facts_of_picture
    from rungwise.models.io._card import escaped
    from rungwise.models.regions.consensus._concepts import concepts_in
    from rungwise.serving import possible, sendable
    from rungwise.training.config import TrainConfig, is_preset_name, whole_name

    def yaml(text: str) -> None:
        with limited(settings_bytes=1 << 20):
            configuration.parse_yaml(text[: 1 << 18], "a.yaml")

    yield Entry("YAML", yaml, _YAML, (("", ""), ("a: ", ""), ("", ":"), ("'", "'")))
    yield Entry(
        "JSON", lambda text: untrusted_files.parse_json(text, "a.json"), _JSON, (("", ""), ('"', '"'), ("[", "]"))
    )
    yield Entry("README of a data set", lambda text: picture_tables.front_matter(text),
                ("---\n", "--- \n", "\r\n", "a\n", "---", " \n"),
                (("", ""), ("---\n", ""), ("---\n\n", "---"), ("---", "x")))  # fmt: skip
    yield Entry("what is printed", printable.printable, ("\x1b[31m", "\u202e"))
    yield Entry("size of a limit", lambda text: from_environment({"RUNGWISE_MAX_TEXT_BYTES": text}), ("1", "GiB"))
    yield Entry(
        "setting that there is not", lambda text: setting_names.near_setting(TrainConfig, (text,)), ("models", "seed")
    )
    yield Entry("preset", lambda text: (is_preset_name(text), whole_name(text)), ("vse/", "coco:", "a-"))
    yield Entry("text of a model card", escaped)
    yield Entry("concepts", lambda text: concepts_in(text, "a.json"), ('{"a":', '["a",'))
    yield Entry(
        "id",
        lambda text: (possible(text), possible("bytes:" + text), sendable(text)),
        ("bytes:", "Zm9v", "\udcff", "="),
    )
    yield Entry("XMP of a picture", lambda text: facts_of_picture(_with_xmp(text)),
                ("<rdf:li>", "</rdf:li>", "<!--", "<a b='c'>", "&lt;", "<![CDATA["),
                (("", ""), ("<x:xmpmeta xmlns:x='adobe:ns:meta/'>", "</x:xmpmeta>")))  # fmt: skip


def _of_short_functions() -> Iterator[Entry]:
    from rungwise.core import check_length, with_slashes
    from rungwise.core.disk.sealed_lines import hash_of_text
    from rungwise.core.output import whole_characters
    from rungwise.core.output._text_tables import plain
    from rungwise.core.text import _linear as texts
    from rungwise.data.layouts import is_torn, split_name
    from rungwise.encoders.vocabulary import read_vocabulary
    from rungwise.index.stores import word_set
    from rungwise.index.stores._engine_rows import from_engine, to_engine
    from rungwise.index.stores.lance._rows import from_list
    from rungwise.metrics import parse_as
    from rungwise.models._average import members_of
    from rungwise.relevance.config import names_source
    from rungwise.scenes import read_statement
    from rungwise.serving.access import parse_tokens

    yield Entry("cell of a table", plain, ("\n", " ", "\x1b[31m", "|"))
    yield Entry("length of a query", lambda text: check_length(text, "the query"))
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        normalise = partial(_normalised, texts, form)
        yield Entry(f"normal form {form}", normalise, ("\u0301", "\u0327\u0301", "\u1161", "\u1100", "\ufdfa"))
    yield Entry("marks in a row", texts.with_few_marks, ("\u0301",))
    yield Entry("HTML", texts.unescaped, ("&#", "&#0", "&#x", "&notit", "&;"))
    for read in (
        whole_characters,
        hash_of_text,
        is_torn,
        split_name,
        word_set,
        read_statement,
        names_source,
        members_of,
    ):
        yield Entry(f"function {read.__name__}", read, ("\udcff", "train", "mean(", "{kind: ", "a,"))
    yield Entry("text for an engine", lambda text: from_engine(to_engine(text)), ("\udcff", "\ue000"))
    yield Entry("list of an engine", from_list, ("\U0010ffff", "\ue000\U0010fffe", "\ue000"))
    yield Entry("addresses in a line", with_slashes, ("s3:/", "milvus:/", "a:", "/"))
    yield Entry("tokens", lambda text: parse_tokens(text, "here"), ("ada read ", ";", "#", "sha256:", "\n"))
    yield Entry("vocabulary that is read", lambda text: read_vocabulary(text, "tokenizer.json"), _JSON)
    yield Entry("measure of a list", lambda text: parse_as(text, ()), ("MRR", "(", ","))


def _normalised(texts: Any, form: Any, text: str) -> str:
    return str(texts.normalised(text, form))


def _with_xmp(text: str) -> bytes:
    import io

    from PIL import Image

    found = io.BytesIO()
    Image.new("RGB", (1, 1)).save(found, "WEBP", xmp=text.encode("utf-8", "replace"))
    return found.getvalue()


def _of_requests() -> Iterator[Entry]:
    from rungwise.serving.access import AccessGuard, AccessTokens

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    door = AccessGuard(behind, ("localhost",), AccessTokens.single(_TOKEN))
    for header in ("host", "origin", "cookie", "authorization", "sec-fetch-site"):
        yield Entry(f"header {header}", partial(_asked, door, header), _REQUEST, (*FRAMES, ('rungwise-80="', '"')))
    yield Entry("address", partial(_asked, door, ""), _REQUEST)


def _asked(door: Any, header: str, text: str) -> None:
    """One request with a header, or with a query in its address."""
    said = text.encode("utf-8", "replace")
    headers = {b"host": b"localhost"} | ({header.encode(): said} if header else {})
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/" if not header else "/search",
        "headers": list(headers.items()),
        "query_string": b"" if header else said,
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        del message

    with suppress(StopIteration):
        door(scope, receive, send).send(None)


_TOKEN = "correct-horse"


def requests(scratch: Path) -> Iterator[Entry]:
    """Parts of requests to a whole server: what a query says, names in paths, headers, bodies."""
    from fastapi.testclient import TestClient

    from rungwise.index import Index
    from rungwise.serving import ServerSettings, create_app
    from tests.colour_model import ColourModel, colour_pictures

    place = Path(tempfile.mkdtemp(dir=scratch))
    index = Index.build(colour_pictures(place / "photos", ["red", "blue"]), ColourModel(), place / "index")
    app = create_app(index, ColourModel(), settings=ServerSettings(token=_TOKEN))
    parts: dict[str, tuple[str, str, str]] = {
        **{f"header {name}": ("GET", "/static/where.js", name) for name in ("range", "if-none-match", "accept")},
        **{f"header {name} ": ("GET", "/images/0-red", name) for name in ("if-none-match", "accept-encoding")},
        **{f"parameter {name}": ("GET", "/search", f"?{name}=") for name in ("q", "where", "like", "k", "misspelt")},
        "parameter q of why": ("GET", "/why", "?id=0-red&q="),
        "parameter columns": ("POST", "/items", "?id=new&columns="),
        "id in a path": ("GET", "/items/", "/"),
        "body of a grade": ("POST", "/grades", "body"),
        "header content-type": ("POST", "/pictures", "content-type"),
    }
    with TestClient(app, raise_server_exceptions=False) as client:
        assert client.portal is not None
        for name, part in parts.items():
            read = partial(_answered, client, *part)
            yield Entry(f"server, {name.strip()}", read, _REQUEST, (("", ""), ("bytes=", "-"), ('"', '"')))


def _answered(client: Any, method: str, path: str, part: str, text: str) -> None:
    """One request, handed to the application as a server would."""
    said = text.encode("utf-8", "replace")
    headers = [(b"host", b"127.0.0.1:80"), (b"authorization", f"Bearer {_TOKEN}".encode())]
    headers += [(b"content-length", str(len(said) if part == "body" else 0).encode())]
    query, _, name = part.removeprefix("?").rpartition("&") if part[:1] == "?" else ("", "", "")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path + text if part == "/" else path,
        "raw_path": path.encode(),
        "root_path": "",
        "headers": headers if part[:1] in "?/" or part == "body" else [*headers, (part.encode(), said)],
        "query_string": f"{query}&{name}".encode() + said if name else b"",
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 80),
    }
    body = [{"type": "http.request", "body": said if part == "body" else b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        return body.pop() if body else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] not in (401, 421, 500), "the request did not get to what reads it"

    client.portal.call(partial(client.app, scope, receive, send))


# --- every regular expression ----------------------------------------------------------------------------------------

_LOOKING = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
_EVERY = _LOOKING | {"match", "fullmatch"}


@dataclass(frozen=True)
class Pattern:
    """A regular expression of the package.

    Attributes:
        place: The file and the name, or the line.
        pattern: Compiled.
        methods: By which it is used there.
    """

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def all_patterns() -> Iterator[Pattern]:
    """Those that stand at the top of a module, and those that are given to functions of ``re`` as they are."""
    for name in modules():
        if name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:  # an extra that is not installed
            continue
        yield from _patterns_in(module)


def _patterns_in(module: Any) -> Iterator[Pattern]:
    file = Path(module.__file__)
    place = file.relative_to(PACKAGE).as_posix()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
    names = (one for node in tree.body for one in ast.walk(node) if isinstance(one, ast.Name))
    own = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    others = {method for owner, methods in used.items() if owner not in vars(module) for method in methods}
    for name in sorted(own & vars(module).keys()):
        for number, pattern in enumerate(_patterns_of(vars(module)[name])):
            which = name if isinstance(vars(module)[name], re.Pattern) else f"{name}[{number}]"
            yield Pattern(
                f"{place}, {which}", pattern, frozenset(used.get(name, others) & _EVERY or others & _EVERY or _EVERY)
            )
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        of_re = isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
        if of_re and call.func.attr in _EVERY and isinstance(call.args[0], ast.Constant):
            flags = re.MULTILINE if "MULTILINE" in ast.unparse(call) else 0
            compiled = re.compile(call.args[0].value, flags)
            yield Pattern(f"{place}, line {call.lineno}", compiled, frozenset({call.func.attr}))


def _patterns_of(value: object) -> Iterator[re.Pattern[Any]]:
    """A pattern, or those that a tuple, a list or a mapping holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _patterns_of(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _patterns_of(one)


def patterns() -> Iterator[Entry]:
    """An entry for each, with units out of the pattern itself."""
    for one in all_patterns():
        units = units_of(one.pattern)
        frames = (("", ""), ("", "\x00"), ("\x00", units[0] if units else "a"), *((unit, "!") for unit in units[:6]))
        yield Entry(f"pattern {one.place}", partial(_matched, one), units, frames, common=False)


def _matched(one: Pattern, text: str) -> None:
    given: Any = text if isinstance(one.pattern.pattern, str) else text.encode("latin-1", "replace")
    for name in one.methods & {"match", "fullmatch"}:
        getattr(one.pattern, name)(given)
    if one.methods & _LOOKING:
        for _ in one.pattern.finditer(given):
            pass


@cache
def units_of(pattern: re.Pattern[Any]) -> tuple[str, ...]:
    """Letters and runs of letters that a pattern knows: one of each class, each literal, and its whole alternatives."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    found: dict[str, None] = {}
    _collect(parser.parse(text, pattern.flags & ~re.UNICODE), found)
    known = [unit for unit in found if unit]
    return tuple(known[:40])


_OF_CATEGORY = {
    signs.CATEGORY_DIGIT: "1",
    signs.CATEGORY_NOT_DIGIT: "a",
    signs.CATEGORY_SPACE: " ",
    signs.CATEGORY_NOT_SPACE: "a",
    signs.CATEGORY_WORD: "a",
    signs.CATEGORY_NOT_WORD: "-",
}


def _collect(parsed: Any, found: dict[str, None]) -> str:
    """One text that a part matches; every part's own is noted."""
    whole = ""
    for code, value in parsed:
        text = ""
        if code is signs.LITERAL:
            text = chr(value)
        elif code is signs.NOT_LITERAL:
            text = "a" if value != ord("a") else "b"
        elif code is signs.ANY:
            text = "a"
        elif code is signs.IN:
            text = _of_class(value, found)
        elif code in (signs.MAX_REPEAT, signs.MIN_REPEAT, signs.POSSESSIVE_REPEAT):
            text = _collect(value[2], found)
        elif code is signs.SUBPATTERN:
            text = _collect(value[3], found)
        elif code is signs.ATOMIC_GROUP:
            text = _collect(value, found)
        elif code is signs.BRANCH:
            text = [_collect(one, found) for one in value[1]][-1]
        elif code in (signs.ASSERT, signs.ASSERT_NOT):
            _collect(value[1], found)
        elif code is signs.CATEGORY:
            text = _OF_CATEGORY[value]
        found.setdefault(text)
        whole += text
    found.setdefault(whole)
    return whole


def _of_class(parts: Sequence[Any], found: dict[str, None]) -> str:
    negated = parts[0][0] is signs.NEGATE
    there = []
    for code, value in parts:
        if code is signs.LITERAL:
            there.append(chr(value))
        elif code is signs.RANGE:
            there.append(chr(value[0]))
        elif code is signs.CATEGORY:
            there.append(_OF_CATEGORY[value])
    for one in there[:8]:
        found.setdefault(one)
    return next((one for one in "a 1-" if one not in there), "\u4e00") if negated else there[0]


# --- files -----------------------------------------------------------------------------------------------------------

_SUFFIXES = frozenset({".txt", ".csv", ".tsv", ".json", ".jsonl", ".trec", ".yaml", ".list", ".noun", ".verb"})
_IN_FILES = (
    *(
        " ",
        "\n",
        "\r\n",
        ",",
        ";",
        "\t",
        '"',
        '""',
        '","',
        "'",
        "[",
        "{",
        "\\",
        "a",
        "a,",
        "#",
        "0",
        "1.",
        "&",
        "---\n",
        "#1\t",
    ),
    *(
        "- a\n",
        "a: b\n",
        "[a, ",
        "\u0301\u0327",
        "e\u0301",
        "x;",
        '{"a": 1}\n',
        "a b c\n",
        "1 2 3\n",
        "a.jpg,a\n",
        "[[",
        "\\u0301",
    ),
)


def files(world: Path, scratch: Path) -> Iterator[Entry]:
    """Every reader of text files, with its good file spoilt: alone, before its last line, and inside of a text."""
    import shutil

    from tests.hostile.readers import subjects

    for subject in subjects():
        if subject.cover == "seal":  # a checksum refuses whatever is changed
            continue
        for file in subject.files:
            good = world / subject.folder / file
            if good.suffix not in _SUFFIXES or not good.is_file():
                continue
            place = scratch / "texts"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(world / subject.folder, place, symlinks=True)

            def read(text: str, subject: Any = subject, path: Path = place / file, place: Path = place) -> None:
                path.write_bytes(text.encode("utf-8", "surrogatepass"))
                subject.read(place)

            yield Entry(f"file, {subject.name}: {file}", read, _IN_FILES, _frames_of(good), common=False)


def _frames_of(good: Path) -> tuple[tuple[str, str], ...]:
    text = good.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    head, last = "".join(lines[:-1][:50]), lines[-1]
    inside = text.rfind("e") if good.suffix in (".json", ".jsonl") else len(head) + last.find("e")
    return (("", ""), (head, last), (text[:inside], text[inside:]))
