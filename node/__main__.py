"""`python -m node --config FILE`: one node process."""

import sys

from node.main import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
