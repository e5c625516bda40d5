"""`python -m gridx.orchestrator`: the orchestrator's process, as `gridx serve` starts it."""

import argparse
import sys

from gridx.core.logs import configure_logs
from gridx.core.settings import load_settings
from gridx.core.supervisor import die_with_supervisor
from gridx.orchestrator.command import run_for_platform


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    arguments = parser.parse_args()
    die_with_supervisor()
    settings = load_settings()
    configure_logs(settings.log_level)
    sys.exit(run_for_platform(settings, arguments.host, None, dashboard=False))


if __name__ == "__main__":
    main()
