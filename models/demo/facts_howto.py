"""What a user wants to do: first words of a fact's answer -> verb phrases, put into the templates below.

howto(rng, fact) gives one such question, or None when the fact is not in the list. Reads and writes nothing."""
from phrasing import end_mark, expand, upper_first

TEMPLATES = """
How {do|can|could|should|would|must} {I|we|one|somebody|a user} @
How to @
{What|Which steps} {do I|must I|should I|can I} {do|take|follow} to @
{What is|Is there} {the way|a way|an easy way|the best way|a simple way} to @
I {want|need|would like|have|am trying|wish} to @{|. How|. How do I do that|, how|. What now|. Can you help}
{Can|Could|May|Should} I @
{Can|Could|Would|Will} you {tell|show|explain to} me how to @
{Please |}{tell|show|explain to} me how to @
{Which|What} {command|flag|option|request|setting} {do I need|is there|do I use|should I use|is used|is needed} to @
Is it possible to @
{Do|Did} you know how {to|I can} @
{Steps|Command|Instructions|Help} to @
@{| please|, how| how}
{I do not know|I forgot|I cannot find out|Remind me} how to @
{Let me|Help me|Help me to} @
What if I {want|need|have} to @
{Someone|A friend|My boss} {asked me|wants me} to @{|. How}
{It is|Is it} {easy|hard|difficult} to @
{And|So|Ok|Well|Now}, how {do|can} I @""".strip().split("\n")

ACTIONS = {
    "Type `make run`": "{start|launch|run|boot|bring up|get going with|turn on} {the server|Chasqui|it|your server|this program|the Chasqui server}|start {it|the server} {the first time|quickly|here|on my machine}",
    "Type `make test`": "{run|execute|start|launch} {the tests|all tests|the test suite|its tests|the unit tests|the checks}|{test|check|verify} {Chasqui|the code|my change|my changes|the build|the project}",
    "You need a C++20": "{build|compile|make|install|set up} {Chasqui|the server|it|the project|the binary|this}{| from source| from the sources| myself| on Linux}",
    "Use the flag --port": "{use|choose|pick|take|set|get|change to|switch to|listen on|serve on} {another port|a different port|port 9000|port 3000|port 8000|a new port|a free port|some other port}|change the {port|port number|listening port}|move the server to {port 9001|another port}",
    "Use the flag -m": "{load|use|serve|run|open|try|start with|switch to} {my own model|another model|a different model|a GGUF file|my model|my GGUF|a larger model|a model from disk|the model model.gguf|my own GGUF file}|{set|give|pass|change} the {model|model path|model file}",
    "Use the flag -c": "{set|change|raise|increase|enlarge|double|choose} the {context|context size|context length|context window|number of context tokens}|{get|have|use|set} {a bigger|a larger|a longer|more} context|fit {long prompts|longer prompts|a long chat}",
    "Use the flag -np": "{set|change|raise|increase|choose} the {number of slots|slots|slot count|number of parallel requests|parallelism}|{run|serve|handle|process} {more|many|several|eight|four} {requests|clients|users|chats} {in parallel|at once|at the same time|together}|get {more|eight|four} slots",
    "Chasqui asks for an API key": "{protect|secure|lock|guard} {the server|Chasqui|my server|it}{| with a key| with a password| against strangers}|{set|use|send|give|add} {an API key|the API key|a key|a password}|{make|open} the server {safe|available to others|public}",
    "Chasqui offers an HTTP API": "{use|connect|point} {my OpenAI client|the OpenAI client|OpenAI libraries|an OpenAI program}{| with Chasqui| to Chasqui| to the server}|{call|use|talk to|program} {the API|your API|the HTTP API|the server from Python|the server from code}",
    "Send a POST request to /v1/chat": "{send|post} {a chat|chat messages|a chat request|a message|messages|a question|a list of messages}{| over HTTP| to the model| to the server}|{chat|talk|have a conversation} with the model{| over HTTP| from my program| by curl}|call the chat {endpoint|route|API}",
    "Send a POST request to /v1/completions": "{complete|continue|extend} {a text|raw text|plain text|a sentence|a prompt|my text}{| without a chat| without messages| without the template}|send {raw text|a raw prompt|plain text|a plain prompt}",
    "Send a GET request to /health": "{check|see|test|find out|know} {if|whether|that} {the server|Chasqui|it} {is alive|is up|is healthy|works|runs|is running|is ok|is ready}|{check|test|probe|query} the {health|state|status} {of the server|of Chasqui|}|do a health check",
    "Send a GET request to /metrics": "{see|get|read|scrape|collect|find|export} {the metrics|metrics|statistics|counters|the numbers|the figures of the server}|{monitor|watch|observe} {the server|Chasqui|the load|it}{| with Prometheus| with Grafana}",
    "Send a POST request to /v1/embeddings": "{get|compute|make|create|request|calculate} {embeddings|an embedding|text embeddings|vectors|a vector}{| of a text| for my text| with Chasqui| from the server}|turn {text|texts|my text} into {vectors|an embedding|embeddings}",
    "Send a POST request to /v1/rerank": "{rerank|rank|sort|order} {documents|my documents|some texts|search results|the documents|a list of documents}{| by a query| for a question| with the server}|call the rerank {endpoint|route}",
    "Send a GET request to /v1/models": "{list|see|show|get|find} {the models|all models|the loaded models|the model names|which models are loaded|the available models|the name of the model}",
    "With streaming the server": "{stream|get a stream of} {answers|the answer|tokens|the output|the response|my answers}|{see|read|get|receive} {the answer|tokens|the text|every token|words} {while it is written|as it comes|one by one|at once|as they are made|immediately}|{turn on|enable|activate|use} {streaming|the stream|token streaming}",
    "Close the connection to cancel": "{cancel|abort|stop|end|interrupt} {a request|my request|an answer|the answer|a running request|a running answer|generation}",
    "To drain means": "{stop|shut down|restart|end|turn off|update} {the server|Chasqui|it} {cleanly|gracefully|without losing requests|safely|nicely}",
    "Every request has a class": "{set|give|change|choose|raise} {the priority|a priority|the class} {of a request|of my request|}|make {a request|my request|it} {urgent|background work|more important|low priority}",
    "Greedy decoding always": "{get|have} {the same answer|the same output|a repeatable answer|deterministic answers|exactly the same text} {every time|again|always|twice}",
    "Temperature controls": "make the {answer|output|text|model} {more random|less random|more creative|wilder|less creative}|{set|change|lower|raise} the temperature",
    "A stop string ends": "{stop|end|cut} {the answer|the text|the output|generation} {at a word|after a line|at some text|at a newline|when a word comes}|{set|use|send|give} {a stop string|stop strings|the stop parameter}",
    "A grammar limits": "{force|get|guarantee|ensure|enforce} {valid JSON|JSON|correct JSON|a JSON schema|JSON output|a fixed format|structured output}|{use|set|send} a {grammar|JSON schema}",
    "A tool call is": "{use|offer|give|add|define} {tools|functions|a tool|my functions}{| to the model| in a request}|let the model {call|run|use} {a function|my function|functions|my program|tools}",
    "A system prompt is": "{set|write|use|give|change} {a system prompt|the system prompt|a system message|instructions|a persona}|tell the model how to {behave|act|answer|talk}",
    "Chasqui works offline": "{use|run|try} {Chasqui|it|the server|you} {offline|without internet|without a network|without any connection|on a plane|in a cellar without internet}|keep my {data|prompts|texts} {private|on my machine|secret}",
    "Chasqui runs on a plain CPU": "{run|use|start} {Chasqui|it|the server} {without a GPU|on a CPU|without a graphics card|on my old laptop|on a plain computer|on cheap hardware}",
    "Chasqui carries a tiny demo": "{try|start|test|use} {Chasqui|it|the server} {without a model|without a download|without a model file|before I have a model|right away}",
    "Chasqui is open source": "{use|sell|copy|change|modify|share|fork} {Chasqui|the code|the source|it} {for free|at work|in my company|commercially|in my own product|without paying}",
    "Chasqui is a drop-in": "{replace|swap|leave} llama-server{| with Chasqui| by Chasqui}|{move|switch|migrate|change} {from llama-server|from llama-server to Chasqui|my scripts from llama-server}|keep my llama-server {scripts|flags|clients}",
    "The prefix cache reuses": "{reuse|share|cache} {the same prompt|a system prompt|a common prefix|my prefix|a long prompt}|make the second {request|question|prompt} faster",
    "In speculative decoding": "{speed up|make faster} {decoding|the large model|generation|the answers} {with a small model|with a draft|with a draft model}",
    "A snapshot is": "{save|keep|store|write} {the cache|a session|the KV cache|a prefix} {to disk|on disk|in a file|for later}",
    "A session is": "{keep|store|continue|remember} {a conversation|my chat|the history|a chat} {on the server|in a session|between requests}|{open|use|start|create} a session",
}


def howto(rng, fact):
    for start, phrases in ACTIONS.items():
        if fact.answer.startswith(start):
            # alternatives are separated by "|" outside braces; expand() wants them inside
            return end_mark(rng, upper_first(expand(rng, rng.choice(TEMPLATES)).replace("@",
                                                                                        expand(rng,
                                                                                               "{" + phrases + "}"))))
    return None
