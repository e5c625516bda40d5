"""Calls made up from the OpenAPI schema, on SQLite."""

from tests.backend.schema_fuzz import SchemaFuzz


class TestOnSqlite(SchemaFuzz):
    kind = "sqlite"
