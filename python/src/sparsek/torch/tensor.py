# SPDX-License-Identifier: Apache-2.0
"""A block-sparse matrix as a tensor, for the weight of torch's own layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.autograd import Function
from torch.utils import _pytree

from ..errors import ArgumentError, UnsupportedError
from . import functional
from ._plans import keep_for_graphs
from .blocks import Score, block_mask, block_scores, from_blocks, index_from_mask, mask_from_index, moving, to_blocks

__all__ = ["BsrTensor", "from_plain", "to_plain"]

_aten = torch.ops.aten


class BsrTensor(torch.Tensor):
    """A matrix (M, K) of which blocks are stored: values (nnzb, bm, bk), crow and col, as torch's BSR tensors have them.

    `nn.Linear.weight = nn.Parameter(BsrTensor...)` makes a linear layer sparse without another module: F.linear(x, W, bias),
    W @ b and b @ W are sparsek's products, with gradients, which are BsrTensors of the same pattern. Elementwise
    operations, those of optimizers among them, act on the stored values, of operands of one pattern; norms and sums are
    those of the matrix. It is copied, pickled, compiled and moved like any other tensor. What else is asked of it raises
    UnsupportedError: `to_dense()` makes a dense matrix of it.
    """

    values: torch.Tensor
    crow: torch.Tensor
    col: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: tuple[int, int]) -> BsrTensor:
        if values.dim() != 3 or crow.dim() != 1 or col.dim() != 1 or values.shape[0] != col.shape[0] or len(size) != 2:
            given = [tuple(part) for part in (values.shape, crow.shape, col.shape, size)]
            raise ArgumentError(f"values (nnzb, bm, bk), crow, col (nnzb) and a size of two numbers are needed: {given} are not that")
        options: dict[str, Any] = {"dtype": values.dtype, "device": values.device, "requires_grad": False}
        made = torch.Tensor._make_wrapper_subclass(cls, torch.Size(size), **options)
        made.values, made.crow, made.col = values, crow, col
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    @classmethod
    def from_dense(
        cls,
        dense: torch.Tensor,
        block: tuple[int, int],
        *,
        density: float | None = None,
        mask: torch.Tensor | None = None,
        score: Score = "l2",
    ) -> BsrTensor:
        """The blocks of a matrix that `mask` (ceil(M/bm), ceil(K/bk)) says, or the share `density` with the highest scores."""
        if (density is None) == (mask is None):
            raise ArgumentError("give either density or mask")
        dense = dense.detach()
        if mask is None:
            assert density is not None
            mask = block_mask(block_scores(dense, block, score), density)
        crow, col = index_from_mask(mask)
        return cls(to_blocks(dense, block)[mask], crow, col, (dense.shape[0], dense.shape[1]))

    @property
    def block(self) -> tuple[int, int]:
        """(bm, bk)."""
        return self.values.shape[1], self.values.shape[2]

    @property
    def mask(self) -> torch.Tensor:
        """Which blocks are stored: (ceil(M/bm), ceil(K/bk))."""
        return mask_from_index(self.crow, self.col, self.mask_shape[1])

    @property
    def mask_shape(self) -> tuple[int, int]:
        """Blocks down and across."""
        return self.crow.numel() - 1, -(-self.shape[1] // self.block[1])

    def set_pattern(self, mask: torch.Tensor, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Gives it the blocks of `mask`, in place: those that it had keep their values, new ones are zero.

        What the optimizer keeps for each value moves along; the gradient is dropped. See BsrLinear.set_pattern.
        """
        if tuple(mask.shape) != self.mask_shape:
            raise ArgumentError(f"mask has the shape {tuple(mask.shape)}, and not {self.mask_shape}")
        mask = mask.to(self.col.device)
        moved, before = moving(mask, self.crow, self.col), self.values.shape
        state = optimizer.state.get(self, {}) if optimizer is not None else {}
        crow, col = index_from_mask(mask, self.col.dtype)
        keep_for_graphs(self.crow, self.col, self.values)
        with torch.no_grad():
            for kept in (self, *state.values()):
                if isinstance(kept, BsrTensor) and kept.values.shape == before:
                    kept.values, kept.crow, kept.col = moved(kept.values), crow, col
        self.grad = None

    def to_dense(self, *_: Any, **__: Any) -> torch.Tensor:
        """The dense matrix (M, K). Gradients flow through it."""
        return from_blocks(_Values.apply(self), self.crow, self.col, (self.shape[0], self.shape[1]))

    def __repr__(self, **_: Any) -> str:
        (rows, cols), (bm, bk) = self.shape, self.block
        kind = f"{str(self.dtype).removeprefix('torch.')}, device={str(self.device)!r}, requires_grad={self.requires_grad}"
        return f"BsrTensor({rows}x{cols} in {bm}x{bk}, {self.values.shape[0]} blocks, {kind})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["values", "crow", "col"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], _: Any, size: Any, __: Any) -> BsrTensor:
        return BsrTensor(inner["values"], inner["crow"], inner["col"], size)

    def _with(self, values: torch.Tensor) -> BsrTensor:
        return BsrTensor(values, self.crow, self.col, self.shape)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        product = _PRODUCTS.get(func)
        if product is not None:
            return product(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():  # what comes of it is not made a BsrTensor
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        special = _SPECIAL.get(func)
        if special is not None:
            return special(*args, **kwargs)
        if func in _REDUCTIONS and not kwargs.get("dim", args[2:3] and args[2]):
            return func(args[0].values, *args[1:], **kwargs)
        if func in _ELEMENTWISE:
            return _element_by_element(func, args, kwargs)
        if str(func).startswith(_OF_LISTS):
            return _of_lists(func, args, kwargs)
        raise UnsupportedError(f"BsrTensor has no {func}: to_dense() makes a dense matrix of it")


class _Values(Function):
    """The values of a BsrTensor, as a tensor that gradients flow through."""

    @staticmethod
    def forward(ctx: Any, matrix: BsrTensor) -> torch.Tensor:
        ctx.save_for_backward(matrix.crow, matrix.col)
        ctx.size = tuple(matrix.shape)
        return matrix.values.view_as(matrix.values)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        crow, col = ctx.saved_tensors
        return _FromValues.apply(g, crow, col, ctx.size)


class _FromValues(Function):
    """The BsrTensor of these values."""

    @staticmethod
    def forward(_ctx: Any, values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, size: Any) -> BsrTensor:
        return BsrTensor(values.view_as(values), crow, col, size)

    @staticmethod
    def backward(_ctx: Any, g: BsrTensor) -> Any:
        return _Values.apply(g), None, None, None


def _linear(input: torch.Tensor, weight: Any, bias: torch.Tensor | None = None) -> torch.Tensor:
    if not isinstance(weight, BsrTensor) or isinstance(input, BsrTensor):
        raise UnsupportedError("F.linear takes a BsrTensor as weight alone: to_dense() makes a dense matrix of the others")
    return functional.linear(input, _Values.apply(weight), weight.crow, weight.col, tuple(weight.shape), bias)


def _matmul(left: Any, right: Any) -> torch.Tensor:
    if isinstance(left, BsrTensor) and isinstance(right, BsrTensor):
        raise UnsupportedError("the product of two BsrTensors is not served: to_dense() makes a dense matrix of one")
    if isinstance(right, BsrTensor):
        return functional.linear(left, _Values.apply(right), right.crow, right.col, tuple(right.shape), transpose=True)
    columns = right.unsqueeze(-1) if right.dim() == 1 else right
    product = functional.mm(_Values.apply(left), left.crow, left.col, tuple(left.shape), columns)
    return product.squeeze(-1) if right.dim() == 1 else product


_PRODUCTS: dict[Any, Callable[..., torch.Tensor]] = {
    torch.nn.functional.linear: _linear,
    torch.matmul: _matmul,
    torch.mm: _matmul,
    torch.Tensor.matmul: _matmul,
    torch.Tensor.mm: _matmul,
    torch.Tensor.__matmul__: _matmul,
    torch.Tensor.__rmatmul__: lambda right, left: _matmul(left, right),
}


def _inner(args: Any) -> Any:
    return _pytree.tree_map_only(BsrTensor, lambda matrix: matrix.values, args)


def _element_by_element(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation on the values of operands that have one pattern, and on numbers."""
    leaves = _pytree.tree_leaves((args, kwargs))
    first, *others = [leaf for leaf in leaves if isinstance(leaf, BsrTensor)]
    for other in others:
        _require_pattern(first, other)
    if any(isinstance(leaf, torch.Tensor) and not isinstance(leaf, BsrTensor) and leaf.dim() for leaf in leaves):
        raise UnsupportedError(f"{func} of a BsrTensor and a dense tensor: to_dense() makes a dense matrix of it")
    result = func(*_inner(args), **_inner(kwargs))
    return args[0] if func._schema.is_mutable else first._with(result)


def _of_lists(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation of optimizers on lists of tensors, of which some are BsrTensors: the same places of lists have one pattern."""
    result = func(*_inner(args), **_inner(kwargs))
    if not isinstance(result, (list, tuple)) or (result and isinstance(result[0], (list, tuple))):
        return result
    made = zip(args[0], result, strict=True)
    return [given._with(values) if isinstance(given, BsrTensor) and values.dim() == 3 else values for given, values in made]


def _require_pattern(first: BsrTensor, other: BsrTensor) -> None:
    same = first.crow is other.crow and first.col is other.col
    if same or (first.shape == other.shape and first.values.shape == other.values.shape and _same_storage(first, other)):
        return
    raise ArgumentError("BsrTensors of different patterns do not go together element by element: set_pattern gives them one")


def _same_storage(first: BsrTensor, other: BsrTensor) -> bool:
    """Whether the patterns are equal; compares elements only where they do not lie in one memory."""
    for left, right in ((first.crow, other.crow), (first.col, other.col)):
        if left.shape != right.shape:
            return False
        if type(left) is torch.Tensor and left.data_ptr() != right.data_ptr() and not torch.equal(left, right):
            return False
    return True


def _detach(matrix: BsrTensor) -> BsrTensor:
    return matrix._with(matrix.values.detach())


def _clone(matrix: BsrTensor, **_: Any) -> BsrTensor:
    return BsrTensor(matrix.values.clone(), matrix.crow.clone(), matrix.col.clone(), matrix.shape)


def _to_copy(matrix: BsrTensor, *, dtype: Any = None, device: Any = None, non_blocking: bool = False, **_: Any) -> BsrTensor:
    index = [part.to(device=device, non_blocking=non_blocking) for part in (matrix.crow, matrix.col)]
    values = matrix.values.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True)
    return BsrTensor(values, index[0], index[1], matrix.shape)


def _copy(matrix: BsrTensor, other: Any, non_blocking: bool = False) -> BsrTensor:
    """In place. Another pattern is taken over; of a dense matrix the blocks are taken that there are."""
    if not isinstance(other, BsrTensor):
        matrix.values.copy_(to_blocks(other, matrix.block)[matrix.mask], non_blocking)
    elif other.values.shape == matrix.values.shape and _same_storage(matrix, other):
        matrix.values.copy_(other.values, non_blocking)
    else:
        keep_for_graphs(matrix.crow, matrix.col, matrix.values)
        place, kind = matrix.values.device, matrix.values.dtype
        matrix.values = other.values.to(place, kind, copy=True)
        matrix.crow, matrix.col = other.crow.to(place, copy=True), other.col.to(place, copy=True)
    return matrix


def _like(make: Callable[..., torch.Tensor]) -> Callable[..., BsrTensor]:
    def made(matrix: BsrTensor, *args: Any, memory_format: Any = None, layout: Any = None, pin_memory: Any = None, **kwargs: Any) -> Any:
        values = make(matrix.values, *args, **kwargs)
        index = [part.to(values.device) for part in (matrix.crow, matrix.col)]
        return BsrTensor(values, index[0], index[1], matrix.shape)

    return made


_SPECIAL: dict[Any, Callable[..., Any]] = {
    _aten.detach.default: _detach,
    _aten.alias.default: _detach,
    _aten.clone.default: _clone,
    _aten._to_copy.default: _to_copy,
    _aten.copy_.default: _copy,
    _aten.zeros_like.default: _like(torch.zeros_like),
    _aten.ones_like.default: _like(torch.ones_like),
    _aten.empty_like.default: _like(torch.empty_like),
    _aten.full_like.default: _like(torch.full_like),
    _aten.rand_like.default: _like(torch.rand_like),
    _aten.randn_like.default: _like(torch.randn_like),
    _aten.is_pinned.default: lambda matrix, *_: matrix.values.is_pinned(),
}

_REDUCTIONS = {
    _aten.linalg_vector_norm.default,
    _aten.norm.Scalar,
    _aten.norm.ScalarOpt_dtype,
    _aten.sum.default,
}
_OF_LISTS = ("aten._foreach_", "aten._fused_", "aten._amp_foreach_")


def _overloads(*names: str) -> set[Any]:
    found: set[Any] = set()
    for name in names:
        for each in (name, name + "_"):
            packet = getattr(_aten, each, None)
            if packet is not None:
                found.update(getattr(packet, overload) for overload in packet.overloads() if "out" not in overload)
    return found


_ELEMENTWISE = _overloads(
    "add", "sub", "mul", "div", "lerp", "addcmul", "addcdiv", "sqrt", "rsqrt", "reciprocal", "neg", "abs", "sign", "square", "pow"
) | _overloads("maximum", "minimum", "clamp", "clamp_min", "zero")

torch.serialization.add_safe_globals([BsrTensor])


def to_plain(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """A state dict without BsrTensors, as safetensors stores it: `name` becomes name.values, .crow, .col and .size."""
    plain: dict[str, torch.Tensor] = {}
    for name, tensor in state.items():
        if isinstance(tensor, BsrTensor):
            parts = {"values": tensor.values, "crow": tensor.crow, "col": tensor.col, "size": torch.tensor(tensor.shape)}
            plain.update({f"{name}.{part}": given.detach() for part, given in parts.items()})
        else:
            plain[name] = tensor
    return plain


def from_plain(plain: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The state dict that to_plain was given, with BsrTensors again, for load_state_dict."""
    state: dict[str, torch.Tensor] = {}
    for name, tensor in plain.items():
        whole, _, part = name.rpartition(".")
        if all(f"{whole}.{each}" in plain for each in ("values", "crow", "col", "size")) and part in ("values", "crow", "col", "size"):
            if part == "values":
                rows, cols = plain[f"{whole}.size"].tolist()
                state[whole] = BsrTensor(tensor, plain[f"{whole}.crow"], plain[f"{whole}.col"], (rows, cols))
        else:
            state[name] = tensor
    return state
