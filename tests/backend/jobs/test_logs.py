"""The log tells what happened to which job and agent, and never what a script says or what lies in the data."""

from structlog.testing import capture_logs

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import World, weights


def test_registered_submitted_assigned_completed_and_failed_are_logged_with_ids(world: World, buyer: Person) -> None:
    with capture_logs() as lines:
        agent = world.agent("a")
        done = world.job(buyer, chunks=1)
        task = agent.request()["task_id"]
        agent.finish(weights())
        world.drain()
        failed = world.job(buyer, chunks=1)
        for _ in range(2):
            agent.request()
            agent.fail("script", "ValueError: secret-value-from-the-data")
    events = {(line["event"], line.get("job"), line.get("subtask"), line.get("agent")) for line in lines}
    assert ("registered", None, None, "a") in events
    assert ("submitted", done, None, None) in events
    assert ("assigned", done, task, "a") in events
    assert ("subtask completed", done, task, None) in events
    assert ("job completed", done, None, None) in events
    assert ("job failed", failed, None, None) in events
    assert "secret-value" not in str(lines)
