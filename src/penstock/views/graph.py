"""The graph of an app: its queues, cron tasks, objects, controllers, workflows and routes, and what uses what.

What a function uses is read from its code and from the functions that it calls: queues, workflows, objects and paces by the
names they have there. A queue that is passed as an argument is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

import msgspec

from penstock.app import App
from penstock.control.permits import Permits
from penstock.model.queue import is_internal
from penstock.model.redaction import address_shown
from penstock.objects.namespace import Namespace
from penstock.queues.queue import Queue
from penstock.readiness.lints import written
from penstock.services.binding import Binding, Bindings
from penstock.services.service import Service
from penstock.views.view import Row
from penstock.workflows.workflow import Workflow
from penstock.workflows.workflows import Workflows

DEPTH_MAX = 5  # of functions that call functions
INTERNAL = {"AlertCondition", "Controller", "Remembered", "TrialRecord"}
KINDS = ("queue", "cron", "object", "controller", "workflow", "pace", "route")
SHAPES = {
    "queue": "[({})]",
    "cron": "([{}])",
    "object": "[{}]",
    "controller": "{{{{{}}}}}",
    "workflow": "[[{}]]",
    "pace": ">{}]",
    "route": "[/{}/]",
}


def graph(app: App, *, internals: bool = False) -> Row:
    """Return the parts of an app with their settings, and the edges between them, from the code alone."""
    queues = [queue for queue in app.queues.values() if internals or not is_internal(queue.name)]
    classes = [each.cls for name, each in app._objects.items() if internals or name not in INTERNAL]
    controllers = {name: app.controllers._definitions[name] for name in app.controllers.names()}
    workflows = [app.workflows[name] for name in app.workflows.names()]
    crons = list(app.crons.tasks.values())
    routes = [(f"{each.method} {each.path}", each) for each in app.routes.ordered()]
    functions: list[tuple[str, Iterable[Any]]] = [
        *((f"queue:{queue.name}", _handlers(queue)) for queue in queues),
        *((f"cron:{task.name}", [task.function, task.when]) for task in crons),
        *((f"object:{cls.__name__}", _methods(cls)) for cls in classes),
        *((f"controller:{name}", _methods(type(each.controller))) for name, each in controllers.items()),
        *((f"workflow:{each.name}", [each.function]) for each in workflows),
        *((f"route:{name}", [each.function]) for name, each in routes),
    ]
    edges = [
        {"from": place, "to": used} for place, own in functions for used in dict.fromkeys(_uses(own)) if used != place
    ]
    paces = sorted({each["to"].partition(":")[2] for each in edges if each["to"].startswith("pace:")} | {*app._paces})
    owners = {
        f"{kind.removesuffix('s')}:{name}": service.name
        for service in app.services.values()
        for kind, names in service.declared.items()
        for name in names
    }
    return {
        "app": app.name,
        **_settings(app),
        "services": [_service(service) for service in app.services.values()],
        "owners": {place: name for place, name in owners.items() if not is_internal(place.partition(":")[2])},
        "queues": [_queue(queue) for queue in queues],
        "crons": [
            {"name": task.name, "expression": task.rule.expression, "zone": task.rule.zone, "reason": task.reason}
            for task in crons
        ],
        "objects": [{"name": cls.__name__} for cls in classes],
        "controllers": [
            {"name": name, "mode": each.mode, "parallel": each.parallel, "rate": list(each.rate)}
            for name, each in controllers.items()
        ],
        "workflows": [{"name": each.name, "priority": each.priority} for each in workflows],
        "paces": [{"name": name} for name in paces],
        "routes": [{"name": name, "auth": str(each.auth) if each.auth else None} for name, each in routes],
        "edges": edges,
    }


def _settings(app: App) -> Row:
    """Return what else an app declares. Secrets are named by their variables; none is read."""
    config = app.config
    keys = {getattr(route.auth, "name", "") for route in app.routes.ordered()} - {""}  # of service keys
    return {
        "database": address_shown(app.database),
        "migrations": [str(folder) for folder in dict.fromkeys([app.migrations, *app.folders.values()])],
        "blobs": [str(folder.path) for folder in app._blob_folders],
        "datasets": list(app.metrics.declared),
        "topics": [
            {"name": each.name, "retention_seconds": each.retention_seconds, "subscriptions": list(each.subscriptions)}
            for each in app.topics.values()
        ],
        "sources": list(app.sources.sources),
        "secrets": sorted(
            keys | set(_variables(msgspec.to_builtins([config.models, config.channels, config.systems])))
        ),
        "observability": {**msgspec.to_builtins(config.log), "history": config.history},
    }


def _variables(value: Any) -> Iterator[str]:
    """Yield the variables that settings name, as in `key_env = "OPENAI_API_KEY"`."""
    if isinstance(value, dict):
        yield from (
            each for name, each in value.items() if str(name).endswith("_env") and isinstance(each, str) and each
        )
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _variables(each)


def _service(service: Service) -> Row:
    return {
        "name": service.name,
        "database": address_shown(service.database),
        "uses": list(service.uses),
        "tables": service.tables,
        "infrastructure": service.infrastructure,
        "port": service.port,
        "migrations": str(service.migrations),
        **{kind: [name for name in names if not is_internal(name)] for kind, names in service.declared.items()},
    }


def _queue(queue: Queue) -> Row:
    settings = queue.settings
    return {
        "name": queue.name,
        "accepts": list(queue.accepts or ()),
        "handlers": {type_: [each.name for each in handlers] for type_, handlers in queue.handlers.items()},
        "batch": settings.batch,
        "parallel": settings.parallel,
        "rate": settings.rate,
        "retries": settings.retry.retries,
    }


def _handlers(queue: Queue) -> Iterator[Callable[..., Any]]:
    yield from (handler.function for handlers in queue.handlers.values() for handler in handlers)
    if queue.batches is not None:
        yield queue.batches.function
    if queue.dead_handler is not None:
        yield queue.dead_handler


def _methods(cls: type) -> list[Any]:
    return [member for member in vars(cls).values() if isinstance(member, FunctionType)]


def _uses(functions: Iterable[Any]) -> Iterator[str]:
    """Yield the parts that these functions name, and those that the functions they call name."""
    seen: set[Any] = set()
    upcoming = [(function, 0) for function in functions]
    while upcoming:
        function, depth = upcoming.pop()
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, FunctionType) or function in seen or depth > DEPTH_MAX:
            continue
        seen.add(function)
        source = written(function)
        for node in () if source is None else ast.walk(source.tree):
            match _meaning(source, node):
                case Queue(name=name):
                    yield f"queue:{name}"
                case Workflow(name=name):
                    yield f"workflow:{name}"
                case Namespace(cls=cls):
                    yield f"object:{cls.__name__}"
                case Permits(name=name):
                    yield f"pace:{name}"
                case Binding(target=name):
                    yield f"service:{name}"
                case FunctionType() as called:
                    upcoming.append((called, depth + 1))


def _meaning(source: Any, node: ast.AST) -> Any:
    """Return the object that a name stands for, or `app.workflows[NAME]`; None for anything else."""
    match node:
        case ast.Name() | ast.Attribute():
            return source.meaning(node)
        case ast.Subscript(value=of, slice=given) if isinstance(known := source.meaning(of), Workflows):
            name = given.value if isinstance(given, ast.Constant) else source.meaning(given)
            return known[str(name)] if name in known.names() else None
        case ast.Subscript(value=of, slice=ast.Constant(value=str(name))) if isinstance(
            bindings := source.meaning(of), Bindings
        ):
            return bindings.get(name) if name in bindings else None
    return None


def mermaid(row: Row) -> str:
    """Return the graph as a flowchart that Mermaid draws, with a box around the parts of each service."""
    numbers = {f"{kind}:{each['name']}": f"{kind}{at}" for kind in KINDS for at, each in enumerate(row[f"{kind}s"])}
    lines = ["flowchart LR"]
    for service in [None, *(each["name"] for each in row["services"])]:
        own = [key for key in numbers if row["owners"].get(key) == service]
        lines += [] if service is None else [f"  subgraph service_{_word(service)}[{_quoted(service)}]"]
        for key in own:
            kind, _, name = key.partition(":")
            lines.append(f"  {numbers[key]}{SHAPES[kind].format(_quoted(f'{kind} {name}'))}")
        lines += [] if service is None else ["  end"]
    numbers |= {f"service:{each['name']}": f"service_{_word(each['name'])}" for each in row["services"]}
    known = [each for each in row["edges"] if each["from"] in numbers and each["to"] in numbers]
    lines += [
        f"  {numbers[each['from']]} {'-.->' if each['to'].startswith('service:') else '-->'} {numbers[each['to']]}"
        for each in known
    ]
    return "\n".join(lines)


def _word(name: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in name)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "#quot;") + '"'
