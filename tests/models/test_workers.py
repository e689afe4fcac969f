import os
import threading

import pytest

from ekphory.threads import Workers


def test_results_keep_the_order_of_the_items():
    assert Workers(3).map(lambda number: number * number, [3, 1, 2]) == [9, 1, 4]


def test_a_single_item_stays_in_the_callers_thread():
    assert Workers(3).map(lambda _: threading.get_ident(), ["one"]) == [threading.get_ident()]


def test_an_error_of_one_item_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        Workers(2).map(lambda number: 1 // number, [1, 0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_threads_of_its_own():
    workers = Workers(2)
    workers.map(str, [1, 2])

    child = os.fork()
    if child == 0:
        os._exit(0 if workers.map(str, [1, 2]) == ["1", "2"] else 1)

    assert os.waitpid(child, 0)[1] == 0
