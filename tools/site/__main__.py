"""`make docs`: builds the site, and says where it is or what is wrong with it."""

from __future__ import annotations

import sys

from tools.site.build import ROOT, Broken, build

TARGET = ROOT / "build" / "site"


def main() -> None:
    try:
        pages = build(TARGET)
    except Broken as broken:
        sys.exit("\n".join(["The site was not built:", *(f"  {problem}" for problem in broken.problems)]))
    print(f"{pages} pages. Open {(TARGET / 'index.html').relative_to(ROOT)} in a browser.")


if __name__ == "__main__":
    main()
