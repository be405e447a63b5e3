# SPDX-License-Identifier: Apache-2.0
"""Block-sparse layers on two and four ranks: tensor parallelism, DDP, FSDP2, checkpoints. distributed_ranks.py runs the cases."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("skipped: this torch has no torch.distributed", allow_module_level=True)

HERE, SECONDS = Path(__file__).resolve().parent, 120
SHARED_BY = "SPARSEK_TEST_RANKS_PER_GPU"
CASES = [
    "parts_compute_the_whole",
    "blocks_are_dealt_evenly",
    "training_is_that_of_one_process",
    "all_take_what_the_first_rank_has",
    "dtensors_and_wrong_styles",
    "it_compiles",
    "ddp_prunes_alike",
    "fsdp_moves_blocks_alike",
    "tensor_parallelism_under_fsdp",
]


def environment_of(rank: int, ranks: int, device: str) -> dict[str, str]:
    """A rank's environment. Ranks that share a GPU are hosts of their own to NCCL, which refuses two of one host on one GPU."""
    made = {**os.environ, "OMP_NUM_THREADS": "1"}
    if device == "cuda" and ranks > torch.cuda.device_count():
        made |= {
            "NCCL_HOSTID": f"rank{rank}",
            "NCCL_NET": "Socket",
            "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_IB_DISABLE": "1",
            "NCCL_MNNVL_ENABLE": "0",  # which would find that these hosts have an NVLink in common
        }
    return made


class Ranks:
    """Processes that run cases together."""

    def __init__(self, count: int, folder: Path, device: str) -> None:
        self.folder, self.log = folder, open(folder / f"log{count}", "w+")  # noqa: SIM115  # for as long as the processes
        program = [sys.executable, str(HERE / "distributed_ranks.py")]
        self.processes = [
            subprocess.Popen(
                [*program, str(rank), str(count), str(folder), device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env=environment_of(rank, count, device),
                cwd=HERE,
                text=True,
            )
            for rank in range(count)
        ]

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
            process.stdin.close()
        for process in self.processes:
            assert process.stdout is not None
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self.log.close()


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    """Where the ranks are: those of gloo on the CPU, those of NCCL on GPUs."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(device: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ranks of one device write."""
    return tmp_path_factory.mktemp(f"ranks-{device}")


def started(count: int, folder: Path, device: str) -> Iterator[Ranks]:
    """So many ranks. On GPUs each has its own, or shares it with as many as the environment allows."""
    gpus, each = torch.cuda.device_count(), int(os.environ.get(SHARED_BY, "1"))
    if device == "cuda" and gpus * each < count:
        pytest.skip(f"skipped: {count} ranks need {-(-count // each)} GPUs, and there are {gpus}: see {SHARED_BY} in docs/torch.md")
    made = Ranks(count, folder, device)
    try:
        made.hear("ready")
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def two_ranks(folder: Path, device: str) -> Iterator[Ranks]:
    """Two, for all tests of a device."""
    yield from started(2, folder, device)


@pytest.fixture(scope="module")
def four_ranks(folder: Path, device: str) -> Iterator[Ranks]:
    """Four, for all tests of a device."""
    yield from started(4, folder, device)


@pytest.mark.parametrize("case", CASES)
def test_on_two_ranks(two_ranks: Ranks, case: str) -> None:
    two_ranks.run(case)


@pytest.mark.parametrize("case", CASES)
def test_on_four_ranks(four_ranks: Ranks, case: str) -> None:
    four_ranks.run(case)


def read_by_one_process(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads here, without a process group, what ranks have written."""
    monkeypatch.setattr(sys, "argv", ["", "0", "1", str(ranks.folder), "cpu"])
    import distributed_data_cases as cases

    cases.case_checkpoints_are_read(str(len(ranks.processes)), ranks.folder)


@pytest.mark.filterwarnings("ignore::FutureWarning:torch", "ignore::DeprecationWarning:torch", "ignore::UserWarning:torch")
def test_checkpoints(two_ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    two_ranks.run("checkpoints")
    read_by_one_process(two_ranks, monkeypatch)


@pytest.mark.filterwarnings("ignore::FutureWarning:torch", "ignore::DeprecationWarning:torch", "ignore::UserWarning:torch")
def test_checkpoints_of_four_ranks(four_ranks: Ranks, two_ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    four_ranks.run("checkpoints")
    two_ranks.run("checkpoints_are_read 4")
    read_by_one_process(four_ranks, monkeypatch)
