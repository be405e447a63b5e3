# SPDX-License-Identifier: Apache-2.0
"""Checkpoints by torch.distributed.checkpoint, which any number of ranks can load.

A checkpoint has the state dict of the whole model, whatever ranks had of it, under "model", and what the optimizer keeps for
each parameter under "optimizer". A plain BsrLinear's entries have the same names and shapes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.tensor import DTensor

from ...errors import ArgumentError
from ..blocks import mask_from_index
from ..modules import BsrLinear
from .exchange import assign, whole
from .layers import _Part

__all__ = ["load", "save"]

Path = str | os.PathLike[str]


def _inner(model: nn.Module) -> nn.Module:
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def _alone() -> bool:
    return not dist.is_initialized()


def _parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, nn.Module, str]]:
    """Each parameter: its name, itself, its module and its name there."""
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            yield (f"{path}.{name}" if path else name), parameter, module, name


def _gathered(tensor: Any, module: nn.Module, name: str) -> Any:
    """That of the whole layer, of a tensor that goes with a parameter element by element."""
    if not isinstance(module, _Part):
        return tensor
    return module.exchange().gathered(whole(tensor)) if name == "values" else module._whole_bias(whole(tensor))


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Writes a checkpoint to a folder. All ranks must call it together; without a process group, one process does alone.

    model: with layers of this package, of torch's tensor parallelism, under FSDP2 or DDP. optimizer: whose state per parameter
    is written too; its settings, such as the learning rate, are not.
    """
    model = _inner(model)
    state: dict[str, Any] = {"model": model.state_dict()}
    if optimizer is not None:
        state["optimizer"] = {
            f"{full}.{key}": _gathered(kept, module, name) if kept.shape == parameter.shape else kept
            for full, parameter, module, name in _parameters(model)
            for key, kept in optimizer.state.get(parameter, {}).items()
        }
    dcp.save(state, checkpoint_id=path, no_dist=_alone())


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Reads a checkpoint into a model of the same layers, on any number of ranks. All ranks must call it together.

    Each BsrLinear takes the checkpoint's pattern; one that FSDP2 has sharded must have as many blocks already. Raises ArgumentError
    where a layer or the optimizer's state is not in the checkpoint.
    """
    model = _inner(model)
    sizes = dcp.FileSystemReader(path).read_metadata().state_dict_metadata
    _load_patterns(path, model, sizes)
    state = model.state_dict()
    _read(path, {"model": state})
    model.load_state_dict(state)
    if optimizer is not None:
        _load_optimizer(path, model, optimizer, sizes)


def _read(path: Path, state: dict[str, Any]) -> None:
    dcp.load(state, checkpoint_id=path, no_dist=_alone())


def _load_patterns(path: Path, model: nn.Module, sizes: dict[str, Any]) -> None:
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, BsrLinear)}
    index: dict[str, torch.Tensor] = {}
    for layer_name, layer in layers.items():
        for part in ("crow", "col"):
            name = f"{layer_name}.{part}" if layer_name else part
            if f"model.{name}" not in sizes:
                raise ArgumentError(f"the checkpoint {os.fspath(path)} has no {name}")
            index[name] = layer.col.new_empty(sizes[f"model.{name}"].size)
    _read(path, {"model": index})
    for layer_name, layer in layers.items():
        crow, col = (index[f"{layer_name}.{part}" if layer_name else part] for part in ("crow", "col"))
        rows, cols = layer.whole_size if isinstance(layer, _Part) else layer.size
        bm, bk = layer.block
        if crow.numel() != -(-rows // bm) + 1:
            raise ArgumentError(f"{layer_name} has {-(-rows // bm)} block rows, and {crow.numel() - 1} in the checkpoint")
        mask = mask_from_index(crow, col, -(-cols // bk))
        mask = layer.part_of(mask) if isinstance(layer, _Part) else mask
        if not torch.equal(mask, layer.mask):
            layer.set_pattern(mask)


def _load_optimizer(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, sizes: dict[str, Any]) -> None:
    on_device = bool(optimizer.defaults.get("capturable") or optimizer.defaults.get("fused"))
    state: dict[str, Any] = {}
    places: list[tuple[str, nn.Parameter, nn.Module, str, bool]] = []
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for full, parameter, module, name in _parameters(model):
        if id(parameter) not in held:
            continue
        like = _gathered(torch.zeros_like(parameter, requires_grad=False), module, name)
        prefix = f"optimizer.{full}."
        keys = [key.removeprefix(prefix) for key in sizes if key.startswith(prefix)]
        if not keys and any(key.startswith("optimizer.") for key in sizes):
            continue  # this one had no gradient yet
        if not keys:
            raise ArgumentError(f"the checkpoint {os.fspath(path)} has no state of an optimizer: leave the optimizer out")
        for key in keys:
            entry = sizes[prefix + key]
            alike = entry.size == like.shape
            device = parameter.device if alike or on_device else torch.device("cpu")
            dtype = entry.properties.dtype
            state[f"{full}.{key}"] = torch.zeros_like(like, dtype=dtype) if alike else torch.zeros(entry.size, dtype=dtype, device=device)
            places.append((f"{full}.{key}", parameter, module, key, alike))
    _read(path, {"optimizer": state})
    for place, parameter, module, key, alike in places:
        read = state[place]
        if alike and isinstance(module, _Part):
            part = module.exchange().dealt(read) if isinstance(read, DTensor) else module._part_of_bias(read)
            read = torch.zeros_like(parameter, dtype=part.dtype, requires_grad=False)
            assign(read, part)
        optimizer.state[parameter][key] = read
