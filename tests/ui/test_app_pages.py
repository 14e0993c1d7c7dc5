"""Pages that an app adds: rows, filters, actions and forms of its own, under the rules of every other page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import penstock as ps
from penstock.config import Config, DashboardConfig
from penstock.pages import ActionResult, Column, Input, Section
from penstock.testing import TestApp
from tests.ui.test_pages import check
from tests.ui.visiting import visiting

HOSTILE = "<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"
ORDERS = "select id, customer, total, state, site from orders where state = :state order by id limit 50"
COLUMNS = [
    Column("id", "order", link="/orders/{id}"),
    Column("customer", "customer"),
    Column("state", "state", "state"),
    Column("total", "total", "usd"),
    Column("site", "site", "url"),
]


def make_shop(folder: Path, **dashboard: Any) -> ps.App:
    """A shop with three pages: its orders, one order, and one that fails."""
    (folder / "001_orders.sql").write_text(
        "create table orders (id text primary key, customer text, total real, state text, site text, note text);"
    )
    (folder / "orders.html").write_text(
        '{% extends "app_page.html" %}{% block sections %}<h2 id="own">{{ sections[0].rows|length }} own</h2>{{ super() }}'
        "{{ sections[0].rows[0].customer }}{% endblock %}"
    )
    settings = DashboardConfig(hosts=("shop.example",), **dashboard)
    app = ps.App("shop", migrations=folder, config=Config(dashboard=settings))
    db = app.db

    @app.page("/orders", "Orders", COLUMNS, empty="No order is in this state.", every=2.0)
    async def orders(state: Literal["open", "paid"] = "open", most: int = 50) -> list[Any]:
        return (await db.rows(ORDERS, state=state))[:most]

    @orders.action("Mark as paid", on="row")
    async def pay(id: str) -> str:
        db.write("update orders set state = 'paid' where id = :id", id=id, expect=1)
        return f"Order {id} is paid."

    @orders.action("Delete", on="row", role="admin", confirm="The order is deleted for good.", dangerous=True)
    async def delete(id: str) -> ActionResult:
        db.write("delete from orders where id = :id", id=id)
        return ActionResult(f"Deleted order {id}.", "/orders")

    async def total(amount: float = 0.0, count: int = 1) -> list[str]:
        if amount < 0:
            raise ps.HttpError(422, "An amount is at least 0.")
        return [f"Total: {amount * count:.2f}"]

    @orders.action("New order", preview=total)
    async def add(
        id: str,
        amount: float,
        count: int = 1,
        urgent: bool = False,
        note: Annotated[str, Input("Note", "Shown to nobody else.", lines=4)] = "",
    ) -> ActionResult:
        if amount < 0:
            raise ps.HttpError(422, "An amount is at least 0.")
        row = {"id": id, "customer": "new", "total": amount * count, "state": "open", "note": f"{note}{urgent}"}
        db.write(
            "insert into orders (id, customer, total, state, note) values (:id, :customer, :total, :state, :note)", row
        )
        return ActionResult(f"Added order {id}.", f"/orders/{id}")

    @app.page("/orders/{id}", "Order", COLUMNS)
    async def order(id: str) -> list[Section]:
        row = await db.first("select id, customer, total, state, site, note from orders where id = :id", id=id)
        if row is None:
            raise ps.HttpError(404, f"There is no order {id!r}.")
        return [Section(title=f"Order {id}", facts=row.asdict(), body=row.note or ""), Section(title="Lines", rows=[])]

    async def note_of(id: str) -> dict[str, Any]:
        return {"note": await db.value("select note from orders where id = :id", id=id)}

    @order.action("Edit note", fill=note_of)
    async def edit_note(id: str, note: Annotated[str, Input(lines=6)]) -> str:
        db.write("update orders set note = :note where id = :id", id=id, note=note)
        return "Saved the note."

    @app.page("/drawn", "Drawn", COLUMNS, template=folder / "orders.html", group="Reports", role="operator")
    async def drawn() -> list[Any]:
        return await db.rows(ORDERS, state="open")

    @app.page("/broken", "Broken")
    async def broken() -> list[Any]:
        raise ZeroDivisionError("by zero")

    @app.page("/writes", "Writes")
    async def writes() -> list[Any]:
        db.write("delete from orders")
        return []

    return app


@pytest.fixture
def shop(tmp_path: Path) -> TestApp:
    return TestApp(make_shop(tmp_path))


async def stock(shop: TestApp) -> None:
    async with shop.app.unit():
        for number in range(3):
            row = {"id": f"o-{number}", "customer": HOSTILE, "total": 9.5, "site": "https://shop.example/a"}
            insert = (
                "insert into orders (id, customer, total, state, site) values (:id, :customer, :total, 'open', :site)"
            )
            shop.app.db.write(insert, row)


async def test_a_page_of_an_app_is_a_table_json_and_csv_of_the_same_rows(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        empty = await visit.get("/pages/orders")
        await stock(shop)
        page, rows = await visit.get("/pages/orders"), await visit.json("/pages/orders")
        csv = await visit.get("/pages/orders?format=csv")
        few = await visit.get("/pages/orders?most=1")
        wrong = await visit.get("/pages/orders?most=many")
        menu = (await visit.get("/queues")).html

    assert "No order is in this state." in empty.text
    check(page.html, page.elements)
    assert "$9.50" in page.text
    assert HOSTILE in page.text
    assert HOSTILE not in page.html
    assert "/ui/pages/orders/o-1" in page.links()
    assert [row["id"] for row in rows["sections"][0]["rows"]] == ["o-0", "o-1", "o-2"]
    assert csv.html.splitlines()[1].startswith("o-0,")
    assert "o-1" not in few.text
    assert wrong.status == 400
    assert 'href="/ui/pages/orders"' in menu
    assert 'href="/ui/pages/orders/{id}"' not in menu


async def test_a_button_of_a_row_does_its_action_once_and_leaves_an_audit(shop: TestApp) -> None:
    async with visiting(shop, "operator") as visit:
        await stock(shop)
        page = await visit.get("/pages/orders")
        done = await visit.post("/do/pages/orders/pay", {"id": "o-1", "back": "/ui/pages/orders", "key": "k1"})
        again = await visit.post("/do/pages/orders/pay", {"id": "o-1", "back": "/ui/pages/orders", "key": "k1"})
        lost = await visit.post("/do/pages/orders/pay", {"id": "none", "back": "/ui/pages/orders", "key": "k2"})
        deleted = await visit.post("/do/pages/orders/delete", {"id": "o-2", "back": "/ui/pages/orders"})
        paid = await shop.app.db.column("select id from orders where state = 'paid'")
        audit = (await visit.json("/audit"))["audit"]

    assert page.html.count("Mark as paid") == 3
    assert "Delete" not in page.text
    assert (done.status, again.status, lost.status, deleted.status) == (303, 303, 422, 403)
    assert paid == ["o-1"]
    assert [(row["actor"], row["verb"], row["name"]) for row in audit if row["kind"] == "page"] == [
        ("operator", "orders pay", "o-1")
    ]
    assert all(row["command"] is None for row in audit)


async def test_a_viewer_and_a_foreign_site_can_do_nothing(shop: TestApp) -> None:
    await stock(shop)
    async with visiting(shop, "viewer") as visit:
        page = await visit.get("/pages/orders")
        refused = await visit.post("/do/pages/orders/pay", {"id": "o-1"})
        form = await visit.get("/forms/orders/add")
        drawn = await visit.get("/pages/drawn")
        menu = (await visit.get("/")).html
    async with visiting(shop, "admin") as visit:
        forged = await visit.post("/do/pages/orders/pay", {"id": "o-1"}, site="cross-site")
    async with visiting(shop, None) as visit:
        stranger = await visit.get("/pages/orders")

    assert 'href="/ui/pages/orders"' in menu
    assert "Drawn" not in menu
    assert 'action="/ui/do/' not in page.html
    assert (refused.status, form.status, drawn.status, forged.status, stranger.status) == (403, 403, 403, 403, 303)
    assert await shop.app.db.value("select count(*) from orders where state = 'paid'") == 0


async def test_a_form_asks_for_what_is_not_known_and_keeps_what_was_typed(shop: TestApp) -> None:
    async with visiting(shop, "operator") as visit:
        form = await visit.get("/forms/orders/add")
        previewed = await visit.get("/forms/orders/add?preview=1&id=n-1&amount=3&count=4")
        bad = {"id": "n-1", "amount": "-3", "note": HOSTILE, "back": "/ui/forms/orders/add"}
        refused = await visit.post("/do/pages/orders/add", bad)
        done = await visit.post("/do/pages/orders/add", bad | {"amount": "3", "urgent": "1"})
        order = await visit.get("/pages/orders/n-1")
        edit = await visit.get("/forms/orders/edit-note?id=n-1")

    check(form.html, form.elements)
    assert [given["name"] for tag, given in form.elements if tag == "input" and given.get("type") == "checkbox"] == [
        "urgent"
    ]
    assert "Total: 12.00" in previewed.text
    assert refused.status == 422
    assert "An amount is at least 0." in refused.text
    assert HOSTILE in refused.text
    assert HOSTILE not in refused.html
    assert (done.status, done.headers["location"]) == (303, "/ui/pages/orders/n-1")
    assert "Order n-1" in order.text
    assert "/ui/forms/orders/edit-note?id=n-1" in order.links()
    assert f"{HOSTILE}True" in edit.text


async def test_a_dangerous_action_asks_first(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        await stock(shop)
        page = await visit.get("/pages/orders")
        form = await visit.get("/forms/orders/delete?id=o-0")
        done = await visit.post("/do/pages/orders/delete", {"id": "o-0"})
        left = await shop.app.db.value("select count(*) from orders")

    assert "/ui/forms/orders/delete?id=o-0" in page.links()
    assert "The order is deleted for good." in form.text
    assert (done.status, left) == (303, 2)


async def test_a_page_may_have_a_template_of_its_own_which_escapes_too(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        await stock(shop)
        seen = await visit.get("/pages/drawn")

    check(seen.html, seen.elements)
    assert "3 own" in seen.text
    assert HOSTILE not in seen.html


async def test_a_page_that_fails_or_writes_says_so_and_changes_nothing(shop: TestApp) -> None:
    async with visiting(shop) as visit:
        await stock(shop)
        broken, writes = await visit.get("/pages/broken"), await visit.get("/pages/writes")
        missing = await visit.get("/pages/orders/none")
        left = await shop.app.db.value("select count(*) from orders")

    assert (broken.status, missing.status) == (500, 404)
    assert "ZeroDivisionError" in broken.text
    assert "by zero" not in broken.text
    assert writes.status == 409
    assert left == 3


async def test_every_link_and_form_of_a_page_stays_under_the_prefix(shop: TestApp) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from penstock.web import KnownToken, hashed, make_dashboard

    token = KnownToken("admin", hashed("admin"), ("*",))
    site = Starlette(routes=[Mount("/a/b", make_dashboard(shop.app, tokens=[token], hosts=["*"]))])
    async with visiting(shop, prefix="/a/b", site=site) as visit:
        await stock(shop)
        for path in ("/pages/orders", "/pages/orders/o-1", "/forms/orders/add"):
            seen = await visit.get(path)
            for tag, given in seen.elements:
                for name in ("href", "src", "action", "hx-get", "formaction"):
                    to = given.get(name) or "/a/b/"
                    assert not to.startswith("/") or to.startswith("/a/b/"), (path, tag, to)


@pytest.fixture
def discreet(tmp_path: Path) -> TestApp:
    return TestApp(make_shop(tmp_path, hide=("customer",)))


async def test_fields_that_the_deployment_hides_are_hidden_here_too(discreet: TestApp) -> None:
    shop = discreet
    async with visiting(shop) as visit:
        await stock(shop)
        assert {row["customer"] for row in (await visit.json("/pages/orders"))["sections"][0]["rows"]} == {"***"}


async def test_a_read_only_dashboard_has_no_action_of_an_app(shop: TestApp) -> None:
    from penstock.web import KnownToken, hashed, make_dashboard

    site = make_dashboard(shop.app, tokens=[KnownToken("admin", hashed("admin"), ("*",))], hosts=["*"], read_only=True)
    async with visiting(shop, prefix="", site=site) as visit:
        await stock(shop)
        page = await visit.get("/pages/orders")
        assert "Mark as paid" not in page.text
        assert "New order" not in page.text
        assert (await visit.get("/forms/orders/add")).status == 404
        assert (await visit.post("/do/pages/orders/pay", {"id": "o-1"})).status == 404


def test_a_wrong_declaration_is_refused_by_name(tmp_path: Path) -> None:
    app = ps.App("shop", migrations=tmp_path)
    with pytest.raises(ps.PenstockError, match="cannot be a page"):
        app.page("orders", "Orders")
    with pytest.raises(ps.PenstockError, match="no kind of column"):
        app.page("/orders", "Orders", [Column("id", "order", "money")])

    @app.page("/orders", "Orders")
    async def orders(state: str = "open") -> list[Any]:
        return []

    with pytest.raises(ps.PenstockError, match="has a function already"):
        app.page("/orders", "Again")(orders.function)
    with pytest.raises(ps.PenstockError, match="not async"):
        app.page("/plain", "Plain")(make_shop)
