"""The command page."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from microagg.cli.show import Speaker
from microagg.errors import InputError, shown

_PACKAGES = ("starlette", "uvicorn")


def show_page(
    speaker: Speaker, source: Path | None, port: int, open_browser: bool, idle: float
) -> None:
    """Serve the page until the user ends it."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise InputError(
            f"The page needs {' and '.join(missing)}, which the extra page brings. Install it with: "
            'pip install "microagg[page]"'
        )
    if not idle > 0:
        raise InputError(
            f"--idle is a number of minutes above 0; got {shown(idle)}. Leave it out for 60."
        )
    if not 0 <= port < 65536:
        raise InputError(
            f"--port is a number from 0 to 65535; got {port}. Leave it out for a free one."
        )
    from microagg.page.bodies import RequestLimits
    from microagg.page.serve import serve

    with suppress(KeyboardInterrupt):  # the way to end it
        serve(
            [] if source is None else [source],
            port=port,
            open_browser=open_browser,
            limits=RequestLimits(idle=60 * idle),
            say=speaker.say,
        )
    speaker.say("ended", "the page and its files are gone")
