from ._build import beside as beside
from ._build import build_index as build_index
from ._build import make_index as make_index
from ._options import MakeIndex as MakeIndex
