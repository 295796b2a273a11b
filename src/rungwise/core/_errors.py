"""Errors that are meant for a person rather than for a programmer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

SCHEMES = "s3|gs|gcs|az|abfs|abfss|hdfs|milvus"
"""Schemes of the addresses that may stand where a folder may, as a pattern; hf:/folder names a model."""
_SHORT = re.compile(rf"(?<![A-Za-z0-9_])({SCHEMES}):/(?=[^/\s])")


class UserError(Exception):
    """Bad input. The message is one line: what is wrong, in which file and place, and the remedy.

    The command line prints it without a traceback and exits with status 2; a caller catches it like any exception.

    Args:
        message: One line, in which addresses get back the slash that a path takes from them. A remedy that is a
            parameter of a function is named as Python writes it.
        parameters: Words of the message that name a parameter, and the parameter, which the command line names as its
            option.
    """

    __module__ = "rungwise.core"

    def __init__(self, message: str = "", *, parameters: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(with_slashes(message))
        self.parameters = dict(parameters)


class UnavailableError(UserError):
    """The store of the data does not answer now, such as a database on another machine; later it may.

    Args:
        message: As of every :class:`UserError`.
        refused: Whether nobody takes a connection at its address; otherwise it hangs, is slow, or says that it is busy.
    """

    __module__ = "rungwise.core"

    def __init__(self, message: str = "", *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class RungwiseWarning(UserWarning):
    """A line that the user should read although the work goes on; the command line prints it."""

    __module__ = "rungwise.core"


def with_slashes(text: str) -> str:
    """A line in which every address has both of its slashes.

    >>> with_slashes("milvus:/127.0.0.1/pets: 3 rows"), with_slashes("s3://bucket/pets hf:/folder")
    ('milvus://127.0.0.1/pets: 3 rows', 's3://bucket/pets hf:/folder')
    """
    return _SHORT.sub(r"\1://", text)


def with_options(error: UserError) -> str:
    """The message, with the options of the command line in place of parameters, which the errors among its causes name.

    >>> with_options(UserError("replace it with overwrite=True", parameters={"overwrite=True": "overwrite"}))
    'replace it with --overwrite'
    >>> with_options(UserError("by=nDCG is no measure", parameters={"by=nDCG": "by"}))
    '--by nDCG is no measure'
    """
    message = str(error)
    for one in _with_causes(error):
        text = said = str(one)
        for words, name in one.parameters.items():
            option, value = f"--{name.replace('_', '-')}", words.partition("=")[2]
            said = said.replace(words, f"{option} {value}" if value not in ("", "True") else option, 1)
        message = message.replace(text, said, 1)
    return message


def _with_causes(error: BaseException | None) -> Iterator[UserError]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, UserError):
            yield error
        error = error.__cause__ or error.__context__
