"""Generated sequences of calls, lost replies and deaths, on SQLite."""

from tests.backend.jobs.market import MarketRules


class TestOnSqlite(MarketRules):
    kind = "sqlite"
