"""What this machine is, for registration."""

import platform
import shutil
import socket
import subprocess
from pathlib import Path

import psutil

from gridx_protocol.messages import Hardware
from gridx_worker import __version__
from gridx_worker.sandbox.base import ProviderLimits, SandboxInfo


def measure(info: SandboxInfo, limits: ProviderLimits, folder: Path, disk_bytes: int | None = None) -> Hardware:
    """RAM is what one attempt may use, cores what it may use rounded up: what a job's needs are compared with.

    Disk is what is free of the share.
    """
    gpu_name, gpu_count, vram_bytes = find_gpu(limits.gpu) if info.gpu and limits.gpu is not None else (None, 0, 0)
    return Hardware(
        hostname=socket.gethostname()[:255] or "unknown",
        os=f"{platform.system()} {platform.release()}"[:255],
        cores=max(min(psutil.cpu_count() or 1, -int(-limits.cpus // 1)), 1),
        ram_bytes=min(limits.memory_bytes, psutil.virtual_memory().total),
        disk_free_bytes=min(shutil.disk_usage(folder).free, disk_bytes or 2**63 - 1),
        gpu_name=gpu_name,
        gpu_count=gpu_count,
        vram_bytes=vram_bytes,
        python_version=info.python_version,
        torch_version=info.versions.get("torch"),
        image_id=info.image_id,
        isolation=info.isolation,
        worker_version=__version__,
    )


def find_gpu(gpu: str) -> tuple[str | None, int, int]:
    """Name of the NVIDIA GPU with this index or UUID, 1, and its memory in bytes; (None, 0, 0) where there is none."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--id={gpu}", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, 0, 0
    rows = [line.rsplit(",", 1) for line in answer.stdout.splitlines() if "," in line] if answer.returncode == 0 else []
    try:
        sizes = [int(size.strip()) for _, size in rows]
    except ValueError:
        return None, 0, 0
    if not rows:
        return None, 0, 0
    return rows[0][0].strip()[:255], len(rows), min(sizes) * 1024**2
