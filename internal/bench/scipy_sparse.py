# SPDX-License-Identifier: Apache-2.0
"""Times SciPy's product of a block-sparse matrix by a dense one, on one thread: it has no other.

Usage: python3 scipy_sparse.py cpu. It reads and prints what torch_bsr.py does. It compares the BSR and the CSR format.
"""

import json
import sys
import time

WARM_UP = 1  # products of each way, before they are compared
SAMPLES = 3  # of each way, to compare them
TOLERANCE = {"fp32": 1e-4, "fp64": 1e-12}  # of the largest |C|: room for any order of sums


def main():
    try:
        import numpy
        import scipy
        import scipy.sparse
    except ImportError as error:
        say({"error": f"scipy is not installed for {sys.executable}: {error}"})
        return
    say({"version": scipy.__version__, "device": "CPU"})
    case = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "case":
                case = None  # its memory is free before that of the next is taken
                case = Case(numpy, scipy.sparse, request["path"])
                say({"entry": case.entry})
            else:
                say({"seconds": case.seconds(case.entry, request["repeats"])})
        except Exception as error:  # of any kind: the next case may do
            say({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


def say(answer):
    print(json.dumps(answer), flush=True)


class Case:
    """A product with its operands."""

    def __init__(self, numpy, sparse, path):
        with open(path, encoding="utf-8") as file:
            spec = json.load(file)
        self.numpy, self.spec, self.turn = numpy, spec, 0
        if spec["dtype"] not in TOLERANCE:
            raise ValueError(f"no sums of {spec['dtype']}")
        if spec["m"] % spec["block_m"] or spec["k"] % spec["block_k"]:
            raise ValueError("M and K must be multiples of the block")
        dtype = numpy.float32 if spec["dtype"] == "fp32" else numpy.float64
        random = numpy.random.default_rng(0)

        def uniform(*shape):
            return random.uniform(-1, 1, shape).astype(dtype)

        values = uniform(len(spec["col_idx"]), spec["block_m"], spec["block_k"])
        columns = () if spec["n"] == 1 else (spec["n"],)
        bsr = sparse.bsr_matrix((values, spec["col_idx"], spec["row_ptr"]), shape=(spec["m"], spec["k"]))
        self.matrices = {"csr @ B": bsr.tocsr()}
        if spec["block_m"] * spec["block_k"] > 1:
            self.matrices["bsr @ B"] = bsr
        self.inputs = [uniform(spec["k"], *columns) for _ in range(spec["copies"])]
        self.entry = self.fastest()

    def fastest(self):
        """Compares the two formats with each other, times them, and gives the name of the fastest."""
        results = [matrix @ self.inputs[0] for matrix in self.matrices.values()]
        largest = max(1.0, float(self.numpy.abs(results[0]).max(initial=0)))
        for other in results[1:]:
            error = float(self.numpy.abs(results[0] - other).max(initial=0))
            if not error <= TOLERANCE[self.spec["dtype"]] * largest:
                raise RuntimeError(f"BSR and CSR differ by {error:.3g}")
        medians = {}
        for name in self.matrices:
            self.seconds(name, WARM_UP)
            medians[name] = sorted(self.seconds(name, SAMPLES))[SAMPLES // 2]
        return min(medians, key=medians.get)

    def seconds(self, name, repeats):
        """Times products."""
        matrix, times = self.matrices[name], []
        for _ in range(repeats):
            self.turn += 1
            b = self.inputs[self.turn % len(self.inputs)]
            start = time.perf_counter()
            matrix @ b
            times.append(time.perf_counter() - start)
        return times


if __name__ == "__main__":
    main()
