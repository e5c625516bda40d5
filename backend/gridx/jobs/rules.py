"""What an order must fulfil beyond the form of its fields, and what it costs. Pure: the web process validates with it."""

import math

from pydantic import ValidationError

from gridx.aggregation.strategies.options import OPTIONS as STRATEGY_OPTIONS
from gridx.aggregation.strategies.options import parse_options
from gridx.core.errors import Invalid
from gridx.datasets import partitioner_options
from gridx.jobs.options import JobOptions


def price_of(options: JobOptions) -> tuple[int, int]:
    """Credits a subtask pays (hours of time limit, rounded up) and the price of the whole job."""
    units = math.ceil(options.time_limit_s / 3600)
    evaluations = options.evaluations if options.held_out else 0
    return units, units * options.rounds * (chunks_per_round(options) + evaluations)


def chunks_per_round(options: JobOptions) -> int:
    """McMahan et al. 2017: max(C * K, 1) of K chunks, rounded to the nearest."""
    return max(1, round(options.fraction * options.chunks))


def check_options(options: JobOptions) -> None:
    """Rules between fields. Raises Invalid naming every field that is wrong."""
    problems: list[str] = []
    problems += _partitioner_problems(options)
    problems += _strategy_problems(options)
    problems += _mode_problems(options)
    taking_part = chunks_per_round(options)
    if options.min_updates is not None and options.min_updates > taking_part:
        problems.append(f"min_updates: {options.min_updates} is more than the {taking_part} chunks of a round")
    if options.early_stopping is not None and not options.held_out:
        problems.append("early_stopping: it looks at held-out rows; set held_out, for example to 0.1")
    if options.initial_round is not None and options.initial_job_id is None:
        problems.append("initial_round: name the job as well, by initial_job_id")
    if any("\x00" in argument for argument in options.arguments):
        problems.append("arguments: NUL is not allowed")
    if problems:
        raise Invalid("; ".join(problems))


def _mode_problems(options: JobOptions) -> list[str]:
    """Synchronous training has one round, and takes what all ranks make together."""
    if options.mode == "federated":
        return []
    usual = JobOptions(title="-")
    meaningless = ("rounds", "strategy", "fraction", "min_updates", "round_deadline_s", "held_out", "early_stopping", "model_type")
    return [
        f"{name}: has no meaning in mode ddp, where all ranks train one model in step; leave it out"
        for name in meaningless
        if getattr(options, name) != getattr(usual, name)
    ]


def _partitioner_problems(options: JobOptions) -> list[str]:
    if options.partitioner not in partitioner_options.OPTIONS:
        return [f"partitioner: {options.partitioner!r} is not one of {', '.join(partitioner_options.OPTIONS)}"]
    try:
        parsed = partitioner_options.parse_options(options.partitioner, options.partitioner_options)
    except ValidationError as error:
        return _named("partitioner_options", error)
    problem = parsed.problem(options.chunks)
    return [f"partitioner_options.{problem}"] if problem else []


def _named(field: str, error: ValidationError) -> list[str]:
    return [f"{field}.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]


def _strategy_problems(options: JobOptions) -> list[str]:
    if options.strategy not in STRATEGY_OPTIONS:
        return [f"strategy: {options.strategy!r} is not one of {', '.join(STRATEGY_OPTIONS)}"]
    try:
        parsed = parse_options(options.strategy, options.strategy_options)
    except ValidationError as error:
        return _named("strategy_options", error)
    problems: list[str] = []
    taking_part = chunks_per_round(options)
    if taking_part < (least := parsed.least_updates()):
        where = f"{taking_part} in a round" if taking_part < options.chunks else str(taking_part)
        problems.append(f"strategy_options.f: with it {options.strategy} needs {least} chunks or more; this job has {where}")
    if options.strategy == "diloco" and options.rounds == 1:
        problems.append("rounds: diloco keeps a momentum from round to round and needs 2 rounds or more")
    return problems
