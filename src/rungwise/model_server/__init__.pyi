from ._application import create_model_app as create_model_app
from ._limits import ModelLimits as ModelLimits
from ._served_model import ServedModel as ServedModel
