from ._encoders import MtebEncoder as MtebEncoder
from ._encoders import MtebSearch as MtebSearch
from ._encoders import evaluate as evaluate
from ._mteb_models import MtebModel as MtebModel
from ._mteb_models import load_mteb as load_mteb
from ._mteb_task import DegreeTask as DegreeTask
