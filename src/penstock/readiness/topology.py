"""Queues with a loose end: a type that nothing handles, sends or that holds whole records, dead letters, fixed numbers."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock.model.envelope import CONTENT_TYPES, bulky_fields
from penstock.model.queue import is_internal
from penstock.readiness.lints import Finding, SourceText, written

if TYPE_CHECKING:
    from penstock.queues.queue import Queue


def loose_ends(queues: Iterable[Queue[Any]], modules: Iterable[ModuleType], *, alerted: bool) -> Iterator[Finding]:
    """Find types that no handler takes or no code of the app makes, and queues whose dead letters have no consumer."""
    queues = list(queues)
    sources = [source for module in modules if (source := written(module)) is not None]
    made = {cls for source in sources for cls in _made(source)}
    for queue in filter(lambda queue: not is_internal(queue.name), queues):
        place = _place(queue.name, sources)
        for name, cls in (queue.accepts or {}).items():
            if queue.batches is None and name not in queue.handlers:
                text = f"Queue {queue.name!r} accepts {name!r}, and has no handler for it."
                yield Finding(
                    *place, text, f"Write `@queue.handler({cls.__name__})`, or remove it from the queue's types."
                )
            if cls not in made and name not in CONTENT_TYPES:
                text = f"Queue {queue.name!r} accepts {name!r}, and no code of the app sends one."
                yield Finding(*place, text, f"Send a {cls.__name__}, or remove it from the queue's types.")
            for field in bulky_fields(cls):
                yield Finding(*place, f"{name}.{field} looks like a whole record.", "Store it, and send its id.")
    for queue in () if alerted else unwatched(queues):
        text = f"The dead-letter queue {queue.name + '-dlq'!r} has no consumer: no alert is sent for a dead letter."
        way_out = "Write `@queue.dead_letter_handler`, or `@app.on_alert` for all queues."
        yield Finding(*_place(queue.name, sources), text, way_out)


def fixed_concurrency(queues: Iterable[Queue[Any]], modules: Iterable[ModuleType]) -> Iterator[Finding]:
    """Find queues whose number of handlers is fixed without a reason. A rate is one."""
    sources = [source for module in modules if (source := written(module)) is not None]
    for queue in queues:
        fixed = queue.settings.parallel is not None and queue.settings.rate is None
        if fixed and not queue.settings.reason.strip() and not is_internal(queue.name):
            text = f"Queue {queue.name!r} runs at most {queue.settings.parallel} handlers at once, and gives no reason."
            way_out = "Remove `parallel=`: the number follows the backlog. Or add `reason=`."
            yield Finding(*_place(queue.name, sources), text, way_out)


def unwatched(queues: Iterable[Queue[Any]]) -> list[Queue[Any]]:
    """Return the app's own queues whose dead letters no handler takes."""
    return [queue for queue in queues if not is_internal(queue.name) and queue.dead_handler is None]


def _made(source: SourceText) -> Collection[type]:
    calls = (node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    return {meaning for call in calls if isinstance(meaning := source.meaning(call.func), type)}


def _place(queue: str, sources: Iterable[SourceText]) -> tuple[str, int]:
    """Where the queue is declared."""
    for source in sources:
        for node in ast.walk(source.tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="queue"), args=[ast.Constant(value=name), *_]) if name == queue:
                    return source.file, source.line_of(node)
    return "", 0
