from ._build import MakeIndex as MakeIndex
from ._build import beside as beside
from ._build import build_index as build_index
from ._build import make_index as make_index
