"""Answers to rules, labelled by hand after an attack from outside: other languages, CRLF, Markdown, HTML,
units, numbers in words, placeholders, several things in one element, misspelt and misplaced names.

By rule: the answers that meet it, those that break it, and those on which readers could disagree.
"""

ATTACKED = {
    'at most 5 words': (
        ['one\r\ntwo\r\nthree\r\nfour\r\nfive'],
        [],
        [],
    ),
    'at least 3 words': (
        ['**one** _two_ ~~three~~', 'a - b - c'],
        [],
        ['1 2 3'],
    ),
    'at most 3 words': (
        ['| a | b | c |', 'one two three *', "don't do that"],
        [],
        ['สวัสดีชาวโลกทุกคน'],
    ),
    'at least 5 words': (
        [],
        [],
        ["l'homme n'est qu'un roseau"],
    ),
    'at most 4 words': (
        ["ich bin's nicht gewesen"],
        [],
        [],
    ),
    'at least 2 characters': (
        [],
        ['é'],
        [],
    ),
    'at most 1 characters': (
        ['é'],
        [],
        [],
    ),
    'at most 5 characters': (
        [],
        [],
        ['a\r\nb\r\nc'],
    ),
    'at most 3 characters': (
        [],
        [],
        ['👨\u200d👩\u200d👧'],
    ),
    'exactly 3 words': (
        ['one two three.'],
        ['one two three four'],
        [],
    ),
    'exactly 2 words': (
        [],
        ['New York (NY)'],
        [],
    ),
    'at most 10 words': (
        [],
        [],
        ['10 000 000 people in 2 cities were asked about it'],
    ),
    'must be at least 2 words': (
        ['(hello world)'],
        [],
        [],
    ),
    'at least 3 items': (
        [['a', 'b', 'and more']],
        [],
        [{'items': [{'a': 1}, {'b': 2}, {'c': 3}]}],
    ),
    'exactly 3 items': (
        [['1. a', '2. b', '3. c']],
        [],
        [],
    ),
    'exactly 2 items': (
        [['a, b', 'c'], {'items': ['a', 'b'], 'note': 'x'}],
        [{'item': ['a', 'b', 'c']}],
        [['intro: these are they', 'a', 'b']],
    ),
    'at most 2 items': (
        [],
        [{'items': ['a', 'b', 'c'], 'total': 2}],
        [],
    ),
    'at least 2 items': (
        [],
        [],
        ['a\nb'],
    ),
    'Must list at least three risks': (
        [{'Risks': ['a', 'b', 'c']}],
        [{'risks': [{'risk': 'a'}, {'risk': 'b'}]}, ['a', 'b'], {'risks': []}],
        [{'risks': ['a', 'b'], 'more_risks': ['c']}, {'risks': ['a', 'b'], 'top_risk': 'c'}, {'risks': {'high': ['a'], 'low': ['b', 'c']}}, {'risk_list': ['a', 'b', 'c']}, {'risk_list': ['a']}, [{'risk': 'a', 'risks': ['x', 'y', 'z']}], {'risks': [['a', 'b'], ['c']]}, {'risks': ['a and b and c']}, {'risks': ['a, b, c']}, {'risks': ['a / b / c']}, {'risks': ['first a; second b', 'c']}, {'risks': ['a • b • c']}],
    ),
    'must have at most 2 findings': (
        [],
        [],
        [{'findings': ['None found']}],
    ),
    'must have at least 1 finding': (
        [],
        [],
        [{'findings': ['None']}, {'findings': ['N/A']}, {'findings': [{}]}, {'findings': [{'title': ''}]}],
    ),
    'must have at least 2 findings': (
        [],
        [],
        [{'findings': ['a', 'a']}],
    ),
    'must have exactly 3 recommendations': (
        [],
        [],
        [{'recommendations': ['a', 'b', 'c', '']}],
    ),
    'must include a score field': (
        [],
        [{'ѕcore': 1}, {'Punktzahl': 1}],
        [{'SCORE': 1}, {'score ': 1}, {'\u200bscore': 1}, {'scoring': 1}, 'score = 7', '| score |\n|---|\n| 7 |', 'The score is 7.', '<score>7</score>', 'score\n7', {'result': 'score is 7'}, {'fields': [{'name': 'score', 'value': 7}]}, {'metrics': {'value': 7}, 'type': 'score'}, 'Answer: {"score": 1} as asked.'],
    ),
    'must include a `score` field': (
        [],
        [],
        ['The score is 7.', {'fields': [{'name': 'score', 'value': 7}]}],
    ),
    'must include overall_score': (
        [],
        [],
        [{'overall': {'score': 7}}, {'overall-score': 7}, {'overallScore': 7}, 'overall score: 7', 'Overall score 7/10'],
    ),
    'Must include passed boolean': (
        [],
        [{'passed': 'ja'}, {'passed': 'passed'}],
        [{'passed': 'True'}, {'pass': True}, {'passed?': True}, '{"passed": true}\n\nAll good.', '{"passed": tru'],
    ),
    'passed must be a boolean': (
        [],
        [{'passed': 'wahr'}],
        [],
    ),
    'score must be at least 7': (
        [{'score': 7.0}, {'score': 1e+308}],
        [],
        [{'score': '7.0'}, {'score': 'siete'}, {'score': '7/10'}],
    ),
    'score must be between 0 and 1': (
        [],
        [{'score': 85}],
        [],
    ),
    'score must be between 0 and 100': (
        [{'score': 0.85}],
        [],
        [],
    ),
    'score must be between 1 and 10': (
        [],
        [],
        [{'score': [5]}],
    ),
    'Each score must be between 0 and 5': (
        [],
        [],
        [{'scores': [{'score': 9}]}, {'scores': [{'value': 9}]}, [{'name': 'a', 'score': 9}]],
    ),
    'each finding must have a title field': (
        [{'findings': []}],
        [{'findings': ['a']}, {'findings': [{'name': 'a'}], 'titles': ['a']}, {'findings': [{'headline': 'a'}]}, {'findings': [{'heading': 'a'}]}],
        [{'findings': ['Title: a']}, {'findings': None}],
    ),
    'each tier must have a price field': (
        [],
        [],
        [{'tiers': [{'price_usd': 1}]}, {'tiers': [{'prices': {'m': 1}}]}],
    ),
    'All findings must have a title field': (
        [{'findings': [{'title': None}]}],
        [],
        [],
    ),
    'Each item must not be empty': (
        [],
        [],
        [['a', '-'], [0, False]],
    ),
    'must not be empty': (
        ['No findings.'],
        ['\u2060', 'ㅤ', '{}', '[]'],
        ['<p></p>', 'null', '""', '...'],
    ),
    'findings must not be empty': (
        [],
        [],
        [{'findings': [{'a': None}]}, {'findings': False}, {'findings': '-'}, {'findings': 'keine'}],
    ),
    'must include a non-empty summary field': (
        [],
        [],
        [{'summary': '.'}],
    ),
    'summary must be a non-empty string': (
        [],
        [{'summary': ['x']}, {'summary': 5}],
        [],
    ),
    'title must be at most 5 characters': (
        [],
        [],
        [{'title': 'hello '}, {'title': '<b>hello</b>'}, {'title': '[hello](http://x)'}],
    ),
    'The report must be at most 3 words': (
        [{'report': 'a b c', 'summary': 'd e f'}],
        [],
        [],
    ),
    'no more than 4 words': (
        ['Answer: only four words'],
        [],
        [],
    ),
    'no more than 3 words': (
        ['```\none two three\n```'],
        [],
        [],
    ),
    'at least 200 words': (
        ['# T\n\n' + 'word ' * 199],
        [],
        [],
    ),
    'at most 2 words': (
        [],
        [],
        ["rock'n'roll band"],
    ),
    'must have at least 1,000 characters': (
        [],
        [],
        ['x' * 999 + '\n'],
    ),
    'must have at least 10 characters': (
        [],
        [],
        ['xxxxxxxxx  '],
    ),
    'must include a title and a url field': (
        [],
        [{'title': 1, 'link': 1}],
        [{'title': 1, 'URL': 1}],
    ),
    'must have a, b and c fields': (
        [],
        [],
        [{'A': 1, 'B': 2, 'C': 3}],
    ),
    'Must identify exactly 3 pain points': (
        [{'pain_points': ['a', 'b', 'c'], 'count': 3}],
        [{'pain_points': ['a', 'b', 'c', 'd'], 'dropped': ['d']}],
        [{'painpoints': ['a', 'b', 'c']}, {'painpoints': ['a']}, [{'pain': 'a'}, {'pain': 'b'}, {'pain': 'c'}, {'summary': 'x'}]],
    ),
    'Return exactly 3 pricing tiers': (
        [],
        [['a', 'b']],
        [{'tiers': ['a', 'b', 'c']}, {'tiers': ['a']}, [{'currency': 'USD'}, {'tier': 'a'}, {'tier': 'b'}, {'tier': 'c'}]],
    ),
    'must include an integer score': (
        [{'score': 3.0}],
        [],
        [{'score': '3'}],
    ),
    'must include score (number)': (
        [],
        [],
        [{'score': '3,5'}, {'score': 'three'}, {'score': '~3'}, {'score': '3 points'}, {'score': '50%'}],
    ),
    'must include a `meta` object': (
        [],
        [],
        [{'meta': '{"a":1}'}],
    ),
    'must include a sources array': (
        [],
        [{'sources': 'a\nb'}, {'sources': 'a, b'}, {'sources': None}],
        [],
    ),
    'must include key_challenges array': (
        [],
        [{'key_challenges': 'none'}],
        [],
    ),
    'must contain between 2 and 3 findings': (
        [],
        [],
        [{'findings': {'1': 'a', '2': 'b'}}],
    ),
    'must provide a minimum of 2 recommendations': (
        [{'recommendations': [{'title': 'a'}, {'title': 'b'}]}],
        [{'recommendations': [{'title': 'a', 'steps': ['x', 'y']}]}],
        [],
    ),
    'Must have exactly 2 recommendations': (
        [{'recommendations': ['a', 'b']}],
        [{'recommendations': ['a', 'b', 'c']}],
        [
            {'recommendations': ['a', 'b', '(none)']},
            {'recommendations': ['a', 'b', '—']},
            {'recommendations': ['a', 'b', '**n/a**']},
            {'recommendations': ['a', '[no others]', 'b']},
        ],
    ),
}  # fmt: skip
