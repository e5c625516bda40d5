"""A model's card: what it was made from, by whom and how well, for whoever finds the file later. As JSON, and as Markdown."""

from importlib.metadata import version
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gridx.datasets.models import Dataset
from gridx.jobs.models import Attempt, Job, Round, Subtask
from gridx.jobs.schemas import CardRound, CardShare, ModelCard
from gridx.jobs.views import results


def model_card(session: Session, job: Job) -> ModelCard:
    """Of a job in any state; `model_sha256` is None until there is a model."""
    dataset = session.get_one(Dataset, job.dataset_id)
    rounds = session.scalars(
        select(Round).where(Round.job_id == job.id, Round.number > 0, Round.closed_at.is_not(None)).order_by(Round.number)
    ).all()
    shares = session.execute(
        select(Attempt.agent_id, func.count(), func.sum(Subtask.rows), func.sum(Attempt.train_s))
        .join(Subtask, Subtask.id == Attempt.subtask_id)
        .where(Attempt.job_id == job.id, Attempt.status == "ACCEPTED", Subtask.kind != "evaluate")
        .group_by(Attempt.agent_id)
        .order_by(Attempt.agent_id)
    ).all()
    total = sum(int(rows) for _, _, rows, _ in shares) or 1
    last = results(session, job)
    return ModelCard(
        job_id=job.id,
        title=job.title,
        status=job.status,
        created_at=job.created_at,
        finished_at=job.finished_at,
        model_sha256=job.final_model_sha256,
        model_bytes=job.final_model_bytes,
        script_sha256=job.script_sha256,
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        rows=dataset.rows,
        columns=dataset.columns,
        chunks=job.chunks,
        partitioner=job.partitioner,
        partitioner_options=job.partitioner_options,
        strategy=job.strategy,
        strategy_options=job.strategy_options,
        hyperparameters=job.hyperparameters,
        arguments=job.arguments,
        seed=job.seed,
        mean_loss=last.mean_loss,
        mean_accuracy=last.mean_accuracy,
        rounds=[
            CardRound(
                round=row.number,
                updates=row.updates_used or 0,
                rows=row.rows_used or 0,
                convergence_delta=row.convergence_delta,
                step_norm=row.step_norm,
                sha256=row.global_model_sha256,
                held_out=(row.evaluation or {}).get("metrics", {}),
            )
            for row in rounds
        ],
        agents=[
            CardShare(agent_id=agent, updates=count, share=int(rows) / total, train_s=seconds or 0.0)
            for agent, count, rows, seconds in shares
        ],
        grid_x=version("gridx-backend"),
    )


def as_markdown(card: ModelCard) -> str:
    """The same for people. What users wrote is kept on one line, and in code spans: it may hold anything."""
    facts: list[tuple[str, Any]] = [
        ("Model", card.model_sha256 and f"SHA-256 `{card.model_sha256}`, {card.model_bytes} bytes"),
        ("Job", f"{card.job_id}, {card.status}, {_time(card.created_at)} to {_time(card.finished_at)}"),
        ("Script", f"SHA-256 `{card.script_sha256}`, arguments {_code(card.arguments)}, hyperparameters {_code(card.hyperparameters)}"),
        ("Data", f"{_code(card.dataset)}, SHA-256 `{card.dataset_sha256}`, {card.rows} rows, {len(card.columns)} columns"),
        ("Dealt", f"{card.chunks} chunks, {card.partitioner} {_code(card.partitioner_options)}, seed {card.seed}"),
        ("Merged", f"{card.strategy} {_code(card.strategy_options)}, {len(card.rounds)} rounds"),
        (
            "On the chunks",
            f"mean loss {_figure(card.mean_loss)}, mean accuracy {_figure(card.mean_accuracy)}, as the scripts reported them",
        ),
        ("Made by", f"Grid-X {card.grid_x}"),
    ]
    lines = [f"# Model card: {_code(card.title)}", "", *(f"- **{name}**: {value}" for name, value in facts if value), ""]
    lines += ["| round | updates | rows | convergence delta | step norm | on held-out rows |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.round} | {row.updates} | {row.rows} | {_figure(row.convergence_delta)} | {_figure(row.step_norm)} "
        f"| {_code(', '.join(f'{name} {value:.6g}' for name, value in row.held_out.items()) or '-')} |"
        for row in card.rounds
    ]
    lines += ["", "| agent | updates | share of the rows | seconds of training |", "|---|---|---|---|"]
    lines += [f"| {_code(row.agent_id)} | {row.updates} | {row.share:.1%} | {row.train_s:.1f} |" for row in card.agents]
    return "\n".join(lines) + "\n"


def _code(value: Any) -> str:
    """A code span on one line that nothing inside can end, in a table either."""
    text = " ".join(str(value).replace("`", "'").replace("|", "/").split())
    return f"`{text[:500]}`" if text else "` `"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _time(value: Any) -> str:
    return "now" if value is None else f"{value:%Y-%m-%d %H:%M} UTC"
