# SPDX-License-Identifier: Apache-2.0
"""A bias of attention on a GPU, of all strides, types and alignments, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import sparsek.torch as st  # noqa: E402

BATCH, HEADS, QUERIES = 2, 4, 200


def draw(seed: int, *shape: int, dtype: Any) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to("cuda", dtype)


def all_of(q: Any, k: Any, v: Any, bias: Any, layout: Any = None, **options: Any) -> list[Any]:
    """The result, and the gradients of q, k, v and bias. options: of attention."""
    given = [x.detach().requires_grad_() for x in (q, k, v, bias)]
    got = st.attention(given[0], given[1], given[2], layout, bias=given[3], **options)
    return [got.detach(), *torch.autograd.grad(got, given, draw(9, *got.shape, dtype=got.dtype))]


def exact_all_of(q: Any, k: Any, v: Any, bias: Any, seen: Any, is_query: Any) -> list[Any]:
    """The same in float64. seen: which pairs see each other, with at least one for each query. is_query: others get 0."""
    given = [x.detach().double().requires_grad_() for x in (q, k, v, bias)]
    group = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(group, 1) for x in given[1:3])
    scores = given[0] @ keys.transpose(2, 3) / q.shape[-1] ** 0.5 + given[3]
    got = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ values * is_query
    return [got.detach(), *torch.autograd.grad(got, given, draw(9, *got.shape, dtype=q.dtype).double())]


def moved(bias: Any, elements: int, row: int) -> Any:
    """The same in rows of so many elements, the first of which begins so many behind an aligned address; NaN between them."""
    batch, heads, queries, keys = bias.shape
    memory = bias.new_full((batch * heads * queries * row + elements,), torch.nan)
    there = memory[elements:].view(batch, heads, queries, row)[..., :keys]
    return there.copy_(bias)


# Each has the numbers of what it is given, elsewhere.
PLACES: dict[str, Callable[[Any], Any]] = {
    "rows of multiples of 16 bytes": lambda bias: moved(bias, 0, 704),
    "rows of multiples of 4 bytes": lambda bias: moved(bias, 2, 702),
    "rows of odd elements": lambda bias: moved(bias, 0, 701),
    "an odd address": lambda bias: moved(bias, 1, 704),
    "queries that follow each other": lambda bias: bias.transpose(2, 3).contiguous().transpose(2, 3),
    "every second key": lambda bias: torch.stack([bias, torch.full_like(bias, torch.nan)], -1)[..., 0],
}


@pytest.mark.parametrize("keys", [640, 333, 24])
@pytest.mark.parametrize(("size", "block"), [(64, None), (128, None), (96, (64, 64)), (128, (16, 32)), (64, (32, 16)), (256, None)])
@pytest.mark.parametrize(("dtype", "of_bias"), [("bfloat16", "bfloat16"), ("float16", "float16"), ("bfloat16", "float32")])
def test_a_bias_has_the_same_bits_wherever_it_lies(dtype: str, of_bias: str, size: int, block: Any, keys: int) -> None:
    q, k, v = (
        draw(at, BATCH, heads, rows, size, dtype=getattr(torch, dtype))
        for at, (heads, rows) in enumerate([(HEADS, QUERIES), (2, keys), (2, keys)])
    )
    bias = draw(5, BATCH, HEADS, QUERIES, keys, dtype=getattr(torch, of_bias))
    layout, seen = None, torch.ones(HEADS, QUERIES, keys, dtype=torch.bool, device="cuda")
    if block is not None:
        mask = torch.rand(HEADS, -(-QUERIES // block[0]), -(-keys // block[1]), generator=torch.Generator().manual_seed(7)) < 0.6
        mask[:, :, 0] = True
        layout = st.BlockLayout.from_mask(mask.cuda(), block, (QUERIES, keys))
        seen = mask.cuda().repeat_interleave(block[0], 1).repeat_interleave(block[1], 2)[:, :QUERIES, :keys]
    lengths = {
        "lengths_q": torch.tensor([QUERIES, 131], dtype=torch.int32, device="cuda"),
        "lengths_k": torch.tensor([keys - 3, 17], dtype=torch.int32, device="cuda"),
    }
    got = all_of(q, k, v, bias, layout, **lengths)
    there = torch.arange(keys, device="cuda") < lengths["lengths_k"][:, None, None, None]
    is_query = (torch.arange(QUERIES, device="cuda") < lengths["lengths_q"][:, None])[:, None, :, None]
    for found, exact in zip(got, exact_all_of(q, k, v, bias, seen & there, is_query), strict=True):
        assert (found.double() - exact).abs().max() <= 0.02 * exact.abs().max()
    for name, place in PLACES.items():
        for found, expected in zip(all_of(q, k, v, place(bias), layout, **lengths), got, strict=True):
            assert torch.equal(found, expected), name


@pytest.mark.parametrize("shape", [(1, 1, 1, 512), (1, 4, 200, 1), (2, 1, 200, 512), (1, 1, 200, 512), (2, 4, 1, 1)])
@pytest.mark.parametrize("of_bias", ["bfloat16", "float32"])
@pytest.mark.parametrize("size", [128, 256])
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_bias_that_is_shared_has_the_bits_of_one_that_is_not(
    deterministic: bool, size: int, of_bias: str, shape: tuple[int, ...]
) -> None:
    q, k, v = (
        draw(at, BATCH, heads, rows, size, dtype=torch.bfloat16) for at, (heads, rows) in enumerate([(HEADS, QUERIES), (2, 512), (2, 512)])
    )
    bias = draw(5, *shape, dtype=getattr(torch, of_bias))
    whole = bias.expand(BATCH, HEADS, QUERIES, 512).contiguous()
    *of_shared, grad_shared = all_of(q, k, v, bias, deterministic=deterministic)
    *expected, grad_whole = all_of(q, k, v, whole, deterministic=deterministic)
    for found, wanted in zip(of_shared, expected, strict=True):
        assert torch.equal(found, wanted)
    assert grad_shared.shape == shape
    if grad_whole.dtype == torch.float32:  # else each number of it has been rounded
        torch.testing.assert_close(grad_shared.double(), grad_whole.double().sum_to_size(shape), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", [64, 96, 128, 256])
@pytest.mark.parametrize("of_bias", ["bfloat16", "float32"])
def test_pairs_that_are_hidden_may_have_any_bias(of_bias: str, size: int) -> None:
    q, k, v = (draw(at, BATCH, heads, 300, size, dtype=torch.bfloat16) for at, heads in enumerate([HEADS, 2, 2]))
    bias = draw(5, BATCH, HEADS, 300, 300, dtype=getattr(torch, of_bias))
    hidden = ~torch.ones(300, 300, dtype=torch.bool, device="cuda").tril()
    expected = all_of(q, k, v, bias.masked_fill(hidden, 0.0), causal=True)
    for anything in (torch.nan, torch.inf):
        for found, wanted in zip(all_of(q, k, v, bias.masked_fill(hidden, anything), causal=True), expected, strict=True):
            assert torch.equal(found, wanted)
