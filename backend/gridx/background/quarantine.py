"""Machines whose updates are refused again and again get no work for a while."""

from gridx.background.work import Work
from gridx.jobs import standing


def quarantine_suspects(work: Work) -> int:
    """Look at the machines with refusals of the last day. Returns how many went into quarantine."""
    now = work.clock.now()
    with work.database.read() as session:
        agent_ids = standing.suspects(session, now)
    # A transaction of its own for each, and no job's lock: who ends a machine's leases holds the machine and wants its jobs.
    count = 0
    for agent_id in agent_ids:
        with work.database.write() as session:
            count += standing.judge(session, agent_id, now)
    return count
