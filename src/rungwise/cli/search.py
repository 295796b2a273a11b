"""``rungwise search``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from rungwise.cli.found import Answered
from rungwise.cli.parsing import ADVANCED, parse
from rungwise.cli.terminal import console, messages_apart, say, say_issues
from rungwise.core.errors import UserError
from rungwise.serving.tokens import TOKEN

if TYPE_CHECKING:
    from rungwise.models import PairScorer

_EXAMPLES = (
    'rungwise search photos.index "two dogs running through snow"',
    'rungwise search photos.index \'"a beach" - "people"\' --where "year >= 2020"',
    "rungwise search photos.index --image query.jpg --copy-to found",
)


@dataclass
class Search:
    """Find pictures by a text, by pictures, or by both.

    Attributes:
        index: Folder of the index, or the address of a server. Such as http://HOST:PORT; s3://BUCKET/PREFIX works too.
        query: What to look for. Texts and files of pictures may be added and taken away: "beach" - "people" + dog.jpg.
        where: Only pictures that fulfil this. Such as: year >= 2020 and tags has 'beach'.
        k: How many to show.
        image: A picture that results are to be like; repeatable.
        like: The id of a picture of the index that results are to be like; repeatable.
        unlike: The id of a picture of the index that results are to be unlike; repeatable.
        json: Print one JSON object and nothing else. Messages go to the standard error.
        open: Look at what was found. The picture, or a page of them, is opened as this system opens such files.
        copy_to: Copy what was found into this folder. No file is overwritten.
        offset: How many of the best to pass over.
        words: Whether the words of captions and columns are searched too.
        diversity: How much results are to differ. From 0, the best ones, to 1.
        fold: Show near-duplicates as one.
        exact: Compare with every picture. An approximate index is left aside.
        rerank: Rank the best ones anew with this model. It reads each picture together with the text.
        rerank_top: How many are ranked anew.
        token: Of the server. Better set RUNGWISE_TOKEN: others can read a command line.
        model: The model that built the index, if it has moved.
        device: Where the model computes, such as cpu or cuda. Default cuda where there is one.
        altered_model: Take a model whose files are not as its SHA256SUMS says.
    """

    index: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="INDEX")]
    query: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[QUERY]")] = None
    where: Annotated[str | None, tyro.conf.arg(metavar="EXPRESSION")] = None
    k: int = 10
    image: Annotated[tyro.conf.UseAppendAction[tuple[Path, ...]], tyro.conf.arg(metavar="FILE")] = ()
    like: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="ID")] = ()
    unlike: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="ID")] = field(
        default=(), metadata=ADVANCED
    )
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    copy_to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    offset: int = field(default=0, metadata=ADVANCED)
    words: Literal["auto", "on", "off"] = field(default="auto", metadata=ADVANCED)
    diversity: float = field(default=0.0, metadata=ADVANCED)
    fold: bool = field(default=True, metadata=ADVANCED)
    exact: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    rerank: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = field(default=None, metadata=ADVANCED)
    rerank_top: int = field(default=50, metadata=ADVANCED)
    token: str | None = field(default=None, metadata=ADVANCED)
    model: str | None = field(default=None, metadata=ADVANCED)
    device: str | None = field(default=None, metadata=ADVANCED)
    altered_model: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)

    @property
    def is_remote(self) -> bool:
        """Whether a server is asked."""
        return self.index.startswith(("http://", "https://"))


def main(arguments: list[str]) -> int:
    """Search, print, copy, open."""
    asked = parse(Search, arguments, "rungwise search", examples=_EXAMPLES)
    _check(asked)
    with messages_apart(asked.json):
        if asked.is_remote:
            from rungwise.cli.remote import ask

            answered = ask(asked)
        else:
            answered = _local(asked)
    if asked.json:
        print(answered.as_json())
    else:
        for line in answered.lines(console.width if console.is_terminal else None, Path.cwd()):
            say(line)
        if answered.more:
            say(f"more: --offset {asked.offset + len(answered.hits)}")
    with messages_apart(asked.json):
        _take(asked, answered)
    return 0


def _check(asked: Search) -> None:
    """Refuse what cannot be meant, before anything is opened.

    Raises:
        UserError: Naming the option.
    """
    if asked.query is not None and not asked.query.strip():
        raise UserError("the query is empty; write a few words about the picture")
    if not (asked.query or asked.image or asked.like or asked.unlike or asked.where):
        raise UserError('give a text, --image FILE or --like ID, as in: rungwise search INDEX "a red boat"')
    for name, value, least in (("k", asked.k, 1), ("offset", asked.offset, 0), ("rerank-top", asked.rerank_top, 1)):
        if value < least:
            raise UserError(f"--{name} must be at least {least}, got {value}")
    if not 0 <= asked.diversity <= 1:
        raise UserError(f"--diversity must lie in 0..1, got {asked.diversity:g}")
    here = {"--exact": asked.exact, "--rerank": asked.rerank, "--model": asked.model, "--device": asked.device}
    if asked.is_remote and (idle := [name for name, given in here.items() if given]):
        raise UserError(f"{idle[0]} is the server's business; leave it out, or search the folder of the index")
    if asked.token is not None and not asked.is_remote:
        raise UserError("--token is for a server, and this is a folder; leave it out")


def _local(asked: Search) -> Answered:
    """Search an index of this machine, or one in a bucket."""
    from rungwise.cli.models import read_dual_encoder, read_model, say_cut
    from rungwise.index import Index, Searcher, SearchOptions, parse_where

    where = None if asked.where is None else parse_where(asked.where)
    place: Any = asked.index if "://" in asked.index else Path(asked.index)
    index = Index.open(place)
    if not (asked.query or asked.image or asked.like or asked.unlike):
        return _listed(asked, index, where)
    read = parse_terms(asked)
    model = read_dual_encoder(asked.model or index.manifest.model_location, asked.device, altered=asked.altered_model)
    searcher = Searcher(index, model)
    query, captions = read(searcher)
    if line := index.stand_in(model):
        say(line)
    say_cut(model, query.texts)
    scorer: PairScorer | None = None
    if asked.rerank is not None:
        scorer = read_model(asked.rerank, asked.device, altered=asked.altered_model)
    options = SearchOptions(
        fold_duplicates=asked.fold,
        diversity=asked.diversity,
        words=asked.words,
        exact=asked.exact,
        rerank=scorer,
        rerank_top=asked.rerank_top,
    )
    answer = searcher.search(query, asked.k, offset=asked.offset, where=where, options=options)
    return Answered(
        query=asked.query or "",
        hits=shown(index, [(hit.id, hit.score) for hit in answer.hits]),
        reading=answer.reading,
        unknown=tuple(map(str, answer.unknown)),
        unknown_words=tuple((one.word, tuple(one.near)) for one in answer.unknown),
        notes=answer.notes,
        folded=answer.folded,
        captions=tuple((one.text, one.score) for one in captions),
        more=answer.more,
        first=asked.offset + 1,
    )
