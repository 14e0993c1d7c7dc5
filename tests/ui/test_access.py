"""Who may come in and do what: tokens, sessions, roles, foreign sites and hosts, over every route of the router's table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.routing import Route

from penstock.cli.listening import make_server
from penstock.testing import TestApp
from penstock.web import KnownToken, hashed
from penstock.web.connection import AddressLimit
from penstock.web.site import make_site
from penstock.web.ui import make_dashboard
from penstock.web.ui.access import Access, own_path
from penstock.web.ui.actions import ACTIONS
from penstock.web.ui.pages import PAGES
from tests.ui.visiting import TOKENS, visiting

FORM = {"name": "orders", "id": "1", "back": "/ui/"}
OPEN = {"/login", "/theme", "/static/{digest}/{name}"}  # what a visitor without a session may ask for


def routes(shop: TestApp) -> list[tuple[str, str]]:
    site = make_dashboard(shop.app, tokens=[])
    return [
        (method, route.path)
        for route in site.routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


def filled(path: str) -> str:
    for part in ("{name:path}", "{name}", "{id:path}", "{id}", "{workflow}", "{class}", "{digest}"):
        path = path.replace(part, "x")
    return path


async def audited(shop: TestApp) -> list[tuple[Any, ...]]:
    engine = await shop.app._opened()
    asked = "select actor, verb, name, after from penstock_audit order by at, name limit 200"
    return (await engine.read("", asked, {}, rows_max=200)).values


@pytest.mark.fault("F45")
async def test_without_a_session_every_route_leads_to_the_login_and_does_nothing(shop: TestApp) -> None:
    async with visiting(shop, token=None) as visit:
        for method, path in routes(shop):
            if path in OPEN:
                continue
            if method == "GET":
                seen = await visit.get(filled(path))
                assert (path, seen.status) == (path, 303)
                assert seen.headers["location"].startswith("/ui/login?next=%2Fui%2F")
                assert (await visit.get(f"{filled(path)}?format=json", accept="application/json")).status == 401
            else:
                assert (path, (await visit.post(filled(path), FORM)).status) == (path, 401)
        rows = await audited(shop)

    assert len(rows) == 10  # a stranger cannot fill the disk: further refusals of a minute are only logged
    assert {row[:2] for row in rows} == {("-", "ui refused")}


@pytest.mark.fault("F45")
@pytest.mark.parametrize("token", ["viewer", "operator"])
async def test_a_role_does_what_it_may_and_no_more(shop: TestApp, token: str) -> None:
    async with visiting(shop, token) as visit:
        for action in ACTIONS:
            seen = await visit.post(action.path, FORM)
            may = action.role.word == "operator" and token == "operator"
            assert (action.path, seen.status == 403) == (action.path, not may)
        for page in PAGES:
            seen = await visit.get(filled(page.path))
            may = page.role.word == "viewer" or (page.role.word == "operator" and token == "operator")
            assert (page.path, seen.status == 403) == (page.path, not may)
        refused = [row for row in await audited(shop) if row[1] == "ui refused"]

    assert len(refused) == sum(action.role.word == "admin" or token == "viewer" for action in ACTIONS)
    assert {row[0] for row in refused} == {token}


@pytest.mark.fault("F46")
@pytest.mark.parametrize(
    "site, headers",
    [
        ("cross-site", {}),
        ("same-site", {}),
        ("none", {}),
        (None, {"origin": "http://evil.example"}),
        (None, {"origin": "null"}),
        (None, {}),
        ("same-origin", {"content-type": "text/plain"}),
    ],
)
async def test_a_form_of_another_site_is_refused_and_recorded(
    shop: TestApp, site: str | None, headers: dict[str, str]
) -> None:
    async with visiting(shop) as visit:
        for _, path in (each for each in routes(shop) if each[0] == "POST"):
            seen = await visit.post(filled(path), FORM, site=site, **headers)
            assert (path, seen.status) == (path, 403), seen.text
        rows = await audited(shop)

    assert all(row[1] == "ui refused" for row in rows)
    assert len(rows) > 10


@pytest.mark.fault("F46")
async def test_a_browser_without_fetch_metadata_is_known_by_its_origin(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        seen = await visit.post("/do/queues/pause", FORM, site=None, origin="http://shop.example")

    assert seen.status == 303


@pytest.mark.fault("F45")
@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "shop.example.evil", "[::1"])
async def test_a_host_that_is_not_listed_is_misdirected(shop: TestApp, host: str) -> None:
    async with visiting(shop) as visit:
        assert (await visit.get("/", host=host)).status == 421
        assert (await visit.get("/login", host=host)).status == 421
        assert (await visit.get("/", host="localhost:8787")).status in (200, 303)


@pytest.mark.fault("F45")
async def test_the_eleventh_wrong_token_of_a_minute_has_to_wait(shop: TestApp) -> None:
    async with visiting(shop, token=None) as visit:
        for _ in range(10):
            assert (await visit.login("wrong")).status == 401
        late = await visit.login("admin")
        assert (late.status, late.headers["retry-after"]) == (429, "60")
        async with visiting(shop, token=None, address="10.0.0.9") as other:
            assert (await other.login("admin")).status == 303
        await shop.advance(seconds=61)

        assert (await visit.login("admin")).status == 303


@pytest.mark.fault("F45")
async def test_wrong_tokens_from_any_number_of_addresses_lock_out_no_other_address(shop: TestApp) -> None:
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in TOKENS.items()]
    site = make_site(shop.app, tokens=tokens)
    for number in range(300):
        async with visiting(shop, token=None, address=f"10.0.{number // 250}.{number % 250}", site=site) as stranger:
            assert (await stranger.login("wrong")).status == 401
    async with visiting(shop, token=None, address="2001:db8::1", site=site) as first:
        for _ in range(10):
            await first.login("wrong")
    async with visiting(shop, token=None, address="2001:db8::2", site=site) as neighbour:
        assert (await neighbour.login("admin")).status == 429, "one client has all addresses of its network"
    async with visiting(shop, token=None, address="192.0.2.77", site=site) as operator:
        assert (await operator.login("admin")).status == 303


@pytest.mark.fault("F45")
@pytest.mark.parametrize("proxies, status", [(("192.0.2.10",), 303), ((), 429)])
async def test_behind_a_named_proxy_each_client_counts_for_itself_and_others_cannot_claim_an_address(
    shop: TestApp, proxies: tuple[str, ...], status: int
) -> None:
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in TOKENS.items()]
    server = make_server(shop.app, tokens, AddressLimit(proxies=proxies))
    server.config.load()
    async with visiting(shop, token=None, address="192.0.2.10", site=server.config.loaded_app) as visit:
        for number in range(11):
            forwarded = {"x-forwarded-for": f"198.51.100.{number}, 203.0.113.9"}  # the first is what the client claims
            wrong = await visit.post("/login", {"token": "wrong"}, **forwarded)
        operator = await visit.post("/login", {"token": "admin"}, **{"x-forwarded-for": "198.51.100.7"})

    assert wrong.status == 429
    assert operator.status == status


@pytest.mark.fault("F46")
async def test_no_get_changes_anything(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        await shop.advance(minutes=1)
        engine = await shop.app._opened()
        before = (await engine.read("", "pragma data_version", {}, rows_max=1)).values
        for method, path in routes(shop):
            if method == "GET" and path != "/live":
                await visit.get(filled(path))
        after = (await engine.read("", "pragma data_version", {}, rows_max=1)).values

    assert before == after


@pytest.mark.fault("F46")
async def test_the_cookie_of_a_session_is_for_this_site_alone_and_ends(shop: TestApp) -> None:
    async with visiting(shop, token=None) as visit:
        cookie = (await visit.login("operator")).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Path=/ui" in cookie
        assert (await visit.get("/")).status == 200
        await shop.advance(hours=12, seconds=1)
        assert (await visit.get("/")).status == 303


async def test_an_administrator_who_does_nothing_for_half_an_hour_logs_in_again(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        for _ in range(4):
            await shop.advance(minutes=20)
            assert (await visit.get("/")).status == 200
        await shop.advance(minutes=31)
        assert (await visit.get("/")).status == 303


async def test_a_forged_cookie_and_a_removed_token_do_not_come_in(shop: TestApp) -> None:
    access = Access([KnownToken("a", hashed("secret"))])
    cookie = access.login("secret", "-", 0)
    assert cookie is not None
    removed = Access([KnownToken("a", hashed("another"))])
    body, _, signature = cookie.partition(".")

    def comes_in(known: Access, given: str) -> bool:
        from starlette.requests import Request

        headers = [(b"cookie", f"penstock_session={given}".encode())]
        return known.visitor(Request({"type": "http", "headers": headers}), 1) is not None

    assert comes_in(access, cookie)
    assert not comes_in(removed, cookie)
    assert not comes_in(access, f"{body}x.{signature}")
    assert not comes_in(access, f"{body}.{signature[:-1]}{'1' if signature.endswith('0') else '0'}")
    assert not comes_in(access, "x")


async def test_a_token_is_valid_until_it_expires(shop: TestApp) -> None:
    ends = datetime(2026, 1, 1, tzinfo=UTC)
    access = Access([KnownToken(name="a", sha256=hashed("secret"), scopes=("ui:view",), expires=ends)])

    def at(moment: datetime) -> int:
        return int(moment.timestamp() * 1_000_000)

    assert access.login("secret", "-", at(ends - timedelta(seconds=1))) is not None
    assert access.login("secret", "-", at(ends)) is None


async def test_a_link_logs_in_once(shop: TestApp) -> None:
    from penstock.web.site import make_site

    tokens = [KnownToken("made for this run", hashed("secret"))]
    access = Access(tokens, ("shop.example",))
    link = access.make_link()
    site = make_site(shop.app, tokens=tokens, access=access)
    async with visiting(shop, token=None, site=site) as visit:
        first = await visit.get(f"/login?link={link}")
        assert (first.status, first.headers["location"]) == (303, "/ui/")
        assert (await visit.get("/")).status == 200
        assert (await visit.get(f"/login?link={link}")).status == 403


async def test_a_link_from_a_chat_arrives_with_the_session(shop: TestApp) -> None:
    async with visiting(shop, token=None) as visit:
        there = await visit.get("/dead", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
        assert there.status == 200
        assert 'http-equiv="refresh" content="0; url=/ui/dead"' in there.html.replace("?again=1", "")
        again = await visit.get("/dead?again=1", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
        assert again.status == 303


@pytest.mark.parametrize(
    "given",
    [
        "//evil.example",
        "https://evil.example/ui/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/other",
        "/uix",
        "/ui/\n",
    ],
)
def test_a_login_leads_to_no_other_site(given: str) -> None:
    assert own_path(given, "/ui") == "/ui/"
    assert own_path("/ui/dead?queue=a", "/ui") == "/ui/dead?queue=a"


async def test_a_read_only_dashboard_has_no_route_that_changes_anything(shop: TestApp) -> None:
    site = make_dashboard(shop.app, tokens=[KnownToken("admin", hashed("admin"))], read_only=True)
    posts = {route.path for route in site.routes if isinstance(route, Route) and "POST" in (route.methods or ())}

    assert posts == {"/login", "/logout", "/theme"}


async def test_every_answer_has_the_headers_of_a_strict_policy(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        for path in ("/", "/login", "/nowhere", "/queues/nowhere", "/dead?format=json"):
            seen = await visit.get(path)
            policy = seen.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert seen.headers["cache-control"] == "no-store"
            assert seen.headers["x-content-type-options"] == "nosniff"


def test_the_tokens_of_these_tests_are_one_for_each_role() -> None:
    assert set(TOKENS) == {"admin", "operator", "viewer", "other"}


async def test_a_token_without_a_scope_of_the_dashboard_stays_outside(shop: TestApp) -> None:
    async with visiting(shop, token=None) as visit:
        assert (await visit.login("other")).status == 401
