"""`python -m mtprof_nb`: the program `mtprof`."""

import sys

from mtprof_nb.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
