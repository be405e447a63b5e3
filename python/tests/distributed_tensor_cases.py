# SPDX-License-Identifier: Apache-2.0
"""Cases of tensor parallelism, on all ranks of a group."""

from __future__ import annotations

import copy

import torch
import torch.distributed as dist
from distributed_common import DEVICE, HIDDEN, RANK, RANKS, Mlp, close, drawn, inputs, part_of_tokens, tensor_parallel, whole_state
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn import functional as F  # noqa: N812

import sparsek
import sparsek.torch as st
import sparsek.torch.distributed as sd


def check_tensor_parallel(dealt: bool, sequence: bool) -> None:
    whole = Mlp(1)
    model = tensor_parallel(whole, dealt, sequence)
    x = inputs()
    exact_x = x.clone().requires_grad_()
    exact = whole(exact_x)
    own_x = (part_of_tokens(x) if sequence else x).clone().requires_grad_()
    y = model(own_x)
    close(y + 0, part_of_tokens(exact) if sequence else exact)
    target = drawn(3, *exact.shape)
    (exact * target).sum().backward()
    (y * (part_of_tokens(target) if sequence else target)).sum().backward()
    close(own_x.grad, part_of_tokens(exact_x.grad) if sequence else exact_x.grad)
    got = whole_state(model, "grad")
    for name, parameter in whole.named_parameters():
        close(got[name], parameter.grad)


def case_parts_compute_the_whole() -> None:
    for dealt in (False, True):
        for sequence in (False, True):
            check_tensor_parallel(dealt, sequence)


def case_blocks_are_dealt_evenly() -> None:
    whole = Mlp(1)
    for dealt in (False, True):
        model = tensor_parallel(whole, dealt)
        count = torch.tensor([sum(layer.col.numel() for layer in (model.gate, model.up, model.down))], device=DEVICE)
        counts = [torch.zeros_like(count) for _ in range(RANKS)]
        dist.all_gather(counts, count)
        total = sum(layer.col.numel() for layer in (whole.gate, whole.up, whole.down))
        assert sum(int(each) for each in counts) == total
        spread = max(map(int, counts)) - min(map(int, counts))
        assert spread <= 1 if dealt else spread * RANKS > total // 5, counts
        features = [layer.out_features for layer in (model.gate, model.up)] + [model.down.in_features]
        assert features == [HIDDEN // RANKS] * 3


def case_training_is_that_of_one_process() -> None:
    whole = Mlp(2)
    model = tensor_parallel(whole)
    optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-2, weight_decay=0.1) for each in (whole, model)]
    x, target = inputs(), inputs(7)
    for _ in range(10):
        norms = []
        for each, optimizer in zip((whole, model), optimizers, strict=True):
            optimizer.zero_grad()
            F.mse_loss(each(x), target).backward()
            norms.append(nn.utils.clip_grad_norm_(each.parameters(), 0.05) if each is whole else sd.clip_grad_norm_(each, 0.05))
            optimizer.step()
        torch.testing.assert_close(*norms, rtol=1e-10, atol=0)
        assert norms[0] > 0.05
    got = whole_state(model, "data")
    for name, parameter in whole.named_parameters():
        torch.testing.assert_close(got[name], parameter.detach(), rtol=1e-7, atol=1e-9)
    assert (torch.cat([v.flatten() for v in got.values()]) != torch.cat([p.flatten() for p in Mlp(2).parameters()])).all()
    # Each part is pruned alone, and all keep as many.
    for layer in (model.gate, model.up, model.down):
        st.prune_(layer, 0.2, optimizer=optimizers[1])
    counts = [torch.zeros(1, dtype=torch.long, device=DEVICE) for _ in range(RANKS)]
    dist.all_gather(counts, torch.tensor([model.up.col.numel()], device=DEVICE))
    assert len(set(map(int, counts))) == 1
    again = Mlp(2)
    again.load_state_dict({name: getattr(tensor, "full_tensor", lambda t=tensor: t)() for name, tensor in model.state_dict().items()})
    assert again.up.density < 0.21
    close(model(x) + 0, again(x))
    F.mse_loss(model(x), target).backward()
    optimizers[1].step()


def case_all_take_what_the_first_rank_has() -> None:
    exact = Mlp(1)
    model = tensor_parallel(Mlp(1 + RANK))
    close(model(inputs()) + 0, exact(inputs()))


def case_dtensors_and_wrong_styles() -> None:
    mesh = init_device_mesh(DEVICE, (RANKS,))
    layer = Mlp(1).up
    exact = layer(inputs())
    made = parallelize_module(copy.deepcopy(layer), mesh, sd.ColwiseBsr(output_layouts=Replicate(), use_local_output=False))
    x = DTensor.from_local(inputs(), mesh, (Replicate(),))
    y = made(x)
    assert isinstance(y, DTensor)
    close(y.full_tensor(), exact)
    down = Mlp(1).down
    h = drawn(1, 5, HIDDEN)
    part = parallelize_module(copy.deepcopy(down), mesh, sd.RowwiseBsr(input_layouts=Replicate()))
    close(part(h) + 0, down(h))
    assert f"rank {RANK} of {RANKS}" in repr(part)
    deal = sd.deal_blocks(layer, down, RANKS)
    wrong = [
        lambda: sd.ColwiseBsr(deal, output_layouts=Replicate()),
        lambda: sd.RowwiseBsr(deal, input_layouts=Replicate()),
        lambda: sd.deal_blocks(layer, layer, RANKS),
        lambda: sd.deal_blocks(layer, down, 5),
        lambda: parallelize_module(st.BsrLinear(40, 8, (8, 8), density=1.0).to(DEVICE), mesh, sd.ColwiseBsr()),
        lambda: parallelize_module(copy.deepcopy(layer), mesh, sd.RowwiseBsr(deal)),
        lambda: sd.Deal(8, ((0, 1), (2,))),
    ]
    for call in wrong:
        try:
            call()
        except sparsek.ArgumentError:
            continue
        raise AssertionError("nothing was raised")
    try:
        parallelize_module(nn.Linear(8, 8), mesh, sd.ColwiseBsr())
    except sparsek.UnsupportedError:
        return
    raise AssertionError("nothing was raised")


def case_it_compiles() -> None:
    """In one graph, with its gradients."""
    for sequence in (False, True):
        model = tensor_parallel(Mlp(1), sequence=sequence)
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        x = part_of_tokens(inputs()) if sequence else inputs()
        found = []
        for run in (compiled, model):
            model.zero_grad()
            y = run(x)
            y.square().sum().backward()
            found.append([y.detach() + 0, *(parameter.grad for parameter in model.parameters())])
        for got, exact in zip(*found, strict=True):
            close(got, exact)
