from stretto.vocabulary.amounts import DEFAULT_LIMITS


def test_the_limits_are_those_that_are_written_down():
    """The limits that docs/recipes.md lists."""
    assert DEFAULT_LIMITS.text_bytes == 1024 * 1024
    assert DEFAULT_LIMITS.depth == 64
    assert DEFAULT_LIMITS.nodes == 50_000
    assert DEFAULT_LIMITS.steps == 500
    assert DEFAULT_LIMITS.map_items == 1_000
    assert DEFAULT_LIMITS.map_items_ceiling == 10_000
    assert DEFAULT_LIMITS.branches == 16
