"""How much memory this process may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def free_memory() -> int:
    """Return the bytes of memory that this process may still take: of the machine and of its container."""
    import psutil

    return int(min(psutil.virtual_memory().available, *_left_in_containers(Path("/"))))


def _left_in_containers(root: Path) -> Iterator[float]:
    """Yield what the control groups of this process leave it, those that contain others included.

    Control groups of Linux limit containers, and the memory of the machine says nothing about them. What is
    only cached of files is given up when it is needed, so it counts as free.
    """
    yield float("inf")
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            top = root / "sys/fs/cgroup/memory"
        else:
            continue
        # Within a container the path may be that of the host, and the container's own group is the top.
        folder = top / path.lstrip("/")
        for group in (folder, *folder.parents):
            if group == top.parent:
                break
            yield _left_in(group, *names)


def _left_in(group: Path, limit: str, used: str, cached: str) -> float:
    """Return the bytes that one control group leaves its processes; infinite where it has no limit."""
    try:
        most = (group / limit).read_text(encoding="ascii").strip()
        if most == "max":
            return float("inf")
        used_bytes = int((group / used).read_text(encoding="ascii"))
        facts = (group / "memory.stat").read_text(encoding="ascii").splitlines()
        given_up = next((int(fact.split()[1]) for fact in facts if fact.split()[0] == cached), 0)
    except OSError:
        return float("inf")
    return max(float(most) - used_bytes + given_up, 0.0)
