"""How many cores this process may use.

joblib counts them too, but takes longer to import than a short run takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import ceil, inf
from pathlib import Path

SYSTEM = Path("/")


def available_cores() -> int:
    """Cores by affinity, by the quota of a container, and by a batch system's share."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every system
        cores = os.cpu_count() or 1
    share = os.environ.get("SLURM_CPUS_PER_TASK", "")
    if share.isdigit() and int(share) > 0:
        cores = min(cores, int(share))
    quota = min(map(_quota, _groups(SYSTEM)), default=inf)
    return cores if quota == inf else max(1, min(cores, ceil(quota)))


def _groups(system: Path) -> Iterator[Path]:
    """The folders of the control groups that this process is in, and of all above them."""
    try:
        lines = (system / "proc/self/cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        # version 2 has one hierarchy and no controllers here; version 1 one for each
        root = system / "sys/fs/cgroup" / controllers
        group = root / path.strip("/")
        yield group
        yield from (folder for folder in group.parents if folder.is_relative_to(root))


def _quota(group: Path) -> float:
    """How many cores' time a group may take."""
    try:
        if (group / "cpu.max").exists():
            limit, period = (group / "cpu.max").read_text().split()
        else:
            limit = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        cores = float(limit) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # no limit says max
        return inf
    return cores if cores > 0 else inf  # or -1
