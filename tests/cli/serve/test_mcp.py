"""``rungwise mcp``: what is refused before anything is loaded, and the protocol over standard streams and HTTP.

Also tests rungwise.cli.serve._streams.
"""

import asyncio
import base64
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from PIL import Image

pytest.importorskip("mcp")

from mcp.client import Client as Assistant
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import rungwise
from rungwise.cli import main
from rungwise.cli.serve._mcp import INDEX_TOKEN
from rungwise.cli.serve._streams import input_until_interrupted, output_kept_free
from rungwise.index import Index
from rungwise.models import load_dual_encoder
from rungwise.scenes import SceneConfig, generate
from rungwise.serving import ServerSettings, background

NAMES = ("RUNGWISE_TOKEN", "RUNGWISE_TOKENS", INDEX_TOKEN)
TOKEN = "correct-horse"


@pytest.fixture(autouse=True)
def _no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained model and an index that names it."""
    home = tmp_path_factory.mktemp("assistant")
    generate(home / "scenes", SceneConfig(pictures=40, side=32))
    model = {"image": {"kind": "convolutions"}, "text": {"word_dimension": 16, "min_count": 1}, "dimension": 16}
    rungwise.train(
        "vsepp", str(home / "scenes"), out=str(home / "run"), model=model, epochs=1, warm_up_epochs=0, quiet=True
    )
    rungwise.build_index(str(home / "scenes"), model=str(home / "run" / "model"), out=str(home / "index"), quiet=True)
    return home


def started(*arguments: object) -> list[str]:
    # Who runs these tests in the background has their Ctrl-C ignored, and programs that they start as well.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}\nfrom rungwise.cli import main\nraise SystemExit(main())"
    return [sys.executable, "-c", code, "mcp", *map(str, arguments)]


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["mcp", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_what_is_wrong_is_told_in_one_line_before_a_model_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no index here" in refused(capsys, tmp_path / "nowhere")
    assert "--previews must be 0 to 16, got 17" in refused(capsys, tmp_path, "--previews", 17)
    for option, value in (("port", 8001), ("host", "0.0.0.0"), ("token", TOKEN), ("tokens", "file")):
        assert f"--{option} changes nothing without --http" in refused(capsys, tmp_path, f"--{option}", value)
    assert "--open changes nothing without --http" in refused(capsys, tmp_path, "--open")
    limits = refused(capsys, tmp_path, "--limits.connections", 8)
    assert "changes nothing without --http" in limits
    assert "--open changes nothing at an address" in refused(capsys, tmp_path, "--http", "--open")
    server = "http://127.0.0.1:8000/"
    for words in (("--model", "m"), ("--device", "cpu"), ("--altered-model",)):
        assert f"{words[0]} changes nothing for the address of a server" in refused(capsys, server, *words)


def test_what_is_printed_while_a_model_is_loaded_is_no_part_of_the_protocol(capfd: pytest.CaptureFixture[str]) -> None:
    with output_kept_free():
        os.write(1, b"a library\n")
    os.write(1, b"the protocol\n")
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("the protocol\n", "a library\n")


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_input_goes_on_to_its_end_or_to_an_interrupt(interrupted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    kept, (reads, writes) = os.dup(0), os.pipe()
    os.dup2(reads, 0)
    os.write(writes, b"a line\n")
    if not interrupted:
        os.close(writes)
    received = []
    try:
        with pytest.raises(KeyboardInterrupt) if interrupted else nullcontext(), input_until_interrupted():
            received.append(os.read(0, 7))
            if interrupted:
                os.kill(os.getpid(), signal.SIGINT)
            received.append(os.read(0, 7))
        assert received == [b"a line\n", b""]
    finally:
        os.dup2(kept, 0)
        for one in (kept, reads, *([writes] if interrupted else [])):
            os.close(one)


async def _three_questions(assistant: Assistant) -> list[Any]:
    return [
        await assistant.call_tool("describe_index", {}),
        await assistant.call_tool("search", {"words": "a red circle", "k": 3, "beyond": True}),
        await assistant.call_tool("search", {"words": "a red circle", "k": 10**9}),
    ]


def judged(answers: list[Any]) -> None:
    described, found, refused = answers
    assert described.structured_content["pictures"] == 40
    assert len(found.structured_content["hits"]) == 3
    assert found.content[0].text.splitlines()[0] == found.structured_content["end"]
    images = [one for one in found.content if one.type == "image"]
    assert len(images) == len(found.structured_content["previews"]) == 3
    for one in images:
        assert Image.open(io.BytesIO(base64.b64decode(one.data))).format == "JPEG"
    assert refused.is_error
    assert refused.content[0].text == "k: must be at most 100"


def over_streams(work: Callable[[Assistant], Awaitable[Any]], *arguments: object, **settings: str) -> Any:
    async def connected() -> Any:
        command, *rest = started(*arguments)
        async with Assistant(StdioServerParameters(command=command, args=rest, env=dict(os.environ) | settings)) as one:
            return await work(one)

    return asyncio.run(connected())


@pytest.mark.slow
def test_three_questions_over_standard_streams(home: Path) -> None:
    judged(over_streams(_three_questions, home / "index"))


@pytest.mark.slow
def test_an_index_of_a_running_server(home: Path) -> None:
    index = Index.open(home / "index")
    with background(index, load_dual_encoder(home / "run" / "model"), settings=ServerSettings(token=TOKEN)) as address:
        judged(over_streams(_three_questions, address, **{INDEX_TOKEN: TOKEN}))
        run = subprocess.run(started(address), input=b"", capture_output=True, check=False)
        assert (run.returncode, run.stdout) == (2, b"")
        assert b"the token is missing or wrong" in run.stderr


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_the_output_and_the_end_of_the_input_ends_it(home: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        "no protocol at all",
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "[" * 100_000,
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
    ]
    run = subprocess.run(started(home / "index"), input="\n".join(lines).encode(), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert {one["jsonrpc"] for one in answers} == {"2.0"}
    assert next(one for one in answers if one.get("id") == 1)["result"]["serverInfo"]["name"] == "rungwise"
    assert b"Traceback" not in run.stderr


@contextmanager
def listening(*arguments: object) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """A server over HTTP, and what it printed until it was ready."""
    with subprocess.Popen(started(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        printed = []
        for line in run.stdout:
            printed.append(line.decode())
            if "Ctrl-C ends" in printed[-1]:
                break
        try:
            yield run, printed
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()


@pytest.mark.slow
def test_three_questions_over_http(home: Path) -> None:
    with listening(home / "index", "--http", "--port", 0, "--token", TOKEN) as (run, printed):
        address = printed[-1].split()[5]

        async def connected() -> list[Any]:
            headers = {"authorization": f"Bearer {TOKEN}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Assistant(streamable_http_client(address, http_client=http)) as one,
            ):
                return await _three_questions(one)

        judged(asyncio.run(connected()))
    assert run.returncode == 0


@pytest.mark.slow
def test_an_interrupt_ends_it_quietly_while_it_waits_for_a_line(home: Path) -> None:
    with subprocess.Popen(
        started(home / "index"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        run.stdin.flush()
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait() == 130
        assert run.stderr.read() == b"\nrungwise mcp: interrupted\n"
