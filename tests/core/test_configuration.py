import itertools
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import tyro
from pydantic import Field

from rungwise.core import (
    ELSEWHERE,
    STRICT,
    Bounded,
    NotNegative,
    Size,
    UserError,
    by_name,
    from_plain,
    identity,
    load_yaml,
    on_command_line,
    parse_yaml,
    short_text,
    to_plain,
    without_places,
)
from rungwise.core._configuration import changed


@dataclass(frozen=True)
class Plain:
    __pydantic_config__ = STRICT
    kind: Literal["plain"] = "plain"


@dataclass(frozen=True)
class Chunked:
    __pydantic_config__ = STRICT
    kind: Literal["chunked"] = "chunked"
    chunk: int = 64
    rates: tuple[float, ...] = (0.5,)


@dataclass(frozen=True)
class Free:
    settings: list[dict[str, float]] = field(default_factory=list)


Step = Annotated[Plain | Chunked, Field(discriminator="kind"), by_name, on_command_line(Plain | Chunked)]


@dataclass(frozen=True)
class Recipe:
    __pydantic_config__ = STRICT
    step: Step = field(default_factory=Plain)
    seed: int = 0


@pytest.mark.parametrize("step", [Plain(), Chunked(), Chunked(chunk=8), Chunked(rates=(0.25, 1.0))])
def test_a_kind_is_written_and_read_back_in_one_argument(step: Plain | Chunked) -> None:
    assert tyro.cli(Recipe, args=["--step", short_text(step)]) == Recipe(step)
    values = {"kind": step.kind, **changed(step)}
    assert from_plain(Recipe, {"step": values}, "recipe.yaml") == Recipe(step)


def test_the_bare_name_means_all_defaults() -> None:
    assert from_plain(Recipe, {"step": "chunked"}, "recipe.yaml").step == Chunked()
    assert tyro.cli(Recipe, args=["--step", "chunked"]).step == Chunked()


@pytest.mark.parametrize("given", ["chunks", "{kind: chunked, chunk: many}", "{chunk: 8}", "3"])
def test_a_mistake_on_the_command_line_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tyro.cli(Recipe, args=["--step", given])
    assert "step" in "".join(capsys.readouterr())


@pytest.mark.parametrize("given", ["chunks", {"kind": "chunked", "chunk": "many"}, {"chunk": 8}, 3])
def test_a_mistake_in_yaml_has_one_line(given: object) -> None:
    with pytest.raises(UserError, match=r"recipe.yaml: step") as refused:
        from_plain(Recipe, {"step": given}, "recipe.yaml")
    assert "\n" not in str(refused.value)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join(['*' + before] * 10)}]\n" for before, after in itertools.pairwise("abcdefghi")
)

MERGED = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{after}: &{after} {{<<: [{', '.join(['*' + before] * 9)}]}}\n"
    for before, after in itertools.pairwise("abcdefghijkl")
)
"""Mappings merged into each other, which the library would write out while it reads."""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUGHS, "unfolds into more than 100,000 values"),
        ("a: &a [*a]", "unfolds into more than"),
        (MERGED, "unfolds into more than 100,000 values"),
        ("a: 1" + ":1" * 3000, "line 1: not valid YAML; a number of too many digits"),
        ("[" * 1000, "nested too deeply"),
        ("a: !!python/object/apply:os.system ['true']", "line 1: not valid YAML; could not determine a constructor"),
        ("a: 2021-99-99", "month must be in"),
        ("? [a]\n: b", "line 1: not valid YAML; found unhashable key"),
        ("a: [", "line 1: not valid YAML"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_yaml_that_means_harm_has_one_line(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=reason) as caught:
        load_yaml(Plain, file)
    assert str(caught.value).startswith(str(file))
    assert len(str(caught.value).splitlines()) == 1


def test_yaml_that_is_large_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder, not a file"):
        load_yaml(Plain, tmp_path)
    with pytest.raises(UserError, match="no such configuration file"):
        load_yaml(Plain, tmp_path / "nowhere.yaml")
    (tmp_path / "recipe.yaml").write_text("# \n" * 100_000)
    with pytest.raises(UserError, match="RUNGWISE_MAX_SETTINGS_BYTES"):
        load_yaml(Plain, tmp_path / "recipe.yaml")


def test_aliases_that_are_meant_work() -> None:
    assert parse_yaml("a: &a [1, 2]\nb: *a", "x") == {"a": [1, 2], "b": [1, 2]}


def test_not_a_number_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("kind: chunked\nchunk: .nan")
    with pytest.raises(UserError, match="chunk"):
        load_yaml(Chunked, file)
    with pytest.raises(UserError, match=r"recipe: settings.0.margin: NaN is no number to compute with"):
        from_plain(Free, {"settings": [{"margin": float("nan")}]}, "recipe")
    assert from_plain(Free, {"settings": [{"margin": float("inf")}]}, "recipe").settings == [{"margin": float("inf")}]


@pytest.mark.parametrize("value", [16**5000, 9**4000, [[1, 2], *["x"] * 10_000]], ids=["large", "long", "list"])
def test_what_is_too_large_to_show_is_not_shown(value: object) -> None:
    with pytest.raises(UserError, match="rates") as caught:
        from_plain(Chunked, {"kind": "chunked", "rates": value}, "recipe.yaml")
    assert len(str(caught.value)) < 1000


@dataclass(frozen=True)
class Side:
    source: str = field(default="hub", metadata=ELSEWHERE)
    note: str = ""
    frozen: bool = field(default=True, metadata=ELSEWHERE)


@dataclass(frozen=True)
class Both:
    image: Side = field(default_factory=Side)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("hub", "hub"),
        ("someone/model", "someone/model"),
        ("hf:someone/model", "hf:someone/model"),
        ("open_clip:ViT-B-32/laion2b_s34b_b79k", "open_clip:ViT-B-32/laion2b_s34b_b79k"),
        ("/home/somebody/model", "model"),
        ("hf:/home/somebody/model/", "hf:model"),
        ("../secret/resnet.safetensors", "resnet.safetensors"),
        ("st:~/secret/model", "st:model"),
        ("C:\\Users\\somebody\\model", "model"),
        ("here/model", "model"),
    ],
)
def test_what_others_read_names_no_place_of_this_machine(
    source: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "model").mkdir(parents=True)
    config = Both(Side(source, note="/home/somebody"))
    assert without_places(config) == {"image": {"source": shown, "note": "/home/somebody", "frozen": True}}


def test_values_are_those_of_plain_but_for_places() -> None:
    @dataclass(frozen=True)
    class Stack:
        of: tuple[Side, ...] = (Side("/home/somebody/a"), Side(note="b"))
        sizes: tuple[int, ...] = (1, 2)

    wanted = to_plain(Stack())
    wanted["of"][0]["source"] = "a"
    assert without_places(Stack()) == wanted
    assert identity(Stack()) == {"of": [{"note": ""}, {"note": "b"}], "sizes": [1, 2]}


def test_a_whole_number_is_the_same_identity_as_the_number_that_is_read_back():
    @dataclass
    class Head:
        dropout: float = 0.5

    assert json.dumps(identity(Head(0))) == json.dumps(identity(from_plain(Head, {"dropout": 0}, "config.json")))


@dataclass(frozen=True)
class Bounds(Bounded):
    __pydantic_config__ = STRICT

    sizes: tuple[Size, ...] = (1,)
    rate: NotNegative = 0.0
    pool: Literal["mean", "max"] = "mean"
    kind: Literal["pooled"] = "pooled"
    layers: Size | None = None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sizes": (3, 0)}, "pooled.sizes.1: must be at least 1 (got 0)"),
        ({"sizes": (3, True)}, "pooled.sizes.1: must be a whole number (got True)"),
        ({"rate": float("nan")}, "pooled.rate: must be a finite number (got nan)"),
        ({"rate": "fast"}, "pooled.rate: must be a number (got 'fast')"),
        ({"pool": "last"}, "pooled.pool: must be 'mean' or 'max' (got 'last')"),
        ({"layers": 1 << 21}, "pooled.layers: must be at most 1048576 (got 2097152)"),
    ],
)
def test_bounds_hold_for_what_python_makes(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        Bounds(**values)
    assert str(caught.value) == message
    with pytest.raises(UserError):
        replace(Bounds(), **values)


def test_bounds_hold_for_files_and_their_place_is_named() -> None:
    assert from_plain(Bounds, {"sizes": [2, 3], "rate": 1}, "a.yaml") == Bounds(sizes=(2, 3), rate=1.0)
    with pytest.raises(UserError, match=r"^a\.yaml: sizes\.0: must be at least 1 \(got -1\)$"):
        from_plain(Bounds, {"sizes": [-1]}, "a.yaml")


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(UserError, match=r"run\.yaml, line 3: 'seed' stands twice; leave one of them out"):
        parse_yaml("seed: 1\nmodel: {a: 1}\nseed: 2\n", "run.yaml")
    with pytest.raises(UserError, match=r"line 1: 'a' stands twice"):
        parse_yaml("model: {a: 1, a: 1}", "run.yaml")
    assert parse_yaml("one: &x {a: 1}\nother: {<<: *x, a: 2}", "run.yaml") == {"one": {"a": 1}, "other": {"a": 2}}
