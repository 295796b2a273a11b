from ._spice import Spice as Spice
