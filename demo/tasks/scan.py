# Copyright (C) The nginx-dsa authors

"""What is thought about a text in which an answer must be found: it is read
sentence by sentence, and after each it is decided whether the answer is in it.

A small model takes the first sentence that has a word of the question.  So the
thought repeats the question, and then each sentence just before the decision
about it, as weigh.py does with tools."""

import re

from tasks.phrase import expand


LONGEST = 520           # letters of the sentences that are repeated
SHARE = 0.3             # of a sentence, that a quotation of it has at least
SHORTEST = 12           # letters of a quotation

END = re.compile(r'(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bSt\.)'
                 r'(?<!\bNo\.)(?<!\b[A-Z]\.)(?<=[.!?])\s+(?=\W?[A-Z0-9])|\n+')

NOTHING = '''[Nothing is said about it|It is not there|None has it|So it does not say].'''


def sentences(text):
    """Returns the sentences and lines of a text, without marks of lists."""

    found = (re.sub(r'^\s*(?:[-*]|\d+[.)])\s+', '', s).strip()
             for s in END.split(text))

    return [s for s in found if s]


def through(said, question, there, whole=False):
    """Returns the thought that goes through sentences up to the last one whose
    number is in there, or, if there is empty or the whole is wanted, through
    all; '' if they are too long, or if there are marks of quotations."""

    until = max(there) + 1 if there and not whole else len(said)
    said, question = said[:until], ' '.join(question.split())

    if not said or '"' in question or any('"' in s for s in said) \
            or sum(map(len, said)) > LONGEST or len(question) > LONGEST // 2:
        return ''

    return f'"{question}" ' + ' '.join(
        f'"{s}": {"yes" if i in there else "no"}.'
        for i, s in enumerate(said))


def quotes(quotation, sentence):
    """Returns true if these words are a part of a sentence and not only a word
    of it, or if they have it."""

    return SHORTEST <= len(quotation) >= SHARE * len(sentence) \
        and quotation in sentence or len(sentence) >= SHORTEST \
        and sentence.rstrip('.') in quotation


def looked(rng, said, question, thoughts, there=True, whole=False):
    """Returns thoughts that go through the sentences to those that the given
    thoughts quote, and end as these do; or the given thoughts, if they quote
    none.  there: false if no sentence answers; whole: all must be read to
    know it."""

    # marks in a sentence would be taken for those around a quotation

    if any('"' in s for s in said):
        return thoughts

    if not there:
        gone = through(said, question, ())

        return f'{gone} {expand(rng, NOTHING)}' if gone else thoughts

    at, end = set(), 0

    for m in re.finditer(r'"([^"]*)"', thoughts):
        quoted = [i for i, s in enumerate(said) if quotes(m[1], s)]
        at |= set(quoted)
        end = m.end() if quoted else end

    scanned = through(said, question, at, whole) if at or whole else ''

    return f'{scanned} {after(thoughts[end:], question)}'.strip() \
        if scanned else thoughts


def after(thoughts, question):
    """Returns thoughts without the question, if they begin with it."""

    m = re.match(r'[^"]*"([^"]*)"', thoughts)

    return (thoughts[m.end():] if m and m[1] in question
            else thoughts).strip()
