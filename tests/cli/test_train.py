def test_a_missing_model_is_named(recollect, tmp_path):
    sentence = recollect.failure(
        "train", "export", "--source", str(tmp_path / "nowhere"), "--target", str(tmp_path / "out")
    )
    assert "nowhere" in sentence
    assert not (tmp_path / "out").exists()
