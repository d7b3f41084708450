# Copyright (C) The nginx-dsa authors

"""Small requests of any kinds in one message, in many layouts: a list with
numbers or bullets, one sentence, several sentences, after a few statements
that some of the requests ask about.  Also, for all of daily_parts.py: what is
thought about a part of a message.

A request is written in small letters and with its mark.  In a layout, {A} is
the first request as a sentence, {a} the same with a small letter, {Ax} and
{ax} are without the mark; {la} is its number or bullet.

daily_parts and parts_more import this module, too, so their names are used in
functions only.
"""

import re
from dataclasses import dataclass
from typing import Callable

from tasks import arithmetic_work, daily_parts, names, parts_more, unknown
from tasks.daily import line, states
from tasks.daily_rough import rough
from tasks.parts import Split
from tasks.phrase import ARTICLE, capital, expand, say
from tasks.skills import COLOR_OF, DAYS, ONES, OPPOSITES, SPELLED
from tasks.task import CHAT, Step, Turn
from tasks.times import clock
from tasks.tools_check import NEGATIVE
from tasks.words import COLORS, THINGS


# ----------------------------------------------------------------- thoughts


def taken(words, work, told=''):
    """Returns what is thought about a part of a message: its words, the words
    with the fact that it needs, and then the lines of its work."""

    head = f'"{bare(words)}"' + (f': "{bare(told)}"' if told else '')

    return '\n'.join([head, *work]) if len(work) > 1 \
        else ' '.join([head, *work])


def bare(text):
    """Returns a text in one line, without a full stop at its end."""

    return ' '.join(text.split()).rstrip('.')


def literal(text, message):
    """Returns a text as a message has it, where it may begin with a capital
    or be without its mark."""

    forms = [f for t in (text + '?', text, text.rstrip('?.!')) for f in (
        t, capital(t), t[:1].lower() + t[1:])]

    return next((f for f in forms if f in message), text)


def sentence_with(value, text):
    """Returns the sentence of a text that has a value."""

    return next((s for s in re.split(r'(?<=[.!?]) ', text)
                 if states(s, value)), text)


# ----------------------------------------------------------------- wordings

# after "#" they are nouns, after "^" what one tells

def divided(text):
    """Returns the Split of texts between " ~ ", in lines."""

    return Split(t.replace('\\n', '\n')
                 for t in re.split(r'\n| ~ ', text))


WORDINGS = '''
= plus
[what's|what is] {a} plus {b}? ~ [what's|what is|how much is] {a} + {b}? ~ how much is {a} plus {b}? ~ how much [is|are] {a} and {b} [together|in total|altogether]? ~ [add|please add] {a} and {b}. ~ add {b} to {a}. ~ {a} + {b}?
{a} plus {b}? ~ what do you get if you add {a} and {b}? ~ [work out|calculate|compute] {a} plus {b}. ~ [work out|calculate|compute] {a} + {b}. ~ [tell me|give me|find] the sum of {a} and {b}. ~ what's the sum of {a} and {b}?
if I have {a} {g} and get {b} more, how many do I have? ~ how many {g} are {a} {g} and {b} {g}? ~ what does {a} plus {b} [make|give]? ~ put {a} and {b} together, what do you get? ~ {a} and {b} make how many?
[can|could] you add {a} and {b}[ for me|]? ~ what number is {b} more than {a}? ~ increase {a} by {b}. ~ what's {a} and {b} added up? ~ [can|could] you tell me what {a} + {b} is?
# the sum of {a} and {b} ~ {a} plus {b} ~ {a} + {b} ~ the result of {a} + {b}
^ what {a} plus {b} is ~ how much {a} and {b} make
= minus
what is {a} - {b}? ~ [what's|what is] {a} minus {b}? ~ how much is {a} minus {b}? ~ how much is {a} take away {b}? ~ take {b} from {a}. ~ [take|please take] {b} away from {a}. ~ subtract {b} from {a}. ~ {a} - {b}? ~ {a} minus {b}?
how many are left if you take {b} from {a}? ~ [work out|calculate|compute] {a} minus {b}. ~ [work out|calculate|compute] {a} - {b}. ~ [tell me|give me|find] the difference between {a} and {b}.
what's the difference between {a} and {b}? ~ if I have {a} {g} and give away {b}, how many are left? ~ what remains of {a} after taking away {b}? ~ what do you get if you subtract {b} from {a}? ~ what does {a} minus {b} [make|give]?
[can|could] you take {b} from {a}[ for me|]? ~ what number is {b} less than {a}? ~ decrease {a} by {b}. ~ of {a} {g} I lose {b}, how many are still there?
# the difference between {a} and {b} ~ {a} minus {b} ~ {a} - {b} ~ the result of {a} - {b}
^ what {a} minus {b} is ~ what is left when you take {b} from {a}
= times
what is {a} x {b}? ~ [what's|what is] {a} times {b}? ~ how much is {a} times {b}? ~ what is {a} * {b}? ~ [multiply|please multiply] {a} by {b}. ~ multiply {a} and {b}. ~ {a} x {b}? ~ {a} times {b}.
what do {a} boxes with {b} {g} each make? ~ how many {g} are in {a} bags with {b} in each? ~ [work out|calculate|compute] {a} times {b}. ~ [tell me|give me|find] the product of {a} and {b}. ~ what's the product of {a} and {b}?
if {a} people get {b} {g} each, how many is that? ~ what do {a} tickets at {b} euros each cost? ~ what does {a} times {b} [make|give]? ~ [can|could] you multiply {a} by {b}[ for me|]? ~ what do you get if you take {a} times {b}?
{a} rows of {b} chairs are how many chairs? ~ how many is {a} lots of {b}?
# the product of {a} and {b} ~ {a} times {b} ~ {a} x {b}
^ what {a} times {b} is ~ how much {a} times {b} makes
= divided
what is {a} / {b}? ~ what's {a} divided by {b}? ~ [what's|what is|how much is] {a} divided by {b}? ~ [divide|please divide] {a} by {b}. ~ {a} : {b}? ~ {a} / {b}? ~ {a} divided by {b}. ~ how often does {b} go into {a}?
how many times does {b} fit into {a}? ~ if {b} people share {a} {g}, how many does each get? ~ split {a} into {b} equal parts, how big is one? ~ [work out|calculate|compute] {a} divided by {b}.
what do you get if you divide {a} by {b}? ~ [tell me|give me] {a} divided by {b}. ~ [can|could] you divide {a} by {b}[ for me|]? ~ what does {a} divided by {b} [make|give]? ~ {a} {g} in {b} equal bags, how many in each?
# {a} divided by {b} ~ {a} / {b}
^ what {a} divided by {b} is ~ how often {b} goes into {a}
= double
[what's|what is] double {a}? ~ what is twice {a}? ~ how much is {a} doubled? ~ double {a}. ~ [double|please double] the number {a}. ~ what's the double of {a}? ~ {a} doubled? ~ what do you get if you double {a}?
what is two times {a}? ~ how much is twice {a}? ~ give me [double|twice] the number {a}. ~ what is {a} plus the same again? ~ if {a} is doubled, what is it then? ~ twice {a}? ~ [can|could] you double {a}[ for me|]?
what do two bags of {a} {g} make? ~ [work out|tell me] what double {a} is.
# double {a} ~ twice {a} ~ the double of {a} ~ {a} doubled
= half
[what's|what is] half of {a}? ~ what is one half of {a}? ~ halve {a}. ~ how much is half of {a}? ~ {a} cut in half is how much? ~ give me half of {a}. ~ what's the half of {a}? ~ what do you get if you halve {a}?
what is {a} halved? ~ half of {a}? ~ divide {a} by two. ~ two people share {a} {g}, how many does each get? ~ [work out|tell me] what half of {a} is. ~ [can|could] you halve {a}[ for me|]?
half of my {a} {g} are gone, how many is that? ~ what is 50% of {a}?
# half of {a} ~ the half of {a} ~ one half of {a} ~ {a} halved
= next
what number comes after {a}? ~ which number follows {a}? ~ what comes after {a} when you count? ~ name the number after {a}. ~ count on from {a} by one. ~ what's the next number after {a}? ~ tell me the number that follows {a}.
when I count and am at {a}, what's next? ~ which number is one more than {a}? ~ say the number after {a}. ~ what is the number right after {a}? ~ after {a} comes which number? ~ give me the next number after {a}.
# the number after {a} ~ the number that follows {a}
^ which number comes after {a}
= upper
write {w} in [capital letters|capitals|block letters]. ~ [put|please put] the word {w} in capitals. ~ type {w} in all caps. ~ write {w} in upper case. ~ write the word {w} in [capitals|capital letters].
write {w} with capital letters only. ~ make {w} all capitals. ~ how does {w} look in capital letters? ~ {w} in capitals. ~ the word {w} in upper case. ~ {w} in capital letters. ~ can you write {w} in big letters?
turn {w} into capital letters. ~ [give me|show me] {w} in capital letters. ~ convert {w} to uppercase. ~ say {w} in capitals. ~ I need the word {w} in capital letters. ~ make every letter of {w} a capital. ~ what is {w} in capitals?
I'd like to see {w} in capitals. ~ shout the word {w}, all in capitals. ~ use capitals for the word {w}.
# the word {w} in capitals ~ {w} in capital letters ~ {w} in upper case ~ the word {w} in big letters ~ {w} in all caps
= lower
write the word {w} in [small letters|lower case]. ~ write {w} in lower case. ~ [put|please put] the word {w} in small letters. ~ type {w} in lowercase. ~ write {w} with small letters only. ~ make {w} all small letters.
how does {w} look in small letters? ~ {w} in small letters. ~ the word {w} in lower case. ~ {w} in lower case. ~ can you write {w} without capitals? ~ turn {w} into small letters. ~ [give me|show me] {w} in small letters.
convert {w} to lowercase. ~ say {w} in small letters. ~ I need the word {w} in small letters. ~ what is {w} in small letters? ~ I'd like to see {w} in lower case. ~ use small letters for the word {w}.
don't shout, write {w} in small letters.
# the word {w} in small letters ~ {w} in lower case ~ {w} in small letters ~ the word {w} without capitals
= repeat
write the word {w} {times}. ~ say {w} {times}. ~ [repeat|please repeat] the word {w} {times}. ~ {times} the word {w}[, please|]. ~ type {w} {times}[ in a row|]. ~ write {w} {times}. ~ I want to read {w} {times}. ~ print {w} {times}.
[can|could] you write {w} {times}? ~ the word {w} {times}. ~ give me the word {w} {times}. ~ I'd like to see {w} {times}. ~ echo {w} {times}. ~ write {w} down {times}. ~ put {w} into your answer {times}. ~ say the word {w} {times}.
{w}, {times}. ~ let me read the word {w} {times}.
# the word {w} {times} ~ {times} the word {w} ~ {w} {times}
= around
put the word {w} in {q}. ~ put {q} around {w}. ~ write {w} in {q}. ~ [write|please write] the word {w} in {q}. ~ write the word {w} between {q}. ~ enclose {w} in {q}. ~ {w} in {q}. ~ the word {w} with {q} around it. ~ set {w} in {q}.
I need {w} in {q}. ~ [can|could] you put {q} around {w}? ~ place {q} around the word {w}. ~ type {w} inside {q}. ~ add {q} to the word {w}. ~ surround {w} with {q}. ~ how does {w} look in {q}? ~ wrap {w} in {q}.
# the word {w} in {q} ~ {w} in {q} ~ {w} with {q} around it
= say
say {w}. ~ say the word {w}. ~ [write|please write] the word {w}. ~ write {w}. ~ repeat the word {w}. ~ type the word {w}. ~ put the word {w} in your answer. ~ mention the word {w}. ~ [can|could] you say {w}?
I want to read the word {w}. ~ the word {w}, please. ~ echo {w}. ~ give me the word {w}. ~ your answer should have the word {w} in it. ~ use the word {w}. ~ print {w}. ~ copy the word {w}.
# the word {w}
= first
what is the first letter of {w}? ~ [what's|what is] the first letter of the word {w}? ~ which letter does {w} begin with? ~ which letter does {w} start with? ~ tell me the first letter of {w}. ~ give me the first letter of {w}.
name the letter that {w} begins with. ~ with what letter does {w} begin? ~ write the first letter of {w}. ~ the first letter of {w}? ~ what does {w} start with? ~ which letter comes first in {w}? ~ say the first letter of {w}.
how does the word {w} begin, with which letter? ~ [can|could] you name the first letter of {w}?
# the first letter of {w} ~ the letter that {w} begins with ~ the first letter of the word {w} ~ the letter at the beginning of {w}
= last
what is the last letter of {w}? ~ [what's|what is] the last letter of the word {w}? ~ which letter does {w} end with? ~ which letter is at the end of {w}? ~ tell me the last letter of {w}. ~ give me the last letter of {w}.
name the letter that {w} ends with. ~ with what letter does {w} end? ~ write the last letter of {w}. ~ the last letter of {w}? ~ what does {w} end with? ~ which letter comes last in {w}? ~ say the last letter of {w}.
what is the final letter of {w}? ~ [can|could] you name the last letter of {w}?
# the last letter of {w} ~ the letter that {w} ends with ~ the last letter of the word {w} ~ the letter at the end of {w}
= letters
how many letters does {w} have? ~ how many letters are in {w}? ~ how many letters are in the word {w}? ~ count the letters of {w}. ~ count the letters in {w}. ~ how long is the word {w}? ~ how many letters has the word {w} got?
tell me how many letters {w} has. ~ what is the number of letters in {w}? ~ how many letters do I need for {w}? ~ the number of letters in {w}? ~ of how many letters does {w} consist? ~ [can|could] you count the letters in {w}?
{w} has how many letters?
# the number of letters in {w} ~ the length of the word {w}
^ how many letters {w} has ~ how many letters are in {w}
= back
write {w} backwards. ~ spell {w} backwards. ~ write the word {w} backwards. ~ reverse the word {w}. ~ reverse {w}. ~ what is {w} backwards? ~ how do you spell {w} backwards? ~ turn the letters of {w} around. ~ {w} backwards.
say {w} backwards. ~ [can|could] you write {w} backwards? ~ write {w} from right to left. ~ read {w} from its end. ~ how does {w} read from right to left?
# the word {w} backwards ~ {w} backwards ~ {w} from right to left
= opposite
what is the opposite of {w}? ~ [what's|what is] the opposite of {w}? ~ name the opposite of {w}. ~ the opposite of {w}. ~ tell me the opposite of {w}. ~ which word is the opposite of {w}? ~ what's the contrary of {w}?
give me the opposite of {w}. ~ what do you call the opposite of {w}? ~ I need the opposite of {w}. ~ say the opposite of {w}. ~ which word means the opposite of {w}? ~ how do you say the opposite of {w}?
what word is opposite to {w}? ~ [can|could] you name the opposite of {w}?
# the opposite of {w} ~ the contrary of {w} ~ the word that means the opposite of {w}
= after
what day comes after {w}? ~ which day follows {w}? ~ name the day after {w}. ~ what day [comes after|is after|follows] {w}? ~ [what's|what is] the day after {w}? ~ the day after {w}? ~ tell me which day comes after {w}.
if today is {w}, what day is tomorrow? ~ what comes after {w}? ~ give me the day after {w}. ~ say the day that follows {w}. ~ after {w} comes which day? ~ it's {w}, so what's tomorrow? ~ which day is one day later than {w}?
[can|could] you tell me the day after {w}?
# the day after {w} ~ the day that follows {w}
^ which day comes after {w}
= before
what day comes before {w}? ~ which day is before {w}? ~ what's the day before {w}? ~ name the day before {w}. ~ the day before {w}? ~ tell me which day comes before {w}. ~ if today is {w}, what day was yesterday?
what comes before {w}? ~ give me the day before {w}. ~ say the day that comes before {w}. ~ before {w} comes which day? ~ it's {w}, so what was yesterday? ~ which day is one day earlier than {w}?
[can|could] you tell me the day before {w}?
# the day before {w}
^ which day comes before {w}
= color
what color is {w}? ~ which color does {w} have? ~ what's the color of {w}? ~ tell me the color of {w}. ~ name the color of {w}. ~ in what color do you see {w}? ~ {w} has what color? ~ what color would you paint {w}?
give me the color of {w}. ~ [can|could] you say what color {w} is? ~ which color is {w}? ~ say the color of {w}. ~ of what color is {w}?
# the color of {w}
^ what color {w} is
= more
which is bigger, {a} or {b}? ~ which number is larger, {a} or {b}? ~ what's more, {a} or {b}? ~ is {a} or {b} the bigger number? ~ [tell me|say] which is larger, {a} or {b}. ~ tell me the larger of {a} and {b}.
which is more, {a} {g} or {b} {g}? ~ pick the higher number: {a} or {b}. ~ {a} or {b}, which is greater? ~ of {a} and {b}, which is the larger one? ~ compare {a} and {b}, which is more? ~ name the bigger one of {a} and {b}.
between {a} and {b}, which is higher? ~ which of {a} and {b} is the largest? ~ what's bigger, {a} or {b}? ~ which one is greater: {a} or {b}? ~ give me the maximum of {a} and {b}.
# the larger one of {a} and {b} ~ the bigger number of {a} and {b}
^ which is more, {a} or {b} ~ whether {a} or {b} is larger
= less
which is smaller, {a} or {b}? ~ which number is lower, {a} or {b}? ~ what's less, {a} or {b}? ~ is {a} or {b} the smaller number? ~ [tell me|say] which is smaller, {a} or {b}. ~ tell me the smaller of {a} and {b}.
pick the lower number: {a} or {b}. ~ {a} or {b}, which is less? ~ of {a} and {b}, which is the smaller one? ~ compare {a} and {b}, which is less? ~ name the smaller one of {a} and {b}. ~ between {a} and {b}, which is lower?
what's smaller, {a} or {b}? ~ which one is less: {a} or {b}? ~ give me the minimum of {a} and {b}.
# the smaller one of {a} and {b} ~ the lower number of {a} and {b}
^ which is less, {a} or {b} ~ whether {a} or {b} is smaller
= count
count these[ for me|]: {list}. ~ count these and give a digit: {list}. ~ how many things are these: {list}? ~ {list}, how many is that? ~ how many words are in this row: {list}? ~ tell me how many things I name here: {list}.
what's the length of this list: {list}? ~ how many items are this: {list}? ~ on my list: {list}, how many things is that? ~ how many entries does this list have: {list}? ~ count the words: {list}.
how many [things|words|items] do you see here: {list}? ~ number of things in this list: {list}? ~ [can|could] you count these: {list}?
# the number of words in "{list}" ~ the number of things in this list ({list})
^ how many things these are ({list})
= nth
what's the {o} thing here: {list}? ~ name the {o} of these: {list}. ~ which word comes {o} here: {list}? ~ tell me the {o} word of this list: {list}. ~ which is the {o} one of these: {list}?
give me the {o} entry of this list: {list}. ~ {list}, what's the {o} one? ~ what comes {o} in this row: {list}? ~ in the list {list}, which one is {o}? ~ pick the {o} of these words: {list}. ~ say the {o} thing of this list: {list}.
here's a row: {list}, what's {o}? ~ from {list} I need the {o} one.
# the {o} word of "{list}" ~ the {o} thing of this list ({list})
= listed
the shopping list says {list} ~ on my list are {list} ~ I packed {list} ~ in the drawer there are {list} ~ we need {list} ~ on the table I see {list} ~ the shop sells {list} ~ my bag has {list} in it ~ today I bought {list}
the box contains {list} ~ I wrote down {list} ~ in the basket there are {list} ~ I found {list} in the attic ~ we ordered {list} ~ here is a list: {list} ~ my list: {list} ~ these are our prizes: {list} ~ for the trip we have {list}
= count it
how many things are in the list? ~ how many things did I name? ~ how many things are there in the list? ~ count the things in the list. ~ count the things that I named. ~ how many things does the list have?
what's the number of things in the list? ~ how many things are listed? ~ [can|could] you count the things in the list? ~ give me the number of things in the list. ~ how many things do I mention?
tell me how many things the list has. ~ how long is the list? ~ how many entries does the list have? ~ how many different things are in the list? ~ count the list.
# the number of things in the list ~ the number of things that I named ~ the length of the list
^ how many things are in the list ~ how many things I named
= nth of it
what's the {o} thing? ~ what's the {o} thing in that list? ~ what's the {o} thing on the list? ~ which one is {o}? ~ name the {o} one. ~ tell me the {o} thing. ~ which thing is {o} in the list? ~ what did I name {o}?
which is the {o} one? ~ what is the {o} entry? ~ say the {o} item. ~ which one did I list {o}? ~ give me the {o} one. ~ read me the {o} item. ~ what comes {o}? ~ what's {o} in that list?
# the {o} thing ~ the {o} one ~ the {o} entry of the list
^ what I named {o}
= wheels
how many {p} do my {k} have[ altogether|]? ~ how many {p} do they have together? ~ what's the number of {p} of all my {k}? ~ count the {p} of my {k}. ~ how many {p} have my {k} got[ in total|]?
altogether, how many {p} do my {k} have? ~ how many {p} do my {k} have[ altogether| together| in total]? ~ how many {p} are there in all? ~ what do the {p} of my {k} add up to? ~ tell me how many {p} my {k} have together.
how many {p} can I count on my {k}? ~ how many {p} is that in total? ~ how many {p} do all my {k} have in all? ~ my {k} have how many {p} in total?
# the number of {p} of my {k}
^ how many {p} my {k} have ~ how many {p} my {k} have altogether
= owned
I own {n} {k} ~ I have {n} {k} ~ I've got {n} {k} ~ I keep {n} {k} ~ I am the owner of {n} {k} ~ {n} {k} belong to me ~ at home I have {n} {k} ~ I got {n} {k} for my birthday ~ I bought {n} {k} last year ~ I take care of my {n} {k}
in my yard I have {n} {k} ~ I am proud of my {n} {k} ~ I've had {n} {k} for years
= unknown
what is the capital of {land}?|| the capital of {land} ~ [what's|which city is] the capital of {land}?|| the capital of {land} ~ what do {beast}s eat?|| what {beast}s eat ~ how long does a {beast} live?|| how long a {beast} lives
where do {beast}s live?|| where {beast}s live ~ what do {beast}s make?|| what {beast}s make ~ how many people live in {land}?|| how many people live in {land} ~ who is the {who} of {land}?|| the {who} of {land}
which language do they speak in {land}?|| the language of {land} ~ what's the highest mountain of {land}?|| the highest mountain of {land} ~ in which country is {town}?|| the country of {town}
how far is it to {town}?|| the way to {town} ~ who invented {made}?|| who invented {made} ~ when was {made} invented?|| when {made} was invented ~ when was {time}?|| when {time} was ~ how far away is {body}?|| how far away {body} is
how big is {body}?|| how big {body} is ~ where does {stuff} come from?|| where {stuff} comes from ~ what's the price of {stuff}?|| the price of {stuff} ~ who is {x} {last}?|| who {x} {last} is
how old is {x} {last}?|| the age of {x} {last} ~ what's the phone number of {x} {last}?|| the phone number of {x} {last} ~ what's the weather like in {city}?|| the weather in {city} ~ what time is it in {city}?|| the time in {city}
who is the mayor of {city}?|| the mayor of {city} ~ who won the match in {city}?|| who won the match in {city} ~ what's in the news today?|| the news ~ who won the game yesterday?|| who won the game
what's the best {p}?|| the best {p} ~ where can I buy a {p}?|| where you can buy a {p} ~ what is on TV tonight?|| what is on TV ~ who wrote the first book about {topic}?|| the first book about {topic}
how deep is the sea near {city}?|| how deep the sea is near {city} ~ when does the next train to {city} leave?|| the trains to {city}
# the capital of {land}|| the capital of {land} ~ the {who} of {land}|| the {who} of {land} ~ the weather in {city}|| the weather in {city} ~ the price of {stuff}|| the price of {stuff}
^ what {beast}s eat|| what {beast}s eat ~ who invented {made}|| who invented {made}
= end
put the word {w} at the end. ~ [put|write] the word {w} at the [very |]end. ~ end with the word {w}. ~ [finish|close] with the word {w}. ~ the last word should be {w}. ~ write {w} at the very end. ~ add {w} at the end.
let your answer end with {w}. ~ make {w} the last word. ~ your answer must end with {w}. ~ as the last word, write {w}. ~ at the end, say {w}. ~ conclude with the word {w}. ~ finish your answer with {w}.
write the word {w} at the end of your answer. ~ put {w} last. ~ at the end, write {w}.
= begin
start with the word {w}. ~ begin your answer with {w}. ~ the first word should be {w}. ~ put the word {w} at the beginning. ~ put {w} at the start. ~ open with the word {w}. ~ let your answer start with {w}.
make {w} the first word. ~ before anything else, write {w}. ~ your answer must begin with {w}. ~ as the first word, write {w}. ~ write {w} at the very beginning. ~ start your answer with {w}. ~ put {w} first.
'''


# how requests are put

ASK, NOUN, TELL = 'ask', 'noun', 'tell'


def blocks(text):
    """Yields the kinds of a text, each with its wordings by mark."""

    for block in ('\n' + text.strip()).split('\n= ')[1:]:
        kind, *lines = block.split('\n')
        found = {}

        for t in lines:
            mark = t[0] if t[0] in '#^.?>' and t[1] == ' ' else ''
            found.setdefault(mark, []).extend(
                t[2 * len(mark):].split(' ~ '))

        yield kind, found


def forms(found):
    """Returns the Splits of the wordings of a kind, by how requests are
    put."""

    nouns = found.get('#', [])

    return {ASK: Split(found['']), **({
        NOUN: Split(nouns), TELL: Split(nouns + found.get('^', []))}
        if nouns else {})}


WORDINGS = {kind: forms(found) for kind, found in blocks(WORDINGS)}


# ----------------------------------------------------- statements about "me"

# ". " are statements, "? " questions whether it is {u}, "> " answers

FACTS = '''
= name
what is my name? ~ [what's|what is] my name? ~ who am I? ~ what am I called? ~ do you know my name? ~ [can|could] you tell me my name? ~ what do people call me? ~ tell me my name. ~ say my name. ~ which name did I give you?
what did I say my name was? ~ what name did I tell you? ~ repeat my name. ~ write my name. ~ by what name do I go? ~ my name is what? ~ what's the name of the person who writes this?
# my name ~ the name I gave you
^ what I am called ~ what my name is
. my name is {v} ~ I'm {v} ~ I am {v} ~ I'm called {v} ~ people call me {v} ~ they call me {v} ~ this is {v} ~ {v} is my name ~ my friends call me {v} ~ you're talking to {v} ~ you can call me {v} ~ the name is {v}
. my parents named me {v} ~ I go by {v} ~ {v} is what people call me ~ everybody calls me {v}
? is my name {u}? ~ am I {u}? ~ am I called {u}? ~ did I say that my name is {u}? ~ do people call me {u}?
> [Your name is|You are|You're] {v}.
= city
where do I live? ~ where is my home? ~ which city is my home? ~ in which city do I live? ~ what's my city? ~ which town do I live in? ~ where am I at home? ~ tell me where I live. ~ do you know where I live? ~ what place did I name?
which city did I mention? ~ what is the name of my town? ~ [can|could] you say where I live? ~ my home is where? ~ where did I say that I live? ~ name the place where I live.
# my city ~ the place where I live ~ the name of my town
^ where I live
. I live in {v} ~ my home is in {v} ~ I have a flat in {v} ~ I've moved to {v} ~ my city is {v} ~ {v} is my home ~ I'm at home in {v} ~ we live in {v} ~ I've lived in {v} for years ~ my address is in {v} ~ I live in {v} now
. my house is in {v} ~ the town I live in is {v} ~ I settled in {v}
? do I live in {u}? ~ is my home in {u}? ~ is {u} my home? ~ did I say that I live in {u}? ~ am I at home in {u}?
> [You live in|Your home is in|Your city is] {v}.
= age
how old am I? ~ [what's|what is] my age? ~ do you know how old I am? ~ tell me my age. ~ how many years old am I? ~ which age did I give? ~ what age am I? ~ [can|could] you say how old I am? ~ how old did I say I am? ~ repeat my age.
say how old I am. ~ what is my age in years? ~ write down my age. ~ my age is what?
# my age ~ the age that I gave
^ how old I am
. I am {v} years old ~ I'm {v} ~ I'm {v} years old ~ my age is {v} ~ I've turned {v} ~ I turned {v} this year ~ I'm a {v}-year-old ~ I'm aged {v} ~ I have just turned {v} ~ {v} is my age ~ I've reached the age of {v}
. today I'm {v} years old ~ I am {v} now
? am I {u} years old? ~ is my age {u}? ~ did I turn {u}? ~ am I {u}? ~ did I say that I'm {u}?
> [You are|You're|Your age is] {v}.
= color
what color is my {t}? ~ which color does my {t} have? ~ my {t} is what color? ~ in what color is my {t}? ~ what's the color of my {t}? ~ tell me the color of my {t}. ~ do you remember the color of my {t}? ~ name the color of my {t}.
[can|could] you say what color my {t} is? ~ which color did I mention? ~ what color did I say my {t} is? ~ say what color my {t} has. ~ the color of my {t} is what?
# the color of my {t}
^ what color my {t} is ~ which color my {t} has
. my {t} is {v} ~ I painted my {t} {v} ~ I have a {v} {t} ~ my {t} has the color {v} ~ the color of my {t} is {v} ~ I bought a {v} {t} ~ I own a {v} {t} ~ my {t} is a {v} one ~ the {t} that I use is {v} ~ I got a {v} {t} as a present
. {v} is the color of my {t} ~ my new {t} is {v}
? is my {t} {u}? ~ do I have a {u} {t}? ~ is {u} the color of my {t}? ~ did I say that my {t} is {u}?
> [Your {t} is|The color is|It is] {v}.
= pet
what is my {t} called? ~ [what's|what is] my {t}'s name? ~ what is the name of my {t}? ~ what do I call my {t}? ~ tell me my {t}'s name. ~ which name does my {t} have? ~ do you know the name of my {t}? ~ what name did I give my {t}?
say the name of my {t}. ~ repeat my {t}'s name. ~ [can|could] you tell me what my {t} is called? ~ what did I name my {t}? ~ my {t} has which name? ~ how is my {t} called?
# the name of my {t} ~ my {t}'s name
^ what my {t} is called
. I have a {t} called {v} ~ my {t} is called {v} ~ my {t}'s name is {v} ~ the name of my {t} is {v} ~ I own a {t} named {v} ~ my {t} {v} is asleep ~ my {t} {v} likes to run ~ I named my {t} {v} ~ {v} is my {t}
. I live with a {t} named {v} ~ I call my {t} {v} ~ my {t} has the name {v} ~ I got a {t} and named it {v}
? is my {t} called {u}? ~ is {u} the name of my {t}? ~ did I name my {t} {u}? ~ does my {t} have the name {u}?
> [Your {t} is called|Its name is|Your {t}'s name is] {v}.
= day
when is the {t}? ~ on which day is the {t}? ~ what day is the {t}? ~ which day is the {t} on? ~ what's the day of the {t}? ~ tell me the day of the {t}. ~ tell me when the {t} is. ~ do you know when the {t} is? ~ the {t} is when?
which day did I say for the {t}? ~ on what weekday is the {t}? ~ name the day of the {t}. ~ when does the {t} take place? ~ say on which day the {t} is. ~ [can|could] you tell me the day of the {t}?
# the day of the {t}
^ when the {t} is ~ on which day the {t} is
. the {t} is on {v} ~ our {t} is on {v} ~ I go to the {t} on {v} ~ the {t} takes place on {v} ~ we meet for the {t} on {v} ~ on {v} there is the {t} ~ on {v} I have the {t} ~ the {t} was moved to {v} ~ they put the {t} on {v}
. the day of the {t} is {v} ~ the {t} will be on {v} ~ we planned the {t} for {v} ~ my calendar has the {t} on {v}
? is the {t} on {u}? ~ does the {t} take place on {u}? ~ is {u} the day of the {t}? ~ do I have the {t} on {u}?
> [It is on|The {t} is on|The day is] {v}.
= number
what number is my {t}? ~ which number does my {t} have? ~ what's the number of my {t}? ~ what's my {t} number? ~ tell me the number of my {t}. ~ which {t} is mine? ~ which {t} did I get? ~ which {t} do I have?
do you know my {t} number? ~ my {t} number was what? ~ what number did I give for my {t}? ~ say my {t} number. ~ repeat the number of my {t}. ~ [can|could] you tell me which number my {t} has? ~ what is the number on my {t}?
# the number of my {t} ~ my {t} number
^ which number my {t} has
. my {t} is number {v} ~ my {t} has the number {v} ~ the number of my {t} is {v} ~ my {t} number is {v} ~ I got {t} number {v} ~ I have {t} number {v} ~ they gave me {t} number {v} ~ {t} number {v} is mine ~ I was given {t} {v}
. on my {t} it says {v} ~ the number on my {t} is {v} ~ I wrote down the number of my {t}, {v}
? is my {t} number {u}? ~ do I have {t} number {u}? ~ is {t} number {u} mine? ~ does my {t} have the number {u}?
> [Your {t} is number|The number is|Your {t} has the number] {v}.
'''

FACTS = {kind: {**forms(found), **{m: Split(found[m]) for m in '.?>'}}
         for kind, found in blocks(FACTS)}

COLORED = Split('''bike car coat hat scarf backpack umbrella sofa door kite
jacket cup sweater bag boat helmet phone pen notebook tent'''.split())
PETS = Split('''dog cat rabbit parrot horse hamster goat turtle pony donkey
canary lizard mouse sheep'''.split())
NUMBERED = Split('''locker|seat|ticket|cabin|desk|parking space|mailbox|team
group|boat|stall|bench'''.replace('\n', '|').split('|'))

# wheels of a bicycle, as many as everybody knows

EACH = Split(tuple(t.split()) for t in '''bicycles wheels 2
cars wheels 4
tricycles wheels 3
dogs legs 4
chickens legs 2
horses legs 4
cats paws 4
spiders legs 8
beetles legs 6
tables legs 4
motorbikes wheels 2
cows legs 4
parrots wings 2
goats legs 4
geese wings 2
donkeys ears 2
ladybirds legs 6'''.splitlines())


# ------------------------------------------------------- which one, and more

# what {x} and {y} are, and the largest number if it is not 99 | statements |
# asks for the larger | for the smaller

PAIRS = '''
people | {x} is {m} and {y} is {n} / my cousin {x} is {m} and my friend {y} is {n} / {x} is {m} years old, {y} is {n} / {x} has turned {m}, {y} {n} | who is older? / which of them is older? / who's the older one? / who was born first? | who is younger? / which of the two is younger? / who's the younger one?
things | the {x} costs {m} euros and the {y} {n} / the {x} is {m} dollars, the {y} is {n} / I can have the {x} for {m} euros or the {y} for {n} / they want {m} euros for the {x} and {n} for the {y} | which one is more expensive? / which one costs more? / for which do I pay more? | which one is cheaper? / what is cheaper? / which one costs less?
things | the {x} is {m} cm long and the {y} {n} cm / the {x} measures {m} cm, the {y} {n} / the {x} has a length of {m} cm and the {y} of {n} cm | which one is longer? / what is longer? / which is the long one? | which one is shorter? / what is shorter?
things | the {x} weighs {m} kilos and the {y} {n} / the {x} has {m} kilos, the {y} {n} / my {x} weighs {m} grams and my {y} {n} | which one is heavier? / what is heavier? / what weighs more? | which one is lighter? / what is lighter? / what weighs less?
people | {x} has {m} points and {y} has {n} / {x} scored {m} and {y} {n} points / in the game {x} got {m} points, {y} {n} | who has more points? / who is ahead? / who is winning? | who has fewer points? / who is behind?
people | {x} ran it in {m} minutes, {y} in {n} / {x} needed {m} minutes and {y} {n} for the race / {x} took {m} minutes and {y} took {n} | who was slower? / who took longer? / who needed more time? | who was faster? / who won the race? / who needed less time?
cities | {x} is {m} km away and {y} {n} / it's {m} km to {x} and {n} to {y} / to {x} we drive {m} km, to {y} {n} | which place is farther away? / what is farther from here? / which way is longer? | which place is closer? / which one is nearer? / which way is shorter?
cities 40 | it's {m} degrees in {x} and {n} in {y} / {x} has {m} degrees, {y} has {n} / today {x} reached {m} degrees and {y} {n} | where is it warmer? / which city is warmer? / where is it hotter? | where is it colder? / which city is colder?
people | {x} read {m} pages and {y} {n} / this week {x} read {m} pages, {y} {n} / {x} is on page {m} of the book, {y} on page {n} | who read more? / who is further in the book? / who has read more pages? | who read less? / who has read fewer pages?
people | {x} saved {m} euros and {y} {n} / {x} has {m} euros in the bank, {y} {n} / {x} owns {m} coins and {y} {n} | who has more? / who is richer? / who has more money? | who has less? / who is poorer?
cities | the bus to {x} leaves in {m} minutes, the one to {y} in {n} / in {m} minutes a train goes to {x}, in {n} one to {y} | which one leaves later? / where does the later one go? | which one leaves first? / where does the next one go?
people | {x} picked {m} {g} and {y} {n} / {x} has {m} {g}, {y} has {n} / {x} brought {m} {g} and {y} brought {n} | who has more {g}? / who has the most? | who has fewer {g}? / who has less?
people 40 | {x} lives on floor {m} and {y} on floor {n} / {x}'s flat is on floor {m}, {y}'s on floor {n} | who lives higher up? / who has more stairs to climb? | who lives lower down? / who has fewer stairs to climb?
people 40 | {x} has worked here for {m} years and {y} for {n} / {x} joined us {m} years ago, {y} {n} years ago | who has been here longer? / who came first? | who came later? / who is newer here?
things | the {x} holds {m} liters and the {y} {n} / {m} liters fit into the {x}, {n} into the {y} | which one holds more? / what is larger? | which one holds less? / what is smaller?
'''
PAIRS = Split(tuple(p.strip() for p in t.split(' | '))
              for t in PAIRS.strip().splitlines())


def alternatives(text):
    return Split(text.split(' / '))


# ------------------------------------------------------------------- scenes

# statements that belong together; then the questions for a field of them, the
# questions whether it is {u}, and the answer

SCENES = '''
my bus is number {n} / it goes at {time} from {street}
n : what number is my bus? / which bus do I take? / what's the number of my bus? ? do I take bus {u}? > Your bus is number {n}.
time : when does it go? / at what time does my bus go? / what time does it leave? ? does it go at {u}? > It goes at {time}.
street : where does it go from? / from where does my bus go? / which street does it start from? ? does it go from {u}? > It goes from {street}.

we're all going to the {spot} on {day} / {x} drives
day : which day are we going? / when do we go? / on what day is our trip? ? are we going on {u}? > You are going on {day}.
spot : where are we going? / what is our goal? / to which place do we go? ? are we going to the {u}? > You are going to the {spot}.
x : who drives? / who is the driver? / who will drive us? ? does {u} drive? > {x} drives.

the train to {city} leaves at {time} / it goes from platform {n}
city : where does the train go? / to which city do I go? / what's the goal of the train? ? does the train go to {u}? > It goes to {city}.
time : when does the train leave? / what time is my train? / at what time does it leave? ? does it leave at {u}? > It leaves at {time}.
n : which platform is it? / from what platform does it go? / which platform do I need? ? is it platform {u}? > It is platform {n}.

{x} brings the {g} and {y} brings the {h} / we meet at {time}
x : who brings the {g}? / who has the {g}? / from whom do we get the {g}? ? does {u} bring the {g}? > {x} brings the {g}.
h : what does {y} bring? / what do we get from {y}? / what is {y} bringing? ? does {y} bring the {u}? > {y} brings the {h}.
time : when do we meet? / at what time do we meet? / what's the time of our meeting? ? do we meet at {u}? > You meet at {time}.

I parked on level {n} / my ticket is good until {time} / the car is {color}
n : on which level did I park? / where did I park? / which level is my car on? ? did I park on level {u}? > You parked on level {n}.
time : how long is my ticket good? / until when can I park? / when does my ticket end? ? is my ticket good until {u}? > Your ticket is good until {time}.
color : what color is the car? / which color does the car have? / tell me the color of the car. ? is the car {u}? > The car is {color}.

our hotel is in {city} / breakfast starts at {time} / we have {k} nights there
city : where is our hotel? / in which city do we stay? / which city is the hotel in? ? is our hotel in {u}? > It is in {city}.
time : when does breakfast start? / at what time is breakfast? / what time can we eat breakfast? ? does breakfast start at {u}? > It starts at {time}.
k : how many nights do we have? / how many nights are we there? / how long do we stay? ? do we have {u} nights there? > You have {k} nights.

{x} lent me {n} euros / I have to pay it back by {day}
x : who lent me money? / whom do I owe money? / from whom did I get the money? ? did {u} lend me money? > {x} lent you money.
n : how much did I borrow? / how much money do I owe? / how many euros did I get? ? do I owe {u} euros? > It is {n} euros.
day : by when do I have to pay? / by which day must I pay it back? / what's the last day to pay? ? do I have to pay by {u}? > By {day}.

the keys are in the {room} / the {t} is in the {spare}
room : where are the keys? / in which room are the keys? / where do I find the keys? ? are the keys in the {u}? > They are in the {room}.
spare : where is the {t}? / in which room is the {t}? / where do I look for the {t}? ? is the {t} in the {u}? > It is in the {spare}.

my plane lands in {city} at {time} / {x} picks me up
city : where do I land? / in which city does my plane land? / where does the plane go? ? do I land in {u}? > You land in {city}.
time : when do I land? / at what time does my plane land? / what's my time of arrival? ? do I land at {u}? > You land at {time}.
x : who picks me up? / who waits for me? / by whom am I picked up? ? does {u} pick me up? > {x} picks you up.

we ordered {k} pizzas / they come at {time} / {x} pays for them
k : how many pizzas did we order? / how many pizzas do we get? / what's the number of pizzas? ? did we order {u} pizzas? > You ordered {k} pizzas.
time : when do they come? / when do we get the pizzas? / at what time is the food here? ? do they come at {u}? > They come at {time}.
x : who pays? / who pays for the pizzas? / who is paying? ? does {u} pay? > {x} pays.

the code of the gate is {code} / the gate closes at {time}
code : what's the code of the gate? / which code do I need? / what is the code? ? is the code {u}? > The code is {code}.
time : when does the gate close? / at what time does it close? / until when is the gate open? ? does the gate close at {u}? > It closes at {time}.

the class is in hall {n} / it starts at {time} / {x} is the teacher
n : which hall is the class in? / in what hall is the class? / which hall do I have to find? ? is the class in hall {u}? > It is in hall {n}.
time : when does the class start? / at what time is the class? / what time does it start? ? does the class start at {u}? > It starts at {time}.
x : who is the teacher? / who teaches the class? / what's the name of the teacher? ? is {u} the teacher? > {x} is the teacher.

{x} plays the {tool} and {y} plays the {other} / they play on {day}
tool : what does {x} play? / which instrument does {x} play? / what's the instrument of {x}? ? does {x} play the {u}? > {x} plays the {tool}.
y : who plays the {other}? / who is at the {other}? / whose instrument is the {other}? ? does {u} play the {other}? > {y} plays the {other}.
day : when do they play? / on which day do they play? / what's the day of the concert? ? do they play on {u}? > They play on {day}.

the museum is closed on {day} / a ticket costs {n} euros / it opens at {time}
day : when is the museum closed? / on which day is it closed? / which day is the wrong one for the museum? ? is it closed on {u}? > It is closed on {day}.
n : what does a ticket cost? / how much is a ticket? / what's the price of a ticket? ? does a ticket cost {u} euros? > A ticket costs {n} euros.
time : when does it open? / when does the museum open? / from when is it open? ? does it open at {u}? > It opens at {time}.

{x} lives in {city} and {y} lives in {place}
city : where does {x} live? / in which city does {x} live? / what's the home of {x}? ? does {x} live in {u}? > {x} lives in {city}.
y : who lives in {place}? / whom can I visit in {place}? / who has a home in {place}? ? does {u} live in {place}? > {y} lives in {place}.

{x} is on holiday until {day} / {y} is in charge now
day : until when is {x} on holiday? / how long is {x} away? / until which day is {x} gone? ? is {x} away until {u}? > Until {day}.
y : who is in charge? / who is in charge now? / whom do I ask now? ? is {u} in charge? > {y} is in charge.

the cat sleeps in the {room} / the dog sleeps in the {spare}
room : where does the cat sleep? / in which room is the cat? / where is the cat's place? ? does the cat sleep in the {u}? > In the {room}.
spare : where does the dog sleep? / in which room is the dog? / where is the dog's place? ? does the dog sleep in the {u}? > In the {spare}.

my lucky number is {n} / my favorite color is {color} / my best day is {day}
n : what's my lucky number? / which number brings me luck? / tell me my lucky number. ? is my lucky number {u}? > Your lucky number is {n}.
color : what's my favorite color? / which color do I like best? / tell me my favorite color. ? is my favorite color {u}? > Your favorite color is {color}.
day : what's my best day? / which day is my best one? / tell me my best day. ? is {u} my best day? > Your best day is {day}.

I work in {street} / I start at {time} / my boss is called {x}
street : where do I work? / in which street do I work? / where is my work? ? do I work in {u}? > You work in {street}.
time : when do I start? / at what time do I start work? / when does my work begin? ? do I start at {u}? > You start at {time}.
x : what's my boss called? / who is my boss? / what's the name of my boss? ? is my boss called {u}? > Your boss is called {x}.

we have {k} tickets for {day} / {x} has them
k : how many tickets do we have? / how many tickets are there? / what's the number of tickets? ? do we have {u} tickets? > You have {k} tickets.
day : for which day are the tickets? / what day are they for? / when can we use the tickets? ? are the tickets for {u}? > They are for {day}.
x : who has the tickets? / where are the tickets, with whom? / who keeps the tickets? ? does {u} have the tickets? > {x} has them.

I bought {n} {g} / I got them from {x} / they were {color}
n : how many {g} did I buy? / how many {g} do I have? / what's the number of {g}? ? did I buy {u} {g}? > You bought {n} {g}.
x : from whom did I get them? / who sold me the {g}? / who gave me the {g}? ? did I get them from {u}? > You got them from {x}.
color : what color were they? / which color did the {g} have? / tell me the color of the {g}. ? were they {u}? > They were {color}.

the parcel is for {x} / it weighs {n} kilos / it comes on {day}
x : who is the parcel for? / whom is the parcel for? / who gets the parcel? ? is the parcel for {u}? > It is for {x}.
n : how heavy is the parcel? / how much does it weigh? / how many kilos does it have? ? does it weigh {u} kilos? > It weighs {n} kilos.
day : when does the parcel come? / on which day does it come? / what day is it here? ? does it come on {u}? > It comes on {day}.

{x} turned {n} on {day} / we gave {x} a {t}
n : how old is {x} now? / what's the age of {x}? / how old did {x} turn? ? did {x} turn {u}? > {x} is {n} now.
day : when was the birthday? / on which day was the birthday? / what day was the birthday? ? was the birthday on {u}? > It was on {day}.
t : what did we give {x}? / what was our present? / which present did {x} get? ? did we give {x} a {u}? > You gave {x} a {t}.

my sister lives in {city} / she is called {x} / she has {k} children
city : where does my sister live? / in which city is my sister? / what's my sister's city? ? does my sister live in {u}? > She lives in {city}.
x : what's my sister's name? / what is my sister called? / who is my sister? ? is my sister called {u}? > She is called {x}.
k : how many children does she have? / how many children does my sister have? / what's the number of her children? ? does she have {u} children? > She has {k} children.

my brother is called {x} / he works in {city} / he has a {color} car
x : what's my brother's name? / what is my brother called? / who is my brother? ? is my brother called {u}? > He is called {x}.
city : where does my brother work? / in which city does he work? / what city does he go to for work? ? does he work in {u}? > He works in {city}.
color : what color is my brother's car? / which color does his car have? / what's the color of his car? ? is his car {u}? > His car is {color}.

the shop in {street} opens at {time} / it is closed on {day}
street : where is the shop? / in which street is the shop? / what street do I go to? ? is the shop in {u}? > It is in {street}.
time : when does the shop open? / at what time does it open? / from when can I shop? ? does the shop open at {u}? > It opens at {time}.
day : when is it closed? / on which day is the shop closed? / what day is it closed? ? is it closed on {u}? > It is closed on {day}.

on {day} I cook for {k} people / {x} makes the cake
day : when do I cook? / on which day do I cook? / what day is the dinner? ? do I cook on {u}? > You cook on {day}.
k : for how many people do I cook? / how many people come to eat? / how many people do I feed? ? do I cook for {u} people? > For {k} people.
x : who makes the cake? / who is baking? / from whom is the cake? ? does {u} make the cake? > {x} makes the cake.

the team of {city} won {k} to {few} / {x} shot the last goal
city : who won? / which team won? / what team was better? ? did {u} win? > {city} won.
x : who shot the last goal? / by whom was the last goal? / whose goal was the last one? ? did {u} shoot the last goal? > {x} shot it.
k : how many goals did the winners shoot? / how many goals had the better team? / what's the number of goals of the winners? ? did the winners shoot {u} goals? > They shot {k} goals.
'''


@dataclass(frozen=True)
class Scene:
    told: tuple
    asks: tuple


def scenes(text):
    found = []

    for block in text.strip().split('\n\n'):
        told, *rows = block.split('\n')
        asks = []

        for row in rows:
            key, rest = row.split(' : ', 1)
            rest, answer = rest.rsplit(' > ', 1)
            rest, whether = rest.rsplit(' ? ', 1)
            asks.append((key, alternatives(rest), whether, answer))

        found.append(Scene(tuple(told.split(' / ')), tuple(asks)))

    return Split(found)


SCENES = scenes(SCENES)

SPOTS = Split('''lake museum beach zoo theater mountains market harbor castle
forest stadium river cinema farm island library park pool'''.split())
TOOLS = Split('''violin flute drums trumpet harp piano guitar cello organ oboe
clarinet banjo saxophone trombone tuba horn'''.split())


# ------------------------------------------------------------------ layouts

# of two requests

TWO = divided(r'''{A} {B} ~ {A} [And|Also,|Then] {b} ~ {A} And {b} ~ {A} And please, {b} ~ {A} Also, {b} ~ {A} [Also:|Plus:|Then:|Next:] {B} ~ {A} Then {b} ~ {A} After that, {b} ~ {A} [Oh, and|Oh and|oh, and] {b} ~ {A} By the way, {b}
{A} Oh, by the way: {b} ~ {A} One more: {B} ~ {A} One more thing: {b} ~ {A} And one more thing, {b} ~ {A} [Second:|Besides,|In addition,] {b} ~ {A} ...and {b} ~ {A} [And then|And now|And finally|And also], {b}
{A} [While you're at it|When you're done|While we're at it], {b} ~ {A} Something else: {b} ~ {A} [PS|P.S.] {B} ~ {A} ({B}) ~ {A} Don't forget the second part: {b} ~ {A} That's one. {B} ~ {A} That was the first. {B}
{A} My second [request|wish|thing] is this: {b} ~ {A} Last thing: {b} ~ {A} I also need this: {b} ~ {A} Same message, other topic: {b} ~ {A} Still open: {b} ~ {Ax}[,|] and {b} ~ {Ax}[, and| and|, and also] {b}
{Ax} and {b} ~ {Ax} and also {b} ~ {Ax}, and by the way, {b} ~ {Ax} and by the way {b} ~ {Ax}, then {b} ~ {Ax} and then {b} ~ {Ax} - and {b} ~ {Ax} - {b} ~ {Ax}, plus this: {b} ~ {Ax}; {b} ~ {Ax}; and {b} ~ {Ax} / {b}
{Ax} // {b} ~ {Ax}, {b} ~ {Ax} & {b} ~ {Ax}, oh and {b} ~ {Ax}, and while you're at it, {b} ~ {Ax} and, if you can, {b} ~ {Ax} and after that {b} ~ {Ax}, and finally {b} ~ {Ax}, as well as this: {b}
{Ax} ... {b} ~ {A} ... {B} ~ [Two things|Two quick things|Just two things]: {ax}, and {b} ~ [Two things|Two little things|2 things]: {ax}; {b} ~ Two [little |]things: {ax}[ and|, and|;] {b}
[Two things for you|I have two things]. {A} {B} ~ [Two things, please|Two jobs for you|Two small tasks]. {A} {B} ~ [Quick ones|Two quick ones|quick ones]: {ax}, {b} ~ [Quick ones|Two quick ones|quick ones]: {ax} / {b}
[A quick one|Quick one]: {a} And another: {b} ~ First, {a} Second, {b} ~ First: {A} Second: {B} ~ First, {a} Then, {b} ~ First, {a} Last, {b} ~ To begin with, {a} And after that, {b} ~ Task one: {A} Task two: {B}
Task 1: {ax}\nTask 2: {bx} ~ [Please do both|I need both|Both of these, please]: {ax}, and {b} ~ [Answer both, please|Please answer both|Don't skip one]. {A} {B} ~ In this order: {ax}, {b}
[A little help, please|Help me with this|I need help]: {ax}, and {b} ~ {A}\n{B} ~ {A}[\n|\n\n]{B} ~ {A}\n[Also|Then|Plus]: {B} ~ {A}\nAnd {b} ~ {A}\n\nAlso: {B} ~ {A}\n---\n{B} ~ {ax}\n{bx} ~ [OK so|ok so|So], {a} And {b}
This and that: {ax}, {b} ~ [My son|My daughter|My neighbor] asks: {A} And I ask: {B} ~ [Two questions|Two quick questions|I have two questions]: {ax}, and {b} ~ [Two questions|2 questions]. {A} {B}
Question one: {A} Question two: {B} ~ {A} And another question: {b} ~ {A} My other question is this: {b} ~ [I ask you this|My question]: {a} And this: {b} ~ Before I forget it: {a} And {b} ~ Not much today: {ax} and {b}
{A} [Thanks.|OK.|Good.] And now {b} ~ {A} [Are you still there?|Ready for more?] {B}''')

THREE = divided(r'''{A} {B} {C} ~ {A} {B} And {c} ~ {A} And {b} And {c} ~ {A} Also, {b} And finally, {c} ~ {A} Then {b} Then {c} ~ {A} Next: {B} Last: {C} ~ {A} Oh, and {b} And {c} ~ {A} Plus: {B} Plus: {C}
{A} By the way, {b} And one more: {c} ~ {A} One more: {B} And another one: {c} ~ {A} {B} One last thing: {c} ~ {A} {B} Then {c} ~ {A} {B} By the way, {c} ~ {A} {B} Oh, and {c} ~ {A} {B} And at the end, {c} ~ {A} {B} ({C})
{A} ({B}) {C} ~ {A} After that, {b} After that, {c} ~ {A} Besides, {b} And also, {c} ~ {A} That's one. {B} That's two. {C} ~ {A} ... {B} ... {C} ~ {A} Something else: {b} And something else again: {c} ~ {Ax}, {bx}, and {c}
{Ax}, {bx}[,|] and {c} ~ {Ax}, {bx}[, and| and|, and also] {c} ~ {Ax} and {bx} and {c} ~ {Ax}, then {bx}, then {c} ~ {Ax}, then {bx} and then {c} ~ {Ax}; {bx}; {c} ~ {Ax}; {bx}; and {c} ~ {Ax} / {bx} / {c} ~ {Ax}, {bx}, {c}
{Ax} - {bx} - {c} ~ {Ax} & {bx} & {c} ~ {Ax}, and {bx}, and by the way, {c} ~ {Ax}, also {bx}, and {c} ~ {Ax} and then {bx}. {C} ~ {Ax}, and {b} {C} ~ {Ax} and {b} Then {c} ~ {A} And {bx}, and {c} ~ {A} {Bx}, and {c}
{A} Also {bx} and {c} ~ [Three things|Three quick things|Just three things]: {ax}, {bx}, and {c} ~ [Three things|Three little things|3 things]: {ax}; {bx}; {c} ~ Three [little |]things: {ax}, {bx}[ and|, and|,] {c}
[Three things for you|I have three things]. {A} {B} {C} ~ [Three things, please|Three jobs for you|Three small tasks]. {A} {B} {C} ~ [Quick ones|Three quick ones|quick ones]: {ax}, {bx}, {c}
[Quick ones|Three quick ones|quick ones]: {ax} / {bx} / {c} ~ First, {a} Second, {b} Third, {c} ~ First: {A} Second: {B} Last: {C} ~ First, {a} Then, {b} Finally, {c} ~ Task one: {A} Task two: {B} Task three: {C}
[Three questions|Three quick questions|I have three questions]: {ax}, {bx}, and {c} ~ [Three questions|3 questions]. {A} {B} {C} ~ {A} And another question: {b} And a last one: {c}
[Please do all three|I need all three]: {ax}, {bx}, and {c} ~ [Answer all three, please|Don't skip one]. {A} {B} {C} ~ In this order: {ax}, {bx}, {c}
[A little help, please|Help me with this|I need help]: {ax}, {bx}, and {c} ~ {A}\n{B}\n{C} ~ {A}[\n|\n\n]{B}\n{C} ~ {A}\n\n{B}\n\n{C} ~ {A}\n{B}\nAnd {c} ~ {A}\n---\n{B}\n---\n{C} ~ {ax}\n{bx}\n{cx} ~ {A} {B}\n\n{C}
{A}\n\n{B} {C} ~ [OK so|ok so|So], {a} And {b} And {c} ~ Before I forget it: {a} And {b} And {c} ~ Not much today: {ax}, {bx} and {c}''')

# of nouns

NOUNS = {2: divided(r'''[Give me|Write|I need] {ax} and {bx}. ~ [Give me|I'd like] {ax}, and also {bx}. ~ [Please give me|Please write|I'd like] {ax}, then {bx}. ~ [Can|Could] you give me {ax} and {bx}? ~ I need two things: {ax} and {bx}.
I need two things: {ax}, and {bx}. ~ [Two things, please|Wanted|Needed]: {ax}, {bx}. ~ [Two things|Two quick ones|To do]: {ax}; {bx} ~ {Ax} and {bx}[, please|]. ~ {Ax}, and {bx}[, please|]. ~ {Ax}; {bx} ~ {Ax} / {bx}
{Ax}, {bx} ~ {Ax}. {Bx}. ~ {Ax}. And {bx}. ~ {Ax}. Then {bx}. ~ {Ax} as well as {bx}, please. ~ [Say|Write|Name] {ax} and then {bx}. ~ [Write|Put] {ax} first and {bx} second. ~ First {ax}, then {bx}.
First {ax}, last {bx}. ~ I'm looking for {ax} and {bx}. ~ [Please write down|Write down] {ax}. Also {bx}. ~ {Ax}\n{Bx} ~ {ax}\n{bx} ~ {Ax}, by the way also {bx} ~ {Ax}, oh and {bx} ~ [Write|Give me] {ax}. One more: {bx}.'''),
         3: divided(r'''[Give me|Write|I need] {ax}, {bx} and {cx}. ~ [Give me|I'd like] {ax}, {bx}, and also {cx}. ~ [Please give me|Please write|I'd like] {ax}, then {bx}, then {cx}. ~ [Can|Could] you give me {ax}, {bx} and {cx}?
I need three things: {ax}, {bx} and {cx}. ~ [Three things, please|Wanted|Needed]: {ax}, {bx}, {cx}. ~ [Three things|Three quick ones|To do]: {ax}; {bx}; {cx} ~ {Ax}, {bx}, and {cx}[, please|]. ~ {Ax}; {bx}; {cx}
{Ax} / {bx} / {cx} ~ {Ax}, {bx}, {cx} ~ {Ax}. {Bx}. {Cx}. ~ {Ax}. And {bx}. And {cx}. ~ [Say|Write|Name] {ax}, then {bx}, and last {cx}. ~ First {ax}, then {bx}, at the end {cx}. ~ I'm looking for {ax}, {bx} and {cx}.
{Ax}\n{Bx}\n{Cx} ~ {ax}\n{bx}\n{cx} ~ [Write|Give me] {ax} and {bx}. One more: {cx}.''')}

# of what one tells

TELLS = {2: divided(r'''[Tell me|Please tell me] {ax} and {bx}. ~ [Tell me|Please tell me] {ax}, and also {bx}. ~ [Tell me|Please tell me] {ax} and then {bx}. ~ [Can|Could] you tell me {ax} and {bx}?
[Can|Could] you tell me {ax}, and by the way {bx}? ~ [Tell me|Say] two things: {ax} and {bx}. ~ Two things I need to know: {ax}, and {bx}. ~ I want to know {ax} and {bx}. ~ I want to know {ax}, and also {bx}.
I'd like to know {ax} and {bx}. ~ I need to know {ax}, and then {bx}. ~ Do you know {ax} and {bx}? ~ [Say|Please say] {ax} and {bx}. ~ First tell me {ax}, then {bx}. ~ First tell me {ax}. Then tell me {bx}.
Tell me {ax}. Also tell me {bx}. ~ Tell me {ax}. And {bx}. ~ Please tell me {ax} as well as {bx}. ~ Find out {ax} and {bx}. ~ [Hm, tell|Well, tell] me {ax}, oh, and {bx}. ~ Let me know {ax} and {bx}.'''),
         3: divided(r'''[Tell me|Please tell me] {ax}, {bx} and {cx}. ~ [Tell me|Please tell me] {ax}, then {bx}, and then {cx}. ~ [Can|Could] you tell me {ax}, {bx} and {cx}? ~ [Tell me|Say] three things: {ax}, {bx} and {cx}.
Three things I need to know: {ax}, {bx}, and {cx}. ~ I want to know {ax}, {bx} and {cx}. ~ I'd like to know {ax}, {bx}, and also {cx}. ~ Do you know {ax}, {bx} and {cx}? ~ First tell me {ax}, then {bx}, and at the end {cx}.
Tell me {ax}. Also tell me {bx}. And {cx}. ~ Let me know {ax}, {bx} and {cx}. ~ Tell me {ax} and {bx}, oh, and {cx}.''')}

FORMS = {ASK: {2: TWO, 3: THREE}, NOUN: NOUNS, TELL: TELLS}

# {list} is the list; {n} is two or three

LISTED = divided(r'''{list} ~ {list} ~ [Some|A few] [things|requests]:\n{list} ~ {n} things:\n{list} ~ {n} things, please:\n{list} ~ My list:\n{list} ~ To do:\n{list} ~ Please do this:\n{list} ~ Please answer[ all of these|]:\n{list}
Can you help me with these?\n{list} ~ Here are my questions:\n{list} ~ {n} questions:\n{list} ~ Questions for you:\n{list} ~ I have {n} little tasks for you.\n{list} ~ Quick ones:\n{list} ~ Quiz!\n{list} ~ Homework:\n{list}
[One by one|One after the other], please:\n{list} ~ For my son:\n{list} ~ My notes:\n\n{list} ~ This is what I need:\n{list} ~ Today's tasks:\n{list} ~ Exercise:\n{list} ~ Answer in the same form, please.\n{list}
Work through this list.\n\n{list} ~ {list}\n[That's it.|That's all.|That is all for now.] ~ {list}\n[All of them, please.|Answer each one.] ~ Short answers, please.\n{list}''')

# numbers and bullets of the first request; those held out are given, so that
# the most common ones are learned

LABELS = Split.given(
    '1) 1) 1. 1. a) a. (a) A) A. i. 1: - - * • Q1: #1 1.) [1] I.'.split()
    + ['1 -', 'Task 1:', 'No. 1:'],
    '(1) i) a: – > A: (i)'.split() + ['Part 1:', 'Nr. 1'])
ROMAN = 'i', 'ii', 'iii'

TAILS = divided(r'''Thanks! ~ Thank you! ~ Thanks in advance. ~ thx ~ Thanks a lot! ~ Many thanks. ~ Cheers! ~ Thank you very much. ~ That's all, thanks. ~ That's it for now. ~ Thanks for your help. ~ I appreciate it. ~ Thank you in advance!
No hurry. ~ Please and thank you. ~ Much appreciated. ~ Kind regards''')


# ------------------------------------------------------------------- pieces


@dataclass
class Piece:
    """
    ask       the request, in small letters, with its mark
    work      the lines that find the answer
    answer    a sentence
    key       the answer alone
    right     text -> whether it has the answer
    told      the statement of the message that it needs, or ''
    wrong     another answer, which is wrong, or ''
    written   whether the work is needed before an answer without reasoning
    place     'first' or 'last' if the answer must be there
    words     those of the request that ask, if they are not all
    """
    ask: str
    work: list
    answer: str
    key: str
    right: Callable[[str], bool]
    told: str = ''
    wrong: str = ''
    written: bool = False
    place: str = ''
    words: str = ''

    def thought(self, user):
        return taken(literal(self.words or self.ask, user), self.work,
                     self.told and literal(self.told, user))


class Hand:
    """How the user of a message types: as it should be, all in small letters,
    or with slips."""

    def __init__(self, rng):
        way = rng.random()
        self.rng = rng
        self.low = way < 0.16
        self.rough = 0.16 <= way < 0.3
        self.plain = rng.choice(("'", "'", ''))

    def __call__(self, template, **fields):
        """Returns a template filled in."""

        text = expand(self.rng, template)

        if self.low:
            text = text.lower().replace("'", self.plain)
        elif self.rough:
            text = rough(self.rng, text)

        return ARTICLE.sub(r'\1n ', text.format(**fields))

    def asked(self, kind, mode, **fields):
        """Returns a wording of a kind filled in."""

        return self(self.rng.choice(WORDINGS[kind][mode]), **fields)

    def begun(self, text):
        """Returns the beginning of a sentence."""

        return text if self.low else capital(text)


def said(*keys):
    """Returns the check that a text has these words."""

    return lambda text: all(states(text, k) for k in keys)


def exactly(word):
    """Returns the check that a text has a word with these capitals."""

    found = re.compile(rf'(?<!\w){re.escape(word)}(?!\w)')

    return lambda text: found.search(text) is not None


def chosen(one, other):
    """Returns the check that a text has one of two, and not the other before
    it."""

    return lambda text: states(text, one) and not states(
        text.lower().partition(one.lower())[0], other)


SUM_SAID = '''{s} is {n}.
{s} makes {n}.
[It is|That is|That makes|It makes] {n}.
[The answer|The result] is {n}.
{n}.'''
SIGNS = {'plus': '+', 'minus': '-', 'times': '*', 'divided': '/',
         'double': '*', 'half': '/'}
SYMBOL = re.compile(r'\} ?[-+*/:x] ?\{')
AS_WORD = 0.12          # numbers that are written as words


def a_sum(rng, hand, mode):
    kind = rng.choice(('plus', 'plus', 'minus', 'times', 'divided', 'double',
                       'half'))
    small = rng.random() < 0.65
    a = rng.randrange(2, 11) if small else rng.randrange(3, 50)
    b = rng.randrange(2, 11) if small else rng.randrange(2, 50)

    if kind in ('times', 'divided', 'half'):
        a, b = rng.randrange(2, 10), rng.randrange(2, 10)

    if kind == 'minus':
        a, b = max(a, b), min(a, b)
        a += 4 * (a == b)

    a, b = {'divided': (a * b, b), 'half': (2 * a, 2)}.get(kind, (a, b))
    b = 2 if kind == 'double' else b
    sign = SIGNS[kind]
    n = arithmetic_work.VALUE[sign](a, b)
    one = sign == '/' or max(a, b) <= 10
    work = [f'{a}{sign}{b}={n}'] if one else arithmetic_work.WRITE[sign](a, b)
    template = rng.choice(WORDINGS[kind][mode])
    words = rng.random() < AS_WORD and not SYMBOL.search(template)
    shown = {k: ONES[v] if words and v <= 12 else v
             for k, v in (('a', a), ('b', b))}
    s = {'divided': f'{a} divided by {b}', 'double': f'double {a}',
         'half': f'half of {a}'}.get(kind, f'{a} {kind} {b}')

    return Piece(hand(template, g=rng.choice(names.GOODS), **shown), work,
                 capital(line(rng, SUM_SAID).format(s=s, n=n)), str(n),
                 said(str(n)), written=len(work) > 1)


def a_next(rng, hand, mode):
    a = rng.randrange(1, 99)
    n = str(a + 1)

    return Piece(hand.asked('next', mode, a=a), [f'{a}+1={n}'], expand(
        rng, f'[{n}.|After {a} comes {n}.|It is {n}.|The next number is {n}.]'
        ), n, said(n))


def word_of(rng):
    """Returns a word or, now and then, a name."""

    while True:
        word = rng.choice(rng.choice((THINGS, names.NOUNS, names.GOODS,
                                      names.FIRST)))

        if word.isalpha() and word.isascii():
            return word


def in_case(rng, hand, mode):
    kind, w = rng.choice(('upper', 'upper', 'lower')), word_of(rng)
    made = w.upper() if kind == 'upper' else w.lower()
    shown = w if kind == 'upper' else w.upper()
    mark = rng.choice(('', '', '', '"'))

    return Piece(hand.asked(kind, mode, w=mark + shown + mark), [made], expand(
        rng, f'[{made}.|{made}|Here it is: {made}.|In '
        f'{"capitals" if kind == "upper" else "small letters"}: {made}.]'),
        made, exactly(made))


def repeated(rng, hand, mode):
    w, n = word_of(rng), rng.randrange(2, 6)
    times = 'twice' if n == 2 and rng.random() < 0.5 else rng.choice(
        (f'{n} times', f'{ONES[n]} times', f'{ONES[n]} times'))
    made = rng.choice((' ', ' ', ', ')).join([w] * n)
    row = re.compile(rf'(?<!\w){w}(?:\W+{w})*(?!\w)', re.IGNORECASE)

    return Piece(hand.asked('repeat', mode, w=w, times=times),
                 [', '.join(f'{i + 1} {w}' for i in range(n))],
                 rng.choice((made, capital(made) + '.', made + '.')), made,
                 lambda text: any(len(re.findall(w, r, re.IGNORECASE)) == n
                                  for r in row.findall(text)))


AROUND = (('quotes', '""'), ('quotation marks', '""'), ('brackets', '()'),
          ('double quotes', '""'), ('parentheses', '()'),
          ('square brackets', '[]'), ('single quotes', "''"))


def around(rng, hand, mode):
    w, (q, (a, b)) = word_of(rng), rng.choice(AROUND)
    made = a + w + b
    forms = [a + w.lower() + b] + [f.format(w.lower()) for f in (
        '“{}”', '‘{}’', "'{}'")] * (q in ('quotes', 'quotation marks'))
    forms += [f'[{w.lower()}]'] * (q == 'brackets')

    return Piece(hand.asked('around', mode, w=w, q=q), [made],
                 rng.choice((made, made + '.', f'Here it is: {made}')), made,
                 lambda text: any(f in text.lower() for f in forms))


def a_saying(rng, hand, mode):
    w = word_of(rng)
    mark = rng.choice(('', '', '"'))

    return Piece(hand.asked('say', mode, w=mark + w + mark), [w], say(
        rng, '[{c}.|{w}|"{w}".|Here is the word: {w}.]', w=w, c=capital(w)),
        w, said(w))


# words whose letters are known

LETTERED = Split(w for w in SPELLED if 3 <= len(w) <= 7 and w.isalpha())


def lettered(rng, most=7):
    while True:
        word = rng.choice(LETTERED)

        if len(word) <= most:
            return word


def spelled(word):
    return '-'.join(word)


def a_letter(rng, hand, mode):
    kind, w, big = rng.choice(('first', 'last')), lettered(rng), \
        rng.random() < 0.3
    letter = w[0] if kind == 'first' else w[-1]

    # "a" and "I" are words, too

    if letter in 'ai':
        return a_letter(rng, hand, mode)

    made = letter.upper() if big else letter

    return Piece(hand.asked(kind, mode, w=w),
                 [f'{spelled(w)} {kind} {letter}'], expand(
                     rng, f'[{made}.|{made}|It is {made}.|The {kind} letter '
                     f'is {made}.|{capital(w)}: {made}.]'), made,
                 said(letter), written=True)


def letter_count(rng, hand, mode):
    w = lettered(rng)
    n = str(len(w))

    return Piece(hand.asked('letters', mode, w=w), [', '.join(
        f'{c} {i + 1}' for i, c in enumerate(w))], expand(
            rng, f'[{n}.|{n} letters.|It has {n} letters.|There are {n} '
            f'letters in {w}.|{capital(w)} has {n} letters.]'), n, said(n),
        written=True)


def backwards(rng, hand, mode):
    w = lettered(rng, 5)
    back = w[::-1]
    found = re.compile(r'(?<!\w)' + '[^a-z]{0,2}'.join(back) + r'(?!\w)',
                       re.IGNORECASE)

    return Piece(hand.asked('back', mode, w=w), [
        f'{spelled(w)} {spelled(back)} {back}'], rng.choice(
            (back, back + '.', f'Backwards it is {back}.')), back,
        lambda text: found.search(text) is not None, written=True)


def an_opposite(rng, hand, mode):
    a, b = rng.sample(rng.choice(OPPOSITES), 2)
    mark = rng.choice(('', '', '"'))

    return Piece(hand.asked('opposite', mode, w=mark + a + mark), [b], expand(
        rng, f'[The opposite of {a} is {b}.|The opposite is {b}.|{capital(b)}.'
        f'|It is "{b}".|{capital(b)} is the opposite of {a}.]'), b, said(b))


def a_day(rng, hand, mode):
    at, kind = rng.randrange(7), rng.choice(('after', 'after', 'before'))
    d, n = DAYS[at], DAYS[(at + (1 if kind == 'after' else -1)) % 7]

    return Piece(hand.asked(kind, mode, w=d), [f'{kind} {d}: {n}'], expand(
        rng, f'[{n}.|It is {n}.|{n} comes {kind} {d}.|The day {kind} {d} is '
        f'{n}.]'), n, said(n))


def a_color(rng, hand, mode):
    w = rng.choice(sorted(COLOR_OF))
    c = COLOR_OF[w]

    return Piece(hand.asked('color', mode, w=w), [c], expand(
        rng, f'[{capital(w)} is {c}.|{capital(c)}.|It is {c}.]'), c, said(c))


def compared(rng, hand, mode):
    kind = rng.choice(('more', 'more', 'less'))
    a, b = rng.sample(range(2, 99), 2)
    one, other = (max(a, b), min(a, b))[::1 if kind == 'more' else -1]
    word = rng.choice(('larger', 'bigger', 'more') if kind == 'more'
                      else ('smaller', 'less'))

    return Piece(hand.asked(kind, mode, a=a, b=b, g=rng.choice(names.GOODS)),
                 [f'{a}{"<" if a < b else ">"}{b} so {one}'], expand(
                     rng, f'[{one}.|It is {one}.|{one} is {word}.|{one} is '
                     f'{word} than {other}.]'), str(one),
                 chosen(str(one), str(other)), wrong=str(other))


NTH = 'first', 'second', 'third', 'fourth', 'fifth'


def items_of(rng, *pools):
    """Returns the entries of a list, and how they are written."""

    items = rng.sample(rng.choice(pools), rng.randint(3, 6))
    comma = ', '.join(items)

    return items, rng.choice((comma, ' and '.join(comma.rsplit(', ', 1))))


def number_of(rng, ask, items):
    """Returns the piece that counts the entries of a list."""

    n = str(len(items))

    return Piece(ask, [numbered(items)], expand(
        rng, f'[{n}.|There are {n}.|That makes {n}.|I count {n}.|{n} things.]'
        ), n, said(n))


def numbered(items):
    return ', '.join(f'{i + 1} {w}' for i, w in enumerate(items))


def place_in(rng, items):
    """Returns the name of a place of a list, and its index."""

    at = rng.randrange(len(items))

    if at == len(items) - 1 and rng.random() < 0.8 or at >= len(NTH):
        return 'last', len(items) - 1

    return NTH[at], at


def entry_of(rng, ask, items, o, at):
    """Returns the piece that names an entry of a list.  An answer may name
    another one, which was asked for too, but not all."""

    w = items[at]

    return Piece(ask, [numbered(items[:at + 1])], expand(
        rng, f'[{capital(w)}.|The {o} one is {w}.|It is {w}.|The {o} thing is '
        f'{w}.]'), w, lambda text: states(text, w) and sum(
            states(text, i) for i in items) <= 2)


def a_count(rng, hand, mode):
    items, shown = items_of(rng, THINGS, names.GOODS)

    return number_of(rng, hand.asked('count', mode, list=shown), items)


def an_entry(rng, hand, mode):
    items, shown = items_of(rng, THINGS, names.GOODS)
    o, at = place_in(rng, items)

    return entry_of(rng, hand.asked('nth', mode, list=shown, o=o), items, o,
                    at)


NOT_KNOWN = '''I [do not|don't] know {x}.
[Sorry,|I'm sorry, but] I [do not|don't] know {x}.
I [can't|cannot] tell you {x}.
{x}: [that|this] I [do not|don't] know.'''


def not_known(rng, hand, mode):
    ask, what = rng.choice(WORDINGS['unknown'][mode]).split('|| ')
    given = dict(x=rng.choice(names.FIRST), last=rng.choice(names.LAST),
                 city=rng.choice(names.PLACES), p=rng.choice(names.PRODUCTS),
                 topic=rng.choice(names.TOPICS), **{
                     k: rng.choice(unknown.SLOTS[k]) for k in (
                         'land', 'town', 'who', 'made', 'time', 'body',
                         'beast', 'stuff')})

    return Piece(hand(ask, **given), ['not known'], capital(
        line(rng, NOT_KNOWN).format(x=what.format(**given))), '',
        lambda text: NEGATIVE.search(text) is not None)


def at_end(rng, hand):
    kind, w = rng.choice(('end', 'end', 'begin')), word_of(rng)
    w = rng.choice((w, w, w.upper(), capital(w)))
    mark = rng.choice(('', '', '"'))
    end = kind == 'end'
    found = re.compile(rf'(?<!\w){w}\W*$' if end else rf'^\W*{w}(?!\w)',
                       re.IGNORECASE)

    return Piece(hand.asked(kind, ASK, w=mark + w + mark), [w],
                 w if rng.random() < 0.5 else f'{w}.', w,
                 lambda text: found.search(text) is not None,
                 place='last' if end else 'first')


ALONE = (a_sum,) * 8 + (in_case,) * 3 + (compared,) * 3 + (
    repeated, repeated, around, a_saying, a_letter, letter_count, backwards,
    an_opposite, an_opposite, a_day, a_day, a_color, a_next, a_count, an_entry,
    not_known, not_known)

DEEDS = in_case, repeated, around, a_saying, backwards, a_count


# --------------------------------------------- pieces about what is told


def value(rng, kind):
    """Returns a value of a field of a statement."""

    pool = {'name': names.FIRST, 'pet': names.FIRST, 'x': names.FIRST,
            'y': names.FIRST, 'city': names.PLACES, 'place': names.PLACES,
            'color': COLORS, 'day': DAYS, 'room': names.ROOMS,
            'spare': names.ROOMS, 'g': names.GOODS, 'h': names.GOODS,
            't': THINGS, 'spot': SPOTS, 'tool': TOOLS, 'other': TOOLS}

    if kind in pool:
        return rng.choice(pool[kind])

    if kind == 'time':
        return clock(rng)

    if kind == 'street':
        return rng.choice(names.LAST) + ' Street'

    low, high = {'age': (9, 90), 'code': (1000, 10000), 'few': (0, 3),
                 'k': (3, 10), 'number': (2, 400)}.get(kind, (3, 60))

    return str(rng.randrange(low, high))


def another(rng, kind, *but):
    """Returns a value that is none of these and not a part of one."""

    while True:
        v = value(rng, kind)

        if not any(states(v, b) or states(b, v) for b in but):
            return v


COMMON = re.compile("^(You're|(It|Its|They|Your?|In|By|For|The|Until|A|She|He)"
                    r'(?=\W))')


def whether(rng, ask, told, v, u, answer):
    """Returns the piece that says whether a value is u."""

    yes = u == v
    short, other = ('Yes', 'No') if yes else ('No', 'Yes')

    return Piece(ask, [f'{v}, so yes' if yes else f'{v}, not {u}, so no'],
                 rng.choice((f'{short}.', f'{short}, '
                             + COMMON.sub(lambda m: m[0].lower(), answer))),
                 short, lambda text: states(text, short)
                 and not states(text, other), told, other)


YES_NO = 0.22           # of the questions about a statement


def facts_about_me(rng, hand, mode):
    """Returns a statement of one fact, and the request for it."""

    kind = rng.choice(sorted(FACTS))
    of, v = FACTS[kind], value(rng, kind)
    t = rng.choice({'color': COLORED, 'pet': PETS, 'day': names.EVENTS}.get(
        kind, NUMBERED))
    given = dict(v=v, t=t)
    told = hand(rng.choice(of['.']), **given)
    answer = say(rng, rng.choice(of['>']), **given)

    if mode == ASK and rng.random() < YES_NO:
        u = v if rng.random() < 0.5 else another(rng, kind, v)

        return [told], [whether(rng, hand(rng.choice(of['?']), u=u,
                                          **given), told, v, u, answer)]

    ask = hand(rng.choice(of[mode]), **given)

    return [told], [Piece(ask, [v], answer, v, said(v), told)]


def owned(rng, hand, mode):
    """Returns a statement of a number of animals or the like, and the request
    for the number of their legs."""

    (k, p, each), n = rng.choice(EACH), rng.randrange(2, 10)
    total = str(n * int(each))
    told = hand(rng.choice(WORDINGS['owned'][ASK]), n=n, k=k)

    return [told], [Piece(
        hand.asked('wheels', mode, k=k, p=p),
        [f'{each} {p} each {n}*{each}={total}'],
        say(rng, f'[{total}.|{total} {p}.|They have {total} {p}.|That makes '
            f'{total} {p}.]'), total, said(total), told)]


def pair(rng, hand, mode):
    """Returns a statement about two, and the request which has more."""

    head, told, more, less = rng.choice(PAIRS)
    what, *most = head.split()
    asks, sign = rng.choice(((more, '>'), (less, '<')))
    x, y = rng.sample({'people': names.FIRST, 'things': THINGS,
                       'cities': names.PLACES}[what], 2)
    m, n = rng.sample(range(2, int(*most or [99])), 2)
    given = dict(x=x, y=y, m=m, n=n, g=rng.choice(names.GOODS))
    told = hand(rng.choice(alternatives(told)), **given)
    one, other = (x, y) if (m > n) == (sign == '>') else (y, x)
    the = 'the ' if what == 'things' else ''

    return [told], [Piece(
        hand(rng.choice(alternatives(asks)), **given),
        [f'{m}{"<" if m < n else ">"}{n} so {one}'], capital(expand(
            rng, f'[{the}{one}.|It is {the}{one}.|My answer is {the}{one}.|'
            f'{the}{one}, not {the}{other}.]')), one, chosen(one, other), told,
        other)] if mode == ASK else []


def scene(rng, hand, mode):
    """Returns statements that belong together, and the requests for their
    facts."""

    chosen_scene = rng.choice(SCENES)
    fields = set(re.findall(r'\{(\w+)\}', ' '.join(chosen_scene.told)))
    given = {}

    for f in sorted(fields):
        given[f] = another(rng, f, *given.values())

    told = [hand(t, **given) for t in chosen_scene.told]
    pieces = []

    for key, asks, yes_no, answer in chosen_scene.asks:
        v, answer = given[key], say(rng, answer, **given)
        fact = next(t for t, form in zip(told, chosen_scene.told)
                    if f'{{{key}}}' in form)

        if rng.random() < YES_NO:
            u = v if rng.random() < 0.5 \
                else another(rng, key, *given.values())
            pieces.append(whether(rng, hand(yes_no, u=u, **given), fact, v, u,
                                  answer))
        else:
            pieces.append(Piece(hand(rng.choice(asks), **given), [v], answer,
                                v, said(v), fact))

    return told, pieces if mode == ASK else []


def a_list(rng, hand, mode):
    """Returns a statement with a list, and requests about it."""

    items, shown = items_of(rng, names.GOODS)
    told = hand.asked('listed', ASK, list=shown)
    pieces = [number_of(rng, hand.asked('count it', mode), items)]

    for o, at in dict.fromkeys((place_in(rng, items), place_in(rng, items))):
        pieces.append(entry_of(rng, hand.asked('nth of it', mode, o=o), items,
                               o, at))

    return [told], pieces


def with_fact(rng, hand):
    """Returns a request that begins with the fact that it needs."""

    maker = rng.choice((facts_about_me, owned, pair, pair, pair))
    (told,), (p,) = maker(rng, hand, ASK)
    p.words, p.ask = p.ask, f'{told}, {p.ask}'

    return p


def twice_about(rng, hand):
    """Returns two requests about a list, which is in the first one."""

    items, shown = items_of(rng, THINGS, names.GOODS)
    (o, at), (other, there) = place_in(rng, items), place_in(rng, items)

    if rng.random() < 0.5:
        return [number_of(rng, hand.asked('count', ASK, list=shown), items),
                entry_of(rng, hand.asked('nth of it', ASK, o=o), items, o, at)]

    if rng.random() < 0.5 or at == there:
        return [entry_of(rng, hand.asked('nth', ASK, list=shown, o=o), items,
                         o, at),
                number_of(rng, hand.asked('count it', ASK), items)]

    return [entry_of(rng, hand.asked('nth', ASK, list=shown, o=o), items, o,
                     at),
            entry_of(rng, hand.asked('nth of it', ASK, o=other), items, other,
                     there)]


SOURCES = (facts_about_me,) * 4 + (owned, pair, pair, scene, scene, scene,
                                   a_list, a_list)


def told_pieces(rng, hand, mode, n):
    """Returns statements, and n requests about them."""

    while True:
        makers = rng.sample(SOURCES, rng.choice((1, 1, 2, 2, 3)))
        made = [m(rng, hand, mode) for m in dict.fromkeys(makers)]
        pieces = [p for _, found in made for p in found]

        if len(pieces) >= n:
            told = [t for statements, _ in made for t in statements]
            at = sorted(rng.sample(range(len(pieces)), n))

            return told, [pieces[i] for i in at]


def sentences(rng, hand, told):
    """Returns the text of statements, some of them joined."""

    out, told = [], list(told)

    while told:
        text = told.pop(0)

        if told and rng.random() < 0.4 and not any(
                re.search(' and |:|,', t) for t in (text, told[0])):
            text += rng.choice((' and ', ', and ')) + told.pop(0)

        out.append(hand.begun(text) + '.')

    return ' '.join(out)


# ------------------------------------------------------------------ messages


def mixed(pieces):
    """Returns true if the answer of a piece has or seems to have the answer
    of another."""

    for p in pieces:
        for q in pieces:
            if p is q:
                continue

            text = '\n'.join([q.answer, *q.work])

            if p.ask == q.ask \
                    or p.key and states(f'{text}\n{q.ask}', p.key) \
                    or p.wrong and states(text, p.wrong) \
                    or q.key and not p.key and NEGATIVE.search(text):
                return True

    return False


def drawn(rng, hand, mode, n):
    """Returns statements, or none, and n requests in their order."""

    while True:
        told, pieces, way = [], [], rng.random()

        if way < 0.5:
            told, pieces = told_pieces(rng, hand, mode, rng.randint(1, n))
        elif way < 0.56 and mode == ASK:
            pieces = twice_about(rng, hand)

        pool = ALONE if mode != TELL else [m for m in ALONE if m not in DEEDS]
        free = [m(rng, hand, mode)
                for m in rng.sample(pool, n - len(pieces))]

        if mode == ASK and free and rng.random() < 0.15:
            free[-1] = at_end(rng, hand)
        elif mode == ASK and free and rng.random() < 0.12:
            free[0] = with_fact(rng, hand)

        pieces = free + pieces if rng.random() < 0.25 else pieces + free

        if way > 0.56 or way < 0.5 and rng.random() < 0.4:
            rng.shuffle(pieces)

        pieces.sort(key=lambda p: p.place == 'last')

        # work that must be written before the answer would come before a word
        # that must be the first

        if mixed(pieces) or any(p.place == 'first' for p in pieces) \
                and any(p.written for p in pieces):
            continue

        return told, pieces


def label(style, i):
    """Returns the i-th number of a list, or its bullet."""

    return re.sub(r'1|(?<![A-Za-z])([aAiI])(?![A-Za-z])', lambda m: {
        '1': str(i + 1), 'a': 'abc'[i], 'A': 'ABC'[i], 'i': ROMAN[i],
        'I': ROMAN[i].upper()}[m[0]], style)


def placed(rng, hand, form, pieces, labels=()):
    """Returns the text of a layout with the requests."""

    given = {}

    for letter, p in zip('abc', pieces):
        small, bare_ask = p.ask, p.ask.rstrip('?.')
        given[letter], given[letter + 'x'] = small, bare_ask
        given[letter.upper()] = capital(small)
        given[letter.upper() + 'x'] = capital(bare_ask)

    for letter, text in zip('abc', labels):
        given['l' + letter] = text

    return hand(form, **given)


QUESTION = re.compile(r'\basks?\b|question|quiz|answer', re.IGNORECASE)


def form_for(rng, forms_of, pieces):
    """Returns a layout; one of questions only if all are questions."""

    while True:
        form = rng.choice(forms_of)

        if not QUESTION.search(form) or all(p.ask[-1] == '?' for p in pieces):
            return form


ENTRY = '{{l{0}}} {{{1}}}'


def listed(rng, hand, pieces, style):
    """Returns a list of the requests, which may be in one line."""

    labels = [label(style, i) for i in range(len(pieces))]
    form = rng.choice(('{}', '{}', '{}x')).format(
        rng.choice('aA') if not hand.low else 'a')
    entries = [ENTRY.format(c, form.replace('a', c).replace('A', c.upper()))
               for c in 'abc'[:len(pieces)]]
    sign = ' ' if rng.random() < 0.15 and style not in '-*•–>' \
        and not form.endswith('x') else '\n'
    text = placed(rng, hand, sign.join(entries), pieces, labels)
    head = '{list}' if sign == ' ' else form_for(rng, LISTED, pieces)
    n = ('two', 'three')[len(pieces) - 2]

    return hand(head.replace('{n}', capital(n) if head.startswith('{n}')
                             else n), list=text), labels


def message(rng, hand, mode, pieces):
    """Returns the text with the requests, and their numbers or bullets."""

    n = len(pieces)
    first = any(p.place == 'first' for p in pieces)

    if rng.random() < 0.35 and not first and mode != TELL:
        style = rng.choice(LABELS)

        # a letter that is an answer is not one of a list

        while any(len(p.key) == 1 and p.key.isalpha() for p in pieces) \
                and re.search('[aAiI]', style):
            style = rng.choice(LABELS)

        return listed(rng, hand, pieces, style)

    return placed(rng, hand, form_for(rng, FORMS[mode][n], pieces),
                  pieces), []


def answer_of(rng, pieces, labels, lines):
    """Returns the answer, in the layout of the message.  lines: the message
    has lines."""

    pieces = sorted(pieces, key=lambda p: p.place != 'first')
    short = rng.random() < 0.2 and all(p.key for p in pieces)
    texts = [p.key if short else p.answer for p in pieces]

    if labels:
        return '\n'.join(f'{m.replace("Q", "A")} {t}'
                         for m, t in zip(labels, texts))

    if short and not lines:
        texts = [t.lower() if t in ('Yes', 'No') else t for t in texts]
        text = (', ' if len(texts) > 2 or rng.random() < 0.5
                else ' and ').join(texts)
        begun = capital(text)

        return (begun if pieces[0].right(begun) else text) + rng.choice(
            ('', '.'))

    if lines and rng.random() < 0.6 or rng.random() < 0.1:
        return '\n'.join(texts)

    return ' '.join(t if t[-1] in '.!?' else t + '.' for t in texts)


def is_ordered(labels):
    return any(re.search(r'\w', m) for m in labels)


def checked(pieces, labels):
    """Returns the check that an answer has all parts, in their order if they
    were numbered.  The number of a list at the beginning of a line is no part
    of an answer."""

    ordered = is_ordered(labels)
    number = re.compile(rf'^[ \t]*(?:{"|".join(map(re.escape, labels))}'
                        r'|\(?[1-3A-Ca-c][.):])[ \t]+(?=\S)', re.MULTILINE)

    def check(text, calls):
        if calls:
            return 'there was nothing to call'

        if ordered:
            text = number.sub('', text)

        for p in pieces:
            if not p.right(text):
                return f'no answer to "{p.ask}" in: {text}'

        return parts_more.in_order(pieces)(text) if ordered else None

    return check


def polite(rng, pieces):
    """Returns a greeting or thanks, whose answer seems to answer no piece."""

    while True:
        part = rng.choice((daily_parts.greeting, daily_parts.greeting,
                           daily_parts.thanks))(rng, named=False)

        if not NEGATIVE.search(part.answer) or all(
                p.key not in ('', 'Yes', 'No') for p in pieces):
            return part


def turn(rng):
    """Returns the Turn of a message with two or three requests."""

    hand, mode = Hand(rng), rng.choice((ASK,) * 9 + (NOUN, TELL))
    told, pieces = drawn(rng, hand, mode, rng.choice((2, 2, 2, 3, 3)))
    text, labels = message(rng, hand, mode, pieces)
    answer = answer_of(rng, pieces, labels, '\n' in text)
    gap = '\n' if '\n' in text and (labels or rng.random() < 0.6) \
        or rng.random() < 0.1 else ' '
    whole, thoughts, first = [text], [], None

    if told:
        whole.insert(0, sentences(rng, hand, told))

    if rng.random() < 0.15 and all(p.place != 'first' for p in pieces):
        first = polite(rng, pieces)
        whole.insert(0, first.ask)
        thoughts.append(taken(first.ask, [first.thought]))
        answer = first.answer + ('\n' if labels else ' ') + answer

    if hand.low and rng.random() < 0.6:
        whole[-1] = whole[-1].rstrip('.?')

    if rng.random() < 0.1:
        whole.append(rng.choice(TAILS))

        if whole[-2][-1] not in '.?!' and gap == ' ':
            whole[-2] += '.'

    user = gap.join(whole)
    thoughts += [p.thought(user) for p in pieces]

    return given_turn(user, thoughts, answer, pieces, labels, first)


def given_turn(user, thoughts, answer, pieces, labels, first=None):
    written = [w for p in pieces if p.written for w in p.work]
    wrong = checked(pieces, labels)

    def gold(mode):
        yield Step('', '\n'.join(written + [answer])) if mode == CHAT \
            else Step('\n'.join(thoughts), answer)

    def check(text, calls):
        return wrong(text, calls) or (
            None if first is None or first.right(text)
            else f'no answer to "{first.ask}" in: {text}')

    return Turn(user, check, gold)


# ------------------------------------------------- a form for both answers

BOTH = divided(r'''[Give me|Write|I need] two {k}[, please|], both [as|in] capitals: {ax}, and {bx}. ~ Two {k}[ please|], both in capital letters: {ax} and {bx}. ~ [Write|Type|Give me] {ax} and {bx}, both in capitals[, please|].
{Ax} and {bx}, both in capital letters[, please|]. ~ In capitals[, please|]: {ax} and {bx}. ~ [Write|Name] {ax} and {bx}. [Use|Only] capital letters[, please|]. ~ All in capitals: {ax}; {bx}
In capital letters I need {ax} and {bx}. ~ I want two {k} in capitals, {ax} and {bx}. ~ [Can|Could] you write {ax} and {bx} in capital letters? ~ {Ax}. {Bx}. Both in capitals, please.
Use capital letters for both: {ax}, {bx}. ~ Capitals only! {Ax} and {bx}. ~ [Tell me|Give me] {ax}, then {bx}, and write both in capitals. ~ Both answers in capitals, please: {ax}, {bx}.
{Ax} and {bx} in upper case[, please|]. ~ Answer with capitals only: {ax}, and {bx}? ~ two {k} in caps pls: {ax} and {bx}''')


def both_in_capitals(rng):
    """Returns the Turn of two requests whose answers must be capitals."""

    makers = [a_letter] * 2 if rng.random() < 0.4 else rng.sample(
        (a_letter, an_opposite, a_day, a_saying, a_color), 2)
    hand = Hand(rng)
    pieces = [m(rng, hand, NOUN) for m in makers]

    if mixed(pieces):
        return both_in_capitals(rng)

    for p in pieces:
        p.key = p.key.upper()
        p.work = [f'{p.work[0]} so {p.key}']
        p.right = exactly(p.key)

    user = placed(rng, hand, rng.choice(BOTH).replace(
        '{k}', 'letters' if makers[0] is makers[1] else 'words'), pieces)
    answer = rng.choice((' and ', ', ', ' ', '\n')).join(
        p.key for p in pieces) + rng.choice(('', '.'))
    thoughts = [p.thought(user) for p in pieces]

    return given_turn(user, thoughts, answer, pieces, [])


def turns(rng):
    return both_in_capitals(rng) if rng.random() < 0.04 else turn(rng)
