"""Tool calls for the demo corpus: tools under many names, questions that fit one of them, results, closing answers.

A tool is drawn with a random name and random parameter names ("get_weather(city)", "weather_lookup(location)", ...),
so that the model learns to copy both from the system prompt. Reads and writes nothing."""
import json

import pools
from phrasing import end_mark, expand, noisy, upper_first

HEAD = "# Tools\n\nYou may call these functions:\n<tools>"
TAIL = ("\n</tools>\n\nTo call a function, answer with:\n<tool_call>\n"
        "{\"name\": <function name>, \"arguments\": <arguments as JSON>}\n</tool_call>")
CITY = "city|location|place|town"
# kind: (names, descriptions, ((parameter names, JSON type, what it is), ...), questions, closing answers)
# #0 #1 stand for the arguments, &key for a value of the result
KINDS = {
    "weather": ("get_weather|get_current_weather|weather|current_weather|fetch_weather|weather_lookup|get_forecast|"
                "check_weather",
                "Get the weather of a city|Get the current weather in a given location|"
                "Get current temperature for a given location.|Weather for a place|Returns the weather|"
                "Look up the weather",
                ((CITY, "string", "The city|City and country|The name of the city|City name|The city and state"),),
                """{What|How} is the weather in #0{| now| today| right now| like}
What's the weather {like |}in #0{| today| now}
{Is it|Will it be} {raining|sunny|cold|warm|hot|windy|snowing} in #0{| today| now}
{Tell me|Give me|Show me|Check|Get|Look up} the weather {in|of|for} #0
{How|Is it} {warm|cold|hot} {is it |}in #0
Weather in #0
{What is|Give me} the {temperature|forecast} {in|for} #0
Do I need {an umbrella|a coat} in #0{| today}""", "It is &weather in #0, with &temperature degrees."),
    "time": ("get_time|get_current_time|current_time|time_in_city|local_time|clock|world_clock",
             "Get the local time of a city|Get the current time in a place|Tells the time|Current time for a location",
             ((CITY, "string", "The city|Name of the city|The place"),),
             """What time is it in #0{| now| right now}
{Tell me|Give me|Check|Show me} the {time|local time|current time} in #0
What is the {time|local time|current time} in #0{| now}
{How late|What hour} is it in #0
Time in #0
{Is it|How} late {|is it }in #0""", "It is &time in #0."),
    "light": ("set_light|set_light_color|light|change_light|lamp_color|set_lamp",
              "Set the color of the light|Change the light color|Controls the lamp",
              (("color|colour|light_color|value", "string", "The color|Color of the light"),),
              """{Set|Switch|Change|Turn} the {light|lamp|lights} to #0
Make the {light|lamp|lights} #0{| please}
I {want|would like} {a |}#0 light
{Turn|Switch} on the #0 {light|lamp}""", "The light is #0 now."),
    "search": ("search|search_documents|search_docs|find_documents|web_search|lookup|query_documents|search_web",
               "Search the documents|Search for text|Find documents about a topic|Full text search",
               (("query|q|text|topic|keywords", "string", "What to search for|The search words|Search query"),),
               """{Search|Search the documents|Look|Search the web} for #0
Find {documents|something|pages|articles|information} about #0
{Look up|Search} #0
{Can you|Please} {search|look} for #0
What do the documents say about #0""", "I found &hits documents about #0."),
    "message": ("send_message|send_text|message|send_sms|notify|write_message|send_email",
                "Send a message to a person|Send a text message|Sends an email|Notify a person",
                (("name|to|recipient|person|receiver", "string", "Who gets it|The person|The receiver"),
                 ("text|message|body|content", "string", "The message|What to send|The text")),
                """Send #0 {this message|the message|a message|the text}: #1
{Tell|Write|Text|Message} #0: #1
{Write to|Send a message to} #0: #1
{Please send|Send} #0 the words: #1""", "I sent the message to #0."),
    "timer": ("set_timer|start_timer|timer|set_alarm|countdown",
              "Start a timer|Set a timer in minutes|Starts a countdown",
              (("minutes|duration|mins|length", "integer", "How many minutes|Minutes|The time in minutes"),),
              """{Set|Start} a {timer|alarm} {for|of} #0 minutes
{Set|Start} a #0 minute {timer|alarm}
{Wake|Call|Remind} me in #0 minutes
Timer {for |}#0 minutes""", "The timer is set to #0 minutes."),
    "price": ("get_price|price|price_of|lookup_price|item_price|get_product_price",
              "Get the price of a thing|Returns the price of an item|Look up a price",
              (("item|product|thing|name", "string", "The item|Name of the product|What to look up"),),
              """{What|How much} {is the price of|costs|does} {a|the} #0{| cost}
How much is {a|the} #0
{Tell me|Give me|Check|Look up} the price of {a|the} #0
{Price|The price} of {a|the} #0""", "The price of the #0 is &price dollars."),
    "play": ("play_music|play_song|play|music_player|start_music",
             "Play a song|Play music of an artist|Starts the music",
             (("artist|singer|band|song", "string", "Who sings|The artist|The song"),),
             """Play {something|a song|music|some music} {by|from} #0
{Play|Put on|Start} #0{| please}
I {want|would like} to hear #0""", "Now playing #0."),
    "user": ("get_user|find_user|user_info|lookup_user|get_person|get_contact",
             "Look up a person|Get the data of a user|Find a contact",
             (("name|user|username|person", "string", "The name|The user name|Name of the person"),),
             """{Look up|Find|Show me|Get} {the user|user|the contact|the person} #0
{What|Give me} {is the|the} {email|phone number|address|data} of #0
{Find|Show} the {contact|address|phone number} of #0""", "The phone number of #0 is &phone."),
    "door": ("open_door|unlock_door|door|control_door|open_gate", "Open a door|Unlock the door of a room|Opens doors",
             (("room|door|which|room_name", "string", "The room|Which door|Name of the room"),),
             """{Open|Unlock} the {door of the|door to the|} #0{| door}
{Please open|Can you open} the #0 door
Let me into the #0""", "The #0 door is open."),
}
ROOMS = "kitchen garage garden office bedroom cellar bathroom hall attic library workshop".split()
SONGS = "Maya Rio;Blue Condor;The Runners;Los Andes;Silver Moon;Kusi;Red River;The Llamas;Wara;Night Train".split(";")


def J(value):
    return json.dumps(value, ensure_ascii=False)


def made_up_name(rng, name):
    """A function name that cannot be guessed, only copied."""
    stem = rng.choice([name, name.split("_")[-1], rng.choice(pools.WORDS) + "_" + name.split("_")[-1],
                       pools.invented(rng).lower()])
    return rng.choice(["", "", "my_", "do_", "api_", "call_", "use_", "the_", "home_", "old_",
                       "new_"]) + stem + rng.choice(["", "", "", "_tool", "_v2", "_now", "_api", "_function", "_2",
                                                     "_by_name"])


def argument_values(rng, kind):
    if kind in ("weather", "time"):
        return [pools.city(rng)]
    if kind == "light":
        return [rng.choice(pools.COLORS)]
    if kind == "search":
        return [" ".join(pools.words(rng, rng.randint(1, 3)))]
    if kind == "message":
        return [pools.name(rng), " ".join(pools.words(rng, rng.randint(1, 4)))]
    if kind == "timer":
        return [rng.randint(1, 90)]
    if kind == "price":
        return [rng.choice(pools.THINGS + pools.FRUITS)]
    if kind == "play":
        return [rng.choice(SONGS) if rng.random() < .5 else pools.name(rng)]
    return [pools.name(rng)] if kind == "user" else [rng.choice(ROOMS)]


def tool_result(rng, kind):
    if kind == "weather":
        return {"weather": rng.choice("sunny rainy cloudy windy snowy foggy".split()),
                "temperature": rng.randint(-5, 38)}
    if kind == "time":
        return {"time": f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"}
    if kind == "search":
        return {"hits": rng.randint(0, 99)}
    if kind == "price":
        return {"price": rng.randint(1, 99)}
    if kind == "user":
        return {"phone": str(rng.randint(10000, 99999))}
    return {"ok": True}


class Tool:
    """One tool with drawn names; `schema` is what stands in the system prompt."""

    def __init__(self, rng, kind, plain=False, made_up=.4):
        names, descriptions, params, self.questions, self.closing = KINDS[kind]
        pick = (lambda s: s.split("|")[0]) if plain else (lambda s: rng.choice(s.split("|")))
        self.kind, self.name = kind, pick(names)
        if not plain and rng.random() < made_up:
            self.name = made_up_name(rng, self.name)
        self.keys = [pick(p[0]) for p in params]
        props = {}
        for key, (_, typ, what) in zip(self.keys, params):
            props[key] = {"type": typ}
            if rng.random() < .5:
                props[key]["description"] = pick(what)
        schema = {"type": "object", "properties": props}
        if rng.random() < .85:
            schema["required"] = list(props)
        if rng.random() < .1:
            schema["additionalProperties"] = False
        if kind == "weather" and rng.random() < .25:
            props["unit"] = {"type": "string", "enum": ["celsius", "fahrenheit"]}
        function = {"name": self.name, "description": pick(descriptions), "parameters": schema}
        if rng.random() < .08:
            del function["description"]
        if rng.random() < .05:
            function["strict"] = True
        self.schema = {"type": "function", "function": function}

    def use(self, rng):
        """(user text, call text, result text, closing text)"""
        values, result = argument_values(rng, self.kind), tool_result(rng, self.kind)
        q, closing = expand(rng, rng.choice(self.questions.split("\n"))), self.closing
        for i, v in enumerate(values):
            q, closing = q.replace(f"#{i}", str(v)), closing.replace(f"#{i}", str(v))
        for key, v in result.items():
            closing = closing.replace("&" + key, str(v))
        q = upper_first(q)
        if not q.endswith(str(values[-1])) or self.kind not in ("message", "search"):
            q = end_mark(rng, q)
        if rng.random() < .3:
            q = polite(rng, q)
        return q, call_text(self.name, dict(zip(self.keys, values))), J(result), closing


def polite(rng, q):
    """Small changes that leave the arguments alone (no typos, no lower case)."""
    k = rng.random()
    if k < .3:
        return q.rstrip("?.")
    if k < .6:
        return rng.choice(["Please: ", "Hello, ", "Can you help me? ", "Hi! ", "Ok, ", "I have a question: ",
                           "Thanks. And now: "]) + q
    return q[0].lower() + q[1:]


def call_text(name, arguments):
    return "<tool_call>\n" + J({"name": name, "arguments": arguments}) + "\n</tool_call>"


def system_text(system, tools):
    return (system + "\n\n" if system else "") + HEAD + "".join("\n" + J(t.schema) for t in tools) + TAIL


def toolset(rng, n, made_up=.1):
    return [Tool(rng, kind, plain=rng.random() < .2, made_up=made_up) for kind in rng.sample(list(KINDS), n)]


def no_tool_turn(rng, tools, fillers):
    """A question that none of the tools fits."""
    u, a = rng.choice(fillers)(rng)[0]
    return noisy(rng, u) if rng.random() < .1 else u, a
