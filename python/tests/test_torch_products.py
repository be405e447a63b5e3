# SPDX-License-Identifier: Apache-2.0
"""The products of sparsek.torch: elements, gradients, graphs and transforms."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Matrix, Place, draw, on_device  # noqa: E402, F401

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning:torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")]

CASES = [((32, 48), (8, 16)), ((30, 41), (8, 16)), ((7, 5), (3, 2)), ((16, 24), (16, 8)), ((5, 9), (1, 1))]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 6e-2, torch.float16: 8e-3}


def close(got: Any, exact: Any, scale: float = 10.0) -> None:
    assert got.shape == exact.shape
    error = (got.double() - exact.double()).abs().max() if got.numel() else 0.0
    assert error <= TOLERANCE[got.dtype] * scale, f"off by {error}"


def strided(tensor: Any, how: str) -> Any:
    """The same elements, lying otherwise."""
    if how == "transposed":
        return tensor.mT.contiguous().mT
    if how == "gaps":
        wide = tensor.new_full((*tensor.shape[:-1], tensor.shape[-1] + 3), torch.nan)
        wide[..., : tensor.shape[-1]] = tensor
        return wide[..., : tensor.shape[-1]]
    if how == "every second":
        wide = tensor.new_full((*tensor.shape[:-1], tensor.shape[-1], 2), torch.nan)
        wide[..., 0] = tensor
        return wide[..., 0]
    if how == "reversed batch" and tensor.dim() == 3:
        return tensor.transpose(0, 1).contiguous().transpose(0, 1)
    return tensor


LAYOUTS = ["rows", "transposed", "gaps", "every second", "reversed batch"]


@pytest.mark.parametrize(("size", "block"), CASES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("transpose", [False, True])
def test_elements(size: Any, block: Any, dtype: Any, transpose: bool) -> None:
    a = Matrix(1, size, block, dtype=dtype, index=torch.int64)
    dense = a.dense().double()
    op = dense.t() if transpose else dense
    for how in LAYOUTS:
        for outer in ((), (3,), (2, 2)):
            for n in (1, 6):
                b = draw(2, *outer, op.shape[1], n, dtype=dtype)
                close(st.mm(a.values, a.crow, a.col, size, strided(b, how), transpose=transpose), op @ b.double())
                x = draw(3, *outer, n, op.shape[1], dtype=dtype)
                bias = draw(4, op.shape[0], dtype=dtype)
                exact = x.double() @ op.t() + bias.double()
                close(st.linear(strided(x, how), a.values, a.crow, a.col, size, bias, transpose=transpose), exact)
    for left in LAYOUTS:
        for right in LAYOUTS:
            for n in (1, 7):
                lhs, rhs = draw(5, size[0], n, dtype=dtype), draw(6, n, size[1], dtype=dtype)
                got = st.sdd(strided(lhs, left), strided(rhs, right), a.crow, a.col, size, block)
                close(got, a.blocks(lhs.double() @ rhs.double()))


def test_activations_and_vectors() -> None:
    a = Matrix(2, (24, 40), (8, 8), dtype=torch.float32)
    x, bias = draw(1, 40, dtype=torch.float32), draw(2, 24, dtype=torch.float32)
    pre = a.dense() @ x + bias
    for name in ("relu", "gelu", "silu"):
        exact = getattr(torch.nn.functional, name)(pre)
        close(st.linear(x, a.values, a.crow, a.col, a.size, bias, activation=name), exact)
        leaf = x.clone().requires_grad_()
        y = st.linear(leaf, a.values, a.crow, a.col, a.size, bias, activation=name)
        close(y.detach(), exact)
        y.sum().backward()
        assert leaf.grad is not None
    with pytest.raises(sparsek.ArgumentError, match="tanh"):
        st.linear(x, a.values, a.crow, a.col, a.size, activation="tanh")
    with pytest.raises(RuntimeError, match="activation"):
        torch.ops.sparsek.linear(leaf, a.values, a.crow, a.col, a.size, None, False, "relu")


@pytest.mark.parametrize("empty", ["blocks", "n", "rows", "cols", "batch"])
def test_nothing_to_multiply(empty: str) -> None:
    size = {"rows": (0, 8), "cols": (8, 0)}.get(empty, (16, 8))
    a = Matrix(3, size, (8, 8), density=0.0 if empty == "blocks" else 1.0)
    n, outer = (0 if empty == "n" else 5), ((0,) if empty == "batch" else ())
    values = a.values.requires_grad_()
    b = draw(1, *outer, size[1], n).requires_grad_()
    bias = draw(2, size[0]).requires_grad_()
    close(st.mm(values, a.crow, a.col, size, b).detach(), a.dense() @ b)
    got = st.linear(b.mT, values, a.crow, a.col, size, bias)
    close(got.detach(), b.mT @ a.dense().t() + bias)
    got.sum().backward()
    close(values.grad, a.blocks(torch.ones_like(got).flatten(0, -2).t() @ b.detach().mT.flatten(0, -2)))
    close(
        st.sdd(draw(3, size[0], n), draw(4, n, size[1]), a.crow, a.col, size, (8, 8)), a.blocks(draw(3, size[0], n) @ draw(4, n, size[1]))
    )


def test_absent_blocks_do_not_exist() -> None:
    a = Matrix(4, (24, 32), (8, 8), density=0.4)
    b = torch.full((32, 3), torch.nan, dtype=torch.float64, device=Place.device)
    for column in a.col.unique().tolist()[1:]:
        b[8 * column : 8 * column + 8] = 1.0
    first = int(a.col.unique()[0])
    touched = [int(row) for row in range(3) if first in a.col[a.crow[row] : a.crow[row + 1]].tolist()]
    got = st.mm(a.values, a.crow, a.col, a.size, b)
    for row in range(3):
        assert got[8 * row : 8 * row + 8].isnan().any() == (row in touched)


@pytest.mark.parametrize(("size", "block"), CASES)
@pytest.mark.parametrize("transpose", [False, True])
def test_gradients(size: Any, block: Any, transpose: bool) -> None:
    a = Matrix(5, size, block)
    values = a.blocks(a.dense()).requires_grad_()
    inside = a.blocks(torch.ones(size, dtype=torch.float64, device=Place.device))
    inner, outer = size if transpose else size[::-1]
    b, x = draw(1, inner, 3).requires_grad_(), draw(2, 2, inner).requires_grad_()
    batch, bias = draw(3, 2, inner, 2).requires_grad_(), draw(4, outer).requires_grad_()
    lhs, rhs = draw(5, size[0], 3).requires_grad_(), draw(6, 3, size[1]).requires_grad_()
    checks: list[tuple[Any, Any]] = [
        (lambda v, d: st.mm(v * inside, a.crow, a.col, size, d, transpose=transpose), (values, b)),
        (lambda v, d: st.mm(v * inside, a.crow, a.col, size, d, transpose=transpose), (values, batch)),
        (lambda d, v, e: st.linear(d, v * inside, a.crow, a.col, size, e, transpose=transpose), (x, values, bias)),
        (lambda left, right: st.sdd(left, right, a.crow, a.col, size, block), (lhs, rhs)),
    ]
    for function, inputs in checks:
        assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
        assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_gradients_of_some() -> None:
    a = Matrix(6, (24, 32), (8, 8))
    for who in range(3):
        tensors = [draw(1, 5, 32), a.values.clone(), draw(2, 24)]
        dense = [tensor.clone() for tensor in tensors]
        tensors[who].requires_grad_()
        dense[who].requires_grad_()
        st.linear(tensors[0], tensors[1], a.crow, a.col, a.size, tensors[2]).square().sum().backward()
        torch.nn.functional.linear(dense[0], a.dense(dense[1]), dense[2]).square().sum().backward()
        close(tensors[who].grad, dense[who].grad, 1e3)


# torch's own check looks at .grad of tensors that it made on its way.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", ["mm", "mm of a batch", "linear", "sdd"])
@pytest.mark.parametrize("grad", [False, True])
def test_opcheck(name: str, grad: bool) -> None:
    a = Matrix(7, (24, 32), (8, 8))
    values, b, bias = a.values.requires_grad_(grad), draw(1, 32, 5).requires_grad_(grad), draw(2, 24).requires_grad_(grad)
    index, size = (a.crow, a.col), [24, 32]
    samples: dict[str, Any] = {
        "mm": (values, *index, size, b, False),
        "mm of a batch": (values, *index, size, draw(3, 2, 24, 3).requires_grad_(grad), True),
        "linear": (draw(4, 2, 3, 32).requires_grad_(grad), values, *index, size, bias, False, "none"),
        "sdd": (draw(5, 24, 4).requires_grad_(grad), draw(6, 4, 32), *index, size, [8, 8]),
    }
    torch.library.opcheck(getattr(torch.ops.sparsek, name.split()[0]), samples[name])


def test_vmap_and_other_transforms() -> None:
    a = Matrix(8, (24, 32), (8, 8))
    dense = a.dense()
    index = (a.crow, a.col, a.size)
    batch = draw(1, 4, 32, 5)
    got = torch.func.vmap(lambda b: st.mm(a.values, *index, b))(batch)
    close(got, dense @ batch)
    got = torch.func.vmap(lambda x: st.linear(x, a.values, *index), in_dims=2)(batch)
    close(got, batch.permute(2, 0, 1) @ dense.t())
    many = torch.stack([a.values, 2 * a.values])
    got = torch.func.vmap(lambda v: st.mm(v, *index, batch[0]))(many)
    close(got, torch.stack([dense @ batch[0], 2 * (dense @ batch[0])]))
    lhs, rhs = draw(2, 3, 24, 4), draw(3, 4, 32)
    got = torch.func.vmap(lambda left: st.sdd(left, rhs, *index, (8, 8)))(lhs)
    close(got, torch.stack([a.blocks(left @ rhs) for left in lhs]))

    def loss(values: Any, x: Any) -> Any:
        return st.linear(x, values, *index).square().sum()

    def dense_loss(values: Any, x: Any) -> Any:
        return (x @ a.dense(values).t()).square().sum()

    x = draw(4, 6, 32)
    close(torch.func.grad(loss)(a.values, x), torch.func.grad(dense_loss)(a.values, x), 1e3)
    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(a.values, x)
    exact = torch.stack([torch.func.grad(dense_loss)(a.values, one) for one in x])
    close(per_sample, exact, 1e3)
    tangents = (draw(5, *a.values.shape), draw(6, *x.shape))
    got = torch.func.jvp(loss, (a.values, x), tangents)
    exact = torch.func.jvp(dense_loss, (a.values, x), tangents)
    close(got[1], exact[1], 1e4)
    close(torch.func.hessian(loss, argnums=1)(a.values, x[0]), torch.func.hessian(dense_loss, argnums=1)(a.values, x[0]), 1e3)
    close(
        torch.func.jacrev(lambda v: st.sdd(v, rhs, *index, (8, 8)))(lhs[0]),
        torch.func.jacrev(lambda v: a.blocks(v @ rhs))(lhs[0]),
    )


def test_autocast() -> None:
    a = Matrix(9, (24, 32), (8, 8), dtype=torch.float32)
    x = draw(1, 5, 32, dtype=torch.float32).requires_grad_()
    values = a.values.clone().requires_grad_()
    with torch.autocast(Place.device, dtype=torch.bfloat16):
        y = st.linear(x, values, a.crow, a.col, a.size)
        assert y.dtype == torch.bfloat16
        assert st.mm(values, a.crow, a.col, a.size, x.t()).dtype == torch.bfloat16
        assert st.sdd(y.t(), x, a.crow, a.col, a.size, a.block).dtype == torch.bfloat16
        assert st.mm(a.values.double(), a.crow, a.col, a.size, x.t().double()).dtype == torch.float64
    y.sum().backward()
    assert values.grad.dtype == x.grad.dtype == torch.float32
    close(values.grad.bfloat16(), a.blocks(torch.ones(24, 5, device=Place.device) @ x.detach()))


def test_faults() -> None:
    a = Matrix(10, (24, 32), (8, 8))
    b = draw(1, 32, 5)
    index = (a.crow, a.col)
    for function in (st.mm, torch.compile(st.mm, backend="eager")):
        with pytest.raises(Exception, match="does not have 32 rows"):
            function(a.values, *index, a.size, b[1:])
    with pytest.raises(sparsek.DtypeError, match="float32"):
        st.mm(a.values, *index, a.size, b.float())
    with pytest.raises(sparsek.DtypeError, match="int64"):
        st.mm(a.values.long(), *index, a.size, b.long())
    wrong = a.col + 4

    def twice() -> None:
        st.mm(a.values, a.crow, wrong, a.size, b)
        torch.cuda.synchronize()  # on a GPU, the next product tells
        st.mm(a.values, a.crow, wrong, a.size, b)

    with pytest.raises(sparsek.IndexFault):
        twice()
    with pytest.raises(sparsek.ArgumentError, match="blocks of values"):
        st.mm(a.values[1:], *index, a.size, b)
    with pytest.raises(sparsek.ArgumentError, match="crow has 4 elements"):
        st.mm(a.values, *index, (32, 32), b)
    with pytest.raises(sparsek.ArgumentError, match="does not end with 32"):
        st.linear(b, a.values, *index, a.size)
    with pytest.raises(sparsek.ArgumentError, match="bias"):
        st.linear(b.t(), a.values, *index, a.size, draw(2, 32))
    if Place.device == "cuda":
        with pytest.raises(sparsek.ArgumentError, match="b lies on cpu"):
            st.mm(a.values, *index, a.size, b.cpu())
        with pytest.raises(sparsek.ArgumentError, match="crow lies on cpu"):
            st.mm(a.values, a.crow.cpu(), a.col, a.size, b)
    with pytest.raises(sparsek.ArgumentError, match="with one n"):
        st.sdd(b, b, *index, a.size, a.block)
    assert st.mm(a.values.to("meta"), a.crow.to("meta"), a.col.to("meta"), a.size, b.to("meta")).shape == (24, 5)


def test_operators_without_gradients() -> None:
    """What is not to be computed at once there: tensors without memory, and those of a transform."""
    a, x = Matrix(5, (24, 40), (8, 8)), draw(1, 5, 40)
    ops: Any = torch.ops.sparsek
    index: Any = (a.crow, a.col, a.size)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(ops.linear(x, a.values, *index, None, False, "relu"), (x @ a.dense().t()).relu())
            torch.testing.assert_close(ops.mm(a.values, *index, x.t(), False), a.dense() @ x.t())
            torch.testing.assert_close(ops.sdd(x[:, :24].t(), x, *index, a.block), a.blocks(x[:, :24].t() @ x))
        there = [tensor.to("meta") for tensor in (x, a.values, a.crow, a.col)]
        assert ops.linear(*there, a.size, None, False, "none").shape == (5, 24)
        assert st.linear(there[0], there[1], there[2], there[3], a.size).is_meta
        each = torch.func.vmap(lambda one: ops.linear(one, a.values, *index, None, False, "none"))(x)
        torch.testing.assert_close(each, x @ a.dense().t())

    def scaled(v: Any) -> Any:
        with torch.no_grad():
            y = ops.linear(x, v, *index, None, False, "none")
        return (y * v.sum()).sum()

    torch.testing.assert_close(torch.func.grad(scaled)(a.values), (x @ a.dense().t()).sum().expand_as(a.values))


def test_operators_that_python_calls() -> None:
    """Those that the dispatcher has nothing to do for go past it, and all others do not."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    a = Matrix(17, (24, 16), (8, 8))
    x, g = draw(1, 5, 16), draw(2, 5, 24)
    values = a.blocks(a.dense())  # what lies beyond the size is zero
    dense = a.dense()
    ops = torch.ops.sparsek
    cases: list[tuple[Any, tuple[Any, ...], Any]] = [
        (ops.mm.default, (values, a.crow, a.col, [24, 16], x.t(), False), dense @ x.t()),
        (ops.linear.default, (x, values, a.crow, a.col, [24, 16], None, False, "none"), x @ dense.t()),
        (ops.sdd.default, (g.t(), x, a.crow, a.col, [24, 16], [8, 8]), a.blocks(g.t() @ x)),
    ]
    for op, args, exact in cases:
        for _ in range(3):
            close(op(*args), exact)
        for mode in (Functions, Dispatched):
            seen: list[Any] = []
            with mode():
                close(op(*args), exact)
            assert op in seen
        leaves = [arg.clone().requires_grad_() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args]
        for _ in range(3):
            with torch.no_grad():
                close(op(*leaves), exact)
            assert op(*leaves).grad_fn is not None
        with torch.autograd.forward_ad.dual_level():
            dual = [torch.autograd.forward_ad.make_dual(arg, arg) if arg is args[0] else arg for arg in args]
            close(torch.autograd.forward_ad.unpack_dual(op(*dual)).tangent, exact)
        dim = 0
        batched = torch.func.vmap(lambda first, op=op, args=args: op(first, *args[1:]))(torch.stack([args[0], 2 * args[0]], dim))
        close(batched, torch.stack([exact, 2 * exact]))
        with torch.amp.autocast(Place.device, torch.bfloat16):
            close(op(*args), exact)
        traced = torch.jit.trace(lambda first, op=op, args=args: op(first, *args[1:]), (args[0],), check_trace=False)
        close(traced(2 * args[0]), 2 * exact)
    crow, col = (torch.tensor(given, device=Place.device) for given in ([0, 1, 2, 3], [0, 1, 0]))
    blocks = draw(3, 3, 8, 8)
    for _ in range(3):
        got = ops.linear.default(x, blocks, crow, col, [24, 16], None, False, "none")
        close(got, x @ st.from_blocks(blocks, crow, col, (24, 16)).t())
        col[1] = 1 - col[1]  # seen, though the product is kept
