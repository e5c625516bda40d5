"""What a person at the terminal sees."""

import io

from rich.console import Console

from gridx_protocol.messages import ProfileReply, TaskReply
from gridx_worker.display import Display, describe, earnings
from gridx_worker.heartbeat import Current
from gridx_worker.sandbox.base import StopSwitch

TASK = TaskReply(task_id=4, job_id=7, title="iris", round=2, rounds=5, chunk=3)


def make(*, terminal: bool) -> tuple[Display, io.StringIO]:
    text = io.StringIO()
    return Display(Console(file=text, force_terminal=terminal, width=160, color_system=None)), text


class TestDisplay:
    def test_one_line_for_the_subtask_in_hand_then_why_there_is_none(self) -> None:
        display, text = make(terminal=True)
        display.open()
        current = Current(task_id=4, lease_token="secret-lease", stop=StopSwitch(), phase="TRAINING", epoch=3, progress=0.6)
        with display.work(TASK, current):
            display.refresh()
            assert "job 7 “iris”, round 2 of 5, chunk 3: training, epoch 3" in text.getvalue()
            current.epoch = 4
            display.refresh()
            assert "epoch 4" in text.getvalue()
        display.idle(ProfileReply(earned=12, accepted=9, idle_because="no job waits for a machine"))
        display.refresh()
        display.close()
        assert "no job waits for a machine · 12 credits earned with 9 subtasks" in text.getvalue()
        assert "secret-lease" not in text.getvalue()

    def test_without_a_terminal_nothing_is_drawn(self) -> None:
        display, text = make(terminal=False)
        display.open()
        with display.work(TASK, Current(task_id=4, lease_token="l", stop=StopSwitch())):
            pass
        display.idle(ProfileReply())
        display.close()
        assert text.getvalue() == ""

    def test_words(self) -> None:
        assert describe(TASK.model_copy(update={"kind": "evaluate", "title": None})) == "job 7, round 2 of 5, evaluation"
        assert earnings(ProfileReply(earned=2, accepted=1)) == "2 credits earned with 1 subtasks"
