"""Models without torch: ONNX graphs, written, looked through and run."""
