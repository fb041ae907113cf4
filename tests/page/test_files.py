"""Files of the page: only from opened folders, uploads within limits, nothing left behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from microagg.errors import InputError
from microagg.page.files import Folders, RequestLimits
from microagg.page.serve import Server
from visitor import Visitor, line_to, served

CANARY = "canary-5512"


@pytest.fixture
def tree(tmp_path):
    """An opened folder beside a secret one, with links between them."""
    opened, secret = tmp_path / "opened", tmp_path / "secret"
    (opened / "deep").mkdir(parents=True)
    secret.mkdir()
    for path in (opened / "a.csv", opened / "deep" / "b.csv", secret / "s.csv"):
        path.write_text(f"x,y\n1,{CANARY}\n")
    (opened / "notes.pdf").write_text("no table")
    (opened / ".hidden.csv").write_text("x\n1\n")
    (opened / "file-link.csv").symlink_to(secret / "s.csv")
    (opened / "folder-link").symlink_to(secret)
    (opened / "inner-link.csv").symlink_to(opened / "a.csv")
    (opened / "loop.csv").symlink_to(opened / "loop.csv")
    return opened


def outside(tree):
    secret = tree.parent / "secret" / "s.csv"
    return [
        secret,
        tree / ".." / "secret" / "s.csv",
        tree / "deep" / ".." / ".." / "secret" / "s.csv",
        tree / "file-link.csv",
        tree / "folder-link" / "s.csv",
        tree / "loop.csv",
        Path(f"{tree}-not/a.csv"),
        tree.parent,
        Path("/etc/passwd"),
        Path("/proc/self/environ"),
        Path("a.csv"),
        Path(""),
        Path("~/a.csv"),
        tree / "no-such.csv",
        Path(str(tree) + "/a.csv\0.csv"),
    ]


def test_ways_that_lead_into_the_opened_folders(tree):
    folders = Folders([tree])
    assert folders.check(tree / "a.csv") == tree / "a.csv"
    assert folders.check(tree / "deep" / ".." / "a.csv") == tree / "a.csv"
    assert folders.check(tree / "inner-link.csv") == tree / "a.csv"


def test_the_list_shows_tables_and_folders_that_may_be_opened(tree):
    found = Folders([tree]).listing(tree)
    assert [path.name for path in found["folders"]] == ["deep"]
    assert [path.name for path, _ in found["files"]] == ["a.csv", "inner-link.csv"]
    assert found["above"] is None
    assert Folders([tree]).listing(tree / "deep")["above"] == tree


def test_what_lies_outside_is_refused(tree, tmp_path, caplog):
    with served(tree, temporary=tmp_path) as server:
        visitor = Visitor(server)
        for path in outside(tree):
            answer = visitor.post("open/path", path=str(path))
            (words,) = visitor.problems(answer)
            assert "folders that it was started with" in words, path
            assert CANARY not in answer.text
        assert server.session.entries == []
        for way in (
            "static/../app.py",
            "static/%2e%2e/app.py",
            "static//etc/passwd",
            "take/1/..%2f..%2flock",
        ):
            assert visitor.get(way).status == 404
    assert CANARY not in caplog.text


def test_a_folder_that_does_not_exist_is_refused_at_the_start(tmp_path):
    with (
        pytest.raises(InputError, match="there is no"),
        served(tmp_path / "nothing.csv", temporary=tmp_path),
    ):
        pass


# Uploads.

SMALL = RequestLimits(upload=2000, form=500)


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A server that takes little."""
    root = tmp_path_factory.mktemp("strict")
    with served(root, temporary=root, limits=SMALL) as server:
        yield server


def uploads(server):
    return [path for path in server.private.rglob("*") if path.parent.name.startswith("upload")]


@pytest.mark.posix
def test_an_upload_is_private_and_removed_with_the_server(tmp_path, caplog):
    with served(tmp_path, temporary=tmp_path) as server:
        visitor = Visitor(server)
        assert visitor.put("../../étude 1.csv", f"x,y\n{CANARY},2\n".encode() * 3).status == 204
        visitor.wait()
        (path,) = uploads(server)
        assert path.name == "étude 1.csv"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert server.session.table.opened.path == path
    assert not server.private.exists()
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    "name", ["", ".csv", "x.exe", "x", "a\0.csv", "x" * 300 + ".csv", "a\n.csv"]
)
def test_names_that_are_none(strict, name):
    visitor = Visitor(strict)
    assert visitor.put(name, b"x\n1\n").status == 400
    assert uploads(strict) == []


@pytest.mark.parametrize(
    ("size", "pieces"),
    [(f"Content-Length: {10**12}", 0), ("Transfer-Encoding: chunked", 5)],
    ids=["said", "not said"],
)
def test_a_huge_upload_is_refused_before_all_of_it_is_sent(strict, caplog, size, pieces):
    with line_to(strict, head(Visitor(strict), size)) as line:
        with contextlib.suppress(OSError):
            for _ in range(pieces):
                line.sendall(b"%x\r\n%s\r\n" % (1000, b"x" * 1000))
        assert line.recv(100).startswith(b"HTTP/1.1 413")
    assert uploads(strict) == []
    assert pieces or "At most" in caplog.text


@pytest.mark.parametrize("pause", [0.1, 10.0])
def test_a_slow_upload_is_dropped(tmp_path, pause):
    """One that stops, and one that goes on and on, a byte at a time."""
    hasty = RequestLimits(silent=0.3, seconds=1.0)
    with contextlib.ExitStack() as open_:
        server = open_.enter_context(served(tmp_path, temporary=tmp_path, limits=hasty))
        sent = head(Visitor(server), "Content-Length: 1000")
        line = open_.enter_context(line_to(server, sent))
        line.settimeout(pause)
        answer = b""
        ends = time.monotonic() + 600
        while not answer and time.monotonic() < ends:
            with contextlib.suppress(OSError):
                line.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                answer = line.recv(100)
        assert answer.startswith(b"HTTP/1.1 408")
        assert uploads(server) == []


def test_an_upload_that_is_cut_off(strict):
    with line_to(strict, head(Visitor(strict), "Content-Length: 1000") + b"x,y\n"):
        pass
    ends = time.monotonic() + 600
    while uploads(strict):
        assert time.monotonic() < ends
        time.sleep(0.02)
    assert strict.session.entries == []


def test_a_huge_form(strict):
    assert Visitor(strict).post("open/path", path="x" * 1000).status == 413


def head(visitor, more):
    return (
        f"PUT {visitor.home}open/upload HTTP/1.1\r\nHost: {visitor.host}\r\nCookie: {visitor.cookie}\r\n"
        f"Origin: http://{visitor.host}\r\nX-Name: big.csv\r\n{more}\r\n\r\n"
    ).encode()


# The private folder.


@pytest.mark.posix
def test_what_a_killed_server_left_is_removed_at_the_next_start(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from microagg.formats.atomic import private_folder\n"
        "with private_folder(Path(sys.argv[1]), 'microagg-page-') as p:\n"
        "    (p / 'x.csv').write_text('1'); print(p, flush=True); time.sleep(6000)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    left = Path(process.stdout.readline().strip())
    living = Server([], temporary=tmp_path)
    assert left.exists()  # its server lives
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    foreign = tmp_path / "microagg-page-link"
    foreign.symlink_to(tmp_path.parent)
    fresh = Server([], temporary=tmp_path)
    assert not left.exists()
    assert living.private.exists()
    assert foreign.is_symlink()
    for one in (living, fresh):
        assert one.private.stat().st_mode & 0o777 == 0o700
        one.close()
    assert not living.private.exists()


@pytest.mark.posix
def test_the_command_ends_cleanly(tmp_path):
    """By Ctrl-C: the folder goes, and so does the worker."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "microagg", "page", str(tmp_path), "--no-open"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    first = process.stderr.readline()
    assert "http://127.0.0.1:" in first
    port = int(first.split("127.0.0.1:")[1].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), 600) as visit:  # answered once it runs
        visit.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert visit.recv(100).startswith(b"HTTP/1.1 403")
    assert len(list(tmp_path.glob("microagg-page-*"))) == 1
    process.send_signal(signal.SIGINT)
    assert "the page and its files are gone" in process.stderr.read()
    process.stderr.close()
    assert process.wait(600) == 0
    assert list(tmp_path.iterdir()) == []
