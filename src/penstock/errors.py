"""Every error that Penstock raises to a program: `except ps.errors.QueueFull:`."""

from __future__ import annotations

from penstock.metrics.book import QuotaSpent as QuotaSpent
from penstock.model.errors import *  # noqa: F403
from penstock.model.run import DuplicateStep as DuplicateStep
from penstock.model.run import Nondeterminism as Nondeterminism
from penstock.outbound.answers import Forbidden as Forbidden
from penstock.outbound.models import ModelOffline as ModelOffline
from penstock.queues.letters import CanaryDied as CanaryDied
from penstock.workflows.run import RunIsOver as RunIsOver
from penstock.workflows.steps import ChildFailed as ChildFailed
from penstock.workflows.steps import NotInAStep as NotInAStep
from penstock.workflows.steps import StepFailed as StepFailed
from penstock.workflows.steps import StepOverBudget as StepOverBudget
from penstock.workflows.steps import TimedOut as TimedOut
from penstock.workflows.workflow import NotCompleted as NotCompleted
