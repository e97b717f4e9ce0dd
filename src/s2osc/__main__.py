"""``python -m s2osc``."""

import sys

from s2osc.cli.main import main

sys.exit(main())
