"""Files of arrays that somebody else may have made: NumPy's, MATLAB's and safetensors'."""
