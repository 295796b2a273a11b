"""Files of arrays of unknown origin: NumPy's, MATLAB's and safetensors."""
