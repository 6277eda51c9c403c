"""Names, places, things and other words from which the demo corpus is made, plus invented ones.

Copying (names, cities, tool arguments) is only learnt as a skill when the words vary, so many names are made up from
syllables: then the model has to look them up in the conversation. Reads and writes nothing."""
NAMES = """Ana Luis Maya Tom Rosa Ivan Nina Omar Lucia Sam Zoe Ken Inti Kusi Wara Leo Mia Hugo Elsa Yuri Ada Paul Vera Noor Dario Kira Oscar Tania
Alice Bob Carol Dave Eve Frank Grace Heidi Peter Mary John Anna James Emma David Laura Daniel Julia Marco Sofia Pablo Carmen Diego Elena Jorge
Marta Pedro Teresa Miguel Clara Felix Greta Hans Ingrid Jonas Karin Lars Mona Nils Olga Petra Ralf Silvia Tobias Ursula Viktor Wendy Xavier Yara
Ahmed Fatima Hassan Leila Samir Amina Chen Li Wei Mei Hiro Yuki Kenji Aiko Raj Priya Arjun Anita Kofi Ama Sarah Linda Kevin Susan Brian Alan Ruth""".split()
CITIES = """Lima Cusco Quito Bogota Madrid Paris Rome Berlin Oslo Tokyo Cairo Delhi Sydney Toronto Boston Lisbon Vienna Prague Dublin Athens London
Chicago Seattle Denver Dallas Miami Munich Hamburg Cologne Zurich Geneva Milan Turin Naples Venice Warsaw Krakow Budapest Sofia Helsinki Stockholm
Copenhagen Brussels Amsterdam Porto Sevilla Valencia Bilbao Barcelona Montreal Ottawa Havana Caracas Santiago Arequipa Trujillo Puno Potosi Sucre
Seoul Osaka Kyoto Beijing Shanghai Singapore Bangkok Jakarta Manila Mumbai Nairobi Lagos Accra Dakar Tunis Istanbul Moscow Kyiv Riga Tallinn""".split()
COLORS = "red blue green yellow orange purple black white pink brown gray gold silver violet".split()
ANIMALS = ("llama fox condor cat dog owl rabbit bear turtle mouse horse frog duck wolf deer puma hamster parrot lizard "
           "goat sheep snake").split()
PLACES = ["a small village", "the high mountains", "a quiet valley", "an old stone bridge", "the edge of a forest",
          "a blue lake", "a busy market", "a sunny hill"]
THINGS = ("lantern letter drum rope basket flute map blanket key bell stone cup lamp chair table phone coat hat bag "
          "ring watch").split()
FRUITS = "apple banana mango pear grape lemon cherry papaya peach plum orange kiwi".split()
JOBS = "teacher doctor nurse farmer baker pilot student painter singer driver cook writer engineer gardener".split()
FOODS = "pizza soup rice bread pasta salad cheese fish potatoes beans cake honey corn tacos noodles".split()
WORDS = sorted(set(ANIMALS + COLORS + THINGS + FRUITS + """sun moon star river cloud rain wind snow tree leaf road house door window book pen song dance
sleep jump run walk talk open close big small fast slow hot cold happy sad new old one two three water fire earth sky bird milk tea salt sugar
morning evening night day summer winter friend garden school train boat wheel bridge mountain valley lake sea island""".split()))
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
SEASONS = "spring summer autumn winter".split()
ABC = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
ORD = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
CAPITALS = dict(x.split(":") for x in """France:Paris Germany:Berlin Spain:Madrid Italy:Rome Portugal:Lisbon Peru:Lima Ecuador:Quito Japan:Tokyo
Egypt:Cairo Norway:Oslo Austria:Vienna Greece:Athens Ireland:Dublin Canada:Ottawa Cuba:Havana England:London Poland:Warsaw Hungary:Budapest
Finland:Helsinki Sweden:Stockholm Denmark:Copenhagen Belgium:Brussels Chile:Santiago China:Beijing Russia:Moscow Kenya:Nairobi
Colombia:Bogota Argentina:Buenos_Aires Mexico:Mexico_City India:New_Delhi""".split())
CAPITALS = {k: v.replace("_", " ") for k, v in CAPITALS.items()}

ONSET = "b c d f g h j k l m n p r s t v w z br dr gr kr tr st sh ch th fl gl pr".split()
VOWEL = "a e i o u a e i o ai ee ou".split()
CODA = ["", "", "", "n", "r", "l", "s", "t", "m", "k", "nd", "x"]


def invented(rng):
    """A made-up proper name such as "Drelou" or "Kanosh"."""
    return "".join(rng.choice(ONSET) + rng.choice(VOWEL) + (rng.choice(CODA) if i else "")
                   for i in range(rng.choice([2, 2, 3]))).capitalize()


def name(rng):
    return rng.choice(NAMES) if rng.random() < .6 else invented(rng)


def city(rng):
    return rng.choice(CITIES) if rng.random() < .65 else invented(rng)


def words(rng, n):
    return [rng.choice(WORDS) for _ in range(n)]


def an(noun):
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun
