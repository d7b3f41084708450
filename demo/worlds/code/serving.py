# Copyright (C) The nginx-dsa authors

"""The process that has a program under test; calling.py is its other end.

    python3 serving.py MODULE

It reads lines of JSON from descriptor 3 and answers each with one on descriptor
4, so that what the program prints does not come between them:

    {"get": [OBJECT, NAME]}         an attribute of an object
    {"call": [OBJECT, [VALUE...]]}  a call of an object

    {"value": VALUE}
    {"error": [NAME, TEXT]}         the type and the text of an exception

Object 0 is the module.  A VALUE is null, a boolean, a number, a text, or an
object with one member: "list", "tuple" or "set" with values, "dict" with pairs
of them, or "object" with the number of anything else, which stays here.
"""

import importlib
import json
import os
import sys


LISTS = (('list', list), ('tuple', tuple), ('set', (set, frozenset)))


def encode(value, kept):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value

    if isinstance(value, dict):
        return {'dict': [[encode(k, kept), encode(v, kept)]
                         for k, v in value.items()]}

    for name, kind in LISTS:
        if isinstance(value, kind):
            return {name: [encode(v, kept) for v in value]}

    kept.append(value)

    return {'object': len(kept) - 1}


def decode(value, kept):
    if not isinstance(value, dict):
        return value

    (name, parts), = value.items()

    if name == 'object':
        return kept[parts]

    if name == 'dict':
        return {decode(k, kept): decode(v, kept) for k, v in parts}

    return {'list': list, 'tuple': tuple, 'set': set}[name](
        decode(v, kept) for v in parts)


def answer(request, kept):
    try:
        (what, (n, other)), = request.items()
        target = decode({'object': n}, kept)
        value = getattr(target, other) if what == 'get' \
            else target(*[decode(v, kept) for v in other])

        return {'value': encode(value, kept)}

    except Exception as e:
        return {'error': [type(e).__name__, str(e)[:2000]]}


def main(name):

    asks, answers = os.fdopen(3), os.fdopen(4, 'w')
    kept = [importlib.import_module(name)]

    for line in asks:
        answers.write(json.dumps(answer(json.loads(line), kept)) + '\n')
        answers.flush()


if __name__ == '__main__':
    main(sys.argv[1])
