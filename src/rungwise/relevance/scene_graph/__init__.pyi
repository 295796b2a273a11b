from ._spice import FactWeights as FactWeights
from ._spice import Spice as Spice
