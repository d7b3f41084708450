# Copyright (C) The nginx-dsa authors

"""Expectations of a call's arguments and of an answer, which are JSON values;
README.md lists them."""

import json
import re
from fractions import Fraction

from eval.statements import contains, names, normal, numbers


RIGHT = 'right'
WRONG = 'wrong'
FALSE = 'false'     # wrong, and with a false statement

ITEM = re.compile(r'^[ \t]*(?:[-*\u2022]|\d{1,2}[.)])[ \t]+\S', re.MULTILINE)
FENCED = re.compile(r'\s*```(?:json)?\n(.*)\n```\s*', re.DOTALL)

# 0 and 1 are never false, because "one" is often no number

ALWAYS = {Fraction(0), Fraction(1)}


def accepts(wanted, value):
    """Returns whether a value is one that an expectation accepts."""

    if isinstance(wanted, list):
        return any(accepts(w, value) for w in wanted)

    if isinstance(wanted, dict):
        ((kind, of),) = wanted.items()
        return ACCEPTS[kind](of, value)

    if isinstance(wanted, str):
        return isinstance(value, str) and bare(wanted) == bare(value)

    if isinstance(wanted, bool):
        return value is wanted

    return isinstance(value, (int, float)) and not isinstance(value, bool) \
        and value == wanted


def bare(text):
    return normal(text).strip(' .!?"\'')


def accepts_list(wanted, value):
    return isinstance(value, list) and len(value) == len(wanted) \
        and all(map(accepts, wanted, value))


def accepts_set(wanted, value):
    return isinstance(value, list) and len(value) == len(wanted) \
        and all(any(accepts(w, v) for v in value) for w in wanted)


def accepts_has(wanted, value):
    return isinstance(value, str) and lacks(wanted, value) is None


def accepts_object(wanted, value):
    return isinstance(value, dict) \
        and all(key.rstrip('?') in value or key.endswith('?')
                for key in wanted) \
        and all(key in names_of(wanted) and accepts(names_of(wanted)[key], v)
                for key, v in value.items())


ACCEPTS = {'list': accepts_list, 'set': accepts_set, 'has': accepts_has,
           'object': accepts_object}


def names_of(wanted):
    return {key.rstrip('?'): value for key, value in wanted.items()}


def accepts_arguments(wanted, arguments, schema):
    """Returns whether the arguments of a call are accepted.  What wanted does
    not list may be given if it is no free text: a number, a boolean, or a
    choice of the schema."""

    listed = names_of(wanted)
    given = {k: v for k, v in arguments.items() if v is not None}

    for key, value in given.items():
        if key not in listed and not is_choice(schema['properties'].get(key),
                                               value):
            return False

    return accepts_object(wanted, {k: v for k, v in given.items()
                                   if k in listed})


def is_choice(schema, value):
    if schema is None:
        return False

    if 'enum' in schema:
        return value in schema['enum']

    return schema['type'] in ('integer', 'number', 'boolean') \
        and isinstance(value, (int, float))


def lacks(phrases, text):
    """Returns the first of the phrases that a text lacks, or None.  A list of
    phrases is satisfied by any of them."""

    text = normal(text)

    for phrase in phrases:
        choices = phrase if isinstance(phrase, list) else [phrase]
        if not any(contains(text, c) for c in choices):
            return choices[0]

    return None


def texts_of(value):
    """Yields all texts and numbers in a JSON value, as texts."""

    if isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from texts_of(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts_of(v)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield repr(value)


def last_line(answer):
    return answer.strip().rpartition('\n')[2]


def false_statement(expect, answer, sources, known):
    """Returns a number or a name of the answer that the sources do not have,
    or None.  known are the names that are recognized.  If work is expected,
    the lines before the last one are not judged."""

    if 'work' in expect or 'result' in expect:
        answer = last_line(answer)

    text = '\n'.join(sources)
    allowed = numbers(text) | ALWAYS

    # a sign is lost in "4 degrees below zero" and appears in "-4"

    strange = {n for n in numbers(answer)
               if n not in allowed and -n not in allowed}

    if strange:
        return f'the number {float(min(strange)):g}'

    text = normal(text)
    strange = {n for n in names(answer, known) if not contains(text, n)}

    return f'the name {min(strange)}' if strange else None


def shortfall(expect, answer, admits):
    """Returns the first expectation that an answer does not meet, or None.
    admits are the formulations that admit not to know."""

    if answer.strip() == '':
        return 'empty'

    for key, wanted in expect.items():
        why = TESTS[key](wanted, answer, admits)
        if why is not None:
            return why

    return None


def has(wanted, answer, admits):
    missing = lacks(wanted, answer)
    return None if missing is None else f'lacks "{missing}"'


def has_not(wanted, answer, admits):
    text = normal(answer)
    found = [w for w in wanted if contains(text, w)]
    return f'has "{found[0]}"' if found else None


def has_numbers(wanted, answer, admits):
    missing = [n for n in wanted
               if Fraction(repr(n)) not in numbers(answer)]
    return f'lacks the number {missing[0]}' if missing else None


def has_result(wanted, answer, admits):
    return has_numbers([wanted], last_line(answer), admits)


def admits_it(wanted, answer, admits):
    text = normal(answer)
    more = wanted if isinstance(wanted, list) else []

    return None if any(contains(text, a) for a in [*admits, *more]) \
        else 'does not admit it'


def is_json(wanted, answer, admits):
    fenced = FENCED.fullmatch(answer)

    try:
        value = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError):
        return 'is not JSON'

    return None if accepts(wanted, value) else 'is other JSON'


def is_exactly(wanted, answer, admits):
    return None if accepts(wanted, answer) else f'is not "{wanted[0]}"'


def is_verbatim(wanted, answer, admits):
    """Unlike other expectations, this one distinguishes upper case."""

    return None if wanted in answer else f'lacks "{wanted}" as it stands'


def is_upper(wanted, answer, admits):
    return None if answer.isupper() else 'is not in upper case'


def has_items(wanted, answer, admits):
    n = len(ITEM.findall(answer))
    return None if n == wanted else f'is a list of {n}'


def is_short(wanted, answer, admits):
    n = len(re.findall(r"[\w']+", answer))
    return None if n <= wanted else f'has {n} words'


def begins(wanted, answer, admits):
    return None if bare(answer).startswith(bare(wanted)) \
        else f'does not begin with "{wanted}"'


def ends(wanted, answer, admits):
    return None if bare(answer).endswith(bare(wanted)) \
        else f'does not end with "{wanted}"'


def no_test(wanted, answer, admits):
    """What only changes which statements are false."""

    return None


TESTS = {'has': has, 'not': has_not, 'numbers': has_numbers,
         'result': has_result,
         'admits': admits_it, 'json': is_json, 'exact': is_exactly,
         'verbatim': is_verbatim, 'upper': is_upper, 'items': has_items, 'words': is_short,
         'begins': begins, 'ends': ends,
         'may': no_test, 'work': no_test}
