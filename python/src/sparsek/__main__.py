# SPDX-License-Identifier: Apache-2.0
"""python -m sparsek runs the program sparsek, with the same arguments and exit codes."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from .errors import LibraryError


def program() -> str:
    """The program that came with the package, or that its checkout built, or that is found in PATH."""
    package = Path(__file__).resolve().parent
    candidates = [package / "bin" / "sparsek"]
    for folder in package.parents:
        if (folder / "go.mod").exists():
            candidates.append(folder / "build" / "bin" / "sparsek")
            break
    for path in candidates:
        if path.exists():
            return str(path)
    found = shutil.which("sparsek")
    # The script of that name which an installer makes of this module would only come back to here.
    if found is None or Path(found).parent == Path(sys.executable).parent:
        tried = ", ".join(str(path) for path in candidates)
        raise LibraryError(f"the program sparsek was not found: install the wheel that has it, or build it; tried {tried} and PATH")
    return found


def main() -> None:
    """Becomes the program."""
    try:
        path = program()
    except LibraryError as error:
        sys.exit(f"sparsek: {error}")
    os.execv(path, ["sparsek", *sys.argv[1:]])


if __name__ == "__main__":
    main()
