"""The file of a study: arms, a grid of settings, seeds, questions of the evaluation, and a search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from rungwise.core import (
    STRICT,
    AtLeastOne,
    Bounded,
    MissingFileError,
    Natural,
    UserError,
    from_plain,
    parse_yaml,
    read_text,
    to_plain,
    yaml_line,
)
from rungwise.core.output import short_repr
from rungwise.evaluation import protocol_named
from rungwise.metrics import Measure, parse_all
from rungwise.parts import import_named
from rungwise.runs._seeds import checked_seeds
from rungwise.training.config import Choice, TrainConfig, load_training, merged

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,59}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.+-]+")
_LONGEST_VALUE = 40
_OWN = ("name", "preset", "ranges")
"""Keys of an arm that are no settings of its runs."""
_ARM_ALONE = "runs"
"""Name of the only arm of a study that names none and has no grid."""


def _ranges(value: Any) -> Any:
    """A list of values in place of ``{choice: [...]}``."""
    return {"choice": value} if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class DrawRange(Bounded):
    """The values that a search may give to a setting; one of the three is said.

    Attributes:
        uniform: Lowest and highest number; all between are drawn alike.
        log_uniform: Lowest and highest number, both above 0; their logarithms are drawn alike.
        choice: Values, of which each is drawn alike.
    """

    __pydantic_config__ = STRICT

    uniform: tuple[float, float] | None = None
    log_uniform: tuple[float, float] | None = None
    choice: tuple[Any, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        super().__post_init__()
        said = [one for one in (self.uniform, self.log_uniform, self.choice or None) if one is not None]
        if len(said) != 1:
            raise UserError(
                "search: a range is one of uniform: [low, high], log_uniform: [low, high] and a list of values"
            )
        bounds = self.uniform or self.log_uniform
        if bounds is not None and bounds[0] >= bounds[1]:
            raise UserError(f"search: the range {list(bounds)} is empty; give the lower number first")
        if self.log_uniform is not None and self.log_uniform[0] <= 0:
            raise UserError(f"search: log_uniform: {list(self.log_uniform)} must lie above 0")


AnyRange = Annotated[DrawRange, BeforeValidator(_ranges)]


def _flat_arm(value: Any) -> Any:
    """An arm in the form of YAML, where settings stand beside the name."""
    if not isinstance(value, Mapping) or "settings" in value:
        return value
    own = {name: value[name] for name in _OWN if name in value}
    return {**own, "settings": {name: one for name, one in value.items() if name not in _OWN}}


@dataclass(frozen=True)
class StudyArm:
    """One of the systems that a study sets beside each other.

    Attributes:
        name: Name of the arm, and of its folder.
        preset: A preset in place of that of the base; empty takes that of the base.
        ranges: Ranges in place of those of the study's search; an empty mapping searches nothing for this arm.
        settings: Settings that differ from the base, in the form of YAML; names may be dotted.
    """

    __pydantic_config__ = STRICT

    name: str
    preset: str = ""
    ranges: Mapping[str, AnyRange] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UserError(
                f"arms: {self.name[:80]!r} names no folder; take up to 60 letters, digits, -, _, + and ., a letter or"
                " digit first"
            )


@dataclass(frozen=True)
class StudyQuestion(Bounded):
    """What is measured of each system on the test split.

    Attributes:
        protocol: Gallery and right answers, as in ``rungwise evaluate``.
        measures: Numbers to take; empty takes those of the protocol.
        relevance: Degrees of graded measures: a source by name such as tfidf, a source with options, or a folder that
            ``rungwise relevance`` wrote; empty for none.
        positives: Files of what people judged, as in ``rungwise evaluate --positives``.
    """

    __pydantic_config__ = STRICT

    protocol: str = "full"
    measures: tuple[str, ...] = ()
    relevance: Annotated[str, BeforeValidator(lambda value: _source_text(value))] = ""
    positives: tuple[str, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            protocol_named(self.protocol)
            parse_all(self.measures)
        except UserError as error:
            raise UserError(f"evaluation: {error}") from None


def _source_text(value: Any) -> Any:
    return yaml_line(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class StudyClaim:
    """A sentence about two systems that a study tests, by one number that was named before the runs.

    Attributes:
        name: Short name.
        says: What is claimed, in a sentence.
        source: Who claims it, such as a paper and its table.
        claimed: What the source prints, in its own numbers.
        better: Name of the system that is said to be better.
        than: Name of the system that it is said to be better than.
        measure: The one number that decides, such as rsum or t2i/CS@100; all others are descriptive.
        explains: What could explain a difference between the source and the measurement.
    """

    __pydantic_config__ = STRICT

    name: str
    says: str
    better: str
    than: str
    measure: str = "rsum"
    source: str = ""
    claimed: str = ""
    explains: str = ""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        chosen = _checked_choice(self.measure, "full", f"claims: {self.name}").chosen
        if chosen.direction is None and isinstance(chosen.measure, Measure):
            raise UserError(
                f"claims: {self.name}: {self.measure} is a number of each direction; write i2t/{self.measure} or"
                f" t2i/{self.measure}"
            )
        if self.better == self.than:
            raise UserError(f"claims: {self.name}: {self.better} is compared with itself; name two systems")


@dataclass(frozen=True)
class StudySearch(Bounded):
    """A search over settings of each arm, by trials that see the training and the validation split alone.

    Attributes:
        by: random draws values from the ranges; grid takes all combinations of lists.
        ranges: Ranges by the dotted names of settings; an arm may have its own.
        trials: Budget: number of trials of each arm. A grid has as many as it has combinations, and no more than this.
        fixed: Settings of the trials that differ from those of the arm, such as ``data.share: 0.25``.
        seed: Seed of the trials' runs.
        draws: Seed of the random draws.
        measure: Measure of the validation split that chooses; its protocol and degrees stand beside it.
        protocol: Protocol of this measure.
        relevance: Degrees, where the measure reads some.
    """

    __pydantic_config__ = STRICT

    by: Literal["random", "grid"] = "random"
    ranges: Mapping[str, AnyRange] = field(default_factory=dict)
    trials: AtLeastOne | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    draws: Natural = 0
    measure: str = "rsum"
    protocol: str = "full"
    relevance: Annotated[str, BeforeValidator(_source_text)] = ""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by == "random" and self.trials is None:
            raise UserError("search: trials is missing; it is the budget of each arm")
        _checked_choice(self.measure, self.protocol, "search")

    @property
    def choice(self) -> Choice:
        """The measure that chooses, parsed."""
        return Choice(self.measure, self.protocol)

    @property
    def question(self) -> StudyQuestion:
        """What is asked of each trial on the validation split."""
        return StudyQuestion(self.protocol, (str(self.choice.chosen.measure),), self.relevance)


@dataclass(frozen=True)
class StudyConfig:
    """A study: runs of several arms and seeds, and what is asked of them.

    Attributes:
        about: What the study is for, in a sentence.
        data: Folder or file of the data.
        modules: Modules of your own, which are imported first.
        base: Settings of all arms; ``preset`` in it names a preset or a configuration file.
        arms: The systems; none is one system, that of the base.
        grid: Settings by dotted name, each with values; every arm is trained with all combinations.
        seeds: Seeds; each arm is trained with all of them.
        evaluation: What is measured on the test split; on the validation split where nobody is tested.
        primary: The measure that a claim rests on; the others are descriptive.
        test: Who is measured on the test split once all is trained: all arms, the winner on validation alone, or none.
        keep: What stays of a run: its folder with the model (runs), or one file with what was measured (results).
        claims: What the study is to find out: sentences about two of its systems, written before the runs.
        search: A search over settings; None searches nothing.
        out: Folder of the study; empty takes the name of the file without its ending.
    """

    __pydantic_config__ = STRICT

    about: str = ""
    data: str = ""
    modules: tuple[str, ...] = ()
    base: Annotated[
        Mapping[str, Any], BeforeValidator(lambda value: {"preset": value} if isinstance(value, str) else value)
    ] = field(default_factory=dict)
    arms: tuple[Annotated[StudyArm, BeforeValidator(_flat_arm)], ...] = ()
    grid: Mapping[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    evaluation: Annotated[
        tuple[StudyQuestion, ...], BeforeValidator(lambda value: [value] if isinstance(value, Mapping) else value)
    ] = (StudyQuestion(),)
    primary: str = "rsum"
    test: Literal["arms", "winner", "none"] = "arms"
    keep: Literal["runs", "results"] = "runs"
    claims: tuple[StudyClaim, ...] = ()
    search: StudySearch | None = None
    out: str = ""

    def __post_init__(self) -> None:
        checked_seeds(self.seeds)
        for name, count in Counter(one.name.lower() for one in self.arms).items():
            if count > 1:
                raise UserError(f"arms: {count} are named {name!r}; give each a name of its own")
        _checked_choice(self.primary, "full", "primary")
        for where, names in (("grid", self.grid), *((f"arm {one.name}", one.settings) for one in self.arms)):
            if "seed" in names:
                raise UserError(f"{where}: seed is no setting of an arm or a grid; name seeds in seeds")
        self._check_claims()
        for name, values in self.grid.items():
            if twice := next((one for at, one in enumerate(values) if one in values[:at]), None):
                raise UserError(f"grid: {name}: {twice} stands twice; give each value once")
        if self.search is not None:
            if not any(self.ranges_of(arm) for arm in self.all_arms):
                raise UserError("search: names no ranges; give some by the names of settings, or leave search out")
            for arm in self.all_arms:
                self._check_ranges(arm)

    def _check_claims(self) -> None:
        systems = [one.name for one in self.systems()] if self.claims else []
        for name, count in Counter(one.name for one in self.claims).items():
            if count > 1:
                raise UserError(f"claims: {count} are named {name!r}; give each a name of its own")
        for claim in self.claims:
            for one in (claim.better, claim.than):
                if one not in systems:
                    raise UserError(f"claims: {claim.name}: {one!r} is no system; there are {', '.join(systems)}")
            if self.test != "arms":
                raise UserError(
                    "claims: test: arms is needed, since the systems of a claim are compared on the test split"
                )

    def _check_ranges(self, arm: StudyArm) -> None:
        assert self.search is not None
        for name, one in self.ranges_of(arm).items():
            if name == "seed":
                raise UserError("search: seed is nothing to search; name seeds in seeds")
            if name in self.grid:
                raise UserError(f"search: {name} is in the grid as well; search it, or give it values, not both")
            if self.search.by == "grid" and not one.choice:
                raise UserError(f"search: {name}: a grid takes a list of values; give one, or search by: random")
        count = self.combinations(arm)
        if self.search.by == "grid" and self.search.trials is not None and count > self.search.trials:
            raise UserError(
                f"search: arm {arm.name}: the grid has {count} combinations, and the budget is {self.search.trials}"
                " trials; give fewer values, or a larger budget"
            )

    @property
    def opens_test(self) -> bool:
        """Whether any system is measured on the test split; where none is, the validation split answers."""
        return self.test != "none"

    def combinations(self, arm: StudyArm) -> int:
        """Number of combinations of an arm's lists."""
        count = 1
        for one in self.ranges_of(arm).values():
            count *= len(one.choice)
        return count

    @property
    def all_arms(self) -> tuple[StudyArm, ...]:
        """The arms; the base as the only one where none is named."""
        return self.arms or (StudyArm(_ARM_ALONE),)

    def ranges_of(self, arm: StudyArm) -> Mapping[str, DrawRange]:
        """The ranges that are searched for an arm."""
        if self.search is None:
            return {}
        return self.search.ranges if arm.ranges is None else arm.ranges

    def points(self) -> Iterator[dict[str, Any]]:
        """All combinations of the grid's values; one without settings where there is no grid."""
        for values in product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))

    def systems(self) -> tuple[StudySystem, ...]:
        """Every arm with every combination of the grid, with a name that is a path of one or two folders."""
        words, taken = _point_names(list(self.points())), []
        for arm in self.all_arms:
            for point, word in zip(self.points(), words, strict=True):
                alone = not self.arms and word
                name = word if alone else "/".join(filter(None, (arm.name, word)))
                taken.append(StudySystem(name, arm, point))
        return tuple(taken)

    def config_of(self, arm: StudyArm, *changes: Mapping[str, Any], dataset: str = "") -> TrainConfig:
        """The configuration of an arm, with changes by dotted or nested names, the last ones first in rank.

        Raises:
            UserError: If a setting is unknown or does not fit.
        """
        base = dict(self.base)
        preset = base.pop("preset", "")
        if not isinstance(preset, str):
            raise UserError("base: preset must be the name of a preset, or a configuration file")
        started = load_training(arm.preset or preset, dataset) if arm.preset or preset else TrainConfig()
        plain = to_plain(started)
        for one in (base, arm.settings, *changes):
            plain = layered(plain, one)
        config = from_plain(TrainConfig, plain, f"arm {arm.name}")
        if self.data and not config.data.path:
            config = replace(config, data=replace(config.data, path=self.data))
        return config


@dataclass(frozen=True)
class StudySystem:
    """An arm at one point of the grid: its runs differ in their seed alone.

    Attributes:
        name: Name, which is its folder in that of the study.
        arm: The arm.
        point: Settings of the grid by dotted name.
    """

    name: str
    arm: StudyArm
    point: Mapping[str, Any]

    __repr__ = short_repr


def load_study(path: Path) -> StudyConfig:
    """Read the file of a study, and import the modules that it names.

    Raises:
        UserError: In one line, if it is missing, is no YAML, or does not fit.
    """
    try:
        values = parse_yaml(read_text(path, "settings_bytes"), path)
    except MissingFileError:
        raise UserError(f"{path}: no such file; name the YAML file of a study") from None
    return study_of({} if values is None else values, str(path))


def study_of(values: Any, where: str = "") -> StudyConfig:
    """A study from plain values, as its file holds them; its modules are imported."""
    modules = values.get("modules", ()) if isinstance(values, Mapping) else ()
    if isinstance(modules, list | tuple) and all(isinstance(one, str) for one in modules):
        import_named(modules, option=f"{where}: modules" if where else "modules")
    return from_plain(StudyConfig, values, where)


def layered(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Plain settings with changes whose names may be dotted, as :func:`rungwise.training.config.merged` merges them.

    >>> layered({"loss": {"kind": "max_of_hinges", "margin": 0.2}}, {"loss.margin": 0.3})
    {'loss': {'kind': 'max_of_hinges', 'margin': 0.3}}
    >>> layered({"loss": "max_of_hinges"}, {"loss": {"margin": 0.3}})
    {'loss': {'kind': 'max_of_hinges', 'margin': 0.3}}
    """
    found = dict(settings)
    for name, value in changes.items():
        for part in reversed(str(name).split(".")):
            value = {part: value}
        found = merged(_opened(found, value), value)
    return found


def _opened(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which a bare kind that is to get options is a mapping."""
    found = dict(settings)
    for name, value in changes.items():
        before = found.get(name)
        if isinstance(value, Mapping) and isinstance(before, str | Mapping):
            found[name] = _opened({"kind": before} if isinstance(before, str) else before, value)
    return found


def _checked_choice(measure: str, protocol: str, where: str) -> Choice:
    """A choice by a measure; one that is not known, or whose protocol is not, is refused."""
    try:
        return Choice(measure, protocol)
    except UserError as error:
        raise UserError(f"{where}: {str(error).removeprefix('snapshot.')}") from None


def _point_names(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Readable names of the points of a grid, no two alike, each fit for a folder; empty for a point without settings.

    >>> _point_names([{"data.share": 0.1}, {"data.share": 1.0}])
    ['share=0.1', 'share=1.0']
    """
    if not points or not points[0]:
        return ["" for _ in points]
    short = _short_names(list(points[0]))
    names = [",".join(f"{short[name]}={_value_name(value)}" for name, value in point.items()) for point in points]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name.lower()] += 1
        unique.append(name if seen[name.lower()] == 1 else f"{name},{seen[name.lower()]}")
    return unique


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """The last parts of dotted names, as many as tell them apart."""
    found = {}
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            short = ".".join(parts[-count:])
            if sum(other == short or other.endswith(f".{short}") for other in names) == 1:
                break
        found[name] = short
    return found


def _value_name(value: Any) -> str:
    """A value as a part of a folder's name."""
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, Mapping) and "kind" in value:
        rest = "-".join(f"{name}-{one}" for name, one in value.items() if name != "kind")
        text = "-".join(filter(None, (str(value["kind"]), rest)))
    elif isinstance(value, list | tuple):
        text = "+".join(map(str, value))
    else:
        text = str(value)
    return _NOT_IN_A_NAME.sub("-", text).strip("-")[:_LONGEST_VALUE] or "none"
