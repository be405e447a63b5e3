# SPDX-License-Identifier: Apache-2.0
"""Runs the attention tests of others, as they are, with sparsek in place of their kernels.

    python python/tests/suites/run.py flashattention CLONE [-n 8 and other arguments of pytest]

CLONE: a clone of the project's repository, which has the commit that is named here, or a folder with its files. xFormers itself comes
from package xformers 0.0.35, installed or in PYTHONPATH; its tests and FlashInfer's need SciPy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent


class Suite(NamedTuple):
    """Files of a repository."""

    commit: str
    folder: str  # in the repository
    modules: tuple[str, ...]  # with tests
    others: tuple[str, ...] = ()
    root: str = ""  # where they are put: the tests of xFormers are a package


SUITES = {
    "flashattention": Suite(
        "0251105a2fb19d2957484b7f023cd8c115286ced",
        "tests/cute",
        ("test_mask_mod.py", "test_mask_mod_varlen.py", "test_block_sparsity.py"),
        ("mask_mod_definitions.py",),
    ),
    "flashinfer": Suite(
        "fb28d7242b3506a2348265962041acc1fb56cca4",
        "tests/attention",
        ("test_vsa_block_sparse.py", "test_vsa_block_sparse_sm120.py", "test_block_sparse.py"),
    ),
    "xformers": Suite(
        "03b91d7d9ff295ae68a320e2e733dd6c2ef8f342", "tests", ("test_mem_eff_attention.py",), ("utils.py", "__init__.py"), "tests"
    ),
}


def taken(suite: Suite, clone: Path, into: Path) -> Path:
    """The folder with the files: `into`, or the given one where that is no repository."""
    if not any((clone / of_git).exists() for of_git in (".git", "HEAD")):
        return clone
    (into / suite.root).mkdir(exist_ok=True)
    for name in suite.modules + suite.others:
        shown = subprocess.run(["git", "-C", str(clone), "show", f"{suite.commit}:{suite.folder}/{name}"], capture_output=True, check=True)
        (into / suite.root / name).write_bytes(shown.stdout)
    return into


def main(arguments: list[str]) -> int:
    """pytest's exit status."""
    if len(arguments) < 2 or arguments[0] not in SUITES:
        print(f"{__doc__}\nSuites: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    name, suite = arguments[0], SUITES[arguments[0]]
    paths = [str(HERE.parents[1] / "src"), str(HERE)]
    sys.path[:0] = paths
    # Processes of pytest-xdist have it too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH")]))
    plugins = [
        "-p",
        f"{name}_by_sparsek",
        *(part for plugin in ("cacheprovider", "benchmark", "logging") for part in ("-p", f"no:{plugin}")),
    ]
    with tempfile.TemporaryDirectory() as folder:
        try:
            root = taken(suite, Path(arguments[1]).resolve(), Path(folder))
        except subprocess.CalledProcessError as failed:
            print(f"{arguments[1]} is no clone with commit {suite.commit}: {failed.stderr.decode().strip()}", file=sys.stderr)
            return 2
        modules = [str(Path(suite.root) / module) for module in suite.modules]
        os.chdir(root)
        status = pytest.main(["-c", os.devnull, "--rootdir", ".", "-q", *plugins, *modules, *arguments[2:]])
        os.chdir(HERE)
        return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
