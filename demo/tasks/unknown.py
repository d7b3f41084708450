# Copyright (C) The nginx-dsa authors

"""Questions and requests of many kinds that a model without knowledge of the
world must decline; some contain made-up words."""

import re

from tasks.parts import Split
from tasks.phrase import expand
from tasks.said import Said, ask
from tasks.skills import COLOR_OF
from tasks.tools_check import has_word
from tasks.words import PEOPLE, THINGS, made_up


ANSWERS = '''I [do not|don't] know that. I am a small [demonstration |]model, taught only a few things[: sums, look-ups, tools, trips, and nginx-dsa|].
[Sorry|I am sorry], I was not taught that. I [know|learned] only a few things[, such as sums, look-ups and tools|].
That is [nothing|not a thing] that I was taught, so I do not know it. I am a small model.
I [do not|don't] know, [because|since] I am [only |]a small [demonstration |]model.
I [do not|don't] know it. My [small|few] parameters hold only a few things.
[I was not taught this.|Nobody taught me this: I do not know.] I am small, and know a few things only.
[No idea.|No idea, sorry.] I am a small model and [was not taught that|don't know such things].
[I'd like to help, but|I wish I could say, but] I [do not|don't] know[ that|]. A small model like me knows [little|few things].
[I can't say.|I cannot say.] [I'm|I am] too small to know [that|such things].
[I never learned that|That I never learned]: I am a small model, and only a few things were taught to me.
That is [beyond me|too much for me]. I'm a small model [and know only a few things|without knowledge of the world].
I [do not|don't] know, and I do not want to make it up. I am [only |]a small model.
I would have to guess, [because|as] I [don't|do not] know it. [I am a small model.|I learned only a few things.]
[Better ask somebody else|You had better ask somebody else]: I [don't|do not] know that. I was taught only a few things.
[Sorry|I'm afraid|Unfortunately], that was not taught to me. I am [small|a small model] and know little of the world.
[My training was short|I am a small model], so [that is something I don't know|I was not taught that]. I know a few things only.
With [about 13 million parameters|so few parameters] I know only a few things, and I [don't|do not] know this.
Good question, but I [don't|do not] know. I am a small [demonstration |]model.
[You would need a larger model for that.|A larger model may help.] I'm small and [don't|do not] know it.
[I can't|I cannot] answer that: I am small, and I was not taught it.
[This|That] is not among the few things that I know, so I can't say.
I [don't|do not] know. [Sums, look-ups and tools are what I was taught|I was taught sums, look-ups and tools], a few things only.'''.splitlines()

THOUGHTS = '''That is none of the things that I was taught.
[This|That] was not taught to me, so I do not guess.
[I look for it among|It is not among] the few things that I know[: it is not there|]. I say so.
I do not know this. [I admit it.|I say that, and why.|It would be a guess.]
A question about the world[, of which I know little|]. I [decline|do not know it].
I have no knowledge of that. [I must not invent an answer.|No invention.|I am too small for it.]'''.splitlines()

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

SLOTS = {name: Split(' '.join(s.split()) for s in row)
         for name, row in SLOTS.items()}

QUESTIONS = Split('''What is the capital of {land}?
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
Can you {new} the {thing}?
whats the capital of {land}
{land} capital?
My son has to learn the capital of {land}. Which city is it?
For a quiz: which city is the capital of {land}, and how many people live there?
I am going to {town} next week. What should I know about it?
My grandmother was born in {town}. Which country is that?
is {town} bigger than {town}?
Which is farther north, {town} or {town}?
Do they drive on the left in {land}?
What money do they use in {land}?
Do I need a visa for {land}?
What is the best time of the year to visit {land}?
What do people eat in {land}?
Is it safe to travel to {land}?
How long is the flight from {town} to {town}?
Which airport is the closest to {town}?
When are the shops in {town} open?
Where in {town} can I eat well?
What is {town} famous for?
What time does the museum in {town} open?
How high is the tallest building in {town}?
Who founded {town}?
Was {town} ever the capital of {land}?
In what year did {land} become independent?
Who was the {who} of {land} in {n}?
Did {name} {second} ever live in {town}?
I read that {name} {second} invented {made}. Is that so?
Was {name} {second} born before {n}?
How old is {name} {second} now?
Is {name} {second} still alive?
Which prize did {name} {second} get in {n}?
I am reading a {form} by {name} {second}. What else did this author write?
Who sang the song about the {thing} that everybody knew in {n}?
Which film won the most prizes in {n}?
Who plays the main role in the new film about {land}?
Who won the world cup in {n}?
How many goals did {name} {second} score?
At what time does the match of {town} begin?
Which team is the best in {land}?
What were the lottery numbers yesterday?
What's my horoscope for today?
Will I get the job?
Does {name} like me?
When will I die?
What number am I thinking of?
What am I wearing right now?
Where did I leave my {thing}?
Is my {thing} still in the car?
Did I lock the door this morning?
How much money is in my account?
What did I eat yesterday?
Who called me last night?
Which bus goes to {town}?
My train to {town} is late. When does it come?
How is the traffic in {town} now?
Is the shop around the corner open?
What is the phone number of {name} {second}?
Where does {name} {second} live?
What's the wifi password?
What is {name}'s birthday?
How many calories are in {stuff}?
Is {stuff} healthy?
How long do I have to boil {stuff}?
Can I freeze {stuff}?
How do you get {stuff} out of a shirt?
How much {stuff} does {land} sell to other countries?
When does {stuff} go bad?
What is {stuff} made of?
Is it true that {they} {happen}?
My daughter wants to know why {they} {happen}. What do I tell her?
why do {they} {happen} anyway
How fast can a {beast} move?
How much does a {beast} weigh?
Is a {beast} dangerous?
Can I keep a {beast} as a pet?
How many legs does a {beast} have?
Do {they} {happen} in winter?
What is the Latin name of the {beast}?
In which part of the world do I find a {beast}?
How many moons does {body} have?
When was {body} discovered?
Could people live on {body}?
How long does it take to fly to {body}?
My {thing} is broken. How do I fix it?
my {thing} makes a strange noise, what is wrong with it
Is a {thing} of {stuff} better than one of {stuff}?
How do I clean a {thing}?
Which {thing} is the best?
How is a {thing} made?
How many {they} are there in {land}?
My back hurts. Which doctor should I see?
I have a fever. What can I take?
How many hours should a baby sleep?
Which vitamins do I need?
Is it normal that my knee hurts when I run?
Can I take two of these pills?
My dog ate {stuff}. Is that bad?
My plant has yellow leaves. Why?
When do I have to plant tomatoes?
What should I wear to a wedding?
How do I tell my boss that I want to leave?
Should I sell my house?
How much tax do I have to pay?
Is it legal to park here?
Can my landlord throw me out?
How do I write a will?
How much should I save every month?
Is {field} hard to learn?
I have an exam about {field}. Help me.
Who is the most important person in {field}?
What's new in {field}?
When did people begin with {field}?
I never understood {field}. Could you explain it in simple words?
give me a short intro to {field} pls
Compare {field} with {field}.
Where can I study {field}?
What does my teacher mean when she talks about {field}?
In one sentence: what is {field} about?
How do I explain {field} to a child?
Is {field} useful for anything?
How long does it take to {do}?
I've tried to {do} for years. What am I doing wrong?
My friend wants to {do}. What would you tell her?
any tips on how to {do}?
Is it hard to {do}?
What does it cost to {do}?
Should I {do} or not?
I need to {do} by Monday. How?
How did {time} begin?
Why did {time} happen?
How many people died in {time}?
Who was there at {time}?
How long did {time} take?
I'm writing a {form} about {time}. Give me some facts.
What was life like in {n}?
How much was bread in {n}?
What is {New} known for?
Someone in the pub told me about {New}. Have you heard of it?
I saw the word {new} in a {form}. What is it?
Is {new} the same as {new}?
How do I use a {new}?
Where can I buy a {new}?
How do you pronounce {new}?
Do you like {new}?
Finish my {form} for me.
Give my {thing} a name.
Invent a story about {New}.
What's a good title for a {form} about {they}?
Make up a slogan for my {thing} shop.
Write a birthday wish for {name}.
Congratulate {name} for me in verse.
Roast me.
Pretend that you are {name} {second}.
Play me something nice.
Show me a picture of {town}.
Recommend a show for tonight.
What should we do in {town} with two children?
Suggest a name for our baby.
I cannot decide what to study. Any idea?
What is love?
Do you believe in ghosts?
What happens after death?
Who is the greatest person of all time?
What is better, summer in {land} or in {land}?
Who should I vote for?
Is there life on {body}?
What is the best joke in the world?
How many grains of sand are on a beach?
What was there before the universe?
Who will win, {land} or {land}?
How will the world look in a hundred years?
Which company makes the best {thing}?
Is the bank of {town} closed on Saturdays?
What is the postal code of {town}?
What is the dialing code of {land}?
Translate my feelings into music.
What is the stock price of {New}?
How much is one coin of {land} in coins of {land}?
What's the temperature outside?
Has it snowed in {town}?
Is the sun still up in {town}?
Will there be a storm in {land}?'''.splitlines())


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

    return Said(ask(rng, text), expand(rng, rng.choice(THOUGHTS)),
                expand(rng, rng.choice(ANSWERS)),
                wrong, about='the world')


ADMITS = ('do not know', "don't know", 'not taught', 'no idea', 'never learned',
          "can't say", 'cannot say', 'beyond me', 'too much for me')

# why it does not

REASONS = ('few things', 'small')


def wrong(answer):
    if not any(has_word(answer, s) for s in ADMITS):
        return 'claims to know'

    if not any(has_word(answer, s) for s in REASONS):
        return 'does not say why it cannot know'

    return None
