# SPDX-License-Identifier: Apache-2.0
"""Weights on a GPU that stay as they are: what is kept for them, and that a change is never missed which torch knows of."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

from torch import nn  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek import _abi  # noqa: E402
from sparsek._library import library  # noqa: E402
from sparsek.torch import _known  # noqa: E402
from sparsek.torch._frozen import frozen  # noqa: E402
from sparsek.torch._plans import FrozenCall  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore")]
without_gradients = pytest.mark.usefixtures("no_gradients")


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    torch.manual_seed(0)
    st.cache_clear(captured=True)
    yield
    st.cache_clear(captured=True)


@pytest.fixture
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def layer_of(block: tuple[int, int] = (4, 4), dtype: Any = torch.bfloat16, density: float = 0.2, size: int = 512) -> Any:
    return st.BsrLinear(size, size, block, density=density, device="cuda", dtype=dtype)


def inputs(rows: int, dtype: Any = torch.bfloat16, size: int = 512) -> Any:
    return torch.randn(rows, size, device="cuda").to(dtype)


def close(layer: Any, x: Any, y: Any) -> None:
    """Whether y is the layer's product."""
    exact = x.double() @ layer.weight.detach().double().t() + layer.bias.detach().double()
    bound = {torch.float32: 1e-4, torch.float64: 1e-10}.get(x.dtype, 3e-2)
    torch.testing.assert_close(y.double(), exact, rtol=bound, atol=bound)


def frozen_calls() -> list[FrozenCall]:
    return [call for call in _known.alive() if isinstance(call, FrozenCall)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("block", [(1, 1), (4, 4), (12, 8), (32, 32), (64, 64)])
@without_gradients
def test_products_of_frozen_weights(dtype: Any, block: tuple[int, int]) -> None:
    layer = layer_of(block, dtype)
    assert st.freeze_(layer) == [""]
    for rows in (1, 64, 300):
        x = inputs(rows, dtype)
        for _ in range(3):
            close(layer, x, layer(x))
        b = x.t().contiguous()
        exact = layer.weight.detach().double() @ b.double()
        y = st.mm(layer.values, layer.crow, layer.col, layer.size, b)
        torch.testing.assert_close(y.double(), exact, rtol=3e-2, atol=3e-2)
    assert len(frozen_calls()) == 6


@without_gradients
def test_plans_keep_the_values() -> None:
    """Single nonzeros in 16 bits by many columns, which other products copy to a workspace."""
    layer, b = layer_of((1, 1), size=4096, density=0.125), inputs(4096, size=4096)

    def info() -> _abi.PlanInfo:
        st.mm(layer.values, layer.crow, layer.col, layer.size, b)
        found = _abi.PlanInfo()
        library().require(library().plan_describe(_known.alive()[0]._plan.pointer, ctypes.byref(found)))
        return found

    assert info().kept_bytes == 0
    st.freeze_(layer)
    assert info().kept_bytes >= layer.values.nbytes


@without_gradients
def test_changes_that_torch_knows_of() -> None:
    layer, x = layer_of(), inputs(64)
    st.freeze_(layer)
    close(layer, x, layer(x))
    layer.values.mul_(2)
    close(layer, x, layer(x))
    assert frozen.find(layer.values, layer.crow, layer.col, layer.size) is None
    st.freeze_(layer)
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    state["values"] *= -1
    close(layer, x, layer(x))
    layer.load_state_dict(state)
    close(layer, x, layer(x))
    st.freeze_(layer)
    close(layer, x, layer(x))
    layer.set_pattern(torch.rand(layer.mask_shape) < 0.3)
    close(layer, x, layer(x))
    st.freeze_(layer)
    layer.half()
    close(layer, x.half(), layer(x.half()))


def test_a_step_of_an_optimizer() -> None:
    layer, x = layer_of(dtype=torch.float32), inputs(64, torch.float32)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    st.freeze_(layer)
    for _ in range(3):
        y = layer(x)
        close(layer, x, y)
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    close(layer, x, layer(x))


@without_gradients
def test_a_write_that_torch_does_not_see() -> None:
    layer, x = layer_of(), inputs(64)
    for _ in range(3):
        st.freeze_(layer)
        close(layer, x, layer(x))
        layer.values.data.mul_(-2)
    st.freeze_(layer)
    close(layer, x, layer(x))


@without_gradients
def test_layers_with_one_index() -> None:
    first, second, x = layer_of(), layer_of(), inputs(64)
    second.crow, second.col, second.values = first.crow, first.col, nn.Parameter(-3 * first.values)
    for layer in (first, second, first, second):
        close(layer, x, layer(x))
    st.freeze_(first)
    for layer in (first, second, first, second):
        close(layer, x, layer(x))
    st.freeze_(nn.ModuleList([first, second]))
    for layer in (first, second, first, second):
        close(layer, x, layer(x))
    st.unfreeze_(first)
    for layer in (first, second, first, second):
        close(layer, x, layer(x))


@without_gradients
def test_models_and_tensors() -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), layer_of(), nn.Linear(512, 8)).to("cuda", torch.bfloat16)
    model[0].weight = nn.Parameter(st.BsrTensor.from_dense(model[0].weight, (4, 4), density=0.3))
    x = inputs(64)
    before = model(x)
    assert st.freeze_(model) == ["2", "0.weight"]
    torch.testing.assert_close(model(x), before, rtol=3e-2, atol=3e-2)
    assert len(frozen_calls()) == 2
    st.unfreeze_(model)
    assert not frozen._entries
    torch.testing.assert_close(model(x), before)


def test_gradients_of_inputs() -> None:
    layer, x = layer_of(dtype=torch.float32), inputs(64, torch.float32).requires_grad_()
    st.freeze_(layer.requires_grad_(False))
    g = inputs(64, torch.float32)
    layer(x).backward(g)
    torch.testing.assert_close(x.grad, g @ layer.weight, rtol=1e-4, atol=1e-4)


@without_gradients
def test_a_compiled_model() -> None:
    layer, x = layer_of(), inputs(64)
    compiled = torch.compile(layer, fullgraph=True)
    close(layer, x, compiled(x))
    st.freeze_(layer)
    for _ in range(3):
        close(layer, x, compiled(x))
    assert frozen_calls()
    layer.values.mul_(2)
    close(layer, x, compiled(x))


@without_gradients
def test_a_graph_goes_on_with_what_was_frozen() -> None:
    layer, x = layer_of(), inputs(64)
    st.freeze_(layer)
    layer(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x)
    before = layer.weight.detach().double()
    layer.set_pattern(torch.rand(layer.mask_shape) < 0.3)
    gc.collect()
    taken = [torch.full((4096, 4, 4), 7.0, device="cuda", dtype=torch.bfloat16) for _ in range(64)]
    x.copy_(inputs(64))
    graph.replay()
    torch.testing.assert_close(y.double(), x.double() @ before.t() + layer.bias.double(), rtol=3e-2, atol=3e-2)
    close(layer, x, layer(x))
    del graph, taken
    torch.cuda.synchronize()
    st.unfreeze_(layer)
    assert frozen._entries or frozen._of_graphs
    st.cache_clear(captured=True)
    assert not frozen._entries
    assert not frozen._of_graphs


@without_gradients
def test_a_graph_of_a_weight_that_changed_before_it_was_replaced() -> None:
    layer, x = layer_of((16, 16)), inputs(64)
    st.freeze_(layer)
    layer(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x)
    layer.values.mul_(2)
    close(layer, x, layer(x))  # what was frozen is dropped, but for the graph
    before = layer.weight.detach().double()
    layer.set_pattern(torch.rand(layer.mask_shape) < 0.3)
    gc.collect()
    taken = [torch.full((256, 16, 16), 7.0, device="cuda", dtype=torch.bfloat16) for _ in range(64)]
    graph.replay()  # by the values that it reads where they lay, or by those that its plan kept
    bias = layer.bias.double()
    assert min((y.double() - x.double() @ (share * before).t() - bias).abs().max() for share in (1.0, 0.5)) < 0.1
    del graph, taken


@without_gradients
def test_no_call_of_a_graph_serves_what_was_thawed() -> None:
    layer, x = layer_of(), inputs(64)
    st.freeze_(layer)
    layer(x)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        layer(x)
    layer.values.data.mul_(-2)
    st.unfreeze_(layer)
    close(layer, x, layer(x))


@without_gradients
def test_frozen_weights_are_tuned() -> None:
    layer, x = layer_of(), inputs(64)
    st.freeze_(layer)
    with st.tuning(0.02):
        close(layer, x, layer(x))
    close(layer, x, layer(x))
    assert frozen_calls()[0]._plan.is_tuned


@without_gradients
def test_a_new_size_in_a_capture() -> None:
    layer = layer_of()
    st.freeze_(layer)
    layer(inputs(64))
    x = inputs(300)
    torch.cuda.synchronize()
    with pytest.raises(sparsek.ArgumentError, match="before the capture"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        layer(x)


@without_gradients
def test_memory_goes_with_the_weight() -> None:
    layer, x = layer_of((1, 1), size=2048), inputs(256, size=2048)
    st.freeze_(layer)
    layer(x)
    assert len(frozen._entries) == 1
    layer.half()  # other values
    layer(x.half())
    assert not frozen._entries
    st.freeze_(layer)
    layer(x.half())
    assert len(frozen._entries) == 1
    del layer
    gc.collect()
    assert not frozen._entries


def test_tensors_of_inference_mode() -> None:
    with torch.inference_mode():
        layer = layer_of()
    with pytest.raises(sparsek.ArgumentError, match="inference"):
        st.freeze_(layer)


def test_within_inference_mode() -> None:
    layer, x = layer_of(), inputs(64)
    st.freeze_(layer)
    with torch.inference_mode():
        for _ in range(2):
            y = layer(x)
    close(layer, x, y.clone())
    assert frozen_calls()
