# Copyright (C) The nginx-dsa authors

"""Made-up names and the wording of rules, each in two parts that share
nothing: one for training, and one for evaluation."""

TRAIN, EVAL = 'train', 'eval'

BEGINS = {
    TRAIN: '''Bal Cor Dun Fen Gar Hol Jor Kel Lin Mar Nor Pel Quin Ros Sal
Tor'''.split(),
    EVAL: '''Ash Bri Cre Dra Elm Flo Gre Hux Isk Jul Kno Lyd Mun Oak Pru
Vex'''.split(),
}

ENDS = {
    TRAIN: '''a en ia mer nick ora sby sett stan ten ula van wick wyn'''
    .split(),
    EVAL: '''ar bury dale eth field gate holm ine ley mond ock port rie
usk'''.split(),
}

# a rule about a number: {noun} {sense} {x}

SENSES = {
    TRAIN: {'<=': 'at most', '>=': 'at least'},
    EVAL: {'<=': 'no more than', '>=': 'no less than'},
}

RULES = {
    TRAIN: ('{Noun} must be {sense} {x}.',
            'I need {noun} to be {sense} {x}.'),
    EVAL: ('Make sure that {noun} is {sense} {x}.',
           'It is essential that {noun} comes to {sense} {x}.'),
}

CONDITIONS = {
    TRAIN: ('If {when} {p} or more, {noun} must be {sense} {x}; otherwise it '
            'must be {sense} {y}.',),
    EVAL: ('As long as {when} less than {p}, keep {noun} at {sense} {y}; from '
           '{p} on, at {sense} {x}.',),
}

SUBMIT = {
    TRAIN: 'Pass the result to submit_result as JSON: {form}.',
    EVAL: 'When you are done, call submit_result with this JSON: {form}.',
}


def part_of(seed):
    """Returns the part to which a seed belongs."""

    return EVAL if seed.startswith('eval-') else TRAIN


class Names:
    """Draws names, none twice."""

    def __init__(self, rng, part):
        self.left = [b + e for b in BEGINS[part] for e in ENDS[part]]
        rng.shuffle(self.left)

    def draw(self, n):
        return [self.left.pop() for _ in range(n)]
