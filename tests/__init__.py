"""The tests, and what they share."""

import os

# LIBSVM's threads of OpenMP would spin while they wait, against those of the other test workers.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
