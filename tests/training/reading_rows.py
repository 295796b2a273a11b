"""One of the processes of a run: the command, and beside it a file of which rows of features this process read.

python -m torch.distributed.run ... -m tests.training.reading_rows FOLDER train ...
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.cli import main
from rungwise.data.files import FeatureRows

if __name__ == "__main__":
    read: list[int] = []
    at = FeatureRows.__getitem__

    def noted(rows: FeatureRows, which: Any) -> Any:
        read.extend(np.atleast_1d(rows.positions[which]).tolist())
        return at(rows, which)

    FeatureRows.__getitem__ = noted  # type: ignore[method-assign]
    status = main(sys.argv[2:])
    (Path(sys.argv[1]) / f"{os.environ['RANK']}.json").write_text(json.dumps(read))
    sys.exit(status)
