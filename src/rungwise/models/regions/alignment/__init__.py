"""SGR and SAF: similarity vectors of a pair, and two ways to read them."""
