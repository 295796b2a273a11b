"""Sources made of sources: sums, maxima, cascades, and what people's grades fit."""
