"""``rungwise relevance ... --shards N --ray``."""

import signal
import subprocess
import sys

import pytest

from rungwise.cli import main
from rungwise.jobs.sources import _sharding as sharding

WORDS = ("dog", "cat", "red", "blue", "runs", "sits", "ball")


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "captions.csv"
    rows = [f"{image}.jpg,a {WORDS[image % 7]} {WORDS[(image * 3 + one) % 7]}" for image in range(20) for one in (0, 2)]
    file.write_text("\n".join(["image,caption", *rows]))
    return file


def run(table, *arguments, source="cider-d"):
    return main(["relevance", source, str(table), "--captions-only", *map(str, arguments)])


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("source", ["cider-d", "tfidf", pytest.param("bi-encoder", marks=pytest.mark.slow), "cbow"])
def test_shards_write_what_one_run_writes(source, table, tmp_path, capsys):
    options = ("--top", 3, "--direction", "t2i")
    if source == "cbow":
        (tmp_path / "vectors.txt").write_text("dog 1 0\ncat 0.9 0.1\nred 0 1\n")
        options += ("--vectors", tmp_path / "vectors.txt")
    run(table, *options, "--out", tmp_path / "one", source=source)
    capsys.readouterr()
    assert run(table, *options, "--out", tmp_path / "other", "--shards", 3, source=source) == 0
    said = capsys.readouterr().out
    assert files_of(tmp_path / "other") == files_of(tmp_path / "one")
    if source in ("cider-d", "tfidf"):
        assert "shard 3 of 3: 14 queries, " in said
        assert " MB\n" in said
    assert not (tmp_path / "other.shards").exists()


@pytest.mark.slow
def test_ray_needs_no_number_of_shards(two_workers: None, table, tmp_path, capsys):
    run(table, "--top", 3, "--out", tmp_path / "one")
    capsys.readouterr()
    assert run(table, "--top", 3, "--out", tmp_path / "other", "--ray") == 0
    said = capsys.readouterr().out
    assert "Ray: 2 workers" in said
    assert "shard 8 of 8: " in said
    assert files_of(tmp_path / "other") == files_of(tmp_path / "one")


def goes_on(words, table, tmp_path, capsys):
    """Whether the command that was broken off after the first of four shards takes that over, and ends the same."""
    assert not (tmp_path / "other").exists()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "1 of 4 shards found, made by a run before this one" in said
    assert "found in " in said, "the weights of words were kept"
    assert "4 of 4 shards, 15 of 15 queries" in said
    assert said.count(", by a run before this one\n") == 1
    run(table, "--top", 3, "--out", tmp_path / "one")
    assert files_of(tmp_path / "other") == files_of(tmp_path / "one")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["captions.csv", "one", "other"]


def test_a_command_that_was_interrupted_goes_on(table, tmp_path, capsys):
    def interrupted(line):
        if line.startswith("1 of 4 shards"):
            raise KeyboardInterrupt

    words = ["relevance", "cider-d", str(table), "--captions-only", "--top", "3", "--shards", "4"]
    words += ["--out", str(tmp_path / "other")]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sharding, "say", interrupted)
        assert main(words) == 130
    goes_on(words, table, tmp_path, capsys)


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on(table, tmp_path, capsys):
    program = (
        "import os, signal, sys\n"
        "from rungwise.cli import main\n"
        "from rungwise.jobs.sources import _sharding\n"
        "def killed(line):\n"
        "    if line.startswith('1 of 4 shards'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "_sharding.say = killed\n"
        "main(sys.argv[1:])\n"
    )
    words = ["relevance", "cider-d", str(table), "--captions-only", "--top", "3", "--shards", "4"]
    words += ["--out", str(tmp_path / "other")]
    ended = subprocess.run([sys.executable, "-c", program, *words], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    goes_on(words, table, tmp_path, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shards", 2, "--out", "x"), "--shards changes nothing without --top"),
        (("--ray", "--out", "x"), "--ray changes nothing without --top"),
        (("--top", 2, "--out", "x", "--shards", 0), "--shards must be at least 1, got 0"),
        (("--top", 2, "--out", "x", "--ray", "127.0.0.1:1"), "Ray at 127.0.0.1:1: nobody answers"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words, said, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(table, *words) == 2
    assert said in capsys.readouterr().err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["captions.csv"]


def test_sources_that_have_no_shards_are_refused(table, tmp_path, capsys):
    assert run(table, "--top", 2, "--out", tmp_path / "x", "--shards", 2, source="labels") == 2
    assert (
        "labels cannot be made in shards; leave --shards and --ray out, or take one of cider-d,"
        in capsys.readouterr().err
    )


def test_a_folder_of_somebody_else_is_refused(table, tmp_path, capsys):
    (tmp_path / "x.shards").mkdir()
    (tmp_path / "x.shards" / "letters.txt").write_text("dear")
    assert run(table, "--top", 2, "--out", tmp_path / "x", "--shards", 2) == 2
    assert "x.shards: holds 'letters.txt', which is no part of the shards" in capsys.readouterr().err
    assert (tmp_path / "x.shards" / "letters.txt").read_text() == "dear"
