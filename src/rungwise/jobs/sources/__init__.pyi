from ._save_options import SaveOptions as SaveOptions
from ._source_degrees import MadeDegrees as MadeDegrees
from ._source_degrees import degrees as degrees
from ._source_degrees import made_degrees as made_degrees
