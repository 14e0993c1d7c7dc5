"""The dashboard as an ASGI application: its routes, who may use each, and how facts become an answer."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from penstock.app import App
from penstock.config import KnownToken
from penstock.model.errors import PenstockError, StoreError
from penstock.pages import ActionResult
from penstock.runtime.audit import operated_by
from penstock.web.ui import bulk
from penstock.web.ui.access import (
    Access,
    Forged,
    Role,
    TooManyAttempts,
    Visitor,
    allowed,
    came_from_elsewhere,
    check_origin,
    own_path,
)
from penstock.web.ui.actions import ACTIONS, Action, Doing
from penstock.web.ui.addresses import (
    client_of,
    cookie_path,
    format_of,
    inner_path,
    matched,
    own_address,
    prefix_of,
    shown,
    shown_address,
)
from penstock.web.ui.contributed import actions_of, pages_of
from penstock.web.ui.drawing import address, environment, shared
from penstock.web.ui.entrance import THEMES, Entrance, set_session
from penstock.web.ui.export import as_csv, listed_rows
from penstock.web.ui.exposition import CONTENT_TYPE, exposition, measured
from penstock.web.ui.form import Form, read_form
from penstock.web.ui.headers import HEADERS
from penstock.web.ui.live import Live
from penstock.web.ui.memory import Keys, Tracks
from penstock.web.ui.page import Facts, NoSuchThing, Page, PageLook
from penstock.web.ui.pages import PAGES
from penstock.web.ui.pages_sources import declare_sources
from penstock.web.ui.reading import PageCost, PageSource
from penstock.web.ui.refusals import Refusals, explained
from penstock.web.ui.static import Static

KEPT = ("body", "payload", "rate", "parallel", "reason_given")  # of a form that was not done: it is shown again
SAID, SAID_MAX = "penstock_said", 400

_log = logging.getLogger("penstock.web.ui")


class Dashboard:
    """Answers requests: every answer is made here, so that none lacks its headers or its check."""

    def __init__(self, app: App, access: Access, *, title: str | None, read_only: bool) -> None:
        self.app = app
        self.access = access
        self.source = PageSource(app)
        self.title = title or app.name
        self.read_only = read_only
        self.static = Static(Path(__file__).parent / "static")
        self.refusals, self.jobs = Refusals(app), bulk.Jobs(app)
        self.live, self._tracks = Live(self.source), Tracks()
        self._entrance = Entrance(access, self.draw)
        self._keys = Keys()
        self._templates = environment()
        declare_sources(app)
        self.pages = [*PAGES, *pages_of(app, read_only=read_only)]
        self.actions = [*ACTIONS, *bulk.ACTIONS, *actions_of(app)]

    def routes(self) -> list[Route]:
        made = [
            Route("/login", self.guarded(self._entrance.login_page, None), methods=["GET"]),
            Route("/login", self.guarded(self._entrance.login, None), methods=["POST"]),
            Route("/logout", self.guarded(self._entrance.logout, Role.VIEWER), methods=["POST"]),
            Route("/theme", self.guarded(self._entrance.theme, None), methods=["POST"]),
            Route("/metrics", self.guarded(self.metrics, Role.VIEWER), methods=["GET"]),
            Route("/live", self.guarded(self._live, Role.VIEWER), methods=["GET"]),
            Route("/static/{digest}/{name}", self._static, methods=["GET"]),
        ]
        if not self.read_only:
            made += [
                Route(each.path, self.guarded(partial(self._act, each), each.role), methods=["POST"])
                for each in self.actions
            ]
        made += [
            Route(page.path, self.guarded(partial(self._page, page), page.role), methods=["GET"])
            for page in self.pages
            if not (self.read_only and page.path.startswith("/confirm/"))
        ]
        return made

    # -- one request ----------------------------------------------------------------------------------------

    def guarded(
        self, answer: Callable[[Request], Awaitable[Response]], role: Role | None
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the answer to a request whose host, origin and role are right, with the headers that all have."""

        async def guard(request: Request) -> Response:
            try:
                response = await self._judged(request, answer, role)
            except PenstockError as error:
                response = self._refused(request, error)
            except Exception:
                _log.exception("a page failed: %s %s", request.method, request.url.path)
                response = self.problem(request, 500, "Penstock itself failed", "The log has the traceback.")
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return guard

    async def _judged(
        self, request: Request, answer: Callable[[Request], Awaitable[Response]], role: Role | None
    ) -> Response:
        self.access.check_host(request)
        now = await self.source.now()
        visitor = self.access.visitor(request, now)
        request.state.visitor, request.state.now = visitor, now
        if request.method not in ("GET", "HEAD"):
            try:
                check_origin(request, visitor)
            except Forged as error:
                await self.refusals.note(visitor, client_of(request), request, str(error), now)
                raise
        if role is not None and not allowed(visitor, role):
            if request.method != "GET":
                await self.refusals.note(visitor, client_of(request), request, f"needs the role {role.word}", now)
            return self._no_entry(request, visitor, role)
        response = await answer(request)
        if visitor is not None and visitor.renewed is not None:
            set_session(request, response, visitor.renewed)
        return response

    def _no_entry(self, request: Request, visitor: Visitor | None, role: Role) -> Response:
        if visitor is not None:
            text = f"Your role is {visitor.role.word}; this needs {role.word}."
            return self.problem(request, 403, "Not allowed", text)
        wants_html = "text/html" in request.headers.get("accept", "")
        if request.method != "GET" or not wants_html or request.query_params.get("part"):
            return self.problem(request, 401, "Log in first", "The session has ended, or there was none.")
        if came_from_elsewhere(request.headers) and "again" not in request.query_params:
            return self.draw(request, "again.html", {"to": str(request.url.include_query_params(again=1).path)})
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(address(prefix_of(request), "/login", next=own_address(request) + query), 303)

    def _refused(self, request: Request, error: PenstockError) -> Response:
        if isinstance(error, StoreError):
            _log.error("a page could not be read: %s", error)
        status, title, text = explained(error)
        response = self.problem(request, status, title, text)
        if isinstance(error, TooManyAttempts):
            response.headers["Retry-After"] = str(error.facts["retry_after"])
        return response

    def problem(self, request: Request, status: int, title: str, text: str) -> Response:
        if format_of(request) == "json" or "text/html" not in request.headers.get("accept", "text/html"):
            facts = {"error": {"code": status, "message": text, "title": title}}
            return Response(msgspec.json.encode(facts), status, media_type="application/json")
        template = "stranger.html" if getattr(request.state, "visitor", None) is None else "problem.html"
        return self.draw(request, template, {"heading": title, "text": text}, status=status)

    async def nothing(self, request: Request, _: Exception) -> Response:
        return await self.guarded(_nothing, None)(request)

    # -- pages ----------------------------------------------------------------------------------------------

    async def _page(self, page: Page, request: Request) -> Response:
        read = partial(self.facts, page, request)
        is_part = request.query_params.get("part") == "1"
        facts, spent = await (self.live.recent(shown_address(request), read) if is_part else read())
        kind = format_of(request)
        if kind == "json":
            config, role = self.app.config.dashboard, request.state.visitor.role
            given = shared(facts, config.hide, shows_payloads=self._shows_payloads(role))
            return Response(msgspec.json.encode(given, enc_hook=str), media_type="application/json")
        if kind == "csv" and page.listing is not None:
            content = as_csv(page.listing.columns, listed_rows(facts, page.listing.name))
            name = f'attachment; filename="{page.listing.name}.csv"'
            return Response(content, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": name})
        if (goto := facts.get("goto")) is not None:
            return RedirectResponse(address(prefix_of(request), "", *goto), 303)
        return self.draw(request, page.template, {**page.views, **facts}, page=page, spent=spent)

    async def facts(self, page: Page, request: Request, path: str = "", query: str = "") -> tuple[Facts, PageCost]:
        """Return the facts of a page: of the request's own, or of the one at another address."""
        visitor: Visitor = request.state.visitor
        given = QueryParams(query) if path else request.query_params
        parts = matched(page, path) or {} if path else dict(request.path_params)
        rows = self.source.total.rows
        look = partial(
            PageLook,
            role=visitor.role,
            query=dict(given),
            parts=parts,
            fields=given.multi_items(),
            jobs=self.jobs.rows(),
        )
        if page.of_app is not None:
            return await page.of_app(look(None, dashboard_rows=rows)), PageCost()  # type: ignore[arg-type]
        facts, spent = await self.source.read(lambda reading: page.read(look(reading, dashboard_rows=rows)))
        if "track" in facts and "pace" in facts:
            facts["track"] = self._tracks.add(facts["pace"], request.state.now, facts["track"])
        return facts, spent

    async def _live(self, request: Request) -> Response:
        """Answer with a stream of events for the page that the browser shows."""
        path, _, query = request.query_params.get("page", "").partition("?")
        page = next((each for each in self.pages if each.every and matched(each, path) is not None), None)
        if page is None:
            raise NoSuchThing("No page that is kept current has this address.")
        session = f"{request.state.visitor.name} {client_of(request)}"
        if not self.live.has_room(session):
            return Response("Poll instead.", 503, media_type="text/plain", headers={"Retry-After": "5"})
        read = partial(self.facts, page, request, path, query)
        events = self.live.stream(shown(path, query), session, page.every, read)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    # -- actions --------------------------------------------------------------------------------------------

    async def _act(self, action: Action, request: Request) -> Response:
        """Do what a form asks for, then go back to the page it was on, which says what was done."""
        form, prefix, visitor = await read_form(request), prefix_of(request), request.state.visitor
        back = own_path(form.text("back") or "", prefix)
        key = form.text("key")
        if key is not None and not self._keys.add(key):
            return self._said(request, back, "This was done already; nothing was repeated.", "calm")
        try:
            origin = f"dashboard {client_of(request)}"
            doing = Doing(self.app, self.source, form, self.jobs, visitor.name, origin)
            with operated_by(visitor.name, origin):
                done = await action.act(doing)
            self.live.forget()
        except PenstockError as error:
            if isinstance(error, StoreError):
                raise
            return await self._not_done(request, back, form, error, (*KEPT, *action.keeps))
        made = done if isinstance(done, ActionResult) else ActionResult(done)
        back = prefix + made.to if made.to else own_path(form.text("after") or back, prefix)
        if format_of(request) == "json" or not visitor.by_cookie:
            return Response(msgspec.json.encode({"done": made.text}), media_type="application/json")
        return self._said(request, back, made.text, "good")

    async def _not_done(
        self, request: Request, back: str, form: Form, error: PenstockError, keeps: Iterable[str]
    ) -> Response:
        """Show the page of the form again, with what was typed and why it was not done."""
        if format_of(request) == "json" or not request.state.visitor.by_cookie:
            return self.problem(request, 422, "Not done", str(error))
        path, _, query = back.removeprefix(prefix_of(request)).partition("?")
        typed = {name: value for name in keeps if (value := form.text(name)) is not None}
        for page in self.pages:
            if matched(page, path or "/") is not None and allowed(request.state.visitor, page.role):
                facts, spent = await self.facts(page, request, path or "/", query)
                own = {"path": path or "/", "query": dict(QueryParams(query)) | typed}
                said = {"tone": "bad", "text": str(error)}
                return self.draw(
                    request,
                    page.template,
                    {**page.views, **facts},
                    page=page,
                    spent=spent,
                    status=422,
                    said=said,
                    **own,
                )
        return self.problem(request, 422, "Not done", str(error))

    def _said(self, request: Request, back: str, text: str, tone: str) -> Response:
        response = RedirectResponse(back, 303)
        value, path = quote(f"{tone} {text}"[:SAID_MAX]), cookie_path(request)
        response.set_cookie(SAID, value, max_age=60, path=path, httponly=True, samesite="strict")
        return response

    # -- drawing --------------------------------------------------------------------------------------------

    def _shows_payloads(self, role: Role | None) -> bool:
        return self.app.config.dashboard.payloads == "viewer" or (role is not None and role >= Role.OPERATOR)

    def _menu(self, role: Role | None) -> dict[str, list[Page]]:
        """Return the pages of the app by heading that a visitor of this role may see."""
        found: dict[str, list[Page]] = {}
        for page in self.pages:
            if page.heading and role is not None and role >= page.role:
                found.setdefault(page.heading, []).append(page)
        return found

    def draw(
        self,
        request: Request,
        template: str,
        facts: Mapping[str, Any],
        *,
        page: Page | None = None,
        spent: PageCost | None = None,
        status: int = 200,
        **own: Any,
    ) -> Response:
        visitor: Visitor | None = getattr(request.state, "visitor", None)
        theme = request.cookies.get("penstock_theme", "auto")
        role = None if visitor is None else visitor.role
        tone, _, words = unquote(request.cookies.get(SAID, "")).partition(" ")
        said = {"tone": tone, "text": words} if words and request.method == "GET" else None
        hidden = self.app.config.dashboard
        shows_payloads = self._shows_payloads(role)
        context: dict[str, Any] = {
            "prefix": prefix_of(request),
            "path": inner_path(request),
            "query": dict(request.query_params),
            "now": getattr(request.state, "now", 0),
            "title": self.title,
            "page": page,
            "spent": spent,
            "visitor": visitor,
            "may_operate": not self.read_only and role is not None and role >= Role.OPERATOR,
            "may_admin": not self.read_only and role is Role.ADMIN,
            "shows_payloads": shows_payloads,
            "hidden": hidden.hide,
            "theme": theme if theme in THEMES else "auto",
            "static": partial(self.static.path, prefix_of(request)),
            "location": self.source.target.database,
            "said": said,
            "reports": self._menu(role),
            "new_key": partial(secrets.token_urlsafe, 12),
            "is_part": request.query_params.get("part") == "1",
        }
        text = self._templates.get_template(template).render(**{**context, **own}, **facts)
        response = Response(text, status, media_type="text/html")
        if said is not None:
            response.delete_cookie(SAID, path=cookie_path(request))
        return response

    async def metrics(self, request: Request) -> Response:
        """Answer Prometheus. Its token needs the scope ui:view."""
        read = partial(self.source.read, lambda reading: measured(PageLook(reading, Role.VIEWER)))
        facts, _ = await self.live.recent("/metrics", read)
        return Response(exposition(facts), media_type=CONTENT_TYPE)

    async def _static(self, request: Request) -> Response:
        response = self.static.answer(request.path_params["digest"], request.path_params["name"])
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def make_dashboard(
    app: App,
    *,
    tokens: Iterable[KnownToken] | None = None,
    title: str | None = None,
    read_only: bool = False,
    hosts: Sequence[str] | None = None,
    access: Access | None = None,
) -> Starlette:
    """An ASGI application with the dashboard of an app, to be mounted under any path: `Mount("/ops", make_dashboard(app))`.

    Without `tokens` those of the configuration count. `hosts` are the names under which it is served besides this machine's
    own; without them, those of the configuration. With `read_only` it has no route that changes anything."""
    if access is None:
        access = Access(
            app.config.tokens if tokens is None else tokens, app.config.dashboard.hosts if hosts is None else hosts
        )
    made = Dashboard(app, access, title=title, read_only=read_only)
    site = Starlette(routes=made.routes(), exception_handlers={HTTPException: made.nothing})
    site.router.redirect_slashes = False
    site.state.dashboard = made
    return site


async def _nothing(_: Request) -> Response:
    raise NoSuchThing("No page has this address.")
