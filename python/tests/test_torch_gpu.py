# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch on a GPU: what is kept for an index there, streams, CUDA graphs, the allocator, layers and compiled models."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

from torch import nn  # noqa: E402
from torch_reference import Matrix, Place, draw  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import _plans  # noqa: E402

SIZE, BLOCK = (64, 96), (8, 16)
pytestmark = [pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    Place.device = "cuda"
    st.cache_clear(captured=True)
    yield
    st.cache_clear(captured=True)
    Place.device = "cpu"


def check(a: Matrix, values: Any = None, crow: Any = None, col: Any = None) -> None:
    """All three products, each twice."""
    values, crow, col = (given if given is not None else own for given, own in ((values, a.values), (crow, a.crow), (col, a.col)))
    b = draw(0, 96, 7)
    for _ in range(2):
        torch.testing.assert_close(st.mm(values, crow, col, a.size, b), a.dense() @ b)
        torch.testing.assert_close(st.linear(b.t(), values, crow, col, a.size), b.t() @ a.dense().t())
        lhs = b[:64]
        torch.testing.assert_close(st.sdd(lhs, b.t(), crow, col, a.size, a.block), a.blocks(lhs @ b.t()))


def test_patterns_are_kept() -> None:
    a = Matrix(1, SIZE, BLOCK)
    check(a)
    assert (st.cache_info().misses, st.cache_info().patterns) == (1, 1)
    with torch.no_grad():
        a.values.mul_(2)  # values are never kept
    check(a)
    sparse = torch.sparse_bsr_tensor(a.crow, a.col, a.values, a.size)
    for _ in range(3):  # its indices are new objects each time
        check(a, crow=sparse.crow_indices(), col=sparse.col_indices())
    assert st.cache_info().misses <= 2
    st.cache_clear()
    assert st.cache_info() == (0, 0, 0, 0)


def test_a_change_in_place_is_seen() -> None:
    a = Matrix(1, SIZE, BLOCK)
    check(a)
    row = int((a.crow[1:] - a.crow[:-1]).argmax())
    start, end = int(a.crow[row]), int(a.crow[row + 1])
    a.col[start] = sorted(set(range(6)) - set(a.col[start:end].tolist()))[0]  # the columns may be out of order now
    check(a)
    assert st.cache_info().misses == 2


def test_a_recycled_address_is_seen() -> None:
    seen: set[int] = set()
    again = 0
    for seed in range(60):
        made = torch.Generator().manual_seed(seed)
        a = Matrix(seed, SIZE, BLOCK)
        # As many blocks each time, so that nothing but the columns differs.
        a.crow = torch.arange(0, 25, 3, dtype=torch.int32, device="cuda")
        a.col = torch.cat([torch.randperm(6, generator=made)[:3].sort().values for _ in range(8)]).int().cuda()
        a.values = torch.randn(24, *BLOCK, generator=made, dtype=torch.float64).cuda()
        again += a.col.data_ptr() in seen
        seen.add(a.col.data_ptr())
        check(a)
        del a
    assert again > 0  # the allocator gave an address twice


def test_an_index_that_is_swapped_for_another() -> None:
    """By .data, which counts no change, at an address that comes again."""
    a, other = Matrix(1, SIZE, BLOCK), Matrix(1, SIZE, BLOCK)
    other.col = torch.cat([torch.arange(int(n)) for n in a.crow[1:] - a.crow[:-1]]).int().cuda()
    col = a.col.clone()
    check(a, col=col)
    address = col.data_ptr()
    col.data = torch.empty_like(col)
    for _ in range(8):  # until it lies there again
        kept = other.col.clone()
        if kept.data_ptr() == address:
            break
    col.data = kept
    a.col = other.col
    check(a, col=col)


def test_an_index_of_inference_mode_is_refused() -> None:
    with torch.inference_mode():
        a = Matrix(1, SIZE, BLOCK)
        with pytest.raises(sparsek.ArgumentError, match="inference mode"):
            check(a)
    a = Matrix(1, SIZE, BLOCK)
    with torch.inference_mode():
        check(a)


def test_strides_and_types_of_an_index() -> None:
    a = Matrix(2, SIZE, BLOCK)
    for dtype in (torch.int16, torch.int32, torch.int64):
        check(a, crow=a.crow.to(dtype), col=a.col.to(dtype))
        pairs = torch.stack([torch.full_like(a.col, 77), a.col], 1).to(dtype)
        check(a, crow=a.crow.to(torch.int32), col=pairs[:, 1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(
    ("size", "block"), [((512, 768), (64, 64)), ((256, 512), (128, 128)), ((512, 512), (32, 32)), ((200, 300), (16, 16))]
)
def test_larger_blocks(dtype: Any, size: Any, block: Any) -> None:
    """Against products of float64, through every operation, with addresses that are not multiples of 16 bytes."""
    a = Matrix(3, size, block, density=0.4, dtype=dtype)
    whole = a.dense(a.values.double())
    scale = 2e-2 if dtype != torch.float32 else 1e-4
    for n in (1, 24, 100, 257):
        x, y = draw(1, n, size[1], dtype=dtype), draw(2, n, size[0], dtype=dtype)
        bias = draw(3, size[0], dtype=dtype)
        shifted = torch.empty(n * size[1] + 1, dtype=dtype, device="cuda")[1:].view(n, size[1]).copy_(x)
        for operand in (x, x.t().contiguous().t(), shifted):
            close(
                st.linear(operand, a.values, a.crow, a.col, size, bias, activation="gelu"),
                gelu(x.double() @ whole.t() + bias.double()),
                scale,
            )
            close(st.mm(a.values, a.crow, a.col, size, operand.t()), whole @ x.double().t(), scale)
        close(st.linear(y, a.values, a.crow, a.col, size, transpose=True), y.double() @ whole, scale)
        close(st.mm(a.values, a.crow, a.col, size, y.t(), transpose=True), whole.t() @ y.double().t(), scale)
        close(st.sdd(y.t(), x, a.crow, a.col, size, block), a.blocks(y.double().t() @ x.double()), scale)


def gelu(x: Any) -> Any:
    return nn.functional.gelu(x)


def close(got: Any, exact: Any, scale: float) -> None:
    assert got.shape == exact.shape
    error = (got.double() - exact).abs().max().item()
    assert error <= scale * max(1.0, exact.abs().max().item()), error


def test_many_token_counts_have_few_plans() -> None:
    a = Matrix(4, (256, 256), (64, 64), dtype=torch.bfloat16)
    for n in range(1024, 1536, 8):
        x = draw(n, n, 256, dtype=torch.bfloat16)
        close(st.linear(x, a.values, a.crow, a.col, a.size), x.double() @ a.dense().double().t(), 2e-2)
    (entry,) = _plans.device_patterns._entries.values()
    assert len(entry.plans._made) <= 5


def test_side_streams() -> None:
    """An index, values and operands that are made in a stream just before, behind work that takes long."""
    a = Matrix(5, (512, 512), (64, 64), dtype=torch.float32)
    exact = a.dense() @ a.dense().t()
    big = torch.randn(4096, 4096, device="cuda")
    for _ in range(4):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                big = (big @ big).clamp(-1, 1)
            crow, col, values = a.crow.clone(), a.col.clone(), a.values.clone()
            got = st.mm(values, crow, col, a.size, a.dense(values).t())
        del crow, col, values  # their memory is given out again in the order of the stream
        with torch.cuda.stream(stream):
            for _ in range(3):
                torch.full((a.values.numel(),), 3.0, device="cuda")
        torch.cuda.current_stream().wait_stream(stream)
        torch.testing.assert_close(got, exact, rtol=1e-3, atol=1e-3)


def test_one_pattern_in_two_streams() -> None:
    a = Matrix(6, (512, 512), (32, 32), dtype=torch.bfloat16)
    xs = [draw(seed, 1000, 512, dtype=torch.bfloat16) for seed in range(6)]
    exact = [x.double() @ a.dense().double().t() for x in xs]
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    got = []
    for turn in range(30):
        with torch.cuda.stream(streams[turn % 3]):
            got.append(st.linear(xs[turn % 6], a.values, a.crow, a.col, a.size))
    torch.cuda.synchronize()
    for turn, y in enumerate(got):
        close(y, exact[turn % 6], 2e-2)


def test_threads() -> None:
    matrices = [Matrix(seed, SIZE, BLOCK) for seed in range(6)]
    b = draw(0, 96, 7)
    exact = [a.dense() @ b for a in matrices]
    torch.cuda.synchronize()

    def work(start: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(60):
                at = (start * 3 + turn) % 6
                a = matrices[at]
                torch.testing.assert_close(st.mm(a.values, a.crow, a.col, a.size, b), exact[at])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_a_graph_keeps_its_plans() -> None:
    a = Matrix(7, (512, 512), (64, 64), dtype=torch.bfloat16)
    x = draw(1, 256, 512, dtype=torch.bfloat16)
    y = draw(2, 256, 512, dtype=torch.bfloat16)
    index: Any = [a.crow.clone(), a.col.clone()]

    def step() -> Any:
        crow, col = index
        h = st.linear(x, a.values, crow, col, a.size, activation="relu")
        return st.linear(h, a.values, crow, col, a.size, transpose=True), st.sdd(y.t(), x, crow, col, a.size, a.block)

    step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = step()
    index.clear()  # nothing of the pattern is left but what the graph uses
    for seed in range(80):
        check(Matrix(seed, SIZE, BLOCK))
    st.cache_clear()
    gc.collect()
    torch.cuda.empty_cache()
    for seed in (3, 4):
        x.copy_(draw(seed, 256, 512, dtype=torch.bfloat16))
        a.values.mul_(0.5)
        graph.replay()
        whole = a.dense().double()
        h = (x.double() @ whole.t()).relu()
        close(outputs[0], h @ whole, 2e-2)
        close(outputs[1], a.blocks(y.double().t() @ x.double()), 2e-2)
    assert st.cache_info().patterns == 1
    del graph
    st.cache_clear(captured=True)
    assert st.cache_info().patterns == 0


@pytest.mark.parametrize("kind", ["layer", "tensor"])
def test_a_weight_that_is_pruned_while_a_graph_uses_it(kind: str) -> None:
    """The graph goes on with the matrix that it was captured with, whose memory is not given away."""
    torch.manual_seed(2)
    dense = nn.Linear(512, 512, device="cuda", dtype=torch.bfloat16)
    if kind == "layer":
        layer: Any = st.BsrLinear.from_dense(dense, (64, 64), density=0.5)
    else:
        layer = dense
        layer.weight = nn.Parameter(st.BsrTensor.from_dense(dense.weight, (64, 64), density=0.5))

    def weight() -> Any:
        return (layer.weight if kind == "layer" else layer.weight.to_dense()).detach().double()

    x = draw(1, 96, 512, dtype=torch.bfloat16)
    with torch.no_grad():
        layer(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(x)
        before, bias = weight(), layer.bias.detach().double()
        st.prune_(layer if kind == "layer" else layer.weight, 0.25)
        gc.collect()
        taken = [torch.full((32, 64, 64), 7.0, device="cuda", dtype=torch.bfloat16) for _ in range(64)]
        for seed in (2, 3):
            x.copy_(draw(seed, 96, 512, dtype=torch.bfloat16))
            graph.replay()
            close(y, x.double() @ before.t() + bias, 2e-2)
            close(layer(x), x.double() @ weight().t() + bias, 2e-2)
    assert not torch.equal(before, weight())
    del graph, taken
    torch.cuda.synchronize()
    used = torch.cuda.memory_allocated()
    st.cache_clear(captured=True)
    assert torch.cuda.memory_allocated() <= used - 32 * 64 * 64 * 2  # with the graph, its values go


def test_a_capture_with_an_unknown_index() -> None:
    a = Matrix(8, SIZE, BLOCK)
    b = draw(0, 96, 7)
    torch.cuda.synchronize()
    with pytest.raises(sparsek.ArgumentError, match="before the capture"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        st.mm(a.values, a.crow, a.col, a.size, b)
    check(a)


def test_a_new_size_in_a_capture() -> None:
    """The pattern is known, the plan is not."""
    a = Matrix(9, (512, 512), (64, 64), dtype=torch.bfloat16)
    st.linear(draw(1, 64, 512, dtype=torch.bfloat16), a.values, a.crow, a.col, a.size)
    x = draw(2, 300, 512, dtype=torch.bfloat16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = st.linear(x, a.values, a.crow, a.col, a.size)
    graph.replay()
    close(y, x.double() @ a.dense().double().t(), 2e-2)


def test_a_thousand_patterns() -> None:
    """Used and dropped: memory does not grow, neither torch's nor the device's."""
    x = draw(1, 64, 1024, dtype=torch.bfloat16)
    values = draw(2, 64, 64, 64, dtype=torch.bfloat16)

    def some(count: int) -> None:
        for _ in range(count):
            col = torch.randperm(256, device="cuda")[:64].sort().values
            crow = torch.searchsorted(col, torch.arange(0, 257, 16, device="cuda"))
            col %= 16
            st.linear(x, values, crow, col, (1024, 1024))
            st.linear(x, values, crow, col, (1024, 1024), transpose=True)

    some(200)
    torch.cuda.synchronize()
    gc.collect()
    used, taken = torch.cuda.memory_allocated(), []
    for _ in range(3):
        free = torch.cuda.mem_get_info()[0]
        some(1000)
        torch.cuda.synchronize()
        taken.append(free - torch.cuda.mem_get_info()[0])
        if taken[-1] <= 16 << 20:
            break
    assert torch.cuda.memory_allocated() <= used + (1 << 20)
    # Other processes take memory of the same device now and then; what grows here grows each time.
    assert min(taken) <= 16 << 20, taken
    assert st.cache_info().patterns < 100


def test_making_and_dropping_patterns_waits_for_nothing() -> None:
    a = Matrix(10, (512, 512), (64, 64), dtype=torch.bfloat16)
    x = draw(1, 64, 512, dtype=torch.bfloat16)
    for _ in range(3):
        st.linear(x, a.values, a.crow.clone(), a.col.clone(), a.size)
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)  # about a second
    busy = torch.cuda.Event()
    busy.record()
    for _ in range(20):
        st.linear(x, a.values, a.crow.clone(), a.col.clone(), a.size)
    assert not busy.query()
    torch.cuda.synchronize()


def test_patterns_of_each_step_wait_for_nothing() -> None:
    scores = torch.rand(16, 16, device="cuda")
    x, values = draw(1, 64, 1024, dtype=torch.bfloat16), draw(2, 64, 64, 64, dtype=torch.bfloat16)
    st.linear(x, values, *st.index_from_scores(scores, 64), (1024, 1024))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for each_row, count in ((False, 64), (True, 4)):
            scores = scores * 1.5
            crow, col = st.index_from_scores(scores, count, each_row=each_row)
            st.linear(x, values, crow, col, (1024, 1024))
    finally:
        torch.cuda.set_sync_debug_mode("default")


def dense_of(layer: Any) -> Any:
    made = nn.Linear(layer.in_features, layer.out_features, device="cuda", dtype=layer.values.dtype)
    with torch.no_grad():
        made.weight.copy_(layer.weight)
        made.bias.copy_(layer.bias)
    return made


@pytest.mark.parametrize("compiled", [None, "aot_eager", "inductor", "reduce-overhead"])
def test_training(compiled: str | None) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    sparse = nn.Sequential(
        st.BsrLinear(256, 512, (64, 64), density=0.4, activation="relu", device="cuda"),
        st.BsrLinear(512, 128, (32, 32), density=0.4, device="cuda"),
    )
    dense = nn.Sequential(dense_of(sparse[0]), nn.ReLU(), dense_of(sparse[1]))
    masks = [cells(sparse[0]), cells(sparse[1])]
    step: Any = sparse
    if compiled == "reduce-overhead":
        step = torch.compile(sparse, fullgraph=True, mode=compiled)
    elif compiled:
        step = torch.compile(sparse, fullgraph=True, backend=compiled)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-3) for model in (sparse, dense)]
    for turn in range(8):
        x, target = draw(turn, 200, 256, dtype=torch.float32), draw(turn + 50, 200, 128, dtype=torch.float32)
        losses = []
        for model, optimizer in zip((step, dense), optimizers, strict=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), target)
            loss.backward()
            if model is dense:
                for layer, mask in zip((dense[0], dense[2]), masks, strict=True):
                    layer.weight.grad.mul_(mask)
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    torch.testing.assert_close(sparse[0].weight, dense[0].weight, rtol=1e-2, atol=1e-4)


def cells(layer: Any) -> Any:
    return layer.mask.repeat_interleave(layer.block[0], 0).repeat_interleave(layer.block[1], 1)


def test_layers() -> None:
    torch.manual_seed(1)
    layer = st.BsrLinear(256, 384, (64, 64), density=0.5, device="cuda", dtype=torch.bfloat16)
    x = draw(1, 3, 50, 256, dtype=torch.bfloat16)
    exact = dense_of(layer)(x)
    for other in (layer, copy.deepcopy(layer), copy.deepcopy(layer).cpu().cuda()):
        close(other(x), exact.double(), 2e-2)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(x).square().mean().backward()
    optimizer.step()
    st.prune_(layer, 0.25, optimizer=optimizer)
    close(layer(x), dense_of(layer)(x).double(), 2e-2)
    st.regrow_(layer, 0.5, optimizer=optimizer)
    close(layer(x), dense_of(layer)(x).double(), 2e-2)
    with torch.autocast("cuda", dtype=torch.float16):
        assert layer.float()(x.float()).dtype == torch.float16


def test_bsr_gemm_of_torch_tensors() -> None:
    a = Matrix(11, (256, 256), (32, 32), dtype=torch.bfloat16)
    b = draw(1, 256, 64, dtype=torch.bfloat16)
    sparse = torch.sparse_bsr_tensor(a.crow, a.col, a.values, a.size)
    close(sparsek.bsr_gemm(sparse, b), a.dense().double() @ b.double(), 2e-2)
