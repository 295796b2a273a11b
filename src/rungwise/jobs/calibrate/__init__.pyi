from ._options import Calibrate as Calibrate
from ._run import run as run
