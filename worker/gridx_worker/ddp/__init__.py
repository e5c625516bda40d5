"""Ranks of synchronous training. Needs the extra `ddp` (grpcio); without it the agent does everything else."""
