import pytest
from fastapi import HTTPException

from rungwise.model_server._forms import parts_of

PART = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
KIND = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (PART + b"--x--", KIND),
        (PART + b"--x--\r\n", 'Multipart/Form-Data; charset=utf-8; boundary="x"'),
        (PART.replace(b"form-data; name", b"form-data; filename=blob; name") + b"--x--an end", KIND),
        (PART.replace(b"\r\n\r\nb", b"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nb") + b"--x--", KIND),
    ],
)
def test_forms_of_programs_are_read(body: bytes, kind: str) -> None:
    assert parts_of(body, kind) == {"a": b"b"}


def test_a_form_may_have_no_part() -> None:
    assert parts_of(b"--x--", KIND) == {}


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (PART, KIND, "is cut off"),
        (b"\r\n" + PART + b"--x--", KIND, "does not begin with its boundary"),
        (PART * 20 + b"--x--", KIND, "more than 16 parts"),
        (b"--x\r\n\r\nb\r\n--x--", KIND, "a part without a head|a part without a name"),
        (PART.replace(b"name", b"nome") + b"--x--", KIND, "a part without a name"),
        (PART.replace(b"form-data", b"attachment") + b"--x--", KIND, "a part without a name"),
        (PART.replace(b'"a"', b'"' + b"a" * 2000 + b'"') + b"--x--", KIND, "a head of at most 1024 bytes"),
        (PART, f"multipart/form-data; boundary={'x' * 71}", "no boundary of 1 to 70"),
        (PART, "multipart/form-data; boundary*=utf-8''x", "not announced|does not begin"),
        (PART, "multipart/mixed; boundary=x", "not announced"),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, kind: str, message: str) -> None:
    with pytest.raises(HTTPException, match=message) as refused:
        parts_of(body, kind)
    assert refused.value.status_code == 422
