"""Pages that an app adds to the dashboard: rows under columns, and actions of operators."""

from __future__ import annotations

from penstock.pages.page import ActionResult, AppPage, Input, PageAction, Section
from penstock.views.view import Column

__all__ = ["ActionResult", "AppPage", "Column", "Input", "PageAction", "Section"]
