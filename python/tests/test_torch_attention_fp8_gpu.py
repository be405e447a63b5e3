# SPDX-License-Identifier: Apache-2.0
"""sparsek.torch.attention of float8_e4m3fn on a GPU: against torch in float32, graphs, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore")]
SEQ, SIZE = 512, 128


def quantised(seed: int, heads: int) -> tuple[Any, Any, Any]:
    """A tensor in FP8, its scales, and what both stand for in float32."""
    x = torch.randn(2, heads, SEQ, SIZE, generator=torch.Generator().manual_seed(seed)).cuda()
    scale = x.abs().amax((2, 3)) / 448
    narrow = (x / scale[..., None, None]).to(torch.float8_e4m3fn)
    return narrow, scale, narrow.float() * scale[..., None, None]


@pytest.mark.parametrize("out_dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("with_layout", [False, True])
def test_results(out_dtype: Any, causal: bool, with_layout: bool) -> None:
    (q, scale_q, wide_q), (k, scale_k, wide_k), (v, scale_v, wide_v) = quantised(1, 4), quantised(2, 2), quantised(3, 2)
    layout = None
    seen = torch.ones(4, SEQ, SEQ, dtype=torch.bool, device="cuda")
    if with_layout:
        mask = torch.rand(4, 4, 4, generator=torch.Generator().manual_seed(4)) < 0.5
        mask |= torch.eye(4, dtype=torch.bool)
        layout = st.BlockLayout.from_mask(mask.cuda(), 128)
        seen = layout.dense_mask(4)
    if causal:
        seen = seen & torch.ones(SEQ, SEQ, dtype=torch.bool, device="cuda").tril()
    try:
        scales = {"scale_q": scale_q, "scale_k": scale_k, "scale_v": scale_v}
        got = st.attention(q, k, v, layout, causal=causal, out_dtype=out_dtype, **scales)
    except sparsek.UnsupportedError as error:
        pytest.skip(str(error))
    exact = torch.nn.functional.scaled_dot_product_attention(wide_q, wide_k, wide_v, attn_mask=seen, enable_gqa=True)
    assert got.dtype == out_dtype
    # Weights are rounded to three bits of fraction.
    torch.testing.assert_close(got.float(), exact, rtol=2**-4, atol=2**-4 * float(wide_v.abs().mean()))
