"""Before training starts between machines, each agent tries the others: a wrong address or a firewall is found at once, and named."""

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from gridx_worker.ddp.offer import BadOffer

WATCH_S = 2.0
MOST_FAILURES = 3
_PATIENCE_S = 5.0
_GREETING = b"gridx-rank\n"


class Listener:
    """Answers on the first free port of a range while its block runs."""

    def __init__(self, address: str, ports: tuple[int, int]) -> None:
        self._socket = _bind(address, ports)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._loop, name="handshake", daemon=True)

    def __enter__(self) -> "Listener":
        self._socket.listen(64)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(_PATIENCE_S)

    def _loop(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.settimeout(_PATIENCE_S)
                peer.sendall(_GREETING)


def try_peers(peers: Sequence[tuple[int, str, int]]) -> tuple[list[int], list[int]]:
    """(ranks that answered, ranks that did not), of (rank, address, port)."""
    reached: list[int] = []
    unreachable: list[int] = []
    lock = threading.Lock()

    def look(rank: int, address: str, port: int) -> None:
        well = False
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=_PATIENCE_S) as connection:
            connection.settimeout(_PATIENCE_S)
            well = connection.recv(len(_GREETING)) == _GREETING
        with lock:
            (reached if well else unreachable).append(rank)

    threads = [threading.Thread(target=look, args=peer) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(reached), sorted(unreachable)


class Watch:
    """Tries the other ranks again and again while training lasts: a connection over a cut network says nothing for many minutes.

    One whose port nobody listens on any more has ended, or its agent has: that is found elsewhere. `on_cut` is called once, with words.
    """

    def __init__(self, peers: Sequence[tuple[int, str, int]], on_cut: Callable[[str], None]) -> None:
        self._peers, self._on_cut = peers, on_cut
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="rank-watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(2 * _PATIENCE_S)

    def _loop(self) -> None:
        failures: Counter[int] = Counter()
        while not self._end.wait(WATCH_S):
            for rank, address, port in self._peers:
                failures[rank] = failures[rank] + 1 if _is_cut_off(address, port) else 0
                if failures[rank] >= MOST_FAILURES and not self._end.is_set():
                    self._on_cut(f"it cannot reach rank {rank} at {address}:{port} any more")
                    return


def _is_cut_off(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=_PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return False


def _bind(address: str, ports: tuple[int, int]) -> socket.socket:
    for port in range(ports[0], ports[1] + 1):
        listening = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address, port))
        except OSError:
            listening.close()
            continue
        return listening
    raise BadOffer(f"no port from {ports[0]} to {ports[1]} can be listened on at {address}; give others with --ddp-ports")
