"""The tests and the code they share."""

import os

# LIBSVM's OpenMP threads would spin while they wait and slow down the other test workers.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
