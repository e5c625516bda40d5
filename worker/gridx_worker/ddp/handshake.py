"""Before training starts between machines, each agent tries the others: a wrong address or a firewall is found at once, and named."""

import contextlib
import socket
import threading
from collections.abc import Sequence

from gridx_worker.ddp.offer import BadOffer

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
