from ._onnx_export import OPSET as OPSET
from ._onnx_export import export_onnx as export_onnx
