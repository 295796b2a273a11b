"""Upload of saved models to a model hub: the sealed files of the folder, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rungwise.core import UserError, is_regular
from rungwise.core.disk import SEAL, check_seal, digest_of, read_seal, write_seal
from rungwise.core.output import printable
from rungwise.models.io._folder import CARD, CONFIG

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_OURS = ("*.json", "*.txt", "*.safetensors", "*.onnx", SEAL)
"""Files of an earlier upload that are removed from the repository if the folder no longer has them."""


def push_to_hub(
    folder: Path | str,
    repository: str,
    *,
    private: bool = False,
    token: str | None = None,
    message: str = "Model saved with rungwise",
) -> str:
    """Upload a saved model to a repository of the Hugging Face hub, which is made if missing.

    Args:
        folder: Folder of the model, complete and unchanged except its card, which becomes the repository's page.
        repository: Name of the repository, such as ``"someone/model"``; without an owner, the account's own.
        private: Whether a new repository is private. An existing one keeps its setting.
        token: Token of an account that may write there; None takes that of the environment (``HF_TOKEN``) or of ``hf
            auth login``.
        message: Message of the commit.

    Returns:
        Address of the uploaded model.

    Raises:
        UserError: If the folder is no saved model or was altered, the name is invalid, there is no token, or the hub
            cannot be reached or refuses.
    """
    place = Path(folder)
    if place.is_dir() and not os.access(place, os.R_OK | os.X_OK):
        raise UserError(f"{folder}: may not be read; change its permissions")
    if not is_regular(place / CONFIG):
        raise UserError(f"{folder}: no model here (config.json is missing); give the folder of a saved model")
    if not _NAME.fullmatch(repository):
        raise UserError(f"{printable(repository)[:80]!r} is no name of a repository; write OWNER/NAME")
    sealed = read_seal(place)
    check_seal(place, sealed.keys() - {CARD})  # everybody may write a card of one's own
    with _with_seal_of_card(place, sealed) as whole:
        return _upload(whole, [*sealed, SEAL], repository, private, token, message, folder)


@contextmanager
def _with_seal_of_card(place: Path, sealed: Mapping[str, str]) -> Iterator[Path]:
    """The folder itself, or a copy with a new seal where the card was changed."""
    if CARD not in sealed or sealed[CARD] == digest_of(place / CARD):
        yield place
        return
    with TemporaryDirectory() as temporary:
        copy = Path(temporary)
        for name in sealed:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(place / name, copy / name)
        write_seal(copy)
        yield copy


def _upload(
    place: Path, names: Iterable[str], repository: str, private: bool, token: str | None, message: str, said: Path | str
) -> str:
    from huggingface_hub import HfApi  # slow to load, and only this needs it

    hub = HfApi(token=token, library_name="rungwise")
    try:
        made = hub.create_repo(repository, private=private, exist_ok=True)
        done = hub.upload_folder(
            repo_id=made.repo_id,
            folder_path=place,
            allow_patterns=[_exactly(name) for name in names],
            delete_patterns=list(_OURS),
            commit_message=message,
        )
    except Exception as error:  # of the hub, of the network and of whichever library speaks to it
        raise UserError(f"{said}: could not be uploaded to {repository} ({_why(error)})") from error
    return str(done.commit_url)


def _exactly(name: str) -> str:
    """A glob pattern that only this name matches."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _why(error: Exception) -> str:
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    status = error.response.status_code if isinstance(error, HfHubHTTPError) and error.response is not None else None
    if isinstance(error, LocalTokenNotFoundError) or status == 401:
        return "no token that it takes; log in with: hf auth login, or set HF_TOKEN"
    if status == 403:
        return "the account may not write there; name a repository of your own, or take a token with write access"
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{printable(line)[:200]}; without a network: copy the folder to a connected machine and push from there"
