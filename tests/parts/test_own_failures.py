"""What is said where the code of a person's own part fails; also tests rungwise.parts._named_modules."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.parts import import_named, own_place
from rungwise.scenes import SceneConfig, generate
from tests.parts.test_registry import EXAMPLES, SHORT

BROKEN = {
    "softest_hinge": ("SoftestHinge", "SprainedHinge", "        rows, pair = side", "        1 / 0"),
    "root_rank": ("RootRank", "SprainedRank", "        return 100.0 /", "        1 / 0"),
    "lengths": ('"lengths"', '"sprained_lengths"', "        words = np", "        1 / 0"),
    "colour_grid": ('"colour_grid"', '"sprained_grid"', "        return F.adaptive", "        1 / 0"),
    "rounded": ('"rounded"', '"sprained_store"', "        super().upsert", "        1 / 0"),
}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failures")
    generate(folder / "scenes", SceneConfig(pictures=20, captions_per_picture=2, side=32, seed=1))
    return folder / "scenes"


def broken(name: str, folder: Path) -> tuple[Path, int]:
    """An example whose code fails while it works, and the number of the line."""
    old, new, line, instead = BROKEN[name]
    text = EXAMPLES[name].replace(old, new)
    assert text.count(line) == 1
    text = text.replace(line, f"{instead}\n{line}")
    path = folder / f"sprained_{name}.py"
    path.write_text(text, encoding="utf-8")
    return path, text.splitlines().index(instead) + 1


@pytest.mark.parametrize("name", BROKEN)
def test_own_code_that_fails_is_one_line_with_its_place(
    name: str, scenes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, line = broken(name, tmp_path)
    np.save(tmp_path / "s.npy", np.eye(4, dtype=np.float32))
    train = ["train", "scenes", str(scenes), "--out", str(tmp_path / "run"), *SHORT]
    if name == "rounded":
        assert main(train) == 0
    words = {
        "softest_hinge": [*train, "--loss.kind", "sprained_hinge"],
        "root_rank": [
            "evaluate", "--similarity", str(tmp_path / "s.npy"), "--captions-per-image", "1", "--measures",
            "SprainedRank",
        ],
        "lengths": ["relevance", "sprained_lengths", str(scenes), "--out", str(tmp_path / "degrees")],
        "colour_grid": [*train, "--model.image.kind", "sprained_grid"],
        "rounded": [
            "index", str(scenes), "--model", str(tmp_path / "run" / "model"), "--store", "sprained_store", "--out",
            str(tmp_path / "index"),
        ],
    }[name]  # fmt: skip
    capsys.readouterr()
    assert main([*words, "--module", str(path)]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said == (
        f"rungwise {words[0]}: the code of {path}, line {line}, fails with ZeroDivisionError: division by zero; mend it"
    )
    if name == "root_rank":
        assert main([*words, "--module", str(path), "--traceback"]) == 2
        assert re.search(r"Traceback .*rungwise.*_streaming\.py.*1 / 0", capsys.readouterr().err, re.DOTALL)


def test_a_source_that_gives_a_bare_array_is_named(
    scenes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EXAMPLES["lengths"].replace('"lengths"', '"bare_lengths"')
    assert text.count(", data)\n") == 1
    text = text.replace("as_degrees(np.exp(", "(np.exp(").replace(", data)\n", ")\n")
    (tmp_path / "bare.py").write_text(text, encoding="utf-8")
    words = ["relevance", "bare_lengths", str(scenes), "--module", str(tmp_path / "bare.py")]
    assert main([*words, "--out", str(tmp_path / "degrees")]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1] == (
        "rungwise relevance: the source bare_lengths (bare.LengthsConfig): make gives ndarray; return degrees, such as"
        " rungwise.relevance.as_degrees(array, data)"
    )


def test_the_innermost_frame_of_a_named_module_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "calls_back.py").write_text("def call(it):\n    return it()\n")
    import_named([str(tmp_path / "calls_back.py")])
    called = sys.modules["calls_back"]
    monkeypatch.delitem(sys.modules, "calls_back")
    with pytest.raises(ValueError, match="invalid") as failed:
        called.call(lambda: int("x"))
    assert own_place(failed.value) == (str(tmp_path / "calls_back.py"), 2)
    with pytest.raises(ValueError, match="invalid") as alone:
        int("x")
    assert own_place(alone.value) is None
