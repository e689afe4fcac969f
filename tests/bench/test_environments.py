from ekphory_lab.bench.peers import installs_of


def test_a_peer_is_installed_from_pips_own_index():
    assert installs_of("txtai", torch_index=None) == [["txtai"]]


def test_torch_comes_first_and_from_the_index_that_was_named():
    assert installs_of("txtai", torch_index="https://wheels.example/cpu") == [
        ["torch", "--index-url", "https://wheels.example/cpu"],
        ["txtai"],
    ]


def test_a_peer_without_torch_does_not_use_its_index():
    assert installs_of("mem0", torch_index="https://wheels.example/cpu") == [["mem0ai"]]
