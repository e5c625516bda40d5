"""Imports every domain's tables, so that `Base.metadata` is whole."""

from gridx.accounts import models as accounts_models
from gridx.agents import models as agents_models
from gridx.core.db import Base
from gridx.datasets import models as datasets_models
from gridx.jobs import gang_models, output_models
from gridx.jobs import models as jobs_models
from gridx.ledger import models as ledger_models

__all__ = ["Base", "accounts_models", "agents_models", "datasets_models", "gang_models", "jobs_models", "ledger_models", "output_models"]
