# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch.attention on a GPU: both passes within the library's bounds, streams, CUDA graphs, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import _attention_plans  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    st.cache_clear(captured=True)
    yield
    st.cache_clear(captured=True)


def draw(seed: int, *shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to("cuda", dtype)


def operands(seed: int = 0, heads: tuple[int, int] = (4, 2), seq: tuple[int, int] = (200, 300), size: int = 64, dtype: Any = None) -> Any:
    shapes = ((2, heads[0], seq[0], size), (2, heads[1], seq[1], size), (2, heads[1], seq[1], size))
    return [draw(seed + at, *shape, dtype=dtype or torch.bfloat16) for at, shape in enumerate(shapes)]


def layout_of(seed: int, heads: int, block: tuple[int, int], seq: tuple[int, int] = (200, 300)) -> st.BlockLayout:
    mask = torch.rand(heads, -(-seq[0] // block[0]), -(-seq[1] // block[1]), generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[0, 0] = False  # queries that see nothing
    return st.BlockLayout.from_mask(mask.cuda(), block, seq)


def check(given: Any, layout: Any, o: Any, lse: Any, rules: Any, grad_o: Any = None) -> None:
    """Every element is within its bound; with grad_o those of the gradients, which the operands then have."""
    crow, col = (None, None) if layout is None else (layout.crow, layout.col)
    form = (0, 0, 1, 1) if layout is None else (*layout.block, layout.batch, layout.heads)
    leaves, given = given, [operand.detach() for operand in given]
    q, k, v = given
    plan = _attention_plans.attention_of(q, k, v, crow, col, form, rules)
    there = None if layout is None else layout.to("cpu")
    index = None if there is None else sparsek.AttentionLayout(there.crow, there.col, there.block, there.batch, there.heads)
    names = dict(zip("qkv", [operand.contiguous().cpu() for operand in given], strict=True))
    for name, found in (("o", o), ("lse", lse)):
        report = sparsek.check_attention(plan, name, layout=index, **{**names, "o": o.cpu(), name: found.cpu()})
        assert report.elements == found.numel()
        assert report.max_ratio > 0
    for name, leaf in zip(("grad_q", "grad_k", "grad_v"), () if grad_o is None else leaves, strict=False):
        found = {"o": o.cpu(), "lse": lse.cpu(), "grad_o": grad_o.cpu(), name: leaf.grad.cpu()}
        report = sparsek.check_attention(plan, name, layout=index, **{**names, **found})
        assert report.elements == leaf.numel()
        assert report.max_ratio > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("size", "block"), [(64, (64, 64)), (128, (64, 128)), (128, (128, 128)), (64, None)])
@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, (None, None, False)),
        ({"causal": True}, (None, 0, False)),
        ({"window": (70, 30), "align_ends": True}, (70, 30, True)),
    ],
)
def test_both_passes(dtype: Any, size: int, block: Any, options: Any, rules: Any) -> None:
    q, k, v = operands(size=size, dtype=dtype)
    layout = None if block is None else layout_of(3, 2, block)
    for operand in (q, k, v):
        operand.requires_grad_()
    o, lse = st.attention(q, k, v, layout, return_lse=True, **options)
    left, right, align = rules
    grad_o = draw(7, *o.shape, dtype=dtype)
    o.backward(grad_o)
    check((q, k, v), layout, o.detach(), lse, _attention_plans.Rules(left, right, align, 0.0, 0.0), grad_o)
    again = torch.autograd.grad(st.attention(q, k, v, layout, **options), (q, k, v), grad_o)
    assert all(torch.equal(found, operand.grad) for found, operand in zip(again, (q, k, v), strict=True))


@pytest.mark.parametrize("size", [64, 96, 128])
@pytest.mark.parametrize("block", [None, (128, 128), (64, 64)])
def test_any_order(size: int, block: Any) -> None:
    q, k, v = operands(size=size, seq=(700, 900))
    layout = None if block is None else layout_of(3, 2, block, (700, 900))
    grad_o = draw(7, *q.shape)
    rules = _attention_plans.Rules(None, 0, False, 0.0, 0.0, any_order=True)
    first = None
    for _ in range(3):
        leaves = [operand.clone().requires_grad_() for operand in (q, k, v)]
        o, lse = st.attention(leaves[0], leaves[1], leaves[2], layout, causal=True, return_lse=True, deterministic=False)
        o.backward(grad_o)
        check(leaves, layout, o.detach(), lse, rules, grad_o)
        first = first or leaves
        assert all(torch.equal(leaf.grad, one.grad) for leaf, one in zip(leaves[1:], first[1:], strict=True))


def test_strides() -> None:
    q, k, v = operands()
    layout = layout_of(1, 4, (64, 64))
    expected = st.attention(q, k, v, layout)
    rows = q.transpose(1, 2).contiguous().transpose(1, 2)
    gaps = torch.cat([k, k], 3)[..., :64]
    odd = torch.cat([v, v[..., :1]], 3)[..., :64]  # rows that are no multiple of 16 bytes apart
    assert torch.equal(st.attention(rows, gaps, odd, layout), expected)
    one = k[:1, :1, :1].expand_as(k)
    assert torch.equal(st.attention(q, one, v, layout), st.attention(q, one.contiguous(), v, layout))


def test_streams() -> None:
    q, k, v = operands(seq=(2048, 2048))
    layout = layout_of(1, 1, (64, 64), (2048, 2048))
    expected = st.attention(q, k, v, layout)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        late = q * 0
        for _ in range(50):
            late = late + q / 50
        got = st.attention(late, k, v, layout)
        exact = st.attention(late.clone(), k, v, layout)
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(got, exact)
    torch.testing.assert_close(got, expected, rtol=0.1, atol=0.05)


def test_graphs() -> None:
    q, k, v = operands()
    layout = layout_of(1, 1, (64, 64))
    expected = st.attention(q, k, v, layout)
    st.attention(q.clone().requires_grad_(), k, v, layout).sum().backward()
    graph = torch.cuda.CUDAGraph()
    leaf = q.clone().requires_grad_()
    with torch.cuda.graph(graph):
        with torch.no_grad():
            leaf.copy_(q)
        got = st.attention(leaf, k, v, layout)
        (grad,) = torch.autograd.grad(got, leaf, torch.ones_like(got))
    st.cache_clear()  # what a graph uses stays
    q2 = draw(9, *q.shape)
    for operand in (q, q2):
        given = operand.clone()
        q.copy_(given)
        graph.replay()
        alone = given.requires_grad_()
        found = st.attention(alone, k, v, layout)
        assert torch.equal(got, found)
        assert torch.equal(grad, torch.autograd.grad(found, alone, torch.ones_like(found))[0])
    assert not torch.equal(got, expected)
    st.cache_clear(captured=True)
    with pytest.raises(sparsek.ArgumentError, match="not known yet"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        st.attention(q, k, v)


@pytest.mark.parametrize("known", [False, True])
def test_layouts_that_a_graph_chooses(known: bool) -> None:
    q, k, v = operands(seq=(300, 500))
    scores = draw(1, 2, 4, 5, 8, dtype=torch.float32)
    grad_o = draw(2, *q.shape)

    def step(leaf: Any) -> Any:
        layout = st.BlockLayout.from_scores(scores, 64, (300, 500), count=3)
        o = st.attention(leaf, k, v, layout)
        return o, torch.autograd.grad(o, leaf, grad_o)[0]

    leaf = q.clone().requires_grad_()
    if known:
        step(leaf)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, grad = step(leaf)
    st.cache_clear()
    found = []
    for seed in range(4):
        scores.copy_(draw(seed, *scores.shape, dtype=torch.float32))
        graph.replay()
        expected = step(leaf)
        assert torch.equal(o, expected[0])
        assert torch.equal(grad, expected[1])
        found.append(o.clone())
    assert not torch.equal(found[0], found[1])


def test_nothing_waits_for_a_new_layout() -> None:
    q, k, v = operands(seq=(1024, 1024))
    gate = st.LearnableTopKGate(4, 2, 64, 64, count=4).cuda()
    st.attention(q.clone().requires_grad_(), k, v, gate.layout(q, k), causal=True).sum().backward()
    torch.cuda.synchronize()
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        leaf = q.clone().requires_grad_()
        o = st.attention(leaf, k, v, gate.layout(q, k), causal=True)
        o.sum().backward()
        by_threshold = st.choose_blocks(gate(q, k), 64, 1024, threshold=0.05)
        st.attention(q, k, v, by_threshold, causal=True)
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    # Long work before, and the host comes back while it runs.
    torch.cuda._sleep(2_000_000_000)
    event = torch.cuda.Event()
    event.record()
    with torch.no_grad():
        st.attention(q, k, v, gate.layout(q, k), causal=True)
    assert not event.query()


@pytest.mark.parametrize("causal", [False, True])
def test_a_gate_in_a_graph(causal: bool) -> None:
    q, k, v = operands(heads=(4, 2), seq=(512, 512))
    gate = st.LearnableTopKGate(4, 2, 64, 64, count=3, hidden=16, causal=causal).cuda()

    def chosen() -> Any:
        with torch.no_grad():
            return st.attention(q, k, v, gate.layout(q, k), causal=causal)

    chosen()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = chosen()
    found = []
    for seed in range(3):
        q.copy_(draw(seed, *q.shape))
        graph.replay()
        assert torch.equal(o, chosen())
        found.append(o.clone())
    assert not torch.equal(found[0], found[1])
    on_cpu = gate.cpu().layout(q.cpu(), k.cpu()).mask()
    assert (on_cpu == gate.cuda().layout(q, k).mask().cpu()).float().mean() > 0.99  # scores that are nearly equal may change places


def test_a_wrong_layout_on_the_gpu() -> None:
    q, k, v = operands(seq=(128, 128))
    wrong = st.BlockLayout(torch.tensor([0, 1, 2]).cuda(), torch.tensor([0, 5]).cuda(), (64, 64), (128, 128))

    def twice() -> None:  # the fault comes with the first call where the check has ended by then, else with the next
        for _ in range(2):
            assert not bool(st.attention(q, k, v, wrong).any())

    with pytest.raises(sparsek.IndexFault, match="col_idx"):
        twice()


def test_compiled() -> None:
    q, k, v = operands()
    layout = layout_of(1, 2, (64, 64))
    compiled = torch.compile(lambda q: st.attention(q + 1, k, v, layout, causal=True), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(q), st.attention(q + 1, k, v, layout, causal=True))


def test_a_layout_that_was_changed_in_place_is_seen() -> None:
    q, k, v = operands(seq=(64, 128))
    layout = st.BlockLayout.from_mask(torch.tensor([[True, False]]).cuda(), 64)
    for column in (0, 1, 0):
        layout.col.fill_(column)
        keys = slice(64 * column, 64 * column + 64)
        assert torch.equal(st.attention(q, k, v, layout), st.attention(q, k[:, :, keys], v[:, :, keys]))


def test_what_is_refused() -> None:
    q, k, v = operands()
    layout = layout_of(1, 1, (64, 64))
    with pytest.raises(sparsek.UnsupportedError, match="bf16, fp16 and e4m3"):
        st.attention(q.float(), k.float(), v.float(), layout)
    with pytest.raises(sparsek.UnsupportedError, match="head_size"):
        st.attention(q[..., :36], k[..., :36], v[..., :36], layout)
    with pytest.raises(sparsek.ArgumentError, match="crow lies on cpu"):
        st.attention(q, k, v, layout.to("cpu"))
