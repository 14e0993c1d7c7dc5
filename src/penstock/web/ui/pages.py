"""All pages, in the order in which their addresses are tried."""

from __future__ import annotations

from penstock.web.ui import (
    pages_confirm,
    pages_crons,
    pages_dead,
    pages_messages,
    pages_operation,
    pages_overview,
    pages_queues,
    pages_runs,
    pages_state,
)
from penstock.web.ui.page import Page

PAGES: tuple[Page, ...] = (
    *pages_overview.PAGES,
    *pages_queues.PAGES,
    *pages_messages.PAGES,
    *pages_dead.PAGES,
    *pages_crons.PAGES,
    *pages_runs.PAGES,
    *pages_state.PAGES,
    *pages_operation.PAGES,
    *pages_confirm.PAGES,
)
