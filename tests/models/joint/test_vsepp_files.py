"""Pickles of strangers: what they say is refused before anything of it runs."""

import argparse
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rungwise.core import UserError
from rungwise.models.joint._vsepp_files import read_checkpoint, read_words
from tests.models.vsepp_program import WORDS, Images, Texts, checkpoint, options, save_vocabulary

NUMBERS = {word: number for number, word in enumerate(WORDS)}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_vocabulary_is_read_in_every_protocol_that_makes_objects_so(tmp_path: Path, protocol: int) -> None:
    assert read_words(save_vocabulary(tmp_path / "a.pkl", protocol=protocol)) == NUMBERS


def test_a_vocabulary_of_python_2_is_read(tmp_path: Path) -> None:
    """Where ``<pad>`` is a byte string and the words of captions are text; written by hand."""
    words = b"".join(b"U" + bytes([len(word)]) + word.encode() + b"K" + bytes([n]) for word, n in NUMBERS.items())
    said = b"\x80\x02cvocab\nVocabulary\nq\x00)\x81q\x01}(U\x08word2idx}(" + words + b"u" + b"U\x03idxK\x0aub."
    (tmp_path / "a.pkl").write_bytes(said)
    assert read_words(tmp_path / "a.pkl") == NUMBERS


def test_a_vocabulary_in_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "dog": 4}, "idx": 5}'
    )
    assert read_words(tmp_path / "a.json")["dog"] == 4


class Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def global_of(module: str, name: str, rest: bytes = b"") -> bytes:
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + rest + b"."


def named_on_the_stack(module: str, name: str) -> bytes:
    said = b"".join(b"\x8c" + bytes([len(one)]) + one.encode() for one in (module, name))
    return b"\x80\x04" + said + b"\x93)\x81."


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (pickle.dumps(Runs(os.system, "touch ran"), 2), "a pickle with (posix|nt).system"),
        (pickle.dumps(Runs(os.system, "touch ran"), 4), "a pickle with an instruction REDUCE"),
        (pickle.dumps(Runs(eval, "open('ran', 'w')"), 2), "a pickle with (__builtin__|builtins).eval"),
        (global_of("os", "system", b"(U\x09touch ran\x52"), "a pickle with os.system"),
        (b"(S'touch ran'\nios\nsystem\n.", "a pickle with an instruction INST"),
        (b"(cos\nsystem\nS'touch ran'\no.", "a pickle with os.system"),
        (b"\x80\x02(U\x02os\x85cvocab\nVocabulary\no.", "a pickle with an instruction OBJ"),
        (named_on_the_stack("posix", "system"), "a pickle with posix.system"),
        (named_on_the_stack("vocab", "Vocabulary.__init__"), "a pickle with vocab.Vocabulary.__init__"),
        (named_on_the_stack("vocab", "os"), "a pickle with vocab.os"),
        (global_of("vocab", "Vocabulary", b"(U\x01aU\x01btR"), "a pickle with an instruction REDUCE"),
        (b"\x80\x02U\x02hiQ.", "a pickle with an instruction BINPERSID"),
        (b"\x80\x02\x82\x01.", "a pickle with an instruction EXT1"),
        (b"\x80\x05\x97.", "a pickle with an instruction NEXT_BUFFER"),
        (b"\x80\x02}r\xff\xff\xff\x7f.", "a number out of range"),
        (b"\x80\x02}p4000000000\n.", "a number out of range"),
        (b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b".", "has no word2idx"),
        (b"\x80\x02X\xff\xff\xff\x7fab.", "a damaged pickle"),
        (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"ab.", "a damaged pickle"),
        (b"\x80\x02h\x07.", "a damaged pickle"),
        (b"I" + b"9" * 10_000 + b"\n.", "a damaged pickle"),
        (b"\x80\x02.", "a damaged pickle"),
        (b"\x80\x02b.", "a damaged pickle"),
        (b"", "a damaged pickle"),
        (b"hello", "a damaged pickle|a pickle with"),
        (global_of("vocab", "Vocabulary"), "has no word2idx"),
        (global_of("vocab", "Vocabulary", b")\x81K\x07b"), "a damaged pickle"),
        (global_of("vocab", "Vocabulary", b")\x81}U\x09__class__K\x07sb"), "has no word2idx"),
        (global_of("vocab", "Vocabulary", b")\x81N}U\x09__class__K\x07s\x86b"), "a damaged pickle"),
        (pickle.dumps({"word2idx": NUMBERS}, 2), "has no word2idx"),
        (b'{"word2idx": {"a": "0"}}', "has no word2idx"),
        (b'{"word2idx": {"a": 0, "b": 2}}', "are not numbered 0..1"),
        (b'{"word2idx": {"a": 0, "b": 1}}', "has no word <pad>"),
        (b'{"word2idx": {"<start>": 0, "<pad>": 1, "<end>": 2, "<unk>": 3}}', "<pad> is number 1"),
        (b'{"word2idx": ', "not valid JSON"),
        (b"{" * 100_000, "not valid JSON"),
    ],
)  # fmt: skip
def test_a_vocabulary_that_is_none_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.pkl").write_bytes(said)
    with pytest.raises(UserError, match=line) as refused:
        read_words(Path("a.pkl"))
    assert "\n" not in str(refused.value)
    assert not Path("ran").exists()


def test_a_vocabulary_cut_anywhere_is_one_line(tmp_path: Path) -> None:
    whole = save_vocabulary(tmp_path / "a.pkl").read_bytes()
    for end in range(0, len(whole) - 1, 7):
        (tmp_path / "cut.pkl").write_bytes(whole[:end])
        with pytest.raises(UserError, match="damaged pickle"):
            read_words(tmp_path / "cut.pkl")


def saved() -> dict[str, Any]:
    opt = options()
    return checkpoint(Images(opt), Texts(opt), opt)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_is_read_in_both_formats_of_torch(tmp_path: Path, zipped: bool) -> None:
    torch.save(saved(), tmp_path / "a.pth.tar", _use_new_zipfile_serialization=zipped)
    found = read_checkpoint(tmp_path / "a.pth.tar")
    assert found.options["embed_size"] == 8
    assert found.facts == {"epoch": 7, "best_rsum": 312.5}
    assert set(found.image) == {"fc.weight", "fc.bias"}
    assert found.text["embed.weight"].shape == (10, 6)


class Opened(argparse.Namespace):
    """A kind of Namespace that is not the one."""


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("evil", "line"),
    [
        (lambda: Runs(os.system, "touch ran"), r"holds (posix|nt)\.system; of a VSE\+\+ checkpoint"),
        (lambda: Runs(eval, "open('ran', 'w')"), "holds eval"),
        (lambda: Runs(torch.load, "a.pth.tar"), "holds torch.serialization.load"),
        (lambda: Runs(getattr, "text", "upper"), "holds getattr"),
        (lambda: Opened(), "holds tests.models.joint.test_vsepp_files.Opened"),
        (lambda: Path("a"), "holds pathlib"),
        (lambda: torch.nn.Linear(1, 1), "holds torch.nn.modules.linear.Linear"),
    ],
)
def test_a_checkpoint_with_anything_else_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: Callable[[], Any], line: str, zipped: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    said = saved()
    said["opt"].evil = evil()
    torch.save(said, "a.pth.tar", _use_new_zipfile_serialization=zipped)
    with pytest.raises(UserError, match=line) as refused:
        read_checkpoint(Path("a.pth.tar"))
    assert "\n" not in str(refused.value)
    assert not Path("ran").exists()


def test_what_a_namespace_may_hold_is_not_widened_for_others(tmp_path: Path) -> None:
    torch.save(saved(), tmp_path / "a.pth.tar")
    read_checkpoint(tmp_path / "a.pth.tar")
    with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
        torch.load(tmp_path / "a.pth.tar", weights_only=True)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_cut_anywhere_is_one_line(tmp_path: Path, zipped: bool) -> None:
    torch.save(saved(), tmp_path / "a.pth.tar", _use_new_zipfile_serialization=zipped)
    whole = (tmp_path / "a.pth.tar").read_bytes()
    for end in range(0, len(whole) - 1, len(whole) // 40):
        (tmp_path / "cut.pth.tar").write_bytes(whole[:end])
        with pytest.raises(UserError, match=r"cut.pth.tar: ") as refused:
            read_checkpoint(tmp_path / "cut.pth.tar")
        assert "\n" not in str(refused.value)


def test_an_archive_that_grows_is_refused(tmp_path: Path) -> None:
    torch.save(saved(), tmp_path / "a.pth.tar")
    with zipfile.ZipFile(tmp_path / "a.pth.tar") as sound, zipfile.ZipFile(tmp_path / "b.pth.tar", "w") as packed:
        for part in sound.infolist():
            packed.writestr(part.filename, sound.read(part), zipfile.ZIP_DEFLATED)
    with pytest.raises(UserError, match="an archive whose parts are packed"):
        read_checkpoint(tmp_path / "b.pth.tar")


def test_a_tensor_that_claims_more_than_its_bytes_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(4)}, tmp_path / "a.pth.tar")
    with zipfile.ZipFile(tmp_path / "a.pth.tar") as sound, zipfile.ZipFile(tmp_path / "b.pth.tar", "w") as claiming:
        for part in sound.infolist():
            data = sound.read(part).replace(b"K\x04t", b"M\x00\x04t").replace(b"K\x00K\x04\x85", b"K\x00M\x00\x04\x85")
            claiming.writestr(part.filename, data)
    with pytest.raises(UserError, match=r"b.pth.tar: not a checkpoint that can be read"):
        read_checkpoint(tmp_path / "b.pth.tar")


@pytest.mark.parametrize("said", [[1, 2], {"a": 1}, OrderedDict(opt=3), "text", torch.zeros(2)])
def test_another_file_of_torch_is_one_line(tmp_path: Path, said: object) -> None:
    torch.save(said, tmp_path / "a.pth.tar")
    with pytest.raises(UserError, match=r"not a checkpoint of the VSE\+\+ program"):
        read_checkpoint(tmp_path / "a.pth.tar")
