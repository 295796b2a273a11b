from ._options import Calibrate as Calibrate
from ._run import LearntCalibration as LearntCalibration
from ._run import calibrate as calibrate
from ._run import calibrated as calibrated
