"""Pages and actions that an app adds: read and done by its functions, under the rules of every other page."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from penstock.app import App
from penstock.model.errors import HttpError, PenstockError
from penstock.model.row import Row as DatabaseRow
from penstock.pages import ActionResult, AppPage, Input, PageAction, Section
from penstock.routes import EMPTY, Parameter, Request
from penstock.runtime.audit import audit, record
from penstock.views.view import Row, View, short
from penstock.web.intake import BadField
from penstock.web.routes import UserRoutes, converted
from penstock.web.ui.access import Role
from penstock.web.ui.actions import Action, Doing
from penstock.web.ui.page import Facts, NoSuchThing, Page, PageFailed, PageLook

PREFIX = "/pages"
AUDITED = 120  # characters of a value in the audit

_log = logging.getLogger("penstock.web.ui")


def pages_of(app: App, *, read_only: bool) -> Iterator[Page]:
    for page in app.pages.values():
        actions = page.actions if not read_only else []
        shown = {"declared": page, "pressable": partial(_pressable, actions), "filters": partial(_filters, page)}
        listing = View("rows", tuple(page.columns)) if page.columns else None
        yield Page(
            PREFIX + page.path,
            page.title,
            _nothing,
            "app_page.html" if page.template is None else str(page.template),
            Role[page.role.upper()],
            listing,
            page.every,
            shown,
            partial(_read, page),
            "" if "{" in page.path else page.group,
        )
        for action in actions:
            shown = {"declared": page, "action": action}
            read, role = partial(_form, page, action), Role[action.role.upper()]
            yield Page(f"/forms{action.path}", action.label, _nothing, "app_form.html", role, views=shown, of_app=read)


def _pressable(actions: Sequence[PageAction], role: Role) -> list[PageAction]:
    return [each for each in actions if role >= Role[each.role.upper()]]


def _filters(page: AppPage, query: Mapping[str, str]) -> list[Row]:
    """Return the fields above a list. The `cursor`, where a list is continued, has no field."""
    asked = [each for each in page.parameters if each.place == "query" and each.name != "cursor"]
    return [field_of(each, page.inputs[each.name], query) for each in asked]


def actions_of(app: App) -> Iterator[Action]:
    for page in app.pages.values():
        for action in page.actions:
            keeps = [each.name for each in action.parameters]
            yield Action(f"/do{PREFIX}{action.path}", partial(_act, page, action), Role[action.role.upper()], keeps)


async def _nothing(_: PageLook) -> Facts:
    raise AssertionError("the app reads its own pages")


# -- reading ------------------------------------------------------------------------------------------------


async def _read(page: AppPage, look: PageLook) -> Facts:
    given = _arguments(page.parameters, look.fields, look.parts)
    found = await _called(page.app, page.function, given)
    hidden = frozenset(page.app.config.dashboard.hide)
    sections = [_section(page, each, hidden) for each in _parts(found)]
    heading = next((each.title for each in sections if each.facts is not None and each.title), page.title)
    return {"heading": heading, "sections": sections, "given": dict(look.parts)}


def _parts(found: Any) -> list[Any]:
    if isinstance(found, list | tuple) and found and all(isinstance(each, Section) for each in found):
        return list(found)
    return [found]


def _section(page: AppPage, found: Any, hidden: frozenset[str]) -> Section:
    """Return what a function returned as a section, without the fields that the deployment hides."""
    if isinstance(found, Mapping | DatabaseRow):
        found = Section(facts=_row(found))
    elif not isinstance(found, Section):
        found = Section(rows=list(found or ()))
    columns = tuple(found.columns or page.columns)
    return Section(
        title=found.title,
        text=found.text,
        facts=None if found.facts is None else _without(_row(found.facts), hidden),
        rows=None if found.rows is None else [_without(_row(each), hidden) for each in found.rows],
        columns=columns,
        empty=found.empty or page.empty,
        next=found.next,
        body=found.body,
    )


def _row(row: Any) -> Row:
    return row.asdict() if hasattr(row, "asdict") else dict(row)


def _without(row: Row, hidden: frozenset[str]) -> Row:
    return {name: "***" if name in hidden and value is not None else value for name, value in row.items()}


async def _called(app: App, function: Any, given: Mapping[str, Any]) -> Any:
    """Run a function of the app within the time of a request; distinguish its failures from those of Penstock."""
    try:
        return await UserRoutes(app).in_time(function(**given))
    except HttpError as error:
        if error.status == 404:
            raise NoSuchThing(str(error)) from error
        raise
    except PenstockError:
        raise
    except Exception as error:
        _log.exception("a page of the app failed: %s", function.__qualname__)
        raise PageFailed(
            f"{function.__qualname__} raised {type(error).__name__}. The log has the traceback."
        ) from error


# -- forms --------------------------------------------------------------------------------------------------


async def _form(page: AppPage, action: PageAction, look: PageLook) -> Facts:
    """Return the form of an action: what is known already, what it asks for, and what would follow from it."""
    values = dict(look.query)
    fields = [(name, value) for name, value in look.fields if name != "preview"]
    if action.fill is not None and "preview" not in values:
        filled = await _called(page.app, action.fill, _arguments(action.fill_parameters, fields, {}))
        values = {name: "" if value is None else str(value) for name, value in filled.items()} | values
    fixed = {each.name for each in action.parameters if _is_fixed(each, page, values, action)}
    facts: Facts = {
        "fixed": {name: values[name] for name in fixed},
        "inputs": [
            field_of(each, action.inputs[each.name], values) for each in action.parameters if each.name not in fixed
        ],
        "preview": None,
        "problem": None,
    }
    if action.preview is not None:
        try:
            given = _arguments(action.preview_parameters, list(values.items()), {}, is_form="preview" in values)
            found = await _called(page.app, action.preview, given)
            facts["preview"] = _section(page, found, frozenset()) if _is_rows(found) else list(found)
        except PenstockError as error:
            facts["problem"] = str(error) if "preview" in values else None
    return facts


def _is_fixed(each: Parameter, page: AppPage, values: Mapping[str, Any], action: PageAction) -> bool:
    """Return whether a parameter is known where the button stands: it is then not asked for again."""
    columns = {column.name for column in page.columns} if action.on == "row" else set()
    places = {parameter.name for parameter in page.parameters if parameter.place == "path"}
    return each.name in values and (each.name in places or each.name in columns)


def _is_rows(found: Any) -> bool:
    return isinstance(found, Section) or any(not isinstance(each, str) for each in found)


def field_of(parameter: Parameter, asked: Input, values: Mapping[str, Any]) -> Row:
    """Return a parameter as a field of a form."""
    kind = parameter.kind
    while get_origin(kind) is not None and get_origin(kind) is not Literal:
        kind = next((each for each in get_args(kind) if each is not NoneType), str)
    choices = list(map(str, get_args(kind))) if get_origin(kind) is Literal else []
    default = "" if parameter.default in (EMPTY, None) else parameter.default
    is_flag = kind is bool
    types = {int: "number", float: "number", date: "date", datetime: "datetime-local", bool: "checkbox"}
    return {
        "name": parameter.name,
        "label": asked.label or parameter.name.replace("_", " ").capitalize(),
        "hint": asked.hint,
        "lines": asked.lines,
        "choices": choices,
        "type": types.get(kind, "text") if isinstance(kind, type) else "text",
        "step": "1" if kind is int else "any",
        "value": values.get(parameter.name, str(default) if not is_flag else "1" if default else ""),
        "needed": parameter.default is EMPTY and not is_flag,
    }


def _arguments(
    parameters: Sequence[Parameter],
    fields: Sequence[tuple[str, str]],
    parts: Mapping[str, str],
    *,
    is_form: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a function, from the parts of an address and from fields. An empty field is a missing one."""
    found: dict[str, Any] = {}
    for each in parameters:
        values = [value for name, value in fields if name == each.name and value.strip()]
        if each.name in parts:
            values = [parts[each.name]]
        if values:
            found[each.name] = converted(each, values if each.is_repeated else values[-1])
        elif is_form and each.kind is bool:
            found[each.name] = False
        elif each.default is not EMPTY:
            found[each.name] = each.default
        else:
            raise BadField(f"{each.name}: it is missing.", field=each.name)
    return found


# -- doing --------------------------------------------------------------------------------------------------


async def _act(page: AppPage, action: PageAction, doing: Doing) -> ActionResult:
    """Do what a form asks for in a unit of work, with its audit in the same commit."""
    given = _arguments(action.parameters, doing.form.fields, {}, is_form=True)
    app = page.app
    if action.request:
        given[action.request] = Request("POST", action.path, {}, {}, doing.actor, frozenset(), doing.origin)
    async with app.unit() as unit:
        unit.task = "dashboard"
        named = {each.name: given[each.name] for each in action.parameters}
        details = {name: short(str(value), AUDITED) for name, value in named.items() if value not in (None, "")}
        name = str(next(iter(details.values()), ""))
        change = audit(unit.engine, action.path.strip("/").replace("/", " "), "page", name)
        record(unit, None if change is None else change._replace(details=details))
        done = await _called(app, action.function, given)
    made = done if isinstance(done, ActionResult) else ActionResult(str(done or f"{action.label}: done."))
    return ActionResult(made.text, PREFIX + made.to) if made.to else made
