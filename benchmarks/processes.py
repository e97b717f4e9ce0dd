"""What other processes took, where the system tells (Linux); NaN elsewhere."""

import os
import re
from pathlib import Path


def cpu_seconds(process: int) -> float:
    """Seconds of cores that a process and its threads took so far."""
    status = Path(f"/proc/{process}/stat")
    if not status.exists():
        return float("nan")
    user, system = status.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(process: int) -> float:
    """The most memory that a process took."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return float("nan")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"))
    assert found
    return int(found[1]) / 1024
