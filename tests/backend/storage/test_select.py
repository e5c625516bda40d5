"""Which store the settings name, and what a half-made setting says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from gridx.core.errors import ConfigurationError
from gridx.core.settings import Settings
from gridx.storage.local import LocalStore
from gridx.storage.select import make_store
from gridx.storage.supabase import SupabaseStore
from tests.support.fake_supabase import KEY


def test_files_lie_in_the_home_folder_by_default(settings: Settings) -> None:
    store = make_store(settings)
    assert isinstance(store, LocalStore)
    assert store.root == (settings.home / "objects").resolve()


@pytest.mark.parametrize("url", ["https://abc.supabase.co", "https://abc.supabase.co/", "http://127.0.0.1:54321"])
def test_supabase_when_its_address_is_set(settings: Settings, url: str) -> None:
    settings.supabase_url, settings.supabase_key, settings.supabase_bucket = url, SecretStr(KEY), "other"
    store = make_store(settings)
    assert isinstance(store, SupabaseStore)
    assert store.bucket == "other"
    store.close()


@pytest.mark.parametrize(
    ("url", "key", "bucket", "said"),
    [
        ("https://abc.supabase.co", "", "gridx-files", "SUPABASE_SERVICE_ROLE_KEY"),
        ("https://abc.supabase.co", "key", "", "SUPABASE_BUCKET_NAME"),
        ("abc.supabase.co", "key", "gridx-files", "SUPABASE_URL"),
    ],
)
def test_half_a_setting_is_named(settings: Settings, url: str, key: str, bucket: str, said: str) -> None:
    settings.supabase_url, settings.supabase_key, settings.supabase_bucket = url, SecretStr(key), bucket
    with pytest.raises(ConfigurationError, match=said):
        make_store(settings)


def test_local_files_do_not_load_the_sdk(tmp_path: Path) -> None:
    code = (
        "import sys; from gridx.app import create_app; create_app(); assert 'supabase' not in sys.modules and 'storage3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"GRIDX_HOME": str(tmp_path)}, cwd=tmp_path, check=True, timeout=60)
