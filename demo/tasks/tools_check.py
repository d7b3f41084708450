# Copyright (C) The nginx-dsa authors

"""Whether an answer says what it should.  Each check returns None when it
does, else why not."""

import re
from fractions import Fraction


NUMBER = re.compile(r'''(?<![\w.]) -? (?: \d{1,3} (?:,\d{3})+ | \d+ )
                        (?:\.\d+)?''', re.VERBOSE)

DATE = re.compile(r'\b\d{4}-\d\d-\d\d\b')

NEGATIVE = re.compile(r"\b(?:not|no|none|cannot|unknown|unable|nothing"
                      r"|undefined)\b|n't\b", re.IGNORECASE)


def numbers(text):
    """Returns the numbers of a text, each without its thousands' commas; a
    date is none."""

    return [n.replace(',', '') for n in NUMBER.findall(DATE.sub('', text))]


def is_number(said, wanted):
    """Tells whether a number's text is the wanted one, which may have been
    rounded, though not to a whole one."""

    wanted = Fraction(str(wanted))
    difference = abs(Fraction(said) - wanted)

    if difference == 0:
        return True

    decimals = len(said.partition('.')[2])

    return decimals > 0 and difference <= Fraction(1, 2 * 10 ** decimals)


def says_number(answer, wanted, user=''):
    """The wanted is the last number of the answer; those that the user has
    said do not count, as an answer may repeat the question."""

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
    """The answer has each of the words, or sequences of words."""

    for word in words:
        if not has_word(answer, str(word)):
            return f'{word} is not in: {answer}'

    return None


def says_choice(answer, wanted, choices):
    """The wanted is the one of choices that the answer has, or the first
    where it speaks of the others too."""

    def place(word):
        m = re.search(r'(?<!\w)' + re.escape(word) + r'(?!\w)', answer,
                      re.IGNORECASE)
        return len(answer) if m is None else m.start()

    if place(wanted) == len(answer) \
            or any(place(c) < place(wanted) for c in choices if c != wanted):
        return f'{wanted} is not the choice of: {answer}'

    return None


def says_no(answer, name=''):
    """The answer says that something is not so, or not known."""

    if NEGATIVE.search(answer) is None:
        return f'no negation in: {answer}'

    return says_words(answer, *([name] if name else []))


def same_text(a, b):
    """Tells whether two texts are the same but for quotes, capitals and a
    final mark."""

    def plain(text):
        return ' '.join(text.lower().strip(' \n\'"').rstrip('.!').split())

    return plain(a) == plain(b)


def repeats(answer, text):
    """The answer is a text that was to be said."""

    return None if same_text(answer, text) else f'not "{text}": {answer}'


def sent(kit, calls, to, text):
    """One message was sent: to somebody, with a text."""

    messages = kit.done('send_message', calls)

    if len(messages) != 1:
        return f'{len(messages)} messages were sent'

    if messages[0][0].strip().lower() != to.lower():
        return f'the message went to {messages[0][0]}'

    if not same_text(messages[0][1], text):
        return f'the message was: {messages[0][1]}'

    return quiet(kit, calls, 'kv_set')


def stored(kit, calls, key, value):
    """One key was set, to a value."""

    writes = kit.done('kv_set', calls)

    if not writes or any(k != key for k, _ in writes):
        return f'written was {writes}'

    if writes[-1][1].strip() != str(value):
        return f'{key} was set to {writes[-1][1]}'

    return quiet(kit, calls, 'send_message')


def quiet(kit, calls, *roles):
    """Nothing was sent or stored; or not by these roles."""

    for role in roles or ('send_message', 'kv_set'):
        if role in kit.offered and kit.done(role, calls):
            return role + ' was called'

    return None


# the same as a Turn's check, for turns that must leave nothing behind

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
