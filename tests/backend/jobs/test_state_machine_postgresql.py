"""Generated sequences of calls, lost replies and deaths, on PostgreSQL."""

import pytest

from tests.backend.jobs.market import MarketRules


@pytest.mark.postgresql
class TestOnPostgresql(MarketRules):
    kind = "postgresql"
