"""Settings and commands that the documents show are ones that exist.

Every YAML block of README.md and docs/ parses as the configuration of a training or of a fit. Every option of a
``rungwise`` command in their blocks is one that the command's ``--help-all`` lists.
"""

import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
import yaml

from rungwise.cli import COMMANDS, main
from rungwise.cli.relevance._command import TASKS
from rungwise.core import UserError, from_plain
from rungwise.relevance.config import KINDS
from rungwise.training.config._fit import config_type

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:torchrun .* -m |\.venv/bin/|[A-Z_]+=\S+ )?rungwise (.*)")
OPTION = re.compile(r"(?<!\S)--[a-z][\w.-]*")


@cache
def blocks(language: str) -> list[tuple[str, str]]:
    """Place and text of every block of a language, over all documents."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            if block[1] == language:
                line = text.count("\n", 0, block.start()) + 1
                found.append((f"{path.relative_to(REPOSITORY)}:{line}", block[2]))
    return found


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
                settings = yaml.safe_load(text)
                from_plain(config_type(settings), settings, place)
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
    if words[0].startswith("--") or words == ["relevance"]:  # the latter lists the sources
        return None
    if words[0] not in COMMANDS:
        return f"there is no command {words[0]}"
    named = words[:1]
    if words[0] == "relevance":
        if words[1] not in {**KINDS, **TASKS}:
            return f"there is no source {words[1]}"
        named = words[:2]
    elif words[0] == "train" and not words[1].endswith("config.yaml") and not words[1].isupper():  # PICTURES, DATA
        named = words[:2]
    listed = {"--help-all", *OPTION.findall(help_of(tuple(named)).replace(",", " "))}
    unknown = [one for one in OPTION.findall(" ".join(words)) if one not in listed]
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
