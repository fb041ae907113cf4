"""The page while it protects a large table: how soon it answers, and how much memory it takes.

Run by itself, since it takes minutes: python -m benchmarks.page [RECORDS]
"""

from __future__ import annotations

import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from microagg.page.serve import Server

COLUMNS = 10
PATHS = ("protect/live", "plan", "table", "busy", "try")


def main(records: int = 1_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, plan = Path(folder) / "table.csv", Path(folder) / "plan.toml"
        # By another process, whose memory does not count.
        code = "import sys; from benchmarks.page import write; write(sys.argv[1], int(sys.argv[2]))"
        subprocess.run([sys.executable, "-c", code, str(source), str(records)], check=True)
        names = [f"v{j}" for j in range(COLUMNS)]
        plan.write_text(f'microagg = 1\n[[block]]\ncolumns = {names}\nk = 5\neffort = "fast"\n')
        began = time.monotonic()
        by_command = command(source, plan, Path(folder))
        print(f"command: {time.monotonic() - began:.0f} s, at most {by_command:,.0f} MB")
        page(source, plan.read_text(), by_command)


def write(path: str, records: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.lognormal(5, 1, (records, 1)) + rng.normal(0, 40, (records, COLUMNS))
    header = ",".join(f"v{j}" for j in range(COLUMNS))
    np.savetxt(path, values, fmt="%.2f", delimiter=",", header=header, comments="")


def command(source: Path, plan: Path, folder: Path) -> float:
    """Megabytes that the command takes at most for the same files."""
    words = ["protect", source, folder / "safe.csv", "--plan", plan, "--report", folder / "r.html"]
    process = subprocess.Popen([sys.executable, "-m", "microagg", *map(str, words), "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the command ended with {status}")
    return float(usage.ru_maxrss) / 1024


def page(source: Path, plan: str, by_command: float) -> None:
    server = Server([source])
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        visit(server, plan, by_command)
    finally:
        server.end()
        thread.join()


def visit(server: Server, plan: str, by_command: float) -> None:
    line = http.client.HTTPConnection("127.0.0.1", server.port)
    line.request("GET", server.address.partition(str(server.port))[2])
    answer = line.getresponse()
    answer.read()
    cookie = str(answer.headers["set-cookie"]).partition(";")[0]

    def ask(path: str, body: str | None = None) -> float:
        origin = {} if body is None else {"Origin": f"http://127.0.0.1:{server.port}"}
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        headers = {"Cookie": cookie, **origin}
        connection.request(
            "GET" if body is None else "POST", server.keys.home + path, body, headers
        )
        found = connection.getresponse()
        found.read()
        connection.close()
        if found.status != 200:
            raise SystemExit(f"{path}: {found.status}")
        return time.perf_counter() - began

    while server.session.table is None:
        time.sleep(0.1)
    ask("plan", urlencode({"what": "text", "text": plan}))
    ask("protect", "ending=.csv")
    entry = server.session.entries[-1]
    taken, most, own = [], 0.0, 0.0
    while entry.open:
        taken += [ask(path) for path in PATHS]
        worker = server.session.worker
        memory = [resident(os.getpid()), resident(worker and worker.process.pid)]
        own, most = max(own, memory[0]), max(most, sum(memory))
        time.sleep(0.1)
    if entry.state != "done":
        raise SystemExit(entry.words)
    taken.sort()
    print(f"page: {entry.seconds:.0f} s, {len(taken)} answers meanwhile")
    print(f"  median {1000 * statistics.median(taken):.0f} ms, worst {1000 * taken[-1]:.0f} ms")
    print(
        f"  at most {most:,.0f} MB, {own:,.0f} MB of it the server: {most / by_command:.2f} of the command"
    )


def resident(pid: int | None) -> float:
    """Megabytes that a process holds."""
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
    except FileNotFoundError:
        return 0.0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
