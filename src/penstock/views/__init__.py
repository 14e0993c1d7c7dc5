"""Views of a database: the rows that commands, `--json` and pages show, and how each value is written."""
