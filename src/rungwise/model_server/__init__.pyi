from ._model_app import create_model_app as create_model_app
from ._model_limits import ModelLimits as ModelLimits
from ._served_model import ServedModel as ServedModel
