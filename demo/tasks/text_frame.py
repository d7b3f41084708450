# Copyright (C) The nginx-dsa authors

"""What tasks of reading have in common: how a text and a question about it are
sent, what is thought about the place of the answer, and what is said if there
is none."""

from tasks.daily import line
from tasks.parts import Split
from tasks.phrase import expand


ASK = Split(r'''{text}\n\n{q}
{q}\n\n{text}
[Read this|Here is a text|Text|A note]: {text}\n{q}
[Answer from the text|Use only the text]. {q}\n\n"{text}"
"{text}" {q}
I got this [mail|message|note]: "{text}" {q}
Text: {text}\nQuestion: {q}
[Please read|Look at this]:\n{text}\n\n{q}
{q} [It should be in here|It's in there somewhere]:\n{text}
A friend wrote me this:\n\n{text}\n\n{q}
My boss sent this and I don't have time to read it all:\n{text}\n{q}
---\n{text}\n---\n{q}
{text}\n{q}
Question: {q}\nText: {text}
Can you look something up for me? {q}\n\n{text}
From a letter: "{text}"\n\n{q} [Thanks!|]
[Found this on the fridge|This hangs at the door]:\n{text}\n\n{q}
"{text}"\n\n{q} [Only answer from this.|Nothing but the text counts.]
<<{text}>>\n{q}
I don't have my glasses. It says: {text}\nSo: {q}
{q} [Here's what I know|This is all I have]: {text}
Please answer with the help of these lines.\n{text}\n{q}
I copied this for you:\n\n{text}\n\nNow my question. {q}
Context:\n{text}\n\nQ: {q}
[pls read|read this pls]: {text}\n\n{q}
Listen: {text} [And now|Well]: {q}
[I wrote|We wrote] this down [yesterday|last week]: {text}\n{q}
You are given a text.\n\n{text}\n\nAnswer this: {q}
Help me understand this: "{text}" {q}
{text}\n\n[One thing I want to know|What I need]: {q}
[Short test|Reading test]!\nText: "{text}"\n{q}
Q: {q}\nA is in this text: {text}'''.splitlines())

MISSING = '''[The text|It] does not [say|mention|name] [that|it].
[That is|This is] not in the text.
I [cannot|can't] find [that|it] in the text.
[I don't know|I do not know]: the text [says nothing about it|does not say].
[Sorry|I'm sorry], the text has nothing about that.
There is no word about that in the text.
[From the text|Here] I [cannot|can't] tell.
[It isn't|That isn't] mentioned[ there| anywhere|].
The text [gives no answer|has no answer] to that.
[Nothing is said|I read nothing] about that[, sorry|].
[It is not stated.|That's not stated.] [Do you have more text?|]
[Unfortunately,|I looked, but] it does not say.
I see no [mention|trace] of that[ in there|].'''

# A thought names what is asked about before it quotes: the sentence is then the
# one that has the words which were just written.

FOUND = '''[The text says|In the text|I read|It says] of {k}: "{s}"
[I look for|Asked is about|I search for] {k}: "{s}"
{k}? [Look:|Here:|That is in:|] "{s}"
[The part|The sentence] with {k} [is|says|matters]: "{s}"
{k} [is in|I find in]: "{s}" [That is it.|So {v}.|]'''

FOUND_ALONE = '''[The text says|In the text|I read|It says]: "{s}"
[The line is|The answer is in]: "{s}"
[Look:|Here:] "{s}"
[The part that matters|What matters]: "{s}"
"{s}" [That is it.|So {v}.|]'''

NOT_FOUND = '''[I look for|I search for] {k} in [the text|all lines]. [Nothing is said about it|It is not there|There is no such line].
{k}? [Nothing is said about that|It is not there|There is no such line].'''

NOT_THERE = '''[I look through|I read|I go through] [the text|all lines]. [Nothing is said about it|It is not there|There is no such line].'''


def key(question, parts):
    """Returns the longest of these words that a question has, or if it has
    none of them, the first."""

    there = [p for p in parts if p.lower() in question.lower()]

    return max(there, key=len) if there else parts[0]


def found(rng, k, sentence, v):
    """Returns the thought of who finds k, which may be '', in a sentence."""

    return line(rng, FOUND if k else FOUND_ALONE).format(k=k, s=sentence, v=v)


def not_found(rng, k):
    return line(rng, NOT_FOUND if k else NOT_THERE).format(k=k)


def framed(rng, text, question):
    """Returns a message with a text and a question, which has a mark at its
    end unless the message ends with it."""

    form = '{text} {q}' if rng.random() < 0.15 \
        else expand(rng, rng.choice(ASK).replace('\\n', '\n'))

    if not form.endswith('{q}') and question[-1] not in '.?!':
        question += '?'

    return form.format(text=text, q=question)
