"""Runs inside the sandbox in the place of a job's script, and tries to get out of it. Each attempt prints one line: `ESCAPE {json}`.

Arguments, as one JSON object: {"connect": [[host, port]], "abstract": [name], "exists": [path], "secret": text, "spare": bool}. `connect`
and `abstract` are sockets that somebody listens on outside, `exists` are paths of the host, `secret` stands in the agent's environment,
and `spare` leaves out what takes all of something.
It imports nothing but Python, and the launcher's list of system calls. Never run it outside a sandbox: unheld, it does harm.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exhaustion import Held, exhaustion, held, in_child

OWN_MOUNTS = ("/", "/work", "/input", "/gridx", "/packages", "/tmp", "/proc", "/sys", "/dev")
OWN_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
SYSTEM = "/taken /usr/taken /etc/passwd /etc/hosts /etc/resolv.conf /gridx/launcher.py /input/taken data.csv"
KERNEL = "/proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/drop_caches /sys/kernel/uevent_helper"
LIMITS = "/sys/fs/cgroup/release_agent /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max"
NAME_SPACES = {"user": 0x10000000, "mount": 0x00020000, "net": 0x40000000, "pid": 0x20000000, "cgroup": 0x02000000}
PTRACE_SEIZE = 0x4206
RAISES = OSError, ValueError, MemoryError
libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    given = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    for name, attempt in attempts(given):
        try:
            got = attempt()
            held, how = False, f"got {got!r:.200}"
        except Held as answer:
            held, how = True, str(answer)
        except RAISES as error:
            held, how = True, f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}"
        print("ESCAPE", json.dumps({"name": name, "held": held, "how": how}), flush=True)
    Path("model.pth").write_bytes(b"x")


def attempts(given: dict[str, object]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that is tried, under the name that reports use."""
    yield from identity()
    yield from writing()
    yield from reading(given)
    yield from system_calls()
    yield from network(given)
    if not given.get("spare"):
        yield from exhaustion()


def identity() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "be root", lambda: refused_unless(os.getuid() == 0 or os.geteuid() == 0)
    yield "become root", lambda: os.setuid(0)
    yield "hold a capability", lambda: refused_unless(int(status("CapEff"), 16) | int(status("CapBnd"), 16) | int(status("CapAmb"), 16))
    yield "gain privileges by a setuid program", lambda: refused_unless(status("NoNewPrivs") != "1")
    yield "run without a filter of system calls", lambda: refused_unless(status("Seccomp") != "2")
    yield "raise its own limits", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1_000_000, 1_000_000))
    yield "take priority", lambda: os.nice(-5)
    yield "set the clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0)
    yield "rename the host", lambda: socket.sethostname("taken")
    yield "kill the launcher", kill_launcher


def writing() -> Iterator[tuple[str, Callable[[], object]]]:
    for path in f"{SYSTEM} {KERNEL} {LIMITS}".split():
        yield f"write {path}", lambda path=path: write(path)
    yield "make a device", lambda: os.mknod("/tmp/mem", 0o600 | 0o020000, os.makedev(1, 1))
    yield "change the root folder", lambda: in_child(lambda: os.chroot("/tmp"))
    yield "mount", lambda: call(libc.mount(b"none", b"/tmp", b"tmpfs", 0, b""))
    yield "unmount", lambda: call(libc.umount2(b"/proc/sys", 2))
    yield "run a program it wrote into its folder", run_own_program


def reading(given: dict[str, object]) -> Iterator[tuple[str, Callable[[], object]]]:
    for path in ("/var/run/docker.sock", "/run/docker.sock", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/nvme0n1"):
        yield f"find {path}", lambda path=path: os.stat(path)
    for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/fd", "/proc/1/root/etc", "/proc/1/cwd", "/proc/1/maps"):
        yield f"read {path}", lambda path=path: os.listdir(path) if os.path.isdir(path) else Path(path).read_bytes()[:80]
    for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware/acpi"):
        yield f"read {path}", lambda path=path: nothing(path)
    yield "read another attempt's input", lambda: refused_unless(os.listdir("/input")[1:])
    yield "find another attempt's files", lambda: refused_unless(set(os.listdir("/work")) - {os.path.basename(os.getcwd())})
    yield "see other processes", lambda: refused_unless(other_processes())
    yield "find a mount of the host", lambda: refused_unless(foreign_mounts())
    secret = given.get("secret")
    yield "find the agent's environment", lambda: refused_unless(secret and str(secret) in environments())
    for path in given.get("exists", []):  # type: ignore[attr-defined]
        yield "find a file of the host", lambda path=path: os.stat(path)


def system_calls() -> Iterator[tuple[str, Callable[[], object]]]:
    sys.path.append("/gridx")
    import syscall_filter

    column = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
    if column is None:
        return
    for name, numbers in syscall_filter.DENIED.items():
        yield f"call {name}", lambda number=numbers[column]: denied(number)
    yield "trace the launcher", lambda: in_child(lambda: call(libc.ptrace(PTRACE_SEIZE, 1, 0, 0)))
    for name, flag in NAME_SPACES.items():
        yield f"unshare the {name} name space", lambda flag=flag: in_child(lambda: call(libc.unshare(flag)))


def network(given: dict[str, object]) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "have an interface", lambda: refused_unless(interfaces())
    yield "resolve a name", lambda: resolve("example.org")
    yield "ask a DNS server", lambda: send(socket.AF_INET, ("1.1.1.1", 53))
    yield "reach the internet", lambda: connect("1.1.1.1", 443)
    yield "reach the gateway", lambda: connect("172.17.0.1", 80)
    for host in ("192.168.0.1", "192.168.1.1", "10.0.0.1", "172.16.0.1"):
        yield f"reach the local network at {host}", lambda host=host: connect(host, 80)
    yield "reach the link-local metadata service", lambda: connect("169.254.169.254", 80)
    yield "reach link-local over IPv6", lambda: send(socket.AF_INET6, ("fe80::1", 53, 0, 1))
    yield "reach the internet over IPv6", lambda: connect("2606:4700:4700::1111", 443)
    yield "broadcast", lambda: send(socket.AF_INET, ("255.255.255.255", 9))
    yield "multicast", lambda: send(socket.AF_INET, ("224.0.0.251", 5353))
    yield "open a raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    for name, family in {"vsock": 40, "packet": 17, "netlink": 16, "Bluetooth": 31, "crypto": 38, "XDP": 44, "CAN": 29}.items():
        yield f"open a {name} socket", lambda family=family: socket.socket(family, socket.SOCK_DGRAM)
    for host, port in given.get("connect", []):  # type: ignore[attr-defined]
        yield "reach a server on the provider's machine", lambda host=host, port=port: connect(host, port)
    for name in given.get("abstract", []):  # type: ignore[attr-defined]
        yield "reach a nameless socket of the provider's machine", lambda name=name: reach_abstract(name)


def refused_unless(found: object) -> object:
    if not found:
        raise Held("nothing of that kind")
    return found


def call(result: int) -> int:
    """What a C function returned. Raises OSError by errno."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def denied(number: int) -> str:
    """A system call without arguments: EPERM is the filter's word, every other answer comes from the kernel behind it."""
    try:
        return in_child(lambda: call(libc.syscall(number, 0, 0, 0, 0, 0, 0)))
    except PermissionError:
        raise
    except OSError as error:
        return str(error)


def status(field: str) -> str:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.split()[1]
    return "0"


def kill_launcher() -> None:
    for number in signal.valid_signals():
        with contextlib.suppress(OSError):
            os.kill(1, number)
    if os.path.exists("/proc/1/status"):
        raise Held("it lives on")


def write(path: str) -> str:
    with open(path, "a") as file:
        file.write("1")
    return path


def run_own_program() -> int:
    Path("program").write_text("#!/bin/sh\nexit 0\n")
    os.chmod("program", 0o700)
    try:
        pid = os.posix_spawn("./program", ["./program"], {})
        return os.waitpid(pid, 0)[1]
    finally:
        os.unlink("program")


def nothing(path: str) -> bytes:
    """Docker hides some files behind empty ones."""
    found = b"".join(os.fsencode(name) for name in os.listdir(path)) if os.path.isdir(path) else open(path, "rb").read(80)  # noqa: SIM115
    return found or held("it is empty")


def other_processes() -> list[str]:
    own = {"1", str(os.getpid())}
    return [name for name in os.listdir("/proc") if name.isdigit() and name not in own and Path(f"/proc/{name}").exists()]


def foreign_mounts() -> list[str]:
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [place for place in places if place not in OWN_MOUNTS + OWN_FILES and not place.startswith(("/proc/", "/sys/", "/dev/"))]


def environments() -> str:
    found = json.dumps(dict(os.environ))
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found += file.read_bytes().decode(errors="replace")
    return found


def interfaces() -> list[str]:
    names = [line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return [name for name in names if not name.startswith(("lo", "tunl", "sit", "gre", "erspan", "ip6", "ip_vti"))]


def connect(host: str, port: int) -> str:
    socket.create_connection((host, port), timeout=1).close()
    return f"{host}:{port}"


def resolve(name: str) -> object:
    signal.signal(signal.SIGALRM, lambda *_: held("no answer"))
    signal.alarm(4)
    try:
        return socket.getaddrinfo(name, 80)
    finally:
        signal.alarm(0)


def send(family: int, address: tuple[object, ...]) -> int:
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        return made.sendto(b"x", address)


def reach_abstract(name: str) -> str:
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(f"\0{name}")
    return name


if __name__ == "__main__":
    main()
