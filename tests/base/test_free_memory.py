"""How much memory there is, on machines of several kinds."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from microagg.base import free_memory as memory

GIB = 1 << 30
V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group(folder: Path, names: tuple[str, str, str], limit: object, used: int, cached: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 17\n{names[2]} {cached}\n")


def process(root: Path, line: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"3:cpu:/\n{line}\n")


def left(root: Path) -> float:
    return min(memory._left_in_containers(root))


def test_this_machine_has_memory():
    assert 1 << 20 < memory.free_memory() <= psutil.virtual_memory().total


def test_no_container_sets_no_limit(tmp_path):
    assert left(tmp_path) == float("inf")  # as on macOS and Windows
    process(tmp_path, "0::/user.slice")
    assert left(tmp_path) == float("inf")


def test_a_container_of_version_2(tmp_path):
    process(tmp_path, "0::/docker/abc")
    group(tmp_path / "sys/fs/cgroup/docker/abc", V2, 2 * GIB, 1 * GIB, GIB // 4)
    assert left(tmp_path) == 1.25 * GIB


def test_a_container_of_version_1(tmp_path):
    process(tmp_path, "4:memory:/docker/abc")
    group(tmp_path / "sys/fs/cgroup/memory/docker/abc", V1, 2 * GIB, 1 * GIB, 0)
    assert left(tmp_path) == 1 * GIB


def test_the_group_around_it_may_be_tighter(tmp_path):
    process(tmp_path, "0::/pod/abc")
    group(tmp_path / "sys/fs/cgroup/pod/abc", V2, "max", 1 * GIB, 0)
    group(tmp_path / "sys/fs/cgroup/pod", V2, 3 * GIB, 2 * GIB, 0)
    assert left(tmp_path) == 1 * GIB


def test_a_path_of_the_host_leads_to_the_top(tmp_path):
    process(tmp_path, "0::/host/path/that/is/not/here")
    group(tmp_path / "sys/fs/cgroup", V2, 4 * GIB, 5 * GIB, 0)
    assert left(tmp_path) == 0.0


@pytest.mark.parametrize("available", [3 * GIB, 5 * GIB])
def test_the_tighter_of_machine_and_container_counts(monkeypatch, available):
    machine = SimpleNamespace(available=available)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    monkeypatch.setattr(memory, "_left_in_containers", lambda root: iter([float("inf"), 4.0 * GIB]))
    assert memory.free_memory() == min(available, 4 * GIB)
