"""Of many processes that want to capture what hooks noted, one does and one waits."""

import threading
import time

from filelock import FileLock

from ekphory.hooks.state import HookState


def test_a_process_captures_while_no_other_does(tmp_path):
    for _ in range(2):
        with HookState(tmp_path).turn_to_capture() as is_ours:
            assert is_ours


def test_a_second_one_waits_for_the_first(tmp_path):
    done = []

    def capture():
        with HookState(tmp_path).turn_to_capture() as is_ours:
            done.append(("second", is_ours))

    with HookState(tmp_path).turn_to_capture():
        second = threading.Thread(target=capture)
        second.start()
        time.sleep(0.2)
        done.append(("first", True))
    second.join()
    assert done == [("first", True), ("second", True)]


def test_while_another_one_waits_a_third_is_not_needed(tmp_path):
    state = HookState(tmp_path)
    with FileLock(tmp_path / "hooks.waits.lock"), state.turn_to_capture() as is_ours:
        assert not is_ours
