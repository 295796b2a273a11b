"""The files of ``deploy/``: their versions are the tested ones, their structure is whole, their commands exist.

Tests of no module: of the container file, of compose, of the Ray cluster, and of the script that asks a server how it
is. No engine for containers is at hand, so none is started here.
"""

import configparser
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from rungwise.cli import COMMANDS
from rungwise.cli.frame import options, parse, with_ray
from rungwise.cli.index._command import IndexCommand
from rungwise.cli.serve._command import Serve
from rungwise.core.version import __version__
from rungwise.index import Index
from rungwise.serving import ServerSettings, ServingLimits, background
from tests.colour_model import ColourModel, colour_pictures

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
TOKEN = "correct-horse"


def pinned() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


COMPOSED = ("compose.yaml", "compose-folder.yaml")
"""Files of compose: with Milvus, and of one folder without any database."""


def compose(name: str = "compose.yaml") -> dict[str, Any]:
    """A file of compose, with the services that it extends in full."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
    for service, own in found["services"].items():
        if (further := own.pop("extends", None)) is not None:
            there = yaml.safe_load((DEPLOY / further["file"]).read_text(encoding="utf-8"))
            found["services"][service] = there["services"][further["service"]] | own
    return found


def ray_cluster() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text(encoding="utf-8"))
    return found


def container_lines() -> list[str]:
    """The instructions of the container file, each on one line."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and not line.startswith("#")]


def images() -> Iterator[str]:
    for name in COMPOSED:
        for service in compose(name)["services"].values():
            yield typed([service["image"]])[0]
    yield next(line.split()[1] for line in container_lines() if line.startswith("FROM "))


def test_every_image_has_a_version_that_says_one_thing() -> None:
    found = list(images())
    assert len(found) == 15
    for image in found:
        _, colon, version = image.rpartition(":")
        assert colon, image
        assert re.search(r"\d+[.\-]\d+[.\-]\d+", version), image


def test_versions_are_those_that_are_tested() -> None:
    services = compose()["services"]
    assert services["milvus"]["image"] == f"milvusdb/milvus:v${{MILVUS_VERSION:-{pinned()['milvus']}}}"
    for name in COMPOSED:
        ours = compose(name)["services"]
        built = [one for one in ours.values() if "build" in one]
        assert {one["image"] for one in built} == {f"rungwise:{__version__}"}
    installed = " ".join(ray_cluster()["setup_commands"])
    assert f"ray[data]=={pinned()['ray']}" in installed
    assert set(re.findall(r"==([\d.]+)", installed)) == {pinned()["ray"]}
    base = next(image for image in images() if image.startswith("python:"))
    assert base.startswith("python:3.11.")
    assert "-slim" in base


def test_the_container_installs_the_tested_versions_and_runs_as_a_user_of_its_own() -> None:
    lines = container_lines()
    installs = [line for line in lines if "pip install" in line]
    assert installs
    assert all("--constraint constraints.txt" in line for line in installs)
    assert "USER rungwise" in lines
    assert lines.index("USER rungwise") > lines.index(installs[-1])
    # An outage of the store is to restart no server.
    assert [
        line
        for line in lines
        if line.startswith("HEALTHCHECK") and line.endswith('"/opt/rungwise/health.py", "health"]')
    ]
    assert not [line for line in lines if re.search(r"(?i)(token|password|secret|key)\s*=", line)], (
        "a secret in the image"
    )


def test_what_the_container_copies_is_there() -> None:
    copied = [one for line in container_lines() if line.startswith("COPY ") for one in line.split()[1:-1]]
    assert copied
    assert not [one for one in copied if not (REPOSITORY / one).exists()]


def test_extras_that_are_installed_exist() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    known = set(project["project"]["optional-dependencies"])
    built = next(line for line in container_lines() if line.startswith("ARG EXTRAS=")).partition("=")[2]
    in_compose = compose()["services"]["serve"]["build"]["args"]["EXTRAS"]
    on_ray = re.search(r"rungwise-source\[([\w,-]+)\]", " ".join(ray_cluster()["setup_commands"]))
    assert on_ray
    alone = compose("compose-folder.yaml")["services"]["serve"]["build"]["args"]["EXTRAS"]
    for extras in (built, in_compose, alone, on_ray[1]):
        assert set(extras.split(",")) <= known
    assert "milvus" in in_compose.split(",")
    assert "ray" in on_ray[1].split(",")


@pytest.mark.parametrize("file", COMPOSED)
def test_every_service_waits_for_what_it_needs_until_that_is_well(file: str) -> None:
    services = compose(file)["services"]
    for name, service in services.items():
        if name != "index":  # which ends
            assert service["restart"] == "unless-stopped"
        if name in ("index", "follow"):
            assert service["healthcheck"] == {"disable": True}
        else:
            assert service["healthcheck"]["test"][0] == "CMD"
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services
            assert how == {"condition": "service_healthy"}
    if "milvus" in services:
        assert set(services["milvus"]["depends_on"]) == {"etcd", "minio"}
        assert set(services["serve"]["depends_on"]) == set(services["follow"]["depends_on"]) == {"milvus"}
    assert set(services["proxy"]["depends_on"]) == {"serve"}


@pytest.mark.parametrize("file", COMPOSED)
def test_every_service_has_a_limit_of_memory_and_of_its_log(file: str) -> None:
    for name, service in compose(file)["services"].items():
        assert re.fullmatch(r"\$\{[A-Z]+_MEMORY:-\d+[mg]\}", service["mem_limit"]), name
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "20m", "max-file": "5"}}, name


@pytest.mark.parametrize("file", COMPOSED)
def test_tokens_are_read_where_the_folder_of_secrets_is_mounted(file: str) -> None:
    """A folder and not a file: a file that is replaced on the host would stay the old one in the container."""
    services = compose(file)["services"]
    for name in ("serve", "prometheus", "grafana"):
        mounted = next(one for one in services[name]["volumes"] if one.startswith("${SECRETS:?"))
        assert mounted.endswith("}:/run/rungwise:ro")
    group = next(line.split()[3] for line in container_lines() if line.startswith("RUN groupadd --gid"))
    assert services["prometheus"]["group_add"] == services["grafana"]["group_add"] == [group]
    watch = services["serve"]["environment"]["RUNGWISE_TOKEN_FILE"]
    scraped = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))["scrape_configs"][0]
    assert scraped["authorization"]["credentials_file"] == watch == "/run/rungwise/watch-token"
    assert services["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"].startswith("/run/rungwise/")


@pytest.mark.parametrize("file", COMPOSED)
def test_the_page_is_reached_through_the_proxy_alone(file: str) -> None:
    services = compose(file)["services"]
    assert "ports" not in services["serve"]
    assert [port.rpartition(":")[2] for port in services["proxy"]["ports"]] == ["80", "443"]
    caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    assert "reverse_proxy {$RUNGWISE_SERVE:serve:8000}" in caddy
    assert "tls {$RUNGWISE_TLS:internal}" in caddy
    assert services["proxy"]["environment"].keys() <= set(re.findall(r"\{\$(\w+):", caddy))
    port = re.search(r"RUNGWISE_PROXY_HEALTH:(\d+)", caddy)
    assert port
    assert services["proxy"]["healthcheck"]["test"][-1] == f"http://localhost:{port[1]}/"
    assert caddy.count("{") == caddy.count("}")


def test_addresses_are_kept_from_the_log_of_the_proxy() -> None:
    """They hold words of searches, and at a first visit the token."""
    text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    assert "request>uri delete" in text
    assert "request>headers delete" in text


def test_the_build_reads_what_it_copies_and_nothing_else() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    assert lines[0] == "*"
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert let_in == {one for line in container_lines() if line.startswith("COPY ") for one in line.split()[1:-1]}


@pytest.mark.parametrize("file", COMPOSED)
def test_volumes_are_named_and_secrets_come_from_the_environment(file: str) -> None:
    found = compose(file)
    for service in found["services"].values():
        for volume in service.get("volumes", ()):
            source = re.split(r":(?=/)", volume)[0]
            if source.startswith("./"):
                assert (DEPLOY / source).is_file()
            else:
                assert source.startswith("${") or source in found["volumes"], volume
        for name, value in service.get("environment", {}).items():
            if name.endswith("_FILE"):
                assert value.startswith("/run/rungwise/")
            elif re.search("TOKEN|PASSWORD|SECRET|ACCESS_KEY|_USER", name):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), f"{name} has a default, or is written down"


@pytest.mark.parametrize("file", COMPOSED)
def test_nothing_is_reachable_from_other_machines_unless_that_is_asked_for(file: str) -> None:
    ports = [port for service in compose(file)["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith(("127.0.0.1:", "${RUNGWISE_ADDRESS:-127.0.0.1}:")) for port in ports)


def typed(words: list[str]) -> list[str]:
    """Words as compose hands them on when nothing is set but what must be."""
    return [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(word)) for word in words]


@pytest.mark.parametrize("file", COMPOSED)
def test_commands_of_compose_exist_with_these_options(file: str) -> None:
    services = compose(file)["services"]
    command, *words = typed(services["serve"]["command"])
    assert command == "serve"
    serve = parse(Serve, words, "rungwise serve")
    assert (serve.host, serve.port, serve.browser, serve.log) == ("0.0.0.0", 8000, False, "json")
    assert str(serve.tokens) == "/run/rungwise/tokens"
    # The second is the name under which Prometheus asks.
    scraped = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))["scrape_configs"][0]
    assert scraped["static_configs"] == [{"targets": [f"{serve.allowed_host[1]}:{serve.port}"]}]
    # Whoever comes through the proxy is one client.
    assert serve.limits.connections_per_client == ServingLimits().connections
    assert serve.limits.uploads_per_client == ServingLimits().uploads_at_once
    command, *words = typed(services["index"]["command"])
    assert command == "index"
    index = parse(IndexCommand, words, "rungwise index")
    assert words[words.index("--out") + 1] == serve.index
    assert index.model == "/model"
    if file == "compose.yaml":
        command, *further = services["follow"]["command"]
        assert (command, further) == ("index", [*words, "--watch"])
        assert parse(IndexCommand, further, "rungwise index").watch
        assert urlsplit(serve.index).scheme == "milvus"
        assert serve.model == "/model"
    else:
        assert serve.follow
        volume, _ = compose(file)["services"]["serve"]["volumes"][0].split(":")
        assert serve.index.startswith("/var/lib/rungwise/"), "an index that a new container would not have"
        assert volume in compose(file)["volumes"]


def test_the_unit_of_systemd_starts_a_server_that_follows_its_folder() -> None:
    text = (DEPLOY / "rungwise.service").read_text(encoding="utf-8")
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(text)
    assert unit.sections() == ["Unit", "Service", "Install"]
    program, command, *words = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command) == ("rungwise", "serve")
    serve = parse(Serve, words, "rungwise serve")
    assert serve.follow
    assert not serve.browser
    assert Path(serve.index).is_relative_to(unit["Service"]["ReadWritePaths"])
    assert "TOKEN" not in unit["Service"].get("Environment", "")
    assert f"rungwise token ada write >> {serve.tokens}" in text
    assert re.fullmatch(r"\d+G", unit["Service"]["MemoryMax"])
    assert serve.log == "json"


def test_the_entry_point_is_the_command() -> None:
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert 'ENTRYPOINT ["rungwise"]' in container_lines()
    assert "rungwise" in scripts


def test_commands_in_the_comments_exist() -> None:
    """What a comment of these files says to run."""
    found = 0
    for path in filter(Path.is_file, DEPLOY.iterdir()):
        for command, rest in re.findall(r"rungwise(?::[\d.]+)? ([a-z]+)((?: +[-\w./:]+)*)", path.read_text("utf-8")):
            if command in COMMANDS and rest:
                words = shlex.split(rest)
                if command == "index" and "--ray" not in options(IndexCommand):
                    words = words[: words.index("--ray")] if "--ray" in words else words
                if command == "index":
                    parse(IndexCommand, with_ray(words), "rungwise index")
                found += 1
    assert found


def test_the_ray_cluster_is_valid_by_rays_own_schema() -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    prepared = util.prepare_config(ray_cluster())
    util.validate_config(prepared)
    assert prepared["provider"]["type"] == "local"
    machines = len(ray_cluster()["provider"]["worker_ips"])
    assert ray_cluster()["min_workers"] == ray_cluster()["max_workers"] == machines
    with pytest.raises(Exception, match="nonsense"):
        util.validate_config({**prepared, "nonsense": 1})


def test_options_of_ray_start_exist() -> None:
    scripts = pytest.importorskip("ray.scripts.scripts")
    known = {name for parameter in scripts.start.params for name in parameter.opts}
    commands = [*ray_cluster()["head_start_ray_commands"], *ray_cluster()["worker_start_ray_commands"]]
    used = {word.partition("=")[0] for line in commands for word in line.split() if word.startswith("--")}
    assert used
    assert used <= known


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    index = Index.build(colour_pictures(tmp_path / "photos", ["red"]), ColourModel(), tmp_path / "index")
    with background(index, ColourModel(), settings=ServerSettings(token=TOKEN)) as address:
        yield str(urlsplit(address).port)


def asked(what: str, port: str, token: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"RUNGWISE_PORT": port, "RUNGWISE_TOKEN": token}
    if file is not None:
        environment["RUNGWISE_TOKEN_FILE"] = str(file)
    command = [sys.executable, str(DEPLOY / "health.py"), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.smoke
def test_the_script_asks_a_server_with_its_token(served: str, tmp_path: Path) -> None:
    for what in ("health", "ready"):
        well = asked(what, served, TOKEN)
        assert well.returncode == 0, well.stderr
        assert '"pictures":1' in well.stdout
    file = tmp_path / "watch-token"
    file.write_text(f"{TOKEN}\n")
    assert asked("ready", served, "wrong-horse", file).returncode == 0
    lost = asked("ready", served, TOKEN, tmp_path / "none")
    assert (lost.returncode, lost.stderr.startswith("no token: ")) == (1, True)
    refused = asked("ready", served, "wrong-horse")
    assert refused.returncode == 1
    assert "status 401" in refused.stderr


def test_the_script_says_that_nobody_answers_and_what_it_can_ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise urllib.error.URLError("connection refused")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    script = runpy.run_path(str(DEPLOY / "health.py"))
    for words, status, said in ((["health"], 1, "no answer"), (["everything"], 2, "give health"), ([], 2, "give")):
        monkeypatch.setattr(sys, "argv", ["health.py", *words])
        assert script["main"]() == status
        assert capsys.readouterr().err.startswith(said)
