# SPDX-License-Identifier: Apache-2.0
"""Times torch's product of a block-sparse matrix (BSR) by a dense one.

Usage: python3 torch_bsr.py DEVICE        DEVICE: cpu, or cuda:N

It prints one line of JSON when it is ready, and one for each line of JSON that it reads:

    {"op": "case", "path": FILE}          -> {"entry": NAME}, the way of torch's that is the fastest
    {"op": "time", "repeats": N}          -> {"seconds": [...]}, of N products of the last case

or {"error": TEXT} where that cannot be done. FILE is JSON: op, m, n, k, block_m, block_k, dtype, row_ptr, col_idx and
copies. op is "dsd" (A B), "dds" (B A), "dds_t" (B A^T) or "sdd" (X B where A has blocks); A is m x k. Values are random,
from [-1, 1); `copies` sets of operands are taken in turn, so that the caches of a GPU hold none of the last product. Or op is
"experts", gelu(X W1) W2 of the rows of each expert, by grouped products: dtype, width of X, hidden and counts, the rows of each.
Times are by CUDA events, or by the CPU's clock.
"""

import json
import sys
import time

WARM_UP = 3  # products of each way, before they are compared
SAMPLES = 5  # of each way, to compare them
TOLERANCE = {"bf16": 2e-2, "fp16": 4e-3, "fp32": 1e-4}  # of the largest |C|: room for rounding C and any order of sums


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
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    except Exception as error:  # whatever torch says, it is not there
        say({"error": f"torch {torch.__version__} cannot use {sys.argv[1]}: {first_line(error)}"})
        return
    say({"version": torch.__version__, "device": name})
    case = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "case":
                case = None  # its memory is free before that of the next is taken
                if device.type == "cuda":
                    torch.cuda.empty_cache()
                case = made(torch, device, request["path"])
                say({"entry": case.entry})
            else:
                say({"seconds": case.seconds(case.entry, request["repeats"])})
        except Exception as error:  # of any kind: the next case may do
            say({"error": first_line(error)})


def say(answer):
    print(json.dumps(answer), flush=True)


def first_line(error):
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def made(torch, device, path):
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    return (Experts if spec["op"] == "experts" else Case)(torch, device, spec)


class Case:
    """A product whose operands are on the device."""

    def __init__(self, torch, device, spec):
        self.torch, self.device, self.spec, self.turn = torch, device, spec, 0
        if spec["m"] % spec["block_m"] or spec["k"] % spec["block_k"]:
            raise ValueError("torch needs M and K to be multiples of the block")
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[spec["dtype"]]
        torch.manual_seed(0)
        row_ptr = torch.tensor(spec["row_ptr"], dtype=torch.int32, device=device)
        col_idx = torch.tensor(spec["col_idx"], dtype=torch.int32, device=device)

        def random(*shape):
            return torch.rand(shape, device=device, dtype=torch.float32).mul_(2).sub_(1).to(dtype)

        m, n, k = spec["m"], spec["n"], spec["k"]
        shape_b = {"dsd": (k, n), "dds": (n, m), "dds_t": (n, k), "sdd": (n, k)}.get(spec["op"])
        if shape_b is None:
            raise ValueError(f"torch has no product {spec['op']} of a BSR matrix")
        self.sets = []
        for _ in range(spec["copies"]):
            values = random(len(spec["col_idx"]), spec["block_m"], spec["block_k"])
            a = torch.sparse_bsr_tensor(row_ptr, col_idx, values, size=(m, k), check_invariants=False)
            # C of A B, or X of SDD
            third = torch.empty(m, n, dtype=dtype, device=device) if spec["op"] == "dsd" else random(m, n) if spec["op"] == "sdd" else None
            self.sets.append((a, random(*shape_b), third))
        self.entry = self.fastest()

    def ways(self):
        """Torch's ways to multiply, by name."""
        op, torch = self.spec["op"], self.torch
        if op == "dds":
            return {"B @ A": lambda a, b, _: b @ a}
        if op == "dds_t":
            return {"linear": lambda a, b, _: torch.nn.functional.linear(b, a)}
        if op == "sdd":
            ways = {"sparse.sampled_addmm": lambda a, b, x: torch.sparse.sampled_addmm(a, x, b, beta=0)}
        else:
            ways = {"A @ B": lambda a, b, _: a @ b}
        if self.device.type == "cuda":
            try:
                from torch.sparse._triton_ops import bsr_dense_addmm, sampled_addmm
            except ImportError:
                return ways
            if op == "sdd":
                ways["triton sampled_addmm"] = lambda a, b, x: sampled_addmm(a, x, b, beta=0)
            else:
                ways["bsr_dense_addmm"] = lambda a, b, c: bsr_dense_addmm(c, a, b, beta=0, out=c)
        return ways

    def fastest(self):
        """Checks and times each way, and gives the name of the fastest."""
        faults, medians = [], {}
        self.multiply = self.ways()
        for name in list(self.multiply):
            try:
                self.check(name)
                self.seconds(name, WARM_UP)
                medians[name] = sorted(self.seconds(name, SAMPLES))[SAMPLES // 2]
            except Exception as error:  # torch refuses many a shape, in many a way
                faults.append(f"{name}: {first_line(error)}")
        if not medians:
            raise RuntimeError("torch multiplies this by none of its ways: " + "; ".join(faults))
        return min(medians, key=medians.get)

    def check(self, name):
        """Compares what the first block row that has blocks gives with a product of dense blocks in float64."""
        a, b, third = self.sets[0]
        spec, torch = self.spec, self.torch
        result = self.multiply[name](a, b, third)
        row_ptr, bm, bk = spec["row_ptr"], spec["block_m"], spec["block_k"]
        row = next((r for r in range(len(row_ptr) - 1) if row_ptr[r + 1] > row_ptr[r]), None)
        if row is None:
            return
        rows, entries = slice(row * bm, (row + 1) * bm), range(row_ptr[row], row_ptr[row + 1])
        columns = [slice(spec["col_idx"][i] * bk, (spec["col_idx"][i] + 1) * bk) for i in entries]
        blocks = [a.values()[i].double() for i in entries]
        if spec["op"] == "dsd":
            got, want = result[rows], sum(v @ b[c].double() for v, c in zip(blocks, columns))
        elif spec["op"] == "dds_t":
            got, want = result[:, rows], sum(b[:, c].double() @ v.t() for v, c in zip(blocks, columns))
        elif spec["op"] == "dds":  # of the first of its columns, which other block rows have too
            column, first = spec["col_idx"][entries[0]], columns[0]
            got = result[:, first]
            want = sum(b[:, r * bm : (r + 1) * bm].double() @ a.values()[i].double()
                       for r in range(len(row_ptr) - 1) for i in range(row_ptr[r], row_ptr[r + 1]) if spec["col_idx"][i] == column)
        else:
            got = result.values()[entries[0] : entries[-1] + 1]
            want = torch.stack([third[rows].double() @ b[:, c].double() for c in columns])
        error = (got.double() - want).abs().max().item()
        if not error <= TOLERANCE[spec["dtype"]] * max(1.0, want.abs().max().item()):
            raise RuntimeError(f"a wrong result: C is off by {error:.3g}")

    def seconds(self, name, repeats):
        """Times single products, each behind another one that is not timed."""
        torch, multiply, times = self.torch, self.multiply[name], []
        for _ in range(repeats):
            multiply(*self.next())
            if self.device.type != "cuda":
                operands, start = self.next(), time.perf_counter()
                multiply(*operands)
                times.append(time.perf_counter() - start)
                continue
            for _ in range(len(self.sets)):  # the device is busy while the timed product is enqueued
                multiply(*self.next())
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            multiply(*self.next())
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e-3)
        return times

    def next(self):
        self.turn += 1
        return self.sets[self.turn % len(self.sets)]


class Experts(Case):
    """A layer of experts whose operands are on the device. They are larger than its caches."""

    def __init__(self, torch, device, spec):
        self.torch, self.device, self.spec, self.turn = torch, device, spec, 0
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[spec["dtype"]]
        torch.manual_seed(0)

        def random(*shape):
            return torch.empty(shape, device=device, dtype=dtype).uniform_(-1, 1)

        width, hidden, counts = spec["width"], spec["hidden"], spec["counts"]
        offsets = torch.tensor(counts, device=device).cumsum(0).int()
        x, w1, w2 = random(sum(counts), width), random(len(counts), hidden, width), random(len(counts), hidden, width)
        self.sets = [(x, w1, w2)]
        gelu, grouped = torch.nn.functional.gelu, torch._grouped_mm

        def layer(x, w1, w2):
            return grouped(gelu(grouped(x, w1.transpose(1, 2), offs=offsets)), w2, offs=offsets)

        self.layer = layer
        self.entry = self.fastest()

    def ways(self):
        return {"_grouped_mm": self.layer}

    def check(self, name):
        """Compares what the first expert that has rows gives with products in float64."""
        x, w1, w2 = self.sets[0]
        counts = self.spec["counts"]
        expert = next((i for i, n in enumerate(counts) if n > 0), None)
        if expert is None:
            return
        rows = x[: counts[expert]]
        got = self.layer(x, w1, w2)[: counts[expert]].double()
        h = self.torch.nn.functional.gelu(rows.double() @ w1[expert].double().t()).to(x.dtype)
        want = h.double() @ w2[expert].double()
        error = (got - want).abs().max().item()
        if not error <= TOLERANCE[self.spec["dtype"]] * max(1.0, want.abs().max().item()):
            raise RuntimeError(f"a wrong result: Y is off by {error:.3g}")


if __name__ == "__main__":
    main()
