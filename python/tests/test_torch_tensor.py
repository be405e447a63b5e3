# SPDX-License-Identifier: Apache-2.0
"""BsrTensor as the weight of torch's own layers."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch_reference import Place, draw, on_device  # noqa: E402, F401

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning:torch"), pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")]


def layer(inputs: int = 40, outputs: int = 24, density: float = 0.4, dtype: Any = torch.float64) -> Any:
    torch.manual_seed(0)
    made = nn.Linear(inputs, outputs, device=Place.device, dtype=dtype)
    made.weight = nn.Parameter(st.BsrTensor.from_dense(made.weight, (8, 8), density=density))
    return made


def dense_of(sparse: Any) -> Any:
    made = nn.Linear(sparse.in_features, sparse.out_features, device=Place.device, dtype=sparse.weight.dtype)
    with torch.no_grad():
        made.weight.copy_(sparse.weight.to_dense())
        made.bias.copy_(sparse.bias)
    return made


def cells(weight: Any) -> Any:
    return weight.mask.repeat_interleave(8, 0).repeat_interleave(8, 1)[: weight.shape[0], : weight.shape[1]]


@pytest.mark.parametrize("inputs", [40, 37])
def test_products(inputs: int) -> None:
    sparse = layer(inputs)
    dense = dense_of(sparse)
    x, y = draw(1, 2, 5, inputs).requires_grad_(), draw(1, 2, 5, inputs).requires_grad_()
    torch.testing.assert_close(sparse(x), dense(y))
    sparse(x).square().sum().backward()
    dense(y).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(sparse.bias.grad, dense.bias.grad)
    grad = sparse.weight.grad
    assert type(grad) is st.BsrTensor
    torch.testing.assert_close(grad.to_dense(), dense.weight.grad * cells(sparse.weight))
    with torch.no_grad():
        weight, whole = sparse.weight, dense.weight
        b, row = draw(2, inputs, 3), draw(3, 4, 24)
        torch.testing.assert_close(weight @ b, whole @ b)
        torch.testing.assert_close(torch.mm(weight, b), whole @ b)
        torch.testing.assert_close(weight @ b[:, 0], whole @ b[:, 0])
        torch.testing.assert_close(row @ weight, row @ whole)
        torch.testing.assert_close(weight.norm(), whole.norm())
        torch.testing.assert_close((2 * weight).to_dense(), 2 * whole)
    weight.to_dense().square().sum().backward()
    assert f"{inputs} in 8x8" in repr(weight)


def test_what_is_not_served() -> None:
    weight = layer().weight.detach()
    for work in (lambda: weight + draw(1, 24, 40), lambda: weight.relu(), lambda: weight @ weight, lambda: torch.stack([weight, weight])):
        with pytest.raises(sparsek.UnsupportedError, match="to_dense"):
            work()
    other = st.BsrTensor.from_dense(draw(3, 24, 40), (8, 8), density=0.4)
    with pytest.raises(sparsek.ArgumentError, match="patterns"):
        weight + other
    with pytest.raises(sparsek.ArgumentError, match="size"):
        st.BsrTensor(weight.values[1:], weight.crow, weight.col, (24, 40))


@pytest.mark.parametrize("kind", ["SGD", "AdamW", "AdamW of lists", "fused AdamW", "RMSprop", "Adagrad"])
def test_optimizers(kind: str) -> None:
    sparse = layer(dtype=torch.float32)
    dense = dense_of(sparse)
    mask = cells(sparse.weight)
    every: dict[str, dict[str, Any]] = {"SGD": {"momentum": 0.9}, "AdamW of lists": {"foreach": True}, "fused AdamW": {"fused": True}}
    options = every.get(kind, {})
    made = [getattr(torch.optim, kind.replace("fused ", "").split()[0])(each.parameters(), lr=0.01, **options) for each in (sparse, dense)]
    for step in range(4):
        for each, optimizer in zip((sparse, dense), made, strict=True):
            optimizer.zero_grad()
            each(draw(step, 6, 40, dtype=torch.float32)).square().mean().backward()
            if each is dense:
                dense.weight.grad.mul_(mask)
            nn.utils.clip_grad_norm_(each.parameters(), 0.5)
            optimizer.step()
    torch.testing.assert_close(sparse.weight.to_dense().detach(), dense.weight.detach() * mask, rtol=1e-4, atol=1e-5)


def test_copies_and_state_dicts() -> None:
    sparse = layer()
    x = draw(1, 3, 40)
    exact = sparse(x).detach()
    stored = io.BytesIO()
    torch.save(sparse.state_dict(), stored)
    stored.seek(0)
    loaded = layer(density=0.7)
    loaded.load_state_dict(torch.load(stored, weights_only=True))
    plain = st.to_plain(sparse.state_dict())
    assert set(plain) == {"weight.values", "weight.crow", "weight.col", "weight.size", "bias"}
    again = layer(density=0.2)
    again.load_state_dict(st.from_plain(plain))
    for other in (copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse)), loaded, again):
        assert isinstance(other.weight, nn.Parameter)
        torch.testing.assert_close(other(x), exact, rtol=0, atol=0)
        with torch.no_grad():
            other.weight.mul_(2)
    torch.testing.assert_close(sparse(x), exact, rtol=0, atol=0)
    half = copy.deepcopy(sparse).bfloat16()
    assert half.weight.dtype == torch.bfloat16
    assert half.weight.crow.dtype == sparse.weight.crow.dtype
    assert half(x.bfloat16()).dtype == torch.bfloat16
    assert copy.deepcopy(sparse).to("cpu").weight.values.device.type == "cpu"
    with torch.no_grad():
        sparse.weight.copy_(draw(5, 24, 40))  # of a dense one the blocks that there are
    torch.testing.assert_close(sparse.weight.to_dense(), draw(5, 24, 40) * cells(sparse.weight))


def test_safetensors() -> None:
    storage = pytest.importorskip("safetensors.torch")
    sparse, other = layer(), layer(density=0.7)
    other.load_state_dict(st.from_plain(storage.load(storage.save(st.to_plain(sparse.state_dict())))))
    x = draw(1, 3, 40)
    torch.testing.assert_close(other(x), sparse(x), rtol=0, atol=0)


def test_pruning() -> None:
    sparse = layer()
    optimizer = torch.optim.AdamW(sparse.parameters())
    sparse(draw(1, 6, 40)).square().mean().backward()
    optimizer.step()
    parameter, before = sparse.weight, sparse.weight.to_dense().detach()
    moment = optimizer.state[parameter]["exp_avg"].to_dense()
    assert st.prune_(parameter, 0.2, optimizer=optimizer) == 3
    assert sparse.weight is parameter
    assert parameter.grad is None
    torch.testing.assert_close(parameter.to_dense().detach(), before * cells(parameter))
    torch.testing.assert_close(optimizer.state[parameter]["exp_avg"].to_dense(), moment * cells(parameter))
    assert st.regrow_(parameter, 0.5, optimizer=optimizer) == 2
    sparse(draw(1, 6, 40)).square().mean().backward()
    optimizer.step()
    torch.testing.assert_close(sparse(draw(2, 6, 40)), dense_of(sparse)(draw(2, 6, 40)))


def test_a_model_that_keeps_its_modules() -> None:
    torch.manual_seed(1)
    model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, device=Place.device)
    whole = copy.deepcopy(model)
    assert st.sparsify_(model, (16, 16), 1.0, keep_modules=True) == ["linear1", "linear2"]
    assert type(model.linear1) is nn.Linear
    x = draw(1, 2, 5, 32, dtype=torch.float32)
    torch.testing.assert_close(model(x), whole(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend: str) -> None:
    torch._dynamo.reset()
    sparse = layer(dtype=torch.float32)
    model = nn.Sequential(sparse, nn.ReLU())
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    x = draw(1, 6, 40, dtype=torch.float32)
    try:
        got = compiled(x)
        got.square().sum().backward()
    except RuntimeError as error:  # inductor needs a compiler for C++
        if backend == "inductor" and "compiler" in str(error):
            pytest.skip(f"skipped: {str(error).splitlines()[0]}")
        raise
    of_weight = sparse.weight.grad.to_dense()
    sparse.weight.grad = None
    exact = model(x)
    torch.testing.assert_close(got, exact)
    exact.square().sum().backward()
    torch.testing.assert_close(of_weight, sparse.weight.grad.to_dense(), rtol=1e-4, atol=1e-4)
