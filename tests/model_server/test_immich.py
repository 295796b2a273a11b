"""What Immich asks, and what it is answered."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.model_server import create_model_app
from rungwise.model_server._immich import as_text, read_prediction
from rungwise.serving import ServerSettings
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.hostile import bombs
from tests.model_server import recorded
from tests.model_server.conftest import PATIENT
from tests.model_server.recorded import HEAD, form

RED = picture_bytes(COLOURS["red"], "WEBP", (31, 17))


def asked(client: TestClient, body: bytes, headers: Mapping[str, str] = HEAD) -> tuple[int, dict[str, object]]:
    answer = client.post("/predict", content=body, headers=headers)
    found = answer.json()
    if answer.status_code >= 400:
        assert list(found) == ["error"]
        assert "\n" not in found["error"]
    return answer.status_code, found


def test_a_picture_is_answered_with_the_vector_of_the_model_and_its_size(client: TestClient) -> None:
    status, found = asked(client, form(recorded.VISUAL, image=RED))
    assert (status, found["imageWidth"], found["imageHeight"]) == (200, 31, 17)
    assert isinstance(found["clip"], str)
    (expected,) = ColourModel().encode_image([RED]).vectors
    assert np.array_equal(np.array(json.loads(found["clip"]), np.float32), expected)


@pytest.mark.parametrize("entries", [recorded.TEXTUAL, recorded.TEXTUAL_WITHOUT_LANGUAGE])
def test_a_text_is_answered_with_the_vector_of_the_model_alone(client: TestClient, entries: bytes) -> None:
    status, found = asked(client, form(entries, text="ein rot 赤 square\r\n".encode()))
    assert (status, list(found)) == (200, ["clip"])
    (expected,) = ColourModel().encode_text(["ein rot 赤 square\r\n"])
    assert np.array_equal(np.array(json.loads(str(found["clip"])), np.float32), expected)


def test_the_text_of_a_vector_reads_back_as_the_same_numbers() -> None:
    numbers = np.random.default_rng(0).normal(size=500).astype(np.float32) * np.float32(10) ** np.arange(-40, 10, 0.1)
    vector = numbers.astype(np.float32)
    assert np.array_equal(np.array(json.loads(as_text(vector)), np.float32), vector)
    assert " " not in as_text(vector)


def test_the_server_says_that_it_answers(client: TestClient) -> None:
    answer = client.get("/ping")
    assert (answer.status_code, answer.text) == (200, "pong")


@pytest.mark.parametrize("entries", [recorded.FACES, recorded.OCR])
def test_other_tasks_are_refused_with_what_to_do(client: TestClient, entries: bytes) -> None:
    status, found = asked(client, form(entries, image=RED))
    task = next(iter(json.loads(entries)))
    assert (status, found["error"]) == (
        422,
        f"this server does not do '{task}': it encodes pictures and texts for search alone; turn that off in the"
        " settings of whoever asks, or leave it to Immich's own service",
    )


def test_a_name_of_another_model_is_said_once_and_answered(client: TestClient, said: list[str]) -> None:
    for _ in range(3):
        assert asked(client, form(recorded.VISUAL, image=RED))[0] == 200
    assert said == ["'ViT-B-32__openai' is asked for; rungwise-c0ffeec0ffee answers, with 3 numbers a vector"]


def test_names_that_are_said_end(client: TestClient, said: list[str]) -> None:
    for number in range(110):
        entries = json.dumps({"clip": {"textual": {"modelName": f"name {number}"}}}).encode()
        assert asked(client, form(entries, text=b"red"))[0] == 200
    long = json.dumps({"clip": {"textual": {"modelName": "x" * 1000}}}).encode()
    assert asked(client, form(long, text=b"red"))[0] == 200
    assert len(said) == 99
    assert max(map(len, said)) < 200


def test_where_names_are_given_another_is_refused() -> None:
    app = create_model_app(ColourModel(), names=["colours", "ViT-B-32__openai"])
    with TestClient(app) as client:
        assert asked(client, form(recorded.VISUAL, image=RED))[0] == 200
        entries = b'{"clip":{"textual":{"modelName":"ViT-L-14__openai"}}}'
        status, found = asked(client, form(entries, text=b"red"))
        assert (status, found["error"]) == (404, "no model 'ViT-L-14__openai' here; ask for colours")


def test_parts_and_options_of_a_later_version_change_nothing(client: TestClient) -> None:
    more = b'{"clip":{"visual":{"modelName":"a","options":{"new":[1,{"b":null}]},"also":1}}}'
    body = form(more, image=RED)
    extra = b"--" + recorded.BOUNDARY + b'\r\nContent-Disposition: form-data; name="assetId"\r\n\r\n12\r\n'
    assert asked(client, extra + body)[1] == asked(client, body)[1]


CUT = form(recorded.VISUAL, image=RED)


@pytest.mark.parametrize(
    ("body", "status", "said_of_it"),
    [
        (b"", 422, "the form does not begin with its boundary"),
        (CUT[:-30], 422, "the form is cut off"),
        (CUT.replace(b'name="image"', b'name="entries"'), 422, "the form has the part 'entries' twice"),
        (form(recorded.VISUAL), 422, "the form lacks the part image, of which clip.visual is the vector"),
        (form(recorded.TEXTUAL, image=RED), 422, "the form lacks the part text, of which clip.textual is the vector"),
        (CUT.replace(b'name="entries"', b'name="other"'), 422, "the form lacks the part entries"),
        (form(b"{", text=b"a"), 422, "the part entries is a JSON object with each name once"),
        (form(b"[]", text=b"a"), 422, "the part entries is a JSON object"),
        (form(b"[" * 9000, text=b"a"), 422, "the part entries is a JSON object"),
        (form(b"9" * 9000, text=b"a"), 422, "the part entries is a JSON object"),
        (form(recorded.TEXTUAL.replace(b'"de-DE"', b"NaN"), text=b"a"), 422, "the part entries is a JSON object"),
        (form(b'{"clip":{},"clip":{}}', text=b"a"), 422, "the part entries is a JSON object with each name once"),
        (form(b"\xff", text=b"a"), 422, "the part entries is no UTF-8; send it as UTF-8"),
        (form(b" " * 20_000, text=b"a"), 413, "the part entries is larger than 16384 bytes"),
        (form(b"{}", text=b"a"), 422, "asks for no vector; ask for clip.visual or clip.textual"),
        (form(b'{"clip":[]}', text=b"a"), 422, "asks for no vector"),
        (form(b'{"clip":{"other":{}}}', text=b"a"), 422, "asks for no vector"),
        (form(b'{"clip":{"textual":{},"visual":{}}}', text=b"a"), 422, "asks for no vector"),
        (form(b'{"clip":{"textual":1}}', text=b"a"), 422, "clip.textual is no JSON object with modelName"),
        (form(b'{"clip":{"textual":{}}}', text=b"a"), 422, "lacks modelName, a text, in clip.textual"),
        (form(b'{"clip":{"textual":{"modelName":1}}}', text=b"a"), 422, "lacks modelName"),
        (form(b'{"clip":{"textual":{"modelName":"a","options":1}}}', text=b"a"), 422, "options of clip.textual is no"),
        (form(recorded.TEXTUAL, text=b"\xff"), 422, "the part text is no UTF-8"),
        (form(recorded.TEXTUAL, text=b" \r\n"), 422, "the text is empty; send words"),
        (form(recorded.TEXTUAL, text=b"a" * 40_000), 413, "the text has 40000 characters; send one of at most 32768"),
        (form(recorded.VISUAL, image=b""), 422, "the picture is empty"),
        (form(recorded.VISUAL, image=b"no picture"), 422, "send another file, such as a JPEG, PNG, WebP or GIF"),
        (form(recorded.VISUAL, image=RED[:60]), 422, "send another file"),
    ],
)
def test_a_malformed_request_is_refused_in_one_line(
    client: TestClient, body: bytes, status: int, said_of_it: str
) -> None:
    answered, found = asked(client, body)
    assert answered == status
    assert said_of_it in str(found["error"])


def test_a_body_that_is_no_form_is_refused(client: TestClient) -> None:
    for kind in ("application/json", "multipart/form-data", "multipart/form-data; boundary=", "", "a; boundary=x"):
        status, found = asked(client, CUT, {"Content-Type": kind})
        assert status == 422
        assert str(found["error"]).startswith("the form ")


def test_bombs_are_refused_before_a_pixel_is_decoded() -> None:
    limits = PATIENT
    small = create_model_app(ColourModel(), settings=ServerSettings(limits=replace(limits, upload_pixels=100)))
    with TestClient(small) as client:
        status, found = asked(client, form(recorded.VISUAL, image=RED))
        assert (status, found["error"]) == (413, "the picture has 527 pixels; send one of at most 100")
        status, found = asked(client, form(recorded.VISUAL, image=bombs.png(9_000)))
        assert (status, found["error"]) == (413, "the picture has 81000000 pixels; send one of at most 100")
    tight = create_model_app(ColourModel(), settings=ServerSettings(limits=replace(limits, decoding_memory=1000)))
    with TestClient(tight) as client:
        status, found = asked(client, form(recorded.VISUAL, image=RED))
        assert status == 413
        assert "to decode, more than" in str(found["error"])
    few = create_model_app(ColourModel(), settings=ServerSettings(limits=replace(limits, upload_bytes=50)))
    with TestClient(few) as client:
        status, found = asked(client, form(recorded.VISUAL, image=RED))
        assert (status, found["error"]) == (413, f"the picture has {len(RED)} bytes; send at most 50")
        status, found = asked(client, form(recorded.VISUAL, image=bytes(300_000)))
        assert (status, found["error"]) == (413, "the form is larger than 196608 bytes; send a smaller one")


class OfRows(ColourModel):
    """A model that reads rows of features on one side."""

    def __init__(self, *, pictures: bool, words: bool) -> None:
        super().__init__()
        self._reads = pictures, words

    @property
    def reads_pictures(self) -> bool:
        return self._reads[0]

    @property
    def reads_words(self) -> bool:
        return self._reads[1]


def test_what_the_model_does_not_read_is_refused() -> None:
    with TestClient(create_model_app(OfRows(pictures=False, words=True))) as client:
        status, found = asked(client, form(recorded.VISUAL, image=RED))
        assert (status, found["error"]) == (
            422,
            "this model reads rows of features in place of pictures; send texts alone",
        )
    with TestClient(create_model_app(OfRows(pictures=True, words=False))) as client:
        status, found = asked(client, form(recorded.TEXTUAL, text=b"red"))
        assert (status, found["error"]) == (
            422,
            "this model reads rows of features in place of texts; send pictures alone",
        )


def test_no_damage_of_a_request_breaks_the_server(client: TestClient) -> None:
    whole, choice = [form(recorded.VISUAL, image=RED), form(recorded.TEXTUAL, text="ein Bär 赤".encode())], Random(0)
    statuses = Counter[int]()
    for number in range(200):
        body = bytearray(whole[number % 2])
        for _ in range(choice.randint(1, 2)):
            begin = choice.randrange(len(body))
            end = min(len(body), begin + choice.choice((0, 1, 1, 4, 50)))
            body[begin:end] = choice.choice((b"", b"\0", b"\xff", b"\r\n", b"--", b'"', b"{", choice.randbytes(3)))
        statuses[asked(client, bytes(body))[0]] += 1
    assert set(statuses) <= {200, 413, 422}
    assert min(statuses[200], statuses[422]) > 10


def test_a_form_is_read_whatever_its_picture_holds() -> None:
    picture = b"\r\n--" + recorded.BOUNDARY[:-1] + b"\r\n\r\n\0\xff--" * 3
    assert read_prediction(form(recorded.VISUAL, image=picture), recorded.KIND).content == picture
