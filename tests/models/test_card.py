import yaml

from rungwise.models.card import model_card


def test_the_header_is_yaml_and_the_facts_can_be_read_back() -> None:
    facts = {"model": {"kind": "vse", "dimension": 8}, "data": "Käse: 100 %", "validation": {"rsum": 312.5}}
    _, header, rest = model_card(facts).split("---\n", 2)
    assert yaml.safe_load(header)["library_name"] == "rungwise"
    assert yaml.safe_load(rest.split("```yaml\n")[1].removesuffix("```\n")) == facts
    assert "Käse" in rest


def test_the_code_on_it_names_what_the_package_has() -> None:
    code = model_card({}).split("```python\n")[1].split("```")[0]
    imports = [line for line in code.splitlines() if line.startswith("from rungwise")]
    assert imports
    for line in imports:
        exec(line, {})
    compile(code, "card", "exec")
