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

from microagg.base.formatting import byte_size, plural
from microagg.errors import InputError, MicroaggError, fault_words, shown
from microagg.page import screens
from microagg.page.edits import edited, place_of_mistake
from microagg.page.files import Folders, RequestLimits, TooMuchError, form_of, upload_to
from microagg.page.security import log
from microagg.page.session import OpenTable, Session, WrittenRelease
from microagg.page.tasks import Opened
from microagg.plan.forms import read_value
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Accept
from microagg.plan.settings import check_k
from microagg.report.html import TEMPLATES, environment

_HERE = Path(__file__).parent
_MOST_TRIES = 60  # choices at once
_WITHOUT_TABLE = ("/busy", "/open", "/task", "/static")  # addresses that need none

Answer = Callable[[Request], Awaitable[Response]]
Form = dict[str, str]
Act = Callable[[Request, Form], Response | None]
"""Does what a form asks for; returns an answer of its own, if any."""
Show = Callable[..., Response]
"""Shows a screen for a request; its second argument is why a form was not done."""


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
        filters = self._templates.filters
        for name in ("text", "sentence"):  # the page's fields are named, not the command's flags
            filters[name] = lambda words, put=filters[name]: put(screens.in_page_words(words))
        filters["bytes"] = byte_size
        self._templates.globals |= screens.GLOBALS
        self._style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
        idle = limits.idle
        self._idle = (
            plural(round(idle / 60), "minute") if idle >= 120 else plural(round(idle), "second")
        )

    def app(self) -> Starlette:
        """Return the application, with all addresses under the page's own folder."""
        session = self.session
        answers = self._shows("answers", "plan", screens.plan_screen)
        next_part = self._shows("next", "plan", screens.plan_screen)
        tried = self._shows("try", "try", screens.try_screen)
        protect = self._shows("protect", "protect", self._protect_values)

        def take(request: Request) -> Response:
            return self._screen("take.html", "take", **screens.take_screen(self._release(request)))

        screens_shown: dict[str, Show] = {
            "/": self._start,
            "/busy": lambda _: self._screen("part_busy.html", ""),
            "/open": self._open,
            "/open/state": self._open_state,
            "/table": lambda _: self._screen("table.html", "table"),
            "/plan": self._plan,
            "/plan/gives": self._plan_gives,
            "/plan/next": next_part,
            "/plan/prices/{place:int}": self._plan_prices,
            "/plan/answers": answers,
            "/plan.toml": lambda _: _plan_file(session.plan),
            "/try": tried,
            "/protect": protect,
            "/see": self._see,
            "/see/{number:int}": self._see,
            "/see/{number:int}/scatter": lambda asked: self._see(asked, "part_scatter.html"),
            "/versions": self._versions,
            "/take": take,
            "/take/{number:int}": take,
            "/take/{number:int}/{what}": self._take_file,
            "/static/report.css": lambda _: Response(self._style, media_type="text/css"),
        }
        forms: dict[str, tuple[Act, Show]] = {
            "/open/path": (self._open_path, self._open),
            "/open/pending": (
                lambda _, form: session.settle_pending(form.get("answer") == "open"),
                self._open,
            ),
            "/plan": (self._edit, self._plan),
            "/plan/prices": (lambda *_: session.price(None), next_part),
            "/plan/answers": (self._price_claims, answers),
            "/plan/search": (self._search, next_part),
            "/plan/undo": (lambda *_: session.step(-1), self._plan),
            "/plan/redo": (lambda *_: session.step(1), self._plan),
            "/try": (self._try_choices, tried),
            "/try/choose": (self._take_choice, tried),
            "/try/k": (self._try_k, tried),
            "/protect": (self._new_release, protect),
            "/task/{number:int}/{way}": (self._end_task, protect),
        }
        routes: list[Any] = [
            *(Route(path, self._asked(path, show)) for path, show in screens_shown.items()),
            *(
                Route(path, self._asked(path, self._doing(*form)), methods=["POST"])
                for path, form in forms.items()
            ),
            Route("/open/upload", self._asked("/open", self._upload), methods=["PUT"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        return Starlette(routes=[Mount(self._home.rstrip("/"), routes=routes)])

    def _asked(
        self, path: str, handler: Callable[[Request], Response | Awaitable[Response]]
    ) -> Answer:
        """Turn errors of a handler, perhaps a coroutine, into a sentence; no part of a request is logged."""
        needs_table = path != "/" and not path.startswith(_WITHOUT_TABLE)

        async def answer(request: Request) -> Response:
            self.last_asked = time.monotonic()
            try:
                if needs_table and self.session.table is None:
                    raise NoTableError
                response = handler(request)
                return await response if isinstance(response, Awaitable) else response
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

    def _doing(self, act: Act, show: Show) -> Answer:
        """Do what a form asks for, and show the screen with what is wrong with it."""

        async def answer(request: Request) -> Response:
            form, problem = await form_of(request, self._limits), ""
            try:
                done = act(request, form)
            except MicroaggError as error:
                done, problem = None, str(error)
            return show(request, problem) if done is None else done

        return answer

    # What all screens need.

    def _screen(self, template: str, step: str, **values: Any) -> Response:
        session = self.session
        text = self._templates.get_template(template).render(
            home=self._home,
            idle=self._idle,
            session=session,
            table=session.table,
            plan=session.plan if session.plans else None,
            step=step,
            **{"problems": {}, **values},
        )
        return HTMLResponse(text)

    def _part(
        self, request: Request, part: str, step: str, problem: str, key: str = "", **values: Any
    ) -> Response:
        """Render a part of a screen, or all of it if the browser sent the form before htmx was loaded.

        A problem stands next to the field that its key names, by default at the head of the part.
        """
        is_part = "hx-request" in request.headers
        template = f"part_{part}.html" if is_part else f"{step}.html"
        return self._screen(template, step, problems={key or part: problem}, **values)

    def _shows(
        self, part: str, step: str, values: Callable[[Session, OpenTable], dict[str, Any]]
    ) -> Show:
        """Return what shows a part of a screen with these values."""

        def show(request: Request, problem: str = "") -> Response:
            return self._part(request, part, step, problem, **values(self.session, self._table))

        return show

    def _nothing(self, title: str, words: str, status: int) -> Response:
        answer = self._screen(
            "nothing.html", "", title=title, words=words, to="open", link="Open a table"
        )
        answer.status_code = status
        return answer

    @property
    def _table(self) -> OpenTable:
        assert self.session.table is not None  # see _asked
        return self.session.table

    def _release(self, request: Request) -> WrittenRelease:
        number = request.path_params.get("number", len(self.session.releases))
        release = self.session.release(number)
        if release is None:
            raise NoTableError
        return release

    # Open.

    def _start(self, request: Request) -> Response:
        """Redirect to the screen where the work stands."""
        reading = self.session.latest("read")
        asks = self.session.table is None or self.session.pending or (reading and reading.open)
        return RedirectResponse(self._home + ("open" if asks else "table"), 303)

    def _open(self, request: Request, problem: str = "", folder: Path | None = None) -> Response:
        """Show the files to choose from."""
        roots = self._folders.roots
        return self._part(
            request,
            "open",
            "open",
            problem,
            listing=self._folders.listing(folder or roots[0]),
            roots=roots,
            entry=self.session.latest("read"),
            most_upload=self._limits.upload,
        )

    def _open_state(self, request: Request) -> Response:
        """Show the progress of reading; afterwards redirect to the table."""
        entry = self.session.latest("read")
        if entry is None or entry.state != "done":
            return self._open(request)
        if "hx-request" in request.headers:
            return Response(status_code=200, headers={"HX-Redirect": f"{self._home}table"})
        return RedirectResponse(f"{self._home}table", 303)

    def _open_path(self, request: Request, form: Form) -> Response | None:
        """Open a folder, or read a file."""
        path = self._folders.check(Path(form.get("path", "").strip()))
        if path.is_dir():
            return self._open(request, folder=path)
        how: dict[str, Any] = {
            key: form.get(key) or None for key in ("delimiter", "encoding", "sheet")
        }
        self.session.open(Opened(path, decimal=form.get("decimal", "."), **how))
        return None if self.session.pending else self._open_state(request)

    async def _upload(self, request: Request) -> Response:
        """Take in a file that the browser sends."""
        folder = self.session.new_folder("upload-")
        try:
            path = await upload_to(request, folder, self._limits)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.session.open(Opened(path, uploaded=True))
        return Response(status_code=204)

    # Plan.

    def _plan(
        self, request: Request, problem: str = "", key: str = "plan", text: str | None = None
    ) -> Response:
        """Show the plan as menus and fields; the page ignores an answer with fewer changes than it shows.

        ``text`` is TOML that the user typed.
        """
        values = screens.plan_screen(self.session, self._table, text)
        answer = self._part(request, "plan", "plan", problem, key, **values)
        answer.headers["X-Changes"] = str(self.session.changes)
        return answer

    def _edit(self, request: Request, form: Form) -> Response | None:
        """Change the plan, or show the error next to its field."""
        session, table = self.session, self._table
        try:
            found = session.result("search") if form.get("what") == "found" else None
            if found is not None:
                session.edit(found["plan"])
            else:
                session.edit(edited(session.plan, form, table.names, table.drafted_kinds))
        except MicroaggError as refused:
            return self._plan(request, str(refused), place_of_mistake(form), form.get("text"))
        return None

    def _plan_gives(self, request: Request) -> Response:
        """Show estimates for the current plan, made in the background."""
        if self.session.prices(self.session.plan) is None:
            self.session.price()
        values = {**screens.gives_part(self.session, self._table), "oob": True}
        return self._screen("part_gives.html", "plan", **values)

    def _plan_prices(self, request: Request) -> Response:
        """Show what other decisions about one column would cost."""
        table, place = self._table, request.path_params["place"]
        if place >= len(table.names):
            raise NoTableError
        values = screens.prices_part(self.session, table, place)
        if values["prices_wait"]:
            self.session.price((table.names[place],))
        return self._screen("part_prices.html", "plan", **values)

    def _price_claims(self, request: Request, form: Form) -> None:
        answers = _names_at(form.get("answers", ""), self._table)
        if not answers:
            raise InputError("Tick at least one column.")
        self.session.ask("claim", answers=answers)

    def _search(self, request: Request, form: Form) -> None:
        """Search a plan within a largest loss or linkage."""
        targets = _targets(form)
        if set(targets.values()) == {None}:
            raise InputError("A search needs a target. Give a largest loss or a largest linkage.")
        keep = _names_at(form.get("keep", ""), self._table)
        self.session.ask("search", **targets, keep=keep)

    # Try.

    def _try_choices(self, request: Request, form: Form) -> None:
        """Try methods and k."""
        methods = [find(name).name for name in form.get("methods", "").split(",") if name]
        sizes = [
            check_k(read_value(k.strip()), self._table.records)
            for k in form.get("sizes", "").split(",")
        ]
        if not methods:
            raise InputError("No method is chosen. Tick at least one.")
        if len(methods) * len(sizes) > _MOST_TRIES:
            raise InputError(
                f"At most {_MOST_TRIES} choices are tried at once; these are "
                f"{len(methods) * len(sizes)}. Choose fewer methods or k."
            )
        attack = form.get("attack") == "yes"
        self.session.ask("compare", methods=methods, sizes=sizes, **_targets(form), attack=attack)

    def _take_choice(self, request: Request, form: Form) -> None:
        """Take a choice of the map into the plan."""
        table, fields = self._table, {**form, "what": "k"}
        self.session.edit(edited(self.session.plan, fields, table.names, table.drafted_kinds))

    def _try_k(self, request: Request, form: Form) -> None:
        """Take a k into the plan, and try it unless it was."""
        self._take_choice(request, form)
        session, block = self.session, self.session.plan.blocks[0]
        if (block.method, block.k) not in session.cells or session.map_is_old:
            attack = session.asked("compare").get("attack", False)
            session.ask(
                "compare", methods=[block.method], sizes=[block.k], **_targets({}), attack=attack
            )

    # Protect.

    def _protect_values(self, session: Session, table: OpenTable) -> dict[str, Any]:
        folder = self._folder_of_ledgers
        return screens.protect_screen(session, table, folder, self._folders.ledgers(folder))

    @property
    def _folder_of_ledgers(self) -> Path:
        opened = self._table.opened
        return self._folders.roots[0] if opened.uploaded else opened.path.parent

    def _new_release(self, request: Request, form: Form) -> None:
        """Queue a release by the plan as it stands."""
        table, ending = self._table, form.get("ending", "")
        offered = screens.writable_endings(table)
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

    def _end_task(self, request: Request, form: Form) -> Response:
        """Stop a search and keep what it found, or cancel a task."""
        number = request.path_params["number"]
        entry = next((entry for entry in self.session.entries if entry.number == number), None)
        if entry is None:
            raise NoTableError
        if request.path_params["way"] == "stop":
            self.session.stop(entry)
        else:
            self.session.cancel(entry)
        return Response(status_code=204)

    # See and take away.

    def _see(self, request: Request, template: str = "release.html") -> Response:
        """Show the evidence of a release as the report renders it, or only two columns before and after."""
        x, y = (request.query_params.get(key, "") for key in "xy")
        values = screens.see_screen(self.session, self._table, self._release(request), x, y)
        return self._screen(template, "see", layout="see.html", **values)

    def _versions(self, request: Request) -> Response:
        """Show two releases side by side."""
        releases = self.session.releases
        if not releases:
            raise NoTableError
        asked = (
            request.query_params.get("a", max(len(releases) - 1, 1)),
            request.query_params.get("b", len(releases)),
        )
        numbers = [int(n) if str(n).isdigit() else 0 for n in asked]
        a, b = (self.session.release(number) or releases[-1] for number in numbers)
        return self._screen("versions.html", "see", **screens.versions_screen(a, b))

    def _take_file(self, request: Request) -> Response:
        """Send one of the files."""
        release, what = self._release(request), request.path_params["what"]
        files = screens.take_files(release)
        if what not in files:
            raise NoTableError
        if what == "plan":
            return _plan_file(release.plan)
        name = files[what][0]
        return FileResponse(
            release.folder / name, media_type="application/octet-stream", filename=name
        )


def _names_at(places: str, table: OpenTable) -> tuple[str, ...]:
    """Return the columns at some places, separated by commas; what is no place is left out."""
    numbers = [int(place) for place in places.split(",") if place.isdigit()]
    return tuple(table.names[number] for number in numbers if number < len(table.names))


def _targets(form: Form) -> dict[str, Any]:
    """Return the largest loss and linkage that a form names."""
    texts = (form.get(key, "").strip() for key in ("max_loss", "max_linkage"))
    numbers: list[Any] = [read_value(text) if text else None for text in texts]
    limits = Accept(*numbers)
    return {"max_loss": limits.loss, "max_linkage": limits.linkage}


def _plan_file(plan: Plan) -> Response:
    headers = {"content-disposition": 'attachment; filename="plan.toml"'}
    return Response(plan.to_toml(), media_type="application/octet-stream", headers=headers)
