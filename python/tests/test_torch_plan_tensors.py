# SPDX-License-Identifier: Apache-2.0
"""Plans as tensors: products by them, their gradients, graphs, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Matrix, Place, draw, on_device  # noqa: E402, F401

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning:torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")]


def close(got: Any, exact: Any) -> None:
    torch.testing.assert_close(got, exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_products(transpose: bool, index: Any) -> None:
    a = Matrix(1, (24, 40), (8, 16), index=index)
    op = a.dense().t() if transpose else a.dense()
    where = (a.crow, a.col, a.size)
    for outer in ((), (3,), (2, 2)):
        for n in (1, 4, 7):
            made = st.plan("mm", *where, a.block, n, dtype=torch.float64, transpose=transpose)
            b = draw(2, *outer, op.shape[1], n)
            close(st.mm(a.values, *where, b, transpose=transpose, plan=made), op @ b)
            close(st.mm(a.values, *where, b.mT.contiguous().mT, transpose=transpose, plan=made), op @ b)
            x, bias = draw(3, *outer, n, op.shape[1]), draw(4, op.shape[0])
            made = st.plan("linear", *where, a.block, x.shape[:-1].numel(), dtype=torch.float64, transpose=transpose)
            for added in (None, bias):
                exact = torch.nn.functional.linear(x, op, added)
                close(st.linear(x, a.values, *where, added, transpose=transpose, plan=made), exact)
                close(
                    st.linear(x, a.values, *where, added, transpose=transpose, plan=made, activation="silu"),
                    torch.nn.functional.silu(exact),
                )


def test_gradients() -> None:
    a = Matrix(2, (24, 40), (8, 8))
    where = (a.crow, a.col, a.size)
    values, x, bias, b = (
        a.values.requires_grad_(),
        draw(1, 5, 40).requires_grad_(),
        draw(2, 24).requires_grad_(),
        draw(3, 40, 3).requires_grad_(),
    )
    linear = st.plan("linear", *where, a.block, 5, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x, v, bias: st.linear(x, v, *where, bias, plan=linear), (x, values, bias))
    mm = st.plan("mm", *where, a.block, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda v, b: st.mm(v, *where, b, plan=mm), (values, b))
    assert torch.autograd.gradgradcheck(lambda v, b: st.mm(v, *where, b, plan=mm), (values, b))


# torch's own check looks at .grad of tensors that it made on its way.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", ["mm_by_plan", "linear_by_plan", "plan"])
def test_operators(name: str) -> None:
    a, x = Matrix(3, (24, 40), (8, 8)), draw(1, 5, 40).requires_grad_()
    values, where = a.values.requires_grad_(), (a.crow, a.col)
    mm = st.plan("mm", *where, a.size, a.block, 5, dtype=torch.float64).memory
    linear = st.plan("linear", *where, a.size, a.block, 5, dtype=torch.float64).memory
    args: dict[str, Any] = {
        "mm_by_plan": (values, *where, list(a.size), x.detach().t(), False, mm),
        "linear_by_plan": (x, values, *where, list(a.size), draw(2, 24), False, linear),
        "plan": (*where, "mm", list(a.size), list(a.block), 5, torch.float64, False),
    }
    # What a plan's memory has between its parts differs from call to call.
    tests = {"test_utils": ("test_schema", "test_faketensor")} if name == "plan" else {}
    torch.library.opcheck(getattr(torch.ops.sparsek, name), args[name], **tests)


def test_compiled() -> None:
    a, b = Matrix(4, (24, 40), (8, 8)), draw(1, 40, 5)

    def function(crow: Any, col: Any, values: Any, b: Any) -> Any:
        made = st.plan("mm", crow, col, a.size, a.block, b.shape[1], dtype=values.dtype)
        return st.mm(values, crow, col, a.size, b, plan=made)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    close(compiled(a.crow, a.col, a.values, b), a.dense() @ b)
    made = st.plan("mm", a.crow, a.col, a.size, a.block, 5, dtype=torch.float64)
    given = torch.compile(lambda made, v, b: st.mm(v, a.crow, a.col, a.size, b, plan=made), backend="aot_eager", fullgraph=True)
    close(given(made, a.values, b), a.dense() @ b)


def test_fewer_blocks() -> None:
    """col may be longer than the index has blocks."""
    a, b = Matrix(5, (24, 40), (8, 8)), draw(1, 40, 5)
    more = torch.cat([a.col, a.col.new_full((3,), 1 << 20)])
    values = torch.cat([a.values, draw(2, 3, 8, 8)])
    made = st.plan("mm", a.crow, more, a.size, a.block, 5, dtype=torch.float64)
    close(st.mm(values, a.crow, more, a.size, b, plan=made), a.dense() @ b)


def test_refused() -> None:
    a, b = Matrix(6, (24, 40), (8, 8)), draw(1, 40, 5)
    where = (a.crow, a.col, a.size)
    made = st.plan("mm", *where, a.block, 5, dtype=torch.float64)
    with pytest.raises(sparsek.ArgumentError, match="the plan is of"):
        st.mm(a.values, *where, b[:, :4], plan=made)
    with pytest.raises(sparsek.ArgumentError, match="the plan is of"):
        st.linear(b.t(), a.values, *where, plan=made)
    with pytest.raises(sparsek.ArgumentError, match="bytes"):
        st.mm(a.values, *where, b, plan=made._replace(memory=made.memory[1:]))
    with pytest.raises(sparsek.ArgumentError, match="mm and linear"):
        st.plan("sdd", *where, a.block, 5, dtype=torch.float64)
    with pytest.raises(sparsek.DtypeError):
        st.plan("mm", *where, a.block, 5, dtype=torch.int8)
    with pytest.raises(sparsek.UnsupportedError, match="forward mode"):
        torch.func.jvp(lambda b: st.mm(a.values, *where, b, plan=made), (b,), (b,))
    if Place.device == "cpu":
        wrong = a.crow.clone()
        wrong[1] = -1
        with pytest.raises(sparsek.IndexFault):
            st.mm(a.values, wrong, a.col, a.size, b, plan=st.plan("mm", wrong, a.col, a.size, a.block, 5, dtype=torch.float64))


def test_in_a_cuda_graph() -> None:
    """Replays plan for what the index holds by then, though no product of it was ever seen before the capture."""
    if Place.device != "cuda":
        pytest.skip("skipped: CUDA graphs are of GPUs")
    a = [Matrix(seed, (256, 320), (64, 64), dtype=torch.bfloat16) for seed in (7, 8, 9)]
    room = max(each.col.numel() for each in a)

    def padded(each: Matrix) -> tuple[Any, Any, Any]:
        more = room - each.col.numel()
        return each.crow, torch.nn.functional.pad(each.col, (0, more)), torch.nn.functional.pad(each.values, (0, 0, 0, 0, 0, more))

    crow, col, values = (part.clone() for part in padded(a[0]))
    x = draw(1, 16, 320, dtype=torch.bfloat16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = st.plan("linear", crow, col, a[0].size, (64, 64), 16, dtype=torch.bfloat16)
        y = st.linear(x, values, crow, col, a[0].size, plan=made)
    for each in (a[1], a[2], a[0]):
        for part, new in zip((crow, col, values), padded(each), strict=True):
            part.copy_(new)
        graph.replay()
        torch.testing.assert_close(y.float(), x.float() @ each.dense().float().t(), rtol=2e-2, atol=2e-1)
