# SPDX-License-Identifier: Apache-2.0
"""BsrLinear in models: made from dense layers, trained, pruned, stored, compiled."""

from __future__ import annotations

import copy
import io
import itertools
import pathlib
import pickle
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning:torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")]


def masked(layer: Any) -> Any:
    """The dense layer that computes the same."""
    made = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, dtype=layer.values.dtype)
    with torch.no_grad():
        made.weight.copy_(layer.weight)
        if layer.bias is not None:
            made.bias.copy_(layer.bias)
    return made


@pytest.mark.parametrize(("features", "block"), [((40, 24), (8, 8)), ((41, 30), (8, 16)), ((5, 7), (2, 3))])
@pytest.mark.parametrize("bias", [False, True])
def test_from_dense(features: Any, block: Any, bias: bool) -> None:
    torch.manual_seed(0)
    dense = nn.Linear(*features, bias=bias, dtype=torch.float64)
    scores = st.block_scores(dense.weight, block)
    layer = st.BsrLinear.from_dense(dense, block, density=0.5)
    assert layer.mask.sum() == layer.col.numel() == round(0.5 * scores.numel())
    assert scores[layer.mask].min() >= scores[~layer.mask].max()
    cells = layer.mask.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: features[1], : features[0]]
    torch.testing.assert_close(layer.weight, torch.where(cells, dense.weight, 0.0), rtol=0, atol=0)
    x = torch.randn(2, 3, features[0], dtype=torch.float64)
    torch.testing.assert_close(layer(x), F.linear(x, layer.weight, dense.bias))
    every = st.BsrLinear.from_dense(dense, block, density=1.0)
    torch.testing.assert_close(every(x), dense(x))
    assert f"block={block}" in repr(layer)


def test_random_layers() -> None:
    torch.manual_seed(1)
    layer = st.BsrLinear(41, 30, (8, 16), density=0.6, activation="gelu", dtype=torch.float64)
    assert layer.mask_shape == (4, 3)
    assert layer.density == pytest.approx(7 / 12)
    blocks = st.to_blocks(torch.ones(30, 41, dtype=torch.float64), (8, 16))[layer.mask]
    assert (layer.values[blocks == 0] == 0).all()
    assert (layer.values[blocks == 1] != 0).all()
    x = torch.randn(5, 41, dtype=torch.float64)
    torch.testing.assert_close(layer(x), F.gelu(masked(layer)(x)))
    for wrong in [
        {},
        {"density": 0.5, "mask": layer.mask},
        {"density": 0.0},
        {"mask": layer.mask.t()},
        {"density": 1, "activation": "tanh"},
    ]:
        with pytest.raises(sparsek.ArgumentError):
            st.BsrLinear(41, 30, (8, 16), **wrong)


def test_training_is_that_of_a_masked_layer() -> None:
    torch.manual_seed(2)
    sparse = nn.Sequential(
        st.BsrLinear(24, 48, (8, 8), density=0.4, activation="relu", dtype=torch.float64), nn.Linear(48, 3, dtype=torch.float64)
    )
    dense = nn.Sequential(masked(sparse[0]), nn.ReLU(), copy.deepcopy(sparse[1]))
    cells = sparse[0].mask.repeat_interleave(8, 0).repeat_interleave(8, 1)
    x, y = torch.randn(64, 24, dtype=torch.float64), torch.randn(64, 3, dtype=torch.float64)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1) for model in (sparse, dense)]
    for _ in range(30):
        losses = []
        for model, optimizer in zip((sparse, dense), optimizers, strict=True):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            if model is dense:
                dense[0].weight.grad.mul_(cells)
            optimizer.step()
            losses.append(loss.detach())
        torch.testing.assert_close(*losses, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(sparse[0].weight, dense[0].weight, rtol=1e-8, atol=1e-10)


def test_prune_and_regrow() -> None:
    torch.manual_seed(3)
    layer = st.BsrLinear(41, 30, (8, 8), density=0.8, dtype=torch.float64)
    optimizer = torch.optim.Adam(layer.parameters())
    x = torch.randn(7, 41, dtype=torch.float64)
    layer(x).square().sum().backward()
    optimizer.step()
    parameter, before, had = layer.values, layer.weight.detach(), layer.mask
    moment = st.from_blocks(optimizer.state[parameter]["exp_avg"], layer.crow, layer.col, layer.size)
    scores = st.block_scores(before, (8, 8))
    assert st.prune_(layer, 0.5, optimizer=optimizer) == 19 - 12
    assert layer.values is parameter
    assert parameter.grad is None
    assert layer.mask.sum() == 12
    assert (layer.mask & ~had).sum() == 0
    assert scores[layer.mask].min() >= scores[had & ~layer.mask].max()
    cells = layer.mask.repeat_interleave(8, 0).repeat_interleave(8, 1)[:30, :41]
    torch.testing.assert_close(layer.weight, torch.where(cells, before, 0.0), rtol=0, atol=0)
    kept = st.from_blocks(optimizer.state[parameter]["exp_avg"], layer.crow, layer.col, layer.size)
    torch.testing.assert_close(kept, torch.where(cells, moment, 0.0), rtol=0, atol=0)
    assert st.prune_(layer, 0.9) == 0

    growth = torch.rand(layer.mask_shape)
    had, before = layer.mask, layer.weight.detach()
    assert st.regrow_(layer, 0.25, growth, optimizer=optimizer) == 3
    new = layer.mask & ~had
    assert new.sum() == 3
    assert layer.mask.sum() == 12
    assert growth[new].min() >= growth[~had & ~new].max()
    assert (layer.values[layer_places(layer, new)] == 0).all()
    gone = had & ~layer.mask
    scores = st.block_scores(before, (8, 8))
    assert scores[gone].max() <= scores[had & layer.mask].min()
    layer(x).square().sum().backward()
    optimizer.step()
    torch.testing.assert_close(layer(x), masked(layer)(x))
    assert st.regrow_(layer, 0.5) == 6  # at random
    full = st.BsrLinear(16, 16, (8, 8), density=1.0)
    assert st.regrow_(full, 0.5) == 0
    for wrong in (lambda: st.prune_(layer, 1.5), lambda: st.regrow_(layer, -1.0), lambda: st.regrow_(layer, 0.1, growth.t())):
        with pytest.raises(sparsek.ArgumentError):
            wrong()


def test_pruned_beside_a_graph() -> None:
    """The graph of the step before, which loss holds, was made for more blocks."""
    layer, other = (st.BsrLinear(40, 24, (8, 8), density=density, dtype=torch.float64) for density in (0.8, 0.3))
    x = torch.randn(7, 40, dtype=torch.float64)
    for density in (0.6, 0.4):
        loss = layer(x).square().sum()
        loss.backward()
        st.prune_(layer, density)
    loss = layer(x).square().sum()
    layer.load_state_dict(other.state_dict())
    loss = layer(x).square().sum()
    loss.backward()
    exact = masked(layer)
    exact(x).square().sum().backward()
    torch.testing.assert_close(layer.values.grad, st.to_blocks(exact.weight.grad, (8, 8))[layer.mask])


def layer_places(layer: Any, mask: Any) -> Any:
    """The numbers of the blocks that a mask has."""
    crow, col = st.index_from_mask(layer.mask)
    assert (crow == layer.crow).all()
    assert (col == layer.col).all()
    return mask[layer.mask].nonzero()[:, 0]


@pytest.mark.parametrize("count", [0, 1, 3, 6])
def test_index_from_scores(count: int) -> None:
    scores = torch.rand(5, 6, generator=torch.Generator().manual_seed(count))
    scores[1] = 0.5  # of equal scores the first are taken
    for each_row in (False, True):
        crow, col = st.index_from_scores(scores, count, each_row=each_row)
        if each_row:
            places = [sorted(row.argsort(descending=True, stable=True)[:count].tolist()) for row in scores]
        else:
            chosen = scores.flatten().argsort(descending=True, stable=True)[:count].tolist()
            places = [sorted(at % 6 for at in chosen if at // 6 == row) for row in range(5)]
        assert [col[start:end].tolist() for start, end in itertools.pairwise(crow.tolist())] == places
        assert crow.dtype == col.dtype == torch.int32
    with pytest.raises(sparsek.ArgumentError, match="31 blocks"):
        st.index_from_scores(scores, 31)


def test_growth_scores() -> None:
    torch.manual_seed(4)
    dense = nn.Linear(24, 16)
    x = torch.randn(2, 5, 24)
    y = dense(x)
    y.square().sum().backward()
    got = st.growth_scores(x, 2 * y, (8, 8))
    torch.testing.assert_close(got, st.block_scores(dense.weight.grad, (8, 8)))


class Twice(nn.Module):
    """One layer by two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 32)
        self.block = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.Linear(32, 4))
        self.again = self.first

    def forward(self, x: Any) -> Any:
        return self.again(self.block[:3](self.first(x)))


def test_sparsify() -> None:
    model = Twice()
    assert st.sparsify_(model, (16, 16), 0.5) == ["first", "again", "block.0", "block.2"]
    kinds = {name: type(child).__name__ for name, child in model.named_modules(remove_duplicate=False)}
    assert kinds["first"] == kinds["again"] == kinds["block.0"] == kinds["block.2"] == "BsrLinear"
    assert kinds["block.3"] == "Linear"
    assert model.first is model.again
    assert model(torch.randn(3, 32)).shape == (3, 32)
    assert st.sparsify_(Twice(), (16, 16), 0.5, filter=lambda name, _: name == "block.3") == ["block.3"]


def test_arguments_of_the_wrong_form() -> None:
    linear = torch.nn.Linear(64, 32)
    crow, col = st.index_from_mask(torch.ones(2, 4, dtype=torch.bool))
    q, block = torch.randn(1, 1, 32, 8), cast(Any, 16)
    one_number = r"block=16 is not \(rows, columns\): give 2 integers"
    faults: list[tuple[Any, str]] = [
        (lambda: st.BsrLinear(64, 32, block, density=0.5), one_number),
        (lambda: st.BsrLinear.from_dense(linear, block, density=0.5), one_number),
        (lambda: st.sparsify_(torch.nn.Sequential(linear), block, density=0.5), one_number),
        (lambda: st.BsrTensor.from_dense(linear.weight, block, density=0.5), one_number),
        (lambda: st.sdd(torch.randn(32, 3), torch.randn(3, 64), crow, col, (32, 64), block), one_number),
        (lambda: st.to_blocks(torch.ones(4, 4, 4), (2, 2)), r"shape \(4, 4, 4\) has no blocks"),
        (lambda: st.to_blocks(torch.ones(4, 4), (0, 2)), "a block of 0x2 does not exist"),
        (lambda: st.sparsify_(linear, (16, 16), density=0.5), "the model itself is an nn.Linear.*BsrLinear.from_dense"),
        (lambda: st.prune_(linear, 0.5), "a Linear has no blocks: give a BsrLinear"),
        (lambda: st.regrow_(linear, 0.5), "a Linear has no blocks: give a BsrLinear"),
        (
            lambda: st.BlockLayout.from_mask(torch.ones(2, 2, dtype=torch.bool), cast(Any, (16, 16, 16))),
            "neither .queries, keys. nor one number",
        ),
        (lambda: st.attention(q, q, q, torch.ones(2, 2, dtype=torch.bool)), "layout is a Tensor: BlockLayout.from_mask"),
    ]
    for call, message in faults:
        with pytest.raises(sparsek.ArgumentError, match=message):
            call()


def test_a_transformer() -> None:
    torch.manual_seed(5)
    model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    whole = copy.deepcopy(model)
    assert st.sparsify_(model, (16, 16), 1.0) == ["linear1", "linear2"]
    x = torch.randn(2, 5, 32)
    torch.testing.assert_close(model(x), whole(x), rtol=1e-4, atol=1e-5)
    model.eval()
    whole.eval()
    with torch.no_grad():
        torch.testing.assert_close(model(x), whole(x), rtol=1e-4, atol=1e-5)


def copies(layer: Any) -> Any:
    """The layer by deepcopy, pickle and torch.save."""
    yield copy.deepcopy(layer)
    yield pickle.loads(pickle.dumps(layer))
    stored = io.BytesIO()
    torch.save(layer, stored)
    stored.seek(0)
    yield torch.load(stored, weights_only=False)


def test_copies_and_state_dicts() -> None:
    torch.manual_seed(6)
    layer = st.BsrLinear(40, 24, (8, 8), density=0.4)
    x = torch.randn(3, 40)
    exact = layer(x).detach()
    for other in copies(layer):
        torch.testing.assert_close(other(x), exact, rtol=0, atol=0)
        with torch.no_grad():
            other.values.add_(1)
    torch.testing.assert_close(layer(x), exact, rtol=0, atol=0)
    for density in (0.4, 0.7, 0.2):  # of the layer that loads
        other = st.BsrLinear(40, 24, (8, 8), density=density)
        other.load_state_dict(layer.state_dict())
        torch.testing.assert_close(other(x), exact, rtol=0, atol=0)
    wrong = st.BsrLinear(48, 24, (8, 16), density=0.4)
    with pytest.raises(RuntimeError, match="size mismatch"):
        wrong.load_state_dict(layer.state_dict())
    half = copy.deepcopy(layer).bfloat16()
    assert half.crow.dtype == half.col.dtype == torch.int32
    assert half(x.bfloat16()).dtype == torch.bfloat16


def test_safetensors() -> None:
    storage = pytest.importorskip("safetensors.torch")
    layer = st.BsrLinear(40, 24, (8, 8), density=0.4)
    other = st.BsrLinear(40, 24, (8, 8), density=0.7)
    other.load_state_dict(storage.load(storage.save(layer.state_dict())))
    x = torch.randn(3, 40)
    torch.testing.assert_close(other(x), layer(x), rtol=0, atol=0)


def test_safetensors_that_the_rust_crate_reads() -> None:
    storage = pytest.importorskip("safetensors.torch")
    file = pathlib.Path(__file__).resolve().parents[2] / "rust/sparsek-burn/testdata/linear.safetensors"
    if not file.exists():
        pytest.skip("skipped: only a checkout has the Rust crates")
    tensors = storage.load_file(file)
    layer = st.BsrLinear(24, 16, (4, 8), density=0.5)
    layer.load_state_dict({name.removeprefix("layer."): tensor for name, tensor in tensors.items() if name.startswith("layer.")})
    torch.testing.assert_close(layer(tensors["x"]), tensors["y"])


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend: str) -> None:
    torch.manual_seed(7)
    torch._dynamo.reset()
    model = nn.Sequential(st.BsrLinear(40, 24, (8, 8), density=0.5, activation="silu"), st.BsrLinear(24, 16, (8, 8), density=0.5))
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    try:
        for rows in (3, 5, 8):
            x = torch.randn(rows, 40, requires_grad=True)
            y = compiled(x)
            y.square().sum().backward()
            got = [x.grad] + [parameter.grad for parameter in model.parameters()]
            model.zero_grad()
            x.grad = None
            exact = model(x)
            torch.testing.assert_close(y, exact, rtol=1e-5, atol=1e-5)
            exact.square().sum().backward()
            for left, right in zip(got, [x.grad] + [parameter.grad for parameter in model.parameters()], strict=True):
                torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)
            model.zero_grad()
        st.prune_(model[0], 0.3)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    except RuntimeError as error:  # inductor needs a compiler for C++
        if backend == "inductor" and "compiler" in str(error):
            pytest.skip(f"skipped: {str(error).splitlines()[0]}")
        raise


def test_export() -> None:
    model = st.BsrLinear(40, 24, (8, 8), density=0.5)
    x = torch.randn(3, 40)
    program = torch.export.export(model, (x,))
    assert "sparsek.linear" in str(program.graph)
    torch.testing.assert_close(program.module()(x), model(x))


def test_freezing_on_the_cpu() -> None:
    """There is nothing to keep, and nothing changes."""
    model = nn.Sequential(st.BsrLinear(40, 24, (8, 8), density=0.5), nn.ReLU())
    x = torch.randn(3, 40)
    before = model(x)
    assert st.freeze_(model) == []
    torch.testing.assert_close(model(x), before, rtol=0, atol=0)
    st.unfreeze_(model)
    model(x).sum().backward()
