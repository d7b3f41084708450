# Copyright (C) The nginx-dsa authors

"""More questions, in the form of text_asks.py."""

ASKS = '''
= how_many
- How many {x} [are on the list|do we need|are there]?
- What number of {x} is it?
- how many {x}
- I am in the shop now. How many {x} do I take?
- {x}: how many?
- The {x}, how many of them?
- Tell me the number of {x}.
- Do you see how many {x} we need?
- Of {x} we want how many?
- My sister asks how many {x} it should be.
- I forgot the number of {x}. What was it?
- Count for {x}?
> {v}.
> {v} {x}.
> [It is|There are|Take] {v}.
> The list has {v} {x}.
> [It says|The list says] {v}.
> The number is {v}.

= what_number
- Of which thing are there {x}?
- Which things come {x} times?
- {x} of what?
- What do we have {x} of?
- There are {x} of something. Of what?
- the number {x} belongs to what
- Next to which word is the {x}?
> {v}.
> [It is|That is|There are {x}] {v}.
> {x} {v}.
> The {v}.
> The number belongs to {v}.
> We have {x} {v}.

= phone
- What is the phone number of {x}?
- How can I call {x}?
- Number of {x}?
- I have to ring {x}. Which number is it?
- whats the number of {x} pls
- {x}, phone?
- Under what number do I reach {x}?
- Which digits do I dial for {x}?
- Please look up the number of {x}.
- My phone lost {x}. Do you have the number?
- {x} should get a call from me. The number, please.
> {v}.
> [It is|The number is|Call] {v}.
> {x} has the number {v}.
> You reach {x} under {v}.
> {x}: {v}.
> The list says {v}.

= whose
- Whose number is {x}?
- Who has the number {x}?
- {x} called me. Who is that?
- Which person is behind {x}?
- who is {x}
- I found {x} on a note. Whom would I reach?
- To whom does {x} belong?
- A missed call from {x}. Who was it?
> {v}.
> [It is|That is] the number of {v}.
> That is {v}.
> {v} has that number.
> You would reach {v}.
> It belongs to {v}.

= degrees
- How warm is it in {x}?
- What is the temperature in {x}?
- How many degrees does {x} have?
- {x}, degrees?
- how hot or cold is {x}
- I'm flying to {x}. How many degrees are there?
- What does the report say for {x}, in degrees?
- Do you see how warm {x} is?
> {v} degrees.
> [It is|They have] {v} degrees[ in {x}|].
> In {x} it is {v} degrees.
> {v}.
> {x} has {v} degrees.
> The report says {v}.

= sky
- What is the weather like in {x}?
- What do they have in {x}, sun or something else?
- Weather in {x}?
- How is the weather in {x} today?
- whats it like in {x}
- I call my aunt in {x}. What weather will she tell me about?
- How does the sky look in {x}?
- Do I need a coat in {x}? What is the weather there?
> {v}.
> [It is|In {x} it is] {v}.
> They have it {v}.
> {x}: {v}.
> The report says {v}.
> The weather in {x} is {v}.

= warmest
- Where is it warmest?
- Which place has the highest temperature?
- Where do I go if I like it hot?
- warmest place?
- Which of them has the most degrees?
- Where is it hotter than in all the others?
> In {v}.
> {v}.
> It is warmest in {v}.
> [That is|The warmest is] {v}.
> {v} has the most degrees.
> The highest number is that of {v}.

= coldest
- Where is it coldest?
- Which place has the lowest temperature?
- Where should one wear the thickest coat?
- coldest place?
- Which of them has the fewest degrees?
- Where is it colder than in all the others?
> In {v}.
> {v}.
> It is coldest in {v}.
> [That is|The coldest is] {v}.
> {v} has the fewest degrees.
> The lowest number is that of {v}.

= next_did
- What did {y} do after that? I mean, after: {x}
- {x}. And then?
- What came next, after this: {x}?
- What happened right after "{x}"?
- The story goes: {x}. How does it go on?
- After "{x}", what was next?
- {x}, and what did {y} do then?
> {v}.
> Then: {v}.
> [Next was|After that came|It was] "{v}".
> It goes on with "{v}".
> "{v}" came next.
> The next thing was: {v}.

= prior
- What did {y} do before that? I mean, before: {x}
- What came before this: {x}?
- What happened right before "{x}"?
- Before "{x}", what was there?
- {y} did this: {x}. What was just before it?
- What is the step before "{x}"?
> {v}.
> Before that: {v}.
> [Just before was|Before it came|It was] "{v}".
> "{v}" came before.
> The one before was: {v}.
> First there was "{v}".
'''
