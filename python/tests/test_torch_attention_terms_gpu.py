# SPDX-License-Identifier: Apache-2.0
"""A bias of attention on a GPU, of all strides, types and alignments."""

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
    got = st.attention(q, k, v, layout, bias=bias, **lengths)
    there = torch.arange(keys, device="cuda") < lengths["lengths_k"][:, None, None, None]
    hidden = torch.zeros(BATCH, HEADS, QUERIES, keys, device="cuda").masked_fill(~(seen & there), -torch.inf)
    exact = torch.nn.functional.scaled_dot_product_attention(
        q.float(), k.float().repeat_interleave(2, 1), v.float().repeat_interleave(2, 1), attn_mask=hidden + bias.float()
    )
    exact[1, :, 131:] = 0
    torch.testing.assert_close(got.float(), exact, rtol=2e-2, atol=2e-2)
    for name, place in PLACES.items():
        assert torch.equal(st.attention(q, k, v, layout, bias=place(bias), **lengths), got), name


@pytest.mark.parametrize("shape", [(1, 1, 1, 512), (1, 4, 200, 1), (2, 1, 200, 512), (1, 1, 200, 512), (2, 4, 1, 1)])
@pytest.mark.parametrize("of_bias", ["bfloat16", "float32"])
def test_a_bias_that_is_shared_has_the_bits_of_one_that_is_not(of_bias: str, shape: tuple[int, ...]) -> None:
    q, k, v = (
        draw(at, BATCH, heads, rows, 128, dtype=torch.bfloat16) for at, (heads, rows) in enumerate([(HEADS, QUERIES), (2, 512), (2, 512)])
    )
    bias = draw(5, *shape, dtype=getattr(torch, of_bias))
    whole = bias.expand(BATCH, HEADS, QUERIES, 512).contiguous()
    assert torch.equal(st.attention(q, k, v, bias=bias), st.attention(q, k, v, bias=whole))
