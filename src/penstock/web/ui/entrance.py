"""Coming in and going out: login by token or by a link that works once, logout, and the theme."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from penstock.web.ui.access import COOKIE, Access, TooManyAttempts, own_path
from penstock.web.ui.addresses import client_of, cookie_path, prefix_of
from penstock.web.ui.drawing import address
from penstock.web.ui.form import read_form

THEMES = ("light", "dark", "auto")
YEAR = 31_536_000


class Entrance:
    """`draw` makes a page of a template and its facts."""

    def __init__(self, access: Access, draw: Callable[..., Response]) -> None:
        self._access = access
        self._draw = draw

    async def login_page(self, request: Request) -> Response:
        now, prefix = request.state.now, prefix_of(request)
        if code := request.query_params.get("link"):
            cookie = self._access.redeem(code, client_of(request), now)
            if cookie is not None:
                response: Response = RedirectResponse(f"{prefix}/", 303)
                set_session(request, response, cookie)
                return response
            return self._login_form(request, "This link was used before, or is not valid.", 403)
        if request.state.visitor is not None:
            return RedirectResponse(own_path(request.query_params.get("next", ""), prefix), 303)
        return self._login_form(request, None, 200)

    def _login_form(self, request: Request, problem: str | None, status: int, to: str = "") -> Response:
        to = to or request.query_params.get("next", "")
        facts = {"problem": problem, "to": to, "has_tokens": self._access.has_tokens}
        return self._draw(request, "login.html", facts, status=status)

    async def login(self, request: Request) -> Response:
        form = await read_form(request)
        to = form.text("next") or ""
        try:
            cookie = self._access.login(form.text("token") or "", client_of(request), request.state.now)
        except TooManyAttempts as error:
            response = self._login_form(request, str(error), 429, to)
            response.headers["Retry-After"] = str(error.facts["retry_after"])
            return response
        if cookie is None:
            return self._login_form(request, "The token is not valid, or may not see the dashboard.", 401, to)
        response = RedirectResponse(own_path(to, prefix_of(request)), 303)
        set_session(request, response, cookie)
        return response

    async def logout(self, request: Request) -> Response:
        response = RedirectResponse(address(prefix_of(request), "/login"), 303)
        response.delete_cookie(COOKIE, path=cookie_path(request))
        return response

    async def theme(self, request: Request) -> Response:
        form = await read_form(request)
        theme = form.text("theme") or ""
        response = RedirectResponse(own_path(form.text("back") or "", prefix_of(request)), 303)
        if theme in THEMES:
            path = cookie_path(request)
            response.set_cookie("penstock_theme", theme, max_age=YEAR, path=path, httponly=True, samesite="strict")
        return response


def set_session(request: Request, response: Response, cookie: str) -> None:
    is_local = request.url.hostname in ("localhost", "127.0.0.1", "::1")
    secure = request.url.scheme == "https" or not (is_local or request.url.scheme == "http")
    response.set_cookie(COOKIE, cookie, path=cookie_path(request), httponly=True, samesite="strict", secure=secure)
