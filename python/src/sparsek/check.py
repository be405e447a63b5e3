# SPDX-License-Identifier: Apache-2.0
"""Compares a product with one in float64, element by element, with the bound that sparsek.h gives."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from . import _abi
from ._abi import AttentionOutput, Bias, Memory, Op
from ._arrays import View, contiguous, element, view
from ._index import index_pair, index_type
from ._library import library
from .attention import Attention, AttentionLayout
from .bsr import BSR
from .errors import ArgumentError
from .plan import Plan

__all__ = ["CheckReport", "check", "check_attention"]


@dataclass(frozen=True)
class CheckReport:
    """What a check found."""

    elements: int
    max_abs_c: float
    max_error: float
    max_ratio: float
    """The largest error as a share of its bound: at most 1."""


def check(
    a: BSR,
    b: Any,
    c: Any,
    plan: Plan,
    *,
    before: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> CheckReport:
    """Checks c, (M, N), which the plan computed of a and b, (K, N), with these factors and this bias.

    before: C as it was, where beta is not 0. The plan is of op "dsd". All arrays lie on the host.
    Raises CheckFailed, with the worst element, where one is beyond its bound; ArgumentError, DtypeError and IndexFault.
    """
    if plan.op != Op.DSD:
        raise ArgumentError(f"a product of op={plan.op.name.lower()!r} is not checked: those of 'dsd' are")
    kind, kind_c = plan.dtype, plan.out_dtype
    views: dict[str, View] = {}
    for name, array, expected in [
        ("values", a.values, kind),
        ("b", b, kind),
        ("c", c, kind_c),
        ("before", before, kind_c),
        ("bias", bias, kind_c),
    ]:
        if array is None:
            continue
        found = view(array)
        element(found, expected, name)
        if found.memory != Memory.HOST:
            raise ArgumentError(f"{name} does not lie on the host, where products are checked: copy it there")
        views[name] = contiguous(found)
    views["crow"], views["col"] = index_pair(a.crow, a.col)
    if views["crow"].memory != Memory.HOST:
        raise ArgumentError("crow and col do not lie on the host, where products are checked: copy them there")
    pattern = plan.pattern
    (rows, cols), (bm, bk) = pattern.shape, pattern.block
    if (tuple(a.shape), a.block) != (pattern.shape, pattern.block):
        (m, k), (high, wide) = a.shape, a.block
        raise ArgumentError(f"a is {m}x{k} in blocks of {high}x{wide}, and the plan's pattern {rows}x{cols} in blocks of {bm}x{bk}")
    if views["b"].ndim != 2:
        raise ArgumentError(f"b of shape {views['b'].shape} does not have two dimensions: check each of a batch")
    n = views["b"].shape[1]
    shapes: dict[str, tuple[tuple[int, ...], ...]] = {
        "crow": ((-(-rows // bm) + 1,),),
        "col": ((pattern.nnzb,),),
        "values": ((pattern.nnzb, bm, bk),),
        "b": ((cols, n),),
        "c": ((rows, n),),
        "before": ((rows, n),),
        "bias": ((rows,), (rows, 1)) if plan.bias == Bias.ROW else ((n,), (1, n)),
    }
    if (plan.bias == Bias.NONE) != (bias is None) or (beta == 0) != (before is None):
        raise ArgumentError("bias and before are given where the product had them, and only there")

    for name, found in views.items():
        if found.shape not in shapes[name]:
            raise ArgumentError(f"{name} has the shape {found.shape}, and not {shapes[name][0]}: it does not fit to the product")

    def address(name: str) -> int:
        return views[name].address if name in views else 0

    bsr = _abi.Bsr(
        rows=rows,
        cols=cols,
        block_m=bm,
        block_k=bk,
        nnzb=pattern.nnzb,
        dtype=int(kind),
        index_type=index_type(views["crow"].name, "crow"),
        memory=int(Memory.HOST),
        row_ptr=address("crow"),
        col_idx=address("col"),
        values=address("values"),
    )
    info = plan.info
    args = _abi.CheckArgs(
        a=ctypes.addressof(bsr),
        n=n,
        b=address("b"),
        ldb=n,
        c0=address("before"),
        c=address("c"),
        ldc=n,
        alpha=alpha,
        beta=beta,
        unit_roundoff=info.unit_roundoff,
        product_roundoff=info.product_roundoff,
        dtype_c=int(kind_c),
        bias_kind=int(plan.bias),
        activation=int(plan.activation),
        bias=address("bias"),
    )
    report, lib = _abi.CheckReport(), library()
    lib.require(lib.check(ctypes.byref(args), ctypes.byref(report)))
    return CheckReport(report.elements, report.max_abs_c, report.max_error, report.max_ratio)


_OUTPUTS = {
    "o": AttentionOutput.O,
    "lse": AttentionOutput.LSE,
    "grad_q": AttentionOutput.GRAD_Q,
    "grad_k": AttentionOutput.GRAD_K,
    "grad_v": AttentionOutput.GRAD_V,
    "mass": AttentionOutput.MASS,
}


def check_attention(
    attention: Attention,
    output: str,
    *,
    layout: AttentionLayout | None = None,
    lengths_q: Any = None,
    lengths_k: Any = None,
    **arrays: Any,
) -> CheckReport:
    """Checks an output of attention: "o", "lse", "mass", "grad_q", "grad_k" or "grad_v".

    layout: the one that it was made of. arrays: q, k, v and o, what is checked, and for gradients lse and grad_o, by these
    names, contiguous and on the host. Gradients are checked as functions of the o and the lse that are given, and mass, which also
    needs lse, as one of that.
    Raises CheckFailed, with the worst element, where one is beyond its bound; ArgumentError, DtypeError and IndexFault.
    """
    if output not in _OUTPUTS:
        raise ArgumentError(f"output={output!r} is none of {', '.join(_OUTPUTS)}")
    needed = {"q", "k", "v", "o", output} | ({"lse", "grad_o"} if output.startswith("grad") else {"lse"} if output == "mass" else set())
    if set(arrays) != needed:
        raise ArgumentError(
            f"a check of {output} needs {', '.join(sorted(needed))}, and nothing else: {', '.join(sorted(arrays))} are given"
        )
    args = _abi.AttentionArgs()
    lengths = [attention.lengths(array, name) for name, array in (("lengths_q", lengths_q), ("lengths_k", lengths_k))]
    views = {name: attention.operand(array, name) for name, array in arrays.items()}
    for name, found in {**views, **{name: one for name, one in zip(("lengths_q", "lengths_k"), lengths, strict=True) if one}}.items():
        if found.memory != Memory.HOST or not found.dense:
            raise ArgumentError(f"{name} is not contiguous on the host, where attention is checked: give a copy that is")
        setattr(args, name, found.address)
    kept = None if layout is None else attention.bsr(layout)
    options = attention.options(kept)
    given = _abi.AttentionCheckArgs(
        options=ctypes.addressof(options),
        args=ctypes.addressof(args),
        unit_roundoff=attention.info.unit_roundoff,
        product_roundoff=attention.info.product_roundoff,
        output=int(_OUTPUTS[output]),
    )
    report, lib = _abi.CheckReport(), library()
    lib.require(lib.attention_check(ctypes.byref(given), ctypes.byref(report)))
    return CheckReport(report.elements, report.max_abs_c, report.max_error, report.max_ratio)
