import hashlib
import shutil
import subprocess

import pytest

from rungwise.core import UserError
from rungwise.core.disk import SEAL, check_seal, digest_of, has_seal, read_seal, write_seal


@pytest.fixture
def sealed(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "pictures" / "b c.txt").write_text("b")
    (tmp_path / "lock").touch()
    (tmp_path / ".DS_Store").touch()
    write_seal(tmp_path)
    return tmp_path


def test_a_whole_folder_passes(sealed):
    assert has_seal(sealed)
    assert sorted(read_seal(sealed)) == ["a.txt", "pictures/b c.txt"]
    check_seal(sealed)


def test_the_file_is_one_of_the_coreutils(sealed):
    """The digest, two spaces and the name, a file a line; ``sha256sum --check`` reads it."""
    digests = {name: hashlib.sha256((sealed / name).read_bytes()).hexdigest() for name in ("a.txt", "pictures/b c.txt")}
    assert (sealed / SEAL).read_text() == "".join(f"{digest}  {name}\n" for name, digest in digests.items())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_the_coreutils_agree(sealed):
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", SEAL], cwd=sealed, check=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda at: (at / "a.txt").write_text("b"), r"a\.txt: altered or damaged since it was written"),
        (lambda at: (at / "a.txt").unlink(), r"a\.txt: missing; restore it"),
        (lambda at: (at / "c.txt").touch(), r"c\.txt: was put here after the folder was written"),
        (lambda at: (at / SEAL).unlink(), "SHA256SUMS: missing"),
        (lambda at: (at / SEAL).write_text("a.txt\n"), "SHA256SUMS, line 1: damaged"),
        (lambda at: (at / SEAL).write_text("0" * 64 + "  ../a.txt\n"), "SHA256SUMS, line 1: damaged"),
        (lambda at: (at / SEAL).write_text("0" * 64 + "  /a.txt\n"), "SHA256SUMS, line 1: damaged"),
        (lambda at: (at / "link").symlink_to(at.parent, target_is_directory=True), "link: was put here"),
    ],
)
def test_every_change_is_found(sealed, change, message):
    change(sealed)
    with pytest.raises(UserError, match=message):
        check_seal(sealed)


def test_only_the_named_files_are_read_through(sealed):
    (sealed / "pictures" / "b c.txt").write_text("x")
    check_seal(sealed, ["a.txt"])
    with pytest.raises(UserError, match=r"b c\.txt: altered"):
        check_seal(sealed, ["pictures/b c.txt"])


def test_digest(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    assert digest_of(tmp_path / "a").startswith("ca978112")
