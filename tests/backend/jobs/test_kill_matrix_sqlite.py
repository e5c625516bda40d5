"""A death at every point of a job's life, on SQLite."""

from tests.backend.jobs.kill_matrix import KillMatrix


class TestOnSqlite(KillMatrix):
    kind = "sqlite"
