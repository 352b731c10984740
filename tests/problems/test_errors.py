import pytest

from stretto.problems import Place, Problem, errors as module
from stretto.problems.errors import InvalidRecipe, StrettoError

ALL = [
    each
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, StrettoError) and each is not StrettoError
]


@pytest.mark.parametrize("error", ALL)
def test_every_error_stands_in_the_tree_with_its_kind_and_exit_code(error):
    drawn = next(line for line in (module.__doc__ or "").splitlines() if error.__name__ in line)
    assert drawn.split()[-2:] == [error.kind, str(error.exit_code)]


def test_no_two_errors_are_of_one_kind():
    assert len({error.kind for error in ALL}) == len(ALL)


def test_problems_of_an_error_stand_in_the_order_of_the_file():
    later, earlier = Problem("A", "x", "f", Place(2, 1)), Problem("B", "x", "f", Place(1, 9))
    first = Problem("C", "x", "f")
    assert InvalidRecipe("no", [later, earlier, first]).problems == (first, earlier, later)


def test_an_error_says_its_message():
    assert str(InvalidRecipe("news.yaml has 2 problems")) == "news.yaml has 2 problems"
