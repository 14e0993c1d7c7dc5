"""The reference: every public name of `penstock` and `penstock.testing` with its signature and its docstring, by concept.

A name belongs to the concept whose module it comes from, so a new one needs no line here. What is public and says nothing of
itself, or belongs to no concept, is a problem that stops the build.
"""

from __future__ import annotations

import enum
import functools
import html
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from tools.site.markdown import Heading, Page, code, fragment

PUBLIC = ("penstock", "penstock.testing")
SIGNATURE_WIDTH = 96  # a longer one has a line for each parameter


@dataclass(frozen=True)
class Concept:
    title: str
    address: str
    about: str
    modules: tuple[str, ...]  # what comes from these belongs here; the longest match wins
    given: tuple[tuple[str, str], ...] = ()  # classes that nobody makes by hand: how one gets them, and where they are


CONCEPTS = (
    Concept(
        "App and units",
        "app",
        "An app is one database with its queues, tasks and objects. What its code wants saved is collected in units of work.",
        ("penstock.app", "penstock.runtime"),
        (
            ("async with app.unit() as unit", "penstock.runtime.unit:OpenUnit"),
            ("app.trial", "penstock.readiness.trial:Trial"),
        ),
    ),
    Concept(
        "Queues",
        "queues",
        "Durable lists of typed messages, and what a handler may answer.",
        ("penstock.queues", "penstock.model.envelope", "penstock.model.outcome", "penstock.model.retry"),
        (("app.queue(...)", "penstock.queues.queue:Queue"), ("app.dead", "penstock.queues.letters:DeadLetters")),
    ),
    Concept(
        "Cron",
        "cron",
        "Tasks that run by the clock.",
        ("penstock.cron", "penstock.model.ceiling"),
        (("app.crons", "penstock.cron.crons:Crons"),),
    ),
    Concept(
        "Objects",
        "objects",
        "State with a name, one event at a time, and an alarm.",
        ("penstock.objects",),
        (("app.object(Class)", "penstock.objects.namespace:Namespace"),),
    ),
    Concept(
        "Controllers",
        "controllers",
        "Loops that find how fast a service can be asked, and the same pace for handlers.",
        ("penstock.control",),
        (
            ("app.controllers", "penstock.control.controllers:Controllers"),
            ("app.pace(...)", "penstock.control.permits:Permits"),
        ),
    ),
    Concept(
        "Workflows",
        "workflows",
        "Runs of steps that are each done once.",
        ("penstock.workflows",),
        (("app.workflows", "penstock.workflows.workflows:Workflows"),),
    ),
    Concept(
        "Database",
        "database",
        "Your own tables, in the database that the engine uses.",
        ("penstock.data", "penstock.model.upsert"),
        (("app.db", "penstock.data.database:Database"),),
    ),
    Concept(
        "HTTP, pages and blobs",
        "outside",
        "The way out, pages that are kept, and bytes that are no rows.",
        ("penstock.blobs", "penstock.gateway.addresses", "penstock.gateway.bodies", "penstock.gateway.client"),
        (
            ("app.page_cache(...)", "penstock.gateway.pages:PageCache"),
            ("app.blobs(...)", "penstock.blobs.folder:BlobFolder"),
        ),
    ),
    Concept(
        "Paid calls and models",
        "paid-calls",
        "Calls whose price is reserved before they are made.",
        ("penstock.gateway",),
    ),
    Concept(
        "Alerts",
        "alerts",
        "Who is told of what, once.",
        ("penstock.alerts",),
    ),
    Concept(
        "Data points",
        "metrics",
        "Numbers with words to group them by.",
        ("penstock.metrics",),
        (
            ("app.metrics", "penstock.metrics.standard:Datasets"),
            ('app.metrics("name")', "penstock.metrics.standard:Dataset"),
        ),
    ),
    Concept(
        "Errors",
        "errors",
        "All of them are `PenstockError`. What each does to a message is in the guide of queues.",
        ("penstock.model.errors",),
    ),
    Concept(
        "Testing",
        "testing",
        "A whole app under virtual time, and faults on purpose.",
        ("penstock.testing",),
    ),
)


# What classes have for the engine's own use, and nobody else's.
THE_ENGINES = {
    "App": "migrations_found open opened store",
    "Controllers": "watch",
    "Crons": "declare forget_others",
    "Datasets": "begin standard",
    "DeadLetter": "facts",
    "Model": "client",
    "Queue": "advice known made",
    "Run": "asked ended heard",
    "Tick": "cancel ended",
    "Trial": "follow has_passed note_passed record",
    "Which": "bound",
    "Workflow": "new_run",
}


@dataclass(frozen=True)
class Entry:
    name: str  # as one writes it: `ps.App`, or `app.db` for what is handed out
    value: object
    public: bool


def pages() -> tuple[list[tuple[str, Page]], list[str]]:
    """The pages by their address in the site, and what is wrong with the names they tell of."""
    entries: dict[str, list[Entry]] = {concept.address: [] for concept in CONCEPTS}
    problems: list[str] = []
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if inspect.ismodule(value):
                continue  # its names are there by themselves
            address = _address(module, value)
            if address is None:
                problems.append(f"{module}.{name} belongs to no concept: name its module in tools/site/reference.py")
            else:
                entries[address].append(Entry(f"ps.{name}" if module == "penstock" else name, value, public=True))
    for concept in CONCEPTS:
        for how, where in concept.given:
            module, _, name = where.partition(":")
            entries[concept.address].append(Entry(how, getattr(importlib.import_module(module), name), public=False))
    made = []
    for concept in CONCEPTS:
        ordered = sorted(entries[concept.address], key=_rank)
        problems += [problem for entry in ordered for problem in undocumented(entry)]
        made.append((f"reference/{concept.address}.html", _page(concept, ordered)))
    return made, problems


def undocumented(entry: Entry) -> Iterator[str]:
    if not entry.public:
        return
    if not _doc(entry.value):
        yield f"{entry.name} has no docstring"
    if inspect.isclass(entry.value):
        for name, member in _members(entry.value):
            if not _doc(member):
                yield f"{entry.name}.{name} has no docstring"


def _rank(entry: Entry) -> tuple[bool, bool, bool]:
    """The app comes first, then what it hands out, then classes, then functions."""
    return entry.name != "ps.App", entry.public, not inspect.isclass(entry.value)


def _address(module: str, value: object) -> str | None:
    if module == "penstock.testing":
        return "testing"
    home = getattr(value, "__module__", "")
    matching = [
        (len(prefix), concept.address)
        for concept in CONCEPTS
        for prefix in concept.modules
        if home == prefix or home.startswith(prefix + ".")
    ]
    return max(matching)[1] if matching else None


# -- how it is written ----------------------------------------------------------------------------------------------


def _page(concept: Concept, entries: list[Entry]) -> Page:
    parts = [f'<h1 id="top">{html.escape(concept.title)}</h1>\n', fragment(concept.about)]
    headings = [Heading(1, concept.title, "top")]
    for entry in entries:
        anchor = entry.name.removeprefix("ps.") if entry.public else entry.value.__name__  # type: ignore[attr-defined]
        headings.append(Heading(2, entry.name, anchor))
        parts.append(f'<h2 id="{html.escape(anchor)}"><code>{html.escape(entry.name)}</code></h2>\n')
        parts.append(_described(entry))
        if inspect.isclass(entry.value):
            for name, member in _members(entry.value):
                if not _doc(member):
                    continue
                headings.append(Heading(3, f"{entry.name}: {name}", f"{anchor}.{name}"))
                parts.append(f'<section class="member" id="{html.escape(anchor)}.{name}">\n')
                parts.append(_signature(name, member) + fragment(_doc(member)) + "</section>\n")
    return Page(concept.title, tuple(headings), "".join(parts))


def _described(entry: Entry) -> str:
    value = entry.value
    if not entry.public:  # what it is made of is the app's concern
        return code(f"class {value.__name__}", "python") + fragment(_doc(value))  # type: ignore[attr-defined]
    if callable(value):
        return _signature(getattr(value, "__name__", ""), value) + fragment(_doc(value))
    return code(textwrap.fill(", ".join(map(str, value)), SIGNATURE_WIDTH), "") if isinstance(value, tuple) else ""


def _doc(value: object) -> str:
    if isinstance(value, tuple):
        return "a list of words"  # it says itself what it is
    if isinstance(value, property | functools.cached_property):
        value = value.fget if isinstance(value, property) else value.func
    written = value.__dict__.get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", None)
    # What dataclasses and named tuples say of themselves is their signature, which stands above it anyway.
    if not written or (inspect.isclass(value) and written.startswith(f"{value.__name__}(")):
        return ""
    return inspect.cleandoc(str(written))


def _members(cls: type) -> list[tuple[str, object]]:
    """What a class offers: its own and what it has from other classes of ours, in the order it was written."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("penstock")]
    others = [base for base in cls.__mro__ if base not in ours]
    left_out = {*getattr(cls, "__struct_fields__", ()), *getattr(cls, "_fields", ())}
    left_out |= set(THE_ENGINES.get(cls.__name__, "").split())
    found: dict[str, object] = {}
    for base in ours:
        for name, member in base.__dict__.items():
            known = any(name in other.__dict__ for other in others)  # says no more than what it stands in for
            if name.startswith("_") or name in left_out or name in found or known:
                continue
            member = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if inspect.isfunction(member) or isinstance(member, property | functools.cached_property):
                found[name] = member
    return list(found.items())


class _Said:
    """An annotation as it is written in the source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _signature(name: str, value: object) -> str:
    if isinstance(value, property | functools.cached_property):
        getter = value.fget if isinstance(value, property) else value.func
        kind = getattr(getter, "__annotations__", {}).get("return")
        return code(f"{name}: {_written(kind)}" if kind else name, "python")
    start = "async def " if inspect.iscoroutinefunction(value) else "class " if inspect.isclass(value) else "def "
    if inspect.isclass(value) and issubclass(value, BaseException | enum.Enum):
        return code(f"class {name}({value.__bases__[0].__name__})", "python")
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:  # made by something that does not tell
        return code(start + name, "python")
    parameters = [_plain(parameter) for parameter in found.parameters.values() if parameter.name not in ("self", "cls")]
    returned = "" if inspect.isclass(value) or found.return_annotation in (found.empty, "None", None) else found
    ending = f" -> {_written(found.return_annotation)}" if returned else ""
    text = f"{start}{name}{inspect.Signature(parameters)}{ending}"
    if len(text) > SIGNATURE_WIDTH:
        inner = str(inspect.Signature(parameters))[1:-1]
        text = f"{start}{name}(\n{_one_a_line(parameters) or inner}\n){ending}"
    return code(text, "python")


def _one_a_line(parameters: list[inspect.Parameter]) -> str:
    lines, starred = [], False
    for parameter in parameters:
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("    *,")
            starred = True
        lines.append(f"    {parameter},")
    return "\n".join(lines)


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """The annotation as it is written, and a default that is told in a word."""
    default = parameter.default
    if default is not parameter.empty and (default is msgspec.NODEFAULT or " at 0x" in repr(default)):
        default = _Said("...")
    if parameter.annotation is parameter.empty:
        return parameter.replace(default=default)
    return parameter.replace(annotation=_Said(_written(parameter.annotation)), default=default)


def _written(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
