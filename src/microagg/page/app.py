"""The addresses of the page: each reads a request, asks the session, and renders a screen or part of one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from microagg.base.formatting import byte_size
from microagg.errors import InputError, MicroaggError, fault_words, shown
from microagg.page import plan_figures as decisions
from microagg.page import screens
from microagg.page.edits import edited, number_in, place_of_mistake
from microagg.page.opened_folders import Folders
from microagg.page.security import log
from microagg.page.session import OpenTable, Session, WrittenRelease
from microagg.page.tasks import ClaimTask, CompareTask, Opened, ReadTask, ScatterTask, SearchTask
from microagg.page.uploads import RequestLimits, TooMuchError, form_of, upload_to
from microagg.plan.flag_values import read_value
from microagg.plan.registry import find
from microagg.plan.sections import Accept
from microagg.plan.settings import check_k
from microagg.report.html import TEMPLATES, environment

_HERE = Path(__file__).parent
_MOST_TRIES = 60  # choices at once

Handler = Callable[[Request], Awaitable[Response]]


class NoTableError(Exception):
    """A screen needs a table, or a release, that does not exist."""


class Page:
    """The page over one session."""

    def __init__(
        self, session: Session, folders: Folders, home: str, limits: RequestLimits
    ) -> None:
        self.session, self._folders, self._home, self._limits = session, folders, home, limits
        self.last_asked = time.monotonic()
        self._templates = environment(_HERE / "templates")
        self._templates.filters |= {"bytes": byte_size, "paged": screens.in_page_words}
        self._style = (TEMPLATES / "style.css").read_text(encoding="utf-8")

    def app(self) -> Starlette:
        """Return the application, with all addresses under the page's own folder."""
        routes = [
            Route("/", self._asked(self.start)),
            Route("/busy", self._asked(self.busy)),
            Route("/open", self._asked(self.open)),
            Route("/open/state", self._asked(self.open_state)),
            Route("/open/path", self._asked(self.open_path), methods=["POST"]),
            Route("/open/pending", self._asked(self.open_pending), methods=["POST"]),
            Route("/open/upload", self._asked(self.open_upload), methods=["PUT"]),
            Route("/table", self._asked(self.table)),
            Route("/plan", self._asked(self.plan)),
            Route("/plan", self._asked(self.plan_edit), methods=["POST"]),
            Route("/plan/gives", self._asked(self.plan_gives)),
            Route("/plan/next", self._asked(self.plan_next)),
            Route("/plan/prices", self._asked(self.plan_price), methods=["POST"]),
            Route("/plan/prices/{place:int}", self._asked(self.plan_prices)),
            Route("/plan/answers", self._asked(self.plan_answers)),
            Route("/plan/answers", self._asked(self.plan_claims), methods=["POST"]),
            Route("/plan/search", self._asked(self.plan_search), methods=["POST"]),
            Route("/plan/{way}", self._asked(self.plan_step), methods=["POST"]),
            Route("/plan.toml", self._asked(self.plan_file)),
            Route("/try", self._asked(self.try_)),
            Route("/try", self._asked(self.try_start), methods=["POST"]),
            Route("/try/live", self._asked(self.try_)),
            Route("/try/choose", self._asked(self.try_choose), methods=["POST"]),
            Route("/try/k", self._asked(self.try_k), methods=["POST"]),
            Route("/protect", self._asked(self.protect)),
            Route("/protect", self._asked(self.protect_start), methods=["POST"]),
            Route("/protect/live", self._asked(self.protect)),
            Route("/task/{number:int}/{way}", self._asked(self.task), methods=["POST"]),
            Route("/see", self._asked(self.see)),
            Route("/see/{number:int}", self._asked(self.see)),
            Route("/see/{number:int}/scatter", self._asked(self.scatter)),
            Route("/versions", self._asked(self.versions)),
            Route("/take", self._asked(self.take)),
            Route("/take/{number:int}", self._asked(self.take)),
            Route("/take/{number:int}/{what}", self._asked(self.take_file)),
            Route("/static/report.css", self._asked(self.style)),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        return Starlette(routes=[Mount(self._home.rstrip("/"), routes=routes)])

    def _asked(self, handler: Handler) -> Handler:
        """Turn errors into a sentence; no part of a request is logged."""

        async def answer(request: Request) -> Response:
            self.last_asked = time.monotonic()
            try:
                return await handler(request)
            except NoTableError:
                words = "No table is open, or this release does not exist any more."
                return self._nothing("Not there", words, 404)
            except TooMuchError as error:
                log.warning("refused %s: %s", request.method, error.words)
                return HTMLResponse(error.words, error.status, headers={"connection": "close"})
            except MicroaggError as error:
                return self._nothing("That does not work", str(error), 400)
            except Exception as error:
                log.error("%s", fault_words(error))
                return self._nothing("A fault of the program", fault_words(error), 500)

        return answer

    # What all screens need.

    def _screen(self, template: str, step: str, **values: Any) -> Response:
        frame = screens.frame_of(self.session, step, self._limits.idle)
        text = self._templates.get_template(template).render(home=self._home, **frame, **values)
        return HTMLResponse(text)

    def _part(self, request: Request, part: str, whole: str, step: str, **values: Any) -> Response:
        """Render a part of a screen, or all of it if the browser sent the form before htmx was loaded."""
        return self._screen(part if "hx-request" in request.headers else whole, step, **values)

    def _nothing(self, title: str, words: str, status: int) -> Response:
        found = self._screen(
            "nothing.html", "", title=title, words=words, to="open", link="Open a table"
        )
        found.status_code = status
        return found

    @property
    def _table(self) -> OpenTable:
        if self.session.table is None:
            raise NoTableError
        return self.session.table

    def _release(self, request: Request) -> WrittenRelease:
        number = request.path_params.get("number", len(self.session.releases))
        found = self.session.release(number)
        if found is None:
            raise NoTableError
        return found

    # Open.

    async def start(self, request: Request) -> Response:
        """Redirect to the screen where the work stands."""
        reading = self.session.latest(ReadTask)
        asks = self.session.table is None or self.session.pending or (reading and reading.open)
        to = "open" if asks else "table"
        return RedirectResponse(self._home + to, 303)

    async def busy(self, request: Request) -> Response:
        """Show the running task in one line."""
        return self._screen("part_busy.html", "")

    async def open(self, request: Request) -> Response:
        """Show the files to choose from."""
        return self._open(request)

    def _open(self, request: Request, folder: Path | None = None, problem: str = "") -> Response:
        return self._part(
            request,
            "part_open.html",
            "open.html",
            "open",
            listing=self._folders.listing(folder or self._folders.roots[0]),
            roots=self._folders.roots,
            problem=problem,
            entry=self.session.latest(ReadTask),
            pending=self.session.pending,
            work=self.session.work,
            most_upload=self._limits.upload,
        )

    async def open_state(self, request: Request) -> Response:
        """Show the progress of reading; afterwards redirect to the table."""
        entry = self.session.latest(ReadTask)
        if entry is not None and entry.state == "done":
            if "hx-request" not in request.headers:
                return RedirectResponse(f"{self._home}table", 303)
            return Response(status_code=200, headers={"HX-Redirect": f"{self._home}table"})
        return self._open(request)

    async def open_path(self, request: Request) -> Response:
        """Open a folder, or read a file."""
        form = await form_of(request, self._limits)
        try:
            path = self._folders.check(Path(form.get("path", "").strip()))
            if path.is_dir():
                return self._open(request, path)
            self.session.open(Opened.by(path, form))
        except MicroaggError as error:
            return self._open(request, problem=str(error))
        return self._open(request) if self.session.pending else await self.open_state(request)

    async def open_pending(self, request: Request) -> Response:
        """Open the other table, or keep the one with work on it, as the user answers."""
        form = await form_of(request, self._limits)
        if form.get("answer") == "open":
            self.session.open_pending()
        else:
            self.session.forget_pending()
        return self._open(request)

    async def open_upload(self, request: Request) -> Response:
        """Take in a file that the browser sends."""
        folder = self.session.new_folder("upload-")
        try:
            path = await upload_to(request, folder, self._limits)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.session.open(Opened(path, uploaded=True))
        return Response(status_code=204)

    # Understand and plan.

    async def table(self, request: Request) -> Response:
        """Show the columns of the table."""
        self._table  # noqa: B018 - there is something to show only with a table
        return self._screen("table.html", "table")

    async def plan(self, request: Request) -> Response:
        """Show the plan as menus and fields."""
        values = screens.plan_screen(self.session, self._table)
        return self._screen("plan.html", "plan", **values)

    async def plan_edit(self, request: Request) -> Response:
        """Change the plan, or show the error next to its field."""
        form, table = await form_of(request, self._limits), self._table
        error, text = None, None
        try:
            if form.get("what") == "found" and self.session.found is not None:
                self.session.edit(self.session.found["plan"])
            else:
                self.session.edit(edited(self.session.plan, form, table.names, table.drafted_kinds))
        except MicroaggError as refused:
            error = {"key": place_of_mistake(form), "words": str(refused)}
            text = form.get("text")
        return self._plan_part(request, screens.plan_screen(self.session, table, error, text))

    async def plan_step(self, request: Request) -> Response:
        """Undo or redo."""
        await form_of(request, self._limits)
        table = self._table
        self.session.step({"undo": -1, "redo": 1}.get(request.path_params["way"], 0))
        return self._plan_part(request, screens.plan_screen(self.session, table))

    def _plan_part(self, request: Request, values: dict[str, Any]) -> Response:
        """Render the plan's forms; by the number of changes the page ignores an outdated answer."""
        found = self._part(request, "part_plan.html", "plan.html", "plan", **values)
        found.headers["X-Changes"] = str(self.session.changes)
        return found

    async def plan_gives(self, request: Request) -> Response:
        """Show estimates for the current plan, made in the background."""
        table = self._table
        if self.session.prices(self.session.plan) is None:
            self.session.price()
        values = {**decisions.gives_part(self.session, table), "oob": True}
        return self._screen("part_gives.html", "plan", **values)

    async def plan_prices(self, request: Request) -> Response:
        """Show what other decisions about one column would cost."""
        table, place = self._table, request.path_params["place"]
        if place >= len(table.names):
            raise NoTableError
        values = decisions.prices_part(self.session, table, place)
        if values["prices_wait"]:
            self.session.price((table.names[place],))
        return self._screen("part_prices.html", "plan", **values)

    async def plan_next(self, request: Request) -> Response:
        """Show what to do next."""
        return self._next(request)

    async def plan_price(self, request: Request) -> Response:
        """Price every decision about every column."""
        await form_of(request, self._limits)
        self._table  # noqa: B018
        self.session.price(None)
        return self._next(request)

    async def plan_answers(self, request: Request) -> Response:
        """Show what claims that nobody outside knows some columns win and stake."""
        values = decisions.answers_part(self.session, self._table)
        return self._screen("part_answers.html", "plan", **values)

    async def plan_claims(self, request: Request) -> Response:
        """Price the claim that nobody outside knows some columns."""
        form, table = await form_of(request, self._limits), self._table
        answers = _names_at(form.get("answers", ""), table)
        problem = "" if answers else "Tick at least one column."
        if answers:
            self.session.submit(ClaimTask(table.opened, self.session.plan, answers))
        values = screens.plan_screen(self.session, table)
        values |= decisions.answers_part(self.session, table, problem)
        return self._part(request, "part_answers.html", "plan.html", "plan", **values)

    async def plan_search(self, request: Request) -> Response:
        """Search a plan within a largest loss."""
        form, table = await form_of(request, self._limits), self._table
        try:
            targets = [number_in(form, key) for key in ("max_loss", "max_linkage")]
            Accept(*targets)  # which refuses what is no such limit
            if targets == [None, None]:
                raise InputError(
                    "A search needs a target. Give a largest loss or a largest linkage."
                )
            kept = _names_at(form.get("keep", ""), table)
            self.session.submit(
                SearchTask(table.opened, self.session.plan, targets[0], targets[1], kept)
            )
        except MicroaggError as error:
            return self._next(request, str(error))
        return self._next(request)

    def _next(self, request: Request, problem: str = "") -> Response:
        values = screens.plan_screen(self.session, self._table)
        values |= decisions.next_part(self.session, self._table, problem)
        return self._part(request, "part_next.html", "plan.html", "plan", **values)

    async def plan_file(self, request: Request) -> Response:
        """Send the plan as a file."""
        self._table  # noqa: B018 - there is a plan only with a table
        return _download(self.session.plan.to_toml(), "plan.toml")

    # Try.

    async def try_(self, request: Request) -> Response:
        """Show the map of choices."""
        self._table  # noqa: B018
        return self._try(request)

    def _try(self, request: Request, problem: str | None = None) -> Response:
        values = screens.try_screen(self.session, problem)
        return self._part(request, "part_try.html", "try.html", "try", **values)

    async def try_start(self, request: Request) -> Response:
        """Try methods and k."""
        form, table = await form_of(request, self._limits), self._table
        try:
            methods = [find(name).name for name in form.get("methods", "").split(",") if name]
            sizes = [
                check_k(read_value(k.strip()), table.records) for k in form["sizes"].split(",")
            ]
            targets = [number_in(form, "max_loss"), number_in(form, "max_linkage")]
            Accept(*targets)  # which refuses what is no such limit
            if not methods:
                raise InputError("No method is chosen. Tick at least one.")
            if len(methods) * len(sizes) > _MOST_TRIES:
                raise InputError(
                    f"At most {_MOST_TRIES} choices are tried at once; these are "
                    f"{len(methods) * len(sizes)}. Choose fewer methods or k."
                )
            self.session.submit(
                CompareTask(
                    table.opened,
                    self.session.plan,
                    methods,
                    sizes,
                    targets[0],
                    targets[1],
                    attack=form.get("attack") == "yes",
                )
            )
        except MicroaggError as error:
            return self._try(request, str(error))
        return self._try(request)

    async def try_choose(self, request: Request) -> Response:
        """Take a choice of the map into the plan."""
        return self._choose(request, await form_of(request, self._limits))

    async def try_k(self, request: Request) -> Response:
        """Take a k into the plan, and try it unless it was."""
        form, table = await form_of(request, self._limits), self._table
        answer = self._choose(request, form)
        plan, block = self.session.plan, self.session.plan.blocks[0]
        untried = (block.method, block.k) not in self.session.cells or self.session.map_is_old
        if str(block.k) == form.get("k") and untried:
            attack = screens.try_screen(self.session)["attack"]
            self.session.submit(
                CompareTask(table.opened, plan, [block.method], [block.k or 0], attack=attack)
            )
            return self._try(request)
        return answer

    def _choose(self, request: Request, form: dict[str, str]) -> Response:
        table = self._table
        try:
            fields = {**form, "what": "k"}
            self.session.edit(edited(self.session.plan, fields, table.names, table.drafted_kinds))
        except MicroaggError as error:
            return self._try(request, str(error))
        return self._try(request)

    # Protect.

    async def protect(self, request: Request) -> Response:
        """Show running and finished releases."""
        return self._protect(request)

    def _protect(self, request: Request, problem: str | None = None) -> Response:
        table, folder = self._table, self._folder_of_ledgers
        ledgers = self._folders.ledgers(folder)
        values = screens.protect_screen(self.session, table, problem)
        values |= screens.ledger_form(self.session, table, folder, ledgers)
        return self._part(request, "part_protect.html", "protect.html", "protect", **values)

    @property
    def _folder_of_ledgers(self) -> Path:
        opened = self._table.opened
        return self._folders.roots[0] if opened.uploaded else opened.path.parent

    async def protect_start(self, request: Request) -> Response:
        """Queue a release by the plan as it stands."""
        form, table = await form_of(request, self._limits), self._table
        problem = None
        try:
            offered = screens.protect_screen(self.session, table)["endings"]
            ending = form.get("ending", "")
            if ending not in offered:
                raise InputError(
                    f"microagg cannot write {shown(ending)}. Choose one of {', '.join(offered)}."
                )
            if not table.opened.uploaded:
                self._folders.check(table.opened.path)
            self.session.plan.check_complete()
            settings: dict[str, Any] = {"prices": form.get("prices") == "yes"}
            ledger = form.get("new_ledger", "").strip() or form.get("ledger", "")
            if ledger:
                settings["ledger"] = self._folders.check_ledger(self._folder_of_ledgers / ledger)
                settings["key"] = next(iter(_names_at(form.get("key", ""), table)), None)
                settings["leavers"] = form.get("leavers", "")
            self.session.new_release(self.session.plan, ending, **settings)
        except MicroaggError as error:
            problem = str(error)
        return self._protect(request, problem)

    async def task(self, request: Request) -> Response:
        """Stop a search and keep what it found, or cancel a task."""
        await form_of(request, self._limits)
        entry = self.session.entry(request.path_params["number"])
        if entry is None:
            raise NoTableError
        if request.path_params["way"] == "stop":
            self.session.stop(entry)
        else:
            self.session.cancel(entry)
        return Response(status_code=204)

    # See and take away.

    async def see(self, request: Request) -> Response:
        """Show the evidence of a release as the report renders it."""
        return self._see(request, "release.html")

    async def scatter(self, request: Request) -> Response:
        """Show two columns before and after; the worker reads them in its turn."""
        return self._see(request, "part_scatter.html")

    def _see(self, request: Request, template: str) -> Response:
        release, table = self._release(request), self._table
        x, y = (request.query_params.get(key, "") for key in "xy")
        values = screens.see_screen(self.session, table, release, x, y)
        columns, released = (
            (values["x_name"], values["y_name"]),
            release.task.folder / release.task.target,
        )
        if (
            all(columns) and values["points"] is None and released.exists()
        ):  # unless it was rejected
            entry = values["scatter_entry"]
            if entry is None or not _is_of(entry.task, release, columns):
                self.session.submit(
                    ScatterTask(table.opened, release.plan, released, release.number, *columns)
                )
                values = screens.see_screen(self.session, table, release, x, y)
        return self._screen(template, "see", layout="see.html", **values)

    async def versions(self, request: Request) -> Response:
        """Show two releases side by side."""
        if not self.session.releases:
            raise NoTableError
        last = len(self.session.releases)
        asked = [
            request.query_params.get("a", max(last - 1, 1)),
            request.query_params.get("b", last),
        ]
        found = [self.session.release(int(n)) if str(n).isdigit() else None for n in asked]
        a, b = (one or self.session.releases[-1] for one in found)
        return self._screen("versions.html", "see", **screens.versions_screen(self.session, a, b))

    async def take(self, request: Request) -> Response:
        """Show the files to take away."""
        release = self._release(request)
        values = screens.take_screen(self.session, self._table, release)
        return self._screen("take.html", "take", **values)

    async def take_file(self, request: Request) -> Response:
        """Send one of the files."""
        release = self._release(request)
        files = screens.take_files(release)
        what = request.path_params["what"]
        if what not in files:
            raise NoTableError
        if what == "plan":
            return _download(release.plan.to_toml(), "plan.toml")
        name = files[what][0]
        return FileResponse(
            release.task.folder / name, media_type="application/octet-stream", filename=name
        )

    async def style(self, request: Request) -> Response:
        """Send the style sheet of the report."""
        return Response(self._style, media_type="text/css")


def _names_at(places: str, table: OpenTable) -> tuple[str, ...]:
    """Return the columns at some places, separated by commas; what is no place is left out."""
    found = [int(place) for place in places.split(",") if place.isdigit()]
    return tuple(table.names[place] for place in found if place < len(table.names))


def _is_of(task: Any, release: WrittenRelease, wanted: tuple[str, str]) -> bool:
    return isinstance(task, ScatterTask) and (task.number, task.x, task.y) == (
        release.number,
        *wanted,
    )


def _download(text: str, name: str) -> Response:
    return Response(
        text,
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )
