"""What is published: wheel and sdist, the same bytes each time, that work where nothing else of ours is.

`make test` lends an empty environment the dependencies of this one, since installing them takes a minute;
the long run installs them from the registry, as the README says.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

import microagg
from microagg.report.model import release_model

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_SMOKE = """
import microagg, pathlib, sys
assert pathlib.Path(microagg.__file__).is_relative_to(sys.prefix), microagg.__file__
print(microagg.__version__)
"""
_TABLE = "age,income\n23,1200\n25,1500\n31,2600\n47,2400\n52,3900\n58,3600\n"
# A method whose kernels compile soon: nothing is compiled yet in a new environment.
_QUICK = ("protect", "in.csv", "out.csv", "--k", "3", "--method", "pca")


def build(target: Path) -> dict[str, Path]:
    """Wheel and sdist by the tool of `make package`, with the backend that is installed here."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        check=True,
        capture_output=True,
    )
    return {path.name: path for path in target.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture
def wheel(built) -> Path:
    return next(path for name, path in built.items() if name.endswith(".whl"))


def environment(folder: Path) -> Path:
    """An empty environment; its Python."""
    venv.create(folder, with_pip=False, symlinks=os.name == "posix")
    return Path(_place(folder, "scripts")) / ("python" if os.name == "posix" else "python.exe")


def _place(folder: Path, name: str) -> str:
    """Where an environment has its scripts or packages on this system."""
    return sysconfig.get_path(name, "venv", {"base": str(folder), "platbase": str(folder)})


def pip(python: Path, *words: str) -> None:
    """Run this environment's pip for another one."""
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *words, "--quiet"],
        check=True,
        capture_output=True,
    )


def works(python: Path, folder: Path, *command: str) -> None:
    """Import the package, and run a line of the installed command that ends green."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean["NUMBA_CACHE_DIR"] = str(folder / "compiled")
    (folder / "in.csv").write_text(_TABLE, encoding="utf-8")
    done = subprocess.run(
        [python, "-c", _SMOKE], capture_output=True, text=True, check=True, env=clean
    )
    assert done.stdout.strip() == microagg.__version__
    ran = subprocess.run(
        [python.parent / "microagg", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=clean,
    )
    assert ran.stderr.splitlines()[-1].startswith("green")


def test_the_same_source_gives_the_same_bytes(built, tmp_path):
    again = build(tmp_path)
    assert len(built) == 2
    for name, path in built.items():
        hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (path, again[name])]
        assert hashes[0] == hashes[1], name


def test_what_is_in_the_archives(built, wheel):
    inside = zipfile.ZipFile(wheel).namelist()
    assert "microagg/cli/demo_plan.toml" in inside
    assert "microagg/py.typed" in inside
    assert all(name.startswith(("microagg/", "microagg-")) for name in inside)
    (sdist,) = [path for name, path in built.items() if name.endswith(".tar.gz")]
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "CITATION.cff",
        "SECURITY.md",
        "mkdocs.yml",
        "tests/support/naive.py",
        "docs/plan.md",
    } <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("build/")]


def test_the_wheel_works_in_an_environment_of_its_own_and_leaves_nothing(wheel, tmp_path):
    python = environment(tmp_path / "env")
    pip(python, "install", "--no-deps", str(wheel))
    lent = Path(_place(tmp_path / "env", "purelib"), "lent.pth")
    lent.write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    works(python, tmp_path, *_QUICK)
    lent.unlink()
    pip(python, "uninstall", "--yes", "microagg")
    assert not list((tmp_path / "env").rglob("*microagg*"))


@pytest.mark.long
def test_the_wheel_installs_from_the_registry_alone(wheel, tmp_path):
    python = environment(tmp_path / "env")
    pip(python, "install", str(wheel))
    works(python, tmp_path, "demo")


def citation() -> dict[str, str]:
    """The lines of CITATION.cff that have one word."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w-]+): (\S+)$", text, re.M))


def test_versions_and_dates_agree():
    assert citation()["version"] == microagg.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (heading,) = re.findall(rf"^## {re.escape(microagg.__version__)} \((.*)\)$", changes, re.M)
    assert heading == citation().get("date-released", "unreleased")


@pytest.mark.posix
def test_a_release_is_dated_by_one_command(tmp_path):
    for name in ("Makefile", "CHANGELOG.md", "CITATION.cff", "src/microagg/version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = tmp_path / "src/microagg/version.py"
    version.write_text(version.read_text().replace(microagg.__version__, "9.8.7"))
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.8.7 (unreleased)\n\n## 0.1.0\n")
    days = [datetime.now(UTC).date().isoformat()]
    subprocess.run(["make", "dated"], cwd=tmp_path, check=True, capture_output=True)
    days.append(datetime.now(UTC).date().isoformat())  # midnight may come in between
    today = re.search(r"## 9\.8\.7 \((.*)\)", (tmp_path / "CHANGELOG.md").read_text())[1]
    assert today in days
    found = (tmp_path / "CITATION.cff").read_text()
    assert f"\nversion: 9.8.7\ndate-released: {today}\n" in found


def test_a_folder_that_is_not_installed_knows_its_version(tmp_path, monkeypatch):
    import importlib.metadata as metadata

    installed = metadata.distribution

    def distribution(name):
        if name == "microagg":
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    source = tmp_path / "in.csv"
    source.write_text("age\n30\n31\n34\n61\n65\n66\n", encoding="utf-8")
    found = microagg.protect_file(source, tmp_path / "out.csv", k=3, columns=["age"], engine="disk")
    assert release_model(found)["repeat"]["versions"]["microagg"] == microagg.__version__


def test_nothing_but_the_estimator_and_the_trained_attack_needs_scikit_learn():
    sources = (ROOT / "src").rglob("*.py")
    wanted = [path.name for path in sources if "sklearn." in path.read_text(encoding="utf-8")]
    assert sorted(wanted) == ["estimator.py", "inference.py"]
    assert "scikit-learn" not in " ".join(PROJECT["dependencies"])
