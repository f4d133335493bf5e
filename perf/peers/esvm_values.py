"""Members' values from what esvm-predict -base wrote: TEXT VALUES."""

from __future__ import annotations

import sys

import numpy as np

text, values = sys.argv[1:]
# label, share of votes, then the members'
np.save(values, np.loadtxt(text, ndmin=2)[:, 2:])
