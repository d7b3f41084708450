# Copyright (C) The nginx-dsa authors

"""A few plain statements and a question in one message, as people write them
in daily life: who has what, what is so now or was before, who did what, why
and in which order, lines with a form, counting, and yes or no.  Names, things
and numbers are drawn, so that the answer is only in the message."""

import re
from dataclasses import dataclass, field
from typing import Callable, List

from tasks import happen, names, scan, text_docs, text_frame, text_stories
from tasks.arithmetic_check import affirms
from tasks.daily import line, states
from tasks.daily_rough import rough, typed
from tasks.parts import Split
from tasks.phrase import ARTICLE, capital, expand, say
from tasks.task import CHAT, Step, Turn
from tasks.text_stories import bare, shared
from tasks.tools_check import NEGATIVE


# A row has the kinds of {a} and of {v}, what the value is called, and the
# value as a short answer; then its parts.  "x" lists words for {x}; "." are
# statements, "&" statements about two, {a} with {v} and {b} with {w}; "-" asks
# for {v}, "~" for {a}; "<" and ">" tell of two or of more which has less or
# more.  Wordings are divided by " / ".

RELATIONS = r'''
= person color | the color #x backpack, bicycle, car, coat, hat, jacket, kite, scarf, suitcase, sweater #. {a} has a {v} {x} / {a}'s {x} is {v} / the {v} {x} belongs to {a} / the {v} {x} is {a}'s / {a} is the owner of a {v} {x} #& {a} has an old {v} {x} and {b} a new {w} one / {a} has a {v} {x}, {b} a {w} one / {a}'s {x} is {v}, {b}'s is {w} / the {v} {x} is {a}'s, the {w} one {b}'s #- What color is {a}'s {x}? / Which color does {a}'s {x} have? / {a}'s {x} is what color? / In what color is the {x} of {a}? #~ Who has the {v} {x}? / Whose {x} is {v}? / To whom does the {v} {x} belong? / Who has the {v} one? / Who is the owner of the {v} {x}?
= person age | the age #. {a} is {v} years old / the age of {a} is {v} / {a} has turned {v} #& {a} is {v} years old and {b} {w} / {a} is {v}, {b} is {w} / {a} and {b} are {v} and {w} years old #- How old is {a}? / What is {a}'s age? / How many years old is {a}? #~ Who is {v} years old? / Which of them is {v}? / Whose age is {v}? #< is younger ; is the youngest #> is older ; is the oldest
= person job | the job | a {v} #. {a} works as a {v} / {a} is a {v} / {a} makes a living as a {v} #& {a} is a {v} and {b} a {w} / {a} works as a {v}, {b} as a {w} / while {a} is a {v}, {b} works as a {w} #- What is {a}'s job? / What does {a} do for a living? / As what does {a} work? / What is {a} by profession? #~ Who is the {v}? / Which of them works as a {v}? / Who is a {v}? / Who makes a living as a {v}?
= person city | the home | in {v} #. {a} lives in {v} / {a}'s home is in {v} / {a} has a flat in {v} #& {a} lives in {v} and {b} in {w} / {a} has a flat in {v}, {b} a house in {w} / the home of {a} is in {v}, that of {b} in {w} #- Where does {a} live? / In which city does {a} live? / Which city is {a}'s home? / Where is {a} at home? #~ Who lives in {v}? / Whose home is in {v}? / Which of them lives in {v}? / Whom can I visit in {v}?
= person city | the place of birth | from {v} #. {a} comes from {v} / {a} is from {v} / {a} was born in {v} #& {a} is from {v}, {b} from {w} / {a} was born in {v} and {b} in {w} / {a} comes from {v}, but {b} comes from {w} #- Where is {a} from? / Where was {a} born? / From which place does {a} come? #~ Who is from {v}? / Who was born in {v}? / Which of them comes from {v}?
= person language | the language #. {a} speaks {v} / {a} can speak {v} / {a} knows {v} well #& {a} speaks {v} and {b} {w} / {a}'s language is {v}, {b}'s is {w} / {a} speaks {v}, while {b} speaks {w} #- What language does {a} speak? / Which language does {a} know? / What can {a} speak? #~ Who speaks {v}? / Who knows {v}? / Which of them can speak {v}?
= person instrument | the instrument | the {v} #. {a} plays the {v} / {a} takes lessons on the {v} / {a}'s instrument is the {v} #& {a} plays the {v} and {b} the {w} / in the band, {a} is on the {v} and {b} on the {w} / {a} plays the {v}, but {b} plays the {w} #- What does {a} play? / Which instrument does {a} play? / What is {a}'s instrument? #~ Who plays the {v}? / Whose instrument is the {v}? / Which of them plays the {v}?
= person sport | the sport #. {a} is into {v} / {a}'s sport is {v} / {a} goes to {v} practice #& {a} is into {v} and {b} into {w} / {a}'s sport is {v}, {b}'s is {w} / {a} trains for {v}, {b} for {w} #- What sport does {a} do? / Which sport is {a}'s? / What does {a} do for sport? #~ Who is into {v}? / Whose sport is {v}? / Which of them goes to {v} practice?
= person subject | the subject #. {a} teaches {v} / {a} is the {v} teacher / {a} gives lessons in {v} #& {a} teaches {v} and {b} {w} / {v} is taught by {a}, {w} by {b} / {a} gives {v} lessons, {b} gives {w} lessons #- What does {a} teach? / Which subject does {a} teach? / In what does {a} give lessons? #~ Who teaches {v}? / Who gives the {v} lessons? / Who is the {v} teacher?
= person drink | the drink #. {a} drinks {v} / {a} ordered {v} / {a} had {v} / {v} is for {a} #& {a} drinks {v}, {b} {w} / {a} ordered {v} and {b} {w} / the {v} is for {a}, the {w} for {b} #- What does {a} drink? / What did {a} order? / What is {a}'s drink? / Which drink is for {a}? #~ Who drinks {v}? / Who gets the {v}? / For whom is the {v}?
= person animal | the pet | a {v} #. {a} has a {v} / {a} keeps a {v} / {a} owns a {v} / {a}'s pet is a {v} #& {a} has a {v} and {b} a {w} / {a} keeps a {v}, {b} a {w} / the {v} is {a}'s, and the {w} is {b}'s #- What animal does {a} have? / What pet does {a} keep? / Which animal is {a}'s? #~ Who has a {v}? / Who keeps a {v}? / Whose pet is the {v}? / Who owns the {v}?
= person room | the place | in the {v} #. {a} is in the {v} / {a} is waiting in the {v} / you find {a} in the {v} #& {a} is in the {v} and {b} in the {w} / {a} sits in the {v}, {b} in the {w} / in the {v} is {a}, in the {w} {b} #- Where is {a}? / In which room is {a}? / Where do I find {a}? #~ Who is in the {v}? / Whom do I find in the {v}? / Which of them is in the {v}?
= person day | the day | on {v} #x day off, dentist appointment, exam, night shift, piano lesson, training #. {a} has a {x} on {v} / {a}'s {x} is on {v} / on {v}, {a} has a {x} #& {a} has a {x} on {v} and {b} on {w} / {a}'s {x} is on {v}, {b}'s on {w} / on {v} it is {a} who has a {x}, on {w} it is {b} #- On which day is {a}'s {x}? / When is {a}'s {x}? / On what day does {a} have a {x}? #~ Whose {x} is on {v}? / Who has a {x} on {v}? / {v} is the day of whose {x}?
= person month | the month | in {v} #. {a}'s birthday is in {v} / {a} has a birthday in {v} / in {v} we celebrate {a}'s birthday #& {a}'s birthday is in {v}, {b}'s in {w} / {a} and {b} have their birthdays in {v} and in {w} / {a} has a birthday in {v}, {b} in {w} #- When is {a}'s birthday? / In which month is {a}'s birthday? / In what month do we celebrate {a}'s birthday? #~ Whose birthday is in {v}? / Who has a birthday in {v}? / Who of them celebrates in {v}?
= person clock | the time | at {v} #. {a} comes at {v} / {a} arrives at {v} / {a} will be here at {v} #& {a} comes at {v} and {b} at {w} / {a} arrives at {v}, {b} at {w} / {a} will be here at {v}, {b} will be here at {w} #- When does {a} come? / At what time does {a} arrive? / What time does {a} come? #~ Who comes at {v}? / Who arrives at {v}? / Which of them comes at {v}? #< comes earlier ; comes first #> comes later ; comes last
= person number | the number #x @goods #. {a} bought {v} {x} / {a} has {v} {x} / {v} of the {x} are {a}'s #& {a} has {v} {x} and {b} {w} / {a} bought {v} {x}, {b} bought {w} / of the {x}, {v} are {a}'s and {w} are {b}'s #- How many {x} does {a} have? / How many of the {x} are {a}'s? / What is the number of {a}'s {x}? #~ Who has {v} {x}? / Whose are the {v} {x}? / Which of them has {v} {x}? #< has fewer {x} ; has the fewest {x} #> has more {x} ; has the most {x}
= person cm | the height | {v} cm #. {a} is {v} cm tall / {a}'s height is {v} cm / {a} measures {v} cm #& {a} is {v} cm tall and {b} {w} cm / {a} measures {v} cm, {b} {w} cm / the height of {a} is {v} cm, that of {b} {w} cm #- How tall is {a}? / What is {a}'s height? / How many cm does {a} measure? #~ Who is {v} cm tall? / Whose height is {v} cm? / Which of them measures {v} cm? #< is shorter ; is the shortest #> is taller ; is the tallest
= person ordinal | the floor | on the {v} floor #. {a} lives on the {v} floor / {a}'s flat is on the {v} floor / on the {v} floor lives {a} #& {a} lives on the {v} floor and {b} on the {w} / {a}'s flat is on the {v} floor, {b}'s on the {w} / the {v} floor is {a}'s, the {w} {b}'s #- On which floor does {a} live? / Which floor is {a}'s flat on? / To which floor do I go to see {a}? #~ Who lives on the {v} floor? / Whose flat is on the {v} floor? / Which of them is on the {v} floor?
= person material | the material #x bracelet, doll, figure, mask, medal, necklace, pendant, sculpture, souvenir, toy boat #. {a}'s {x} is made of {v} / {a} has a {x} of {v} / the {v} {x} is {a}'s #& {a}'s {x} is of {v}, {b}'s of {w} / {a} has a {v} {x} and {b} a {w} one / the {x} of {a} is made of {v}, the one of {b} of {w} #- What is {a}'s {x} made of? / Of which material is {a}'s {x}? / What material is the {x} of {a}? #~ Whose {x} is made of {v}? / Who has the {x} of {v}? / Who has the {v} {x}?
= person person | the other person #x book, drill, ladder, raincoat, sleeping bag, suitcase, tent, tripod #. {a} lent {v} a {x} / {v} borrowed a {x} from {a} / the {x} that {v} has was lent by {a} #- To whom did {a} lend a {x}? / Who borrowed a {x} from {a}? / Who got a {x} from {a}? #~ Who lent {v} a {x}? / From whom did {v} borrow a {x}? / Who gave {v} a {x}?
= person person | the other person #. {a} sits next to {v} / {a} has the seat beside {v} / next to {v} sits {a} #- Next to whom does {a} sit? / Who is {a}'s neighbor at the table? / Beside whom is {a}'s seat? #~ Who sits next to {v}? / Who has the seat beside {v}? / Whose seat is next to {v}?
= person person | the other person #x boss, coach, cousin, dentist, doctor, landlord, lawyer, tutor, neighbor #. {a}'s {x} is {v} / {v} is the {x} of {a} / the {x} of {a} is called {v} #& {a}'s {x} is {v}, {b}'s {x} is {w} / {v} is {a}'s {x}, and {w} is {b}'s / the {x} of {a} is {v}, the one of {b} is {w} #- Who is {a}'s {x}? / What is the name of {a}'s {x}? / Who is the {x} of {a}? #~ Whose {x} is {v}? / {v} is the {x} of whom? / Whose {x} is called {v}?
= person person | the other person #. {a} is married to {v} / {a}'s spouse is {v} / {a} and {v} are married #- Who is {a} married to? / Who is {a}'s spouse? / To whom is {a} married? #~ Who is married to {v}? / Whose spouse is {v}? / Who has {v} as a spouse?
= person title | the title #x book, comic, novel, poem, song, story #. {a} wrote the {x} {v} / the {x} {v} is by {a} / {a} is the author of {v}, a {x} #& {a} wrote the {x} {v} and {b} {w} / the {x} {v} is by {a}, {w} by {b} / {v} is a {x} by {a}, and {w} one by {b} #- Which {x} did {a} write? / What is the {x} by {a} called? / What is the title of {a}'s {x}? #~ Who wrote {v}? / By whom is {v}? / Who is the author of the {x} {v}?
= person extension | the number #x extension, locker number, member number, room number, ticket number #. {a}'s {x} is {v} / {a} has the {x} {v} / {v} is the {x} of {a} #& {a}'s {x} is {v}, {b}'s is {w} / {a} has the {x} {v}, {b} has {w} / the {x} of {a} is {v}, that of {b} {w} #- What is {a}'s {x}? / Which {x} does {a} have? / What is the {x} of {a}? #~ Whose {x} is {v}? / Who has the {x} {v}? / To whom does the {x} {v} belong?
= person food | the food #. {a} is allergic to {v} / {a} must not eat {v} / {a} has an allergy to {v} #& {a} is allergic to {v} and {b} to {w} / {a} must not eat {v}, {b} must not eat {w} / the one with the {v} allergy is {a}, the one with the {w} allergy is {b} #- What is {a} allergic to? / What must {a} not eat? / Which allergy does {a} have? #~ Who is allergic to {v}? / Who must not eat {v}? / Who has the {v} allergy?
= person goods | the things #. {a} collects {v} / {a} has a collection of {v} / {a} is a collector of {v} #& {a} collects {v}, {b} collects {w} / {a} has a collection of {v} and {b} one of {w} / the {v} are collected by {a}, the {w} by {b} #- What does {a} collect? / What things does {a} collect? / What is in {a}'s collection? #~ Who collects {v}? / Who has a collection of {v}? / Who is the collector of {v}?
= person mood | the mood #. {a} is {v} today / today {a} seems {v} / {a} looks {v} today #& {a} is {v} today and {b} {w} / {a} looks {v}, {b} looks {w} / today {a} is {v}, but {b} is {w} #- How is {a} today? / In what mood is {a}? / How does {a} feel today? #~ Who is {v} today? / Who seems {v}? / Which of them is {v}?
= person size | the size | size {v} #x shoes, gloves, boots, skates, jeans #. {a} wears {x} in size {v} / {a} takes size {v} in {x} / {a}'s {x} are size {v} #& {a} wears {x} in size {v}, {b} in size {w} / {a}'s {x} are size {v} and {b}'s size {w} / for {x}, {a} needs size {v} and {b} size {w} #- What size are {a}'s {x}? / Which size does {a} wear? / What size does {a} need for {x}? #~ Who wears size {v}? / Whose {x} are size {v}? / Who needs size {v}? #< has smaller {x} ; has the smallest {x} #> has bigger {x} ; has the biggest {x}
= person topic | the topic #. {a} gives a talk about {v} / {a}'s talk is about {v} / the talk about {v} is given by {a} #& {a} talks about {v} and {b} about {w} / {a}'s talk is about {v}, {b}'s about {w} / the talk about {v} is by {a}, the one about {w} by {b} #- What is {a}'s talk about? / About what does {a} talk? / What is the topic of {a}'s talk? #~ Who gives the talk about {v}? / Who talks about {v}? / Whose talk is about {v}?
= person vehicle | the vehicle | a {v} #. {a} drives a {v} / {a} is at the wheel of a {v} / {a}'s vehicle is a {v} #& {a} drives a {v} and {b} a {w} / the {v} is driven by {a}, the {w} by {b} / {a}'s vehicle is a {v}, {b}'s a {w} #- What does {a} drive? / Which vehicle does {a} drive? / What kind of vehicle is {a}'s? #~ Who drives a {v}? / Who is at the wheel of the {v}? / Whose vehicle is the {v}?
= person org | the company | at {v} #. {a} works at {v} / {a} is employed by {v} / {a}'s company is {v} #& {a} works at {v} and {b} at {w} / {a} is with {v}, {b} with {w} / {v} employs {a}, and {w} employs {b} #- Where does {a} work? / Which company does {a} work for? / Who employs {a}? #~ Who works at {v}? / Who is employed by {v}? / Which of them works for {v}?
= person hobby | the hobby #. {a} likes {v} / {a}'s hobby is {v} / {a} enjoys {v} / {a} spends the weekend {v} #& {a} likes {v} and {b} {w} / {a}'s hobby is {v}, {b}'s is {w} / {a} enjoys {v}, but {b} enjoys {w} #- What is {a}'s hobby? / What does {a} like? / What does {a} enjoy? #~ Who likes {v}? / Whose hobby is {v}? / Who enjoys {v}?
= person euro | the sum | {v} euros #. {a} paid {v} euros / {a} gave {v} euros / {a} spent {v} euros #& {a} paid {v} euros and {b} {w} / {a} gave {v} euros, {b} gave {w} euros / {v} euros came from {a}, {w} from {b} #- How much did {a} pay? / How many euros did {a} pay? / What sum came from {a}? #~ Who paid {v} euros? / Who gave {v} euros? / From whom came {v} euros? #< paid less ; paid the least #> paid more ; paid the most
= person duty | the duty #. {a} takes care of the {v} / {a} is in charge of the {v} / the {v} is done by {a} #& {a} does the {v} and {b} the {w} / the {v} is {a}'s duty, the {w} {b}'s / {a} takes care of the {v}, {b} of the {w} #- What does {a} take care of? / What is {a}'s duty? / What is {a} in charge of? #~ Who takes care of the {v}? / Who is in charge of the {v}? / Whose duty is the {v}?
= pet animal | the kind of animal | a {v} #. {a} is a {v} / the {v} is called {a} / the name of the {v} is {a} #& {a} is a {v} and {b} a {w} / the {v} is called {a}, the {w} {b} / our {v} has the name {a}, and our {w} the name {b} #- What kind of animal is {a}? / What animal is {a}? / Which animal is called {a}? #~ What is the {v} called? / What is the name of the {v}? / Which of them is a {v}?
= pet room | the place | in the {v} #. the cat {a} sleeps in the {v} / the cat {a} has a basket in the {v} / at night the cat {a} is in the {v} #& the cat {a} sleeps in the {v}, the cat {b} in the {w} / our cats {a} and {b} sleep in the {v} and in the {w} / the basket of the cat {a} is in the {v}, the one of {b} in the {w} #- Where does {a} sleep? / In which room does the cat {a} sleep? / Where is {a}'s basket? #~ Which cat sleeps in the {v}? / Which cat's basket is in the {v}? / Who sleeps in the {v}?
= pet person | the owner #x beagle, cat, dog, parrot, pony, poodle, rabbit, terrier, tortoise #. the {x} {a} belongs to {v} / {a} is {v}'s {x} / {v} is the owner of the {x} {a} #& the {x} {a} belongs to {v}, the {x} {b} to {w} / {a} is {v}'s {x}, and {b} is {w}'s / {v} has a {x}, {a}, and {w} has one, too, {b} #- Whose {x} is {a}? / Who is the owner of {a}? / To whom does {a} belong? #~ What is the name of {v}'s {x}? / Which {x} belongs to {v}? / What is {v}'s {x} called?
= pet color | the color #x cat, dog, horse, kitten, puppy, rabbit #. the {x} {a} is {v} / the {v} {x} is called {a} / {a} is the name of the {v} {x} #& the {x} {a} is {v}, {b} is {w} / the {v} {x} is called {a} and the {w} one {b} / we have two of them: {a} is the {v} {x}, {b} the {w} one #- What color is {a}? / What color is the {x} {a}? / Which color does {a} have? #~ What is the name of the {v} {x}? / Which {x} is {v}? / What is the {v} one called?
= thing room | the place | in the {v} #. {a} is in the {v} / in the {v} you find {a} / we keep {a} in the {v} / {a} was left in the {v} #& {a} is in the {v}, {b} in the {w} / in the {v} is {a}, and in the {w} {b} / we keep {a} in the {v} and {b} in the {w} #- Where is {a}? / In which room is {a}? / Where do I find {a}? / Where do we keep {a}? #~ What is in the {v}? / Which thing is in the {v}? / What do we keep in the {v}?
= thing euro | the price | {v} euros #. {a} costs {v} euros / the price of {a} is {v} euros / {a} sells for {v} euros #& {a} costs {v} euros, {b} {w} euros / {a} and {b} cost {v} and {w} euros / for {a} they want {v} euros, for {b} {w} #- How much is {a}? / What does {a} cost? / What is the price of {a}? #~ What costs {v} euros? / Which thing costs {v} euros? / What do they sell for {v} euros? #< is cheaper ; is the cheapest #> is more expensive ; is the most expensive
= thing color | the color #. {a} is {v} / the color of {a} is {v} / {a} comes in {v} #& {a} is {v} and {b} {w} / {a} comes in {v}, {b} in {w} / the color of {a} is {v}, that of {b} is {w} #- What color is {a}? / Which color does {a} have? / In what color does {a} come? #~ What is {v}? / Which thing is {v}? / Which one comes in {v}?
= thing person | the owner #. {a} belongs to {v} / {v} is the owner of {a} / {v} owns {a} #& {a} belongs to {v}, {b} to {w} / {v} owns {a} and {w} {b} / {a} is the property of {v}, {b} that of {w} #- Who owns {a}? / To whom does {a} belong? / Who is the owner of {a}? #~ What belongs to {v}? / What does {v} own? / Which thing is {v}'s?
= thing kilo | the weight | {v} kg #. {a} weighs {v} kg / the weight of {a} is {v} kg / {a} is {v} kg heavy #& {a} weighs {v} kg, {b} {w} kg / {a} and {b} weigh {v} and {w} kg / the weight of {a} is {v} kg, that of {b} {w} kg #- How heavy is {a}? / What does {a} weigh? / How many kg does {a} weigh? #~ What weighs {v} kg? / Which thing weighs {v} kg? / Which one is {v} kg heavy? #< is lighter ; is the lightest #> is heavier ; is the heaviest
= thing state | the state #. {a} is {v} / {a} looks {v} / they say {a} is {v} #& {a} is {v} and {b} {w} / {a} looks {v}, but {b} looks {w} / while {a} is {v}, {b} is {w} #- In what state is {a}? / How does {a} look? / How is {a}? #~ What is {v}? / Which thing is {v}? / Which of the things looks {v}?
= thing city | where it was made | in {v} #. {a} was made in {v} / {a} comes from a factory in {v} / they make {a} in {v} #& {a} was made in {v}, {b} in {w} / {a} comes from {v} and {b} from {w} / they make {a} in {v}, but {b} in {w} #- Where was {a} made? / In which city was {a} made? / From which city does {a} come? #~ What was made in {v}? / Which thing comes from {v}? / What do they make in {v}?
= dish taste | the taste #. {a} was {v} / {a} tasted {v} / I found {a} {v} #& {a} was {v} and {b} {w} / {a} tasted {v}, but {b} tasted {w} / we found {a} {v} and {b} {w} #- How was {a}? / How did {a} taste? / What was {a} like? #~ What tasted {v}? / What was {v}? / Which dish was {v}?
= dish person | the cook #. {a} was made by {v} / {v} made {a} / {a} is by {v} / it was {v} who cooked {a} #& {v} made {a} and {w} {b} / {a} is by {v}, {b} by {w} / for the party {v} brought {a}, and {w} brought {b} #- Who made {a}? / By whom is {a}? / Whose dish is {a}? #~ What did {v} make? / Which dish is by {v}? / What was made by {v}?
= dish minutes | the time | {v} minutes #. {a} takes {v} minutes / {a} needs {v} minutes in the oven / {a} must bake for {v} minutes #& {a} takes {v} minutes and {b} {w} / {a} needs {v} minutes in the oven, {b} needs {w} / {a} is ready after {v} minutes, {b} after {w} #- How long does {a} take? / How many minutes does {a} need? / How long must {a} bake? #~ What takes {v} minutes? / Which dish needs {v} minutes? / What bakes for {v} minutes? #< takes less time ; takes the least time #> takes more time ; takes the most time
= event day | the day | on {v} #. {a} is on {v} / {a} takes place on {v} / on {v} we have {a} #& {a} is on {v}, {b} on {w} / on {v} we have {a}, on {w} {b} / {a} takes place on {v} and {b} on {w} #- When is {a}? / On which day is {a}? / What day is {a}? #~ What is on {v}? / What takes place on {v}? / What do we have on {v}?
= event clock | the time | at {v} #. {a} begins at {v} / {a} is at {v} / at {v} we have {a} #& {a} begins at {v}, {b} at {w} / {a} is at {v} and {b} at {w} / at {v} we have {a}, and at {w} {b} #- When does {a} begin? / At what time is {a}? / What time is {a}? #~ What is at {v}? / What begins at {v}? / What do we have at {v}? #< is earlier ; is the earliest #> is later ; is the latest
= event person | the leader #. {a} is led by {v} / {v} leads {a} / the one who leads {a} is {v} #& {a} is led by {v} and {b} by {w} / {v} leads {a}, {w} leads {b} / the leader of {a} is {v}, the one of {b} {w} #- Who leads {a}? / By whom is {a} led? / Who is in charge of {a}? #~ What does {v} lead? / What is led by {v}? / What is {v} in charge of?
= event minutes | the time | {v} minutes #. {a} lasts {v} minutes / {a} takes {v} minutes / {a} is {v} minutes long #& {a} lasts {v} minutes, {b} {w} / {a} takes {v} minutes and {b} {w} minutes / for {a} we need {v} minutes, for {b} {w} #- How long is {a}? / How long does {a} last? / How many minutes does {a} take? #~ What lasts {v} minutes? / What takes {v} minutes? / What is {v} minutes long? #< is shorter ; is the shortest #> is longer ; is the longest
= event spot | the place | at the {v} #. {a} is at the {v} / {a} takes place at the {v} / we meet at the {v} for {a} #& {a} is at the {v}, {b} at the {w} / {a} takes place at the {v} and {b} at the {w} / for {a} we meet at the {v}, for {b} at the {w} #- Where is {a}? / Where does {a} take place? / Where do we meet for {a}? #~ What takes place at the {v}? / What is at the {v}? / For what do we meet at the {v}?
= town km | the distance | {v} km #. {a} is {v} km away / it is {v} km to {a} / the way to {a} is {v} km long #& {a} is {v} km away, {b} {w} km / it is {v} km to {a} and {w} km to {b} / the way to {a} is {v} km long, the one to {b} {w} km #- How far is {a}? / How many km is it to {a}? / How long is the way to {a}? #~ What is {v} km away? / Which town is {v} km away? / To which town is it {v} km? #< is nearer ; is the nearest #> is farther away ; is the farthest away
= town sky | the weather #. in {a} it is {v} / {a} has {v} weather / the weather in {a} is {v} #& in {a} it is {v}, in {b} {w} / {a} has {v} weather and {b} {w} weather / it is {v} in {a}, but {w} in {b} #- How is the weather in {a}? / What is the weather like in {a}? / What weather does {a} have? #~ Where is it {v}? / Which town has {v} weather? / In which town is it {v}?
= town degrees | the temperature | {v} degrees #. {a} has {v} degrees / it is {v} degrees in {a} / the temperature in {a} is {v} degrees #& {a} has {v} degrees, {b} {w} / it is {v} degrees in {a} and {w} in {b} / in {a} we have {v} degrees, in {b} {w} degrees #- How warm is it in {a}? / What is the temperature in {a}? / How many degrees does {a} have? #~ Where is it {v} degrees warm? / Which town has {v} degrees? / In which town are there {v} degrees? #< is colder ; is the coldest #> is warmer ; is the warmest
= shop clock | the time | at {v} #. {a} opens at {v} / {a} is open from {v} on / from {v} on one can go to {a} #& {a} opens at {v}, {b} at {w} / {a} is open from {v} on, {b} from {w} on / the doors of {a} open at {v}, those of {b} at {w} #- When does {a} open? / At what time does {a} open? / From what time on is {a} open? #~ What opens at {v}? / Which shop opens at {v}? / Which one is open from {v} on? #< opens earlier ; opens first #> opens later ; opens last
= place color | the color #. {a} is painted {v} / the walls of {a} are {v} / {a} has {v} walls #& {a} is painted {v}, {b} {w} / {a} has {v} walls and {b} {w} ones / the walls of {a} are {v}, those of {b} {w} #- What color is {a}? / What color are the walls of {a}? / In which color is {a} painted? #~ Which room is {v}? / Which room has {v} walls? / What is painted {v}?
= plant room | the place | in the {v} #. {a} stands in the {v} / {a} is in the {v} / in the {v} is {a} #& {a} stands in the {v} and {b} in the {w} / in the {v} is {a}, in the {w} {b} / {a} likes it in the {v}, {b} in the {w} #- Where is {a}? / In which room is {a}? / Where does {a} stand? #~ Which plant is in the {v}? / What stands in the {v}? / What plant do I find in the {v}?
= box goods | what is inside #. in {a} are {v} / {a} is full of {v} / {a} holds {v} / the {v} are in {a} #& in {a} are {v}, in {b} {w} / {a} is full of {v} and {b} of {w} / the {v} are in {a}, the {w} in {b} #- What is in {a}? / What does {a} hold? / What do I find in {a}? #~ Where are the {v}? / What is full of {v}? / In what are the {v}?
= key room | what it opens | the {v} #. {a} opens the {v} / the {v} is opened with {a} / {a} is for the {v} #& {a} opens the {v}, {b} the {w} / {a} is for the {v} and {b} for the {w} / for the {v} take {a}, for the {w} take {b} #- What does {a} open? / What is {a} for? / Which door does {a} open? #~ Which key opens the {v}? / Which key is for the {v}? / With which key do I open the {v}?
= bus city | the goal | to {v} #. {a} goes to {v} / {a} takes you to {v} / the goal of {a} is {v} #& {a} goes to {v}, {b} to {w} / with {a} you get to {v} and with {b} to {w} / {v} is where {a} goes, {w} is where {b} goes #- Where does {a} go? / To which town does {a} go? / Where does {a} take me? #~ Which bus goes to {v}? / With which bus do I get to {v}? / What do I take to {v}?
= team color | the color #. {a} plays in {v} / the shirts of {a} are {v} / {a} has {v} shirts #& {a} plays in {v}, {b} in {w} / the shirts of {a} are {v}, those of {b} {w} / {a} has {v} shirts and {b} {w} ones #- In which color does {a} play? / What color are the shirts of {a}? / Which color does {a} wear? #~ Which team plays in {v}? / Who has {v} shirts? / Which team wears {v}?
'''

# Lines with a form: "h" are headings, "|" is a line, ":" says in a sentence
# what a line says.  {t} is a time, which grows; {l} is a level of a log.

FORMS = r'''
= food cents | the price | {v} euros #h Menu / Today / Prices / Lunch menu / Small menu: / Our prices: #| {a} {v} / {a}: {v} euros / - {a}, {v} € / {a} ... {v} / {v} EUR {a} #: {a} costs {v} euros / for {v} euros you get {a} / the price of {a} is {v} euros #- What does {a} cost? / How much is {a}? / What is the price of {a}? / What do I pay for {a}? #~ What costs {v} euros? / What do I get for {v} euros? / Which line has the price {v}? #< is cheaper ; is the cheapest #> is more expensive ; is the most expensive
= article euro | the price | {v} euros #h Price list / For sale / Flea market / Order: / Prices in euros: #| {a} {v} / {a} - {v} euros / * {a}: {v} / {a} | {v} / {a}, only {v} EUR #: the {a} costs {v} euros / the price of the {a} is {v} euros / for the {a} one pays {v} euros #- What does the {a} cost? / How much is the {a}? / What is the price of the {a}? #~ What costs {v} euros? / Which thing is sold for {v} euros? / What is there for {v} euros? #< is cheaper ; is the cheapest #> is more expensive ; is the most expensive
= day hours | the hours #h Opening hours / We are open / Hours: / Library / The shop is open: #| {a} {v} / {a}: {v} / - {a}, {v} / {a} = {v} #: on {a} the hours are {v} / it is open {v} on {a} / the times on {a} are {v} #- What are the hours on {a}? / When is it open on {a}? / From when to when is it open on {a}? #~ On which day is it open {v}? / Which day has the hours {v}? / {v} is on which day?
= town clock | the time | at {v} #h Departures / Timetable / Trains today / Buses: / From platform 2: #| {v} {a} / {a} {v} / {v} to {a} / {v} - {a} / {a}, {v} #: the one to {a} leaves at {v} / at {v} it goes to {a} / for {a} the time is {v} #- When does it leave for {a}? / At what time does it go to {a}? / What time is given for {a}? #~ Where does the one at {v} go? / Which town is it at {v}? / To which town does it go at {v}? #< is earlier ; is the first #> is later ; is the last
= town platform | the platform | platform {v} #h Departures / Trains / Today: / Station #| {t} {a}, platform {v} / {a} {t} pl. {v} / {t} - {a} - platform {v} / {t} {a} (pl. {v}) #: the train to {a} leaves from platform {v} / platform {v} is for {a} / for {a} go to platform {v} #- From which platform is the train to {a}? / Which platform is it for {a}? / What platform does {a} have? #~ Which train leaves from platform {v}? / Where does the train on platform {v} go? / What town is on platform {v}?
= message time | the time | at {v} #h Log: / From the log / This is in my log: / The last lines: #| {v} {l} {a} / [{v}] {l}: {a} / {v}:07 {l} - {a} / {l} {v} {a} #: "{a}" was at {v} / the time of "{a}" is {v} / at {v} it says "{a}" #- When was "{a}"? / At what time does it say "{a}"? / Which time has the line with "{a}"? #~ What was logged at {v}? / What happened at {v}? / What does the line of {v} say?
= message level | the level #h Log: / From the log / Log of today: / Here is a log #| {t} {v} {a} / [{v}] {t} {a} / {t} - {v} - {a} / {v}: {t} {a} #: "{a}" has the level {v} / the level of "{a}" is {v} / "{a}" was logged as {v} #- Which level has "{a}"? / What is the level of "{a}"? / As what was "{a}" logged? #~ What is the {v} line about? / Which message has the level {v}? / What was logged as {v}?
= setting number | the value #h Settings: / My config / config.ini / Here is the config. #| {a} = {v} / {a}: {v} / {a} {v}; / {a}={v} #: {a} is {v} / {a} is set to {v} / the value of {a} is {v} #- What is {a} set to? / What is the value of {a}? / Which value does {a} have? #~ What is set to {v}? / Which setting has the value {v}? / Which one is {v}?
= person age | the age #h Name, age / Group: / Members: / Our team (age) #| {a}, {v} / {a}: {v} / {a} ({v}) / - {a} {v} / {a} | {v} #: {a} is {v} years old / the age of {a} is {v} / {a} is {v} #- How old is {a}? / What age is given for {a}? / What is the age of {a}? #~ Who is {v} years old? / Which person is {v}? / Whose age is {v}? #< is younger ; is the youngest #> is older ; is the oldest
= person score | the points | {v} points #h Points: / Results / Score / Ranking: / Quiz, final result #| {a} {v} / {a}: {v} points / {a} - {v} / {v} {a} / {a}, {v} p. #: {a} has {v} points / {a} got {v} points / {v} points went to {a} #- How many points does {a} have? / What is the score of {a}? / How many points did {a} get? #~ Who has {v} points? / Who got {v} points? / Whose score is {v}? #< has fewer points ; has the fewest points #> has more points ; has the most points
= person city | the place | in {v} #h Name, city / Addresses: / Where we live / name;city / Contacts: #| {a}, {v} / {a}: {v} / {a} | {v} / {a};{v} / - {a} ({v}) #: {a} is in {v} / {a} lives in {v} / the city of {a} is {v} #- Where does {a} live? / Which city is {a}'s? / What city is given for {a}? #~ Who is in {v}? / Who lives in {v}? / Which person is in {v}?
= person duty | the task #h Tasks: / Who does what / Plan for today / To do: / List of duties #| {a}: {v} / {v}: {a} / {a} - {v} / {v} ({a}) #: {a} does the {v} / the {v} is for {a} / {a} takes care of the {v} #- What does {a} do? / What is {a}'s task? / What is on the list for {a}? #~ Who does the {v}? / Who takes care of the {v}? / For whom is the {v}?
= person dish | the dish #h Chat: / From our group: / Who brings what? / Hi all, it is Saturday! #| {a}: I bring {v} / {a}: {v} from me! / {a}: I'll make {v} / {a}: I come with {v} #: {a} brings {v} / {a} comes with {v} / {v} is from {a} #- What does {a} bring? / What is from {a}? / What will {a} bring along? #~ Who brings {v}? / Who comes with {v}? / From whom is {v}?
= person clock | the time | at {v} #h Chat: / When can you all come? / From the chat / Messages: #| {a}: I can come at {v} / {a}: I'm there at {v} / {a}: {v} for me, please / {a}: let's say {v} #: {a} comes at {v} / {a} wrote {v} / {a} said {v} #- When does {a} come? / What time did {a} write? / At what time does {a} come? #~ Who comes at {v}? / Who wrote {v}? / Who named {v}? #< comes earlier ; comes first #> comes later ; comes last
= person city | the place | {v} #h Chat: / Where do we go in summer? / The group: / Vote for the trip: #| {a}: I vote for {v} / {a}: {v}! / {a}: I'd like to see {v} / {a}: {v}, please #: {a} wants to go to {v} / {a} votes for {v} / {v} is what {a} wants #- Where does {a} want to go? / Which place does {a} want? / For what does {a} vote? #~ Who wants to go to {v}? / Who votes for {v}? / Whose wish is {v}?
= label words | the value #h Form: / Details / Your data: / Record: #| {a}: {v} / {a} = {v} / - {a}: {v} / {a} -> {v} / {a}; {v} #: the {a} is {v} / under {a} it says {v} / for the {a} it says {v} #- What is the {a}? / What does it say for the {a}? / What is given as the {a}? #~ Which line says {v}? / Under what does it say {v}? / For what is {v} given?
'''

# What changed from {v} to {w} ".", or was wrong and is {w} ":".  "-" asks for
# what is so now, "~" for what was before; "+" and "*" are the answers to them.

CHANGES = r'''
= event day | the day | on {v} #. {a} was on {v}, but is on {w} now / {a} was moved from {v} to {w} / first we had {v} for {a}, later we took {w} / {a} used to be on {v}; now it is on {w} #: {a} is on {w}, not on {v} as I wrote / {a} is not on {v} but on {w} / I said {v} for {a}, but I meant {w} / keep {w} free for {a}, not {v} as I told you #- When is {a} now? / On which day is {a}? / What is the right day for {a}? #~ On which day was {a} before? / When was {a} at first? / What was the old day of {a}? #+ {a} is on {w} / {a} takes place on {w} / the day of {a} is {w} #* {a} was on {v} / before it was on {v} / the old day of {a} was {v}
= event clock | the time | at {v} #. {a} was at {v}, but begins at {w} now / instead of {v}, {a} is at {w} from now on / {a} began at {v} in the past, but now it begins at {w} #: {a} is at {w}, not at {v} as I wrote / {a} is not at {v} but at {w} / I wrote {v} for {a}, correct is {w} #- At what time is {a}? / When does {a} begin now? / What is the right time for {a}? #~ At what time was {a} before? / When did {a} begin in the past? / What was the old time of {a}? #+ {a} is at {w} / {a} begins at {w} / the time of {a} is {w} #* {a} was at {v} / {a} began at {v} / the old time of {a} was {v}
= event spot | the place | at the {v} #. {a} was to be at the {v}, but now it is at the {w} / {a} has moved from the {v} to the {w} / first the {v} was planned for {a}, now it is the {w} #: {a} is at the {w}, not at the {v} as I wrote / {a} is not at the {v} but at the {w} / for {a} go to the {w}, not to the {v} #- Where is {a}? / At which place is {a} now? / Where do I go for {a}? #~ Where was {a} planned at first? / Where was {a} before the change? / What was the old place of {a}? #+ {a} is at the {w} / {a} takes place at the {w} / the place of {a} is the {w} #* {a} was planned at the {v} / the old place was the {v} / at first {a} was at the {v}
= person city | the home | in {v} #. {a} lived in {v}, but lives in {w} now / {a} has moved from {v} to {w} / {a} left {v} last year and has a flat in {w} now #: {a} lives in {w}, not in {v} as I wrote / {a} does not live in {v} but in {w} / I told you {a} lives in {v}. That was wrong, it is {w} #- Where does {a} live now? / In which city does {a} live? / Where is {a} at home these days? #~ Where did {a} live before? / In which city did {a} live in the past? / What was {a}'s former home? #+ {a} lives in {w} / {a}'s home is in {w} / {a} is in {w} now #* {a} lived in {v} / {a}'s old home was in {v} / before, {a} was in {v}
= person job | the job | a {v} #. {a} was a {v} and is a {w} now / {a} used to work as a {v}, but has become a {w} / first {a} was a {v}, later a {w} #: {a} is a {w}, not a {v} as I wrote / {a} does not work as a {v} but as a {w} / I called {a} a {v}; correct is a {w} #- What is {a}'s job now? / As what does {a} work? / What does {a} do for a living these days? #~ What was {a}'s job before? / As what did {a} work in the past? / What was {a}'s first job? #+ {a} is a {w} / {a} works as a {w} / {a}'s job is that of a {w} #* {a} was a {v} / {a} worked as a {v} / {a} used to be a {v}
= person drink | the drink #. {a} used to drink {v}, but now drinks {w} / first {a} ordered {v}, then changed it to {w} / {a} has gone from {v} to {w} #: {a} wants {w}, not {v} / it is not {v} but {w} for {a} / {a} gets {w}, not {v} as I wrote #- What does {a} drink now? / What is {a}'s drink? / What do I bring for {a} to drink? #~ What did {a} drink before? / What did {a} have first? / What was {a}'s old drink? #+ {a} drinks {w} / {a} wants {w} / {a}'s drink is {w} #* {a} had {v} / {a} drank {v} / {a}'s old drink was {v}
= thing euro | the price | {v} euros #. {a} was {v} euros, but costs {w} now / the price of {a} went from {v} to {w} euros / {a} cost {v} euros last week, today it is {w} #: {a} costs {w} euros, not {v} as I wrote / {a} does not cost {v} euros but {w} / I wrote {v} euros for {a}, but it is {w} #- What does {a} cost now? / How much is {a}? / What is the right price of {a}? #~ What did {a} cost before? / How much was {a}? / What was the old price of {a}? #+ {a} costs {w} euros / the price of {a} is {w} euros / {a} is {w} euros now #* {a} was {v} euros / {a} cost {v} euros / the old price of {a} was {v} euros
= thing room | the place | in the {v} #. {a} was in the {v}, but is in the {w} now / we have moved {a} from the {v} to the {w} / first {a} was in the {v}, later we put it in the {w} #: {a} is in the {w}, not in the {v} as I said / {a} is not in the {v} but in the {w} / look for {a} in the {w}, not in the {v} #- Where is {a} now? / In which room is {a}? / Where do I find {a}? #~ Where was {a} before? / In which room was {a} at first? / What was the old place of {a}? #+ {a} is in the {w} / you find {a} in the {w} / the room is the {w} #* {a} was in the {v} / before, {a} was in the {v} / the old place was the {v}
= thing color | the color #. {a} was {v}, but is {w} now / I painted {a} {w}, before it was {v} / {a} used to be {v} and has become {w} #: {a} is {w}, not {v} as I wrote / {a} is not {v} but {w} / I wrote that {a} is {v}, but in fact it is {w} #- What color is {a} now? / Which color does {a} have? / In which color is {a} today? #~ What color was {a} before? / Which color did {a} have at first? / What was the old color of {a}? #+ {a} is {w} / the color of {a} is {w} / {a} has the color {w} #* {a} was {v} / the old color of {a} was {v} / before, {a} was {v}
= person extension | the number #. {a}'s number was {v}, but is {w} now / {a} has a new number, {w}; the old one was {v} / {a}'s number changes from {v} to {w} #: {a}'s number is {w}, not {v} as I wrote / {a}'s number is not {v} but {w} / for {a} dial {w}, not {v} #- What is {a}'s number now? / At what number do I reach {a}? / Which is the right number of {a}? #~ What was {a}'s number before? / Which number did {a} have in the past? / What was the old number of {a}? #+ {a}'s number is {w} / {a} has the number {w} / you reach {a} at {w} #* {a}'s number was {v} / {a} had the number {v} / the old number of {a} was {v}
= team person | the coach #. the coach of {a} was {v}, now it is {w} / {w} has taken over {a} from {v} / first {v} trained {a}, later {w} #: the coach of {a} is {w}, not {v} as I wrote / not {v} but {w} trains {a} / {a} is trained by {w}, not by {v} #- Who is the coach of {a} now? / Who trains {a}? / By whom is {a} trained today? #~ Who was the coach of {a} before? / Who trained {a} in the past? / Who was the former coach of {a}? #+ {w} trains {a} / the coach of {a} is {w} / {a} is trained by {w} #* {v} trained {a} / the coach of {a} was {v} / {a} was trained by {v}
'''

# base, past, form with -ing and object

CHORES = '''
wash washed washing the {vehicle}; paint painted painting the {place}; repair repaired repairing the {article}; feed fed feeding the {animal}; water watered watering the {plant}; clean cleaned cleaning the {place}; buy bought buying {goods}; sort sorted sorting the {goods}; sell sold selling the {article}; make made making the {dish}; order ordered ordering the {dish}; return returned returning the {article}; visit visited visiting {person}; call called calling {person}; draw drew drawing a {animal}; open opened opening the {place}; pack packed packing the {goods}; find found finding the {goods}; carry carried carrying the {article}; film filmed filming the {animal}; park parked parking the {vehicle}; clear cleared clearing the {place}; test tested testing the {article}; learn learned learning {language}'''

# base, past and reason

REASONS = '''
stay at home, stayed at home, the {vehicle} broke down; come late, came late, the train from {town} had a delay; go to bed early, went to bed early, the night in {town} was short; take a taxi, took a taxi, the bus to {town} was full; call the plumber, called the plumber, the tap in the {room} leaked; buy a new {article}, bought a new {article}, the old one was broken; go to the vet, went to the vet, the {animal} had a fever; leave the party, left the party, the music was too loud; close the window, closed the window, a bee flew into the {room}; learn {language}, learned {language}, the new job was in another country; move to {town}, moved to {town}, the rent was lower there; sell the {vehicle}, sold the {vehicle}, gas was too expensive; cancel the {event}, cancelled the {event}, half of the guests were ill; make the {dish}, made the {dish}, {person} had a birthday; return the {article}, returned the {article}, a part was missing; stop in {town}, stopped in {town}, the tank was empty; clean the {room}, cleaned the {room}, {person} was going to visit; wear a coat, wore a coat, it was cold in {town}; run home, ran home, the oven was still on; hide the {goods}, hid the {goods}, the {animal} kept eating them'''

WORDS = '''
instrument: accordion, banjo, bassoon, cello, clarinet, drums, flute, guitar, harp, horn, mandolin, oboe, organ, piano, saxophone, trombone, trumpet, tuba, viola, violin, xylophone
sport: archery, badminton, ballet, basketball, boxing, climbing, cycling, fencing, football, golf, gymnastics, handball, hockey, judo, karate, rowing, rugby, sailing, skating, surfing, swimming, tennis, volleyball, wrestling
subject: algebra, art, astronomy, biology, chemistry, drama, economics, French, geography, geometry, history, Latin, law, music, physics, Spanish, statistics
drink: apple juice, black tea, cider, cocoa, coffee, cold milk, cola, espresso, ginger ale, green tea, hot chocolate, iced tea, lemonade, mint tea, orange juice, red wine, sparkling water, tomato juice, white wine
food: almonds, celery, cheese, eggs, fish, garlic, honey, lobster, milk, mustard, oats, oysters, peanuts, pepper, rye, sesame, shrimp, soy, wheat
hobby: baking, camping, cooking, dancing, drawing, fishing, gardening, hiking, juggling, knitting, painting, pottery, reading, sewing, singing, skiing
state: bent, broken, brand-new, clean, cracked, dirty, dusty, empty, frozen, greasy, rusty, scratched, sold out, spotless, sticky, torn, wet, worn out
duty: baking, bookkeeping, cleaning, cooking, dusting, filing, gardening, ironing, laundry, mail, packing, parking, printing, seating, shopping, washing
message: backup finished, cache cleared, connection lost, cookie expired, disk full, file deleted, key rejected, login refused, memory low, new user, port closed, queue empty, service started, shutdown, sync done, timeout, upload stopped
setting: batch, buffer, delay, depth, height, interval, limit, margin, offset, port, retries, scale, size, threads, timeout, volume, width, workers
label: account, batch, booking, branch, contract, customer, device, invoice, license, model, order, parcel, permit, policy, receipt, serial, tariff
'''

RANGES = dict(age=(19, 97), years=(2, 25), number=(2, 60), cm=(141, 204),
              size=(20, 49), euro=(3, 490), kilo=(2, 26), km=(2, 96),
              minutes=(5, 120), degrees=(2, 39), extension=(101, 998),
              platform=(1, 25), score=(7, 99))

LISTS = {**text_stories.WORDS, 'city': names.PLACES, 'town': names.PLACES,
         'job': text_docs.JOBS, 'language': names.LANGUAGES,
         'pet': names.FIRST, 'event': names.EVENTS, 'shop': text_docs.SHOPS,
         'topic': names.TOPICS, 'goods': names.GOODS, 'room': names.ROOMS,
         'spot': text_stories.SITES, 'article': text_stories.LISTS['product'],
         'dish': text_stories.LISTS['dish'], 'day': happen.DAYS.split('|'),
         'level': 'DEBUG INFO NOTICE WARN ERROR FATAL'.split(),
         'month': happen.MONTHS, **text_stories.listed(WORDS, ', ')}
THE = dict(thing='article', event='event', shop='shop', place='room',
           plant='plant')

# kinds of values that are not told of the same one: a question for one of them
# could mean the other

APART = [set(t.split()) for t in (
    'city room spot org ordinal street', 'day clock minutes', 'job duty',
    'job subject', 'sky degrees', 'state color', 'sport hobby')]
ODD = text_stories.COMMON | {*'no not none yes hi so if then too one'.split()}


def value(rng, kind):
    """Returns a word, name or number of a kind."""

    if kind in RANGES:
        return str(rng.randrange(*RANGES[kind]))

    if kind in THE or kind in ('box', 'key'):
        return 'the ' + (rng.choice(LISTS[THE[kind]]) if kind in THE else
                         f'{rng.choice(LISTS["color"])} {kind}')

    if kind in LISTS:
        return rng.choice(LISTS[kind])

    (first, her), last = text_stories.person(rng), rng.choice(names.LAST)
    hour, minute = rng.randrange(6, 22), rng.randrange(0, 60, 5)

    if kind == 'person':
        any_name = rng.choice(names.FIRST)
        return expand(rng, '[{0}|{0}|{0}|{0} {1}|[{2}|Dr] {1}|{3} {4}]') \
            .format(any_name, last, *(('Ms', 'Aunt') if her else
                                      ('Mr', 'Uncle')), first)

    return {
        'clock': f'{hour}:{minute:02}',
        'time': f'{hour:02}:{rng.randrange(60):02}',
        'hours': f'{hour // 2 + 5}:00-{hour // 2 + 12}:30',
        'cents': f'{hour - 4}.{minute // 10}0',
        'ordinal': f'{hour - 2}th',
        'title': f'The {rng.choice(names.ADJECTIVES).capitalize()} '
                 f'{rng.choice(names.NOUNS).capitalize()}',
        'org': f'{capital(names.syllables(rng))} & {last}',
        'team': f'{rng.choice(names.PLACES)} {rng.choice(LISTS["club"])}',
        'bus': f'bus {rng.randrange(2, 90)}',
        'words': f'{names.syllables(rng).upper()}{rng.randrange(10, 999)}',
        'street': last + ' Street'}[kind]


def several(rng, kind, n):
    """Returns up to n values, none of which is a part of another."""
    found = []

    for _ in range(40):
        found += [v for v in (value(rng, kind),) if not clash([v], found)]

        if len(found) == n:
            break

    return found


def clash(some, others):
    return any(states(v, bare(w)) or states(w, bare(v))
               for v in some for w in others)


@dataclass(frozen=True)
class Block:
    a: str
    v: str
    label: str
    short: str
    parts: dict


def parts(text):
    return Split(' '.join(text.split()).split(' / '))


def blocks(text):
    found = []

    for rows in ('\n' + text.strip()).split('\n= ')[1:]:
        head, *rest = re.split(r' #(?=\S )', ' '.join(rows.split()))
        kinds, label, *short = head.split(' | ')
        found.append(Block(*kinds.split(), label, *(short or ['{v}']), {
            p[0]: p[2:].split(' ; ') if p[0] in '<>' else Split(
                p[2:].split(', ' if p[0] == 'x' else ' / ')) for p in rest}))

    return found


RELATIONS, FORMS, CHANGES = map(blocks, (RELATIONS, FORMS, CHANGES))
CHORES, REASONS = (Split(' '.join(t.split()).split('; '))
                   for t in (CHORES, REASONS))

SHORT = '''{v}.
{v}, [as you wrote|as it says].
[Answer|The answer]: {v}.
[You wrote|It says]: {v}.
That would be {v}.
[I read|I found]: {v}.'''

SENTENCE = '''{s}.
[You wrote|It says] that {s}.
{s}, [as you wrote|as it says].
[As far as I see|As it says], {s}.
According to [the text|your message], {s}.
[Here|There] it says that {s}.'''

DERIVED = '''{v}.
That would be {v}.
[Answer|The answer]: {v}.
[If I see it right, it is|It is] {v}.
{s}.
[So|As far as I see,] {s}.
{s}, if I [read|see] it right.'''

FRAMES = parts('''[Tell me|I ask you|Question|My question|Now|So|Well]: {q} /
[I forgot|I am not sure|I lost track|Hm|Okay]. {q} / {q} [Please be brief.|I
need it now.|Just tell me.] / [Quick question|One question|Just this]: {q} /
[Can you help?|Help me.|Say it in short.] {q} / [Remind me|Say]: {q}''')

MISSING = text_frame.MISSING + '''
You did not [write|mention|say] that.
[I don't know|I can't tell]: you did not [write|say] it.
[Your message|What you wrote] does not say that.
That is not in [your message|what you wrote].'''

NEAR = ('[About|On|Of] {k} I [read|find]: "{s}" [Nothing about|No word about'
        '|It does not say] {w}.')

TWO = parts('''{who} {p}, {a} or {b}? / {who} {p}? / Of {a} and {b}, {who_}
{p}? / Of the two, {who_} {p}? / [Say|Tell me] {who_} {p}: {a} or {b}? / {who}
{p}: {b} or {a}?''')
MORE = parts('''{who} {p}? / Of them all, {who_} {p}? / Of all these, {who_}
{p}? / [Can you see|Do you know] {who_} {p}? / [Say|Tell me] {who_} {p}.''')

DENIED = re.compile(r"(?:\b(?:not|never|no longer|instead of|rather than)\b"
                    r"|\w+n't\b).*?(?=\bbut\b|[.,;:!?](?:\s|$)|$)", re.I)


@dataclass
class Fact:
    a: str
    v: str
    given: dict         # the {x} of its statement
    seen: str = ''


@dataclass
class Asked:
    """A message without its frame; filled are the words that were drawn."""
    text: List[str]
    question: str
    thoughts: str
    answer: str
    wrong: Callable
    filled: List[str] = field(default_factory=list)
    gap: str = ' '


def put(rng, form, careless, **given):
    """Returns the text of a statement, perhaps with slips."""

    form = expand(rng, form)

    return ARTICLE.sub(r'\1n ', (rough(rng, form) if careless else form)
                       .format(**given))


def ask(rng, form, careless, **given):
    """Returns the text of a question."""

    if rng.random() < 0.2:
        form = rng.choice(FRAMES).replace('{q}', form)

    said = typed(rng, form, True, **given) if careless \
        or rng.random() < 0.15 else say(rng, form, **given)

    return said if careless and rng.random() < 0.5 else capital(said)


def picks(wanted, others):
    """Returns the check of an answer that must have a value, and none of the
    others but as what is not so."""

    def wrong(said):
        cut = said if NEGATIVE.search(wanted) else DENIED.sub(' ', said)

        for v in others:
            if states(cut, bare(v)):
                return f'"{v}" does not belong in: {said}'

        return None if states(cut, bare(wanted)) \
            else f'"{wanted}" is not in: {said}'

    return wrong


def unsaid(said):
    """The answer must admit that the message does not say it; a bare no is
    an answer."""

    return None if NEGATIVE.search(re.sub(
        r'^\W*(?:yes|no)\b', '', said, flags=re.I)) \
        else f'claims what is not said: {said}'


def replied(rng, short, sentence, derived=False):
    """Returns an answer: only the value, or a whole sentence.  derived: the
    message does not say it in so many words."""

    form = DERIVED if derived else SHORT if rng.random() < 0.5 else SENTENCE

    return capital(line(rng, form).format(v=short, s=sentence))


def located(rng, question, seen, wanted, known=''):
    """Returns the thought that quotes where the answer is, after the words of
    the question that lead there, which have what is known."""

    k, known = shared(question, seen, bare(wanted)), bare(known)

    return text_frame.found(rng, k if known in k or known not in question
                            else known, seen, wanted)


def told(rng, block, careless, form):
    """Returns facts of a block, the sentences or lines that state them, and
    another name and value, which may be ''."""

    n = rng.randint(3, 5) if form else rng.choice((1, 2, 2, 2, 2, 3, 3))
    same = block.a == block.v
    a = several(rng, block.a, (n + 1) * (1 + same))
    v = a[n + 1:] if same else several(rng, block.v, n + 1)
    n = min(n, len(a), len(v))
    x = rng.choice(block.parts.get('x', ('',)))
    x = value(rng, x[1:]) if x[:1] == '@' else x
    facts = [Fact(*pair, dict(x=x)) for pair in zip(a[:n], v)]
    spare = (a[n] if len(a) > n else '', v[n] if len(v) > n else '')

    if form:
        if block.v in ('time', 'clock'):
            facts.sort(key=lambda f: number(f.v))

        row = rng.choice(block.parts['|'])
        times = sorted(several(rng, 'time', n))

        for f, t in zip(facts, times):
            f.seen = row.format(a=f.a, v=f.v, t=t, l=rng.choice(
                LISTS['level']))

        head = [rng.choice(block.parts['h'])] if rng.random() < 0.6 else []

        return facts, head + [f.seen for f in facts], spare

    said, rest = [], facts

    if n > 1 and '&' in block.parts and rng.random() < 0.55:
        f, g, *rest = facts
        f.seen = g.seen = capital(put(rng, rng.choice(block.parts['&']),
                                      careless, a=f.a, v=f.v, b=g.a, w=g.v,
                                      x=x))
        said.append(f.seen + '.')

    for f in rest:
        f.seen = put(rng, rng.choice(block.parts['.']), careless, a=f.a,
                     v=f.v, x=x)

    if len(rest) > 1 and rng.random() < 0.5:
        f, g, *rest = rest
        f.seen = capital(f.seen)
        said.append(f.seen + rng.choice((', and ', ', ', ', while ', '; '))
                    + g.seen + '.')

    for f in rest:
        f.seen = f.seen if careless and rng.random() < 0.5 \
            else capital(f.seen)
        said.insert(rng.randint(0, len(said)), f.seen + '.')

    return facts, said, spare


def number(v):
    """Returns the number of a value, of a time in minutes."""

    hour, colon, minute = v.partition(':')

    return int(hour) * 60 + int(minute) if colon else float(v)


def relation(rng, careless, form=False):
    block = rng.choice(FORMS if form else RELATIONS)
    facts, said, spare = told(rng, block, careless, form)
    f = rng.choice(facts)
    filled = [w for g in facts for w in (g.a, g.v)] + [*spare, f.given['x']]
    way, other = rng.random(), None

    def done(question, thoughts, answer, wrong):
        return Asked(said, question, thoughts, answer, wrong, filled,
                     '\n' if form else ' ')

    if not form and rng.random() < 0.35:
        other = rng.choice([
            b for b in RELATIONS if b.a == block.a != 'pet' and b.v != block.v
            and not any({b.v, block.v} <= kinds for kinds in APART)]
            or [None])

    if other and way > 0.2:
        extra = put(rng, rng.choice(other.parts['.']), careless, a=rng.choice(
            facts).a, v=value(rng, other.v), x=value(rng, 'goods')
            if 'x' in other.parts and other.parts['x'][0] == '@goods'
            else rng.choice(other.parts.get('x', ('',))))
        said.insert(rng.randint(0, len(said)), capital(extra) + '.')

    if way < 0.2:
        return done(*missing(rng, careless, block, f, spare, other))

    if way < 0.33:
        return done(*doubted(rng, careless, block, f, facts, form))

    if way < 0.55 and '<' in block.parts and len(facts) > 1:
        return done(*compared(rng, careless, block, facts))

    side = '-' if rng.random() < 0.5 else '~'
    question = ask(rng, rng.choice(block.parts[side]), careless, a=f.a, v=f.v,
                   **f.given)
    wanted = f.v if side == '-' else f.a
    rest = [g.v if side == '-' else g.a for g in facts if g is not f]
    sentence = put(rng, rng.choice(block.parts[':' if form else '.']), False,
                   a=f.a, v=f.v, **f.given)
    short = ARTICLE.sub(r'\1n ', block.short.format(v=f.v)) \
        if side == '-' else f.a

    known = f.a if side == '-' else f.v

    return done(question, located(rng, question, f.seen, wanted, known),
                replied(rng, short, sentence), picks(wanted, rest))


def missing(rng, careless, block, f, spare, other):
    """Returns question, thoughts, answer and check, for what is not there."""

    answer = line(rng, MISSING)

    if other:
        question = ask(rng, rng.choice(other.parts['-']), careless, a=f.a,
                       x=value(rng, 'goods') if '@goods' in other.parts.get(
                           'x', ()) else rng.choice(other.parts.get('x', '-')))

        return question, expand(rng, NEAR).format(
            k=bare(f.a), s=f.seen, w=other.label), answer, unsaid

    side = rng.choice([s for s, w in zip('-~', spare) if w])
    k = spare['-~'.index(side)]
    question = ask(rng, rng.choice(block.parts[side]), careless, a=k, v=k,
                   **f.given)

    return question, text_frame.not_found(rng, bare(k)), answer, unsaid


def doubted(rng, careless, block, f, facts, form):
    """The same for yes or no."""

    y = f.v if rng.random() < 0.5 else rng.choice(facts).v
    forms = block.parts[':' if form else '.']
    s, right = (put(rng, rng.choice(forms), False, a=f.a, v=v, **f.given)
                for v in (y, f.v))
    question = ask(rng, rng.choice(text_stories.YES_NO), careless, s=s)
    yes = y == f.v
    answer = say(rng, rng.choice((text_stories.YES if yes else
                                  text_stories.NO).split(' / ')), s=right,
                 v=f.v)
    thoughts = located(rng, question, f.seen, f.v, f.a) \
        + f' Asked is "{y}": ' + ('yes.' if yes else f'no, "{f.v}".')

    return question, thoughts, answer, lambda said: affirms(said, yes)


def compared(rng, careless, block, facts):
    """The same for who or what has less or more."""

    sign = rng.choice('<>')
    best = (min if sign == '<' else max)(facts, key=lambda g: number(g.v))
    p = block.parts[sign][len(facts) > 2].format(**best.given)
    who = 'who' if block.a in ('person', 'pet') else rng.choice(
        ('what', 'which one'))
    question = ask(rng, rng.choice(MORE if len(facts) > 2 else TWO), careless,
                   who=capital(who), who_=who, p=p, a=facts[0].a,
                   b=facts[-1].a)
    seen = ' '.join(f'"{s}"' for s in dict.fromkeys(g.seen for g in facts))
    thoughts = f'{", ".join(bare(g.a) for g in facts)}: {seen} ' \
        f'{", ".join(g.v for g in facts)}. {best.v}: {best.a} {p}.'

    return question, thoughts, replied(rng, best.a, f'{best.a} {p}', True), \
        picks(best.a, [g.a for g in facts if g is not best])


def changed(rng, careless):
    block, mark = rng.choice(CHANGES), rng.choice('.:')
    n = rng.choice((1, 1, 2))
    people = several(rng, block.a, n + 1)
    both = several(rng, block.v, 2 * n)
    filled, said, seen = people + both, [], []

    for a, v, w in zip(people, both[::2], both[1::2]):
        seen.append(capital(put(rng, rng.choice(block.parts[mark]), careless,
                                a=a, v=v, w=w)))
        said.append(seen[-1] + '.')

    side = '-' if mark == ':' or rng.random() < 0.6 else '~'
    gone = rng.random() < 0.12
    i = rng.randrange(min(n, len(said)))
    old, new = both[2 * i:2 * i + 2]
    question = ask(rng, rng.choice(block.parts[side]), careless,
                   a=people[-1 if gone else i])

    if gone:
        return Asked(said, question, text_frame.not_found(
            rng, bare(people[-1])), line(rng, MISSING), unsaid, filled)

    wanted = new if side == '-' else old
    sentence = say(rng, rng.choice(block.parts['+' if side == '-' else '*']),
                   a=people[i], v=old, w=new)
    thoughts = located(rng, question, seen[i], wanted, people[i]) + ' ' \
        + expand(rng, 'Asked is [what is so now|what is right].' if side == '-'
                 else 'Asked is what was [before|so at first].')

    return Asked(said, question, thoughts, replied(rng, ARTICLE.sub(
        r'\1n ', block.short.format(v=wanted)), sentence), picks(
            wanted, [v for v in both if v != wanted]), filled)


def chores(rng, n):
    """Returns (base, past, form with -ing, object) of n different chores."""

    found = []

    for row in rng.sample(CHORES, min(n, len(rng.of(CHORES)))):
        base, past, ing, what = row.split(' ', 3)
        kind = re.search(r'{(\w+)}', what)[1]
        what = ARTICLE.sub(r'\1n ', what.replace(
            '{%s}' % kind, value(rng, kind).replace('the ', '')))
        found.append(tuple(f'{v} {what}' for v in (base, past, ing))
                     + (what,))

    return found


DEEDS = {
    '~': parts('Who {past}? / Who was it that {past}? / Which of them {past}? '
               '/ I want to know who {past}. / Do you see who {past}?'),
    '-': parts('What did {a} do? / What was done by {a}? / What did {a} get '
               'done? / Tell me what {a} did. / {a} did what?')}


def deeds(rng, careless):
    """Who did which of several things."""

    done = chores(rng, rng.randint(2, 4))
    people = several(rng, 'person', len(done) + 1)
    clauses = [put(rng, '{a} {past}', careless, a=a, past=d[1])
               for a, d in zip(people, done)]
    text = rng.choice((', ', '; ', '. ')).join(clauses) + '.' \
        if rng.random() < 0.4 else ', '.join(
            clauses[:-1]) + rng.choice((' and ', ', and ', ', while ')) \
        + clauses[-1] + '.'
    i, side = rng.randrange(len(done)), rng.choice('-~')
    filled = people + [d[3] for d in done]
    gone = rng.random() < 0.12
    a = people[-1] if gone else people[i]
    question = ask(rng, rng.choice(DEEDS['-' if gone else side]), careless,
                   a=a, past=done[i][1])

    if gone:
        return Asked([text], question, text_frame.not_found(rng, a),
                     line(rng, MISSING), unsaid, filled)

    wanted, rest = (done[i][3], [d[3] for d in done if d is not done[i]]) \
        if side == '-' else (a, [p for p in people if p != a])

    return Asked([text], question, located(rng, question, clauses[i], wanted,
                                          a if side == '-' else ''),
                 replied(rng, done[i][2] if side == '-' else a,
                         f'{a} {done[i][1]}'), picks(wanted, rest), filled)


BECAUSE = parts('''{a} {past} because {r} / {r}, so {a} {past} / since {r},
{a} {past} / {a} {past}, as {r} / the reason why {a} {past} is that {r} / {a}
{past}, and that was because {r} / because {r}, {a} {past}''')
WHY = parts('''Why did {a} {base}? / What was the reason why {a} {past}? / {a}
{past}. Why? / For what reason did {a} {base}? / Why was it that {a} {past}? /
How come {a} {past}?''')


def reasons(rng, careless):
    """Why somebody did something."""

    rows = [r.split(', ', 2) for r in rng.sample(REASONS, 2)]
    people = several(rng, 'person', 3)
    said, facts, filled = [], [], list(people)

    for a, row in zip(people, rows[:rng.choice((1, 2))]):
        given = {k: value(rng, k).replace('the ', '') for k in re.findall(
            r'{(\w+)}', ' '.join(row))}
        base, past, r = (ARTICLE.sub(r'\1n ', t.format(**given)) for t in row)
        facts.append((a, base, past, r))
        filled += given.values()
        said.append(capital(put(rng, rng.choice(BECAUSE), careless, a=a,
                                past=past, r=r)) + '.')

    i = rng.randrange(len(said))
    a, base, past, r = facts[i]
    way = rng.random()
    asks = DEEDS['~'] if way < 0.25 else WHY
    who = people[2] if way > 0.88 else a
    question = ask(rng, rng.choice(asks), careless, a=who, base=base,
                   past=past)

    if way > 0.88:
        return Asked(said, question, text_frame.not_found(rng, who),
                     line(rng, MISSING), unsaid, filled)

    wanted, short, rest = (a, a, people) if way < 0.25 else (
        r, rng.choice(('', 'because ')) + r, [f[3] for f in facts])
    answer = replied(rng, short, f'{a} {past}' if way < 0.25
                     else f'{a} {past} because {r}')

    return Asked(said, question, located(rng, question, said[i][:-1], wanted,
                                          '' if way < 0.25 else a),
                 answer, picks(wanted, [w for w in rest if w != wanted])
                 if way < 0.25 else lambda said: None if states(said, r)
                 and not any(states(said, w) for w in rest if w != r)
                 else f'not the reason: {said}', filled)


CAME = Split('arrived called came finished left returned sang spoke'.split())
ROWS = parts('''first {n0} {p}, then {n1}, and {n2} last / {n0} {p} first, {n1}
second and {n2} third / {n2} {p} last, {n0} first and {n1} in between / {n0}
{p} before {n1}, and {n2} {p} after {n1} / {n1} {p} after {n0} but before {n2}
/ {n2} was the last one who {p}; {n0} was the first, and {n1} was second''')
DAYS = parts('''first {a} {n0}, then {a} {n1}, and in the end {a} {n2} / {a}
{n0}, then {n1} and after that {n2} / {a} first {n0}, then {n1} and at last
{n2} / {a} {n0}; later {a} {n1}, and after that {n2}''')
PLACED = (parts('Who {p} first? / Who was the first who {p}? / Who {p} before '
                'the others? / Which of them {p} first?'),
          parts('Who {p} second? / Who was the second who {p}? / Who {p} '
                'right after {n0}? / Who {p} between {n0} and {n2}?'),
          parts('Who {p} last? / Who was the last who {p}? / Who {p} after '
                'the others? / Which of them {p} last?'))
DONE = (parts('What did {a} do first? / What was the first thing that {a} did?'
              ' / With what did {a} begin? / What did {a} do before {i1}?'),
        parts('What did {a} do second? / What was the second thing that {a} '
              'did? / What did {a} do right after {i0}?'),
        parts('What did {a} do last? / What was the last thing that {a} did? '
              '/ With what did {a} end? / What did {a} do after {i1}?'))
CHAINS = tuple(row.split(', ') for row in (
    'taller, the tallest, shorter, the shortest',
    'older, the oldest, younger, the youngest',
    'faster, the fastest, slower, the slowest',
    'stronger, the strongest, weaker, the weakest',
    'richer, the richest, poorer, the poorest',
    'louder, the loudest, quieter, the quietest'))
CHAIN = ('{n0} is {up} than {n1}, and {n1} is {up} than {n2}',
         '{n2} is {down} than {n1}; {n1} is {down} than {n0}',
         '{n0} is {up} than {n1}, but {n2} is {down} than {n1}',
         '{n1} is {down} than {n0} and {up} than {n2}',
         'among the three, {n1} is {down} than {n0}, but {up} than {n2}')


N3 = ('n0', 'n1', 'n2')


def orders(rng, careless):
    """What was first or last, and who is more than whom."""

    people, way = several(rng, 'person', 3), rng.random()
    filled, three = list(people), dict(zip(N3, people))

    if way < 0.35:
        up, most, down, least = rng.choice(CHAINS)
        said = put(rng, rng.choice(CHAIN), careless, up=up, down=down,
                   **three)
        i, p = rng.choice(((0, most), (2, least), (0, up), (2, down)))
        two = [people[i], people[1]]
        rng.shuffle(two)
        asks = MORE if p[:4] == 'the ' else [t for t in rng.of(TWO)
                                             if '{a}' in t]
        question = ask(rng, rng.choice(asks), careless, who='Who', who_='who',
                       p='is ' + p, a=two[0], b=two[1])
        wanted = short = people[i]
        sentence, rest = f'{wanted} is {p}', people
        end = f'{" - ".join(people)}: {up} comes first.'
    elif way < 0.7:
        p = rng.choice(CAME)
        said = put(rng, rng.choice(ROWS), careless, p=p, **three)
        i = rng.randrange(3)
        question = ask(rng, rng.choice(PLACED[i]), careless, p=p, **three)
        wanted = short = people[i]
        sentence = f'{wanted} {p} {("first", "second", "last")[i]}'
        rest, end = people, f'{" - ".join(people)}.'
    else:
        done = chores(rng, 3)
        a, things = people[0], [d[3] for d in done]
        said = put(rng, rng.choice(DAYS), careless, a=a,
                   **dict(zip(N3, (d[1] for d in done))))
        i = rng.randrange(3)
        question = ask(rng, rng.choice(DONE[i]), careless, a=a, i0=done[0][2],
                       i1=done[1][2])
        wanted, short = things[i], done[i][2]
        sentence, rest = f'{a} {done[i][1]}', things
        filled, end = [a] + things, f'{" - ".join(things)}.'

    said = capital(said)
    thoughts = text_frame.found(rng, '', said, wanted) + ' In order: ' + end

    return Asked([said + '.'], question, thoughts,
                 replied(rng, short, sentence, True),
                 picks(wanted, [w for w in rest if w != wanted]), filled)


COUNTS = (
    ('article', parts('''{a} packed {list} / {a} has {list} / {a} sold {list} /
for {a} I bought {list}'''), parts('''How many things are named for {a}? / How
many things is it for {a}? / {a}: how many things? / What is the number of
things of {a}?''')),
    ('animal', parts('''in the house of {a} there are {list} / {a} keeps {list}
/ {a} has {list} / {list} live with {a}'''), parts('''How many animals does {a}
have? / How many pets are {a}'s? / What is the number of animals of {a}? / How
many animals live with {a}?''')),
    ('person', parts('''{list} work for {a} / the guests of {a} are {list} /
{a} is waiting for {list} / {a} has invited {list}'''), parts('''How many
people are named besides {a}? / Without {a}, how many people are named? / How
many names are there besides {a}? / Not counting {a}, how many people is
it?''')))
NUMBERS = 'no one two three four five six'.split()


def counted(rng, careless):
    """How many there are, up to six."""

    kind, says, asks = rng.choice(COUNTS)
    n = rng.randint(2, 6)
    a, *rest = several(rng, 'person', 3)
    things = several(rng, kind, n)
    n = len(things)
    listed = [w if kind == 'person' else ARTICLE.sub(r'\1n ', 'a ' + w)
              for w in things]
    given = dict(a=a, list=', '.join(listed[:-1]) + ' and ' + listed[-1])
    seen = capital(put(rng, rng.choice(says), careless, **given))
    more = several(rng, 'city', 1)
    said = [seen + '.'] + ([put(rng, '{a} is from {v}.', False, a=rest[0],
                                v=more[0])] if kind != 'person' else [])
    rng.shuffle(said)
    question = ask(rng, rng.choice(asks), careless, a=a)
    word = rng.choice((NUMBERS[n], str(n)))
    thoughts = text_frame.found(rng, a, seen, str(n)) \
        + ' ' + ', '.join(f'{w} {i + 1}' for i, w in enumerate(things)) + '.'
    answer = replied(rng, word, expand(
        rng, f'[there are|the number is|it is] {word}'), True)

    def wrong(text):
        those = [i for i in range(1, 20) if states(text, str(i)) or i < 7
                 and states(text, NUMBERS[i])]

        return None if those == [n] else f'{n} is not the number of: {text}'

    return Asked(said, question, thoughts, answer, wrong,
                 [a, *rest, *things, *more])


def placed(rng, asked):
    """Returns the message: the question after or before the text or between
    two sentences."""

    text, q, way = asked.gap.join(asked.text), asked.question, rng.random()
    form = asked.gap == '\n'

    if way < 0.06:
        return text_frame.framed(rng, text, q)

    if way < 0.62 or re.search(r'\b(?:one|them|two|these|it)\b', q):
        return text + rng.choice(('\n', '\n\n') if form or way < 0.16
                                 else (' ',)) + q

    q = q if q[-1] in '.?!' else q + '?'

    if form or way < 0.82 or len(asked.text) < 2:
        return q + rng.choice(('\n', '\n\n') if form else (' ', ' ', '\n')) \
            + text

    i = rng.randrange(1, len(asked.text))
    return ' '.join(asked.text[:i] + [q] + asked.text[i:])


def draw(rng):
    """Returns an Asked whose names are clear and whose answer is right."""

    way = rng.random()
    make = relation if way < 0.44 else changed if way < 0.55 else deeds \
        if way < 0.62 else reasons if way < 0.69 else orders if way < 0.77 \
        else counted if way < 0.84 else None
    careless = rng.random() < 0.2

    while True:
        asked = make(rng, careless) if make else relation(rng, careless, True)
        words = [w for w in dict.fromkeys(asked.filled) if w]

        if asked.wrong(asked.answer) is None and not any(
                w.lower() in ODD for v in words for w in v.split()
                if w.istitle() and v[:4] != 'The ') and not any(
                    clash([w], words[i + 1:]) for i, w in enumerate(words)):
            return asked


def turn(rng):
    """Returns the Turn of some statements and a question about them."""

    asked = draw(rng)
    thoughts = scan.looked(rng, asked.text, asked.question, asked.thoughts,
                           asked.wrong is not unsaid)

    def gold(mode):
        yield Step('' if mode == CHAT else thoughts, asked.answer)

    return Turn(placed(rng, asked), gold=gold,
                check=lambda said, calls: 'there was nothing to call'
                if calls else asked.wrong(said))
