"""The first tables.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# 64 bits on both databases; SQLite counts up by itself only for a column declared INTEGER.
_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# Entries and transfers are written once and never changed.
_IMMUTABLE = {
    "postgresql": [
        "CREATE OR REPLACE FUNCTION gridx_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' are never changed'; END $$",
        "CREATE TRIGGER transfers_no_change BEFORE UPDATE OR DELETE ON transfers\nFOR EACH ROW EXECUTE FUNCTION gridx_never_changed()",
        "CREATE OR REPLACE FUNCTION gridx_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        "BEGIN RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' are never changed'; END $$",
        "CREATE TRIGGER entries_no_change BEFORE UPDATE OR DELETE ON entries\nFOR EACH ROW EXECUTE FUNCTION gridx_never_changed()",
    ],
    "sqlite": [
        "CREATE TRIGGER transfers_no_UPDATE BEFORE UPDATE ON transfers\nBEGIN SELECT RAISE(ABORT, 'transfers are never changed'); END",
        "CREATE TRIGGER transfers_no_DELETE BEFORE DELETE ON transfers\nBEGIN SELECT RAISE(ABORT, 'transfers are never changed'); END",
        "CREATE TRIGGER entries_no_UPDATE BEFORE UPDATE ON entries\nBEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
        "CREATE TRIGGER entries_no_DELETE BEFORE DELETE ON entries\nBEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
    ],
}


def upgrade() -> None:
    op.create_table(
        "background_ticks",
        sa.Column("id", _INT, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_background_ticks")),
    )
    op.create_table(
        "ledger_accounts",
        sa.Column("id", _INT, nullable=False),
        sa.Column("code", sa.String(length=64), nullable=False),
        sa.Column("owner_code", sa.String(length=64), nullable=True),
        sa.Column("balance", _INT, nullable=False),
        sa.CheckConstraint("balance >= 0 OR code = 'mint'", name=op.f("ck_ledger_accounts_balance_not_negative")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_accounts")),
        sa.UniqueConstraint("code", name=op.f("uq_ledger_accounts_code")),
    )
    with op.batch_alter_table("ledger_accounts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ledger_accounts_owner_code"), ["owner_code"], unique=False)

    op.create_table(
        "login_failures",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("count", _INT, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_login_failures")),
    )
    with op.batch_alter_table("login_failures", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_login_failures_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "transfers",
        sa.Column("id", _INT, nullable=False),
        sa.Column("reference", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transfers")),
        sa.UniqueConstraint("reference", name=op.f("uq_transfers_reference")),
    )
    op.create_table(
        "users",
        sa.Column("id", _INT, nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("password_hash", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("token_epoch", _INT, nullable=False),
        sa.Column("is_disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("role IN ('buyer', 'seller', 'both')", name=op.f("ck_users_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "datasets",
        sa.Column("id", _INT, nullable=False),
        sa.Column("owner_id", _INT, nullable=True),
        sa.Column("catalogue", sa.String(length=32), nullable=True),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("rows", _INT, nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("delimiter", sa.String(length=1), nullable=False),
        sa.Column("bytes", _INT, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.String(length=200), nullable=False),
        sa.Column("header_end", _INT, nullable=False),
        sa.Column("scan", sa.JSON(), nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("upload_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_datasets_owner_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("catalogue", name=op.f("uq_datasets_catalogue")),
        sa.UniqueConstraint("object_key", name=op.f("uq_datasets_object_key")),
        sa.UniqueConstraint("upload_id", name=op.f("uq_datasets_upload_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_datasets_owner_id"), ["owner_id"], unique=False)

    op.create_table(
        "enrolment_keys",
        sa.Column("id", _INT, nullable=False),
        sa.Column("owner_id", _INT, nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_enrolment_keys_owner_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolment_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_enrolment_keys_key_hash")),
    )
    with op.batch_alter_table("enrolment_keys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_enrolment_keys_owner_id"), ["owner_id"], unique=False)

    op.create_table(
        "entries",
        sa.Column("id", _INT, nullable=False),
        sa.Column("transfer_id", _INT, nullable=False),
        sa.Column("account_id", _INT, nullable=False),
        sa.Column("amount", _INT, nullable=False),
        sa.CheckConstraint("amount <> 0", name=op.f("ck_entries_amount_not_zero")),
        sa.ForeignKeyConstraint(["account_id"], ["ledger_accounts.id"], name=op.f("fk_entries_account_id_ledger_accounts")),
        sa.ForeignKeyConstraint(["transfer_id"], ["transfers.id"], name=op.f("fk_entries_transfer_id_transfers")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entries")),
        sa.UniqueConstraint("transfer_id", "account_id", name=op.f("uq_entries_transfer_id_account_id")),
    )
    with op.batch_alter_table("entries", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_entries_account_id_id"), ["account_id", "id"], unique=False)

    op.create_table(
        "invites",
        sa.Column("id", _INT, nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_by", _INT, nullable=True),
        sa.ForeignKeyConstraint(["used_by"], ["users.id"], name=op.f("fk_invites_used_by_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invites")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_invites_code_hash")),
    )
    op.create_table(
        "agents",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("owner_id", _INT, nullable=False),
        sa.Column("key_id", _INT, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=True),
        sa.Column("hardware", sa.JSON(), nullable=False),
        sa.Column("ram_bytes", _INT, nullable=False),
        sa.Column("gpu_count", _INT, nullable=False),
        sa.Column("vram_bytes", _INT, nullable=False),
        sa.Column("registered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ban_reason", sa.Text(), nullable=True),
        sa.Column("accepts", sa.String(length=16), nullable=False),
        sa.Column("paused", sa.String(length=200), nullable=True),
        sa.Column("doctor", sa.JSON(), nullable=True),
        sa.Column("quarantined_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("quarantine_reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["key_id"], ["enrolment_keys.id"], name=op.f("fk_agents_key_id_enrolment_keys")),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_agents_owner_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_agents_token_hash")),
    )
    with op.batch_alter_table("agents", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_agents_key_id"), ["key_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_agents_owner_id"), ["owner_id"], unique=False)
        batch_op.create_index("ix_agents_seen", ["last_seen_at"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("id", _INT, nullable=False),
        sa.Column("owner_id", _INT, nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("dataset_id", _INT, nullable=False),
        sa.Column("script_key", sa.String(length=200), nullable=False),
        sa.Column("script_sha256", sa.String(length=64), nullable=False),
        sa.Column("requirements_key", sa.String(length=200), nullable=True),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("hyperparameters", sa.JSON(), nullable=False),
        sa.Column("recipe", sa.String(length=32), nullable=True),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("chunks", _INT, nullable=False),
        sa.Column("chunks_per_round", _INT, nullable=False),
        sa.Column("rounds", _INT, nullable=False),
        sa.Column("partitioner", sa.String(length=32), nullable=False),
        sa.Column("schema_key", sa.String(length=200), nullable=True),
        sa.Column("partitioner_options", sa.JSON(), nullable=False),
        sa.Column("strategy", sa.String(length=32), nullable=False),
        sa.Column("strategy_options", sa.JSON(), nullable=False),
        sa.Column("seed", _INT, nullable=False),
        sa.Column("min_updates", _INT, nullable=False),
        sa.Column("round_deadline_s", _INT, nullable=True),
        sa.Column("backups", sa.Boolean(), nullable=False),
        sa.Column("held_out_share", sa.Double(), nullable=False),
        sa.Column("evaluations", _INT, nullable=False),
        sa.Column("early_stopping", sa.JSON(), nullable=True),
        sa.Column("initial_model_key", sa.String(length=200), nullable=True),
        sa.Column("best_round", _INT, nullable=True),
        sa.Column("keep_updates", sa.Boolean(), nullable=False),
        sa.Column("time_limit_s", _INT, nullable=False),
        sa.Column("needs", sa.JSON(), nullable=False),
        sa.Column("needs_ram_bytes", _INT, nullable=False),
        sa.Column("needs_gpus", _INT, nullable=False),
        sa.Column("needs_vram_bytes", _INT, nullable=False),
        sa.Column("units", _INT, nullable=False),
        sa.Column("price", _INT, nullable=False),
        sa.Column("total_subtasks", _INT, nullable=False),
        sa.Column("current_round", _INT, nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("final_model_key", sa.String(length=200), nullable=True),
        sa.Column("final_model_sha256", sa.String(length=64), nullable=True),
        sa.Column("final_model_bytes", _INT, nullable=True),
        sa.Column("safetensors_key", sa.String(length=200), nullable=True),
        sa.Column("safetensors_sha256", sa.String(length=64), nullable=True),
        sa.Column("safetensors_bytes", _INT, nullable=True),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("request_hash", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_token", sa.String(), nullable=True),
        sa.Column("work_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_failures", _INT, nullable=False),
        sa.CheckConstraint(
            "status IN ('PROCESSING', 'RUNNING', 'AGGREGATING', 'COMPLETED', 'FAILED', 'CANCELLED')", name=op.f("ck_jobs_status")
        ),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_jobs_dataset_id_datasets")),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_jobs_owner_id_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("owner_id", "idempotency_key", name=op.f("uq_jobs_owner_id_idempotency_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jobs_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_owner_id"), ["owner_id"], unique=False)
        batch_op.create_index("ix_jobs_status", ["status"], unique=False)

    op.create_table(
        "chunks",
        sa.Column("id", _INT, nullable=False),
        sa.Column("dataset_id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("index", _INT, nullable=False),
        sa.Column("rows", _INT, nullable=False),
        sa.Column("bytes", _INT, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.String(length=200), nullable=False),
        sa.Column("lacks", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_chunks_dataset_id_datasets")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_chunks_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
        sa.UniqueConstraint("job_id", "index", name=op.f("uq_chunks_job_id_index")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("chunks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_chunks_dataset_id"), ["dataset_id"], unique=False)

    op.create_table(
        "job_events",
        sa.Column("id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("what", sa.String(length=16), nullable=False),
        sa.Column("subtask_id", _INT, nullable=True),
        sa.Column("old", sa.String(length=16), nullable=True),
        sa.Column("new", sa.String(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_events_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_events")),
    )
    with op.batch_alter_table("job_events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_job_events_job_id"), ["job_id"], unique=False)

    op.create_table(
        "rounds",
        sa.Column("id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("number", _INT, nullable=False),
        sa.Column("reference", sa.JSON(), nullable=True),
        sa.Column("global_model_key", sa.String(length=200), nullable=True),
        sa.Column("global_model_sha256", sa.String(length=64), nullable=True),
        sa.Column("global_model_bytes", _INT, nullable=True),
        sa.Column("state_key", sa.String(length=200), nullable=True),
        sa.Column("updates_used", _INT, nullable=True),
        sa.Column("rows_used", _INT, nullable=True),
        sa.Column("convergence_delta", sa.Double(), nullable=True),
        sa.Column("step_norm", sa.Double(), nullable=True),
        sa.Column("evaluation", sa.JSON(), nullable=True),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("is_retried", sa.Boolean(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_token", sa.String(), nullable=True),
        sa.Column("work_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_failures", _INT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_rounds_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rounds")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_rounds_job_id_number")),
    )
    with op.batch_alter_table("rounds", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rounds_job_id"), ["job_id"], unique=False)

    op.create_table(
        "subtasks",
        sa.Column("id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("round_id", _INT, nullable=False),
        sa.Column("round_number", _INT, nullable=False),
        sa.Column("chunk_index", _INT, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("rows", _INT, nullable=False),
        sa.Column("attempts_made", _INT, nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wants_backup", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('PENDING', 'RUNNING', 'VERIFYING', 'COMPLETED', 'FAILED', 'CANCELLED')", name=op.f("ck_subtasks_status")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_subtasks_job_id_jobs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_subtasks_round_id_rounds"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subtasks")),
        sa.UniqueConstraint("round_id", "kind", "chunk_index", name=op.f("uq_subtasks_round_id_kind_chunk_index")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("subtasks", schema=None) as batch_op:
        batch_op.create_index("ix_subtasks_job_status", ["job_id", "status", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_subtasks_round_id"), ["round_id"], unique=False)

    op.create_table(
        "attempts",
        sa.Column("id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("buyer_id", _INT, nullable=False),
        sa.Column("subtask_id", _INT, nullable=False),
        sa.Column("agent_id", sa.String(length=64), nullable=False),
        sa.Column("seller_id", _INT, nullable=False),
        sa.Column("slot", _INT, nullable=False),
        sa.Column("number", _INT, nullable=False),
        sa.Column("is_backup", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("lease_token", sa.String(length=64), nullable=False),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=True),
        sa.Column("progress", sa.Double(), nullable=True),
        sa.Column("epoch", _INT, nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("accuracy", sa.Double(), nullable=True),
        sa.Column("metrics", sa.JSON(), nullable=True),
        sa.Column("train_s", sa.Double(), nullable=True),
        sa.Column("upload_key", sa.String(), nullable=False),
        sa.Column("upload_sha256", sa.String(length=64), nullable=True),
        sa.Column("upload_bytes", _INT, nullable=True),
        sa.Column("update_key", sa.String(length=200), nullable=True),
        sa.Column("summary", sa.JSON(), nullable=True),
        sa.Column("distance", sa.Double(), nullable=True),
        sa.Column("fault", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("paid", _INT, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_token", sa.String(), nullable=True),
        sa.Column("work_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_failures", _INT, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_attempts_agent_id_agents")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_attempts_job_id_jobs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["seller_id"], ["users.id"], name=op.f("fk_attempts_seller_id_users")),
        sa.ForeignKeyConstraint(["subtask_id"], ["subtasks.id"], name=op.f("fk_attempts_subtask_id_subtasks"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index("ix_attempts_job", ["job_id", "status"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempts_seller_id"), ["seller_id"], unique=False)
        batch_op.create_index("ix_attempts_status", ["status", "lease_expires_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempts_subtask_id"), ["subtask_id"], unique=False)
        batch_op.create_index(
            "uq_attempts_agent_running",
            ["agent_id", "slot"],
            unique=True,
            sqlite_where=sa.text("status = 'RUNNING'"),
            postgresql_where=sa.text("status = 'RUNNING'"),
        )
        batch_op.create_index(
            "uq_attempts_subtask_live",
            ["subtask_id", "is_backup"],
            unique=True,
            sqlite_where=sa.text("status IN ('RUNNING', 'VERIFYING')"),
            postgresql_where=sa.text("status IN ('RUNNING', 'VERIFYING')"),
        )
        batch_op.create_index(
            "uq_attempts_subtask_accepted",
            ["subtask_id"],
            unique=True,
            sqlite_where=sa.text("status = 'ACCEPTED'"),
            postgresql_where=sa.text("status = 'ACCEPTED'"),
        )

    op.create_table(
        "attempt_logs",
        sa.Column("attempt_id", _INT, nullable=False),
        sa.Column("head", sa.Text(), nullable=False),
        sa.Column("tail", sa.Text(), nullable=False),
        sa.Column("total_bytes", _INT, nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_attempt_logs_attempt_id_attempts"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_attempt_logs")),
    )
    op.create_table(
        "metrics",
        sa.Column("attempt_id", _INT, nullable=False),
        sa.Column("seq", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("epoch", _INT, nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("accuracy", sa.Double(), nullable=True),
        sa.Column("more", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_metrics_attempt_id_attempts"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("attempt_id", "seq", name=op.f("pk_metrics")),
    )
    with op.batch_alter_table("metrics", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_metrics_job_id"), ["job_id"], unique=False)
    _create_gangs()
    op.create_table(
        "outputs",
        sa.Column("id", _INT, nullable=False),
        sa.Column("attempt_id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("size", _INT, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_outputs_attempt_id_attempts"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_outputs_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outputs")),
        sa.UniqueConstraint("attempt_id", "name", name=op.f("uq_outputs_attempt_id_name")),
    )
    with op.batch_alter_table("outputs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outputs_job_id"), ["job_id"], unique=False)
    for statement in _IMMUTABLE[op.get_bind().dialect.name]:
        op.execute(sa.text(statement.replace(":", "\\:")))


def _create_gangs() -> None:
    """Synchronous training."""
    op.create_table(
        "rank_slots",
        sa.Column("agent_id", sa.String(length=64), nullable=False),
        sa.Column("slot", _INT, nullable=False),
        sa.Column("place", sa.String(length=255), nullable=False),
        sa.Column("address", sa.String(length=255), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_rank_slots_agent_id_agents")),
        sa.PrimaryKeyConstraint("agent_id", "slot", name=op.f("pk_rank_slots")),
    )
    op.create_table(
        "orchestrator_state",
        sa.Column("id", _INT, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("port", _INT, nullable=False),
        sa.Column("is_secure", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orchestrator_state")),
    )
    op.create_table(
        "gangs",
        sa.Column("id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("number", _INT, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("place", sa.String(length=255), nullable=False),
        sa.Column("secret", sa.String(length=64), nullable=False),
        sa.Column("master_address", sa.String(length=255), nullable=False),
        sa.Column("master_port", _INT, nullable=False),
        sa.Column("checkpoint_id", _INT, nullable=True),
        sa.Column("fault", sa.String(length=64), nullable=True),
        sa.Column("culprit_id", _INT, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("register_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ready_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_gangs_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gangs")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_gangs_job_id_number")),
    )
    with op.batch_alter_table("gangs", schema=None) as batch_op:
        batch_op.create_index(
            "uq_gangs_live",
            ["job_id"],
            unique=True,
            sqlite_where=sa.text("status IN ('FORMING', 'TRAINING')"),
            postgresql_where=sa.text("status IN ('FORMING', 'TRAINING')"),
        )
    op.create_table(
        "gang_members",
        sa.Column("attempt_id", _INT, nullable=False),
        sa.Column("gang_id", _INT, nullable=False),
        sa.Column("rank", _INT, nullable=False),
        sa.Column("local_rank", _INT, nullable=False),
        sa.Column("instance", sa.String(length=128), nullable=True),
        sa.Column("address", sa.String(length=255), nullable=False),
        sa.Column("port", _INT, nullable=False),
        sa.Column("registered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ready_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("has_reached_all", sa.Boolean(), nullable=False),
        sa.Column("step", _INT, nullable=True),
        sa.Column("samples_per_s", sa.Double(), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_gang_members_attempt_id_attempts"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["gang_id"], ["gangs.id"], name=op.f("fk_gang_members_gang_id_gangs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_gang_members")),
        sa.UniqueConstraint("gang_id", "rank", name=op.f("uq_gang_members_gang_id_rank")),
    )
    with op.batch_alter_table("gang_members", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_gang_members_gang_id"), ["gang_id"], unique=False)
    op.create_table(
        "checkpoints",
        sa.Column("id", _INT, nullable=False),
        sa.Column("job_id", _INT, nullable=False),
        sa.Column("gang_id", _INT, nullable=False),
        sa.Column("number", _INT, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("upload_key", sa.String(length=200), nullable=False),
        sa.Column("upload_sha256", sa.String(length=64), nullable=False),
        sa.Column("upload_bytes", _INT, nullable=False),
        sa.Column("key", sa.String(length=200), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("bytes", _INT, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("work_token", sa.String(), nullable=True),
        sa.Column("work_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("work_failures", _INT, nullable=False),
        sa.ForeignKeyConstraint(["gang_id"], ["gangs.id"], name=op.f("fk_checkpoints_gang_id_gangs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_checkpoints_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("gang_id", "number", name=op.f("uq_checkpoints_gang_id_number")),
    )
    with op.batch_alter_table("checkpoints", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_checkpoints_job_id"), ["job_id"], unique=False)
        batch_op.create_index("ix_checkpoints_status", ["status", "id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("outputs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_outputs_job_id"))

    op.drop_table("outputs")
    for table in ("checkpoints", "gang_members", "gangs", "rank_slots", "orchestrator_state"):
        op.drop_table(table)
    with op.batch_alter_table("metrics", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_metrics_job_id"))

    op.drop_table("metrics")
    op.drop_table("attempt_logs")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_attempts_subtask_accepted", sqlite_where=sa.text("status = 'ACCEPTED'"), postgresql_where=sa.text("status = 'ACCEPTED'")
        )
        batch_op.drop_index(
            "uq_attempts_subtask_live",
            sqlite_where=sa.text("status IN ('RUNNING', 'VERIFYING')"),
            postgresql_where=sa.text("status IN ('RUNNING', 'VERIFYING')"),
        )
        batch_op.drop_index(
            "uq_attempts_agent_running", sqlite_where=sa.text("status = 'RUNNING'"), postgresql_where=sa.text("status = 'RUNNING'")
        )
        batch_op.drop_index(batch_op.f("ix_attempts_subtask_id"))
        batch_op.drop_index("ix_attempts_status")
        batch_op.drop_index(batch_op.f("ix_attempts_seller_id"))
        batch_op.drop_index("ix_attempts_job")

    op.drop_table("attempts")
    with op.batch_alter_table("subtasks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_subtasks_round_id"))
        batch_op.drop_index("ix_subtasks_job_status")

    op.drop_table("subtasks")
    with op.batch_alter_table("rounds", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rounds_job_id"))

    op.drop_table("rounds")
    with op.batch_alter_table("job_events", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_job_events_job_id"))

    op.drop_table("job_events")
    with op.batch_alter_table("chunks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_chunks_dataset_id"))

    op.drop_table("chunks")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index("ix_jobs_status")
        batch_op.drop_index(batch_op.f("ix_jobs_owner_id"))
        batch_op.drop_index(batch_op.f("ix_jobs_dataset_id"))

    op.drop_table("jobs")
    with op.batch_alter_table("agents", schema=None) as batch_op:
        batch_op.drop_index("ix_agents_seen")
        batch_op.drop_index(batch_op.f("ix_agents_owner_id"))
        batch_op.drop_index(batch_op.f("ix_agents_key_id"))

    op.drop_table("agents")
    op.drop_table("invites")
    with op.batch_alter_table("entries", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_entries_account_id_id"))

    op.drop_table("entries")
    with op.batch_alter_table("enrolment_keys", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_enrolment_keys_owner_id"))

    op.drop_table("enrolment_keys")
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_datasets_owner_id"))

    op.drop_table("datasets")
    op.drop_table("users")
    op.drop_table("transfers")
    with op.batch_alter_table("login_failures", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_login_failures_expires_at"))

    op.drop_table("login_failures")
    with op.batch_alter_table("ledger_accounts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ledger_accounts_owner_code"))

    op.drop_table("ledger_accounts")
    op.drop_table("background_ticks")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION IF EXISTS gridx_never_changed()")
