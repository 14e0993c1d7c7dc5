"""`python -m penstock` is `penstock`, also where no script is on the path."""

from __future__ import annotations

import sys

from penstock.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
