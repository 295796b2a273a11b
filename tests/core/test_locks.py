import subprocess
import sys

import pytest

from rungwise.core.errors import UserError
from rungwise.core.locks import LOCK, alone, writing_alone

HOLD = """
import sys, time
from pathlib import Path
from rungwise.core.locks import alone
with alone(Path(sys.argv[1]), "a training run"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_has_ended_or_died(tmp_path):
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            pytest.raises(UserError, match=r"run: a training run writes here now; wait"),
            alone(folder, "a training run"),
        ):
            pass
        with pytest.raises(UserError, match="has been writing here for 0 s"), writing_alone(folder, 0.05):
            pass
        process.kill()
        process.wait()
    with alone(folder, "a training run"):
        pass


def test_a_planted_link_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).symlink_to(precious)
    with pytest.raises(UserError, match="another place"), alone(tmp_path / "run", "a training run"):
        pass
    assert precious.read_text() == "years of work"


def test_a_file_in_the_folder_s_place(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(UserError, match="a file stands where a folder is needed"), alone(tmp_path / "run", "a run"):
        pass
