from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
import tyro
from pydantic import Field

from rungwise.core.configuration import STRICT, by_name, changed, from_plain, on_command_line, short_text
from rungwise.core.errors import UserError


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
