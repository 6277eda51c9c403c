"""What the demo model knows about Chasqui and about serving language models.

Every entry is Fact(topics, questions, answer, more):
  topics     noun phrases separated by "|", round which phrasing.py puts its templates ("What is X?", "Explain X.")
  questions  extra patterns, one per line, in the small grammar of phrasing.py: {a|b} is a or b, {a|} is a or nothing
  answer     the one canonical answer: fixed wording, so that greedy decoding gives it word for word
  more       the answer to "Tell me more." right after it, or None

The held-out questions of eval_prompts.py must not be copied here. This file reads and writes nothing."""
from collections import namedtuple

Fact = namedtuple("Fact", "topics questions answer more")
FACTS = []


def fact(topics, questions, answer, more=None):
    FACTS.append(Fact([t.strip() for t in topics.split("|") if t.strip()],
                      [q.strip() for q in questions.strip().split("\n") if q.strip()], answer, more))


# ---- the project ---------------------------------------------------------------------------------------------------
fact("Chasqui|the Chasqui server|this server|the Chasqui runtime|the chasqui project", """
{What|Which} {kind|sort} of {program|software|server} {is Chasqui|is this|are you}
What {program|server|software|thing} {am I|are we} {talking to|using|running}
{What|So what} {does|can} Chasqui {actually do|do|do for me|offer}
{Describe|Summarize|Introduce} {Chasqui|the Chasqui project|this project} {in one sentence|in a few words|briefly|for me|}
{What is|What's} {this project|this software|this program|the project} {about|for|}
{Give me|I need|Write} {an overview|a summary|a description|an introduction} of {Chasqui|this project}
{I have never heard of|I am new to} Chasqui{, what is it|}""",
     "Chasqui is a server for language models, written in C++. It loads a GGUF model, takes requests from many clients at once and streams the answers back.",
     "Its loop knows the tenant, the deadline, the prefix and the socket of every request, so it can decide well what to compute next.")
fact("the name Chasqui|the name of the project|the word chasqui|chasquis|the chasquis|a chasqui|Inca messengers", """
{Where|From where} does the name {Chasqui|of the project|of this server|} come from
{Why|How come} {is it|is the project|is this server|is the server} {called|named} {Chasqui|like that|that way}
{What|Which} is the {origin|meaning|story} {of|behind} the name {Chasqui|}
{Who|What} were the {chasquis|Inca runners|Inca messengers|relay runners}
What does {Chasqui|chasqui|the name} {mean|stand for}
{Why|How did you get} that name
Who {carried|brought} messages in the Inca empire
{How did|Did} the Incas send {messages|news|letters}""",
     "A chasqui was a relay runner of the Inca empire, who carried messages along the mountain roads from one station to the next. The server is named after these runners.",
     "Each runner blew a shell horn before he arrived, so the next one was ready to take the message and run on.")
fact("the language of Chasqui|the programming language", """
{Which|What} {programming language|language|coding language} is {Chasqui|it|the server|this|this server} {written|implemented|coded|programmed|made|developed} in
{In which|In what} language {is|was} {Chasqui|the server|it} {written|programmed|coded}
{What|Which} {programming |}language {does|do} {Chasqui|the project|you} use
Is {Chasqui|it|the server} {written|implemented|coded} in {Python|Rust|Go|Java|C++|C}
{Which|What} {version of C++|C++ standard|C++ version} {does Chasqui use|is used|do I need}
Does Chasqui {use|need} {Python|C++20|C++|Rust}
{Chasqui|the server} {source code|code} language""",
     "Chasqui is written in C++20.")
fact("the licence of Chasqui|the license|the MIT licence|the MIT license", """
{Which|What} {licence|license} {does|is} {Chasqui|the project|it} {have|use|under}
Under {which|what} {licence|license} {is|was} Chasqui {released|published|distributed|}
{Is|Are} {Chasqui|the project|it|the code} {free|open source|free software|free to use|proprietary}
{Can|May} I {use|sell|change|modify|copy} {Chasqui|the code|it} {in my company|commercially|for free|at work|in my product|}
{How much|What} does Chasqui cost
Do I have to pay {for Chasqui|for it|}
{Chasqui|project} {licence|license}""",
     "Chasqui is open source under the MIT licence, so you may use, change and share it freely.")
fact("libllama|llama.cpp|the engine of Chasqui|ggml", """
{Which|What} {engine|library|back end|backend} {does|do} {Chasqui|the server|it} {use|run on|stand on|rely on}
What is {Chasqui|the server|it} {built|based} on
{Does|Do} {Chasqui|it|the server} {use|need|depend on|include} {llama.cpp|libllama|ggml}
{What|Who|Which library} does the {math|maths|matrix math|inference|computing} {in Chasqui|of the model|}
{Is|Are} Chasqui {based|built} on llama.cpp
What is the {relation|relationship|connection} {between|of} Chasqui and {llama.cpp|libllama}""",
     "Chasqui stands on libllama, the library of llama.cpp. The library does the math of the model, and Chasqui does everything above it.")
fact("llama-server|the difference to llama-server|the difference between Chasqui and llama-server", """
{How|In what way} {is|does} Chasqui {different|differ} from {llama-server|the llama.cpp server}
{Can|Could} {I|Chasqui|it} {replace|swap out} llama-server {with Chasqui|}
Is {Chasqui|it} {a replacement for|compatible with|better than|like} llama-server
{Why|When} should I use Chasqui instead of llama-server
{Compare|What about} Chasqui {with|and} llama-server
{Do my|Will my} llama-server {scripts|flags|clients} {work|still work}""",
     "Chasqui is a drop-in replacement for llama-server: it understands the same routes and flags, and it is made for many users who notice latency.")
fact("the goal of Chasqui|the promises of Chasqui|the advantages of Chasqui|the benefits of Chasqui", """
{Why|For what reason} {does|do} {Chasqui|this project} exist
Why should {I|anyone|we|somebody} {use|choose|try|care about} {Chasqui|it}
{What|Which} {problem|problems} does {Chasqui|it} solve
{What|What is} {makes|} Chasqui {special|different|good|better|unique}
What are the {strengths|strong points|goals|aims|advantages|benefits|main ideas} of {Chasqui|the project}
{Who|For whom} is {Chasqui|it} {for|made for|made}
What does Chasqui promise""",
     "Chasqui wants every client to see its tokens on time, even while another client sends a long prompt. It never computes the same prefix twice while it fits in memory.")
fact("the demo model|the built-in model|the model inside Chasqui|the tiny model|the embedded model", """
{Which|What} model {is|comes} {built in|inside|built into Chasqui|with Chasqui|included}
{Can|Could} I {try|start|use|run} Chasqui without {a model|downloading a model|a model file|any model}
{Do I need|Must I} {to download|download} a model {first|}
What {happens|do I get} {when|if} I {start|run} Chasqui without a model
Is there {a demo|a test model|a model included|an example model}
Why {are you|is the demo model|is this model} so {small|tiny}""",
     "Chasqui carries a tiny demo model inside the binary, so it can answer right after the start, without any download. For real work, load your own GGUF file.")
fact("", """
{Does|Will|Can} {Chasqui|the server|it} {need|use|work without|run without} {the internet|internet|a network|an internet connection}
{Can|May} I {use|run} {Chasqui|it|the server} {offline|without internet|on a plane|without a connection}
Is {Chasqui|my data|the data} sent {to the cloud|anywhere|to a company|over the internet}
Does {Chasqui|it} work offline
{Does|Do} {my prompts|my data|the data} leave {my machine|my computer|the server}
Is my data {private|safe}""",
     "Chasqui works offline. Your prompts stay on your own machine, because model and server run there.")
fact("", """
{Does|Will} {Chasqui|the server|it} {need|require|use} {a GPU|a graphics card|a video card|GPUs|special hardware|CUDA}
{Can|Could} {Chasqui|it|the server|I} {run|work|run Chasqui} {on a CPU|without a GPU|on a laptop|on my laptop|on a plain CPU|with only a CPU}
Do I {need|have to buy} a {GPU|graphics card}
{Which|What} hardware {do I need|does Chasqui need|is needed|is required}
{Is|Are} {a GPU|GPUs} {needed|required|necessary|supported|optional}
CPU or GPU""",
     "Chasqui runs on a plain CPU. A GPU makes it faster, but it is not required.")
fact("the supported systems|the supported platforms", """
{Which|What} {operating systems|operating system|platforms|platform|systems} {does Chasqui support|are supported|can I use|does it run on}
{Does|Can} {Chasqui|it} {run|work} on {Linux|macOS|Windows|a Mac|my Mac|Debian|Ubuntu}
Is there a {Windows|Mac|Linux|macOS} version
{Where|On what} can I run Chasqui
Do I need Linux""",
     "Chasqui is made for Linux first, and it is kept compiling on macOS.")
fact("GGUF|a GGUF file|GGUF files|the GGUF format|gguf", """
{Which|What} {model format|file format|format|kind of file|files|models} {does|can} {Chasqui|the server|it} {load|read|use|support|run|accept}
{Which|What} {format|file type} {do the models have|must a model have|should my model be in}
Can {Chasqui|it} {load|read|use} {GGUF|safetensors|GGUF files|PyTorch models|my own model}
{What|Which} is the file format of the {model|models|weights}
Does Chasqui support {GGUF|gguf files}""",
     "GGUF is a file format that keeps the weights, the tokenizer and the settings of a model in one file. Chasqui loads models in this format.")

# ---- using it ------------------------------------------------------------------------------------------------------
fact("make run|the run command", """
How {do|can} I {start|run|launch|boot|open} {Chasqui|the server|it|this server}
{What|Which} command {starts|runs|launches} {Chasqui|the server|it}
{How|What} do I {need to type|type} to start {Chasqui|the server}
{Starting|Running|Launching} {Chasqui|the server}
{How|What is the quickest way} to {start|run|get} {Chasqui|the server} {running|up|}
{Get|Getting} started with Chasqui
{I want to|Help me} {start|run} {Chasqui|the server}""",
     "Type `make run` in the source folder. It builds Chasqui and starts the server with the demo model.")
fact("make test|the tests|the test suite", """
How {do|can} I {run|start|execute} the {tests|test suite|unit tests}
{What|Which} command {runs|starts} the tests
How {do|can} I {test|check} {Chasqui|the build|my build|that the build works}
{Does|Do} {Chasqui|the project} have tests
{Running|Run} the tests
{How|Where} is Chasqui tested""",
     "Type `make test` in the source folder. It builds Chasqui and runs all the tests.")
fact("building Chasqui|compiling Chasqui|the build", """
How {do|can} I {build|compile|install} {Chasqui|it|the server|from source|Chasqui from source}
{What|Which} {compiler|build tool|tools} {do I need|does Chasqui need|is needed}
{What|Which} {command|steps} {builds|build|compiles} {Chasqui|the server}
{How|What} do I {install|set up} {Chasqui|the server}
Is {it|Chasqui} hard to {build|install|compile}
{Does|Do} {Chasqui|I} need {cmake|gcc|g++|clang}""",
     "You need a C++20 compiler, cmake and ninja. Type `make` in the source folder, and libllama is built along with Chasqui.")
fact("the default address|the default port|the port|port 8080|the address of the server", """
{Which|What} {port|address|host|IP} {does|is} {Chasqui|the server|it} {listen on|use|running on|default to|by default}
{On which|On what} port {does|is} {Chasqui|the server|it} {listen|run|running|listening}
{Where|At which address} {does the server listen|is the server|can I reach the server|can I find the server|do I connect}
What is the {default port|default address|port|address|port number|URL} {of Chasqui|of the server|}
{How|Where} do I {connect|reach|open} {to the server|the server|Chasqui|the web page}
{Can|Do} {other machines|others} reach the server""",
     "By default Chasqui listens on 127.0.0.1:8080, so only your own machine can reach it.")
fact("the --port flag|--port", """
How {do|can} I {change|set|choose|pick|configure} {the port|another port|a different port|the listening port|the port number}
{Can|Could} I use {another|a different|my own} port
{Which|What} {flag|option} {sets|changes} the port
{Run|Start} {Chasqui|the server} on {port 9000|another port|port 9090|a different port}
Port 8080 is {taken|already in use|busy}
The port is {in use|taken}{, what now|}""",
     "Use the flag --port, for example `chasqui serve --port 9000`.")
fact("the -m flag|-m|the --model flag", """
How {do|can} I {load|use|choose|open|pick|run|serve|select} {a model|my model|my own model|another model|a different model|a GGUF file|a bigger model}
{Which|What} {flag|option} {sets|loads|chooses|selects} the model
{Where|How} do I {give|put|pass|set} the {model path|model file|path of the model|file name of the model}
{Run|Start|Serve} Chasqui with {my model|another model|my own model}
{Loading|Choosing} a {model|GGUF model}
{Can|May} I {use|load} my own model""",
     "Use the flag -m with the path of a GGUF file, for example `chasqui serve -m model.gguf`.")
fact("the -c flag|-c|the --ctx-size flag", """
How {do|can} I {set|change|increase|make|choose} {the context size|the context length|the context bigger|the context window|a longer context|a bigger context}
{Which|What} {flag|option} {sets|changes|is for} the {context|context size|context length}
{Make|Set|Increase} the context {larger|longer|size}
{My prompt is|The prompt is|My text is} too long {for the context|}
{How|Where} do I get {more context|a larger context}""",
     "Use the flag -c with the number of tokens, for example `chasqui serve -c 8192`.")
fact("the -np flag|-np|the --parallel flag", """
How {do|can} I {set|change|increase|choose} {the number of slots|how many requests run at once|the parallel requests|the parallelism|the slot count}
{Which|What} {flag|option} {sets|changes|is for} {the number of slots|the slots|parallel requests|parallelism}
How {many|do I get more} {slots|parallel requests} {are there|can I have|do I have|}
{How can I|Can I} {serve|run|handle} {more|many|several} {users|clients|requests} at {once|the same time}
{More|Set the} {slots|parallel requests} please""",
     "Use the flag -np with the number of slots, for example `chasqui serve -np 8`. Each slot runs one request.")
fact("an API key|API keys|authentication", """
How {do|can} I {protect|secure|lock} {the server|Chasqui|my server} {with a key|with a password|}
{Does|Do} {Chasqui|I|the server} {need|support|have|use} {an API key|a password|API keys|authentication|a login}
{How|Where} do I {set|send|use} {an API key|the API key|a key}
{Can|How can} I {open|expose|publish} the server {to the network|to others|to other machines|safely}
Is {the server|Chasqui} {secure|safe|protected}""",
     "Chasqui asks for an API key when it listens on an address that others can reach. Clients send it in the Authorization header as a bearer token.")
fact("the API|the HTTP API|the REST API|the OpenAI API", """
{Which|What} {API|APIs|protocol|interface} does {Chasqui|the server|it} {offer|have|speak|support|use}
{Is|Are} {Chasqui|the API|the server} compatible with {OpenAI|OpenAI clients|the OpenAI API|the OpenAI library}
{Can|How can} I use {my OpenAI client|the OpenAI client|OpenAI clients|OpenAI libraries} {with Chasqui|}
{Which|What} {routes|endpoints|URLs} {are there|exist|does Chasqui have|can I call}
{List|Show|Name} the {routes|endpoints}
How do I {call|use} the {API|server} from {Python|my program|code|a script}""",
     "Chasqui offers an HTTP API in the OpenAI style, so common clients work when you point them to its address.",
     "The main routes are /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/rerank, /v1/models, /health and /metrics.")
fact("the chat endpoint|the chat route|/v1/chat/completions|the chat API|chat completions", """
How {do|can} I {chat|talk} with {the model|Chasqui|you} {over HTTP|with curl|from a program|}
{Which|What} {route|endpoint|URL|path} is {for chat|the chat endpoint|used to chat}
{Where|How} do I {send|post} {chat messages|a chat|messages|a list of messages|a chat request}
{Send|Post|Make} a chat request
{What|Which} is the {route|endpoint|URL|path} for {chatting|chat|a conversation|chat completions|messages}
How do I {ask|send} a question {with curl|over HTTP|by HTTP}""",
     "Send a POST request to /v1/chat/completions with a list of messages.")
fact("the completions endpoint|the completion route|/v1/completions|text completion|raw completion", """
How {do|can} I {complete|continue} {a text|raw text|plain text|some text|a prompt}
{Which|What} {route|endpoint|URL|path} is for {text completion|plain text|raw text|completions|raw completion|completing text}
{Can|How do} I send a prompt without {a chat template|messages|chat}
{Where|How} do I send {raw text|a raw prompt|plain text}""",
     "Send a POST request to /v1/completions with a prompt. The text is continued as it is, without a chat template.")
fact("the health endpoint|the health check|/health|the health route", """
How {do|can} I {check|see|know|test|find out} {that|if|whether} {the server|Chasqui|it} is {alive|running|up|healthy|ready|working|ok}
{Which|What} {route|endpoint|URL|path} {is for|tells|shows|checks} {health|the health|if the server is alive}
Is there a {health check|health endpoint|status page|liveness probe}
{Is|Are} {the server|Chasqui} {alive|up|running|healthy|ready}
{Health|Status} of the server
How do I {ping|probe} the server""",
     "Send a GET request to /health. A healthy server answers at once with status ok, whatever the model is doing.")
fact("the metrics endpoint|the metrics|/metrics|metrics|monitoring|Prometheus metrics", """
{Where|How} {do|can} I {see|find|read|get|scrape} {the metrics|metrics|statistics|numbers about the server}
How {do|can} I {monitor|watch|observe|measure} {Chasqui|the server|it|the load}
{Which|What} {route|endpoint|URL|path} {has|gives|shows|is for} {metrics|the metrics|statistics|monitoring}
{Does|Can} {Chasqui|it} {work with|support|have|export} {Prometheus|Grafana|metrics}
{How|Where} can I see {how busy|how loaded|how fast} the server is""",
     "Send a GET request to /metrics. It shows counters and timings in the Prometheus text format.")
fact("the generate endpoint|/generate|the generate route", """
{What|Which} is {the route|} /generate {for|good for|}
{Which|What} is the {simplest|shortest|simple|native} {route|endpoint|way to get text}
{How|When} do I use /generate
{Is there|Do you have} a {simple|simpler|native|small} {endpoint|route|API} {for generation|for text|}""",
     "The route /generate is the simple one: send a prompt by POST and the text comes back as a stream.")
fact("the embeddings endpoint|/v1/embeddings|the embeddings route", """
How {do|can} I {get|make|compute|create|request} {embeddings|an embedding|a vector for a text|vectors}
{Which|What} {route|endpoint|URL|path} {makes|gives|is for|returns} embeddings
{Can|Does} {Chasqui|the server|it} {make|compute|serve|support} embeddings
{Where|How} do I send text {to get|for} {embeddings|a vector}""",
     "Send a POST request to /v1/embeddings with the text as input, on a server that runs an embedding model.")
fact("the rerank endpoint|/v1/rerank|the rerank route", """
How {do|can} I {rerank|rank|sort|order} {documents|search results|texts|my documents}
{Which|What} {route|endpoint|URL|path} {reranks|ranks|is for reranking|is for ranking|sorts} {documents|}
{Can|Does} {Chasqui|the server|it} {rerank|rank|support reranking|rank documents}
{Where|How} do I send {a query and documents|documents to rank}""",
     "Send a POST request to /v1/rerank with a query and a list of documents, on a server that runs a rerank model.")
fact("the models endpoint|/v1/models|the list of models", """
How {do|can} I {list|see|show|get} the {models|loaded models|available models|model names|model list}
{Which|What} {route|endpoint|URL|path} {lists|shows|gives} {the models|models}
{Which|What} models are {loaded|available|there|running}
{How|Where} do I find the {name|id} of the model""",
     "Send a GET request to /v1/models and you will get the list of models.")
fact("streaming|streamed answers|token streaming|server-sent events|SSE", """
How {do|can} I {stream|get a stream of} {answers|the answer|tokens|the output|a response}
{Can|Does} {Chasqui|the server|it} {stream|support streaming|send tokens one by one}
{How|Why} does {streaming|the stream} work
{What|Why} does stream true {do|mean}
{How|Can} I {see|read|get} the {answer|text|tokens} {while|as} {it is being written|the model writes|it is written|it arrives}
{Turn on|Enable|Use|Switch on} streaming""",
     "With streaming the server sends each piece of the answer as soon as it is ready. Set \"stream\" to true in the request, and read the server-sent events.",
     "Chasqui never blocks on a slow reader: each stream has a small buffer, and a client that stays away too long is cancelled.")
