"""Requests of Immich for vectors, as bytes.

They have the form that Immich 2.7.5 sends: ``getFormData`` and ``encodeImage``, ``encodeText``, ``detectFaces`` and
``ocr`` of ``server/src/repositories/machine-learning.repository.ts`` of immich-app/immich, read at commit a6d6d07b0a88
of its copy ricardotk002/immich. They go through the ``fetch`` of Node.js, whose ``FormData`` names a ``Blob`` without a
name ``blob``. They were made from that source, and not taken from a wire.
"""

from __future__ import annotations

BOUNDARY = b"----formdata-undici-071934518293"
KIND = f"multipart/form-data; boundary={BOUNDARY.decode()}"
"""Value of ``Content-Type``."""

HEAD = {
    "Content-Type": KIND,
    "Accept": "*/*",
    "Accept-Language": "*",
    "Sec-Fetch-Mode": "cors",
    "User-Agent": "node",
    "Accept-Encoding": "gzip, deflate",
}
"""Headers, besides ``Host``, ``Connection`` and ``Content-Length``."""

VISUAL = b'{"clip":{"visual":{"modelName":"ViT-B-32__openai"}}}'
TEXTUAL = b'{"clip":{"textual":{"modelName":"ViT-B-32__openai","options":{"language":"de-DE"}}}}'
TEXTUAL_WITHOUT_LANGUAGE = b'{"clip":{"textual":{"modelName":"ViT-B-32__openai","options":{}}}}'
FACES = (
    b'{"facial-recognition":{"detection":{"modelName":"buffalo_l","options":{"minScore":0.7}},'
    b'"recognition":{"modelName":"buffalo_l"}}}'
)
OCR = (
    b'{"ocr":{"detection":{"modelName":"PP-OCRv5_mobile","options":{"minScore":0.5,"maxResolution":736}},'
    b'"recognition":{"modelName":"PP-OCRv5_mobile","options":{"minScore":0.8}}}}'
)
"""Values of ``entries``."""


def form(entries: bytes, *, image: bytes | None = None, text: bytes | None = None) -> bytes:
    """The body of a request."""
    parts = [b'Content-Disposition: form-data; name="entries"\r\n\r\n' + entries]
    if image is not None:
        parts.append(
            b'Content-Disposition: form-data; name="image"; filename="blob"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n" + image
        )
    if text is not None:
        parts.append(b'Content-Disposition: form-data; name="text"\r\n\r\n' + text)
    return b"".join(b"--" + BOUNDARY + b"\r\n" + part + b"\r\n" for part in parts) + b"--" + BOUNDARY + b"--\r\n"
