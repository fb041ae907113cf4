"""The command run within this process, which is quicker than a process of its own."""

import subprocess

from typer.testing import CliRunner

from microagg.cli.main import app


def here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command; what it gives is shaped as that of a process."""
    words = [str(argument) for argument in arguments]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What was said, without the columns that it is set in."""
    return " ".join(done.stderr.split())
