import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.compute import _cluster
from rungwise.losses import Loss
from rungwise.parts import _named_modules
from rungwise.runs.study import StudyConfig, load_study, study_of
from rungwise.runs.study._study_file import layered
from tests.own_parts import forgotten

ARMS = [{"name": "max"}, {"name": "sum", "loss": "sum_of_hinges"}]


def test_an_arm_differs_from_the_base_by_its_own_settings():
    study = study_of(
        {
            "data": "photos",
            "base": {"preset": "vsepp", "loss.margin": 0.3, "epochs": 2, "learning_rates": 0.01},
            "arms": ARMS,
        }
    )
    first, second = (study.config_of(arm) for arm in study.arms)
    assert (first.loss.kind, first.loss.margin, first.epochs, first.preset) == ("max_of_hinges", 0.3, (2,), "vsepp/own")
    assert (second.loss.kind, second.loss.margin) == ("sum_of_hinges", 0.2)
    assert first.data.path == second.data.path == "photos"
    other = study.config_of(first_arm := study.arms[1], {"loss.margin": 0.1, "data.share": 0.5})
    assert (other.loss.kind, other.loss.margin, other.data.share) == ("sum_of_hinges", 0.1, 0.5)
    assert first_arm.settings == {"loss": "sum_of_hinges"}


def test_an_arm_may_name_another_preset():
    study = study_of({"base": {"preset": "vsepp", "batch_size": 7}, "arms": [{"name": "order", "preset": "quick"}]})
    config = study.config_of(study.arms[0])
    assert (config.preset, config.batch_size, config.loss.kind) == ("quick/own", 7, "contrastive_sum")


def test_a_base_may_be_a_name_alone_and_a_study_without_arms_has_one():
    study = study_of({"base": "vsepp", "grid": {"data.share": [1.0, 0.1]}})
    assert [one.name for one in study.systems()] == ["share=1.0", "share=0.1"]
    assert [one.name for one in study_of({"base": "vsepp"}).systems()] == ["runs"]


def test_a_grid_has_all_combinations_with_readable_names():
    study = study_of(
        {
            "base": "vsepp",
            "arms": ARMS,
            "grid": {"loss.margin": [0.1, 0.2], "model.image.options": [{"a/b": 1}, {"a b": 1}], "epochs": [[1, 2]]},
        }
    )
    names = [one.name for one in study.systems()]
    assert len(names) == len({name.lower() for name in names}) == 8
    assert names[0] == "max/margin=0.1,options=a-b-1,epochs=1+2"
    assert names[1] == "max/margin=0.1,options=a-b-1,epochs=1+2,2"
    assert all(name.count("/") == 1 for name in names)


def test_names_of_settings_are_as_long_as_they_must_be():
    study = study_of({"grid": {"model.image.size": [1], "model.text.size": [2], "ema": [3]}})
    assert [one.name for one in study.systems()] == ["image.size=1,text.size=2,ema=3"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"arm": []}, r"s\.yaml: arm: unexpected, there is no such setting; did you mean arms\?"),
        ({"seeds": []}, r"s\.yaml: seeds: none are given"),
        ({"grid": {"seed": [1]}}, r"s\.yaml: grid: seed is no setting of an arm or a grid; name seeds in seeds"),
        ({"arms": [{"name": "a", "seed": 5}]}, r"s\.yaml: arm a: seed is no setting of an arm or a grid"),
        ({"grid": {"ema": [0.5, 0.5]}}, r"s\.yaml: grid: ema: 0.5 stands twice; give each value once"),
        ({"seeds": [1, 1]}, r"s\.yaml: seeds: 1 stands twice in 1 1; give each seed once"),
        ({"arms": [{"name": "a"}, {"name": "A"}]}, r"s\.yaml: arms: 2 are named 'a'; give each a name of its own"),
        ({"arms": [{"name": "../a"}]}, r"s\.yaml: arms: '\.\./a' names no folder"),
        ({"arms": [{"loss": "x"}]}, r"s\.yaml: arms\.0\.name: is missing"),
        ({"grid": {"data.share": []}}, r"s\.yaml: grid\.data\.share: the number of its values must be at least 1"),
        ({"primary": "R@"}, r"s\.yaml: primary: .*R@"),
        ({"evaluation": [{"protocol": "coco"}]}, r"s\.yaml: evaluation: .*coco"),
        ({"evaluation": [{"measures": ["CS@"]}]}, r"s\.yaml: evaluation: .*CS@"),
        ({"test": "both"}, r"s\.yaml: test: must be 'arms', 'winner' or 'none'"),
        ({"search": {"trials": 2}}, r"s\.yaml: search: names no ranges"),
        ({"search": {"ranges": {"a": [1]}}}, r"s\.yaml: search: trials is missing; it is the budget of each arm"),
        ({"search": {"trials": 2, "ranges": {"a": {"uniform": [2, 1]}}}}, r"s\.yaml: search: the range \[2\.0, 1\.0\]"),
        ({"search": {"trials": 2, "ranges": {"a": {"log_uniform": [0, 1]}}}}, r"must lie above 0"),
        ({"search": {"trials": 2, "ranges": {"a": {}}}}, r"s\.yaml: search: a range is one of uniform"),
        ({"search": {"by": "grid", "ranges": {"a": {"uniform": [0, 1]}}}}, r"search: a: a grid takes a list of values"),
        (
            {"search": {"by": "grid", "trials": 3, "ranges": {"a": [1, 2], "b": [1, 2]}}},
            r"search: arm runs: the grid has 4 combinations, and the budget is 3 trials",
        ),
        (
            {"grid": {"a": [1]}, "search": {"trials": 2, "ranges": {"a": [1]}}},
            r"search: a is in the grid as well; search it, or give it values, not both",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_file_and_place(values, said):
    with pytest.raises(UserError, match=said) as caught:
        study_of(values, "s.yaml")
    assert "\n" not in str(caught.value)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("base: vsepp\nevaluation: {measures: [R@1], relevance: {kind: tfidf, tokenizer: unicode}}\n")
    found = load_study(path)
    assert found.evaluation[0].relevance == "{kind: tfidf, tokenizer: unicode}"
    with pytest.raises(UserError, match=r"none\.yaml: no such file; name the YAML file of a study"):
        load_study(tmp_path / "none.yaml")
    path.write_text("- 1\n")
    with pytest.raises(UserError, match=r"s\.yaml: expected a mapping of settings"):
        load_study(path)
    path.write_text("")
    assert load_study(path) == StudyConfig()


def test_modules_of_a_file_are_imported(tmp_path, monkeypatch):
    for name in ("_imported", "_files", "_owned"):  # which commands that others print would name
        monkeypatch.setattr(_named_modules, name, dict(getattr(_named_modules, name)))
    monkeypatch.setattr(_cluster, "_whole", list(_cluster._whole))  # what workers would be sent
    module = tmp_path / "study_losses.py"
    module.write_text(
        "from rungwise.losses import MaxOfHinges\n\n\nclass StudiedHinges(MaxOfHinges):\n"
        '    """Hinges.\n\n    Args:\n        margin: Margin.\n    """\n\n'
        "    def __init__(self, margin: float = 0.2) -> None:\n        super().__init__(margin)\n"
    )
    with forgotten():
        study = study_of(
            {"modules": [str(module)], "base": "vsepp", "arms": [{"name": "own", "loss": "studied_hinges"}]}
        )
        config = study.config_of(study.arms[0])
        assert issubclass(config.loss.loss_class, Loss)
    with pytest.raises(UserError, match=r"s\.yaml: modules no_such: there is no such module"):
        study_of({"modules": ["no_such"]}, "s.yaml")


def test_a_setting_that_does_not_fit_names_its_arm():
    study = study_of({"base": "vsepp", "arms": [{"name": "wrong", "loss": {"margn": 1}}]})
    with pytest.raises(UserError, match=r"arm wrong: loss\..*margn: unexpected"):
        study.config_of(study.arms[0])
    study = study_of({"arms": [{"name": "cca", "preset": "cca"}]})
    with pytest.raises(UserError, match=r"cca: a fit, not a training in steps"):
        study.config_of(study.arms[0])


PLAIN = st.recursive(
    st.integers() | st.booleans(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner), max_leaves=8
)
NESTED = st.dictionaries(st.sampled_from("abc"), PLAIN)


@given(NESTED, st.lists(st.sampled_from("abc"), min_size=1, max_size=3), st.integers())
def test_a_dotted_name_is_the_nested_one(settings, parts, value):
    nested = value
    for part in reversed(parts):
        nested = {part: nested}
    assert layered(settings, {".".join(parts): value}) == layered(settings, nested)
    found = layered(settings, nested)
    for part in parts:
        found = found[part]
    assert found == value
