"""Calls made up from the OpenAPI schema, on PostgreSQL."""

import pytest

from tests.backend.schema_fuzz import SchemaFuzz


@pytest.mark.postgresql
class TestOnPostgresql(SchemaFuzz):
    kind = "postgresql"
