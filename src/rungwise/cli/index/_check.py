"""``rungwise check INDEX``: what its search, or another engine's over the same pictures, misses and costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rungwise.cli.frame import IndexFolder, parse
from rungwise.core import UserError
from rungwise.core.text import idle_beside, idle_where, idle_without
from rungwise.jobs import ADVANCED, AlteredModel, Device, console, messages_apart, progress_bar, say

if TYPE_CHECKING:
    from rich.table import Table

    from rungwise.index import Index
    from rungwise.index.filters import Where
    from rungwise.index.stores import Approximation
    from rungwise.models import DualEncoder
    from rungwise.quality import DegreeLoss, EngineCheck, Grading, IndexCheck, JudgeList, Number, Queries, Tuning

_OWN = ("captions", "pictures")
_BY_MODEL = "model"
_USUAL_SOURCE = "cider-d"
_LOSS = 0.001
_NAMES = {"recall": "recall", "ndcg": "nDCG"}
_EXAMPLES = (
    "rungwise check photos.index",
    "rungwise check photos.index --queries queries.txt --where 'year >= 2020'",
    "rungwise check photos.index --tune --loss 0.001",
    "rungwise check photos.index --against 'lancedb://vectors/photos?id=file'",
)


@dataclass
class CheckIndex:
    """How good the answers of an index are: its search as it is served beside the exact one.

    Prints how many of the best pictures the approximate search finds (recall), what those that it misses cost in graded
    measures of the ranking (nDCG and CS), and how long both searches take.

    Attributes:
        queries: What to ask: captions or pictures or a FILE. Captions and pictures are those of the index; a file has
            one query a line. Default: captions, or pictures where there are no captions.
        number: How many queries to ask at most; they are drawn at random.
        k: How many pictures to look at for each query.
        where: A filter under which the queries are asked, too. Such as "year >= 2020 and tags has 'beach'".
        relevance: What says how relevant a picture is to a query. A source such as cider-d or tfidf compares the query
            with captions; also a folder that "rungwise relevance" wrote, or model: the model's own exact similarity.
            Default: cider-d, or model where there are no captions.
        against: The engine to ask: faiss:FILE?ids=LINES.txt, lancedb://FOLDER/TABLE, qdrant://HOST:PORT/COLLECTION,
            postgresql://HOST/DATABASE?table=TABLE, elasticsearch+https://HOST:PORT/INDEX or opensearch+... Behind a
            question mark stand vector=FIELD, id=FIELD and metric=cosine, l2 or inner.
        tune: Keep the fastest setting within --loss. Settings are those of the approximate index; with --where one must
            hold under the filter, too.
        loss: How much of the exact search's result may be lost: 0.001 is one in a thousand.
        loss_in: What the loss is counted in: recall, or nDCG by the degrees of relevance.
        json: Print everything as JSON.
        model: For a file of queries, and for ends: the model that built the index, if it has moved.
        seed: Of the draw of queries.
    """

    index: IndexFolder
    queries: str | None = None
    number: int = 200
    k: int = 10
    where: str | None = None
    relevance: str | None = None
    against: str | None = None
    tune: bool = False
    loss: float | None = None
    loss_in: Literal["recall", "ndcg"] | None = None
    json: bool = False
    model: str | None = None
    device: Device = field(default=None, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)

    IDLE = (
        idle_without("loss loss_in", "tune"),
        idle_beside("where tune", "against"),
        idle_where(
            "model device altered_model",
            lambda asked: not asked.takes_model,
            "without {queries} FILE or {against}: the index has the vectors of its own queries",
            "give both, or leave {} out",
        ),
    )

    @property
    def takes_model(self) -> bool:
        """Queries of a file are asked, which a model encodes, or ends are judged, which a model's standard is for."""
        return self.against is not None or self.asks_texts

    @property
    def asks_texts(self) -> bool:
        """Queries of a file are asked."""
        return self.queries is not None and self.queries not in _OWN


def main(arguments: list[str]) -> int:
    """Run the queries, compare, and print."""
    asked = parse(CheckIndex, arguments, "rungwise check", examples=_EXAMPLES)
    _refuse_mistakes(asked)
    from rungwise.index import Index
    from rungwise.index.filters import parse_where
    from rungwise.quality import check, searches

    where = None if asked.where is None else parse_where(asked.where)
    with messages_apart(asked.json):
        index = Index.open(asked.index)
        if not len(index):
            raise UserError(f"{asked.index}: the index is empty; add pictures with rungwise index")
        filters: dict[str, Where | None] = {"": None}
        if where is not None and asked.where is not None:
            filters[asked.where] = index.understood(where)
        queries, model = _queries(asked, index)
        grading = _grading(asked, index, queries)
        if asked.against is not None:
            return _against(asked, asked.against, index, queries, grading, model)
        store = index.picture_store
        if asked.tune and store.about().exact:
            raise UserError(f"{asked.index}: there is nothing to tune: {store.about().why}")
        with progress_bar("searches", searches(store, queries, len(filters))) as advance:
            found = check(store, queries, grading, k=asked.k, filters=filters, progress=advance)
        tuning = _tuned(asked, index, queries, grading, filters) if asked.tune else None
    if asked.json:
        print(json.dumps(found.plain() | ({"tuning": tuning.plain()} if tuning else {}), indent=1, allow_nan=False))
    else:
        _say(found, _of_how_many(index, queries))
        if tuning:
            console.print(_frontier(tuning))
    if tuning:
        _keep(index, tuning)
    return 0


def _against(
    asked: CheckIndex, address: str, index: Index, queries: Queries, grading: Grading, model: DualEncoder | None
) -> int:
    """Ask another engine, and print what its lists miss and where they should have ended."""
    from rungwise.integrations.engines import open_engine
    from rungwise.quality import check_against

    engine = open_engine(address)
    judge, judged_by = _list_judge(asked, index, queries, model)
    with progress_bar("searches", 2 * len(queries)) as advance:
        found = check_against(
            engine, index, queries, grading, k=asked.k, judge=judge, judged_by=judged_by, progress=advance
        )
    if asked.json:
        print(json.dumps(found.plain(), indent=1, allow_nan=False))
    else:
        _say_against(found, _of_how_many(index, queries))
    return 0


def _list_judge(
    asked: CheckIndex, index: Index, queries: Queries, model: DualEncoder | None
) -> tuple[JudgeList | None, str]:
    """What judges where lists end, and a line on it; None, with the reason said, where nothing can."""
    from rungwise.index import Searcher

    if queries.kind == "pictures":
        say("ends: not judged, since pictures are asked for; take captions or texts as queries")
        return None, ""
    try:
        model = model or _model(asked, index)
    except UserError as error:
        if asked.model is not None:
            raise
        say(f"ends: not judged, since the model of the index is not at hand ({error}); name it by --model")
        return None, ""
    searcher = Searcher(index, model)
    return searcher.judge_list, searcher.judging.source


def _say_against(found: EngineCheck, of: int) -> None:
    say(f"engine: {found.engine}, {found.rows:,} vectors; the index has {found.pictures:,} pictures")
    _say_asked(found, of)
    console.print(_against_table(found))
    say("intervals: 95 %, paired bootstrap over the pictures that queries belong to")
    say(f"{found.incomplete} of {found.queries} queries miss a picture that the exact search finds")
    if found.unknown:
        say(f"{found.unknown} hits are of no picture of the index; they are left out")
    if found.ungraded:
        say(f"{found.ungraded} of {found.queries} queries have no relevant picture and count 0 in nDCG")
    if (ends := found.ends) is None:
        return
    say(f"where its lists should end ({ends.judged_by}):")
    say(f"  on average after {ends.shown:.1f} of {found.k} hits; {ends.after:.0f} % of its hits stand after the end")
    say(f"  {ends.empty} of {found.queries} queries should show nothing, {ends.whole} may show more than {found.k}")
    before, after = (f"{one:.3f}" if one == one else "-" for one in (ends.degree_before, ends.degree_after))
    say(f"  mean degree of relevance before the end {before}, after it {after}")


def _against_table(found: EngineCheck) -> Table:
    table = _empty_table("engine", "exact", "engine - exact", "interval")
    _add_recall(table, found.k, found.recall)
    for loss in found.losses:
        _add_loss(table, loss, compared=True)
    for name in ("p50", "p99"):
        table.add_row(f"{name}, ms", f"{getattr(found.latency, name):.1f}")
    return table


def _tuned(
    asked: CheckIndex, index: Index, queries: Queries, grading: Grading, filters: Mapping[str, Where | None]
) -> Tuning:
    from rungwise.quality import trials_of, tune

    store = index.picture_store
    total = len(queries) * len(filters) * (1 + len(trials_of(store, filters)))
    with progress_bar("searches with other settings", total) as advance:
        return tune(
            store,
            queries,
            grading,
            k=asked.k,
            filters=filters,
            measure=asked.loss_in or "recall",
            allowed=_LOSS if asked.loss is None else asked.loss,
            progress=advance,
        )


def _keep(index: Index, tuning: Tuning) -> None:
    """Store the chosen setting; messages stay apart from JSON."""
    if tuning.chosen is None:
        best = min(tuning.trials, key=lambda trial: trial.loss(tuning.measure))
        raise UserError(
            f"no setting loses {tuning.allowed:g} of {_NAMES[tuning.measure]} or less: the best one loses"
            f" {best.loss(tuning.measure):g}, so nothing is changed; allow more with --loss"
        )
    with messages_apart():
        if tuning.chosen.settings == tuning.before:
            say(f"kept as it is: {_setting(tuning.before)} is the fastest within the loss")
            return
        index.approximate(tuning.chosen.settings)
        say(f"kept from now on: {_setting(tuning.chosen.settings)}, in place of {_setting(tuning.before)}")


def _frontier(tuning: Tuning) -> Table:
    from rich import box
    from rich.table import Table

    shown = dict.fromkeys((*tuning.frontier(), *(one for one in tuning.trials if one.settings == tuning.before)))
    table = Table(
        title=f"{len(tuning.trials)} settings tried; those than which none is faster and loses less",
        caption=f"may be lost: {tuning.allowed:g} of {_NAMES[tuning.measure]}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("setting", overflow="fold")
    for head in ("recall, %", "nDCG lost, %", "p50, ms", "p99, ms"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for trial in sorted(shown, key=lambda one: one.latency.p50):
        notes = ["chosen"] * (trial == tuning.chosen) + ["as it was"] * (trial.settings == tuning.before)
        table.add_row(
            _setting(trial.settings),
            f"{trial.recall:.2f}",
            f"{trial.ndcg_loss:.3f}",
            f"{trial.latency.p50:.1f}",
            f"{trial.latency.p99:.1f}",
            "\n".join(notes),
        )
    return table


def _setting(settings: Approximation) -> str:
    of_another = {"kind", "probes" if settings.kind == "graph" else "ef"}
    return ", ".join(f"{name} {value}" for name, value in asdict(settings).items() if name not in of_another)


def _refuse_mistakes(asked: CheckIndex) -> None:
    for option, number in (("--number", asked.number), ("--k", asked.k)):
        if number < 1:
            raise UserError(f"{option} must be at least 1, got {number}")
    if asked.loss is not None and not 0 <= asked.loss < 1:
        raise UserError(f"--loss must be a share from 0 to below 1, such as 0.001, got {asked.loss:g}")
    if asked.asks_texts and not Path(str(asked.queries)).is_file():
        raise UserError(
            f"--queries {asked.queries}: no such file; name a file with one query a line, or write captions or pictures"
        )


def _model(asked: CheckIndex, index: Index) -> DualEncoder:
    from rungwise.jobs import read_dual_encoder

    return read_dual_encoder(asked.model or index.manifest.model_location, asked.device, altered=asked.altered_model)


def _queries(asked: CheckIndex, index: Index) -> tuple[Queries, DualEncoder | None]:
    """The queries, and the model where it had to be loaded to encode them."""
    from rungwise.data.files import read_lines
    from rungwise.jobs import say_cut
    from rungwise.quality import given_texts, own_captions, own_pictures

    kind = asked.queries or ("captions" if next(index.captions(), None) is not None else "pictures")
    try:
        if kind == "captions":
            return own_captions(index, asked.number, asked.seed), None
        if kind == "pictures":
            return own_pictures(index, asked.number, asked.seed), None
    except UserError as error:
        raise UserError(f"{asked.index}: {error}") from None
    texts = [line for _, line in read_lines(Path(kind))]
    model = _model(asked, index)
    queries = given_texts(index, model, texts, asked.number, asked.seed)
    if line := index.manifest.stand_in(model):
        say(line)
    say_cut(model, queries.names)
    return queries, model


def _grading(asked: CheckIndex, index: Index, queries: Queries) -> Grading:
    from rungwise.quality import CaptionGrading, ModelGrading

    has_captions = next(index.captions(), None) is not None
    source = asked.relevance or (_USUAL_SOURCE if has_captions else _BY_MODEL)
    if source == _BY_MODEL:
        return ModelGrading(index, queries)
    if not has_captions:
        raise UserError(f"--relevance {source}: {asked.index} has no captions to compare; take --relevance model")
    return CaptionGrading(index, queries, source)


def _of_how_many(index: Index, queries: Queries) -> int:
    """Number of captions or pictures of the index that the queries were drawn from; their own number for others."""
    match queries.kind:
        case "captions":
            return index.caption_store.count()
        case "pictures":
            return len(index)
    return len(queries)


def _say(found: IndexCheck, of: int) -> None:
    say(f"store: {found.store.kind}, {'exact' if found.store.exact else 'approximate'}: {found.store.why}")
    _say_asked(found, of)
    console.print(_table(found))
    if not found.store.exact:
        say("intervals: 95 %, paired bootstrap over the pictures that queries belong to")
    say("ms: a search in the store, one at a time, without encoding the query")
    for case in found.cases:
        under = f" under {case.where}" if case.where else ""
        if case.recall is not None:
            say(f"{case.incomplete} of {found.queries} queries miss a picture that the exact search finds{under}")
        if case.ungraded:
            say(f"{case.ungraded} of {found.queries} queries have no relevant picture and count 0 in nDCG{under}")
    if found.store.exact:
        say("every picture is compared, so that none is missed")


def _say_asked(found: IndexCheck | EngineCheck, of: int) -> None:
    asked = "texts" if found.kind == "texts" else f"{found.kind} of the index"
    drawn = f", drawn at random from {of:,}" if of > found.queries else ""
    say(f"queries: {found.queries} {asked}{drawn}, k {found.k}")
    say(f"degrees of relevance: {found.grades}")


def _empty_table(*heads: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _add_recall(table: Table, k: int, recall: Number) -> None:
    value, (low, high) = recall.value, recall.interval
    row = (f"{value:.2f}", "100.00", f"{value - 100:+.2f}", f"{low - 100:+.2f}..{high - 100:+.2f}")
    table.add_row(f"recall@{k}, %", *row)


def _add_loss(table: Table, loss: DegreeLoss, *, compared: bool) -> None:
    places, unit = (3, "") if loss.name.startswith("CS") else (2, ", %")
    row = [f"{loss.served:.{places}f}"]
    if compared:
        low, high = loss.difference.interval
        row += [f"{loss.exact:.{places}f}", f"{loss.difference.value:+.{places}f}"]
        row += [f"{low:+.{places}f}..{high:+.{places}f}"]
    table.add_row(loss.name + unit, *row)


def _table(found: IndexCheck) -> Table:
    from rich.text import Text

    table = _empty_table(*(("served",) if found.store.exact else ("served", "exact", "served - exact", "interval")))
    for case in found.cases:
        if len(found.cases) > 1:
            table.add_row(Text(f"{case.where or 'no filter'} ({case.pictures} pictures)", style="bold"))
        if case.recall is not None:
            _add_recall(table, found.k, case.recall)
        for loss in case.losses:
            _add_loss(table, loss, compared=case.recall is not None)
        for name in ("p50", "p99"):
            row = [f"{getattr(case.latency, name):.1f}"]
            if case.exact_latency is not None:
                row.append(f"{getattr(case.exact_latency, name):.1f}")
            table.add_row(f"{name}, ms", *row)
    return table
