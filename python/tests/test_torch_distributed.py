# SPDX-License-Identifier: Apache-2.0
"""Block-sparse layers on two ranks: tensor parallelism, DDP, FSDP2, checkpoints. distributed_ranks.py runs the cases."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("skipped: this torch has no torch.distributed", allow_module_level=True)

HERE, SECONDS = Path(__file__).resolve().parent, 120


class Ranks:
    """Processes that run cases together."""

    def __init__(self, count: int, folder: Path, device: str) -> None:
        self.folder, self.log = folder, open(folder / "log", "w+")  # noqa: SIM115  # for as long as the processes
        program = [sys.executable, str(HERE / "distributed_ranks.py")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.processes = [
            subprocess.Popen(
                [*program, str(rank), str(count), str(folder), device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env=environment,
                cwd=HERE,
                text=True,
            )
            for rank in range(count)
        ]
        self.hear("ready")

    def hear(self, word: str) -> None:
        """Fails unless each process says this."""
        said = []
        for process in self.processes:
            assert process.stdout is not None
            ready = select.select([process.stdout], [], [], SECONDS)[0]
            said.append(process.stdout.readline().strip() if ready else "nothing")
        if said != [word] * len(said):
            self.log.seek(0)
            pytest.fail(f"the ranks said {said}\n{self.log.read()}")

    def run(self, case: str) -> None:
        """Runs one case on all."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{case}\n")
            process.stdin.flush()
        self.hear("passed")

    def end(self) -> None:
        """Ends them."""
        for process in self.processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self.log.close()


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def ranks(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Ranks]:
    """Two of gloo, and of NCCL where there are two GPUs."""
    if request.param == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("skipped: there are no two GPUs")
    made = Ranks(2, tmp_path_factory.mktemp("ranks"), request.param)
    yield made
    made.end()


@pytest.mark.parametrize(
    "case",
    [
        "parts_compute_the_whole",
        "blocks_are_dealt_evenly",
        "training_is_that_of_one_process",
        "all_take_what_the_first_rank_has",
        "dtensors_and_wrong_styles",
        "it_compiles",
        "ddp_prunes_alike",
        "fsdp_moves_blocks_alike",
        "tensor_parallelism_under_fsdp",
    ],
)
def test_on_two_ranks(ranks: Ranks, case: str) -> None:
    ranks.run(case)


@pytest.mark.filterwarnings("ignore::FutureWarning:torch", "ignore::DeprecationWarning:torch", "ignore::UserWarning:torch")
def test_checkpoints(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks.run("checkpoints")
    # One process reads what two have written.
    monkeypatch.setattr(sys, "argv", ["", "0", "1", str(ranks.folder), "cpu"])
    import distributed_common as cases

    import sparsek.torch.distributed as sd

    for name in ("tensor", "sharded", "plain"):
        model: Any = cases.Mlp(60)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        sd.load(ranks.folder / name, model, optimizer)
        exact = torch.load(ranks.folder / f"{name}.pt")
        monkeypatch.setattr(cases, "RANKS", 2)  # inputs as they had them
        for _ in range(2):
            cases.steps(model, optimizer)
        torch.testing.assert_close(model(cases.inputs()), exact, rtol=1e-7, atol=1e-9)
