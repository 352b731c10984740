from stretto.problems import Place, Problem


def test_problems_sort_by_file_line_column_and_code():
    problems = [
        Problem("B", "x", "a", Place(1, 2)),
        Problem("A", "x", "a", Place(1, 2)),
        Problem("Z", "x", "a", Place(1, 1)),
        Problem("Z", "x", "b"),
        Problem("Z", "x", "a"),
        Problem("A", "x", "a", Place(10, 1)),
        Problem("A", "x", "a", Place(9, 1)),
    ]
    ordered = sorted(problems, key=lambda problem: problem.sort_key)
    assert [problems.index(problem) for problem in ordered] == [4, 2, 1, 0, 6, 5, 3]


def test_equal_problems_are_equal_values():
    assert Problem("A", "x", place=Place(1, 1)) == Problem("A", "x", place=Place(1, 1))
