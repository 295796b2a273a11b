from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from pydantic import Field

from rungwise.core import STRICT, UserError, by_name, from_plain
from rungwise.core.text import near_setting

if TYPE_CHECKING:
    from collections import OrderedDict


@dataclass(frozen=True)
class Few:
    __pydantic_config__ = STRICT
    kind: Literal["few"] = "few"
    dropout: float = 0.0


@dataclass(frozen=True)
class Many:
    __pydantic_config__ = STRICT
    kind: Literal["many"] = "many"
    dropouts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Recipe:
    __pydantic_config__ = STRICT
    head: Annotated[Few | Many, Field(discriminator="kind"), by_name] = field(default_factory=Few)
    heads: tuple[Few, ...] = ()
    maybe: Few | None = None


@dataclass
class Unknown:
    kept: "OrderedDict[str, int] | None" = None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"haed": 1}, "r.yaml: haed: unexpected, .* did you mean head[?] "),
        ({"head": {"kind": "few", "dropuot": 1}}, "r.yaml: head.few.dropuot: .* did you mean dropout[?] "),
        ({"head": {"kind": "many", "dropuots": 1}}, "did you mean dropouts[?] "),
        ({"heads": [{"dropouts": 1}]}, "heads.0.dropouts: .* did you mean dropout[?] "),
        ({"maybe": {"droupout": 1}}, "did you mean dropout[?] "),
        ({"gamma": 1}, "gamma: unexpected, there is no such setting; a file of a newer version needs a newer rungwise"),
    ],
)
def test_a_misspelt_setting_gets_the_one_that_was_meant(values: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        from_plain(Recipe, values, "r.yaml")
    assert len(str(caught.value).splitlines()) == 1


def test_an_annotation_that_cannot_be_looked_up_is_no_obstacle() -> None:
    assert near_setting(Unknown, ("ketp",)) == "kept"
