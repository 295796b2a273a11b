"""The monitoring files of ``deploy/``: they name what the server prints, and are whole by their programs' own checks.

Tests of no module. The programs of Prometheus and Caddy check their files where they are installed.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app
from rungwise.serving.access import parse_tokens
from tests.colour_model import ColourModel, colour_pictures
from tests.pages import pages_below

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "rungwise.json").read_text(encoding="utf-8"))
ALERTS: dict[str, Any] = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))
PROMETHEUS: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """Names of all samples that a server prints to a token of the right `watch`, with their labels."""
    folder = tmp_path_factory.mktemp("watched")
    index = Index.build(colour_pictures(folder / "photos", ["red"]), ColourModel(), folder / "index")
    tokens = parse_tokens("rita read token-of-rita; monitor watch token-of-monitor", "here")
    client = TestClient(create_app(index, ColourModel(), settings=ServerSettings(tokens=tokens)))
    client.get("/search?q=red", headers={"authorization": "Bearer token-of-rita"})
    client.get("/search?q=red", headers={"authorization": "Bearer token-of-nobody"})
    monitor = {"authorization": "Bearer token-of-monitor"}
    client.get("/ready", headers=monitor)
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(client.get("/metrics", headers=monitor).text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(dict(sample.labels))
    return found


def test_everything_that_is_watched_is_printed(printed: dict[str, list[dict[str, str]]]) -> None:
    named = 0
    for expression in expressions():
        for name, chosen in re.findall(r"\b((?:rungwise|process)_\w+)(?:\{([^}]*)\})?", expression):
            named += 1
            assert name in printed, f"no server prints {name}"
            for label, sign, value in re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', chosen):
                values = [sample[label] for sample in printed[name]]
                if sign == "=" and label != "status":
                    assert value in values, f"{name} has no {label} {value}"
    assert named > 20


def test_alerts_say_what_is_wrong_and_the_page_says_what_to_do() -> None:
    page = pages_below("operate")
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["for"]
        assert f"| `{rule['alert']}` |" in page, f"docs/operate/team.md says nothing of {rule['alert']}"
    assert set(re.findall(r"`(Rungwise\w+)`", page)) == set(names)


def test_files_name_each_other() -> None:
    assert PROMETHEUS["rule_files"] == ["alerts.yaml"]
    jobs = {one["job_name"] for one in PROMETHEUS["scrape_configs"]}
    assert {job for text in expressions() for job in re.findall(r'job="(\w+)"', text)} <= jobs
    source = yaml.safe_load((DEPLOY / "grafana" / "datasources.yaml").read_text(encoding="utf-8"))["datasources"][0]
    used = {target["datasource"]["uid"] for panel in DASHBOARD["panels"] for target in panel["targets"]}
    assert used == {source["uid"]}
    place = yaml.safe_load((DEPLOY / "grafana" / "dashboards.yaml").read_text(encoding="utf-8"))
    folder = place["providers"][0]["options"]["path"]
    mounted = yaml.safe_load((DEPLOY / "team.yaml").read_text(encoding="utf-8"))["services"]["grafana"]["volumes"]
    assert f"./grafana/rungwise.json:{folder}/rungwise.json:ro" in mounted


def test_the_dashboard_is_whole() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["targets"]
        assert all(one["expr"].count("(") == one["expr"].count(")") for one in panel["targets"])


@pytest.mark.slow  # starts a process, where it is installed
def test_prometheus_takes_its_files(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    (tmp_path / "watch-token").write_text("token-of-monitor")
    (tmp_path / "alerts.yaml").write_text((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    text = (DEPLOY / "prometheus.yaml").read_text(encoding="utf-8").replace("/run/rungwise", str(tmp_path))
    (tmp_path / "prometheus.yaml").write_text(text, encoding="utf-8")
    subprocess.run([promtool, "check", "config", tmp_path / "prometheus.yaml"], check=True)
    for number, panel in enumerate(DASHBOARD["panels"]):
        rule = [
            {"record": f"panel:{number}:{place}", "expr": one["expr"].replace("$__rate_interval", "5m")}
            for place, one in enumerate(panel["targets"])
        ]
        group = {"groups": [{"name": f"panel {number}", "rules": rule}]}
        (tmp_path / "panels.yaml").write_text(yaml.safe_dump(group), encoding="utf-8")
        subprocess.run([promtool, "check", "rules", tmp_path / "panels.yaml"], check=True)


@pytest.mark.slow  # starts a process, where it is installed
def test_caddy_takes_its_file() -> None:
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed")
    subprocess.run([caddy, "validate", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile"], check=True)
