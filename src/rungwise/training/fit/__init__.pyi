from ._compatibility import check_fits as check_fits
from ._grid import FitResult as FitResult
from ._grid import fit_run as fit_run
