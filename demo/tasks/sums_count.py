# Copyright (C) The nginx-dsa authors

"""Stories about things, animals, boxes and shares for daily_sums, written as in
sums_money.py."""

STORIES = '''
= a-b | left | a 3-40w b 2-30w | a > b
- {a} {g}, eat {b}. [How many stay?|What remains?|How many now?]
- [There were|There are] {a} {g}[,| and] [I eat|I lose|I give away|someone takes] {b}. How many [stay|remain|do I have][ now|]?
- {name} [has|had] {a} {g} and [gives|gave] {b} to {other}. How many [does {name} keep|are left]?
- [Take|Take away] {b} {g} from {a}. What is left?
- If I [eat|sell|lose|throw away] {b} of [my |]{a} {g}, how many [do I have left|remain|are left]?
- Of {a} {g}, {b} are [bad|broken|gone|sold]. How many are [good|left]?
- {a} {g} minus {b} {g}?
- There were {a} {g} on the table. {name} took {b}. How many are there now?
- I counted {a} {g} in the {room} this morning. In the evening {b} were missing. How many were still there?
- The baker made {a} rolls today. By noon {b} of them were sold. How many can still be bought?
- My brother took {b} of my {a} {g}. Now I wonder how many I have.
- {b} out of {a} {g} were eaten at the party. The rest went home with {name}. How many went home with {name}?
- {a} kids are in the class. Today {b} are ill. How many came to school?
- The bus had {a} passengers. At the first stop {b} got off. How many are still on it?
- suppose there are {a} {g} and i remove {b}
- {a} birds sit on a wire and {b} fly away. How many are left on the wire?
- I picked {a} {g} this morning. The birds got {b} of them in the bowl. What was left for me?
- My flock had {a} sheep. A farmer from {city} bought {b}. How many sheep do I still have?
- {b} of the {a} lamps do not work any more. How many still do?
- {name} invited {a} guests, and {b} can't come. How many will be there?
- There's a puzzle with {a} pieces. {b} are lost. How many do I have?
- In a box of {a} {g}, {b} were rotten, so I threw those away. How many did I keep?
- from {a} {g} i sold {b} today, how many to sell tomorrow
- A tree had {a} leaves. The wind took {b}. How many hang on?
- Could you tell me how many {g} remain if {b} out of {a} are taken?
- Our team started with {a} runners. {b} gave up on the way. How many reached the end?
- After giving {b} {g} to {other}, how many of {a} does {name} own?

= a+b | total | a 2-60w b 2-60w
- To my {a} {g} I [buy|get|find|pick] {b} more. How many [do I have|are that|is that]?
- {a} {g} and {b} {g}, how many [together|in all]?
- {name} has {a} {g}, {other} has {b}. How many [do they have together|are there in all]?
- [Add|Put] {b} {g} to {a}. How many are there?
- There are {a} {g} in the {room}, and the garden has {b}. How many in all?
- {a} [people|guests] are here and {b} more come. How many are [here|there] then?
- What are {a} {g} plus {b} {g}?
- In one basket I have {a} {g}. In the other there are {b}. How many {g} do I have altogether?
- {name} baked {a} cakes for the fair. {other} baked {b}. How many cakes can the school sell?
- We already had {a} chairs. The neighbors brought {b}. How many can sit down now?
- The library got {a} new books in spring and {b} in autumn. How many new books is that?
- count them together pls: {a} in the box, {b} on the shelf
- My sister collected {a} shells and I collected {b}. How many shells did we bring home?
- first {a} then another {b}, how many is that
- A hen has {a} chicks, another one has {b}. How many chicks run around?
- Grandma has {a} hens and grandpa has {b}. How many hens are on the farm?
- In the car park I count {a} red cars and {b} blue ones. How many is that altogether?
- We scored {a} points in the first half and {b} in the second. What is our score?
- I wrote {a} cards yesterday. Today I wrote {b} more. How many are ready to send?
- {a} students take the bus, {b} walk. How many students are there?
- shelf one: {a} {g}. shelf two: {b} {g}. all of them?
- The shop ordered {a} {g}, and then another {b} because the first were gone. How many did it order?
- What will I have if I put {a} {g} and {b} {g} into one bag?
- {b} joined the {a} people who were already in line. How long is the line now?
- There were {a} emails this morning and {b} came since. How many do I have to read?
- Please sum up: {a} {g} from me, {b} {g} from {name}.

= a+b+c | total | a 2-30w b 2-30w c 2-30w
- {name} has {a} {g}, {other} has {b} and I have {c}. How many do we have [together|in all]?
- On Monday I picked {a} {g}, on Tuesday {b} and on Wednesday {c}. How many did I pick?
- {a} red ones, {b} green ones and {c} yellow ones. How many is that?
- There are {a} {g}, {b} {h} and {c} plates on the table. How many things are on the table?
- Our house has three floors. {a} people live on the first, {b} on the second and {c} on the third. How many live in the house?
- team A: {a}, team B: {b}, team C: {c}. players in all?
- I sent {a} letters in May, {b} in June and {c} in July. How many letters was that?
- We saw {a} ducks, {b} swans and {c} geese at the lake. How many birds did we see?
- Add up {a}, {b} and {c} for me.
- The first bus had {a} people, the second {b}, the third {c}. How many came by bus?
- Our cats caught {a}, {b} and {c} mice. How many mice were caught?
- My garden has {a} roses, {b} tulips and {c} daisies. How many flowers are there?
- {a} from me, {b} from {name}, {c} from {other}. {g} in all?

= a-b+c | now | a 10-40w b 2-9w c 2-20w
- I had {a} {g}. I ate {b} and then bought {c} more. How many do I have now?
- {name} had {a} {g}, gave {b} to {other} and found {c}. How many does {name} have now?
- {a} people are on the bus. {b} get off, {c} get on. How many are on it then?
- The shelf holds {a} books. I take {b} out and put {c} back in. How many stand there now?
- There were {a} cars in the lot. {b} left and {c} came. How many are there?
- start with {a}, lose {b}, win {c}. what do i have
- {a} guests were at the party, {b} went home early, but {c} came late. How many were there in the end?
- In the morning the shop had {a} {g}. It sold {b}, and a delivery brought {c}. How many are in the shop?
- {a} birds in the tree. {b} fly off, {c} new ones come. How many birds?
- We were {a} in the club. {b} left and {c} joined. How many are we now?
- I own {a} {g}. I lend {b} to {name} and get {c} as a gift. What do I own now?
- My score was {a}. I lost {b} points, then won {c}. What is my score?
- {a} minus {b} plus {c}?

= a-b-c | left | a 20-60w b 2-9w c 2-10w
- I had {a} {g}. I gave {b} to {name} and {c} to {other}. How many do I have left?
- {name} baked {a} muffins. {b} fell on the floor and {c} were eaten at once. How many are left?
- Of {a} {g}, {b} are broken and {c} are lost. How many are fine?
- {a} {g} in the box. My sister takes {b}, my brother takes {c}. What is left for me?
- There were {a} kids in the pool. First {b} went home, then {c}. How many are still in the pool?
- {a} pages in all. I read {b} yesterday and {c} today. How many pages are left to read?
- my plant had {a} leaves, lost {b} last week and {c} this week. how many now
- From a pack of {a} {g} we used {b} yesterday and {c} today. How many are in the pack?
- {name} had {a} sheep, sold {b} and lost {c}. How many does {name} still have?
- {a} seats: {b} for the family, {c} for friends. How many can others take?
- Out of {a} days of holiday I took {b} in spring and {c} in summer. How many days are left?
- {a} minus {b} minus {c}?

= a*b | total | a 2-12w b 2-30
- {a} boxes with {b} {g} each. [How many {g}|How many are that|How many in all]?
- {a} times {b}?
- Each of {a} [friends|children|guests] gets {b} {g}. How many do I need?
- {a} [tables|rooms|cars] have {b} [seats|chairs] each: how many [seats|chairs] in all?
- I have {a} bags, and there are {b} {g} in each of them. How many {g} do I have?
- We set up {a} rows of chairs, {b} chairs to a row. How many people can sit?
- {name} plants {a} rows of {b} flowers. How many flowers does {name} need?
- A pack has {b} {g}. I buy {a} packs. How many do I get?
- The house has {a} floors and {b} windows on each floor. How many windows must I clean?
- {b} {g} per person, {a} persons coming. how many shall i buy?
- There are {a} shelves, and every shelf holds {b} books. How many books fit?
- Every kid in the class brings {b} {g}, and there are {a} kids. How many {g} will we have?
- Every page has {b} photos. The album has {a} pages. How many photos are in it?
- A week of camp costs each kid {b} tickets. We are {a} kids. How many tickets do we need?
- {a} trees stand in my garden, and I got {b} {g} from each. How many did I get?
- {name} packs {a} bags. Into each bag go {b} {g}. How many {g} are packed?
- There are {b} seats in a wagon and {a} wagons. Seats in the whole train?
- i have {a} jars with {b} {g}. all together?
- On each of the {a} plates there are {b} {g}. How many {g} are on the plates?
- If {a} workers carry {b} bricks each, how many bricks are carried?
- My notebook has {a} chapters of {b} pages. How many pages is it?
- We buy {a} strips of stamps with {b} stamps on a strip. How many stamps is that?

= a*b+c | total | a 2-9w b 2-20 c 2-20w
- I have {a} boxes of {b} {g} and {c} loose ones. How many {g} are that?
- {a} tables with {b} chairs each, plus {c} chairs at the wall. How many chairs?
- {name} has {a} packs with {b} cards and {c} single cards. How many cards in all?
- {a} bags, {b} {g} in each, and {c} more in my pocket. How many?
- We ordered {a} crates of {b} bottles. There were still {c} bottles in the {room}. How many bottles do we have now?
- {a} vans with {b} people each and {c} people who walk: how many people is that?
- Each of my {a} friends brings {b} {g}. I bring {c}. How many {g} will there be?
- {a} rows of {b} trees and {c} trees by the gate. How many trees?
- We filled {a} bags with {b} {g} each, and {c} {g} did not fit in. How many had we?
- {a} weeks of {b} lessons, and {c} extra lessons. How many lessons?
- {name} reads {b} pages a day for {a} days, then {c} more. How many pages?
- {a} times {b} plus {c}?

= a*b-c | left | a 2-9w b 3-20 c 2-9w | a*b > c
- I bought {a} packs of {b} {g} and used {c}. How many are left?
- {a} boxes with {b} eggs each, but {c} are broken. How many good eggs?
- {name} has {a} bags of {b} {g} and eats {c}. How many remain?
- {a} teams of {b} players. {c} players are ill. How many can play?
- The cinema has {a} rows with {b} seats. {c} seats are taken. How many are free?
- {a} trays, {b} buns on each, {c} already sold. How many are still there?
- We have {a} sheets of {b} stickers. The kids used {c} of them. How many stickers are there now?
- We set {a} tables with {b} plates, then {c} plates broke. How many are whole?
- {a} crates of {b} bottles, {c} are empty. How many are full?
- I planted {a} rows of {b} seeds, and {c} did not grow. How many did?
- {a} buses with {b} seats wait, and {c} seats stay empty. How many people ride?
- {a} times {b} minus {c}?

= a/b | each | a 4-99 b 2-9w | a % b == 0 and a > b
- [Share|Divide|Split] {a} {g} among {b} [children|friends|people]. How many does each get?
- {b} [friends|people] share {a} {g} [equally|fairly]. How many [for each|does each get]?
- How many {g} are in each of {b} bags if there are {a} in all?
- {a} divided by {b}?
- {name} has {a} {g} and {b} grandchildren. Everyone should get the same number. How many {g} for each?
- I want to put {a} {g} into {b} boxes, the same number in each. How many go into one box?
- A class of {a} is divided into {b} groups of the same size. How many are in a group?
- {a} cards are dealt to {b} players. How many cards has each player?
- there are {b} of us and {a} {g}, what does everyone get
- Grandma left {a} {g} for the {b} of us. If nobody gets more than another, how many do I get?
- The book has {a} pages and I want to finish it in {b} days. How many pages a day?
- {a} plants in {b} rows, all rows equal. plants per row?
- The {a} pupils sit at {b} tables, the same number at each. How many sit at one table?
- {b} climbers share {a} meters of rope. How many meters for each?
- {name} wants to give {a} {g} to {b} neighbors, without a quarrel. How many for each neighbor?
- {b} cats get {a} treats in all. If it is fair, what does one cat get?
- We are {b} and found {a} {g}. Fair shares, please.
- There are {a} photos to put on {b} pages, equally. How many on a page?
- {a} players make {b} teams of the same size. How big is a team?
- {a} over {b}?

= a%b | rest | a 10-60 b 2-9w | a % b > 0
- I share {a} {g} among {b} kids, as many as possible for each. How many are left over?
- {b} {g} fit into a box. My {a} {g} fill as many boxes as I can. How many {g} remain?
- {a} people form teams, {b} in each. Who is left without a team, how many?
- What is the rest when I divide {a} by {b}?
- {name} packs {a} {g}, always {b} to a bag. How many stay outside in the end?
- {a} cookies, {b} children, everyone gets the same number. How many cookies are over?
- remainder of {a} divided by {b}?
- {a} pupils go in boats of {b}, and the rest stays on land. How many stay on land?
- I put {b} {g} on each plate until I can't fill another one. Of {a} {g}, how many are not on a plate?
- {name} ties {a} flowers into bunches of {b}. How many flowers are over?
- {a} mod {b}?
- When {a} cards are dealt to {b} players and all get the same, how many cards stay on the table?

= up(a,b) | boxes | a 10-80 b 3-9
- {b} {g} fit into a box. How many boxes do I need for {a} {g}?
- I have {a} {g}. One bag holds {b}. How many bags do I need?
- A taxi takes {b} people. We are {a}. How many taxis must we call?
- {a} guests, {b} seats at a table. How many tables do we need?
- {a} eggs, {b} eggs per box. How many boxes so that all have a place?
- The boat carries {b} people at a time and {a} want to cross. How many trips does it take?
- {name} needs {a} {g}. The shop sells them only in packs of {b}. How many packs must {name} buy?
- One shelf has room for {b} books. {name} owns {a} books. How many shelves are needed?
- A tent sleeps {b}, and our group has {a} people. How many tents do we have to bring?
- I can carry {b} boxes at once. There are {a} boxes in the {room}. How often do I have to walk?
- we need {a} rolls, a bag holds {b} rolls. number of bags to buy?
- {a} photos go into an album with {b} photos on a page. How many pages will I need?
- Each washing machine load takes {b} towels. There are {a} towels. How many loads are that?
- A van has room for {b} people. A group of {a} goes to {city}. How many vans?
- Each page holds {b} stickers. I have {a}. How many pages will be used, the last one maybe not full?
- The lift takes {b} persons at once. There are {a} in the hall. How many rides until all are upstairs?
- One bottle fills {b} glasses. I want to fill {a} glasses. How many bottles must I open?
- I read {b} pages a day and the book has {a}. After how many days am I done?
- {a} people, {b} fit in a boat. boats needed?
- A pack of {b} costs the same as always. For {a} {g}, how many packs do I put in the cart?
- {name} can bake {b} rolls at a time. {a} rolls are wanted. How often is the oven used?

= a*12 | total | a 2-9w
- How many eggs are {a} dozen?
- I buy {a} dozen {g}. How many are that?
- {a} boxes with a dozen eggs each. How many eggs?
- A box holds a dozen eggs and {name} carries {a} boxes. How many eggs does {name} carry?
- {name} ordered {a} dozen roses for the wedding. How many roses will come?
- how much is {a} dozen
- The hens laid {a} dozen eggs this week. Tell me the number of eggs.
- {a} dozen cookies are on the tray. How many cookies?
- A farmer sells {a} boxes, one dozen eggs in each. How many eggs does he sell?
- We need eggs: {a} dozen. What number is that?
- Pencils come by the dozen. I ordered {a} dozen. How many pencils?
- {a} years are how many months?

= a*6 | total | a 2-12w
- {a} packs with half a dozen eggs each. How many eggs?
- A carton has 6 eggs. I take {a} cartons. How many eggs do I have?
- We need {a} cartons, six eggs in each. How many eggs will that be?
- Insects have six legs. What do {a} beetles have in legs?
- {a} ants, and all their legs: how many?
- {a} six-packs of water: how many bottles?
- Our hens fill {a} egg boxes a week, 6 eggs each. How many eggs are that a week?
- {name} eats half a dozen eggs a week. How many in {a} weeks?
- A bee has 6 legs. {a} bees sit on my cake. How many legs are on my cake?
- One die has six sides. How many sides do {a} dice have?
- {a} boxes, each for six eggs, all full. eggs?

= a*4 | legs | a 2-20w
- What is the number of legs of {a} [dogs|cats|horses|cows|sheep|goats|chairs]?
- There are {a} [cows|horses|sheep] on the meadow. How many legs is that?
- {a} tables with four legs each. How many legs do I have to paint?
- A zoo buys {a} zebras. How many legs come into the zoo?
- {name} has {a} rabbits. How many paws are that?
- {a} cars need new tires, four for each. How many tires?
- legs of {a} pigs?
- Each chair has four legs. What about the legs of {a} chairs?
- {a} cats run over the roof. How many paws is that?
- There are {a} cars on the ferry, four wheels each. How many wheels?
- A farmer puts new shoes on {a} horses, all feet. How many shoes?
- I see {a} elephants. Count the legs.

= a*2 | legs | a 3-30w
- What is the number of legs of {a} [hens|ducks|birds|children|chickens]?
- {a} [hens|geese|ducks] walk across the road. How many legs is that?
- {a} pairs of socks are how many socks?
- {a} bicycles: how many wheels?
- There are {a} people in the room. How many ears are that?
- I need shoes for {a} people, a left one and a right one for each. How many shoes?
- feet of {a} penguins in all?
- {a} children take off their shoes. How many shoes stand in the hall?
- On the wire sit {a} birds. Number of wings?
- Each of the {a} guests has two hands. How many hands are there?
- {a} pairs of twins were born. How many babies?
- I knit gloves for {a} people, a pair for each. How many single gloves?

= a*8 | legs | a 2-12w
- What is the number of legs of {a} spiders?
- A spider has 8 legs. There are {a} spiders in my {room}. How many legs in all?
- {a} octopuses, eight arms each. How many arms?
- {name} keeps {a} spiders in glass boxes. How many legs do they have together?
- legs of {a} spiders?
- An octopus has eight arms. What about {a} of them?
- {a} spiders sit in the web. How many legs does that make?
- How many arms do {a} octopuses have?
- If one spider has eight legs, how many do {a} have?
- The zoo has {a} octopuses. How many arms in all?

= a*4+b*2 | legs | a 2-12w b 2-12w
- A farm: {a} cows, and also {b} hens. Number of legs?
- {a} dogs and {b} birds are in the yard. How many legs is that in all?
- {name} keeps {a} sheep and {b} geese. How many legs do the animals have together?
- In the barn I see {a} horses and {b} ducks. Count their legs for me.
- {a} cats, {b} people, how many legs?
- On the meadow there are {a} goats. {b} children come to play with them. How many legs are on the meadow?
- There are {a} cars and {b} bicycles in the street. How many wheels is that?
- There are {a} pigs and {b} ducks by the pond. Legs in all?
- {name} feeds {a} rabbits and {b} chickens. How many feet do they have?
- {a} dogs, each... and {b} people walking them. How many legs go through the park?
- A stable with {a} horses and {b} riders: count the legs.
- In the street stand {a} cars and {b} motorbikes. How many wheels?

= a*2 | double | a 3-90
- [What is|How much is|Tell me] [double|twice] {a}[?|.]
- [Double|Twice] {a}?
- {name} has {a} {g}. {other} has twice as many. How many does {other} have?
- The recipe needs {a} grams of sugar. I make double the amount. How many grams do I need?
- My bag weighs {a} pounds and my father's weighs two times as much. How heavy is my father's?
- Last year {a} people came. This year it was double. How many came this year?
- i had {a} followers and the number doubled, so now?
- The small bottle costs {a} cents. The large one is twice the price. What does the large one cost?
- {a} times two?
- My sister is {a} cm tall... no, my tomato plant. Next month it will be twice that. How tall?
- We need twice as many chairs as last time. It was {a}. How many now?
- {name} ran {a} km and I ran double. How many km did I run?

= a/2 | half | a 4-120/2
- [What is|How much is] half of {a}?
- {name} has {a} {g} and gives half of them to {other}. How many does {name} keep?
- Half of the {a} {g} are gone. How many are there still?
- I ate half of my {a} {g}. How many did I eat?
- A rope is {a} meters long. I cut it in the middle. How long is each piece?
- The recipe says {a} grams of flour, but I only make half of it. How many grams?
- half of {a}
- I am {a} cm tall... no, the plant is! My cat is half as tall. How tall is the cat?
- Of my {a} pages I have read exactly one half. How many pages was that?
- {name} and I share {a} {g} in two equal parts. How many do I get?
- The way is {a} km. We stop half way. How far have we come?
- I cut the amount of {a} grams in half. How many grams?
- one half of {a} is?

= a*3 | triple | a 3-60
- [What is|How much is] three times {a}?
- {name} has {a} {g}. {other} has three times that number. What does {other} have?
- The recipe is for one cake and takes {a} grams of butter. I bake three cakes. How much butter do I need?
- triple {a}
- A day of work brings me {a} {cur}. How much do I get for three days?
- The old tower is {a} meters high, the new one is 3 times as high. How high is the new one?
- {a} times three?
- We were {a} last year and are three times as many now. How many are we?
- One bag weighs {a} kilos. What do three bags weigh?
- {name} swims {a} laps a day. How many laps are that in three days?
- make {a} three times as large

= a-b | more | a 5-90w b 2-80w | a > b
- {name} has {a} {g} and {other} has {b}. How many more does {name} have?
- What is the difference between {a} and {b}?
- I have {a} points, {name} has {b}. By how many points am I ahead?
- Our town has {a} shops, the next has {b}. How many more shops has ours?
- Class A has {a} pupils. Class B has only {b}. How many pupils more are in class A?
- Yesterday {b} people came, today {a}. How many more were it today?
- {a} girls and {b} boys. how many more girls
- The blue box weighs {a} kilos, the red box {b} kilos. How much heavier is the blue one?
- I sold {a} {g} and {name} sold {b}. How many more did I sell?
- The old book has {b} pages, the new one {a}. By how many pages is the new one longer?
- There are {a} cats and {b} dogs in our street. How many more cats than dogs?
- how much bigger is {a} than {b}

= a-b | needed | a 8-60w b 2-50w | a > b
- I need {a} {g} and have {b}. How many do I still have to buy?
- The album has room for {a} stickers. {name} has {b}. How many are missing?
- There must be {a} chairs for the guests and I count {b}. How many more do I need?
- {b} of {a} kids have handed in the form. How many forms are still missing?
- My goal is {a} books this year. So far I have read {b}. How many are left to read?
- we want {a} players, {b} said yes. how many to find
- A cake takes {a} eggs for the whole wedding. In the fridge there are {b}. How many eggs must I get?
- For the game we must be {a}. We are {b}. How many players do we lack?
- {name} has {b} stars and gets a prize for {a}. How many stars to go?
- We need {a} signatures and got {b}. How many are still to come?
- from {b} to {a}, how many more

= a-a/2 | left | a 6-60/2
- {name} eats half of the {a} {g}. How many are left?
- I gave away half of my {a} {g}. What did I keep?
- There were {a} birds in the tree and half of them flew off. How many stayed?
- Half the {a} seats are taken. How many are still free?
- {a} pupils, half went on the trip. How many stayed at school?
- half of {a} {g} rotten, how many good ones
- I sold half of my {a} {g}. How many do I still have?
- Half of the {a} guests have gone home. How many are still here?
- Of {a} eggs, half broke on the way. How many are whole?
- My list has {a} tasks and half are done. How many are open?
'''
