"""A model and the queues in which it encodes what clients send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from fastapi import HTTPException, Request
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import quoted
from rungwise.data.pictures import PictureHeader
from rungwise.index.update import one_line
from rungwise.model_server._model_limits import ModelLimits
from rungwise.models import DualEncoder, EncodedImages
from rungwise.serving import WorkQueues, client_of
from rungwise.serving.queues import Batches, outcome

Vectors = NDArray[np.float32]

_MOST_NAMES = 100
"""Names of other models that are said; the log of a server must not grow with what clients ask for."""
_LONGEST_NAME = 200


class ServedModel:
    """A model that encodes in queues: texts that wait together, pictures one after another.

    Args:
        model: The model.
        limits: Limits of what clients may hold.
        names: Names under which the model answers; other names are refused. Empty answers under any name.
        say: Called with a line where somebody asks for a model of another name and is answered.
        observe: Called with the number of requests whose texts are encoded together.

    Attributes:
        model: The model.
        limits: Limits of what clients may hold.
        id: Name of the model in answers: the first of ``names``, else one of its fingerprint.
        queues: Queues for the work.
    """

    def __init__(
        self,
        model: DualEncoder,
        limits: ModelLimits,
        *,
        names: Sequence[str] = (),
        say: Callable[[str], object] = lambda _: None,
        observe: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model
        self.limits = limits
        self.id = names[0] if names else f"rungwise-{model.fingerprint[:12]}"
        self.queues = WorkQueues(limits)
        self._names = frozenset(names)
        self._say, self._said = say, {self.id, *names}
        self._texts: Batches[tuple[str, ...], Vectors] = Batches(
            self.queues.encoding,
            partial(encoded_together, model),
            most=limits.queries_together,
            size=lambda texts: sum(map(len, texts)),
            room=limits.characters_together,
            observe=observe,
        )

    @property
    def waiting(self) -> int:
        """Number of requests whose texts wait to be encoded."""
        return self._texts.waiting

    def require_name(self, asked: str) -> None:
        """Take the name of the model that a client asks for, or refuse it with status 404."""
        if self._names and asked not in self._names:
            raise HTTPException(404, f"no model {quoted(asked[:_LONGEST_NAME])} here; ask for {self.id}")
        if asked not in self._said and len(self._said) < _MOST_NAMES and len(asked) <= _LONGEST_NAME:
            self._said.add(asked)
            self._say(f"{quoted(asked)} is asked for; {self.id} answers, with {self.model.dimension} numbers a vector")

    def require_text(self, text: str) -> str:
        """The text, if the model can read it; HTTPException 422 or 413 if it is empty, broken or too long."""
        if not self.model.reads_words:
            raise HTTPException(422, "this model reads rows of features in place of texts; send pictures alone")
        if not text.strip():
            raise HTTPException(422, "the text is empty; send words")
        if len(text) > self.limits.text_characters:
            most = self.limits.text_characters
            raise HTTPException(413, f"the text has {len(text)} characters; send one of at most {most}")
        if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
            raise HTTPException(422, "the text holds halves of characters; send it as UTF-8")
        return text

    async def encode_texts(self, request: Request, texts: Sequence[str]) -> Vectors:
        """(texts, D) vectors of checked texts, encoded together with those of others that wait."""
        found = [np.zeros((0, self.model.dimension), np.float32)]
        for begin in range(0, len(texts), self.limits.queries_together):
            some = tuple(texts[begin : begin + self.limits.queries_together])
            work = self._texts.submit(some, client=client_of(request))
            found.append(await outcome(work, request, self.limits.waiting_seconds))
        return np.concatenate(found)

    async def encode_picture(self, request: Request, body: bytes) -> tuple[Vectors, PictureHeader]:
        """(D,) vector of a picture, and its header; decoded in one queue, encoded in another.

        Raises:
            HTTPException: 413 if it is too large, 422 if there is none, or the model reads none.
            UserError: If it cannot be read.
        """
        if not self.model.reads_pictures:
            raise HTTPException(422, "this model reads rows of features in place of pictures; send texts alone")
        if not body:
            raise HTTPException(422, "the picture is empty; send the bytes of a file")
        if len(body) > self.limits.upload_bytes:
            raise HTTPException(413, f"the picture has {len(body)} bytes; send at most {self.limits.upload_bytes}")
        header, encode = await self.queues.decoded(request, partial(self._decode, body))
        return await self.queues.encoded(request, partial(_only, encode)), header

    def _decode(self, body: bytes) -> tuple[PictureHeader, Callable[[], EncodedImages]]:
        with self.queues.opened(body, self.model.decoded_side) as header:
            return header, self.model.prepare_image(body)


def encoded_together(model: DualEncoder, requests: Sequence[tuple[str, ...]]) -> list[Vectors | Exception]:
    """The vectors of the texts of several requests, in one call of the model; if that fails, one may fail by itself."""
    texts = list(dict.fromkeys(text for one in requests for text in one))
    try:
        rows = dict(zip(texts, model.encode_text(texts), strict=True))
    except Exception as error:
        if len(requests) == 1:
            return [error]
        return [encoded_together(model, [one])[0] for one in requests]
    return [np.stack([rows[text] for text in one]) for one in requests]


def _only(encode: Callable[[], EncodedImages]) -> Vectors:
    encoded = encode()
    if not len(encoded.kept):
        raise UserError(one_line(encoded.issues[0]))
    vector: Vectors = encoded.vectors[0]
    return vector
