# Copyright (C) The nginx-dsa authors

"""Checks of answers.  Each check returns None if the answer is right, or else
the reason."""

import re
from fractions import Fraction


NUMBER = re.compile(r'''(?<![\w.]) -? (?: \d{1,3} (?:,\d{3})+ | \d+ )
                        (?:\.\d+)?''', re.VERBOSE)

DATE = re.compile(r'\b\d{4}-\d\d-\d\d\b')

NEGATIVE = re.compile(r"\b(?:not|no|none|cannot|unknown|unable|nothing"
                      r"|undefined)\b|n't\b", re.IGNORECASE)


def numbers(text):
    """Returns the numbers of a text, each without its thousands' commas.
    Dates are not numbers."""

    return [n.replace(',', '') for n in NUMBER.findall(DATE.sub('', text))]


def is_number(said, wanted):
    """Returns true if the text of a number is the wanted number, which may be
    rounded, but not to an integer."""

    if len(said) > 100:     # a model can repeat a digit thousands of times
        return False

    wanted = Fraction(str(wanted))
    difference = abs(Fraction(said) - wanted)

    if difference == 0:
        return True

    decimals = len(said.partition('.')[2])

    return decimals > 0 and difference <= Fraction(1, 2 * 10 ** decimals)


def says_number(answer, wanted, user=''):
    """The last number of the answer must be the wanted one.  Numbers of the
    user's text do not count, because an answer may repeat the question."""

    repeated = numbers(user)
    said = [n for n in numbers(answer)
            if is_number(n, wanted) or n not in repeated]

    if not said or not is_number(said[-1], wanted):
        return f'{wanted} is not the number of: {answer}'

    return None


def has_word(text, word):
    return re.search(r'(?<!\w)' + re.escape(word) + r'(?!\w)', text,
                     re.IGNORECASE) is not None


def says_words(answer, *words):
    """The answer must have each of the words, or sequences of words."""

    for word in words:
        if not has_word(answer, str(word)):
            return f'{word} is not in: {answer}'

    return None


def says_choice(answer, wanted, choices):
    """Of the choices, the answer must have only the wanted one, or have it
    first."""

    def place(word):
        m = re.search(r'(?<!\w)' + re.escape(word) + r'(?!\w)', answer,
                      re.IGNORECASE)
        return len(answer) if m is None else m.start()

    if place(wanted) == len(answer) \
            or any(place(c) < place(wanted) for c in choices if c != wanted):
        return f'{wanted} is not the choice of: {answer}'

    return None


def says_no(answer, name=''):
    """The answer must say that something is not so, or not known."""

    if NEGATIVE.search(answer) is None:
        return f'no negation in: {answer}'

    return says_words(answer, *([name] if name else []))


def same_text(a, b):
    """Returns true if two texts differ only in quotes, capitals and a final
    punctuation mark."""

    def plain(text):
        return ' '.join(text.lower().strip(' \n\'"').rstrip('.!').split())

    return plain(a) == plain(b)


def repeats(answer, text):
    """The answer must be a text that the user asked for."""

    return None if same_text(answer, text) else f'not "{text}": {answer}'


def sent(kit, calls, to, text):
    """One message must have been sent, to this person and with this text."""

    messages = kit.done('send_message', calls)

    if len(messages) != 1:
        return f'{len(messages)} messages were sent'

    if messages[0][0].strip().lower() != to.lower():
        return f'the message went to {messages[0][0]}'

    if not same_text(messages[0][1], text):
        return f'the message was: {messages[0][1]}'

    return quiet(kit, calls, 'kv_set')


def stored(kit, calls, key, value):
    """One key must have been set, to this value."""

    writes = kit.done('kv_set', calls)

    if not writes or any(k != key for k, _ in writes):
        return f'written was {writes}'

    if writes[-1][1].strip() != str(value):
        return f'{key} was set to {writes[-1][1]}'

    return quiet(kit, calls, 'send_message')


def quiet(kit, calls, *roles):
    """Nothing may have been sent or stored; with roles, not by these roles."""

    for role in roles or ('send_message', 'kv_set'):
        if role in kit.offered and kit.done(role, calls):
            return role + ' was called'

    return None


# as a Turn's check, for turns that must not send or store anything

def number_check(kit, wanted, user):
    return lambda answer, calls: (says_number(answer, wanted, user)
                                  or quiet(kit, calls))


def words_check(kit, *words):
    return lambda answer, calls: (says_words(answer, *words)
                                  or quiet(kit, calls))


def choice_check(kit, wanted, choices):
    return lambda answer, calls: (says_choice(answer, wanted, choices)
                                  or quiet(kit, calls))


def no_check(kit, name=''):
    return lambda answer, calls: (says_no(answer, name)
                                  or quiet(kit, calls))
