from ._compare import Compare as Compare
from ._compare import compare as compare
from ._compare import compared_results as compared_results
