from ._graders import cohen_kappa as cohen_kappa
from ._graders import krippendorff_alpha as krippendorff_alpha
from ._protocols import Agreed as Agreed
from ._protocols import agree as agree
