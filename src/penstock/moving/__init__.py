"""Whole databases: moved from one store to the other, backed up and restored, and checked by content."""
