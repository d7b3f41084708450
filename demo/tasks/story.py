# Copyright (C) The nginx-dsa authors

"""Very short stories.  The user may choose the kind, the hero and the thing;
each has a fixed default."""

import re

from tasks.said import Said, ask
from tasks.tools_check import has_word
from tasks.words import PEOPLE, THINGS


HERO, THING = 'Mara', 'lantern'

# (name, words of which it must have one): story

PLOTS = {
    ('', ()): '''{hero} had an old {thing}. One morning the {thing} was gone.
        {hero} looked in the house and in the garden. There it was, and a
        small bird sat on it. {hero} waited until the bird flew away.''',

    ('funny ', ('laughed', 'laugh')): '''{hero} took a {thing} to the market.
        A goat wanted to buy the {thing}. It paid with three carrots. {hero}
        laughed and went home with soup.''',

    ('sad ', ('cried', 'cry', 'sad')): '''{hero} loved a {thing} more than
        anything. One day the {thing} fell into the river. {hero} cried until
        it was dark. The river never gave it back.''',

    ('bedtime ', ('slept', 'sleep', 'asleep')): '''The moon was high, and
        {hero} was not tired. On the shelf stood a {thing}. {hero} told the
        {thing} of the long day. The {thing} said nothing, and {hero}
        slept.''',

    ('scary ', ('dark', 'fear', 'afraid')): '''It was dark in the house of
        {hero}. Something moved behind the door. {hero} was afraid and held
        the {thing} high. It was only the cat.''',

    ('happy ', ('happy', 'glad')): '''{hero} had looked for a {thing} all
        year. A friend came with a box. In it was the {thing}. {hero} was
        happy, and they drank tea.''',
}

ASK = ('Tell me a {kind}story{about}.', 'Tell a very short {kind}story'
       '{about}.', 'I want to hear a {kind}story{about}.',
       'Make up a {kind}story{about}.', 'Can you tell a {kind}story{about}?',
       'Write a short {kind}story{about}.', 'A {kind}story{about}, please.',
       'Do you know a {kind}story{about}?', 'Tell me a little {kind}story'
       '{about}.', 'Write a {kind}story{about}.')


def story(rng):
    kind, signs = rng.choice(sorted(PLOTS))
    plot = ' '.join(PLOTS[kind, signs].split())
    hero, thing, about, chosen = HERO, THING, '', []

    if rng.random() < 0.8:
        hero = rng.choice(PEOPLE)
        chosen.append(hero)
        about = f' about {hero}'

    if rng.random() < 0.8:
        thing = rng.choice(THINGS)
        chosen.append(thing)
        about = f'{about} and a {thing}' if about else f' about a {thing}'

    if about and rng.random() < 0.2:
        about = about.replace(' about', ' with')

    about = re.sub(r' a (?=[aeiou])', ' an ', about)
    answer = re.sub(r'\ba (?=[aeiou])', 'an ',
                    plot.format(hero=hero, thing=thing))

    def wrong(text):
        if not 3 <= len(re.findall(r'[.!?](?:\s|$)', text)) <= 6:
            return 'not of 3 to 6 sentences'

        for word in chosen:
            if not has_word(text, word):
                return f'nothing of {word}'

        if signs and not any(has_word(text, s) for s in signs):
            return f'no {kind}story'

        return None

    how = rng.choice(ASK).format(kind=kind, about=about)

    return Said(ask(rng, how),
                f'A {kind}story. Hero: {hero}. Thing: {thing}.', answer,
                wrong, about='a story')
