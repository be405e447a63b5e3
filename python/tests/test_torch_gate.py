# SPDX-License-Identifier: Apache-2.0
"""Gates of attention: what they score, choose and learn, and that choosing passes no gradient."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from test_examples import load  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import gate as gates  # noqa: E402
from sparsek.torch.gate_estimators import estimated_attention  # noqa: E402

SEQ, BLOCK = (40, 60), (8, 12)


def operands(seed: int = 0, seq: tuple[int, int] = SEQ, dtype: Any = torch.float64) -> Any:
    made = torch.Generator().manual_seed(seed)
    shapes = ((2, 4, seq[0], 8), (2, 2, seq[1], 8), (2, 2, seq[1], 8))
    return tuple(torch.randn(*shape, generator=made, dtype=dtype) for shape in shapes)


def gate_of(**options: Any) -> Any:
    torch.manual_seed(1)
    return st.LearnableTopKGate(4, 2, 8, BLOCK, count=None if "threshold" in options else 3, **options)


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "block"), [((1, 2, 256, 128), 64), ((2, 3, 200, 64), 16), ((2, 2, 130, 96), 128), ((1, 2, 50, 7), 12), ((1, 1, 40, 4096), 16)]
)
def test_pooling(device: str, dtype: Any, shape: tuple[int, int, int, int], block: int) -> None:
    drawn = torch.randn(shape[0], shape[2], shape[1], shape[3] + 8, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    for x in (drawn[..., :-8].transpose(1, 2), drawn[..., 8:].transpose(1, 2).contiguous(), drawn[..., 1:-7].transpose(1, 2)):
        found = torch.ops.sparsek.pool_rows(x, block)
        assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        blocks = x.double().split(block, 2)
        mean, most, least = (
            torch.stack([of(rows) for rows in blocks], 2) for of in (lambda r: r.mean(2), lambda r: r.amax(2), lambda r: r.amin(2))
        )
        size = shape[3]
        torch.testing.assert_close(found[..., :size].double(), mean, rtol=1e-6, atol=1e-6)
        assert torch.equal(found[..., size:].double(), torch.cat([most, least], -1))


@pytest.mark.parametrize("device", DEVICES)
def test_pooling_of_what_is_not_finite(device: str) -> None:
    x = torch.zeros(1, 2, 128, 64, device=device, dtype=torch.bfloat16)
    x[0, 1, 70, 5], x[0, 0, 3, 4] = torch.nan, torch.inf
    found = torch.ops.sparsek.pool_rows(x, 64)
    assert found[0, 1, 1].isnan().nonzero().flatten().tolist() == [5, 69, 133]
    assert found[0, 0, 0].isinf().nonzero().flatten().tolist() == [4, 68]
    assert torch.ops.sparsek.pool_rows(x[:, :, :0], 64).shape == (1, 2, 0, 192)
    torch.library.opcheck(torch.ops.sparsek.pool_rows.default, (torch.randn(1, 2, 128, 64, device=device), 48))


@pytest.mark.parametrize("hidden", [None, 6])
@pytest.mark.parametrize("seq", [SEQ, (37, 50)])
def test_scores(seq: tuple[int, int], hidden: int | None) -> None:
    q, k, _ = operands(seq=seq)
    gate = gate_of(width=5, hidden=hidden)
    scores = gate(q, k)
    assert scores.dtype == torch.float32
    for batch, head, row, column in ((0, 0, 0, 0), (1, 3, 4, 2), (1, 2, 4, 3)):
        of_q, of_k = q[batch, head, 8 * row : 8 * row + 8].float(), k[batch, head // 2, 12 * column : 12 * column + 12].float()
        pooled = [torch.cat([x.mean(0), x.amax(0), x.amin(0)]) for x in (of_q, of_k)]
        if hidden:
            pooled[0] = torch.nn.functional.gelu(pooled[0] @ gate.hidden_q[head] + gate.bias_q[head, 0])
            pooled[1] = torch.nn.functional.gelu(pooled[1] @ gate.hidden_k[head // 2] + gate.bias_k[head // 2, 0])
        expected = (pooled[0] @ gate.of_q[head]) @ (pooled[1] @ gate.of_k[head // 2]) * 5**-0.5
        torch.testing.assert_close(scores[batch, head, row, column], expected)
    assert torch.equal(scores[0, 0] == -torch.inf, ~st.layouts.causal(seq, BLOCK).mask()[0, 0])


def test_scores_begin_near_those_of_mean_pooling() -> None:
    q, k, _ = operands(seq=(96, 96), dtype=torch.float32)
    torch.manual_seed(0)
    gate = st.LearnableTopKGate(4, 2, 8, 12, count=3, width=256)
    seen = st.layouts.causal(96, 12).mask()[0, 0]
    begun, mean = (scores[..., seen].flatten() for scores in (gate(q, k).detach(), gates.mean_pool_scores(q, k, 12)))
    assert float(torch.corrcoef(torch.stack([begun, mean]))[0, 1]) > 0.6


def test_the_first_blocks_and_the_diagonal_stay() -> None:
    q, k, _ = operands()
    own = st.layouts.window(SEQ, BLOCK, 0, 0).mask()[0, 0]
    for gate in (gate_of(), gate_of(threshold=0.9)):
        mask = gate.layout(q, k).mask()
        assert mask.shape == (2, 4, 5, 5)
        assert bool(mask[..., 0].all())
        assert bool(mask[..., own].all())
        assert not mask[..., ~st.layouts.causal(SEQ, BLOCK).mask()[0, 0]].any()
    assert gate_of().layout(q, k).mask().sum(-1).max() == 3
    few, many = (gate_of(threshold=threshold).layout(q, k).density for threshold in (0.5, 0.05))
    assert few < many
    p = gate_of()(q, k).softmax(-1)
    expected = (p >= 0.05) | own
    expected[..., 0] = True
    expected &= st.layouts.causal(SEQ, BLOCK).mask()[0, 0]
    assert torch.equal(gate_of(threshold=0.05).layout(q, k).mask(), expected)
    every = st.choose_blocks(torch.zeros(1, 1, 5, 5), BLOCK, SEQ, threshold=0.1, sinks=60)
    assert torch.equal(every.mask(), st.layouts.causal(SEQ, BLOCK).mask())


@pytest.mark.parametrize("reduce", ["mean", "max"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq", [SEQ, (37, 50)])
def test_mass(reduce: str, causal: bool, seq: tuple[int, int]) -> None:
    q, k, _ = operands(seq=seq)
    away = torch.arange(seq[1]) - torch.arange(seq[0])[:, None]
    scores = (q @ k.repeat_interleave(2, 1).transpose(-1, -2) * 8**-0.5).masked_fill((away > 0) & causal, -torch.inf)
    weights, found = scores.softmax(-1), st.block_mass(q, k, BLOCK, causal=causal, reduce=reduce)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 4, 5))
    for row in range(5):
        of_row = weights[:, :, 8 * row : 8 * row + 8]
        parts = torch.stack([of_row[..., 12 * column : 12 * column + 12].sum(-1) for column in range(5)], -1)
        expected = parts.mean(-2) if reduce == "mean" else parts.amax(-2)
        torch.testing.assert_close(found[:, :, row], (expected / expected.sum(-1, keepdim=True)).float())


@pytest.mark.parametrize("hidden", [None, 32])
def test_distillation(hidden: int | None) -> None:
    q, k, _ = operands(seq=(96, 96), dtype=torch.float32)
    torch.manual_seed(0)
    gate = st.LearnableTopKGate(4, 2, 8, 12, count=2, hidden=hidden)
    mass = st.block_mass(q, k, 12)
    scores = gate(q, k)
    first = gate.loss(q, k).detach()
    assert first > 0
    log = (scores.double() - scores.double().logsumexp(-1, keepdim=True)).nan_to_num(neginf=0)
    by_definition = (mass.double() * (mass.double().clamp(min=1e-300).log() - log)).sum(-1).mean()
    torch.testing.assert_close(first.double(), by_definition, rtol=1e-5, atol=1e-6)
    same = mass.log()  # of the teacher itself nothing is to be learnt
    assert abs(float(gate.loss(q, k, mass, same))) < 1e-5
    optimizer = torch.optim.Adam(gate.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        gate.loss(q, k, mass).backward()
        optimizer.step()
    assert gate.loss(q, k) < 0.5 * first

    def recall(layout: st.BlockLayout) -> float:
        return float((mass * layout.mask()).sum(-1).mean())

    chosen: dict[str, Any] = {"block": 12, "seq": 96, "count": 2, "sinks": 0}
    best = recall(st.choose_blocks(mass, **chosen))
    by_chance = recall(st.choose_blocks(gates.random_scores(q, k, 12, generator=torch.Generator().manual_seed(1)), **chosen))
    learnt = recall(st.choose_blocks(gate(q, k), **chosen))
    assert best >= learnt > (best + by_chance) / 2


def test_no_gradient_passes_a_hard_choice() -> None:
    q, k, v = operands()
    gate = gate_of()
    scores = gate(q, k)
    layout = gate.layout(q, k, scores)
    q.requires_grad_()
    loss = st.attention(q, k, v, layout, causal=True).square().sum()
    parameters = list(gate.parameters())
    for found in torch.autograd.grad(loss, [*parameters, scores], allow_unused=True, materialize_grads=True, retain_graph=True):
        assert not found.any()
    hard = estimated_attention(q, k, v, scores, layout, estimator="none").square().sum()
    torch.testing.assert_close(hard, loss)
    for found in torch.autograd.grad(hard, [*parameters, scores], allow_unused=True, materialize_grads=True):
        assert not found.any()
    with torch.no_grad():  # nor is there one to be missed: the loss stays the same to the last bit
        gate.of_k.add_(1e-6 * torch.randn(gate.of_k.shape))
    assert not torch.equal(gate(q, k), scores)
    assert torch.equal(st.attention(q, k, v, gate.layout(q, k), causal=True).square().sum(), loss)


def test_estimators() -> None:
    q, k, v = operands(seq=(40, 48))
    gate = st.LearnableTopKGate(4, 2, 8, 8, count=2).double()
    scores = gate(q, k).detach().requires_grad_()
    layout = gate.layout(q, k, scores)
    chosen = layout.mask()
    seen = layout.dense_mask() & torch.ones(40, 48, dtype=torch.bool).tril()
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    g = torch.randn(exact.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    through = estimated_attention(q, k, v, scores, layout, estimator="straight_through")
    torch.testing.assert_close(through, exact, rtol=1e-4, atol=1e-5)
    (of_through,) = torch.autograd.grad((through * g).sum(), scores)
    weighted = estimated_attention(q, k, v, scores, layout, estimator="score_weighted")
    (of_weighted,) = torch.autograd.grad((weighted * g).sum(), scores)
    hidden = scores == -torch.inf
    for found in (of_through, of_weighted):
        assert not found[hidden].any()
        assert found.abs().max() > 1e-3
    assert of_through[~chosen & ~hidden].abs().max() > 1e-3  # what was not chosen learns too
    # By the definition: weights exp(s) times p of their block, divided by their sum.
    p = scores.detach().softmax(-1).repeat_interleave(8, -1).repeat_interleave(8, -2)
    exponents = (q @ k.repeat_interleave(2, 1).transpose(-1, -2) * 8**-0.5).exp() * p * seen
    by_definition = exponents / exponents.sum(-1, keepdim=True) @ v.repeat_interleave(2, 1)
    torch.testing.assert_close(weighted, by_definition, rtol=1e-4, atol=1e-5)
    with pytest.raises(sparsek.ArgumentError, match="is none of none, straight_through"):
        estimated_attention(q, k, v, scores, layout, estimator="soft")


def test_other_scores() -> None:
    q, k, _ = operands(seq=(37, 50))
    hidden = ~st.layouts.causal((37, 50), BLOCK).mask()[0, 0]
    mean = gates.mean_pool_scores(q, k, BLOCK)
    expected = q[1, 3, 32:].mean(0) @ k[1, 1, 24:36].mean(0) * 8**-0.5
    torch.testing.assert_close(mean[1, 3, 4, 2], expected.float())
    drawn = [gates.random_scores(q, k, BLOCK, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    local = gates.local_scores(q, k, BLOCK, causal=False)
    assert local[0, 0].argmax(-1).tolist() == [0, 0, 1, 2, 2]  # of two that are as near, the first
    for scores in (mean, drawn[0], gates.local_scores(q, k, BLOCK)):
        assert scores.shape == (2, 4, 5, 5)
        assert torch.equal(scores[0, 0] == -torch.inf, hidden)


def test_a_gate_is_a_module() -> None:
    q, k, _ = operands()
    gate = gate_of()
    other = st.LearnableTopKGate(4, 2, 8, BLOCK, count=3)
    other.load_state_dict(gate.state_dict())
    assert torch.equal(other(q, k), gate(q, k))
    assert "count=3" in repr(gate)
    assert "hidden=6" in repr(gate_of(hidden=6))
    compiled = torch.compile(gate, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(q, k), gate(q, k))
    q.requires_grad_()
    assert torch.autograd.grad(gate.loss(q, k), q, allow_unused=True) == (None,)


def test_scores_in_inference_mode_do_not_spoil_training() -> None:
    gate = st.LearnableTopKGate(2, 2, 8, 8, count=2)
    q, k = (torch.randn(1, 2, 56, 8) for _ in range(2))
    with torch.inference_mode():
        first = gate.layout(q, k).mask()
    gate.loss(q, k).backward()
    assert gate.of_q.grad is not None
    assert torch.equal(gate.layout(q, k).mask(), first)


def test_what_does_not_go() -> None:
    q, k, _ = operands()
    with pytest.raises(sparsek.ArgumentError, match="give one of them"):
        st.LearnableTopKGate(4, 2, 8, BLOCK)
    with pytest.raises(sparsek.ArgumentError, match="give one of them"):
        st.choose_blocks(torch.zeros(5, 5), BLOCK, SEQ, count=1, threshold=0.1)
    with pytest.raises(sparsek.ArgumentError, match="no multiple of 3"):
        st.LearnableTopKGate(4, 3, 8, BLOCK, count=1)
    with pytest.raises(sparsek.ArgumentError, match="hidden=0"):
        st.LearnableTopKGate(4, 2, 8, BLOCK, count=1, hidden=0)
    with pytest.raises(sparsek.ArgumentError, match="neither mean nor max"):
        st.block_mass(q, k, BLOCK, reduce="sum")
    with pytest.raises(sparsek.ArgumentError, match="of attention"):
        gate_of()(q[0], k[0])


def test_the_example() -> None:
    """In small: that it runs, and that sequences are what they are said to be."""
    example = load("attention_gate")
    tokens, places, values = example.batch_of(5, 128, torch.Generator().manual_seed(3), 2)
    for row in range(5):
        for place, value in zip(places[row].tolist(), values[row].tolist(), strict=True):
            first = int((tokens[row] == tokens[row, place]).nonzero()[0])
            assert (first % 2, int(tokens[row, first + 1])) == (0, value)
            assert first // 16 < 4 <= place // 16
    (found,) = example.main([0], seq=128, stages=[(128, 2, 8, 40)], steps=2, size=4)
    assert set(found) == {"dense", "oracle", "gate", "mean pooling", "local", "random"}
    assert found["dense"] > 0.5  # by chance it were one of 16
    assert found["oracle"] > found["local"]
