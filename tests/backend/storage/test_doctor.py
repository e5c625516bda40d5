"""`gridx doctor` on stores and databases that are well, and on others."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import create_engine, text

from gridx.core.settings import Settings
from gridx.storage.doctor import check_storage
from tests.support.fake_supabase import KEY, FakeSupabase


@pytest.fixture
def online(settings: Settings, fake: FakeSupabase) -> Settings:
    settings.supabase_url, settings.supabase_key = fake.url, SecretStr(KEY)
    return settings


def wrong(settings: Settings) -> dict[str, str]:
    return {name: problem for name, problem in check_storage(settings) if problem is not None}


class TestCheckStorage:
    def test_local_files_are_well_and_nothing_is_left(self, settings: Settings) -> None:
        assert wrong(settings) == {}
        assert [path for path in (settings.home / "objects").rglob("*") if path.is_file()] == []

    def test_supabase_is_well_and_nothing_is_left(self, online: Settings, fake: FakeSupabase) -> None:
        assert wrong(online) == {}
        assert fake.buckets["gridx-files"].objects == {}
        assert any(line.startswith("PATCH") for line in fake.requests)

    def test_makes_the_bucket(self, online: Settings, fake: FakeSupabase) -> None:
        fake.buckets.clear()
        assert ("bucket gridx-files was missing and is made", None) in list(check_storage(online))
        assert not fake.buckets["gridx-files"].public
        assert wrong(online) == {}

    def test_a_public_bucket_gets_no_file(self, online: Settings, fake: FakeSupabase) -> None:
        fake.buckets["gridx-files"].public = True
        assert "public" in wrong(online)["bucket gridx-files is there and private"]
        assert not any("doctor/" in line for line in fake.requests)

    def test_a_wrong_key(self, online: Settings) -> None:
        online.supabase_key = SecretStr("wrong")
        (problem,) = wrong(online).values()
        assert "SUPABASE_SERVICE_ROLE_KEY" in problem

    def test_half_a_setting(self, online: Settings) -> None:
        online.supabase_key = SecretStr("")
        assert "SUPABASE_SERVICE_ROLE_KEY" in wrong(online)["storage is configured"]

    def test_one_failing_step_is_named_and_cleaned_up_after(self, online: Settings, fake: FakeSupabase) -> None:
        fake.fail("PUT /object/upload/sign", status=500)
        found = wrong(online)
        assert list(found) == ["storage takes uploads by link, and gives downloads"]
        assert fake.buckets["gridx-files"].objects == {}

    def test_takes_away_what_a_killed_run_left_and_spares_a_running_one(self, online: Settings, fake: FakeSupabase) -> None:
        for name, age in (("old", timedelta(hours=2)), ("fresh", timedelta(minutes=1))):
            fake.put("gridx-files", f"doctor/{name}/small", b"x", "", "")
            fake.buckets["gridx-files"].objects[f"doctor/{name}/small"].updated = datetime.now(UTC) - age
        assert wrong(online) == {}
        assert list(fake.buckets["gridx-files"].objects) == ["doctor/fresh/small"]


Doctor = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    def run(database_url: str, **more: str) -> "subprocess.CompletedProcess[str]":
        env = os.environ | {"GRIDX_HOME": str(tmp_path / "home"), "DATABASE_URL": database_url} | more
        command = [str(Path(sys.executable).with_name("gridx")), "doctor"]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    return run


class TestCommand:
    def test_with_supabase_all_is_well(self, doctor: Doctor, database_url: str, fake: FakeSupabase) -> None:
        done = doctor(database_url, SUPABASE_URL=fake.url, SUPABASE_SERVICE_ROLE_KEY=KEY)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "ok   tables and columns are all there" in done.stdout
        assert "ok   storage keeps a large file, sent in parts" in done.stdout
        assert KEY not in done.stdout + done.stderr
        assert "token=" not in done.stdout + done.stderr

    def test_names_what_the_database_lacks(self, doctor: Doctor, database_url: str) -> None:
        engine = create_engine(database_url)
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE jobs RENAME COLUMN title TO headline"))
            connection.execute(text("DROP TABLE job_events"))
        engine.dispose()
        done = doctor(database_url)
        assert done.returncode == 1
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
        assert "jobs.title" in line
        assert "job_events" in line

    @pytest.mark.postgresql
    def test_tables_open_to_supabases_api_are_named(self, doctor: Doctor, make_database: Callable[..., str]) -> None:
        url = make_database("postgresql")
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("DO $$ BEGIN CREATE ROLE anon; EXCEPTION WHEN duplicate_object THEN NULL; END $$"))
        assert doctor(url).returncode == 0
        with engine.begin() as connection:
            connection.execute(text("GRANT SELECT ON users TO anon"))
        done = doctor(url)
        assert done.returncode == 1
        assert "FAIL tables are closed to Supabase's API" in done.stdout
        with engine.begin() as connection:
            connection.execute(text("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM anon"))
        assert doctor(url).returncode == 0
        engine.dispose()
