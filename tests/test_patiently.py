"""Long commands of ``make`` report what they are doing."""

import sys

from patiently import EVERY, patiently


def test_it_repeats_the_last_line_while_a_command_runs_and_returns_its_exit_code(tmp_path):
    said: list[str] = []
    heard = tmp_path / "heard"
    code = (
        "import pathlib, sys, time; print('Downloading numpy', flush=True)\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)"
    )

    def say(words: str) -> None:
        said.append(words)
        if words.endswith(" s: Downloading numpy"):
            heard.touch()

    assert patiently("installing", [sys.executable, "-c", code, str(heard)], say, every=0.1) == 0
    assert said[0] == "installing ..."
    assert heard.exists()
    assert EVERY < 5


def test_a_failure_shows_all_that_was_printed():
    said: list[str] = []
    code = "print('one'); print('two'); raise SystemExit(3)"
    assert patiently("installing", [sys.executable, "-c", code], said.append) == 3
    assert said[-1] == "one\ntwo\n"
