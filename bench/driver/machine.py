"""What machine and which versions a result is from."""

import os
import re
import subprocess
import time
from pathlib import Path

from .libraries import ROOT


def _first(path, pattern, default="unknown"):
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return default
    return found[1].strip() if found else default


def last_level(cores):
    """A sentence on which of these cores share a last-level cache, as the kernel says."""
    groups, size = {}, ""
    for core in cores:
        places = sorted(Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*"),
                        key=lambda place: int((place / "level").read_text()))
        if not places:
            return "the kernel does not say"
        groups.setdefault((places[-1] / "shared_cpu_list").read_text().strip(), []).append(core)
        size = (places[-1] / "size").read_text().strip()
    shared = "; ".join("cores " + ", ".join(map(str, group)) if len(group) > 1 else f"core {group[0]} alone"
                       for group in groups.values())
    return f"{size}, {shared}"


def _git():
    result = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True, capture_output=True)
    return result.stdout.strip() or "not a checkout"


def describe(cores):
    """{what: text}, as it is before the first round."""
    memory = int(_first("/proc/meminfo", r"^MemTotal:\s+(\d+)", "0"))
    system = os.uname()
    guest = " (virtual machine)" if " hypervisor" in _first("/proc/cpuinfo", r"^flags\s*:(.*)$", "") else ""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", system.machine) + guest,
        "processors online": str(os.cpu_count()),
        "cores used": ", ".join(map(str, cores)) or "as the launcher binds",
        "last-level cache": last_level(cores or range(os.cpu_count())) + (" (as the hypervisor shows it)" if guest else ""),
        "NUMA nodes": str(len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or "unknown"),
        "memory": f"{memory / (1 << 20):.0f} GiB",
        "kernel": f"{system.sysname} {system.release}",
        "transparent huge pages": _first("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
        "load average before": f"{os.getloadavg()[0]:.1f}",
        "commit": _git(),
    }
