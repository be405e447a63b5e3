# SPDX-License-Identifier: Apache-2.0
"""What a user of the wheel does, in the environment at sys.argv[1]."""

import subprocess
import sys

import numpy as np

import sparse_autotune
import sparsek

values = np.ones((2, 16, 16), np.float32)
a = (values, np.array([0, 1, 2]), np.array([1, 0]), (32, 32))
b = np.arange(32 * 4, dtype=np.float32).reshape(32, 4)
c = sparse_autotune.bsr_gemm(a, b)
np.testing.assert_array_equal(c[0], b[16:].sum(0))
np.testing.assert_array_equal(c[16], b[:16].sum(0))
assert sparsek.library_path().startswith(sys.argv[1]), sparsek.library_path()
for command in ([sys.executable, "-m", "sparsek"], [sys.argv[1] + "/bin/sparsek"]):
    said = subprocess.run([*command, "version"], check=True, capture_output=True, text=True).stdout
    assert sparsek.__version__ in said, said
said = subprocess.run(
    [sys.argv[1] + "/bin/sparsek", "run", "--pattern", "random", "--size", "256x64x256", "--block", "32x32", "--check"],
    check=True,
    capture_output=True,
    text=True,
).stdout
print(f"the wheel of sparsek {sparsek.__version__} works: {sparsek.library_path()}")
