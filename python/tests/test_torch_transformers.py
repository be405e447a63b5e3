# SPDX-License-Identifier: Apache-2.0
"""Models of transformers with attention of the library, where transformers is installed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", reason="skipped: transformers is not installed")

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.compat import transformers as compat  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def llama() -> Any:
    compat.install()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    return transformers.LlamaForCausalLM(config).double()


def two() -> tuple[Any, Any]:
    """The same model with torch's attention and with ours."""
    model = llama()
    other = copy.deepcopy(model)
    model.set_attn_implementation("sdpa")
    other.set_attn_implementation("sparsek")
    return model, other


def tokens(seed: int, *shape: int) -> Any:
    return torch.randint(64, shape, generator=torch.Generator().manual_seed(seed))


def losses(model: Any, steps: int, **given: Any) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    found = []
    for step in range(steps):
        batch = (tokens(step, 2, 1) + torch.arange(48)) % 64  # the next one is what is to be learnt
        loss = model(batch, labels=batch, **given).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


def test_twenty_steps_have_the_losses_of_torchs_attention() -> None:
    model, other = two()
    expected = losses(model, 20)
    got = losses(other, 20, sparsek_layout=st.layouts.full(48, 16))
    assert expected[-1] < expected[0] - 0.1
    assert got == pytest.approx(expected, rel=1e-9)


def test_layouts() -> None:
    _, other = two()
    batch = tokens(1, 2, 48)
    near = st.layouts.window(48, 16, 0, 0)
    seen: list[Any] = []

    def choose(q: Any, k: Any) -> st.BlockLayout:
        seen.append((q.shape, k.shape))
        return near

    dense = other(batch).logits
    sparse = other(batch, sparsek_layout=near).logits
    assert torch.equal(sparse[:, :16], dense[:, :16])
    assert not torch.allclose(sparse[:, 16:], dense[:, 16:])
    for module in other.modules():
        if hasattr(module, "is_causal"):
            module.sparsek_layout = choose
    assert torch.equal(other(batch).logits, sparse)
    assert seen == [((2, 4, 48, 8), (2, 2, 48, 8))] * 2
    # What a block sees is its own tokens alone, wherever they stand.
    alone = other(batch[:, 32:], sparsek_layout=st.layouts.full(16, 16), position_ids=torch.arange(32, 48)[None]).logits
    torch.testing.assert_close(sparse[:, 32:], alone)


def test_padding_and_caches() -> None:
    model, other = two()
    batch, mask = tokens(2, 2, 24), torch.ones(2, 24, dtype=torch.long)
    mask[1, 15:] = 0
    expected, got = model(batch, attention_mask=mask).logits, other(batch, attention_mask=mask).logits
    torch.testing.assert_close(got[mask.bool()], expected[mask.bool()])
    got = other(batch, attention_mask=mask, sparsek_layout=st.layouts.full(24, 8)).logits
    torch.testing.assert_close(got[mask.bool()], expected[mask.bool()])
    written = [one.generate(batch, max_new_tokens=6, do_sample=False, pad_token_id=0) for one in (model, other)]
    assert torch.equal(*written)
    with pytest.raises(sparsek.UnsupportedError, match="padded on the left"):
        other(batch, attention_mask=mask.flip(1))


def test_what_is_refused() -> None:
    _, other = two()
    batch = tokens(3, 1, 24)
    with pytest.raises(sparsek.UnsupportedError, match="not causal or bidirectional alone"):
        other(batch, position_ids=torch.arange(12).repeat(2)[None], use_cache=False)  # packed sequences
    with pytest.raises(sparsek.UnsupportedError, match="room for keys"):
        other.generate(batch, max_new_tokens=3, do_sample=False, cache_implementation="static", pad_token_id=0)
    with pytest.raises(sparsek.UnsupportedError, match="mask of its own"):
        other(batch, attention_mask=torch.ones(1, 1, 24, 24, dtype=torch.bool))
    other.model.layers[0].self_attn.attention_dropout = 0.1
    other.train()
    with pytest.raises(sparsek.UnsupportedError, match=r"attention_dropout=0\.1"):
        other(batch)
