# Copyright (C) The nginx-dsa authors

"""The domains of the paper's specialists (section 3): six, writing, and
questions.  Each has families of demo/tasks and demo/worlds, whose checks are
the verifiers.

    PYTHONPATH=demo python3 -m train.domains

prints the table, with what cannot be verified on this machine.
"""

import sys

from tasks import mix
from tasks.task import CHAT, RETAIN
from worlds import registry
from worlds.code import cage
from worlds.form import Refused


# categories of synthesized tasks that no stage trains on, for the comparison
# of figure 5: one of each kind of solution, and the paper's own trip

HELD = ('general_menu', 'general_rooms', 'general_talks', 'general_exchange',
        'general_paints', 'general_hangzhou')

SYNTHETIC = tuple(
    'general_' + c for c in (
        'basket', 'cover', 'computer', 'crew', 'shifts', 'parcels', 'relay',
        'garden', 'seating', 'courses', 'delivery', 'pairs', 'route', 'buses',
        'funds', 'trail', 'meeting', 'trip'))

DOMAINS = {
    'mathematics': ('arithmetic', 'arithmetic_story'),
    'programming': ('programming',),
    'logic': ('logic',),
    'general_agent': SYNTHETIC + (
        'tools_single', 'tools_none', 'tools_error', 'tools_multi',
        'trip_facts', 'trip_short', 'trip'),
    'code_agent': ('code', 'interpreter'),
    'search_agent': ('search',),
    'writing': ('writing',),
    'questions': ('talk', 'lookup', 'lookup_long', 'chat'),
}

# sets of domains that have a name, and the general tasks of synthesized
# environments alone

GROUPS = {
    'all': sum(DOMAINS.values(), ()),
    'reasoning': (DOMAINS['mathematics'] + DOMAINS['programming']
                  + DOMAINS['logic']),
    'synthetic': SYNTHETIC,
    'search_code': DOMAINS['search_agent'] + DOMAINS['code_agent'],

    # those that demo/tasks does not have, so that no model has seen them
    # before its post-training draws them (train.data --worlds)

    'worlds': tuple(f for families in DOMAINS.values() for f in families
                    if f not in mix.FAMILIES),
}

# the paper has these, too, and no program here verifies them

ABSENT = {
    'proofs': 'no program here decides whether a proof is right (the data and '
              'rewards of DeepSeekMath-V2 in DeepSeek-V3.2-Speciale)',
}

# the verifiers of these run programs, which must be isolated

CAGED = SYNTHETIC + HELD + ('code', 'interpreter', 'programming')

# thinking, non-thinking, or both in one specialist

BOTH = 'both'
MODES = {RETAIN: (RETAIN,), CHAT: (CHAT,), BOTH: (RETAIN, CHAT)}


def base(family):
    """Returns a family without its level."""

    return family.partition('@')[0]


def domain_of(family):
    """Returns the domain of a family, or None for one that none has."""

    return next((d for d, families in DOMAINS.items()
                 if base(family) in families), None)


def families_of(domains):
    """Returns the families of domains and groups, a list of names, and reports
    on stderr those that cannot be verified on this machine.  Raises Refused
    for a name that is unknown, and for a domain of which none is left."""

    found, known = [], {**DOMAINS, **GROUPS}

    for name in domains:
        if name in ABSENT:
            raise Refused(f'{name}: {ABSENT[name]}')

        if name not in known:
            raise Refused(f'no such domain: {name}; known: '
                          + ' '.join(known))

        good = usable(known[name])
        bad = [f for f in known[name] if f not in good]

        if not good:
            check(bad[0])

        if bad:
            print(f'{name}, left out:', *bad, file=sys.stderr)

        found += good

    return found


def usable(families):
    """Returns those of families that can be verified here."""

    found = []

    for family in families:
        try:
            check(family)
            found.append(family)
        except Refused:
            pass

    return found


def check(family):
    """Raises Refused unless the family has the level and can be verified
    here."""

    known, level = registry.find(family)

    if not 1 <= level <= known.levels:
        raise Refused(f'{known.name} has the levels 1 to {known.levels}, not '
                      f'{level}')

    if base(family) in CAGED:
        try:
            cage.check()
        except cage.NoCage as e:
            raise Refused(f'{family} has no verifier on this machine: {e}') \
                from None


def main():
    for name, families in DOMAINS.items():
        good = usable(families)
        print(f'{name:<14}', *good or ['left out'])

        if len(good) < len(families):
            print(f'{"":<14} without a verifier here:',
                  *(f for f in families if f not in good))

    for name, why in ABSENT.items():
        print(f'{name:<14} left out: {why}')

    print(f'{"held out":<14}', *HELD)
    print(f'{"in no domain":<14}', *(
        f for f in registry.families()
        if domain_of(f) is None and f not in HELD))


if __name__ == '__main__':
    main()
