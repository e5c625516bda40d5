"""A death at every point of a job's life, on PostgreSQL."""

import pytest

from tests.backend.jobs.kill_matrix import KillMatrix


@pytest.mark.postgresql
class TestOnPostgresql(KillMatrix):
    kind = "postgresql"
