// Where this server answers otherwise than llama-server on purpose, with the reason. compare.mjs does not print them;
// docs/compatibility.md does (node tests/e2e/compatibility.mjs). [what, why, bodies, differences]: two patterns, of the
// name of a body and of a difference as compare.mjs writes it.
export const deliberate = [
  ['`timings` also have `queue_ms`, `steps`, `steps_shared` and `preemptions`', 'they say what the company of other requests cost',
    /./, /^only here: \S*timings\.(queue_ms|steps|steps_shared|preemptions)$/],
  ['errors have `param`', 'OpenAI\'s clients show which field is at fault', /./, /^only here: \.error\.param$/],
  ['`usage` counts reasoning tokens (`completion_tokens_details`, `output_tokens_details`)', 'OpenAI\'s shape',
    /./, /^only here: \S*(completion|output)_tokens_details\.reasoning_tokens$/],
  ['`generation_settings` and `params` have `min_tokens`, and neither the grammar nor what the template chose',
    'the request keeps the compiled grammar only; how an answer is read belongs to the chat routes', /./,
    /(only here: \S*\.min_tokens|only llama-server: \S*\.(n_keep|n_discard|grammar|grammar_lazy|grammar_triggers|preserved_tokens(\[\])?|chat_format|reasoning_format|reasoning_in_content|generation_prompt|speculative\.types|backend_sampling|lora))$/],
  ['`generation_settings.seed` is the one that was drawn', 'so that the answer can be repeated; llama-server shows 4294967295',
    /completion/, /generation_settings\.seed:/],
  ['logprobs of `/v1/chat/completions` have no `id`, and `refusal`', 'OpenAI\'s shape; `/completion` has the ids',
    /chat\/completions logprobs/, /logprobs/],
  ['logprobs of `/v1/completions` are `tokens`, `token_logprobs`, `top_logprobs`, `text_offset`',
    'OpenAI\'s shape; `/completion` has llama-server\'s', /v1\/completions logprobs/, /logprobs/],
  ['values out of range, fractions where a whole number is meant, unknown names and an empty `messages` are refused',
    'llama-server cuts, rounds or leaves them out without a word; a client should learn that it asked for something else',
    /wrong value/, /^status 400/],
  ['`description: null` of a tool and empty `arguments` of a call are taken', 'clients send them; llama-server answers with 500',
    /without (a description|arguments)/, /^status 200, llama-server 500/],
  ['tools of other types than `function` are skipped', 'agents offer them to every provider', /tools of another type/, /^status/],
  ['`return_progress` says it in streams of `/v1/messages`, too, in pings', 'their clients pass over pings', /messages.*return_progress/, /prompt_progress|ping/],
  ['`--lora-init-without-apply` leaves adapters out of requests that do not ask for them', 'its help says so; llama-server applies them all the same',
    /lora-adapters/, /scale/],
  ['an empty string in `stop` does not count', 'it would end every answer before it begins', / stop$/, /finish_reason/],
  ['responses repeat the request, have `error`, `incomplete_details` and `status: "incomplete"`, and their events a `sequence_number`',
    'OpenAI\'s clients want them', /v1\/responses/, /^only here: |\.status:/],
  ['messages have `cache_creation_input_tokens`, and streams the usage of the input in their last event', 'Anthropic\'s shape',
    /v1\/messages/, /^only here: .*usage/],
  ['errors below `/v1/messages` are Anthropic\'s, those below `/api` Ollama\'s', 'their clients read nothing else',
    /v1\/messages|api\//, /(only llama-server: \.error\.(code|n_prompt_tokens|n_ctx|message|type)|only here: \.(type|error))$/],
  ['Ollama\'s routes are there', 'llama-server has some of its paths only', / \/api\//, /^status/],
  ['`/props` also has `workers`, `kv`, `speculation`, `lora` and `limits`, and no `chat_template_caps`, `media_marker`, `ui…`, `cors_proxy_enabled`',
    'what operators ask for; there are no pictures, and all routes are always there', /GET \/props/,
    /^only (here: \.(workers|kv|speculation|lora|limits|is_sleeping|default_generation_settings)|llama-server: \.(media_marker|modalities\.video|ui|ui_settings|endpoint_|chat_template_caps|cors_proxy_enabled))/],
  ['`/slots` shows no settings of requests that have ended', 'a slot is emptied when its request ends', /GET \/slots/, /./],
  ['`meta.vocab_type` is its name', 'numbers of libllama say nothing to a reader', /models/, /vocab_type/],
];

export const isDeliberate = (name, difference) =>
  deliberate.some(([, , bodies, differences]) => bodies.test(name) && differences.test(difference));
