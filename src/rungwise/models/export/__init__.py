"""Models without torch: ONNX graphs, written, checked and run."""
