"""`python -m warpkit` and the `warpkit` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from warpkit.core.environment import how_to_install


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; if its packages are missing, say in one line how to install them."""
    try:
        from warpkit import cli
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("warpkit"):
            raise
        missing = f"the command line needs {error.name}: {how_to_install('cli')}"
        print(f"warpkit: {missing}", file=sys.stderr)
        return 1
    return cli.main(argv)


if __name__ == "__main__":
    sys.exit(main())
