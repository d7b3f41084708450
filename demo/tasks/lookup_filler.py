# Copyright (C) The nginx-dsa authors

"""Sentences without meaning for any question, made from a grammar.  They have
no person, color, city or number."""

import re


GRAMMAR = {
    'sentence': '''{when} {who} {did}.|{who} {did} {when}.|{who} {did}.
{the weather} {turned} {when}.|{who} {said} that {the weather} {turned}.
{who} {did}, and {who} {did}.|{nobody} knew why {who} {did}.
{when} {the weather} {turned}, so {who} {did}.''',
    'who': '''the {kind}|an old {kind}|a young {kind}|the {kind} and the {kind}
the other {kind}|some {kind}''',
    'kind': '''miller|baker|sailor|teacher|weaver|porter|gardener|smith|guard
painter|cook|farmer|neighbor|doctor|tailor|driver|pilot|singer|hunter|fisher
carpenter|clerk|judge|potter|shepherd|traveler|visitor|uncle|aunt|cousin''',
    'did': '''{walked} {to}|{carried} {what} {to}|{waited} {at}|slept {at}
{mended} {what}|told {a story}|{looked} for {what}
asked about {what}|sang {a story}|had forgotten {what}''',
    'walked': 'walked|ran|went|rode|hurried|climbed|drove|wandered|came',
    'carried': 'carried|brought|pulled|pushed|took|dragged|sent',
    'waited': 'waited|rested|sat|stood|stayed|worked|ate|played',
    'mended': 'mended|cleaned|washed|broke|lost|found|wanted|drew|sold',
    'looked': 'looked|searched|asked|cared',
    'to': '''over the {spot}|to the {spot}|along the {spot}|across the {spot}
around the {spot}|past the {spot}''',
    'at': '''behind the {spot}|near the {spot}|by the {spot}|beside the {spot}
in front of the {spot}''',
    'spot': '''bridge|river|hill|road|market|harbor|wood|meadow|lake|gate|well
square|valley|field|pond|shore|orchard|canal|station|tunnel''',
    'what': '''the {load}|some {load}|a load of {load}|all the {load}
the last {load}|most of the {load}''',
    'load': '''bread|hay|wool|corn|milk|cheese|timber|sand|coal|salt|honey|tea
flour|butter|soap|paper|fruit|fish|straw|clay''',
    'a story': '''a long story|a short tale|an old song|the news|a joke
a song of the sea|a tale of the hills''',
    'when': '''in the morning|at noon|in the evening|before dawn|after lunch
late at night|last week|on the way home|in spring|after the rain|in winter
long ago|at first light|during the feast''',
    'the weather': 'the wind|the rain|the snow|the fog|the storm|the sun',
    'turned': '''came from the north|went away|came back|grew stronger
grew weaker|was feared|turned to the west|hid the hills''',
    'said': 'said|thought|wrote|heard|hoped|feared|knew',
    'nobody': 'nobody|hardly anybody|no neighbor|not even the {kind}',
}

CHOICES = {name: text.replace('\n', '|').split('|')
           for name, text in GRAMMAR.items()}


def sentence(rng):
    """Returns a sentence."""

    text = '{sentence}'

    while '{' in text:
        text = re.sub(r'\{([^{}]+)\}',
                      lambda m: rng.choice(CHOICES[m.group(1)]), text)

    return text[0].upper() + text[1:]
