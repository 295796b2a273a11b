"""Every option of every command stands on the page of options that another one cancels, and is refused then.

What cancels settings of a training is tested with its command.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from rungwise.cli import COMMANDS, main
from rungwise.cli._demo import DemoCommand
from rungwise.cli._evaluate import EvaluateCommand
from rungwise.cli._grade import GradeCommand
from rungwise.cli.examine._doctor import Doctor
from rungwise.cli.examine._inspect import Inspect
from rungwise.cli.examine._verify import Verify, _of_others
from rungwise.cli.frame._parser import _unwrapped
from rungwise.cli.index._check import CheckIndex
from rungwise.cli.index._command import IndexCommand
from rungwise.cli.index._maintenance import COMMANDS as MAINTENANCE
from rungwise.cli.index._maintenance import BackupIndex, CompactIndex, ExportIndex, RestoreIndex
from rungwise.cli.index._plan import PlanCollection
from rungwise.cli.models._export import Export
from rungwise.cli.models._import_model import Import
from rungwise.cli.models._push import Push
from rungwise.cli.relevance._agree import _OF_PAIRS, Agree
from rungwise.cli.relevance._command import TASKS, Described
from rungwise.cli.relevance._explain import Explain
from rungwise.cli.relevance._model_scores import ModelScoresCommand
from rungwise.cli.relevance._pair_training import TrainCrossEncoder
from rungwise.cli.results._compare import CompareCommand
from rungwise.cli.results._table import TableCommand
from rungwise.cli.search._options import SearchCommand
from rungwise.cli.serve._command import _OF_QUERIES, Serve
from rungwise.cli.serve._mcp import Mcp
from rungwise.cli.serve._model import ServeModel
from rungwise.cli.serve._token import NewToken
from rungwise.cli.train._presets import Presets
from rungwise.core import UserError
from rungwise.core.text import IdleCase, idle_where
from rungwise.jobs import Plot, Study, called_from_python, flag
from rungwise.jobs.calibration import Calibrate
from rungwise.jobs.calibration._options import of_grades
from rungwise.jobs.evaluation import Evaluate
from rungwise.jobs.sources import SaveOptions
from rungwise.model_server import ModelLimits
from rungwise.relevance.config import CONFIGS, SpiceConfig
from tests.pages import pages_below

ELSEWHERE = {"train"}
"""Commands whose settings are gone through on other pages."""
KINDS: dict[str, tuple[type, ...]] = {
    "evaluate": (EvaluateCommand,),
    "calibrate": (Calibrate,),
    "relevance SOURCE": (SaveOptions, Described),
    **{f"relevance {one.kind}": (one,) for one in CONFIGS},
    "relevance agree": (Agree,),
    "relevance explain": (Explain, SpiceConfig),
    "relevance model-scores": (ModelScoresCommand,),
    "relevance train-cross-encoder": (TrainCrossEncoder,),
    "grade": (GradeCommand,),
    "index": (IndexCommand,),
    "index compact": (CompactIndex,),
    "index export": (ExportIndex,),
    "index backup": (BackupIndex,),
    "index restore": (RestoreIndex,),
    "search": (SearchCommand,),
    "serve": (Serve,),
    "mcp": (Mcp,),
    "serve-model": (ServeModel,),
    "check": (CheckIndex,),
    "plan": (PlanCollection,),
    "inspect": (Inspect,),
    "doctor": (Doctor,),
    "verify": (Verify,),
    "demo": (DemoCommand,),
    "compare": (CompareCommand,),
    "table": (TableCommand,),
    "plot": (Plot,),
    "study": (Study,),
    "presets": (Presets,),
    "token": (NewToken,),
    "export": (Export,),
    "import": (Import,),
    "push": (Push,),
}
SAID = idle_where(
    "store half", lambda _: True, "for an index that is there: said in a line, for the same command made it"
)
NO_SHARDS = idle_where("key", lambda _: True, "for data without tar shards: said in a line about the data")
NO_RESTVAL = idle_where(
    "join_restval", lambda _: True, "for data without a split restval: said in a line about the data"
)
BY_DATA: dict[str, tuple[IdleCase, ...]] = {
    "evaluate": (NO_SHARDS, NO_RESTVAL),
    "calibrate": (of_grades(), NO_SHARDS, NO_RESTVAL),
    "relevance SOURCE": (NO_SHARDS,),
    "relevance agree": (_OF_PAIRS, NO_SHARDS),
    "relevance explain": (NO_SHARDS,),
    "relevance model-scores": (NO_SHARDS,),
    "grade": (NO_SHARDS,),
    "index": (SAID, NO_SHARDS),
    "inspect": (NO_SHARDS, NO_RESTVAL),
    "doctor": (NO_SHARDS, NO_RESTVAL),
    "verify": (_of_others("anything but an index"),),
}
"""Cases that only the data, the index or the file show; each has a test beside those of its command."""

WITHOUT_DATA = "--similarity s.npy --captions-per-image 3"
BASES: dict[str, list[tuple[str, str]]] = {
    "evaluate": [
        ("for a result", "result.json"),
        ("without --rerank", "model photos"),
        ("without DATA, whose", WITHOUT_DATA),
        ("without --protocol labels", "model photos"),
        ("without a measure of where", "model photos --measures R@1"),
        ("without a measure that reads", "model photos --measures R@1 rsum"),
        ("without --write-run", "model photos"),
        ("without --write-qrels", "model photos --relevance degrees"),
        ("without --ranked-lists", "model photos"),
        ("without --report", "model photos"),
        ("without --false-negatives", "model photos"),
        ("without --paper", "model photos"),
        ("without DATA", WITHOUT_DATA),
        ("without a model", WITHOUT_DATA),
        ("without a model", WITHOUT_DATA),
        ("for a model of mteb", "mteb:openai/clip-vit-base-patch32 photos"),
        ("without --precision auto", "model photos"),
        ("without --image-embeddings", "model photos"),
        ("without --report or --paper", "model photos"),
    ],
    "compare": [("beside --format", "a.json b.json --format csv")],
    "plot": [
        ("without --kind setting", "runs --kind recall"),
        ("with --kind epochs", "runs --kind epochs"),
        ("without --kind epochs or", "runs --kind recall"),
    ],
    "study": [("with --dry-run", "study.yaml --dry-run")],
    "table": [("beside a table of a paper", "vsepp:1")],
    "calibrate": [
        ("with --show", "model --show"),
        ("without --relevance", "model photos"),
        ("without DATA", "model"),
        ("without --precision auto", "model photos"),
    ],
    "relevance SOURCE": [
        ("without --out", "photos"),
        ("without --top", "photos --out x"),
        ("without --show-rungs", "photos"),
        ("beside --thresholds", "photos --thresholds 2 1 --show-rungs x"),
    ],
    "relevance spice": [
        ("without --likeness words", "photos --likeness sentences"),
        ("without --likeness sentences", "photos --likeness words"),
        ("without --likeness", "photos"),
    ],
    "relevance explain": [
        ("without --likeness words", "photos a.jpg text"),
        ("without --likeness sentences", "photos a.jpg text"),
        ("without --likeness", "photos a.jpg text"),
    ],
    "relevance cascade": [("with a --threshold above 1", "photos --threshold 1.5")],
    "relevance visual": [
        ("without --through", "photos"),
        ("with --neighbours 1", "photos --through tfidf --neighbours 1"),
    ],
    "relevance combine": [
        ("without --fit", "photos --of tfidf spice"),
        ("beside --fit or --fitted", "photos --of tfidf spice --fitted x.json"),
        ("with --how mean or max", "photos --of tfidf spice --how max"),
        ("with one source alone", "photos --of tfidf"),
    ],
    "relevance agree": [("without --data", "tfidf grades.csv"), ("with --draws 0", "tfidf grades.csv --draws 0")],
    "relevance model-scores": [
        ("without --out", "photos --model m --vectors x.npz"),
        ("without --top", "photos --model m --out x"),
        ("without --precision auto", "photos --model m --out x"),
    ],
    "relevance train-cross-encoder": [
        ("without --distil-into", "pairs.csv --out x"),
        ("without --captions", "pairs.csv --out x --distil-into y"),
        ("with --unlabelled 0", "pairs.csv --out x --distil-into y --unlabelled 0"),
    ],
    "grade": [("beside --agreement", "wrong.csv --agreement"), ("with --no-shuffle", "wrong.csv --no-shuffle")],
    "index": [
        ("without --ray", "photos"),
        ("beside --overwrite", "photos --overwrite"),
        ("without --precision auto", "photos --precision float32"),
    ],
    "index restore": [("beside --check", "backup --check")],
    "search": [
        ("at a server", "http://127.0.0.1:9/ red"),
        ("in a folder", "photos.index red"),
        ("in what is no table of LanceDB", "photos.index red"),
        ("in a table of somebody else", "lancedb://folder/photos red"),
        ("where --where alone", "photos.index --where year>2020"),
        ("without words to look for", "photos.index --like a.jpg"),
        ("without --rerank", "photos.index red"),
        ("without --paths", "photos.index red"),
        ("in a table of LanceDB", "lancedb://folder/photos red"),
        ("without words to look for", "photos.index --like a.jpg"),
        ("without a model that reads regions", "photos.index red"),
    ],
    "serve": [
        ("without --log json", "photos.index"),
        ("without --rerank", "photos.index"),
        ("with --rerank", "photos.index --rerank model"),
        ("at an address that no other", "photos.index"),
    ],
    "mcp": [
        ("without --http", "photos.index"),
        ("at an address that no other", "photos.index --http"),
        ("for the address of a server", "http://127.0.0.1:9/"),
    ],
    "serve-model": [("at an address that no other", "model")],
    "check": [
        ("without --tune", "photos.index"),
        ("beside --against", "photos.index --against lancedb://folder/photos"),
        ("without --queries FILE", "photos.index"),
    ],
    "plan": [
        ("without --measure", "10k"),
        ("beside --stored", "10k --measure --stored photos.index"),
        ("beside --pictures-per-second", "10k --pictures-per-second 90"),
    ],
    "inspect": [("beside --captions-only", "photos --captions-only")],
    "doctor": [("for a run", "run"), ("for DATA", "photos")],
    "verify": [("with --no-encode", "photos.index --no-encode")],
    "demo": [("without --check", ""), ("beside --check", "--check"), ("beside --export", "--export x")],
}
"""Words with which a case is there, by command and by the beginning of its reason, in the order of the cases."""

IN_PLACE_OF_A_RESULT = {
    ("evaluate", one) for one in ("image_embeddings", "text_embeddings", "similarity", "ranked_lists")
}
"""Options beside which a JSON file is taken for data; Python tells a result by its class."""


def cases(command: str) -> tuple[IdleCase, ...]:
    return tuple(case for kind in KINDS[command] for case in getattr(kind, "IDLE", ()))


def known(command: str) -> dict[str, Any]:
    """Types of the options by name; those that stand without a name, or that Python alone gives, are left out."""
    found = {}
    for kind in KINDS[command]:
        hints = get_type_hints(kind, include_extras=True)
        for one in fields(kind):
            plain, given, is_positional = _unwrapped(hints[one.name])
            kinds = get_origin(plain) is Literal and len(get_args(plain)) == 1
            group = given is not None and given.name == ""  # whose options stand in the list themselves
            if not (is_positional or kinds or group or one.metadata.get("python")):
                found[one.name] = (kind, plain, one.default)
    return found


def words_of(name: str, plain: Any, usual: object) -> list[str]:
    """Words that give an option a value which is not its default."""
    if name == "ray":  # whose value is an address, and may be left out
        return ["--ray"]
    if plain is bool:
        return [flag(f"no_{name}" if usual is True else name)]
    members = [one for one in (get_args(plain) or (plain,)) if one is not type(None)]
    if get_origin(plain) is Literal:
        return [flag(name), next(str(one) for one in get_args(plain) if one != usual)]
    if get_origin(plain) is tuple:
        one, *others = members
        return [flag(name), *(_value(member) for member in (one, *others) if member is not Ellipsis)]
    if get_origin(members[0]) is Literal:
        return [flag(name), str(get_args(members[0])[0])]
    return [flag(name), _value(members[0])]


def _value(plain: Any) -> str:
    inner = _unwrapped(plain)[0]
    return "7" if inner in (int, float) else "x"


def section(command: str) -> str:
    """What the page says of a command: its cases, and the options that nothing cancels."""
    options = dict.fromkeys(known(command))
    lines, cancelled = [f"## {command}", ""], set()
    for case in (*cases(command), *BY_DATA.get(command, ())):
        named = [one for one in case.options if one in options]
        cancelled |= {*named}
        reason = re.sub(r"(--[a-z][\w-]*)", r"`\1`", case.reason(flag))
        if named:
            lines.append(f"* {_shown(named)}: {reason}.")
    if free := [one for one in options if one not in cancelled]:
        lines.append(f"* {_shown(free)}: nothing.")
    return "\n".join([*lines, *(["* It has no options."] if len(lines) == 2 else []), ""])


def _shown(names: list[str]) -> str:
    return ", ".join(f"`{flag(one)}`" for one in names)


def test_every_command_is_gone_through():
    first = {one.partition(" ")[0] for one in KINDS}
    assert first | ELSEWHERE == {*COMMANDS}
    assert {f"index {one}" for one in MAINTENANCE} <= {*KINDS}
    assert {f"relevance {one}" for one in TASKS} <= {*KINDS}


@pytest.mark.parametrize("command", KINDS)
def test_the_page_has_every_option_with_what_cancels_it(command):
    assert section(command) in pages_below("reference/cancel"), f"the page should say:\n\n{section(command)}"


@pytest.mark.parametrize("command", KINDS)
def test_every_case_names_options_that_there_are(command):
    for kind in KINDS[command]:
        names = {one.name for one in fields(kind)}
        for case in getattr(kind, "IDLE", ()):
            assert {*case.options} <= names, case


def tried() -> Iterator[Any]:
    for command in KINDS:
        bases = BASES.get(command, [])
        assert len(bases) == len(cases(command)), command
        for case, (begins, words) in zip(cases(command), bases, strict=True):
            assert case.reason(flag).startswith(begins), (command, begins, case.reason(flag))
            for name in case.options:
                taken = (command, name) in IN_PLACE_OF_A_RESULT and words == "result.json"
                if name in known(command) and not is_dataclass(known(command)[name][1]) and not taken:
                    yield pytest.param(command, words, name, case, id=f"{command}-{name}-{begins}")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("result.json", "wrong.csv", "x"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    (tmp_path / "run" / "history.jsonl").write_text("")
    for name in ("RUNGWISE_TOKEN", "RUNGWISE_TOKENS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(("command", "words", "name", "case"), list(tried()))
def test_an_option_that_changes_nothing_is_refused(place, capsys, command, words, name, case):
    _, plain, usual = known(command)[name]
    option = words_of(name, plain, usual)
    before = command.replace("SOURCE", "tfidf").split()
    assert main([*before, *words.split(), *option]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    remedy = re.sub(r"\{(\w*)\}", lambda found: flag(found[1]) if found[1] else option[0], case.remedy)
    assert said.err == f"rungwise {before[0]}: {option[0]} changes nothing {case.reason(flag)}; {remedy}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evaluate result.json photos", "DATA changes nothing for a result, which is kept as it was measured"),
        ("search photos.index red --rerank-top 50", "--rerank-top changes nothing without --rerank"),
        ("search photos.index --where a --diversity 0", "--diversity changes nothing where --where alone is given"),
        ("grade wrong.csv --agreement --limits.connections 3", "--limits changes nothing beside --agreement"),
        (
            "serve photos.index --limits.connections 3 --limits.connections-per-client 4",
            "--limits.connections-per-client changes nothing above --limits.connections",
        ),
        (
            "demo --limits.uploads-per-client 17",
            "--limits.uploads-per-client changes nothing above --limits.uploads-at",
        ),
        ("serve photos.index --limits.kept-queries 5", "--limits.kept-queries changes nothing without --keep-queries"),
    ],
)
def test_also_by_its_place_its_default_or_in_a_group(place, capsys, words, said):
    assert main(words.split()) == 2
    assert f": {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    [
        lambda rungwise: rungwise.search("photos.index", "red", rerank_top=20),
        lambda rungwise: rungwise.evaluate("model", "photos", top=20),
        lambda rungwise: rungwise.evaluate("model", "photos", paper=["sam"]),
        lambda rungwise: rungwise.evaluate(similarity=[[1.0]], image_of_caption=[0], similarity_function=max),
        lambda rungwise: rungwise.build_index("photos", workers=2),
        lambda rungwise: rungwise.calibrate("model", "photos", relevant_from=1),
        lambda rungwise: rungwise.degrees("tfidf", "photos", top=2),
        lambda rungwise: rungwise.degrees("spice", "photos", least=0.5),
    ],
)
def test_python_is_told_in_its_own_words(place, call):
    import rungwise

    with pytest.raises(UserError, match=r"^(spice: )?[a-z_]+= changes nothing without [a-z_]+="):
        call(rungwise)


def test_a_result_is_not_measured_anew_from_scores():
    import rungwise

    result = rungwise.evaluate(similarity=[[1.0]], image_of_caption=[0], measures=["R@1"], quiet=True)
    with pytest.raises(UserError, match="^similarity= changes nothing for a result, which is kept as it was measured"):
        rungwise.evaluate(result, similarity=[[1.0]])


def test_a_default_that_python_gives_is_no_mistake(place):
    import rungwise

    with pytest.raises(UserError, match="photos.index"):
        rungwise.search("photos.index", "red", rerank_top=50, fold=True, exact=False)


def test_limits_that_others_cancel_stand_on_the_page():
    page = pages_below("reference/cancel")
    for case in (*ModelLimits.IDLE, _OF_QUERIES):
        assert all(f"`{flag(f'limits.{one}')}`" in page for one in case.options)


def test_options_of_python_alone_are_cases_too():
    names = {name for case in Evaluate.IDLE for name in case.options}
    assert {"similarity_function", "provenance", "settings", "paper"} <= names
    with pytest.raises(UserError, match="^a= "), called_from_python():
        raise UserError("--a changes nothing")
