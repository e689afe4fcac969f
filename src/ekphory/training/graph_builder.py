"""Writes an ONNX graph node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekphory.errors import MissingExtra

try:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
except ImportError as error:
    raise MissingExtra("export", "Exporting an embedder") from error

FLOAT = int(TensorProto.FLOAT)
INT32 = int(TensorProto.INT32)
ONNX_OPSET = 20  # the first with Gelu
IR_VERSION = 9  # what ONNX Runtime 1.20 can read
MICROSOFT = "com.microsoft"
TEXT_INPUTS = ("input_ids", "attention_mask")
PAIR_INPUTS = (*TEXT_INPUTS, "token_type_ids")
NO_ATTRIBUTES: Mapping[str, int | float] = {}


class GraphBuilder:
    """Collects nodes and constants, then gives the model."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        domain: str = "",
        attributes: Mapping[str, int | float] = NO_ATTRIBUTES,
    ) -> str:
        """Add a node with one output and return the output's name."""
        return self.nodes(operator, inputs, outputs=1, domain=domain, attributes=attributes)[0]

    def nodes(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        outputs: int,
        domain: str = "",
        attributes: Mapping[str, int | float] = NO_ATTRIBUTES,
    ) -> list[str]:
        """Add a node with several outputs and return their names."""
        number = len(self._nodes)
        name = f"{operator}_{number}"
        names = [f"{name}_{output}" for output in range(outputs)]
        node = helper.make_node(operator, inputs, names, name=name, domain=domain)
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        self._nodes.append(node)
        return names

    def name_output(self, tensor: str, name: str) -> None:
        """Give a tensor the name under which it leaves the graph."""
        self._nodes.append(helper.make_node("Identity", [tensor], [name], name=f"output_{name}"))

    def model(
        self, outputs: Sequence[ValueInfoProto], *, inputs: Sequence[str] = TEXT_INPUTS
    ) -> ModelProto:
        """Finish: a model whose inputs are int64 (batch, tokens)."""
        taken = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in inputs
        ]
        graph = helper.make_graph(self._nodes, "encoder", taken, list(outputs), self._constants)
        opsets = [helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="ekphory"
        )


def float_output(name: str, shape: Sequence[str | int | None] | None) -> ValueInfoProto:
    """Describe a float32 output of a graph; None leaves its shape open."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
