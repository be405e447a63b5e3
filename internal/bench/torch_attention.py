# SPDX-License-Identifier: Apache-2.0
"""Times attention by torch and by FlashAttention-3.

Usage: python3 torch_attention.py DEVICE        DEVICE: cpu, or cuda:N

It prints one line of JSON when it is ready, and one for each line of JSON that it reads:

    {"op": "case", "path": FILE}                  -> {}, when the operands of a case are made
    {"op": "way", "way": WAY}                     -> {"entry": NAME, "dense": BOOL}, when the case was computed that way and is right
    {"op": "time", "way": WAY, "repeats": N}      -> {"seconds": [...]}, of N calls

or {"error": TEXT} where that cannot be done. WAY is "sdpa" (torch's dense attention; cuDNN's on a GPU), "flex" (torch's
FlexAttention, compiled, with a BlockMask) or "fa3" (FlashAttention-3, where it is installed). "dense" says that it computes
pairs of a query and a key that the case leaves out: it knows no layout and no window, but causal. FILE is JSON: batch, heads,
kv_heads, seq, head_size, dtype, causal, window, block_q, block_k, layout_heads, row_ptr and col_idx (null: every block), and
backward. Values are random, from [-1, 1). Times are by CUDA events, or by the CPU's clock.
"""

import json
import sys
import time

PART = 64  # neighbouring queries that are compared at once
NEAR = {"bf16": 2e-2, "fp16": 4e-3, "fp32": 1e-4, "fp64": 1e-9}  # of the largest |O|: room for rounding P and O
FAR = 1 << 30  # more than any distance of a query and a key
RULE_BLOCK = 128  # of the BlockMask where there is no layout


def main():
    try:
        import torch
    except ImportError as error:
        say({"error": f"torch is not installed for {sys.executable}: {error}"})
        return
    try:
        device = torch.device(sys.argv[1])
        if device.type == "cuda":
            torch.cuda.set_device(device)  # events and streams are those of this one
        torch.zeros(1, device=device)  # fails where the device is not there
    except Exception as error:  # whatever torch says, it is not there
        say({"error": f"torch {torch.__version__} cannot use {sys.argv[1]}: {first_line(error)}"})
        return
    say({"version": torch.__version__})
    case = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "case":
                case = None  # its memory is free before that of the next is taken
                if device.type == "cuda":
                    torch.cuda.empty_cache()
                case = Case(torch, device, request["path"])
                say({})
            elif request["op"] == "way":
                say(case.enter(request["way"]))
            else:
                say({"seconds": case.seconds(case.ways[request["way"]], request["repeats"])})
        except Exception as error:  # of any kind: the next way or case may do
            say({"error": first_line(error)})


def say(answer):
    print(json.dumps(answer), flush=True)


def first_line(error):
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


class Case:
    """Attention whose operands are on the device."""

    def __init__(self, torch, device, path):
        with open(path, encoding="utf-8") as file:
            self.spec = spec = json.load(file)
        self.torch, self.device, self.ways = torch, device, {}
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}[spec["dtype"]]
        torch.manual_seed(0)

        def random(heads):
            shape = (spec["batch"], heads, spec["seq"], spec["head_size"])
            return torch.rand(shape, device=device, dtype=torch.float32).mul_(2).sub_(1).to(dtype)

        self.q, self.k, self.v = random(spec["heads"]), random(spec["kv_heads"]), random(spec["kv_heads"])
        self.grad = random(spec["heads"]) if spec["backward"] else None
        self.group = spec["heads"] // spec["kv_heads"]
        # The keys j that query i sees lie at distances j - i of these limits.
        self.low = -spec["window"] if spec["window"] else -FAR
        self.high = 0 if spec["causal"] else spec["window"] or FAR

    def enter(self, way):
        """Computes and checks the case in a way, and says how that computes."""
        run, entry, dense = {"sdpa": self.sdpa, "flex": self.flex, "fa3": self.fa3}[way]()
        with self.torch.set_grad_enabled(self.grad is not None):
            self.check(run(self.q, self.k, self.v), dense)
        self.ways[way] = self.timed(run)
        return {"entry": entry, "dense": dense}

    def timed(self, run):
        """A function of no arguments that does what is timed."""
        if self.grad is None:
            return lambda: run(self.q, self.k, self.v)
        leaves = [x.detach().requires_grad_() for x in (self.q, self.k, self.v)]
        out = run(*leaves)
        return lambda: self.torch.autograd.grad(out, leaves, self.grad, retain_graph=True)

    def is_dense(self):
        return self.spec["row_ptr"] is None and not self.spec["window"]

    def sdpa(self):
        torch, causal = self.torch, self.spec["causal"]
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def run(q, k, v):
            if self.device.type != "cuda":
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=self.group > 1)
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=self.group > 1)

        name = f"cuDNN {torch.backends.cudnn.version()} by torch" if self.device.type == "cuda" else "scaled_dot_product_attention of torch"
        return run, f"{name} {torch.__version__}, {'causal' if causal else 'dense'}", not self.is_dense()

    def fa3(self):
        try:
            from flash_attn_interface import flash_attn_func
        except ImportError as error:
            raise RuntimeError(f"flash_attn_interface of FlashAttention-3 is not installed: {error}") from None

        causal, window = self.spec["causal"], 0 if self.spec["row_ptr"] else self.spec["window"]
        size = (window, 0 if causal else window) if window else (-1, -1)

        def run(q, k, v):
            out = flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=causal, window_size=size)
            return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

        rules = (["causal"] if causal else []) + ([f"window {window}"] if window else []) or ["dense"]
        return run, f"FlashAttention-3, {', '.join(rules)}", self.spec["row_ptr"] is not None

    def flex(self):
        torch = self.torch
        if self.device.type != "cuda":
            raise RuntimeError("FlexAttention is timed on a GPU")
        from torch.nn.attention.flex_attention import flex_attention

        torch._dynamo.reset()  # each case is compiled for its sizes, without a limit on how many
        compiled, mask = torch.compile(flex_attention, dynamic=False), self.block_mask()
        blocks = "every block" if mask is None else "blocks of {}x{}".format(*mask.BLOCK_SIZE)
        return (lambda q, k, v: compiled(q, k, v, block_mask=mask, enable_gqa=self.group > 1)), f"FlexAttention of torch {torch.__version__}, {blocks}", False

    def block_mask(self):
        """The layout and the rules as a BlockMask; None where nothing is hidden."""
        torch, spec = self.torch, self.spec
        if self.is_dense() and not spec["causal"]:
            return None
        from torch.nn.attention.flex_attention import BlockMask

        bq, bk = (spec["block_q"], spec["block_k"]) if spec["row_ptr"] else (RULE_BLOCK, RULE_BLOCK)
        if spec["seq"] % bq or spec["seq"] % bk:
            raise ValueError("its blocks must divide the sequence")
        kept = self.kept(bq, bk)
        i, j = torch.arange(kept.shape[1], device=self.device)[:, None] * bq, torch.arange(kept.shape[2], device=self.device)[None, :] * bk
        nearest, furthest = j - i - (bq - 1), j - i + (bk - 1)
        whole = kept & (nearest >= self.low) & (furthest <= self.high)
        partial = kept & ~whole & (furthest >= self.low) & (nearest <= self.high)

        def lists(mask):
            return mask.sum(-1, dtype=torch.int32)[None], torch.argsort(mask.to(torch.int8), dim=-1, descending=True, stable=True).to(torch.int32)[None]

        low, high = self.low, self.high
        rule = None
        if spec["causal"] or spec["window"]:
            def rule(batch, head, query, key):
                return (key - query >= low) & (key - query <= high)
        return BlockMask.from_kv_blocks(*lists(partial), *lists(whole), BLOCK_SIZE=(bq, bk), mask_mod=rule)

    def kept(self, bq, bk):
        """Which blocks the layout has, (heads or 1, block rows, block columns)."""
        torch, spec = self.torch, self.spec
        rows, columns = -(-spec["seq"] // bq), -(-spec["seq"] // bk)
        if spec["row_ptr"] is None:
            return torch.ones(1, rows, columns, dtype=torch.bool, device=self.device)
        counts = torch.tensor(spec["row_ptr"], device=self.device).diff()
        kept = torch.zeros(len(counts), columns, dtype=torch.bool, device=self.device)
        row = torch.repeat_interleave(torch.arange(len(counts), device=self.device), counts)
        kept[row, torch.tensor(spec["col_idx"], device=self.device, dtype=torch.int64)] = True
        kept = kept.view(spec["layout_heads"], rows, columns)
        return kept if spec["layout_heads"] == 1 else kept.repeat_interleave(spec["heads"] // spec["layout_heads"], 0)

    def check(self, out, dense):
        """Compares some queries of the first, a middle and the last head with attention in float64."""
        torch, spec = self.torch, self.spec
        kept = None
        if spec["row_ptr"] and not dense:
            kept = self.kept(spec["block_q"], spec["block_k"])
        part = min(PART, spec["seq"])
        for head, begin in ((0, 0), (spec["heads"] // 2, spec["seq"] // 2 // part * part), (spec["heads"] - 1, spec["seq"] - part)):
            rows = slice(begin, begin + part)
            q, k, v = self.q[0, head, rows].double(), self.k[0, head // self.group].double(), self.v[0, head // self.group].double()
            distance = torch.arange(spec["seq"], device=self.device)[None, :] - torch.arange(begin, begin + part, device=self.device)[:, None]
            sees = distance <= (0 if spec["causal"] else FAR) if dense else (distance >= self.low) & (distance <= self.high)
            if kept is not None:
                blocks = kept[head % kept.shape[0]]
                of_rows = blocks[torch.arange(begin, begin + part, device=self.device) // spec["block_q"]]
                sees = sees & of_rows.repeat_interleave(spec["block_k"], 1)[:, : spec["seq"]]
            scores = (q @ k.t() * spec["head_size"] ** -0.5).masked_fill(~sees, float("-inf"))
            want = torch.softmax(scores, -1).nan_to_num(0.0) @ v  # of a query that sees no key: 0
            error = (out[0, head, rows].double() - want).abs().max().item()
            if not error <= NEAR[spec["dtype"]] * max(1.0, want.abs().max().item()):
                raise RuntimeError(f"a wrong result: O of head {head} is off by {error:.3g}")

    def seconds(self, call, repeats):
        """Times single calls, each behind another one that is not timed."""
        torch, times = self.torch, []
        with torch.set_grad_enabled(self.grad is not None):
            for _ in range(repeats):
                call()
                if self.device.type != "cuda":
                    start = time.perf_counter()
                    call()
                    times.append(time.perf_counter() - start)
                    continue
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                call()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e-3)
        return times


if __name__ == "__main__":
    main()
