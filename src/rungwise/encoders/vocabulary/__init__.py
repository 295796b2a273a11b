"""Words and tokens: which a text side knows, and cutting texts into them."""
