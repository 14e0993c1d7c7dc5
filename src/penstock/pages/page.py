"""Declares the pages of an app: `@app.page("/orders", "Orders", [Column("id", "order")])` above a function that reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from penstock.model.arguments import SpanFromZero, checked
from penstock.model.errors import BadApp
from penstock.model.stack import function_place
from penstock.model.times import in_seconds
from penstock.routes import PATH, Parameter, read_signature, shape_of
from penstock.views.view import KINDS, Column

RoleName = Literal["viewer", "operator", "admin"]
Reader = Callable[..., Any]  # an async function; a parameter of its name is read from the address or the form


@dataclass(frozen=True, slots=True)
class Input:
    """How a form asks for a parameter: `note: Annotated[str, Input("Note", lines=4)] = ""`."""

    label: str = ""
    hint: str = ""
    lines: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page: a sentence, the facts of one thing, rows, a long text. What is left out is not shown.

    `columns` are those of `facts` and `rows`; without them, those of the page. `next` are the parameters of the page with the
    rows that follow."""

    title: str = ""
    text: str = ""
    facts: Mapping[str, Any] | None = None
    rows: Sequence[Any] | None = None
    columns: Sequence[Column] = ()
    empty: str = ""
    next: Mapping[str, object] | None = None
    body: str = ""

    def shared(self) -> dict[str, Any]:
        """Return the section as JSON has it."""
        named = {name: getattr(self, name) for name in ("title", "text", "facts", "rows", "next", "body")}
        return {name: value for name, value in named.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action did, as a sentence, and the page that the operator sees next."""

    text: str
    to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction:
    """A button of a page or of each of its rows, with a form where it asks for more than the row says."""

    path: str
    label: str
    function: Reader
    role: RoleName
    on: Literal["page", "row"]
    confirm: str
    is_dangerous: bool
    fill: Reader | None
    preview: Reader | None
    fill_parameters: tuple[Parameter, ...]
    preview_parameters: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    inputs: Mapping[str, Input]
    request: str  # the name of its parameter of the type `ps.Request`, or empty

    def known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that are known where the button stands: parts of the address, or columns of the row."""
        return {each.name: given[each.name] for each in self.parameters if given.get(each.name) is not None}

    def asks(self, given: Mapping[str, Any]) -> bool:
        """Return whether the operator is asked for something, or to confirm."""
        return bool(self.confirm) or any(each.name not in given for each in self.parameters)


@dataclass(eq=False, slots=True, kw_only=True)
class AppPage:
    """A page of an app. It is called as the function that it was made of."""

    app: Any
    path: str
    title: str
    columns: Sequence[Column]
    text: str
    empty: str
    role: RoleName
    group: str
    every: float
    template: Path | None
    function: Reader
    parameters: tuple[Parameter, ...]
    inputs: Mapping[str, Input]
    actions: list[PageAction] = field(default_factory=list)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(*given, **named)

    @checked
    def action(
        self,
        label: str,
        *,
        on: Literal["page", "row"] = "page",
        role: RoleName = "operator",
        confirm: str = "",
        dangerous: bool = False,
        fill: Callable[..., Any] | None = None,
        preview: Callable[..., Any] | None = None,
    ) -> Callable[[Reader], Reader]:
        """Add a button to this page, or to each of its rows, that runs the function in a unit of work.

        Parameters with the names of columns, or of parts of the address, get their values; a form asks for the others.
        `confirm` is a sentence that the operator confirms first. `fill` returns the values that the form begins with,
        `preview` rows or sentences that follow from what is typed. A parameter of the type `ps.Request` says who acts. The
        function returns what was done, as a sentence or an `ActionResult`."""

        def register(function: Reader) -> Reader:
            path = self.path.partition("/{")[0] + "/" + function.__name__.strip("_").replace("_", "-")
            if any(path == each.path for page in self.app.pages.values() for each in page.actions):
                raise BadApp(f"The action {path} has a function already. Give {function_place(function)} another name.")
            parameters, inputs, request = _signature("POST", path, function)
            self.actions.append(
                PageAction(
                    path=path,
                    label=label,
                    function=function,
                    role=role,
                    on=on,
                    confirm=confirm,
                    is_dangerous=dangerous,
                    fill=fill,
                    preview=preview,
                    fill_parameters=() if fill is None else _signature("GET", path, fill)[0],
                    preview_parameters=() if preview is None else _signature("GET", path, preview)[0],
                    parameters=parameters,
                    inputs=inputs,
                    request=request,
                )
            )
            return function

        return register


class Paged:
    """The part of an app that has pages in the dashboard."""

    pages: dict[str, AppPage]  # by the shape of its path
    name: str

    @checked
    def page(
        self,
        path: str,
        title: str,
        columns: Sequence[Column] = (),
        *,
        text: str = "",
        empty: str = "There is nothing to show yet.",
        role: RoleName = "viewer",
        group: str | None = None,
        every: SpanFromZero = 0.0,
        template: str | Path | None = None,
    ) -> Callable[[Reader], AppPage]:
        """Add a page to the dashboard: `@app.page("/orders", "Orders", [Column("id", "order", link="/orders/{id}")])`.

        The function returns rows, the facts of one thing as a mapping, a `Section`, or a list of these. Its parameters are
        those of the path, then filters above the rows. It reads and cannot write. An open page is read again every `every`
        seconds when something was committed. `group` is its heading in the menu, without it the name of the app."""
        if PATH.fullmatch(path) is None or path == "/":
            raise BadApp(f"{path!r} cannot be a page: write letters, digits and `{{name}}` between slashes.", path=path)
        for column in columns:
            if column.kind not in KINDS:
                raise BadApp(f"page({path!r}): {column.kind!r} is no kind of column. Kinds: {', '.join(KINDS)}.")

        def register(function: Reader) -> AppPage:
            parameters, inputs, _ = _signature("GET", path, function)
            if shape_of(path) in self.pages:
                raise BadApp(f"{path} cannot be a page: it has a function already.", path=path)
            made = self.pages[shape_of(path)] = AppPage(
                app=self,
                path=path,
                title=title,
                columns=tuple(columns),
                text=text,
                empty=empty,
                role=role,
                group=self.name if group is None else group,
                every=in_seconds(every),
                template=None if template is None else Path(template),
                function=function,
                parameters=parameters,
                inputs=inputs,
            )
            return made

        return register


def _signature(method: str, path: str, function: Reader) -> tuple[tuple[Parameter, ...], Mapping[str, Input], str]:
    """Return the parameters of a function, how a form asks for each, and the name of the one that is the request."""
    found, _ = read_signature(method, path, function)
    places = {"path", "query"} if method == "GET" else {"path", "query", "request"}
    if strange := next((each for each in found if each.place not in places), None):
        raise BadApp(f"{function_place(function)}: a page cannot ask for {strange.name!r}, which is {strange.kind}.")
    hints = get_type_hints(function, include_extras=True)
    parameters = tuple(each for each in found if each.place != "request")
    request = next((each.name for each in found if each.place == "request"), "")
    return parameters, {each.name: _input(hints.get(each.name)) for each in parameters}, request


def _input(hint: Any) -> Input:
    extras = get_args(hint)[1:] if get_origin(hint) is not None else ()
    return next((each for each in extras if isinstance(each, Input)), Input())
