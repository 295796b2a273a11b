"""The ground floor: errors, files, configuration, exact top-k, threads; no idea of images or captions."""
