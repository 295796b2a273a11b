"""Settings and commands that the documents show are ones that exist.

Every YAML block of README.md and docs/ parses as the configuration of a training or of a fit. Every option of a
``rungwise`` command in their blocks is one that the command's ``--help-all`` lists.
"""

import re
from pathlib import Path

import pytest
import yaml

from rungwise.cli import COMMANDS, main
from rungwise.cli.relevance import TASKS
from rungwise.core.configuration import from_plain
from rungwise.relevance.config import KINDS
from rungwise.training.fit_config import config_type

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:torchrun .* -m |\.venv/bin/|[A-Z_]+=\S+ )?rungwise (.*)")
OPTION = re.compile(r"(?<!\S)--[a-z][\w.-]*")


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


def commands() -> list[tuple[str, list[str]]]:
    """Place and words of every ``rungwise`` command, also of one that torchrun starts."""
    lines = ((place, line) for place, text in blocks("") for line in text.replace("\\\n", " ").splitlines())
    matches = ((place, COMMAND.match(line.split(" #")[0])) for place, line in lines)
    return [(place, command[1].split()) for place, command in matches if command]


@pytest.mark.parametrize(("place", "text"), blocks("yaml"))
def test_settings_parse(place, text):
    settings = yaml.safe_load(text)
    from_plain(config_type(settings), settings, place)


@pytest.mark.parametrize(("place", "words"), commands())
def test_options_exist(place, words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.chdir(REPOSITORY)
    if words[0].startswith("--") or words == ["relevance"]:  # the latter lists the sources
        return
    assert words[0] in COMMANDS, place
    named = words[:1]
    if words[0] == "relevance":
        assert words[1] in {**KINDS, **TASKS}, place
        named = words[:2]
    elif words[0] == "train" and not words[1].endswith("config.yaml") and not words[1].isupper():  # PICTURES, DATA
        named = words[:2]
    with pytest.raises(SystemExit):
        main([*named, "--help-all"])
    listed = {"--help-all", *OPTION.findall(capsys.readouterr().out.replace(",", " "))}
    unknown = [one for one in OPTION.findall(" ".join(words)) if one not in listed]
    assert not unknown, f"{place}: rungwise {' '.join(named)} has no {', '.join(unknown)}"
