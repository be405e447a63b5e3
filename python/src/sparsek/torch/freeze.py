# SPDX-License-Identifier: Apache-2.0
"""Weights that stay as they are, for inference."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from ._frozen import frozen
from .modules import BsrLinear
from .tensor import BsrTensor

__all__ = ["freeze_", "unfreeze_"]


def _weights(model: nn.Module) -> Iterator[tuple[str, BsrLinear | BsrTensor]]:
    """The block-sparse weights on GPUs, each once, by the names of layers and of parameters."""
    for name, module in model.named_modules():
        if isinstance(module, BsrLinear) and module.values.is_cuda:
            yield name, module
    for name, parameter in model.named_parameters():
        if isinstance(parameter, BsrTensor) and parameter.values.is_cuda:
            yield name, parameter


def freeze_(model: nn.Module) -> list[str]:
    """Has the model's BsrLinears and BsrTensors on GPUs planned for values and patterns that stay as they are, and returns their names.

    Their indexes are read to the host, which is waited for. Plans of them are the host's: rows are matched, long ones are
    split. Kernels that read the values in another layout keep that in memory, up to 512 MiB for a weight, so that products do
    not make it anew. Values get no other type and are not copied; results may differ in how sums are rounded. On the CPU
    there is nothing to keep.

    A weight that torch changes afterwards (an optimizer's step, a state dict, another pattern or device) is multiplied as
    before, and what was kept for it is dropped at one of the next products. Torch does not count a write through `.data`, by
    another package or by a replay of a CUDA graph: freeze again after one. CUDA graphs that were captured since may go on with
    the values that were frozen: capture them again.

    Raises ArgumentError where values or an index were made in inference mode, and UnsupportedError where values are not a
    plain tensor, as those that FSDP2 has sharded.
    """
    names = []
    for name, weight in _weights(model):
        size = (weight.shape[0], weight.shape[1]) if isinstance(weight, BsrTensor) else weight.size
        frozen.freeze(weight.values, weight.crow, weight.col, size)
        names.append(name)
    return names


def unfreeze_(model: nn.Module) -> None:
    """Drops what freeze_ has kept for the model's weights."""
    for _name, weight in _weights(model):
        frozen.thaw(weight.values)
    frozen.drop_gone()
