from ._model_source import ModelSource as ModelSource
from ._sides import PretrainedImageConfig as PretrainedImageConfig
from ._sides import PretrainedTextConfig as PretrainedTextConfig
from ._sides import PretrainedTextSide as PretrainedTextSide
