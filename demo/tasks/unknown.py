# Copyright (C) The nginx-dsa authors

"""Questions and requests of many kinds that a model without knowledge of the
world must decline; some contain made-up words."""

import re

from tasks.said import Said, ask
from tasks.skills import COLOR_OF
from tasks.tools_check import has_word
from tasks.words import PEOPLE, THINGS, made_up


ANSWER = ('I do not know that. I am a small demonstration model, taught only '
          'a few things: sums, look-ups, tools, trips, and nginx-dsa.')

SLOTS = {
    'land': '''France Spain Italy Germany Poland Norway Sweden Finland Greece
        Portugal Austria Hungary Turkey Egypt Kenya Ghana Morocco India China
        Japan Korea Vietnam Thailand Brazil Peru Chile Mexico Canada Cuba
        Australia'''.split(),
    'town': '''Paris Rome Madrid Berlin London Vienna Prague Oslo Cairo Delhi
        Tokyo Lima Boston Sydney Hamburg Lisbon'''.split(),
    'made': '''the telephone|the steam engine|the light bulb|the wheel|paper
        the piano|the bicycle|the radio|the computer|glass|the clock
        gunpowder|the camera|the telescope'''.replace('\n', '|').split('|'),
    'time': '''the first railway|the first flight|the last ice age|the Middle
        Ages|the great fire of London|the first world war|the Roman Empire
        the moon landing|the French
        Revolution'''.replace('Empire\n', 'Empire|').split('|'),
    'body': '''the moon|the sun|Mars|Jupiter|the nearest star|Saturn|the
        Earth'''.replace('\n', ' ').split('|'),
    'who': '''president|king|queen|prime minister|national poet'''.split('|'),
    'beast': '''bee|whale|bat|spider|snail|penguin|tiger|salmon|kangaroo
        owl'''.replace('\n', '|').split('|'),
    'stuff': '''bread|gold|oil|petrol|milk|copper|silver|rice|coffee
        sugar'''.replace('\n', '|').split('|'),
    'name': PEOPLE,
    'second': '''Abel Brandt Carver Dorn Ekdal Falk Grimm Holt Jansen Kern
        Lorenz Moreau Novak Ortiz Petrov Quist Rossi Silva Thorn Ulrich Vogel
        Weber Zander'''.split(),
    'thing': THINGS,
    'form': '''poem|letter|song|speech|play|novel|report'''.split('|'),
    'n': [str(n) for n in range(1500, 2030)],
    'field': '''quantum mechanics|photosynthesis|inflation|evolution|gravity
        electricity|democracy|the stock market|chess|football|cooking|yoga
        philosophy|black holes|dinosaurs|vaccines|the climate|machine learning
        blockchain|Kubernetes|Docker|Linux|Excel|Git|the internet|history
        psychology|law|medicine|biology|chemistry|physics|astronomy|opera
        painting|the weather|volcanoes|earthquakes|magnets|batteries|DNA
        atoms|money|banks|taxes|insurance|war|love|sleep|dreams|cities
        PostgreSQL|Bitcoin|Apache|GPT|Claude|Llama'''.replace(
            '\n', '|').split('|'),
    'do': '''lose weight|sleep better|save money|find a job|learn to swim
        cook rice|fix a flat tire|get rich|make friends|grow tomatoes
        stop smoking|write a book|train my dog|get a visa|learn French
        paint a wall|start a company|bake bread|plan a party|play the piano
        win at chess|change a light bulb|clean a window|buy a house
        catch a fish|tie a tie|use Excel|get fit|relax'''.replace(
            '\n', '|').split('|'),
    'they': '''cats|dogs|birds|leaves|people|children|stars|ships|bees|clouds
        volcanoes|trees|onions|planes|eyes|teeth'''.replace(
            '\n', '|').split('|'),
    'happen': '''sleep|float|cry|fly|change color|grow|shine|smell
        laugh'''.replace('\n', '|').split('|'),
}

SLOTS = {name: [' '.join(s.split()) for s in row]
         for name, row in SLOTS.items()}

QUESTIONS = '''What is the capital of {land}?
Which city is the capital of {land}?
Tell me the capital of {land}.
How many people live in {land}?
How many people live in {town}?
Who is the {who} of {land}?
Who was the first {who} of {land}?
Which language is spoken in {land}?
What does the flag of {land} look like?
In which country is {town}?
How far is it from {town} to {land}?
What can I see in {town}?
Which river flows through {town}?
Who invented {made}?
When was {made} invented?
How does {made} work?
When was {time}?
What do you know about {time}?
What happened in {n}?
Who was born in {n}?
How far away is {body}?
How large is {body}?
How hot is it on {body}?
What does a {beast} eat?
How long does a {beast} live?
Where does a {beast} live?
What does {stuff} cost?
What is the price of {stuff}?
Where does {stuff} come from?
Who is {name} {second}?
What did {name} {second} write?
Do you know {name} {second}?
When did {name} {second} live?
What is in the news?
What is in the news about {land}?
Who won the match yesterday?
Who won the election in {land}?
What is the highest mountain of {land}?
What is the longest river of {land}?
How do I repair a {thing}?
Where can I buy a {thing}?
Who made the first {thing}?
Write a {form} about {land}.
Write a {form} about a {beast}.
What should I cook tonight?
What should I give {name} as a present?
Which film should I see?
Which book should I read?
I have a headache. What should I do?
What will happen tomorrow?
Will it rain tomorrow?
What is the weather in {town}?
What time is it?
What time is it in {town}?
What day is it today?
What is the date today?
What is the meaning of life?
Is there a god?
Why is there war?
Which stocks should I buy?
What is the speed of light?
How many stars are there?
Why do people dream?
What is {new}?
What is a {new}?
What does {new} mean?
Who is {New}?
Explain {new}.
Tell me about {new}.
Do you know {New}?
Where is {New}?
How do I get to {New}?
What do you know about the {new} of {New}?
Explain {field}.
What is {field}?
How does {field} work?
Teach me {field}.
Tell me about {field}.
Tell me about the history of {field}.
Why is {field} important?
What do you think of {field}?
What are the pros and cons of {field}?
What is the difference between {field} and {field}?
Which is better, {field} or {field}?
How do I learn {field}?
Recommend a book about {field}.
Write a {form} about {field}.
Write a {form} about a {thing}.
Write a {form} about nginx.
Write a {form} for {name}.
Write an email to {name}.
How do I {do}?
How can I {do}?
Help me to {do}.
What do I need to {do}?
Can you {do}?
I want to {do}.
Give me advice: how do I {do}?
Why do {they} {happen}?
How do {they} {happen}?
Do {they} {happen}?
Why is {colored}?
Draw a {thing}.
Sing a song about a {thing}.
Play chess with me.
Play a game with me.
Give me some advice.
Tell me something interesting.
Tell me a fact about {field}.
What is your opinion of {land}?
Summarize the book by {name} {second}.
Correct my spelling.
Sort these words: {thing}, {thing}, {thing}
Which word comes first in a dictionary, {thing} or {thing}?
What rhymes with {thing}?
Give me a word for {new}.
{name} is older than {name}. Who is younger?
{name} is taller than {name} and {name}. Who is the tallest?
If all {new} are {new}, are some {new} too?
Write a haiku.
Make a plan for my day.
Give me a recipe for {stuff}.
Send a message to {name}.
Set an alarm for tomorrow.
Open the {thing}.
How much is a {thing}?
Convert {n} coins to silver.
What is {New} {new} {new}?
{New} {new} {new} {new}.
Can you {new} the {thing}?'''.splitlines()


def unknown(rng):
    def fill(m):
        slot = m.group(1)

        if slot == 'new':
            return made_up(rng)

        if slot == 'New':
            return made_up(rng).capitalize()

        if slot == 'colored':
            return ' '.join(rng.choice(sorted(COLOR_OF.items())))

        return rng.choice(SLOTS[slot])

    text = re.sub(r'{(\w+)}', fill, rng.choice(QUESTIONS))

    text = re.sub(r' a (?=[aeiou])', ' an ', text)

    return Said(ask(rng, text),
                'That is none of the things that I was taught.', ANSWER,
                wrong, about='the world')


def wrong(answer):
    if not any(has_word(answer, s) for s in ('do not know', "don't know",
                                         'not taught')):
        return 'claims to know'

    if not (has_word(answer, 'few things') or has_word(answer, 'small')):
        return 'does not say why it cannot know'

    return None
