"""Random tables and plans by the command, engine by engine: how each ends, and whether all of it holds."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

from typer.main import get_command

from attacks.checked import Checked, as_cells
from attacks.claims import Claims
from attacks.counted import GONE
from attacks.mixed_cases import SECRET_K, SECRET_P, Mixed, draw_mixed
from microagg.cli.main import app
from microagg.errors import InputError

_COMMAND: Any = get_command(app)  # made once, which takes as long as a small job
BY_SEVERITY = {"green": 0, "grey": 1, "amber": 1, "red": 2}


class Ended(NamedTuple):
    """How a run of the command ended; no claims: the plan was refused."""

    claims: Claims | None
    compared: int = 0
    rows: Sequence[Any] = ()  # of the released file, sorted


class _Said(NamedTuple):
    """What the command said, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str


def _said(words: list[str]) -> _Said:
    """Run the command in this process."""
    out, err = StringIO(), StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            _COMMAND.main(words, prog_name="microagg")
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    return _Said(code, out.getvalue(), err.getvalue())


def secrets(case: Mixed) -> set[str]:
    """Original values of protected quantities, and what a plan does not name, as they would be told."""
    found: set[str] = set()
    for block in case.plan.blocks:
        for name in block.columns or ():
            if name in ("boolean", "ordinal"):
                continue
            codes = {GONE, "-8", "-8.0", "refused", "0.0", "<NA>", "0"}
            for value in as_cells(case.frame[[name]])[name]:
                found |= {str(value), repr(value)} - codes
                if not isinstance(value, str):
                    found |= {str(value).split(".")[0].split(" ")[0]} - codes
    # A number of one or two digits cannot be told from a count, such as that of a small stratum.
    return {value for value in found if len(value) > 2}


def carry_out(folder: Path, case: Mixed, engine: str = "memory", public: bool = False) -> Ended:
    """Protect one table by the command, from file to file, and check all that it claims."""
    for path in folder.iterdir():
        rmtree(path) if path.is_dir() else path.unlink()
    source, target = folder / f"in{case.ending}", folder / f"out{case.ending}"
    target = folder / "out" if engine == "spark" else target
    case.write(source)
    (folder / "plan.toml").write_text(case.plan.to_toml())
    words = ["protect", source, target, "--plan", folder / "plan.toml", "--engine", engine]
    words += ["--json", "--quiet"]
    report = folder / "report.html"
    words += ["--report", report, "--public"] if public else []
    done = _said([str(word) for word in words])
    if done.exit_code == 2:
        told = done.stderr
        assert told.strip().endswith((".", "?")), told
        assert not [value for value in secrets(case) if value in told], told
        assert not target.exists()
        return Ended(None)
    assert done.exit_code in (0, 1), f"{done.exit_code}: {done.stderr}"
    claims = Claims(case.plan, json.loads(done.stdout), done.exit_code)
    checked = Checked(case, claims, target)
    compared = checked.check()
    if public:
        _check_public(report, claims)
    rows = sorted(tuple(map(str, row)) for row in zip(*checked.after.values(), strict=True))
    return Ended(claims, compared, rows)


def _check_public(report: Path, claims: Claims) -> None:
    """No threshold of a dominance rule is published, and the public verdict is not the greener one."""
    told = report.read_text(), report.with_suffix(".json").read_text()
    for threshold in (SECRET_P, SECRET_K):
        assert str(threshold) not in told[0] + told[1]
    verdict = json.loads(told[1])["verdict"]
    assert BY_SEVERITY[verdict] >= min(BY_SEVERITY[claims.verdict], 1), verdict


def sweep(folder: Path, seeds: Iterable[int], public_of_each: int = 5) -> Counter[str]:
    """Protect random mixed tables in memory; count how they end, and the values compared."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        try:
            case = draw_mixed(seed)
        except InputError:  # settings that exclude each other
            ends["no plan"] += 1
            continue
        try:
            found = carry_out(folder, case, public=seed % public_of_each == 0)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        ends["refused" if found.claims is None else found.claims.verdict] += 1
        ends["values compared"] += found.compared
    return ends


def differences(here: Ended, there: Ended) -> str:
    """How one engine differs from memory where it released the same values; or how both ended."""
    if here.claims is None or there.claims is None:
        if here.claims is None and there.claims is None:
            return "refused"
        return "differs: only one refused"
    said: dict[str, tuple[Any, Any]] = {
        "verdict": (here.claims.verdict, there.claims.verdict),
        "exit code": (here.claims.exit_code, there.claims.exit_code),
        "amber cautions": (_ambers(here.claims), _ambers(there.claims)),
    }
    if here.rows != there.rows:  # other groups, which hold as well: each file is counted by itself
        return f"{there.claims.verdict}, other groups"
    apart = [what for what, (one, other) in said.items() if one != other]
    return f"differs: {', '.join(apart)}" if apart else here.claims.verdict


def _ambers(claims: Claims) -> set[Any]:
    return {frozenset(columns) for severity, columns in claims.cautions if severity == "amber"}
