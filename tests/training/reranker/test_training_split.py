from ekphory_lab.training.reranker.examples import part_of, rows_of

ROWS = [{"query": str(number), "sentence": f"sentence {number // 2}"} for number in range(400)]


def test_one_row_of_sixteen_is_held_back():
    assert 10 <= len(rows_of("held_back", ROWS)) <= 45


def test_every_row_is_on_one_side():
    assert len(rows_of("trained", ROWS)) + len(rows_of("held_back", ROWS)) == len(ROWS)


def test_questions_with_the_same_answer_stay_together():
    assert all(part_of(ROWS[n]) == part_of(ROWS[n + 1]) for n in range(0, 400, 2))


def test_the_split_is_the_same_in_every_run():
    held = [row["sentence"] for row in rows_of("held_back", ROWS)]

    assert held[:3] == ["sentence 1", "sentence 1", "sentence 12"]
