# Copyright (C) The nginx-dsa authors

"""Sentences about a place, of word lists that training and evaluation do not
share but for articles, prepositions and the like."""

from worlds.general.words import EVAL, TRAIN


PLACES = {
    TRAIN: 'harbour market library bakery garden station'.split(),
    EVAL: 'museum forest kitchen theatre beach workshop'.split(),
}

NOUNS = {
    TRAIN: '''sailor gull rope basket apple clerk page lamp oven loaf boy rose
fence train clock bench crane boat shelf door'''.split(),
    EVAL: '''guide statue ticket oak fox path pan cook spoon actor curtain
stage crab wave stone hammer bolt glove window child'''.split(),
}

ADJECTIVES = {
    TRAIN: '''old quiet bright small heavy cold green narrow dusty kind early
young'''.split(),
    EVAL: '''tall gentle dark round loud warm brown wide shiny brave late
tired'''.split(),
}

VERBS = {
    TRAIN: '''waits moves rests shines falls returns stands sleeps turns
opens'''.split(),
    EVAL: '''walks glows drifts stays rolls listens hides grows jumps
closes'''.split(),
}

# what a sentence may begin with, by its first letter

OPENERS = {
    TRAIN: '''again busily carefully daily early finally gladly here indeed just
kindly later maybe now often perhaps quickly rarely slowly today usually
wisely yesterday'''.split(),
    EVAL: '''always boldly calmly dimly eventually freely generally hardly
indoors joyfully keenly lately mostly nearby outdoors patiently quietly
regularly sometimes then upstairs visibly wearily yearly'''.split(),
}

ENDS = {
    TRAIN: '''without noise|for hours|all day|after noon|before sunset'''
    .split('|'),
    EVAL: '''in silence|since dawn|until night|once more|in spring'''
    .split('|'),
}

# words for acrostics; the openers have all of their letters

ACROSTICS = {
    TRAIN: 'SONG CLAY BIRD MOUSE TRUCK'.split(),
    EVAL: 'WIND LAMP FROG STORM CHALK'.split(),
}

# words that a request forbids or counts

COMMON = {TRAIN: ('the', 'and', 'near'), EVAL: ('a', 'with', 'by')}

LASTS = {
    TRAIN: ('That was all.', 'Nobody saw it.', 'Nothing else happened.'),
    EVAL: ('It was enough.', 'Then silence came.', 'The rest is known.'),
}


class Writer:
    """Draws sentences.

    place    that they are about
    avoids   words that they do not have
    """

    def __init__(self, rng, part, place, avoids=()):
        self.rng = rng
        self.part = part
        self.place = place
        self.avoids = avoids

    def article(self, word):
        options = [a for a in ('the', 'an' if word[0] in 'aeiou' else 'a',
                               'every', 'this') if a not in self.avoids]

        return f'{self.rng.choice(options)} {word}'

    def noun(self, name=None, adjectives=0):
        name = name or self.rng.choice(NOUNS[self.part])
        words = self.rng.sample(ADJECTIVES[self.part], adjectives) + [name]

        return self.article(words[0]) + ''.join(' ' + w for w in words[1:])

    def sentence(self, length, first=None, has=()):
        """Returns a sentence.

        length   in words; from 5
        first    the letter with which it begins, or ''
        has      nouns that it has, at most two
        """
        rng = self.rng
        opener = [rng.choice([w for w in OPENERS[self.part]
                              if w[0] == first.lower()])] if first else []
        room = length - len(opener) - 3
        two = len(has) == 2 or room >= 5
        room = max(0, room - 3) if two else room
        end = rng.choice(ENDS[self.part]).split() if room >= 2 else []
        room -= len(end)
        more = [min(2, room), max(0, room - 2)] if two else [room, 0]
        nouns = list(has) + [None] * 2
        words = opener + self.noun(nouns[0], more[0]).split()
        words += [rng.choice(VERBS[self.part])]

        if two:
            words += [rng.choice([p for p in ('near', 'by', 'with', 'behind')
                                  if p not in self.avoids])]
            words += self.noun(nouns[1], more[1]).split()

        text = ' '.join(words + end)

        return text[0].upper() + text[1:] + '.'
