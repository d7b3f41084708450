# Copyright (C) The nginx-dsa authors

"""Texts of any kind that nobody can predict: names, phrases, codes, addresses,
paths, numbers, sentences.  A model can only copy them."""

import string

from tasks import happen, names
from tasks.times import clock


def letters(rng):
    return ''.join(rng.choice(string.ascii_lowercase)
                   for _ in range(rng.randint(2, 9)))


def code(rng):
    """Returns a number of an order, a key or a hash."""

    way = int(rng.random() * 9)

    if way == 4:
        return rng.choice(('pay', 'usr', 'inv', 're', 'tok', 'evt', 'id',
                           letters(rng))) + '_' + mixed(rng)

    if way == 5:
        return f'{rng.randrange(10 ** rng.randint(1, 4))}' \
            f'{rng.choice("-/.:")}{mixed(rng) if rng.random() < 0.5 else rng.randrange(99999)}'

    if way == 6:
        return rng.choice('#@') + letters(rng) + rng.choice(
            ('', '-', '_')) + rng.choice((letters(rng), ''))

    if way == 7:
        return rng.choice('/-.').join(
            rng.choice(names.NOUNS + names.ADJECTIVES).replace(' ', '-')
            if rng.random() < 0.6 else letters(rng)
            for _ in range(rng.randint(2, 3)))

    if way == 8:
        return rng.choice(string.ascii_uppercase) \
            + str(rng.randrange(10, 99999))

    if way == 0:
        return ''.join(rng.choice(string.ascii_uppercase)
                       for _ in range(rng.randint(1, 4))) \
            + rng.choice(('-', '', '/')) + str(rng.randrange(10, 99999))

    if way == 1:
        return ''.join(rng.choice('0123456789abcdef')
                       for _ in range(rng.randint(4, 12)))

    if way == 2:
        return '-'.join(''.join(rng.choice(string.ascii_uppercase
                                           + string.digits)
                                for _ in range(rng.randint(2, 4)))
                        for _ in range(rng.randint(2, 3)))

    return f'{letters(rng)}{rng.randrange(1, 999)}'


def number(rng):
    way = int(rng.random() * 4)

    if way == 0:
        return str(rng.randrange(10 ** rng.randint(1, 7)))

    if way == 1:
        return rng.choice(('', '', '', '-')) \
            + f'{rng.randrange(10 ** rng.randint(1, 4))}.' \
            f'{rng.randrange(10 ** rng.randint(1, 3))}'

    if way == 2:
        return f'{rng.randrange(1900, 2100)}-{rng.randrange(1, 13):02}-' \
            f'{rng.randrange(1, 29):02}'

    return f'+{rng.randrange(1, 99)} {rng.randrange(100, 999)} ' \
        f'{rng.randrange(1000, 99999)}'


def mixed(rng):
    return ''.join(rng.choice(string.ascii_letters + string.digits)
                   for _ in range(rng.randint(3, 9)))


# The last part of a host is any word now and then, so that a model copies it

def host(rng):
    end = rng.choice(('com', 'org', 'net', 'io', 'de', 'fr', 'jp', 'co.uk',
                      'example', 'test', 'local', 'dev', 'info', 'it', 'ch',
                      'gov', 'edu')) if rng.random() < 0.7 else \
        rng.choice(names.NOUNS).replace(' ', '') \
        if rng.random() < 0.5 else letters(rng)[:3]
    name = rng.choice((names.syllables(rng), letters(rng),
                       rng.choice(names.NOUNS).replace(' ', '-')))

    return rng.choice(('', '', '', 'api.', 'www.', 'mail.', letters(rng) + '.')
                      ) + f'{name}.{end}'


def mail(rng):
    who = rng.choice((rng.choice(names.FIRST), rng.choice(names.LAST),
                      rng.choice(names.NOUNS), letters(rng))) \
        .lower().replace(' ', '')

    return who + rng.choice(('', '.', '_', '-')) + rng.choice(
        (letters(rng), str(rng.randrange(100)),
         rng.choice(names.LAST).lower().replace(' ', ''))) + '@' + host(rng)


def web(rng):
    return rng.choice(('https://', 'https://', 'http://', 'www.', '')) \
        + host(rng) + ''.join(
            '/' + rng.choice((letters(rng), rng.choice(names.NOUNS).replace(
                ' ', '-'))) for _ in range(rng.randint(0, 3))) \
        + rng.choice(('', '', f'?id={rng.randrange(999)}'))


def address(rng):
    """Returns an address of mail or the web."""

    return mail(rng) if rng.random() < 0.6 else web(rng)


def path(rng):
    parts = [rng.choice(names.FOLDERS) for _ in range(rng.randint(0, 3))] + [
        f'{rng.choice(names.STEMS)}.{rng.choice(names.ENDINGS)}']

    return rng.choice(('/', '', '', '~/', './')) + '/'.join(parts)


def person(rng):
    return f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}' \
        if rng.random() < 0.5 else rng.choice(names.FIRST)


def phrase(rng):
    words = [rng.choice(rng.choice((names.NOUNS, names.ADJECTIVES,
                                    names.GOODS, names.TOPICS, names.ERRANDS,
                                    names.PRODUCTS, names.LANGUAGES)))
             for _ in range(rng.randint(1, 4))]

    return ' '.join(words)


def made(rng):
    return names.syllables(rng)


KINDS = (person, person, phrase, phrase, happen.note,
         lambda rng: rng.choice(names.PLACES), made, letters, code, number,
         address, path, lambda rng: rng.choice(names.EVENTS), clock)


def anything(rng):
    """Returns a text of one line, of 1 to about 100 characters."""

    return rng.choice(KINDS)(rng)
