"""More of what the demo model knows: how Chasqui works inside, the words of LLM serving, and the Andes.

Same form as facts.py; importing this file adds its entries there. Reads and writes nothing."""
from facts import FACTS, fact

# ---- inside Chasqui ------------------------------------------------------------------------------------------------
fact("the event loop|the loop|the network loop|an event loop", """
{Which|What} thread {owns|handles|reads} {the sockets|all sockets|the network|the connections}
How does Chasqui {handle|read|serve} {many connections|thousands of connections|sockets|the network}
{How many|Which} threads {handle the network|read from the clients|does the loop use}
{Why|How} does the loop never block
{What|Which things} {runs|happen} {on|in} the loop""",
     "The event loop is the one thread that owns all sockets: it reads requests and writes answers. Nothing slow may run on it, so it always answers quickly.")
fact("eventfd|an eventfd|the eventfd", """
{How|In what way} {does|do} {a worker|the worker|workers} wake {up|} the {loop|event loop}
{Why|Where} {does|is} {Chasqui use eventfd|eventfd used|it use an eventfd}
How {do|does} {the threads|the worker and the loop} {talk|signal|communicate}
How is the loop woken {up|}
{What|Which mechanism} wakes {up|} the {loop|event loop}""",
     "An eventfd is a small Linux object that wakes a sleeping loop. A Chasqui worker writes to it once per step to say that new tokens are ready.")
fact("a worker|workers|the worker|worker threads|the worker thread", """
{Which|What} thread {calls llama_decode|runs the model|computes the tokens|does the decoding}
How many workers {are there|does Chasqui have|do I need}
{Who|What} {runs|computes} the {model|batch|tokens}
{Where|In which thread} does the model run
What {does|is the job of} {a|the} worker {do|}""",
     "A worker is the thread that runs one model context. It forms the batch, computes the step and delivers the new tokens.")
fact("the scheduler|scheduling|the Chasqui scheduler|a scheduler", """
{How|Who} {does Chasqui decide|decides} {what to compute next|which request goes first|who is served first|what runs next}
{What|How much} does the scheduler {know|decide|look at}
{Who|What} {plans|forms|builds} the {batch|next batch|next step}
{In which|In what} order are {requests|the requests} served
{How|Which requests} {are requests ordered|go first}
{How does|Does} Chasqui {schedule|order|prioritize} {requests|work|the requests}""",
     "The scheduler decides what goes into the next step. For each request it knows the tenant, the class, the deadline and the cached prefix.",
     "It first serves the running streams, then it fills the step with pieces of new prompts, as long as nobody misses a deadline.")
fact("the dispatcher|a dispatcher|the Chasqui dispatcher", """
{Who|What} {gives|sends|hands} {requests|new work|work} to the workers
How {does|do} a request {get to|reach|find} {a worker|the worker}
{Which|What} thread {places|distributes} {new work|requests|the work}
How is {a worker chosen|the work distributed|a worker picked}""",
     "The dispatcher is the thread that gives each new request to a worker: the one that already has its session or its longest prefix, else the least loaded one.")
fact("one process|a single process|the process model|the architecture of Chasqui|the design of Chasqui|how Chasqui works inside", """
How many processes does {Chasqui|it|the server} {have|need|start|use}
{Which|What} {services|other programs|databases} does {Chasqui|it} need
{Does|Do} {Chasqui|I} need {Redis|a database|docker|other services|Kubernetes}
Is Chasqui {one|a single} {process|program|binary}
How is Chasqui {designed|structured|organized|put together}
{What|Which} {threads|parts} does Chasqui have""",
     "Chasqui is one process and one binary. Inside, a loop handles the sockets, a dispatcher places the work, and workers run the model.")
fact("a slot|slots|the slots|slot", """
{What|How many requests} {runs|run} in {a|one} slot
{How many|Which} requests {fit in|can use} a slot
{What|Why} {are slots for|does Chasqui have slots}
{Where|In what} does {one|a} request run""",
     "A slot is a place in the server where one sequence is worked on. With more slots, more requests run at once.")
fact("a cell|cells|KV cells|a KV cell|the cells", """
{What|How much} {does a cell hold|is in a cell|fits in a cell}
{What|How} {are|does Chasqui count} {cells|the cells}
{What|Which unit} is the unit of the KV cache
{How many|Which} tokens fit in {a|one} cell""",
     "A cell is the room for one token in the KV cache. Chasqui counts every cell, so it never runs out by surprise.")
fact("a session|sessions|the session|session", """
{How|Can I} keep {a conversation|my chat|the history} on the server
{Why|When} {should I use|use} {a session|sessions}
{How do|Can} {I|clients} {open|create|use} a session
What {happens|is kept} {in|with} a session""",
     "A session is a conversation that the server remembers. Its earlier turns stay in the cache, so they are not computed again.")
fact("a tenant|tenants|the tenant|tenant", """
{Who|What} {are the tenants|is meant by tenant}
How does Chasqui {share|divide} {the server|time} between {customers|users|tenants}
{Is|How is} {the sharing|Chasqui} fair {between users|between tenants|to all users|}
{Can one|What if one|Does one} {user|client|customer} {take all the time|slow down the others|use up everything}
{How does|Does} Chasqui {handle|support} {several customers|many tenants|multiple tenants}""",
     "A tenant is the owner of an API key. The scheduler shares the time fairly between tenants, so one of them cannot slow down all the others.")
fact("a class|classes|request classes|the priority classes|priorities|the class of a request", """
{Which|What|How many} {classes|priorities|priority levels} {are there|does Chasqui have|exist}
How do I {set|change|give} {the priority|a priority|the class} {of a request|}
{What|Which requests} {is|are} {interactive|background|standard} {work|requests|}
{Does|Can} Chasqui {support|have|handle} {priorities|priority requests|urgent requests}
{How|Can I} make {a|my} request {urgent|more important|background work}""",
     "Every request has a class: interactive, standard or background. Background work steps aside when interactive work would come too late.")
fact("a deadline|deadlines|the deadline|request deadlines", """
{What|What happens} {if|when} {a request|a token|the answer} is late
{How|Does} Chasqui {use|know} {deadlines|the deadline}
{When|By when} must {a token|an answer} {arrive|be ready}
{Can|How do} I {set|give} a deadline""",
     "A deadline is the time by which a client should see its next token. The scheduler orders the work so that deadlines are met.")
fact("a lease|leases|the lease|lease", """
{How|What} {protects|keeps} a cached prefix {from being removed|in memory|while it is used}
{When|Why} is a {prefix|cached prefix} {pinned|protected|locked}
{What|Who} {holds|takes|uses} a lease
{What|Which thing} pins a prefix""",
     "A lease pins a cached prefix while a request uses it, so the prefix cannot be evicted too early.")
fact("drain|draining|a drain|the drain", """
{How|What} {do I|happens when I} {stop|shut down|turn off|restart} {the server|Chasqui} {cleanly|gracefully|safely|without losing requests|}
{What|How} {happens|works} {at|on|during} {shutdown|a shutdown|a restart}
{How|Can} {I|Chasqui} {update|restart|stop} without {losing|breaking} requests
{What|Which signal} {stops|ends} {the server|Chasqui}
{Is there|How does} a graceful {shutdown|stop} {work|}""",
     "To drain means to stop cleanly: the server takes no new requests, finishes the running ones, and then ends.")
fact("admission|admission control|the door|overload", """
{What|How} {happens|does Chasqui react} when {the server is full|the server is overloaded|there are too many requests|the load is too high|there is too much load}
{Why|When} {do I get|does the server send|does Chasqui answer} {429|503|a 503|a 429|status 429|status 503|an error 503}
{What|Why} {does|is} {429|503|Retry-After|status 503} {mean|}
{Which|What} status {codes|code} {do I get|comes} when the server is {full|overloaded|busy}
How does Chasqui {handle|deal with} {overload|too many clients|high load}""",
     "Admission decides at the door whether a request may enter. When there is too much work, Chasqui answers 429 or 503 and says when to try again.")
fact("cancelling|cancellation|a cancelled request|client disconnects", """
{What|How} happens {when|if} {a client leaves|I close the connection|the client disconnects|I stop reading|the user goes away|I press Ctrl-C in curl}
How {do|can} I {cancel|abort|stop} {a request|my request|an answer|generation|a running request}
{Does|Will} {the server|Chasqui} {go on|keep computing|waste work} {after|when} {I disconnect|the client leaves|a client is gone}
{Can|May} I cancel a request""",
     "Close the connection to cancel a request. Chasqui notices that the client has left and frees its slot after at most one more step.")
fact("a snapshot|snapshots|KV snapshots", """
{Can|Does} Chasqui {save|store|keep} {the cache|a session|the KV cache} {on disk|to disk|in a file}
{What|Where} {happens with|goes} {an idle session|idle sessions}
{Does|Will} the cache survive a restart
{How|Where} {are|is} {sessions|the cache} saved""",
     "A snapshot is a saved copy of a cached prefix in host memory or on disk. It is read back in one go, which is much faster than computing it again.")
fact("a batch|batches|the batch|batching", """
{What|Which tokens} {is|are} {in|inside} {a|the} batch
{Why|How} does {the server|Chasqui} {batch|group} {requests|tokens}
{How many|Which} {tokens|requests} {go into|are in} {a|one} batch""",
     "A batch is the group of tokens that the model computes in one step. It can hold tokens of many requests.")
fact("a step|steps|the step|one step", """
{How long|What} {is|does} {a|one} step {take|}
{What|Which things} happen {in|during} {a|one} step
{How|What} {do we call|is the name of} one run of the model""",
     "A step is one run of the model over one batch. Every running stream gets its next token from a step.")

# ---- general words -------------------------------------------------------------------------------------------------
fact("a token|tokens|token", """
{How long|How big} is a token
{What|Which pieces} do models {read|write|read and write}
Is a token a word
{Are|Is} tokens {words|letters|a word|the same as words}""",
     "A token is a small piece of text, such as a word or a part of a word. Models read and write tokens.")
fact("a tokenizer|the tokenizer|tokenization|tokenizers", """
{How|What} {is text|turns text|makes text} {split|cut|turned|} into tokens
{Who|What} {makes|produces} the tokens
How {does|do} {a model|models|you} {read|see} text
{Where|How} do tokens come from""",
     "A tokenizer turns text into tokens and tokens back into text.")
fact("quantization|a quantized model|quantized weights|Q8_0|Q4_0", """
{Why|How} are models {quantized|compressed|made smaller}
{How|Can I} make a model {smaller|fit into memory}
{Which|What} {quantization|quantizations|quant} {should I use|is best|are there}
{What|Why} does {Q8_0|Q4_0|Q4_K_M} mean
{Does|Will} quantization {hurt|lose} quality""",
     "Quantization stores the weights with fewer bits, so the model is smaller and faster, with a small loss of quality.")
fact("the KV cache|a KV cache|KV cache|the key value cache|KV caching", """
{Where|How} {are|does the model keep} {the keys and values|earlier tokens}
{Why|When} {is there|do we need} a {KV cache|cache for attention}
{What|How much} {memory does|does} the KV cache {need|store|hold|keep|contain}
{Why|How} {is it not needed|does the model avoid} to compute {old|earlier} tokens again""",
     "The KV cache keeps the keys and values of the tokens already read, so the model does not have to compute them again.")
fact("the prefix cache|prefix caching|a prefix cache|prompt caching|a cached prefix|a prefix|prefix sharing", """
{How|Can} {does Chasqui|Chasqui} {reuse|share} {the work of earlier requests|prompts|a system prompt|the same prompt}
{Why|How} is the second {request|question} {faster|so fast|quicker}
{What|How} happens when two {prompts|requests} {begin|start} {the same way|with the same text|alike}
{Is|Are} {the same prompt|a repeated prompt|my system prompt} computed {again|twice|every time}
{How|Does} Chasqui {cache|remember|share} {prompts|prefixes|common prefixes}""",
     "The prefix cache reuses the work of an earlier request when a new prompt begins with the same text. Only the new part has to be computed.",
     "The cached prefixes lie in a radix tree, and those that were not used for the longest time go first when memory is short.")
fact("the radix tree|a radix tree|radix tree", """
{Where|In what|How} {are|does Chasqui keep} {prefixes|the cached prefixes} {kept|stored|}
{Which|What} data structure {holds|is used for} the {prefix cache|cached prefixes}
{How|What} does Chasqui {find|use to find} {a cached prefix|the longest prefix}""",
     "A radix tree stores token sequences that share their beginnings. Chasqui uses it to find the longest cached prefix of a prompt.")
fact("speculative decoding|speculation|speculative sampling|drafting", """
{How|Can} {a|does a} small model {speed up|help|make faster} a {large|big} {model|one}
{How|Can} {does Chasqui|Chasqui} {guess|propose} {several tokens|tokens ahead|tokens}
{How|Can I} {get more|make} {tokens per second|generation faster|decoding faster} {with a draft|}
{When|Does} {speculation|speculative decoding} {help|pay off|change the answer}""",
     "In speculative decoding a small draft model proposes several tokens and the large model checks them in one step. The answer stays the same, but it comes faster.")
fact("a draft model|the draft model|draft models", """
{Which|What} model {proposes|guesses} {the tokens|tokens}
{Why|When} do I need a {draft|draft model}
{How|Which flag do I use to} {load|use|set} a draft model
{Is there|Where is} a draft {model|} {for the demo model|}""",
     "A draft model is a small and fast model that guesses the next tokens for a larger one. Both must share the same vocabulary.")
fact("continuous batching|dynamic batching|in-flight batching", """
{How|Can} {are many|does Chasqui serve many} {requests|users|clients} {served|} at {once|the same time}
{Why|How} do {requests|several requests} run together
{How|When} {can|does} a new request {join|start while others run|enter the batch}
{Does|Must} a {new|short} request wait for {the others|a long one|the batch to end}""",
     "Continuous batching puts the tokens of many requests into one step. A new request can join at any step, so nobody has to wait for the others to finish.")
fact("temperature|the temperature|the temperature setting", """
How {do|can} I make the {answer|output|text} {more|less} {random|creative}
{Which|What} {setting|parameter|option} {controls|changes} {randomness|the randomness|how creative the model is}
{What|Which} temperature {should I use|is best|do I need}
{What|Why} happens at temperature {0|zero|1}""",
     "Temperature controls how random the answer is. At zero the model always picks the most likely token.")
fact("greedy decoding|greedy sampling|greedy", """
How {do|can} I get {the same answer|the same output|deterministic output|repeatable answers} {again|every time|}
{How|When} is the output deterministic
{Which|What} {decoding|sampling} {picks|takes} the most likely token
{Always|How do I} pick the {best|most likely} token""",
     "Greedy decoding always picks the most likely token, so the same prompt gives the same answer.")
fact("top-p|top_p|nucleus sampling|the top-p setting", """
{Which|What} {does|is the effect of} top_p {do|0.9 mean|}
{How|When} do I use {top-p|top_p}""",
     "Top-p keeps the smallest set of likely tokens whose chances add up to p, and samples from them.")
fact("top-k|top_k|top-k sampling|the top-k setting", """
{Which|What} {does|is the effect of} top_k {do|40 mean|}
{How|When} do I use {top-k|top_k}""",
     "Top-k keeps only the k most likely tokens and samples from them.")
fact("a stop string|stop strings|the stop parameter|stop words|a stop sequence", """
How {do|can} I {stop|end|cut} {the answer|the output|generation|the text} {at a word|early|at a certain text|when a word comes}
{Can|How do} I make the model stop {at|after} {a word|a newline|a certain text}
{Which|What} parameter {stops|ends} {the answer|generation}""",
     "A stop string ends the answer as soon as the model writes it. The string itself is not sent.")
fact("a chat template|the chat template|chat templates", """
{How|What} {are|turns} {messages|chat messages|the messages} {turned|} into {a prompt|one text}
{Why|When} does a model need a chat template
{Where|In which file} is the {chat template|template} {kept|stored|}""",
     "A chat template turns a list of messages into the one text that the model was trained to read. It is stored in the GGUF file.")
fact("a system prompt|the system prompt|a system message|system prompts|the system role", """
How {do|can} I tell the model how to {behave|act|answer}
{How|Where} do I {set|write|put} {a system prompt|instructions|the instructions|a persona}
{Which|What} message {comes|goes} first {in a chat|}""",
     "A system prompt is a first message that tells the model how to behave.")
fact("a grammar|grammars|grammar constraints|structured output|a JSON schema|constrained output", """
How {do|can} I {force|get|guarantee|make sure to get} {valid JSON|JSON output|JSON|a fixed format}
{Can|Does} {Chasqui|the server} {force|guarantee|support} {JSON|a schema|valid JSON|JSON mode|JSON schemas}
{How|What} limits {which|what} tokens the model may write""",
     "A grammar limits which tokens the model may write next, so the output always has the right shape, for example valid JSON.")
fact("a tool call|tool calls|function calling|tool calling|tools|tool use", """
{How|Can} {can|} the model {run|call|use} {a function|functions|my functions|tools|my program}
{Does|Can} {Chasqui|the server|the model} {support|do} {tools|tool calls|function calling}
How do I {give|offer|send} {tools|functions} to the model""",
     "A tool call is a small JSON message in which the model asks your program to run a function. You send the result back as a tool message.")
fact("an embedding|embeddings|a text embedding|embedding vectors|an embedding model", """
{How|Can} {can I|I} compare the meaning of {two texts|texts}
{Which|What} numbers stand for {a text|the meaning of a text}
{How|Why} are texts turned into {numbers|vectors}""",
     "An embedding is a list of numbers that stands for the meaning of a text. Similar texts have similar numbers.")
fact("a reranker|rerankers|reranking|a rerank model|a cross-encoder", """
{How|What} {finds|can I find} the {best|most relevant} document for a {query|question}
{What|Which model} {scores|gives a score to} {documents|a query and a document}
{Why|When} {should I|do I} {rerank|use a reranker}""",
     "A reranker reads a query and a document and gives a score that says how well they fit.")
fact("the context window|the context length|the context size|context|the context|context window", """
{How much|How many tokens|How far} can {a model|the model|you} {look at|read|remember|look back}
{How long|How big} {may|can} {a prompt|the prompt|my prompt} be
{What|How big} is {your|the model's} {context|context window|context length}
{Why|What happens when} {is my text|the prompt is} too long""",
     "The context window is the number of tokens a model can look at in one go. Mine holds 2048 tokens.")
fact("a prompt|prompts|the prompt|prompt|prompting", """
{What|Which text} do I {give|send|write} to {the|a} model
{How|What} do I {write|put in} a {good prompt|prompt}
{What|Which} is the input of a {model|language model} {called|}""",
     "A prompt is the text that you give to the model.")
fact("a language model|an LLM|language models|LLMs|large language models|a large language model", """
How {does|do} {a language model|language models|an LLM|you} {work|write text|make text|think}
{What|Which} does LLM {mean|stand for}
{What|Which thing} predicts the next {token|word}""",
     "A language model reads text and predicts what comes next, one token at a time.")
fact("prefill|the prefill phase|prompt processing|prefilling", """
{What|How} happens {before|until} the first token {comes|arrives|}
{How|When} is the prompt {read|processed|computed}
{What|Which} is the first phase {of a request|}
{Why|How long} does a long prompt take {time|so long|}""",
     "Prefill is the first phase of a request, when the model reads the whole prompt in large steps.")
fact("decoding|the decode phase|decode|the decoding phase", """
{How|When} {are|is} {the answer|tokens|new tokens} {written|made|produced|generated}
{What|Which} is the second phase {of a request|}
{What|Which phase} comes after prefill""",
     "Decoding is the second phase of a request, when the model writes the answer one token at a time.")
fact("chunked prefill|prefill chunks|prompt chunks", """
{How|Why} are long prompts {split|cut|divided} {into chunks|into pieces|}
{How|Why} {does|do} {a long prompt|long prompts} not {block|slow down} {the others|other clients|other streams}
{What|Which trick} keeps {streams|the other streams} smooth {during a long prompt|}""",
     "Chunked prefill cuts a long prompt into pieces and reads one piece per step, so the other streams keep going smoothly.")
fact("time to first token|TTFT|the time to first token|ttft", """
{How long|What time} do I wait {for|until} the first {token|word}
{What|Which} does TTFT {mean|stand for}
{How|Why} {fast|late} {comes|does} the first token {come|}""",
     "Time to first token is how long you wait until the first piece of the answer arrives.")
fact("throughput|the throughput|tokens per second", """
{How|What} {is|do you call} the number of tokens per second
{How|Can I} {measure|count} {the speed of the server|how much the server does}
{How many|What} tokens per second""",
     "Throughput is how many tokens the server makes in one second for all requests together.")
fact("latency|the latency|inter-token latency|response time", """
{How|What} {do you call|is} the time between request and answer
{How|Why} {long|slow} is {a|the} {response|answer}
{Low|High} latency""",
     "Latency is the time a client waits: first for the first token, then between one token and the next.")
fact("a seed|the seed|seed|random seed|the random seed", """
{Which|What} {number|setting} fixes the random {numbers|choices}
{How|Can I} {repeat|get again} a {random|sampled} answer
{Where|Why} do I set a seed""",
     "A seed fixes the random numbers of the sampler, so you can get the same answer again.")
fact("a LoRA adapter|LoRA|LoRA adapters|an adapter|lora", """
{How|Can I} change {the behavior of a model|how a model behaves} {with few weights|without retraining|}
{Does|Can} Chasqui {support|load} {LoRA|adapters|LoRA adapters}""",
     "A LoRA adapter is a small set of extra weights that changes how a model behaves.")
fact("attention|self-attention|the attention mechanism", """
{How|In what way} do tokens {look at|see} {each other|earlier tokens}
{What|Which part} lets tokens {look back|see the text before}""",
     "Attention lets every token look at the tokens before it and take what it needs from them.")
fact("a transformer|transformers|a layer|layers|the layers", """
{How many|What} layers {do you have|are in the model|does the model have}
{How|Out of what} is a model {built|made}
{Which|What} {architecture|kind of network} {are you|do you use|does the model use}""",
     "A transformer is a stack of layers with attention and small networks. I have five layers, and large models have many more.")

# ---- the Andes -----------------------------------------------------------------------------------------------------
fact("a llama|llamas|the llama", """
{What|Which animal} carries loads in the Andes
{Do you|Tell me if you} like llamas
{Where|How} do llamas live""",
     "A llama is a woolly animal of the Andes. It carries loads over the mountains and is a cousin of the alpaca.")
fact("a quipu|quipus|a khipu|khipus", """
{How|In what} did the Incas {count|keep numbers|keep records|write}
{What|Which thing} did {a chasqui|the chasquis} carry
{What|Which} are the knotted {strings|cords} of the Incas {called|}""",
     "A quipu is a set of knotted strings. The Incas used it to keep numbers and records, and the chasquis carried it.")
fact("a tambo|tambos|a tampu", """
Where did the {chasquis|runners|messengers} {rest|sleep|eat}
{What|Which house} stood by the Inca road""",
     "A tambo was a house by the Inca road where messengers and travelers could rest and find food.")
fact("a pututu|pututus|the shell horn", """
{How|With what} did a {chasqui|runner} announce himself
{What|Which} horn did the {chasquis|runners|messengers} blow""",
     "A pututu is a horn made of a shell. A chasqui blew it so that the next runner could get ready.")
fact("the Inca road|the Qhapaq Nan|the Inca roads|the roads of the Incas", """
{Which|What} road did the {chasquis|runners|messengers} {use|run on|take}
{Where|How far} did the {chasquis|runners} run
How long {is|was} the Inca road""",
     "The Qhapaq Nan is the great road of the Incas. It joined the mountains, the coast and the cities of the empire.")
fact("the Incas|the Inca empire|the Inca people", """
{Who|Where} were the Incas
{Where|In which mountains} did the Incas live
{Which|What} people lived in the Andes""",
     "The Incas were a people of the Andes. From their capital Cusco they ruled a large empire with fine roads and no wheels.")
