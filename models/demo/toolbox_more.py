"""More tools for the last stage of the training: ten further kinds, harder names, several calls in a row.

evaluate.py does not use these: its tool calls come from toolbox.py alone. Reads and writes nothing."""
import pools
import toolbox
from toolbox import SONGS, Tool, system_text

MORE = {
    "route": ("get_route|find_route|route|plan_route|directions|navigate",
              "Find the way between two places|Plans a route",
              (("from|start|origin|source", "string", "Where it starts|The start"),
               ("to|end|destination|target", "string", "Where it ends|The goal")),
              """{Find|Show|Plan|Give me} {the way|a route|the route} from #0 to #1
How do I {get|drive|walk} from #0 to #1
From #0 to #1""", "I found a way from #0 to #1."),
    "volume": ("set_volume|volume|change_volume|sound_level|loudness", "Set the volume|Change how loud it is",
               (("level|volume|value|percent", "integer", "The level|How loud"),),
               """{Set|Turn|Change} the {volume|sound} to #0
{Make it|Volume} #0{ percent|}""", "The volume is #0 now."),
    "order": ("order_item|place_order|order|buy_item|add_to_cart", "Order a thing|Put an item into the cart",
              (("item|product|thing|article", "string", "The item|What to order"),
               ("count|amount|quantity|number", "integer", "How many|The number")),
              """{Order|Buy|Get} #1 of the item #0
I {want|need} the {item|product} #0, #1 {times|pieces}
{Order|Buy} {a|the} #0, #1 {times|pieces}""", "I ordered #1 of #0."),
    "event": ("create_event|add_event|calendar|new_event|add_appointment",
              "Add an event to the calendar|Creates an event",
              (("title|name|what|event", "string", "The title|What it is"), ("day|date|when", "string", "The day")),
              """{Put|Write} #0 into {the|my} calendar {for|on} #1
{Add|Create} {an event|the event|the meeting} #0 on #1
On #1 I have #0, {add it|note it}""", "#0 is in the calendar for #1."),
    "note": ("save_note|add_note|note|write_note|keep_note", "Save a note|Keeps a text",
             (("text|note|content|words", "string", "The note|What to keep"),),
             """{Save|Keep|Add|Make} {a note|the note|this note}: #0
{Note|Note down}: #0""", "I saved the note."),
    "file": ("read_file|open_file|load_file|get_file|show_file", "Read a file|Shows what is in a file",
             (("path|file|filename|file_name", "string", "The file|Name of the file"),),
             """{Read|Open|Show me|Load} the file #0
What is in {the file |}#0""", "I read the file #0."),
    "robot": ("move_robot|robot|drive|move|steer_robot", "Move the robot|Drives the robot to a place",
              (("place|room|goal|where", "string", "Where to|The room"),),
              """{Send|Move|Drive|Bring} the robot {to|into} the #0
Robot, go to the #0""", "The robot is in the #0."),
    "room": ("book_room|reserve_room|hotel|book_hotel|find_hotel", "Book a hotel room|Reserves a room in a city",
             ((toolbox.CITY, "string", "The city|Where"), ("nights|days|stay", "integer", "How many nights")),
             """{Book|Reserve|Get} {a room|a hotel|a hotel room} in #0 for #1 {nights|days}
I {need|want} a {room|hotel} in #0 for #1 {nights|days}""", "The room in #0 is booked for #1 nights."),
    "heat": ("set_temperature|heating|thermostat|set_heating|warm_room",
             "Set the heating|Sets the temperature of a room",
             (("room|where|zone", "string", "The room"), ("degrees|temperature|value", "integer", "The degrees")),
             """{Heat|Warm} the #0 to #1 degrees
{Set|Turn} the {heating|heat} in the #0 to #1""", "The #0 is set to #1 degrees."),
    "ticket": ("open_ticket|create_ticket|ticket|report_bug|new_issue", "Open a ticket|Creates an issue",
               (("person|user|name|owner", "string", "Who owns it"), ("text|title|summary", "string", "What is wrong")),
               """{Open|Create} a ticket for #0: #1
{New ticket|Ticket} for #0: #1""", "The ticket for #0 is open."),
}
FIRST = "get set do run call fetch check find make use read show start send query lookup ask handle try exec".split()
LAST = "tool api now v2 v3 data info service function action by_name for_user item x1 job task helper".split()


def name_from(rng, old):
    """Near names, names of the kind, and names that say nothing: all have to be copied from the list."""
    k = rng.random()
    if k < .45:
        return old
    if k < .65:
        return toolbox.made_up_name(rng, old)
    stem = rng.choice([old.split("_")[-1], old, rng.choice(pools.WORDS), pools.invented(rng).lower()])
    parts = [rng.choice(FIRST)] if rng.random() < .6 else []
    parts += [stem] + ([rng.choice(LAST)] if rng.random() < .5 else [])
    if rng.random() < .12:
        return "".join([parts[0]] + [p.capitalize() for p in parts[1:]])
    return "_".join(parts)


def values_of(rng, kind):
    """Arguments that can only be copied: more invented names than the pools give."""
    name = lambda: pools.invented(rng) if rng.random() < .55 else rng.choice(pools.NAMES)
    city = lambda: pools.invented(rng) if rng.random() < .5 else rng.choice(pools.CITIES)
    text = lambda: " ".join(pools.words(rng, rng.randint(1, 5)))
    room = lambda: rng.choice(toolbox.ROOMS)
    if kind in ("weather", "time"):
        return [city()]
    if kind == "message" or kind == "ticket":
        return [name(), text()]
    if kind == "user":
        return [name()]
    if kind == "play":
        return [rng.choice(SONGS) if rng.random() < .25 else name()]
    if kind == "route":
        return [city(), city()]
    if kind == "order":
        return [rng.choice(pools.THINGS + pools.FRUITS), rng.randint(2, 60)]
    if kind == "event":
        return [text(), rng.choice(pools.DAYS)]
    if kind == "file":
        return [rng.choice([pools.invented(rng).lower(), rng.choice(pools.WORDS)]) +
                rng.choice([".txt", ".json", ".md", ".csv", ".log"])]
    if kind == "volume":
        return [rng.randint(0, 100)]
    if kind == "note":
        return [text()]
    if kind == "robot":
        return [room()]
    if kind == "room":
        return [city(), rng.randint(2, 30)]
    if kind == "heat":
        return [room(), rng.randint(5, 30)]
    return OLD_VALUES(rng, kind)


OLD_VALUES = toolbox.argument_values


class HardTool(Tool):
    def __init__(self, rng, kind):
        kinds = toolbox.KINDS
        toolbox.KINDS = kinds | MORE
        try:
            super().__init__(rng, kind, plain=rng.random() < .15, made_up=0)
        finally:
            toolbox.KINDS = kinds
        self.name = self.schema["function"]["name"] = name_from(rng, self.name)

    def use(self, rng):
        toolbox.argument_values = values_of
        try:
            return super().use(rng)
        finally:
            toolbox.argument_values = OLD_VALUES


def hard_tools(rng, n):
    """Tools of different kinds and different names; about one in four of a further kind."""
    old, more = list(toolbox.KINDS), list(MORE)
    extra = sum(rng.random() < .25 for _ in range(n)) if rng.random() < .6 else 0
    kinds = rng.sample(old, n - extra) + rng.sample(more, extra)
    rng.shuffle(kinds)
    while True:
        tools = [HardTool(rng, k) for k in kinds]
        if len({t.name for t in tools}) == n:
            return tools


def drill(rng, system, fillers, plain_fillers):
    """Messages: several questions for the tools of one list, some with the result, and idle talk in between."""
    tools = hard_tools(rng, rng.choice([1, 2, 3, 3, 4, 4, 5, 5]))
    known = all(t.kind in toolbox.KINDS for t in tools)
    messages = [("system", system_text(system, tools))]
    for _ in range(rng.choice([1, 1, 2, 3, 4])):
        if rng.random() < .28:
            u, a = toolbox.no_tool_turn(rng, tools, fillers if known else plain_fillers)
            messages += [("user", u), ("assistant", a)]
            continue
        u, call, result, closing = rng.choice(tools).use(rng)
        messages += [("user", u), ("assistant", call), ("user", "<tool_response>\n" + result + "\n</tool_response>"),
                     ("assistant", closing)]
    return messages
