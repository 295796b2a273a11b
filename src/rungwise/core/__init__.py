"""The ground floor, which knows nothing of images or captions.

Errors, files and folders that appear as a whole, arrays in files, configuration, the exact top-k, threads and compiled
kernels, devices, and the frame of an HTML page.
"""

from rungwise._exports import explainers, exporting
from rungwise.core._errors import explained

__all__, __getattr__, __dir__ = exporting(__name__, __file__)

if explained not in explainers:
    explainers.append(explained)
