"""The graph of an app: its queues, cron tasks, objects, controllers, workflows and routes, and what uses what.

What a function uses is read from its code and from the functions that it calls: queues, workflows, objects and paces by the
names they have there. A queue that is passed as an argument is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from penstock.app import App
from penstock.control.permits import Permits
from penstock.model.queue import is_internal
from penstock.objects.namespace import Namespace
from penstock.queues.queue import Queue
from penstock.readiness.lints import written
from penstock.views.view import Row
from penstock.workflows.workflow import Workflow
from penstock.workflows.workflows import Workflows

DEPTH_MAX = 5  # of functions that call functions
INTERNAL = {"AlertCondition", "Controller", "Remembered", "TrialRecord"}
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
    return {
        "app": app.name,
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
    return None


def mermaid(row: Row) -> str:
    """Return the graph as a flowchart that Mermaid draws."""
    kinds = {kind: row[f"{kind}s"] for kind in SHAPES}
    numbers = {
        f"{kind}:{each['name']}": f"{kind}{at}" for kind, found in kinds.items() for at, each in enumerate(found)
    }
    lines = ["flowchart LR"]
    for key, node in numbers.items():
        kind, _, name = key.partition(":")
        lines.append(f"  {node}{SHAPES[kind].format(_quoted(f'{kind} {name}'))}")
    known = [each for each in row["edges"] if each["from"] in numbers and each["to"] in numbers]
    lines += [f"  {numbers[each['from']]} --> {numbers[each['to']]}" for each in known]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "#quot;") + '"'
