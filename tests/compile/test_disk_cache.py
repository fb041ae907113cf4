"""Machine code on disk: found again, never after a change, never that of other types."""

import ast
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import microagg
from microagg.compile import disk_cache as kept
from microagg.compile import source_digest as stamp
from microagg.errors import InputError

ROOT = Path(microagg.__file__).parent
DECORATORS = {"kernel", "subkernel", "lean_kernel", "lean_subkernel", "inlined_subkernel"}


def files(folder, stamp="today"):
    found = kept._Files(str(folder), "some_kernel")
    found._source_stamp = stamp
    return found


def test_what_was_kept_is_found_by_its_types(tmp_path):
    files(tmp_path).save(("float64", "machine"), "fast")
    files(tmp_path).save(("int64", "machine"), "slow")
    assert files(tmp_path).load(("float64", "machine")) == "fast"
    assert files(tmp_path).load(("int64", "machine")) == "slow"
    assert files(tmp_path).load(("int64", "other machine")) is None


def test_nothing_is_found_after_a_change_and_no_old_file_stays(tmp_path):
    files(tmp_path, "yesterday").save("types", "old")
    assert files(tmp_path).load("types") is None
    files(tmp_path).save("types", "new")
    assert files(tmp_path).load("types") == "new"
    assert len(list(tmp_path.iterdir())) == 1


PACKAGE = {
    "inner.py": "from microagg.compile.jit import subkernel\n\n\n@subkernel\ndef step(x):\n"
    "    return x + {}\n",
    "outer.py": "from microagg.compile.jit import kernel\nfrom inner import step\n\n\n@kernel\n"
    "def whole(x):\n    return step(x)\n",
}


def test_a_change_of_what_a_kernel_calls_is_seen(tmp_path):
    # As the package does with its own files: a kernel in one, what it calls in another.
    script = (
        "import sys\nfrom pathlib import Path\nfrom microagg.compile import source_digest as stamp\n"
        "stamp.sources = lambda: sorted(Path(sys.argv[1]).glob('*.py'))\n"
        "sys.path.insert(0, sys.argv[1])\nfrom outer import whole\n"
        "print(whole(1), sum(whole.stats.cache_hits.values()))\n"
    )

    def run(number):
        for name, text in PACKAGE.items():
            (tmp_path / name).write_text(text.format(number), encoding="utf-8")
        # No bytecode: within a second Python would not see that a file changed.
        command = [sys.executable, "-B", "-c", script, str(tmp_path)]
        return subprocess.check_output(command, text=True).split()

    assert run(1) == ["2", "0"]
    assert run(1) == ["2", "1"]
    assert run(5) == ["6", "0"]


def used_by_kernels(tree):
    """Names that the bodies of kernels use."""
    return {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and DECORATORS & {ast.unparse(decorator) for decorator in node.decorator_list}
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    }


def test_all_that_kernels_use_counts_as_their_source():
    sources = set(stamp.sources())
    seen = 0
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = used_by_kernels(tree)
        if not used:
            continue
        assert path in sources
        for node in ast.walk(tree):
            ours = isinstance(node, ast.ImportFrom) and str(node.module).startswith("microagg.")
            if ours and used & {alias.asname or alias.name for alias in node.names}:
                spec = importlib.util.find_spec(str(node.module))
                assert Path(spec.origin) in sources, f"{path.name} uses {node.module}"
                seen += 1
    assert seen > 50


# Whoever writes a file decides what runs


class Planted:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


def kept_file(folder):
    (path,) = folder.glob("*.nbc")
    return path


def test_nothing_is_unpickled_before_its_digest_fits(tmp_path):
    trace = tmp_path / "ran"
    own = tmp_path / "own"
    own.mkdir()
    files(own).save("types", "good")
    path = kept_file(own)
    whole = path.read_bytes()
    hostile = pickle.dumps(Planted(trace))
    for content in (
        hostile,
        hostile * 3,
        whole[:-6] + hostile,
        whole[: len(kept._MAGIC) + 64] + hostile,
        whole[: len(kept._MAGIC)] + hostile,
        whole[:-1],
        whole + b"x",
        b"",
    ):
        path.write_bytes(content)
        assert files(own).load("types") is None
    assert not trace.exists()
    path.write_bytes(whole)
    assert files(own).load("types") == "good"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
@pytest.mark.posix
def test_files_that_others_could_have_written_are_compiled_anew(tmp_path, monkeypatch):
    trace = tmp_path / "ran"
    folder = tmp_path / "cache"
    folder.mkdir()
    files(folder).save("types", Planted(trace))  # with a digest that fits
    path = kept_file(folder)
    for mode in (0o664, 0o646, 0o666):
        path.chmod(mode)
        assert files(folder).load("types") is None
    path.chmod(0o644)
    monkeypatch.setattr(kept, "_trusted", lambda: {path.stat().st_uid + 1})
    assert files(folder).load("types") is None
    monkeypatch.undo()
    aside = path.rename(tmp_path / "aside")
    path.symlink_to(aside)
    assert files(folder).load("types") is None
    assert not trace.exists()
    path.unlink()
    aside.rename(path)
    files(folder).load("types")
    assert trace.exists()  # as it was, it would have run


@pytest.mark.skipif(not hasattr(os, "umask"), reason="no permissions of files here")
@pytest.mark.posix
def test_what_is_kept_can_be_written_by_nobody_else(tmp_path):
    before = os.umask(0)
    try:
        files(tmp_path).save("types", "fast")
    finally:
        os.umask(before)
    assert kept_file(tmp_path).stat().st_mode & 0o022 == 0
    assert files(tmp_path).load("types") == "fast"


FULL = """
import resource, sys
from microagg.compile.disk_cache import _Files
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
_Files(sys.argv[1], "kernel").save("types", "x" * 1000)
"""


@pytest.mark.linux
def test_a_full_disk_keeps_nothing_and_stops_nobody(tmp_path):
    """A limit of the system stands for the disk. The kernel runs; the next process compiles it again."""
    subprocess.run([sys.executable, "-B", "-c", FULL, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    kept._refuse_foreign(str(tmp_path))
    monkeypatch.setattr(kept, "_trusted", lambda: {tmp_path.stat().st_uid + 1})
    with pytest.raises(
        InputError, match=r"belongs to another user.* Set NUMBA_CACHE_DIR to a folder"
    ):
        kept._refuse_foreign(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
@pytest.mark.posix
@pytest.mark.parametrize("inside", [True, False])
def test_a_folder_that_everybody_can_write_to_is_refused(tmp_path, monkeypatch, inside):
    """What is in it could be renamed, and other code put in its place, whoever owns what is in it."""
    named, folder = tmp_path / "named", tmp_path / "named" / "kernels"
    folder.mkdir(parents=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(named))
    kept._refuse_foreign(str(folder))
    loose = folder if inside else named
    loose.chmod(0o777)
    with pytest.raises(InputError, match=r"can be written to by every user.* Set NUMBA_CACHE_DIR"):
        kept._refuse_foreign(str(folder))
    loose.chmod(0o1777)  # like the system's folder for temporary files
    kept._refuse_foreign(str(folder))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
def test_a_named_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels").mkdir()
    facts = os.stat
    own = facts(tmp_path / "kernels")
    other = os.stat_result((*own[:4], own.st_uid + 1, *own[5:]))

    def seen(path, **settings):
        return other if path == str(tmp_path) else facts(path, **settings)

    monkeypatch.setattr(kept, "_trusted", lambda: {own.st_uid})
    monkeypatch.setattr(os, "stat", seen)
    with pytest.raises(InputError, match="belongs to another user"):
        kept._refuse_foreign(str(tmp_path / "kernels"))


def test_how_code_is_kept_changes_no_code():
    names = {path.relative_to(ROOT).as_posix() for path in stamp.sources()}
    assert not names & {"compile/disk_cache.py", "compile/source_digest.py"}
    assert {
        "compile/jit.py",
        "kernels/label_loops.py",
        "algorithms/auto.py",
        "base/progress.py",
    } <= names
