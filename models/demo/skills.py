"""The small skills: sequences, counting, capitals, word games, stories, JSON, and what was said earlier in the chat.

Each function takes a random.Random and returns a list of (user text, assistant text) turns. Reads and writes
nothing."""
import json

import pools
from phrasing import end_mark, expand, noisy, upper_first
from pools import (ABC, ANIMALS, CAPITALS, COLORS, DAYS, FOODS, FRUITS, JOBS, MONTHS, ORD, PLACES, PLANETS, SEASONS,
                   THINGS, an, words)

SEQS = [(DAYS, "day", "days of the week", "of the week", True),
        (MONTHS, "month", "months of the year", "of the year", True),
        (PLANETS, "planet", "planets", "from the sun", False), (SEASONS, "season", "seasons", "of the year", True),
        (ABC, "letter", "letters of the alphabet", "of the alphabet", False)]


def J(value):
    return json.dumps(value, ensure_ascii=False)


def one(rng, pattern, answer):
    return [(noisy(rng, end_mark(rng, upper_first(expand(rng, pattern)))), answer)]


def sequence(rng):
    k = rng.random()
    if k < .3:
        return continued(rng)
    items, single, plural, where, ring = rng.choice(SEQS[:2] if rng.random() < .5 else SEQS)
    if k < .48:
        p = (f"{{Name|List|Say|Tell me|Give me|Write|Recite|Show me|What are|Which are|Do you know|Can you name|"
             f"Please list}} {{the|all the|all}} {plural}")
        if single == "letter" and rng.random() < .6:
            p = rng.choice(["{Say|Recite|List|Write|Give me|Tell me} the {alphabet|letters of the alphabet}",
                            "What {is the alphabet|are the letters of the alphabet}"])
        if single in ("day", "month") and rng.random() < .4:
            p = "{Name|List|What are|Say} the {%s}" % ("seven days|days" if single == "day" else "twelve months|months")
        return one(rng, p, ", ".join(items) + ".")
    if k < .86:
        i, d = rng.randrange(len(items)), rng.choice([1, -1])
        if not ring and not 0 <= i + d < len(items):
            d = -d
        word, got = ("after" if d > 0 else "before"), items[(i + d) % len(items)]
        p = rng.choice([f"{{Which|What}} {{{single}|}} {{comes|is|goes|do we have|comes right|"
                        f"is right}} {word} {items[i]}", f"What comes {word} {items[i]}",
                        f"{{Which|What}} {{{single}|}} {{follows|comes next after|is next after}} {items[i]}" if d > 0
                        else f"{{Which|What}} {{{single}|}} {{precedes|comes just before|was before}} {items[i]}",
                        f"{{The|Name the|Tell me the|What is the}} {single} {word} {items[i]}"])
        return one(rng, p, f"{upper_first(got)} comes {word} {items[i]}.")
    i = rng.randrange(min(len(items), len(ORD)))
    return one(rng, f"{{What|Which}} is the {ORD[i]} {single} {where}" if rng.random() < .6
               else f"{{Name|Tell me|Give me}} the {ORD[i]} {single} {where}",
               f"The {ORD[i]} {single} {where} is {items[i]}.")


def continued(rng):
    """Continue a list of days, months, letters or numbers by five items."""
    if rng.random() < .5:
        a, n = rng.randint(0, 90), rng.randint(3, 5)
        items = list(map(str, range(a, a + n + 5)))
    else:
        base, _, _, _, ring = rng.choice([SEQS[0], SEQS[1], SEQS[4]])
        n = rng.randint(2, 4)
        i = rng.randrange(len(base) if ring else len(base) - n - 4)
        items = [base[(i + j) % len(base)] for j in range(n + 5)]
    shown = ", ".join(items[:n])
    q = rng.choice(["Continue: {}", "Continue the sequence: {}", "Continue this list: {}", "What comes next: {}",
                    "What comes next? {}", "What comes after {}?", "Go on: {}",
                    "{}", "{},", "{}, ...", "Continue {}", "Please continue: {}", "What is next: {}?",
                    "Complete the sequence: {}", "And then? {}", "Can you continue {}?",
                    "Give me the next five: {}", "The list is {}. Go on.", "Keep going: {}"]).format(shown)
    return [(noisy(rng, q, wrap=False) if rng.random() < .3 else q, ", ".join(items[n:]) + ".")]


def counting(rng):
    k = rng.random()
    if k < .75:
        a = rng.choice([0, 1, 1, 1, 1, 1, rng.randint(2, 20), rng.randint(2, 20)])
        b = a + rng.randint(2, 19) if a > 1 else rng.randint(3, 20)
        p = (f"{{Count|Please count|Can you count|Count up|Say the numbers|List the numbers|Give me the numbers|"
             f"Write the numbers|I want you to count|Now count}} from {a} {{to|up to|until}} {b}")
        if a == 1 and rng.random() < .5:
            p = f"{{Count|Please count|Can you count|Count up|Count for me}} {{to|up to}} {b}"
        answer = range(a, b + 1)
    else:
        a = rng.choice([5, 10, 10, rng.randint(4, 20)])
        b = rng.choice([0, 1, 1])
        p = f"{{Count down|Count backwards|Please count down|Can you count down|Count back}} from {a} to {b}"
        answer = range(a, b - 1, -1)
    return one(rng, p, ", ".join(map(str, answer)) + ".")


def easy_counting(rng):
    """Only what the model is to know in the end: from 1 up to 3 ... 20, and down from at most 20."""
    if rng.random() < .75:
        b = rng.randint(3, 20)
        p = rng.choice(["{Count|Please count|Can you count|Count up|Count for me|Now count} {to|up to|until} %d",
                        "{Count|Please count|Can you count|Say the numbers|List the numbers|Give me the numbers|"
                        "Write the numbers|Now count} from {1|one} {to|up to|until} %d"]) % b
        return one(rng, p, ", ".join(map(str, range(1, b + 1))) + ".")
    a, b = rng.randint(3, 20), rng.choice([0, 1, 1])
    p = f"{{Count down|Count backwards|Please count down|Can you count down|Count back}} from {a} to {b}"
    return one(rng, p, ", ".join(map(str, range(a, b - 1, -1))) + ".")


def neighbour(rng):
    """What comes before or after, in everyday words."""
    items, single, _, _, ring = rng.choice(SEQS)
    i, d = rng.randrange(len(items)), rng.choice([1, -1])
    if not ring and not 0 <= i + d < len(items):
        d = -d
    word, x = ("after" if d > 0 else "before"), items[i]
    forms = [f"{{What|Which {single}}} {{do you get|is there|stands|is found}} {{right|just|directly|}} {word} {x}",
             f"{{I am looking for|I need|Give me}} the {single} {{that comes|that is|}} {{right|just|}} {word} {x}",
             f"{x} is {{a {single}|my {single}|given}}. {{What|Which one}} comes {word} {{it|that}}",
             f"{x}: {{what|which {single}}} is {{right|just|}} {word} {{it|that}}",
             f"{{{single}|which {single}|the {single}|one {single}}} {word} {x}",
             f"{{Do you know|Can you tell me|Please tell me}} {{what|which {single}}} comes {word} {x}"]
    if single in ("day", "month"):
        near = {("day", 1): "tomorrow", ("day", -1): "yesterday", ("month", 1): "next month",
                ("month", -1): "last month"}
        forms += [f"{{Today is|It is|Now it is|We have}} {x}. {{What|Which {single}}} {{is|was|comes}} {near[single, d]}"]
    return one(rng, rng.choice(forms), f"{upper_first(items[(i + d) % len(items)])} comes {word} {x}.")


def repeat(rng):
    text = rng.choice([" ".join(words(rng, rng.randint(1, 7))), f"{pools.name(rng)} likes {rng.choice(FOODS)}",
                       f"The {rng.choice(ANIMALS)} has a {rng.choice(COLORS)} {rng.choice(THINGS)}."])
    return [(rng.choice(["Repeat: {}", "Repeat after me: {}", "Say: {}", "Please repeat: {}", "Echo: {}",
                         "Repeat this: {}"]).format(text), text)]


def capital(rng):
    land = rng.choice(list(CAPITALS))
    return one(rng, rng.choice([f"{{What|Which city}} is the capital {{city|}} of {land}",
                                f"{{Name|Tell me|Give me}} the capital of {land}", f"The capital of {land}",
                                f"{{Do you know|Can you tell me}} the capital of {land}", f"capital of {land}",
                                f"Which city is {land}'s capital", f"What is {land}'s capital"]),
               f"The capital of {land} is {CAPITALS[land]}.")


def word_game(rng):
    k = rng.random()
    if k < .45:
        text = rng.choice([" ".join(words(rng, rng.randint(1, 8))), f"{pools.name(rng)} likes {rng.choice(FOODS)}",
                           f"The {rng.choice(ANIMALS)} has a {rng.choice(COLORS)} {rng.choice(THINGS)}."])
        return [(rng.choice(["Repeat: {}", "Repeat after me: {}", "Say: {}", "Please repeat: {}", "Echo: {}",
                             "Repeat this: {}", "echo {}", "Please say: {}", "Repeat the words: {}"]).format(text),
                             text)]
    if k < .55:
        w = words(rng, rng.randint(2, 5))
        return [(rng.choice(["Reverse the words: {}", "Reverse these words: {}",
                             "Say the words backwards: {}"]).format(" ".join(w)), " ".join(reversed(w)))]
    if k < .72:
        w = rng.choice(pools.WORDS) if rng.random() < .7 else pools.invented(rng).lower()
        return [(rng.choice([f"Spell {w}.", f"Spell the word {w}.", f"How do you spell {w}?", f"spell {w}",
                             f"Please spell {w}."]), "-".join(w.upper()))]
    if k < .86:
        w, i = words(rng, rng.randint(2, 6)), rng.choice([0, -1])
        p = "first" if i == 0 else "last"
        return [(rng.choice([f"What is the {p} word of: {' '.join(w)}", f"Tell me the {p} word: {' '.join(w)}"]),
                 f"The {p} word is {w[i]}.")]
    w, n = rng.choice(pools.WORDS), rng.randint(2, 5)
    return [(rng.choice([f"Say {w} {['two', 'three', 'four', 'five'][n - 2]} times.", f"Write {w} {n} times."]),
             " ".join([w] * n))]


def story_text(rng, animal=None, who=None):
    a, n = animal or rng.choice(ANIMALS), who or pools.name(rng)
    p, c, t = rng.choice(PLACES), rng.choice(COLORS), rng.choice(THINGS)
    b = rng.choice([x for x in ANIMALS if x != a])
    return " ".join([
        f"Once upon a time there was {an(a)} called {n}, who lived near {p}.",
        rng.choice([f"One day {n} found {an(c)} {t} on the road.", f"One morning {n} saw {an(c)} {t} under a tree."]),
        rng.choice([f"\"Whose {t} is this?\" asked {n}, but nobody answered.",
                    f"{n} had never seen such a fine {t} before."]),
        rng.choice([f"Then {an(b)} came along and began to cry.", f"Soon {an(b)} came by, tired and sad."]),
        f"\"I lost my {t},\" said the {b}.",
        rng.choice([f"{n} smiled and gave the {t} back.", f"{n} gave the {c} {t} to the {b} at once."]),
        rng.choice([f"From that day on, the {a} and the {b} were good friends.",
                    f"After that, {n} and the {b} walked home together under the stars."])])


def story(rng):
    k, a, n = rng.random(), rng.choice(ANIMALS), pools.name(rng)
    if k < .35:
        turns = one(rng, "{Tell me|Write|Write me|Please tell me|Give me|I want|Can you tell me|Make up} {a story|"
                         "a short story|a little story|a tale|a nice story|a bedtime story}", story_text(rng))
    elif k < .75:
        turns = one(rng, f"{{Tell me|Write|Write me|Give me|Can you tell me}} a {{story|short story|tale|"
                         f"little story}} about {an(a)}", story_text(rng, a))
    else:
        turns = one(rng, f"{{Tell me|Write|Write me}} a {{story|short story|tale}} about {an(a)} {{called|named}} {n}",
                    story_text(rng, a, n))
    if rng.random() < .15:
        turns.append((noisy(rng, rng.choice(["Another one.", "Another story, please.", "Tell me another one.",
                                             "One more story.", "Tell me another story."]), wrap=False),
                                             story_text(rng)))
    return turns


def thing_record(rng):
    """(kind, dict) for the JSON tasks."""
    n, c, col, a = pools.name(rng), pools.city(rng), rng.choice(COLORS), rng.choice(ANIMALS)
    return rng.choice([
        ("person", {"name": n, "age": rng.randint(5, 80), "city": c}),
        ("user", {"name": n, "age": rng.randint(18, 80), "active": rng.choice([True, False])}),
        ("animal", {"animal": a, "name": n, "color": col}), ("fruit",
                                                             {"fruit": rng.choice(FRUITS), "color": col,
                                                              "price": rng.randint(1, 9)}),
        ("book", {"title": f"The {col} {rng.choice(THINGS)}", "author": n, "pages": rng.randint(50, 400)}),
        ("city", {"city": c, "people": rng.randint(1, 900) * 1000}),
        ("order", {"item": rng.choice(THINGS), "count": rng.randint(1, 9), "paid": rng.choice([True, False])}),
        ("car", {"color": col, "year": rng.randint(1990, 2026), "owner": n}),
        ("job", {"name": n, "job": rng.choice(JOBS), "city": c})])


def json_pairs(rng):
    """One to three keys in any company: what is asked for has to be copied, not remembered."""
    pool = {"name": pools.name(rng), "age": rng.randint(5, 80), "city": pools.city(rng), "color": rng.choice(COLORS),
            "animal": rng.choice(ANIMALS), "fruit": rng.choice(FRUITS), "item": rng.choice(THINGS),
            "count": rng.randint(1, 99), "job": rng.choice(JOBS), "year": rng.randint(1990, 2026),
            "price": rng.randint(1, 99), "people": rng.randint(1, 900) * 1000, "food": rng.choice(FOODS)}
    pairs = [(key, pool[key]) for key in rng.sample(list(pool), rng.choice([1, 2, 2, 2, 3]))]
    said = [f"{key} {value}" for key, value in pairs]
    text = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
    q = rng.choice(["Make JSON with {}.", "Write JSON with {}.", "Give me a JSON object with {}.",
                    "Create a JSON object with {}.", "Turn this into JSON: {}", "JSON with {}"]).format(text)
    return [(q, J(dict(pairs)))]


def json_task(rng):
    k = rng.random()
    kind, o = thing_record(rng)
    if k < .35:
        return one(rng, f"{{Give me|Write|Show me|Make|Create|Return|Generate|I need|Print}} {an(kind)} {{as JSON|"
                        f"in JSON|as a JSON object|in JSON format}}" if rng.random() < .8
                   else f"{{JSON for|A JSON object for|JSON of}} {an(kind)}", J(o))
    if k < .7:
        pairs = list(o.items())[:rng.randint(1, 3)]
        said = [f"{key} {J(v) if isinstance(v, (bool, list)) else v}" for key, v in pairs]
        text = said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
        q = rng.choice(["Make JSON with {}.", "Write JSON with {}.", "Give me a JSON object with {}.", "JSON with {}",
                        "Create a JSON object with {}.", "Return JSON: {}",
                        "Turn this into JSON: {}", "Write this as JSON: {}", "Convert to JSON: {}"]).format(text)
        return [(q, J(dict(pairs)))]
    if k < .88:
        w = words(rng, rng.randint(2, 6))
        sep = rng.choice([" ", ", "])
        return [(rng.choice(["Make a JSON list of: {}", "Write these words as a JSON array: {}", "JSON array: {}",
                             "Give me a JSON list of {}", "Make a JSON array with {}."]).format(sep.join(w)), J(w))]
    n = rng.randint(2, 3)
    key = rng.choice(["name", "animal", "color", "fruit", "city"])
    pool = {"name": pools.NAMES, "animal": ANIMALS, "color": COLORS, "fruit": FRUITS, "city": pools.CITIES}[key]
    plural = {"name": "names", "animal": "animals", "color": "colors", "fruit": "fruits", "city": "cities"}[key]
    return one(rng, f"{{Give me|Write|Make|Show me|Return|List}} {{{n}|{['two', 'three'][n - 2]}}} {plural} {{as JSON|"
                    f"as a JSON array|in JSON|as a JSON list}}", J(rng.sample(pool, n)))


def memory_items(rng):
    """(what the user tells, reply, later question, later answer), one of each kind."""
    n, c, col, a, num = pools.name(rng), pools.city(rng), rng.choice(COLORS), rng.choice(ANIMALS), rng.randint(1, 999)
    job, food = rng.choice(JOBS), rng.choice(FOODS)
    e = lambda p: expand(rng, p)
    return [
        (e(f"{{My name is|I am|I'm|Hello, I am|Hi, my name is|Hello, my name is|Hi, I'm|People call me|"
           f"You can call me|Hello! My name is|They call me|my name's}} {n}"), f"Nice to meet you, {n}!",
         e("{What is my name|What's my name|Do you remember my name|Who am I|Tell me my name|Do you know my name|"
           "What was my name|How am I called|Can you tell me my name|Say my name}"), f"Your name is {n}."),
        (e(f"{{I live in|I come from|I am from|I'm from|My home is|My city is|I was born in|I am living in|"
           f"My home town is|Right now I live in}} {c}"), f"{c} is a nice place.",
         e("{Where do I live|Which city do I live in|What is my city|Where am I from|Where do I come from|"
           "Do you remember where I live|Do you know where I live|In which city do I live|Tell me where I live|"
           "Which city am I from}"), f"You live in {c}."),
        (e(f"{{My favorite color is|I like the color|My favourite colour is|The color I like best is}} {col}"),
         f"I will remember that you like {col}.",
         e("{What is my favorite color|Which color do I like|Do you remember my favorite color|"
           "What color do I like best}"), f"Your favorite color is {col}."),
        (e(f"{{I have|My pet is|At home I have|I own}} {an(a)}"), f"How nice, {an(a)}!",
         e("{What is my pet|Which pet do I have|Which animal do I have|Do you remember my pet}"),
         f"Your pet is {an(a)}."),
        (e(f"{{Remember the number|My number is|My lucky number is|Keep in mind the number|The number is}} {num}"),
         f"I will remember the number {num}.",
         e("{Which number did I tell you|What is my number|What was the number|Do you remember the number|"
           "Tell me the number}"), f"The number is {num}."),
        (e(f"{{I am|I work as|I'm|My job is}} {an(job)}"), f"It must be interesting to be {an(job)}.",
         e("{What is my job|What do I do|What do I work as|Do you remember my job}"), f"You are {an(job)}."),
        (e(f"{{I like|I love|I like to eat|My favorite food is}} {food}"), f"{upper_first(food)} sounds good!",
         e("{What do I like to eat|What is my favorite food|Which food do I like}"), f"You like {food}.")]


UNKNOWN = ["You have not told me your name yet.", "You have not told me yet where you live."]


def not_told(rng):
    """Asked for the name or the city before anything was said about it."""
    i = rng.choice([0, 1])
    return [(noisy(rng, memory_items(rng)[i][2] + "?"), UNKNOWN[i])]


def upper_or_lower(rng, text):
    """No typos and no lower case here: names must stay as they are."""
    return text[0].lower() + text[1:] if rng.random() < .12 else text


def memory(rng, filler, turns_between=None):
    """Name, city and other things told first, other talk in between, questions at the end. `filler` makes the talk in
    between."""
    items = memory_items(rng)
    head, rest = items[:2], items[2:]
    rng.shuffle(rest)
    told = rng.sample(head, rng.choice([1, 2, 2])) + rest[:rng.choice([0, 0, 1, 2])]
    rng.shuffle(told)
    out = []
    if len(told) > 1 and rng.random() < .15 and told[0] in items[:2] and told[1] in items[:2]:
        nm, ct = items[0], items[1]
        n, c = nm[1][18:-1], ct[1][:-17]
        out.append((rng.choice([f"My name is {n} and I live in {c}.", f"I am {n} from {c}.",
                                f"Hi, I am {n} and I come from {c}.", f"I'm {n} and I live in {c}"]),
                                f"Nice to meet you, {n}! {c} is a nice place."))
        out += [(t[0], t[1]) for t in told[2:]]
    else:
        out = [(upper_or_lower(rng, t[0]) + rng.choice([".", ".", ".", "", "!"]), t[1]) for t in told]
    n = rng.choice([0, 0, 1, 2, 3, 4, 5]) if turns_between is None else turns_between
    while n > 0:
        t = filler(rng)
        out += t
        n -= len(t)
    ask = told[:]
    for i, item in enumerate(items[:2]):
        if item not in told and rng.random() < .3:
            ask.append(("", "", item[2], UNKNOWN[i]))
    rng.shuffle(ask)
    return out + [(noisy(rng, t[2] + "?", wrap=rng.random() < .3) if rng.random() < .6 else t[2] + "?", t[3])
                  for t in ask]
