"""`python -m gridx.background`: the background process on its own."""

import signal
import threading

from gridx.background.executor import make_executor
from gridx.background.loop import Background
from gridx.core.db import Database
from gridx.core.logs import configure_logs
from gridx.core.settings import Settings, load_settings
from gridx.core.supervisor import die_with_supervisor
from gridx.storage.select import make_store


def run(settings: Settings, stop: threading.Event) -> None:
    """Work until `stop` is set. The database must be migrated."""
    database = Database(settings.sqlalchemy_url)
    executor = make_executor(settings)
    background = Background(settings, database, make_store(settings), executor)
    background.start()
    stop.wait()
    background.stop()
    executor.shutdown()
    database.dispose()


def main() -> None:
    die_with_supervisor()
    settings = load_settings()
    configure_logs(settings.log_level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run(settings, stop)


if __name__ == "__main__":
    main()
