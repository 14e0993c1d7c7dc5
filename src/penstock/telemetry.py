"""OpenTelemetry: a span for each delivery, under the trace of its chain, and metrics of deliveries and steps.

Needs the extra `otel`. Only an app that is instrumented pays for it: events of deliveries are not made otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Protocol
from uuid import UUID

from opentelemetry import metrics, trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from penstock.runtime.events import Events, MessageDied, MessageReceived, MessageSettled, PaceChanged, StepsEnded

OPEN_MAX = 10_000  # deliveries under way in one process; more are not traced
NAME = "penstock"


class Emitting(Protocol):
    """An app."""

    @property
    def events(self) -> Events: ...
    @property
    def name(self) -> str: ...


def instrument(
    app: Emitting,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> Callable[[], None]:
    """Trace and count the deliveries of an app, with the global providers or these. Return a function that ends it.

    Every delivery of a chain is a span of one trace, whose id is the correlation id of the chain: `penstock trace` and the
    backend of the traces find each other by it."""
    made = _Instrument(app, trace.get_tracer(NAME, tracer_provider=tracer_provider), _meter(meter_provider))
    leave = [
        app.events.subscribe(made.received, to=MessageReceived),
        app.events.subscribe(made.settled, to=MessageSettled),
        app.events.subscribe(made.died, to=MessageDied),
        app.events.subscribe(made.stepped, to=StepsEnded),
        app.events.subscribe(made.paced, to=PaceChanged),
    ]

    def end() -> None:
        for each in leave:
            each()
        made.end()

    return end


def _meter(provider: metrics.MeterProvider | None) -> metrics.Meter:
    return metrics.get_meter(NAME, meter_provider=provider)


class _Instrument:
    def __init__(self, app: Emitting, tracer: trace.Tracer, meter: metrics.Meter) -> None:
        self._service = app.name
        self._tracer = tracer
        self._open: dict[tuple[str, str, int], Span] = {}
        self._deliveries = meter.create_counter("penstock.deliveries", description="Deliveries that ended.")
        self._waits = meter.create_histogram(
            "penstock.wait", unit="ms", description="Time from a send to its delivery."
        )
        self._dead = meter.create_counter("penstock.dead_letters", description="Messages that became dead letters.")
        self._steps = meter.create_counter("penstock.steps", description="Steps of workflows that ended.")
        self._paces = meter.create_counter("penstock.pace_changes", description="Changes of a pace.")

    def received(self, event: MessageReceived) -> None:
        self._waits.record(event.processing_delay_ms, {"queue": event.queue})
        if len(self._open) >= OPEN_MAX:
            return
        attributes: dict[str, str | int] = {
            "messaging.system": NAME,
            "messaging.operation.type": "process",
            "messaging.destination.name": event.queue,
            "messaging.message.id": event.id,
            "messaging.message.conversation_id": event.correlation_id,
            "penstock.type": event.type,
            "penstock.attempt": event.attempt,
            "penstock.app": self._service,
            "penstock.source": event.source,
        }
        span = self._tracer.start_span(
            f"{event.queue} {event.type}", _chain(event.correlation_id), SpanKind.CONSUMER, attributes
        )
        self._open[event.queue, event.id, event.attempt] = span

    def settled(self, event: MessageSettled) -> None:
        facts = event.facts()
        outcome = type(event.settlement).__name__.lower()
        self._deliveries.add(1, {"queue": event.queue, "type": event.type, "outcome": outcome})
        span = self._open.pop((event.queue, event.id, event.attempt), None)
        if span is None:
            return
        span.set_attribute("penstock.outcome", outcome)
        if (error := facts.get("error")) is not None:
            span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
        span.end()

    def died(self, event: MessageDied) -> None:
        self._dead.add(1, {"queue": event.queue, "reason": event.reason})

    def stepped(self, event: StepsEnded) -> None:
        for outcome, count in (("done", event.done), ("failed", event.failed)):
            if count:
                self._steps.add(count, {"workflow": event.workflow, "outcome": outcome})

    def paced(self, event: PaceChanged) -> None:
        self._paces.add(1, {"name": str(event.facts().get("controller") or event.facts().get("name") or "")})

    def end(self) -> None:
        for span in self._open.values():
            span.end()
        self._open.clear()


def _chain(correlation_id: str) -> Any:
    """Return the context of a chain: the parent that its deliveries have in common."""
    trace_id = UUID(correlation_id).int or 1
    parent = int.from_bytes(blake2b(trace_id.to_bytes(16, "big"), digest_size=8).digest(), "big") or 1
    context = SpanContext(trace_id, parent, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(context))
