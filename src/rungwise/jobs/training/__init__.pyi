from ._fit_model import as_typed as as_typed
from ._options import Running as Running
from ._options import is_data as is_data
from ._seeds import check_seeds as check_seeds
from ._seeds import spread_text as spread_text
from ._train import Run as Run
from ._train import go as go
from ._train import train as train
