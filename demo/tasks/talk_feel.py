# Copyright (C) The nginx-dsa authors

"""Subjects of daily_talk, which describes their form: feelings and news."""

SUBJECTS = '''
the user feels sad
- I feel [so |very |a bit |]sad[ today| right now| tonight|].
- I'm [so |really |]sad[ today|].
- [Today is|It was] a sad day[ for me|].
- I [could cry|want to cry|am crying].
- I am [unhappy|feeling down|feeling low|depressed][ today| since {day}|].
- {name} [left me|broke up with me|is moving away].
- I miss {name}[ so much|].
- I [had|am having] a [terrible|horrible|bad] [day|week|time].
- everything is grey today and i dont know why
- [Not a good day|Bad day|Rough day][, to be honest|].
- [Somehow|Lately] nothing makes me smile.
- Can I tell you something? I've been crying all evening.
- My heart is heavy[ today|].
- I keep thinking of {name} and my eyes get wet.
- so down rn
- [My mood is|I'm] at zero.
- Since {day} I [just sit at home|can hardly get up].
- {name} moved to {city}, and now the house is so empty.
- why does it hurt so much
- It's one of those days when I want to stay in bed.
- I don't feel good[, not in the body, just inside|].
- my girlfriend and i split up
- We [argued|had a fight] and now {name} won't talk to me.
- I am not ok.
- [feeling blue|got the blues] today
- Today would have been my father's birthday. He is gone.
- The summer is over and I feel low.
- I try to laugh but it does not work.
- I have tears in my eyes.
- You know, I'm really not happy with my life[ at the moment|].
- It's {day} and I already want to give up.
> I'm sorry [to hear that|that you feel this way|about that]. [Do you want to talk about it?|What happened?|I hope it gets better soon.|]
> That sounds [hard|sad|difficult]. [I hope you feel better soon.|I am here if you want to talk.|What happened?]
> [Oh no|Oh], I'm sorry. [Would you like to tell me more?|I hope tomorrow is better.|Talking can help.]
> I am sorry. [I hope that you feel better soon.|A walk or a friend may help.|Tell me more if you like.]
> That must be [hard|difficult]. [Is there somebody you can call?|What would do you good now?]
> [I'm sorry you have to go through this.|Sorry, that hurts.] [Be kind to yourself.|One day at a time.]
> It is all right to be sad. [Do you want to tell me what happened?|Is a friend near you?]
> [That's sad, and I'm sorry.|Sorry to hear it.] [What is on your mind?|I'm listening.]
+ sorry; hard; sad; difficult
! goodbye; great; congratulations

the user's pet or a relative died
- My {pet} died[ yesterday| last night| this morning|].
- [We had to|I had to] put my {pet} to sleep[ today| on {day}|].
- My [grandmother|grandfather|uncle|aunt] [passed away|died][ on {day}| last week|].
- {name} [died|passed away][ last week| on {day}|].
- our {pet} is dead
- I buried my {pet} today.
- I've lost my {pet}. It was with me for {n} years.
- The {pet} that we had for {n} years [did not wake up|is gone].
- There was a funeral in {city} today. It was for {name}.
- Yesterday I got the news that {name} is dead.
- a car ran over my {pet}
- My {pet} was very old, and this morning it was gone.
- It's so quiet here since the {pet} died.
- The vet could not save my {pet}.
- my best friend died {n} years ago and i still miss him
- We said goodbye to our {pet} today.
- I come home and no {pet} is waiting for me any more.
- My [mom|dad] died[ in spring| on {day}|].
- {name} is no longer with us.
- i still look for my {pet} every morning, then i remember
- The vet called. My {pet} is gone.
- we lost our {pet} in the night
- I can't believe that {name} is dead.
- My {pet} was {n} years old. It died in my arms.
- Tomorrow is the funeral of my [aunt|uncle|grandmother].
- My neighbor {name} died[ yesterday|], we were close.
- rip my little {pet}
- Since my [mother|father] died I can't think of anything else.
- There's an empty place at the table now that {name} is gone.
- I don't know how to tell the kids that the {pet} is dead.
- A year ago today, {name} died.
> I'm [so |very |]sorry for your loss. [Do you want to tell me about it?|I am here if you want to talk.|]
> I am so sorry. [That must hurt a lot.|It is hard to lose someone you love.]
> [Oh no, I'm sorry.|I'm very sorry.] [Take the time that you need.|Be kind to yourself.]
> That is very sad, and I'm sorry. [Would you like to tell me what you remember best?|I am here if you want to talk.]
> My condolences. [I wish you strength.|I hope good memories help you.]
> I am sorry to hear that. [Losing someone is hard.|It's all right to be sad.]
> I'm sorry. [What do you like to remember?|I wish you much strength.]
> That is a hard loss[, and I am sorry|]. [Is somebody with you?|I'm listening if you want to talk.]
+ sorry; condolences; sad; hard; loss
! great; congratulations; wonderful

the user feels happy or has good news
- I feel [great|happy|wonderful|fantastic][ today|].
- I'm [so |really |]happy[ today|].
- [Today is|This is|What] a [great|wonderful|lovely] day!
- I am [in a good mood|full of joy|excited].
- I [got the job|won the race|got a raise|finished my work]!
- We [won|are getting married|had a baby|bought a house]!
- {name} [said yes|came back|likes me]!
- guess what, they hired me!!
- [Good news|Great news]: [the operation went well|we got the flat|I am going to be an aunt].
- my team won {n} to nothing!
- I can't stop smiling[ today|].
- Finally it worked! After {n} weeks my cake did not burn.
- Our first child was born on {day}.
- I got a letter from {city}: they take me!
- best day ever
- The doctor says that I am healthy again[!|.]
- Just booked a trip to {city}, yay
- The sun shines, the coffee is good, and I have the day off.
- I have a date with {name}[ on {day}|]!
- They gave me the promotion[!|, can you believe it?]
- [Hooray|Yes|Yippee]!
- I'm over the moon.
- My plants have flowers at last.
- I ran {n} miles without a break, for the first time.
- {name} asked me to marry and I said yes
- Life is good[ right now|].
- we sold the house!
- I found my lost {product} again!
- My little sister took her first steps[ today|].
- everything went better than I thought
> [That's|That is] [great|wonderful|good] [to hear|news]! [What happened?|Enjoy it.|I am happy for you.|]
> [How nice|How wonderful|Great]! [I am glad to hear that.|Tell me more.|Enjoy the day.]
> [I'm|I am] [glad|happy] [for you|to hear that]. [Enjoy it!|Well done.|]
> [Wonderful|Great|Congratulations]! [That must feel good.|Enjoy the moment.|]
> [Yay, that's great!|Hooray, how nice!] [Will you celebrate?|Who did you tell first?]
> [So good to hear!|How good!] [You have every reason to smile.|Enjoy every bit of it.]
> That makes me [happy|glad], too. [What will you do now?|Tell me all about it.]
> [Nice one!|Very nice!] [I hope the day goes on like this.|Have a little party.]
+ great; wonderful; good; nice; glad; happy; congratulations
! goodbye; sorry

the user passed an exam
- I [passed|have passed] my [exam|final exam|test][ today| yesterday|]!
- I passed!
- My exam [went well|is over, and I passed].
- They told me today: passed!
- I got [an A|the best grade|full marks] in my test!
- I finally have my driving license[!|.]
- [After {n} tries|At the third try] I passed the [test|exam].
- passed my finals!!
- {name} and I both passed the exam[ on {day}|].
- I was so afraid of the test, and now I have passed it.
- My [daughter|son] passed the exam[ today|].
- got my results... I made it!
- University is done, I have my degree.
- The language exam? Passed[, with honors|]!
- All the learning was worth it. I passed.
- I did it! My exam is behind me and the grade is good.
- just heard back from school and i passed everything
- Guess who passed the driving test on {day}?
- I thought I had failed, but I passed.
- you are talking to somebody with a diploma now :)
- I'm done with school, passed everything.
- My teacher just told me that I passed[!|.]
- The letter from the university came: passed.
- Yes! Full marks in the [French|math|history] test.
- I needed 50 points and got 90, so I passed!
- passed the driving test on first try
- Can you believe it? I passed.
- I'm a nurse now, I passed my last exam[ on {day}|].
- My friend {name} finally passed the exam.
- After months of learning I have it: the certificate!
> Congratulations! [Well done.|You can be proud.|That is great.]
> [Well done|Great|Wonderful]! [You can be proud of yourself.|Your work paid off.|Enjoy it.]
> Congratulations[ on passing|]! [How will you celebrate?|All the work was worth it.]
> [That's great news|How great], congratulations! [Now take a rest.|Enjoy the day.]
> [Bravo!|Hooray!] [Well done.|That is a great success.]
> I'm [happy|glad] for you! [You have earned it.|Congratulations!|Now you can relax.]
> [Great work!|Good job!] [I hope you celebrate it.|Be proud of it.]
> [Passed, how wonderful!|Very good!] [Congratulations!|Who will you tell first?]
+ congratulations; well done; great; wonderful; bravo; good; happy; glad; hooray
! sorry; goodbye

the user has a birthday
- [It's|It is|Today is] my birthday[ today|]!
- I [turn|am turning] {age} today.
- Tomorrow is my birthday[!|.]
- Guess whose birthday it is today? Mine!
- I'm {age} since this morning.
- It's my {age}th birthday.
- happy birthday to me
- My birthday is on {day}[, and I can't wait|].
- I'm having a birthday party on {day}.
- I am one year older today.
- {name} baked me a cake because I turn {age}.
- today i have birthday
- Another birthday. Now I am {age}.
- You haven't congratulated me yet. It's my birthday!
- They sang for me this morning, since I turned {age}.
- can u wish me a happy birthday? its today
- My [daughter|son|wife|husband|mother] has a birthday today.
- bday today :)
- {age} candles on my cake today!
- Wish me a happy birthday[, please|]!
- I was born on this day, {age} years ago.
- Guess who turns {age} today. Me!
- my bday is tmrw
- The whole family is here because I turned {age}.
- Everybody forgot that it's my birthday today.
- [Hello|Hi], it's my special day: I am {age} now.
- We celebrate my birthday tonight, {n}0 guests will come.
- Woke up and I'm {age}. Time flies.
- It is the birthday of my best friend {name} today.
- In {n} days it's my birthday.
- Sing me a birthday song, I'm {age} today!
> Happy birthday! [I wish you all the best.|Enjoy your day.|Have a lovely day.|]
> [Congratulations|Happy birthday] and all the best[ for the new year of life|]! [Will there be cake?|Have fun.]
> [Oh, happy birthday!|Then happy birthday!] [How will you celebrate?|I hope you get nice presents.]
> All the best for the birthday! [Have a wonderful day.|Enjoy the party.]
> [Many happy returns!|Happy, happy birthday!] [Eat a piece of cake for me.|Have a good time.]
> How nice, a birthday! [All the best.|Happy birthday!]
> Happy birthday! [May all your wishes come true.|May it be a good year.|I hope it is a happy day.]
> [Three cheers for the birthday!|Hip hip hooray, happy birthday!] [Enjoy the day.|All the best!]
+ birthday; happy; best; congratulations
! sorry; goodbye

the user is tired
- I'm [so |very |really |]tired[ today|].
- I [did not sleep|slept badly|slept only {n} hours].
- I [need|want] [to sleep|a nap|a rest].
- [Work|School|The week] [made me|has made me] tired.
- I am [exhausted|worn out|sleepy].
- I can hardly keep my eyes open.
- yawn
- The baby kept us awake all night.
- third night shift in a row...
- My eyes are closing while I type this.
- I've been up since {n} in the morning.
- No energy left[ today|].
- so sleepy rn, coffee doesnt help
- I could fall asleep standing up.
- We drove to {city} and back, and now I am finished.
- Why am I always so tired?
- {n} hours of meetings. I'm dead.
- It's only noon and I'd like to go to bed.
- My neighbors had a party until {n}, guess who could not sleep.
- I'm wiped out[ from work| after the gym|].
- Too much work, too little sleep.
- The kids ran me ragged today.
- i need holidays
- My legs are heavy and my head is empty.
- I haven't had a real break for weeks.
- jet lag is killing me
- I worked until midnight[ again|].
- I keep yawning.
- The alarm rang at 5, I'm not made for this.
- What a long day, I can't keep my head up.
- My brain is mush after {n} hours of learning.
> [You should|Maybe you should|Perhaps you can] [get some rest|rest a little|take a break|sleep early today].
> That sounds [tiring|exhausting]. [A rest may help.|Take a break if you can.|Try to sleep early.]
> [Take it easy|Take a break], [then|and] [get some rest|have some sleep]. I hope you [sleep well|feel better soon].
> I hope you can [rest|sleep|take a break] soon.
> [No wonder.|I believe you.] [Lie down for a while and rest.|Go to sleep early tonight.]
> Then be good to yourself: [some rest|a short sleep|a long break] [will help|does wonders].
> [Poor you!|Oh dear.] [Can you sleep in tomorrow?|Is there time for a rest?|Maybe a short break now?]
> [Close your eyes for a moment.|A glass of water and fresh air, perhaps?] And sleep well tonight.
+ rest; break; sleep; easy
! goodbye

the user is nervous or worried
- I'm [worried|afraid|nervous|scared][ about {thing}| of {thing}|].
- I am [nervous|anxious] [today|about {thing}].
- [Tomorrow|On {day}] I have [an exam|a job interview|a test|an operation], and I am nervous.
- What if [it|everything] goes wrong?
- I have [stress|so much to do|too much work].
- I [can't|cannot] sleep because of {thing}.
- my hands are shaking, its my turn in {n} minutes
- I have to give a speech in front of {n}0 people.
- [Job interview|Driving test|First day at work] tomorrow!!! help
- {thing}... I think about it all the time.
- butterflies in my stomach, first date tonight
- I have stage fright.
- My mind goes round and round at night.
- What should I do against nerves?
- The doctor wants to see me on {day}, and I fear the worst.
- I fly for the first time, and I'm scared.
- so nervous about {day}
- They will call me today with the result. I can't sit still.
- I worry a lot[ lately| about everything|].
- {name} isn't home yet and doesn't pick up the phone.
- I doubt that I can do it.
- exam in {n} days and i know nothing
- How do I calm down?
- Everybody expects so much from me.
- My heart beats like mad before every call.
- I'm under a lot of pressure[ at work| at school|].
- Wish me luck for {day}!
- fingers crossed for my interview pls
- I am scared I will fail.
- I don't know how to get it all done by {day}.
> [That is|It is] [understandable|normal]. [Take one step at a time.|You can do it.|Breathe slowly.|I wish you luck.]
> I understand[ that|]. [Try to|It may help to] [take one step at a time|write down what worries you|talk to a friend].
> [Good luck|I wish you luck]! [Take a deep breath.|You can do it.|One step at a time.]
> [Many people feel that way.|That sounds hard.] [Take a deep breath.|One step at a time.|A talk with a friend may help.]
> [Breathe in, breathe out.|Take a deep breath.] [You can do this, one step at a time.|I wish you luck.]
> I'll keep my fingers crossed, good luck! [You can do it.|Breathe slowly.|]
> [It's normal to feel like that.|I understand, that is a lot.] [What is the next small step?|What worries you most?]
> [It is understandable that it keeps you busy.|Many people know that feeling.] [Do you want to tell me more?|Good luck!]
+ understand; understandable; normal; luck; hard; people; step
! goodbye

the user is angry
- I'm [so |really |]angry[ at {name}| about {thing}|].
- {name} [lied to me|forgot me|was rude|broke my {product}].
- [This is|That is] [so |]annoying!
- I hate [this|Mondays|my job|{thing}].
- [Someone|{name}] stole my {product}!
- Nothing works[ today|]!
- argh!!!
- My boss [took my idea|shouted at me][ in front of everybody|].
- the neighbors drill since {n} in the morning
- I'm fed up[ with {thing}| with all of this|].
- They cancelled my flight to {city} and nobody helps.
- I waited {n} hours for nothing.
- I could scream[ right now|].
- The new {product} broke after {n} days. Unbelievable.
- Somebody scratched my car and drove off.
- {name} never says thank you. It makes me mad.
- so pissed rn
- why do people park on the bike lane, it drives me crazy
- My roommate ate my food again.
- They promised to call back on {day}. They didn't.
- I had a fight with {name} and I'm still boiling.
- Third time this week that the train did not come.
- I can't stand {name} any longer.
- They sent me the wrong {product} twice.
- Everyone leaves the work to me[, and I've had enough|].
- I lost {n} hours of work because the computer crashed.
- It makes me furious when people lie.
- The landlord wants more money again, can you believe it?
> [I understand that|I see why, and I understand:] you are [angry|upset]. [What happened?|I am sorry.|Do you want to tell me more?]
> That [is|sounds] [annoying|frustrating]. [I am sorry.|What happened next?|Maybe a short walk helps.]
> I'm sorry [about that|to hear that]. [I would be upset, too.|Do you want to talk about it?|]
> [How annoying|How frustrating]. [I am sorry.|Take a deep breath first.|What will you do?]
> [That would annoy anyone|Anybody would be upset about that]. [I'm sorry.|Let it out, I understand.]
> [Oh, that's frustrating.|Ugh, how annoying.] [Did you tell them?|What would make it better?]
> I understand your anger. [Do you want to tell me more?|Breathe deeply, then think about the next step.]
> Sorry, that is [not fair|really annoying]. [What are you going to do?|I'm listening.]
+ understand; upset; annoying; annoy; frustrating; sorry
! goodbye; great

the user is bored
- I'm [so |really |]bored[ today|].
- [There is|I have] nothing to do.
- What can I do when I am bored?
- Entertain me[, please|].
- bored. so bored.
- It's raining, the TV is broken, and I have no idea what to do.
- {n} hours until my train goes. Any ideas?
- Nothing ever happens here[ in {city}|].
- What should I do this [evening|afternoon|weekend]?
- im stuck at home lol
- Give me something to do!
- [The day|This {day}] does not want to end.
- I've seen every film and read every book that I own.
- waiting at the airport... talk to me
- My friends are all away and I sit around.
- This meeting is so dull.
- tell me what to do im dying of boredom
- School is out and I don't know what to do with myself.
- Do you have an idea for a boring {day}?
- I am looking at the wall since an hour.
- Can you keep me company? It's so dull here.
- any suggestions against boredom?
- nothing to do, nobody to see, nothing on TV
- The party is boring and I hide in the kitchen.
- my phone is the only thing that keeps me busy lol
- I've cleaned the flat twice already. What now?
- Sunday afternoon and I'm yawning.
- In the waiting room, number {n}8, and they call number {n}.
- so dull today
- What do you do when you have nothing to do?
> [How about|What about] [a walk|a book|some music|a call to a friend]? [We can talk, too.|I am here, too.|]
> [Maybe|Perhaps] [take a walk|read something|call a friend|listen to music]. [We can also talk.|]
> [Then let us talk.|We can talk.] [What do you like to do?|What was the best thing today?]
> [You could|Why don't you] [write a letter|read a book|go for a walk|cook something new and put on music]?
> [Let's talk a little.|Let us talk, then.] [What did you like to do as a child?|Which book did you read last?]
> Try something new: [draw, dance, or write a poem|bake bread, read aloud, or learn a song]. [Or talk to me.|]
> [I know that one.|That happens.] [A walk helps me think, if I had legs.|A good book is never wrong.|Put on some music.]
> [Shall I tell you a joke, or do you want to talk?|Let us talk. Do you like music?|What would you like to talk about?]
+ here; talk; walk; friend; book; music; write; read
! goodbye

the user is lonely
- I feel [lonely|alone][ today| since {name} left|].
- Nobody [calls|writes to|talks to] me.
- I have no friends[ here| in {city}|].
- I moved to {city} and don't know anybody.
- Everyone has someone, only I don't.
- i'm all alone tonight
- It's so quiet in my flat[ since the kids moved out|].
- Nobody came to my party.
- I ate alone again[ today|].
- You are the only one I talk to.
- Weekends are the worst: everybody is busy.
- {name} used to call every {day}. Not any more.
- I miss having people around me.
- no one understands me
- My husband is away for {n} weeks and the house is empty.
- How does one find friends?
- Since I work from home I see nobody.
- I wish that somebody would ask how I am.
- feeling left out
- They all went to the cinema without me.
- Nobody to eat with again.
- It's my first week in {city} and I know no one.
- After the divorce the evenings are long.
- I have nobody to share it with.
- All my friends have kids now and no time for me.
- is it normal to have no friends at all
- My phone hasn't rung for {n} days.
- Could you be my friend? I don't have one.
- Christmas alone, once again.
- I sit at the window and watch the others go out.
> I'm sorry that you feel alone. [I am here to talk.|Is there a friend whom you could call?]
> I am here[, and we can talk|]. [Tell me about your day.|What shall we talk about?]
> That is hard. [Maybe call a friend or write to somebody you like.|Talk to me if you like.]
> [I'm sorry.|Oh, I'm sorry.] [Let us talk.|What would you like to talk about?|A call to a friend may help.]
> You can talk to me. [How was your day?|What do you like to do?]
> Many people feel like that, so perhaps [a club or a class where you meet people|a walk with a neighbor] helps. [I am here, too.|]
> [It's good that you say it.|Thanks for telling me.] [Do you want to talk about it?|Is there a friend you miss?]
> I'm glad you write to me. [Let's talk a bit.|I am here. What did you do today?]
+ here; talk; walk; friend; hard; sorry; people; write
! goodbye; great

the user is ill
- I [have a|have got a] [headache|cold|fever|cough|sore throat].
- I [feel|am] [sick|ill|unwell][ today|].
- My [back|head|tooth|knee|stomach] hurts.
- I [broke|hurt] my [arm|leg|finger|foot].
- {name} is ill.
- i caught the flu
- I threw up all night.
- got covid, again
- My nose runs, and my throat burns.
- I'm lying in bed with a temperature of 39.
- The doctor says that I must stay in bed until {day}.
- My [daughter|son|wife|husband] is in hospital[ in {city}|].
- Toothache. It is terrible.
- I feel dizzy since this morning.
- I cut my finger with the {product}.
- cant stop sneezing
- I have an operation behind me and still feel weak.
- I slipped on the ice and my hip hurts.
- My ear has been aching for {n} days.
- I can't come to work because I have a fever.
- So sick of being sick...
- Hay fever season has started, my eyes itch.
- sore throat, no voice, {n} cups of tea so far
- I burned my hand on the oven.
- my head is killing me
- my belly aches since lunch
- I lost my voice.
- I have been coughing for {n} nights.
- Down with the flu, {n} days in bed already.
- I hit my toe on the door and it's blue.
> I'm sorry [to hear that|about that]. [Get well soon!|If it gets worse, please see a doctor.|I hope it is over soon.]
> [Get well soon!|I hope you get well soon.] [Please see a doctor if it lasts.|Rest if you can.|]
> That sounds [bad|unpleasant]. [Rest and drink enough.|Please see a doctor if it lasts.|I hope it passes soon.]
> [Oh no.|Oh.] [Rest, and see a doctor if it gets worse.|I hope you get well soon.|Get well soon!]
> [Ouch!|Oh dear.] [I hope it gets better soon.|Have you seen a doctor?|Rest a little, and get well soon.]
> All the best, and get well soon! [Is somebody there to help you?|]
> I am no doctor, but [rest and warm tea may help|a doctor can help if it does not get better]. Get well soon!
> Sorry that you [have to go through that|are not well]. [Take good care and rest.|I hope it passes quickly.]
+ sorry; well; doctor; rest; hope
! goodbye; great

the user has bad news
- I [lost my job|failed the exam|got fired|missed my flight][ today|].
- They [rejected|turned down] my application[ again|].
- Bad news: [we have to move out|the company closes|my car is beyond repair].
- I failed[ my driving test| the exam|][ for the second time|].
- My [wallet|phone|bag] was stolen [in {city}|on the train].
- We lost the [match|game] on {day}.
- i got dumped
- The house burned down.
- My {product} is broken and I have no money for another.
- Someone broke into our flat[ last night|].
- I didn't get the job.
- The tests came back, and it's not good.
- my parents are getting divorced
- All my photos are gone, the disk is dead.
- {name} had an accident.
- We had to cancel our wedding.
- they cut my hours at work, dont know how to pay the rent
- My bike got stolen right in front of the shop.
- I ruined the dinner, and the guests come in {n} minutes.
- My flight was cancelled, so I will miss the wedding of {name}.
- The bank said no.
- I crashed the car[, but I am fine|].
- My landlord wants us out by {day}.
- The vet says that my {pet} is very ill.
- I have to close my shop.
- they didnt take me at the university
- {name} and I split up after {n} years.
- Our basement is full of water.
- My train is gone and it was the last one.
- The doctor found something.
> I'm sorry to hear that. [What will you do now?|I hope things get better soon.|Is there something that helps?]
> [Oh no!|Oh dear.] I'm sorry. [How are you feeling now?|That must be hard.|]
> That is [hard|bad luck], I'm sorry. [Do you want to talk about it?|I hope it turns out well.]
> That sounds [hard|bad]. [I hope that it works out in the end.|Take your time, then plan the next step.]
> I am sorry. [What happened?|Do you have someone who can help?|Maybe there is another way.]
> [What bad luck.|That hurts.] I'm sorry[ for you|]. [Keep your head up.|There will be better days.]
> [Sorry to hear that|Oh, I am sorry]. [Can somebody help you?|I hope tomorrow brings better news.]
> That is hard news. [Be kind to yourself today.|What would help you now?]
+ sorry; hard; bad
! great; congratulations; goodbye
'''
