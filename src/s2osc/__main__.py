"""``python -m s2osc``."""

import sys

from s2osc.cli import main

sys.exit(main())
