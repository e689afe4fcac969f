"""How the learning rate changes over a run."""

from ekphory_lab.training.run_files import rise_and_fall


def test_the_rate_rises_and_then_falls_to_a_tenth():
    share = rise_and_fall(100, warm_up=0.1)

    assert [round(share(step), 2) for step in (0, 9, 10, 55, 100)] == [0.1, 1.0, 1.0, 0.55, 0.1]
