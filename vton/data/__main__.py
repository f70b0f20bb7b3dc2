"""`python -m vton.data`: packs photographs for training, see `vton.data.pack`."""

import sys

from vton.data.pack import main

sys.exit(main())
