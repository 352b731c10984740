from stretto.vocabulary.amounts import Usage


def test_usages_add_up():
    one, other = Usage(10, 5, 0.25, 1), Usage(1, 2, 0.5, 3)
    assert one + other == Usage(11, 7, 0.75, 4)
    assert one + Usage() == one


def test_tokens_are_those_in_and_those_out():
    assert Usage(input_tokens=10, output_tokens=5).tokens == 15
