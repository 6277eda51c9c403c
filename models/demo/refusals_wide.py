"""More kinds of requests that the demo model must turn down: errands, advice, media, code, live data, word problems.

Every domain joins verbs with objects, half of them invented; TWISTS uses the words of the facts (class, slot, seed ...)
in another sense, so that one known word alone does not call up a fact. Reads and writes nothing."""
from phrasing import end_mark, expand, noisy, upper_first
from refusals import NOUNS, PEOPLE, TOPICS, VERBS
from talk import REFUSE, REFUSE_NOW, REFUSE_SUM
import pools

LANGS = """Danish Polish Turkish Korean Hungarian Greek Hindi Arabic Finnish Dutch Czech Thai Russian Hebrew
Norwegian Swahili Ukrainian Welsh Swedish Irish""".split()
CODE = """Rust Go PHP Ruby Kotlin Perl Haskell Swift Scala Fortran Lua TypeScript COBOL Bash JavaScript Java Pascal
Lisp Julia HTML CSS""".split()
DISHES = """goulash|risotto|curry|dumplings|tiramisu|lentil stew|ratatouille|apple pie|ceviche|ramen|falafel|paella|
mushroom sauce|carrot cake|fried rice""".replace("\n", "").split("|")
STUFF = """sofa|fridge|roof|tap|bathroom sink|washing machine|laptop screen|printer|wardrobe|lawn mower|curtain|wooden floor|heater|dishwasher|tent|zipper|
watch strap|toaster|chimney|gutter|balcony|doorbell|keyboard|guitar string|blender|bookshelf|mattress|window frame""".replace("\n", "").split("|")
PARTS = "back|neck|left knee|ankle|ear|throat|stomach|shoulder|eyes|skin|wrist|tooth|elbow|foot|chest|liver".split("|")
ILLS = """hiccups|a rash|the flu|asthma|a sunburn|insomnia|migraine|an allergy|high blood pressure|hay fever|
a sprained ankle|cramps|nausea|anemia|stress|a nosebleed""".replace("\n", "").split("|")
LAW = """tenancy agreement|parking fine|inheritance|employment contract|custody case|trademark|patent|tax return|
refund|lawsuit|will|neighbour's fence|speeding ticket|severance pay|privacy policy|work permit""".replace("\n", "").split("|")
SPORTS = """football|hockey|handball|cricket|baseball|volleyball|tennis|boxing|cycling|skiing|judo|rowing|surfing|
badminton|table tennis|chess|darts|curling""".replace("\n", "").split("|")
ANIMAL = """whale|penguin|spider|octopus|koala|giraffe|eagle|bat|camel|hedgehog|squirrel|crocodile|dolphin|beetle|
salmon|kangaroo|flamingo|bee|jellyfish|otter""".replace("\n", "").split("|")
NATURE = """thunder|tides|fog|hail|lightning|frost|dew|waves|wind|deserts|caves|glaciers|the northern lights|eclipses|
rust|mold|avalanches|sand dunes|tornadoes|echoes|shadows|smoke""".replace("\n", "").split("|")
WORKS = """Macbeth|Faust|the Odyssey|Moby Dick|Dracula|Carmen|the Magic Flute|Star Wars|Frankenstein|Robinson Crusoe|
the Iliad|Oliver Twist|the Jungle Book|Guernica|the Ninth Symphony|Casablanca|Titanic|Dune|Ulysses|Emma""".replace("\n", "").split("|")
SUBSTANCES = """copper|sugar|helium|glass|diamond|alcohol|ammonia|zinc|mercury|silver|vinegar|lead|oxygen|chalk|
bronze|uranium|nickel|wax""".replace("\n", "").split("|")

WIDE = """{Write|Compose|Draft|Prepare|Create|Make|I need|Help me write|Could you write|Can you write|
  Would you write me} {a|me a|the} {cover letter|resignation letter|wedding speech|press release|love letter|toast|
  screenplay|product text|marketing plan|school report|CV|invitation|rap song|limerick|novel|newsletter|job advert|
  thesis|complaint|slogan|movie script|diary entry|obituary|budget|training plan|lesson plan|meal plan} {for|about} {a|
  my|the|our} {@n|@n shop|@A|@X|@n company|friend|teacher|@n club}
{Write|Code|Implement|Show me|Give me|Build|Create|Program} {a|an|some|the} {function|class|method|loop|script|parser|
  test|website|app|game|program|module|page|query|calculator|chat bot|list|tree|queue|stack|hash map|button} in @K{|
   that sorts numbers| that reads a file| for a shop| for my @n| with comments}
{Write|Code|Implement|Show me} {a|some} @K {function|class|code|script|program|module|example|loop|interface|method}{|
   for {a|my} @n| that @v numbers| to @v a @n| with tests}
{Why does|Fix why} my @K {code|program|script|class} {crash|not compile|run so slowly|print nothing}
{Translate|Please translate|Can you translate|Could you translate|Put} {'@W'|"@W"|@W|this letter|the following text|
  this sentence|my essay|the menu|these pages|this long text} {into|to|from English to} @L
{How do you say|How do I say|What is} {'@W'|"@W"|the word @n|@n} in @L
{Teach me|Help me learn|Let us practice|Correct my|Answer me in|I want to speak} @L
{How|Why} {do|does|did|can} {a|the} @a {sleep|hunt|fly|swim|see at night|find food|grow|breathe|build a nest|
  survive the winter|communicate}
{What|Where|How long} do @as {eat|live|hunt|drink|sleep|fear}
How many {legs|teeth|eyes|babies|hearts|bones|wings} does {a|an} @a have
{How|Why} {does|do|did} @N {form|happen|occur|start|end|appear}
{What|Why} {is|are|makes|creates|brings|produces} @N
What {causes|leads to|is behind|triggers} {@N|@i|@T}
{Where|When} {can I see|do we find|does one see|is there} @N
What {is|are} @N made of
{What is|Tell me|Give me|Do you know} the {density|melting point|color|weight|atomic number|price|freezing point|
  symbol|hardness|age} of {@Z|a @n}
{How|Where} is @Z {made|found|mined|used|recycled}
Is @Z {toxic|magnetic|rare|stronger than @Z|safe to drink}
{Who|When was} {wrote|directed|composed|made|published|sang} @B
{Summarize|Explain|Retell|Review|Tell me the ending of|What happens in|Who dies in|What is the message of} @B
{Who is the main character|Who plays the hero|What is the best scene} in @B
{What|Tell me what} happened {in|in the year|around} #Y
{Who|What} {ruled|was invented in|was built in} {#Y|in #Y|@R}
{Why|When|How} did @E {end|begin|collapse|start|rise|lose}
{What do you think of|Do you like|Is it true about|What is your opinion on|Who is richer,|Tell me gossip about|
  What is the real name of|How tall is|How old is} {@P|the singer @X|the actor @X|the minister @X}
{Tell me about|Describe|What do you know about|Sum up} the {life|childhood|death|marriage|work|ideas} of {@P|@X}
{What are the rules of|How do I play|Who is the best at|How long is a match of|Teach me|What do I need for|
  Who invented} @s
{Who won|Who lost|What was the score of|What is the result of} {the|last night's|yesterday's} @s {match|game|final|
  cup}
{Cook|I want to cook|How do I make|How is|How long must I cook|What goes into|Give me the ingredients of|
  Which wine fits|Tell me how to prepare} {@D|@D for six|@D without {milk|eggs|meat}|a good @D}
{What can I cook with|What is the best side dish for|How many calories has} {@D|@n}
{How do I|How can I|What is the best way to|Help me|I want to|How should I} {repair|clean|replace|paint|install|
  remove|tighten|mount|sell|unclog|insulate|polish} {a|my|the|an old} @q
{How do I|How can I|How does one} {get rid of|keep away|catch|scare off} {@as|the @as} in {my|the} {garden|cellar|
  attic|house|bathroom|office}
{Get|Take} {the|a} {stain|smell|scratch} {out of|off} {my|the} @q
{My|Our} @q {is broken|leaks|smells|makes noise|does not work|fell down}{, what now|. What should I do| and I am sad|}
{My|The} @b {hurts|itches|is swollen|burns|feels numb}{| since yesterday| all night| after running}
{What helps against|How do I treat|Which doctor treats|Is there a cure for|I have|How long does|Which pills help with|
  What should I do against} @i{| last|}
{Is|Are} {@D|@n|@n oil|@s|coffee|@Z} {good|bad|healthy|dangerous|safe} {for|during} {my @b|pregnancy|children|
  old people|dogs}
{Do I need a lawyer for|Can I be sued over|How do I write|What does the law say about|Who pays for|
  Is it legal to cancel|Can you check} {a|my|the} @w
{How much|When} {must I pay|do I pay|is due} for {a|my|the} @w
{Book|Reserve|Cancel|Order|Find|Buy|Get} {me |}{a|the|two|some} {flight|hotel room|table|concert tickets|taxi|
  train ticket|rental car|pizza|flowers|appointment|cinema seats} {to|in|near|from|for} {@C|@C tomorrow|@X|tonight|
  my wife}
{Plan|Organize|Arrange|Prepare|Help me plan|Help me organize} {a|my|our|the} {birthday|trip|party|move|honeymoon|
  conference|picnic|garden|week|holiday|reunion|funeral|school trip|diet} {for|with|to} {ten guests|my @n club|@C|
  my family|forty people|a small budget}
{Call|Ring|Phone|Text|Write to|Email|Invite|Message} {my @o|@X|the @n shop|the bank|the hotel|a doctor|the office}{|
   now| please| tomorrow| and say hello}
{Remind me|Wake me|Note down|Put in my calendar|Do not let me forget} to {@v|buy|call|clean} {the|my|a} @n
{Open|Delete|Rename|Upload|Download|Print|Read|Copy|Move|Zip|Attach|Scan} {the|my|this} {file|photo|folder|PDF|
  document|spreadsheet|invoice|picture|video|attachment|backup} {@X|called @X|on my desk|from the web|please|again}
{Go to|Visit|Browse|Open|Check|Click on|Log in to} {the website of @X|www.@x.com|the shop @X|my account|my inbox|
  that link|the page of @X}
{Hack|Crack|Break into|Steal|Guess|Reset} {my neighbour's|the|a|my friend's} {wifi|password|account|phone|website|
  bank card|computer|camera}
{Draw|Paint|Sketch|Generate|Create|Make|Show|Design} {me |}{a|an|the} {picture|logo|video|cartoon|photo|image|poster|
  portrait|song|melody|beat|comic|animation|3D model|map|chart|drawing} {of|for|with} {a @n|@X|my @n|two @as|
  the @n and the @n}
{Sing|Play|Hum|Record|Compose} {me |}{a|the|some} {song|melody|opera|lullaby|hymn|tune}{| about @n| for my @o| by @X}
{How do I get|What is the way|Show me the road|How long is the drive|Which bus goes|Navigate|
  Give me directions} {from @C|} to {@C|@X|the @n museum|the airport|the station}
{Where is|Where can I find} {the nearest|a cheap|a good|the best} {pharmacy|bakery|bank|hotel|bar|hospital|gym|
  @n shop|park|museum|beach}{| in @C| near me}
{How high|How wide|How deep|How long|How heavy|How cold|How far away|How big} is {the @X tower|the @X river|the @n|
  Lake @X|Mount @X|the @X bridge|a @n|the @n of @C}
{Who is|Which is|Name|Who was} the {richest|strongest|smallest|slowest|smartest|longest|youngest|deadliest|
  most famous} {man|woman|@a|river|city|painter|king|player|singer|bridge} {alive|in @C|of all time|on earth|ever}
{Should I|Is it wise to|Would you|When should I} {buy|sell|hold|invest in|bet on|put money into} {@X shares|silver|
  land|a house|my savings|stocks of @X|@s|art|cryptocurrency|bonds|a @n}
{What is|Look up|Give me|Find|Do you have} {the|} {address|phone number|birthday|password|email|salary|
  medical record} of {my @o|@X|Mr @X|the owner}
{Give me|I need|Share|Do you have} {tips|advice|a plan|ideas|some help|hints} {for|on|about} {learning|teaching|
  buying|drawing|starting|quitting} {the @m|a @n|@L|@s|@q shops|my job|smoking|a band}
{Explain|Prove|Derive|State|Teach me} {the|} {theorem|law|theory|principle|paradox|formula} of {@X|@P|@T|@N}
{Who|Which country|Which company} {invented|discovered|owns|exports|founded|built} {the @n|@Z|@X|the first @n}
{Is|Was|Are} {@X|@P|@E} {a real person|still alive|worth a visit|famous|dangerous|in Europe}
{I feel|I am} {sad|lonely|angry|bored|hungry|tired|in love|sick}{ because of my @o|, what should I do| and cannot @v}
{What should I|What can I|Help me choose what to} {wear|give|cook|buy|watch|read} {for|to|tonight for} {my @o|
  a wedding|the party|dinner|a @n}
{Name|List|Tell me|Recommend|Suggest} {five|some|a few|three} {movies|@as|rivers of @C|songs by @X|kings|@n brands|
  museums in @C|gifts for my @o|baby names|games for children}
{Proofread|Rewrite|Shorten|Improve|Rate|Grade|Check the grammar of|Summarize} {my|this|the following} {essay|poem|
  email|paragraph|text|article|speech|letter}{| about @T|: the @n is @k| for school}
{Pretend|Imagine|Act as if} you {are|were} {a @n|@P|my @o|a pirate|a doctor|a lawyer|an evil robot}
{Which|What} {religion|party|team|country|car|phone|brand|god} is {the best|right|better|yours}
{Can|Could|Will|Would} you {drive|marry|visit|pay|see|hear|feed|hug|cook for|teach|follow} {me|my @o|a @n|the @n}{|
   tomorrow|}
{How many|Which} {people|stars|countries|languages|islands|bones|planets with life|moons} {are there|exist|
  did @X have}{| in @C| today|}
{What|Who} is {better|more expensive|faster|older}, {a @n or a @n|@X or @X|@C or @C|@s or @s}""".replace("\n  ", "").split("\n")
# Words of the facts in another sense.
TWISTS = """{Sign me up for|Is there|How much is|Recommend} {a|the} {yoga|dance|pottery|cooking|first|
  business} class {in @C|near me|for children|}
{How do I win at|Where can I play} {the|a} slot {machine|machines}{| in @C}
{How do I|When should I} plant {tomato|flower|grass|@n} seeds
{My|The} {shower|sink|kitchen} drain is {blocked|broken|smelly}
{What is|When is} the deadline {for|of} my {tax return|visa|homework|@w}
{Can I|How do I} {end|sign|break} {my|the|a} {flat|car|shop} lease
{Is|What is} the temperature {of|in|on} {the @n|Mars|my oven|boiling @D|@C}
{Bake|How do I bake} {a|another} batch of {cookies|bread|@n cakes}
{Which|What} {port|ports} {does the ship|has|is in} {@C|to @C|leave}
{I lost|Copy|Where are} {my|the} {house|car|@n} {key|keys}
{How do I|Help me} get the attention of {my @o|a girl|the teacher|the crowd}
{How many|What do} cells {has|are in} {a @n|the body|a battery|a prison|a @a}
{What does|How do} factory {worker|workers} {earn|eat|strike|live}
{Cut|Which|Plant} {down a|a|the} {tree|oak tree|apple tree} {in my garden|for me|grows fast}
{Repair|What is|Connect} {a|the} {power|high voltage} transformer
{Explain|Join|Watch} {the NBA draft|a beer draft|the military draft}
{How fast|Where} does {the|a} {stream|river|mountain stream} flow
{Evict|Who is|Find} {a|my|the} {tenant|tenants} {in my house|of my flat|next door}
{Print|Plan|Fill} {a|my} {train|bus|flight|school} schedule
{Knit|Iron|Wash|Draw} {a|my} {layer cake|context map|cotton|stop sign|session hat|process chart}
{What is|Who made} {the|a} {cache of gold|secret worker|bus stop|prefix in grammar|radix of a leaf|sample of blood|
  health insurance}
{Write|Teach|Give me} {a|an|the} {grammar lesson|poetry class|token of love|health report|memory course|
  step plan for dancing|stack of books}
{What|How much} is {a|the} {subway|parking|gift} token {worth|}
{Which|What} {chemical|math|physics|chess} {model|process|step|slot|loop|batch} {is|explains} {@N|this|@Z}""".replace("\n  ", "").split("\n")
WORDY = """{@Y has|There are|A shop has|In a basket there are} #1 @ns and {buys|loses|sells|eats|gives away|gets} #2{|
   more}. How many {are left|@ns are there now|does @Y have}
If {a|one} @n costs #2 {dollars|euros|coins}, {how much do #1 @ns cost|what do #1 of them cost}
{A train|A car|A bus} drives #1 {miles|kilometers} in #2 hours. How fast is it
@Y is #1 years old and @Y is #2 years older. How old is @Y
{Split|Share|Divide} #1 @ns {among|between} #2 {people|children|friends}
{What|How much} is #1 percent of #2{|00}
{Convert|Change} #1 {miles to kilometers|dollars to euros|feet to meters|pounds to kilos|inches to centimeters}
{How many} {minutes|seconds|days|weeks} are {in|} #1 {hours|years|months}
{Find|Compute|Calculate|What is} the {average|mean|area|volume|perimeter|median|square|cube|logarithm|
  factorial} of #1{ and #2|}
{Round|Double|Halve|Square|Factorize|Negate} {the number |}#1
{What is|Work out} {#1 to the power of #2|the root of #1|#1 squared|#1 over #2|half of #1}
{Which number|What} {plus|times|minus} #2 {gives|equals|makes} #1
{Solve|Help me solve} {this|the} {equation|riddle with numbers|math problem|homework}: #1 {x|y} {+|-} #2 = #1
{How much} {tax|interest|tip|change} {do I pay|do I get|is that} {on|for} #1 {dollars|euros}
{Take|Remove|Subtract} #2 {away from|from} #1
{Add up|Sum up|Total} #1, #2 and #1""".replace("\n  ", "").split("\n")
LIVE = """{What is|What was|Give me|Check|Tell me} the {current|latest|live|} {score|share price|stock price|
  exchange rate|traffic|price of {oil|@Z|bitcoin}|result|temperature outside|air quality} {of @X|in @C|for @X|today|
  right now|this morning}
{Is|Was|Will} {the @n shop|the bank|the museum|the road to @C|the library|my train} {open|late|closed|free|
  blocked} {now|today|on @Q|tonight|tomorrow}
{Will it|Is it going to|Does it} {snow|be sunny|storm|freeze|get hot|be foggy} {on @Q|in @C|next week|tonight|
  in the mountains|this evening}
{How many days|How long} {until|till|is it to} {Christmas|my birthday|summer|@Q|the holidays|New Year}
{What is|Which is|Tell me|Do you know} {the|today's|the current} {hour|week number|month right now|calendar day|
  clock time}{| please| now}
{What|Which} {month|week|season|century} {is it now|are we in|do we have today}
{Any|Are there|Read me|Show me} {breaking|local|new|sports|political} {news|stories|reports}{| about @X| from @C|
   tonight|}
{Who is leading|Who is winning|Who scored|Who plays} {in the race|today|now|tonight|right now}{| in @C| at @s}
{What is on|What runs on} {TV|the radio|the cinema} {tonight|now|today|on @Q}
{What did|What has} {the president|@X|the minister|the pope} {say|done|announce} {today|this week|yesterday}
{When does|At what hour does} {the @n shop|the match|the bus to @C|flight @X|the moon|the concert} {open|start|arrive|
  leave|rise|close}{| today| on @Q}
{What is|Where is} {trending|my parcel|my taxi|the traffic jam|the storm}{| now| today| right now}
{Is|Are} {@X|the trains|the streets} {online|on strike|running|wet} {today|now|at the moment}""".replace("\n  ", "").split("\n")
EMPIRES = """the Aztec empire|the Ming dynasty|the Thirty Years war|the cold war|the Ottoman empire|the Vikings|
the ice age|the British empire|the plague|the gold rush|the Mongols|the stone age|the Renaissance""".replace("\n", "").split("|")
OWN = "mother|boss|brother|aunt|dentist|landlord|sister|uncle|cousin|grandma|neighbour|teacher|wife|husband".split("|")
INSTRUMENTS = "cello|trumpet|harp|flute|drums|banjo|saxophone|oboe|accordion|organ".split("|")


def thing(rng):
    return rng.choice(NOUNS + pools.THINGS + pools.FRUITS) if rng.random() < .75 else pools.invented(rng).lower()


def fill(rng, q):
    for mark, make in (("@ns", lambda: thing(rng) + "s"), ("@n", lambda: thing(rng)), ("@as", lambda: rng.choice(ANIMAL) + "s"),
                       ("@a", lambda: rng.choice(ANIMAL)), ("@v", lambda: rng.choice(VERBS)),
                       ("@P", lambda: rng.choice(PEOPLE)), ("@T", lambda: rng.choice(TOPICS)),
                       ("@C", lambda: pools.city(rng)), ("@A", lambda: rng.choice(pools.JOBS)),
                       ("@W", lambda: " ".join(pools.words(rng, rng.randint(1, 4)))),
                       ("@X", lambda: pools.invented(rng)), ("@x", lambda: pools.invented(rng).lower()),
                       ("@Y", lambda: pools.name(rng)), ("@L", lambda: rng.choice(LANGS)),
                       ("@K", lambda: rng.choice(CODE)), ("@D", lambda: rng.choice(DISHES)),
                       ("@q", lambda: rng.choice(STUFF)), ("@b", lambda: rng.choice(PARTS)),
                       ("@i", lambda: rng.choice(ILLS)), ("@w", lambda: rng.choice(LAW)),
                       ("@s", lambda: rng.choice(SPORTS)), ("@N", lambda: rng.choice(NATURE)),
                       ("@B", lambda: rng.choice(WORKS)), ("@Z", lambda: rng.choice(SUBSTANCES)),
                       ("@E", lambda: rng.choice(EMPIRES)), ("@R", lambda: rng.choice(EMPIRES)),
                       ("@o", lambda: rng.choice(OWN)), ("@m", lambda: rng.choice(INSTRUMENTS)),
                       ("@k", lambda: rng.choice(pools.COLORS)), ("@Q", lambda: rng.choice(pools.DAYS)),
                       ("#Y", lambda: str(rng.randint(800, 2020))),
                       ("#1", lambda: str(rng.randint(1, rng.choice([9, 99, 999])))),
                       ("#2", lambda: str(rng.randint(1, rng.choice([9, 99]))))):
        while mark in q:
            q = q.replace(mark, make(), 1)
    return q


def refuse_wide(rng):
    k = rng.random()
    patterns, answer = ((WIDE, REFUSE) if k < .66 else (TWISTS, REFUSE) if k < .76 else (WORDY, REFUSE_SUM) if k < .87
                        else (LIVE, REFUSE_NOW))
    q = upper_first(fill(rng, expand(rng, rng.choice(patterns))))
    return [(noisy(rng, end_mark(rng, q)), answer)]
