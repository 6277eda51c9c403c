// One body for each route and field that clients of llama-server, OpenAI, Anthropic and Ollama send.
// tests/compare/compare.mjs sends them to this server and to llama-server and prints what differs; bodies.test.mjs sends
// them to this server alone. `status` is what this server answers.
const user = (content) => [{ role: 'user', content }];
const weather = {
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const tool = { type: 'function', function: weather };
const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false };
const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Lima"}' } };

// [name, fields] beside the base of a route; a third member is the status where it is not 200.
function of(method, path, base, cases) {
  return cases.map(([name, fields, status = 200]) => {
    const body = fields === null ? undefined : { ...base, ...fields };
    return { name: `${method} ${path} ${name}`, method, path, body, status };
  });
}

const get = (path, status) => of('GET', path, {}, [['', null, status]]);
const each = (fields) => Object.entries(fields).map(([field, value]) => [field, { [field]: value }]);

// The fields of a generation that llama-server's README has, and a few that only its source has, with other values than
// the default ones.
const documented = [
  ...each({
    dynatemp_range: 0.1, dynatemp_exponent: 1.5, top_k: 7, top_p: 0.5, min_p: 0.2, top_n_sigma: 1, typical_p: 0.5, xtc_probability: 0.3,
    xtc_threshold: 0.2, repeat_penalty: 1.5, repeat_last_n: 8, presence_penalty: 1, frequency_penalty: 1, dry_multiplier: 1, dry_base: 2.5,
    dry_allowed_length: 1, dry_penalty_last_n: 12, dry_sequence_breakers: ['x'], mirostat: 1, mirostat_tau: 3, mirostat_eta: 0.3,
    adaptive_target: 0.4, adaptive_decay: 0.5, min_keep: 3, n_predict: 2, max_tokens: 2, max_completion_tokens: 2, n_indent: 2, n_keep: -1, n_discard: 4,
    n_cmpl: 2, n: 2, n_cache_reuse: 16, stop: ['a'], ignore_eos: true, t_max_predict_ms: 1000, id_slot: 1, cache_prompt: false, return_tokens: true,
    samplers: 'kt', timings_per_token: true, sse_ping_interval: 5, post_sampling_probs: true, seed: 7, lora: [], backend_sampling: true,
    verbose: true, reasoning_budget_tokens: 4, reasoning_control: true, 'speculative.n_max': 4,
  }),
  ['n_predict 0', { n_predict: 0 }],
  ['names of one limit', { max_tokens: 2, max_completion_tokens: 3, n_predict: 4 }],
  ['stop of one text', { stop: 'a' }],
  ['logit_bias of an object', { logit_bias: { 300: -1 } }],
  ['logit_bias of a text', { logit_bias: [['Once', -0.5]] }],
  ['logit_bias that bans', { logit_bias: [[268, false]] }],
  ['json_schema of any object', { json_schema: {} }],
  ['json_schema of a list', { json_schema: { items: { type: 'string' }, minItems: 2, maxItems: 3 } }],
  ['grammar of one word', { grammar: 'root ::= "abc"' }],
  ['no samplers', { samplers: [] }],
  ['samplers twice', { samplers: ['top_k', 'top_k', 'temperature'] }, 400],
  ['wrong value: temperature', { temperature: -1 }, 400],
  ['wrong value: dry_base', { dry_base: 0.5 }, 400],
  ['wrong value: lora', { lora: [{ id: 0, scale: 1 }] }, 400],
  ['all of the context', { n_predict: -1, grammar: 'root ::= "a"' }],
  ['penalties over the whole text', { repeat_last_n: -1, dry_penalty_last_n: -1 }],
];

const chat = of('POST', '/v1/chat/completions', { messages: user('Hi'), max_tokens: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['stream with usage', { stream: true, stream_options: { include_usage: true } }],
  ['parts of text', { messages: user([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]) }],
  ['content null', { messages: [...user('Hi'), { role: 'assistant', content: null, tool_calls: [call] }, ...user('x')] }],
  ['content null of a user', { messages: [{ role: 'user', content: null }] }],
  ['seed below zero', { seed: -5 }],
  ['fields that are null', { stop: null, tools: null, response_format: null, seed: null, n: null, stream: null }],
  ['tool result', { messages: [...user('Hi'), { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: 'cold' }] }],
  ['reasoning of earlier turns', { messages: [...user('Hi'), { role: 'assistant', content: 'b', reasoning_content: 'a' },
    ...user('x')] }],
  ['role developer', { messages: [{ role: 'developer', content: 'Be brief.' }, ...user('Hi')] }],
  ['tools', { tools: [tool] }],
  ['tools and response_format', { tools: [tool], response_format: { type: 'json_schema', json_schema: { schema } } }],
  ['tools of another type', { tools: [tool, { type: 'web_search' }] }],
  ['functions', { functions: [weather], function_call: 'auto' }],
  ['tool_choice required', { tools: [tool], tool_choice: 'required' }],
  ['tool with a bad schema', { tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'nosuch' } } }] }, 400],
  ['response_format', { response_format: { type: 'json_schema', json_schema: { schema } } }],
  ['seed of 64 bits', { seed: 1234567890123456789 }],
  ['priority', { priority: 3 }],
  ['empty text in stop', { stop: ['x', ''] }],
  ['logprobs', { logprobs: true, top_logprobs: 2 }],
  ['return_progress', { return_progress: true, stream: true }],
  ['timings_per_token in a stream', { timings_per_token: true, stream: true }],
  ['chat_template_kwargs', { chat_template_kwargs: { enable_thinking: false } }],
  ['no messages', { messages: undefined }, 400],
  ['temperature a text', { temperature: 'hot' }, 400],
  ['prompt too long', { messages: user('word '.repeat(9000)) }, 400],
  ['wrong value: top_p', { top_p: 2 }, 400],
  ['wrong value: top_k', { top_k: 40.5 }, 400],
  ['wrong value: max_tokens', { max_tokens: 3.7 }, 400],
  ['wrong value: seed', { seed: 1.5 }, 400],
  ['wrong value: mirostat', { mirostat: 3 }, 400],
  ['wrong value: samplers', { samplers: ['nosuch'] }, 400],
  ['wrong value: logit_bias', { logit_bias: [[5000000, 1]] }, 400],
  ['wrong value: id_slot', { id_slot: 9 }, 400],
  ['wrong value: reasoning_effort', { reasoning_effort: 'weird' }, 400],
  ['wrong value: chat_template_kwargs', { chat_template_kwargs: 'x' }, 400],
  ['wrong value: messages', { messages: [] }, 400],
  ['tool without a description', { tools: [{ type: 'function', function: { name: 'f', description: null } }] }],
  ...documented,
  ['response_format json_object', { response_format: { type: 'json_object' } }],
  ['response_format json_object with a schema', { response_format: { type: 'json_object', schema: { type: 'string', maxLength: 3 } } }],
  ['response_format with a schema beside its type', { response_format: { type: 'json_schema', schema } }],
  ['response_format text', { response_format: { type: 'text' } }],
  ['response_format of another type', { response_format: { type: 'xml' } }, 400],
  ['reasoning_effort', { reasoning_effort: 'none' }],
  ...['none', 'auto', 'deepseek', 'deepseek-legacy'].map((name) => [`reasoning_format ${name}`, { reasoning_format: name }]),
  ['parse_tool_calls', { parse_tool_calls: false }],
  ['parallel_tool_calls', { tools: [tool], parallel_tool_calls: true }],
  ['tool_choice none', { tools: [tool], tool_choice: 'none' }],
  ['tool_choice of a function', { tools: [tool], tool_choice: { type: 'function', function: { name: 'weather' } }, max_tokens: 40 }],
  ['tool without parameters', { tools: [{ type: 'function', function: { name: 'f', description: 'Does it.' } }] }],
  ['tools and a grammar', { tools: [tool], grammar: 'root ::= "a"' }],
  ['a prefill', { messages: [...user('Hi'), { role: 'assistant', content: 'Well' }] }],
  ...[true, 'content', 'reasoning_content'].map((part) => [`continue_final_message ${part}`, { add_generation_prompt: false, continue_final_message: part,
    messages: [...user('Hi'), { role: 'assistant', content: 'Well', reasoning_content: 'Hm' }] }]),
  ['add_generation_prompt', { add_generation_prompt: false }],
  ['two answers at the end', { messages: [...user('Hi'), { role: 'assistant', content: 'a' }, { role: 'assistant', content: 'b' }] }],
  ['logprobs with tools in a stream', { tools: [tool], logprobs: true, stream: true }],
  ['logprobs in a stream', { logprobs: true, top_logprobs: 1, stream: true }],
  ['top_logprobs alone', { top_logprobs: 2 }, 400],
  ['n in a stream', { n: 2, stream: true }],
  ['an image', { messages: user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,aaaa' } }]) }, 400],
  ['a part of another type', { messages: user([{ type: 'nosuch' }]) }, 400],
  ['wrong value: echo', { echo: true }, 400],
  ['wrong value: suffix', { suffix: 'x' }, 400],
  ['call without arguments', { messages: [...user('Hi'), { role: 'assistant', content: null,
    tool_calls: [{ ...call, function: { name: 'weather', arguments: '' } }] }, { role: 'tool', content: 'x', tool_call_id: 'call_1' }] }],
  ['call that was cut', { messages: [...user('Hi'), { role: 'assistant', content: null,
    tool_calls: [{ ...call, function: { name: 'weather', arguments: '{"city":"L' } }] }, { role: 'tool', content: 'no JSON', tool_call_id: 'call_1' }] }],
  ['earlier refusal', { messages: [...user('Hi'), { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, ...user('x')] }],
]);

const completions = of('POST', '/v1/completions', { prompt: 'Once', max_tokens: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['prompts', { prompt: ['a', 'b'] }],
  ['prompt of ids', { prompt: [300, 301] }],
  ['prompt of ids and texts', { prompt: [300, 'b', 301] }],
  ['prompt_string', { prompt: { prompt_string: 'Once' } }],
  ['echo', { echo: true }],
  ['logprobs', { logprobs: 1 }],
  ['logprobs in a stream', { logprobs: 1, stream: true }],
  ['prompts of several answers', { prompt: ['a', 'b'], n: 2 }],
  ['best_of', { best_of: 3 }],
  ['prompt without a token', { prompt: '' }, 400],
  ...documented,
]);

const native = of('POST', '/completion', { prompt: 'Once', n_predict: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['prompt of ids and texts', { prompt: [300, 'b', 301] }],
  ['prompts in all forms', { prompt: ['a', [300, 'b'], { prompt_string: 'c' }] }],
  ['response_fields', { response_fields: ['content', 'timings/prompt_n', 'generation_settings/top_k', 'nosuch/one'] }],
  ['n_probs', { n_probs: 2 }],
  ['return_cache', { return_cache: true }],
  ['deterministic', { deterministic: true }],
  ['names of samplers', { samplers: ['top_k', 'temperature'] }],
  ['logit_bias', { logit_bias: [[300, -1], ['x', false]] }],
  ['grammar', { grammar: 'root ::= "a"' }],
  ['bad grammar', { grammar: 'root ::= (' }, 400],
  ['no prompt', { prompt: undefined }, 400],
  ['prompts in a stream', { prompt: ['a', 'b'], stream: true }],
  ['n_probs in a stream', { n_probs: 2, stream: true }],
  ['n_probs after the samplers', { n_probs: 2, post_sampling_probs: true, temperature: 0.5 }],
  ['prompt without a token', { prompt: '' }, 400],
  ['multimodal_data', { prompt: { prompt_string: 'x', multimodal_data: ['aa'] } }, 400],
  ['json_schema and grammar', { json_schema: schema, grammar: 'root ::= "a"' }, 400],
  ...documented,
]);

const texts = [
  ...of('POST', '/tokenize', { content: 'Once' }, [
    ['plain', {}], ['pieces', { with_pieces: true }], ['ids and texts', { content: ['a', 300, 'b'] }], ['bytes', { content: 'á', with_pieces: true }],
    ['add_special', { add_special: true }], ['parse_special', { content: '<|im_end|>', parse_special: false }], ['no content', { content: undefined }, 400],
  ]),
  ...of('POST', '/detokenize', { tokens: [300, 301] }, [['plain', {}], ['none', { tokens: [] }], ['no tokens', { tokens: undefined }, 400]]),
  ...of('POST', '/v1/chat/completions/input_tokens', { messages: user('Hi') }, [['plain', {}], ['tools', { tools: [tool] }]]),
  ...of('POST', '/chat/completions/input_tokens', { messages: user('Hi') }, [['plain', {}]]),
  ...of('POST', '/v1/responses/input_tokens', { input: 'Hi' }, [['plain', {}]]),
  ...of('POST', '/responses/input_tokens', { input: 'Hi' }, [['plain', {}]]),
  ...of('POST', '/apply-template', { messages: user('Hi') }, [
    ['plain', {}], ['parts of text', { messages: user([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]) }],
  ]),
];

const responses = of('POST', '/v1/responses', { input: 'Hi', max_output_tokens: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['instructions', { instructions: 'Be brief.' }],
  ['items', { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }] }],
  ['tools', { tools: [{ type: 'function', ...weather }] }],
  ['tools of other types', { tools: [{ type: 'function', ...weather, strict: true }, { type: 'web_search' },
    { type: 'custom', name: 'patch' }, { type: 'local_shell' }] }],
  ['truncation', { truncation: 'auto' }],
  ['text.format', { text: { format: { type: 'json_schema', name: 'a', schema } } }],
  ['text.format json_object', { text: { format: { type: 'json_object' } } }],
  ['reasoning', { reasoning: { effort: 'low', summary: 'auto' } }],
  ['tool_choice required', { tools: [{ type: 'function', ...weather }], tool_choice: 'required', max_output_tokens: 40 }],
  ['developer', { input: [{ role: 'developer', content: 'Be brief.' }, { role: 'user', content: 'Hi' }] }],
  ['call and result', { input: [{ role: 'user', content: 'Hi' }, { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{"city":"Lima"}' },
    { type: 'function_call_output', call_id: 'c', output: 'cold' }] }],
  ['result in parts', { input: [{ role: 'user', content: 'Hi' }, { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'cold' }] }] }],
  ['earlier answer', { input: [{ role: 'user', content: 'Hi' }, { type: 'reasoning', id: 'r', summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }] },
    { type: 'message', role: 'assistant', id: 'm', status: 'completed', content: [{ type: 'output_text', text: 'a', annotations: [] }] },
    { role: 'user', content: 'x' }] }],
  ['earlier answer as a text', { input: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'a' }, { role: 'user', content: 'x' }] }],
  ['earlier refusal', { input: [{ role: 'user', content: 'Hi' }, { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    { role: 'user', content: 'x' }] }],
  ['call that was cut', { input: [{ role: 'user', content: 'Hi' }, { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{"city":"L' },
    { type: 'function_call_output', call_id: 'c', output: 'no JSON' }] }],
  ['previous_response_id', { previous_response_id: 'resp_unknown' }, 400],
  ['item_reference without an id', { input: [{ role: 'user', content: 'Hi' }, { type: 'item_reference', id: 3 }] }, 400],
  ['item_reference', { input: [{ role: 'user', content: 'Hi' }, { type: 'item_reference', id: 'msg_unknown' }] }, 404],
  ['prompt too long', { input: 'word '.repeat(9000) }, 400],
  ['a file', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'x' }] }] }, 400],
  ['wrong value: input', { input: [] }, 400],
  ['no input', { input: undefined }, 400],
]);

const anthropic = of('POST', '/v1/messages', { messages: user('Hi'), max_tokens: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['system', { system: [{ type: 'text', text: 'Be brief.' }] }],
  ['tools', { tools: [{ name: 'weather', input_schema: weather.parameters }] }],
  ['tools of the provider', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ['choice of a tool of the provider', { tools: [{ type: 'web_search_20250305', name: 'web_search' }], tool_choice: { type: 'tool', name: 'web_search' } }],
  ['output_config.format', { output_config: { format: { type: 'json_schema', schema } } }],
  ['output_format', { output_format: { type: 'json_schema', schema } }],
  ['output_format beside output_config.format', { output_format: { type: 'json_schema', schema }, output_config: { format: { type: 'json_schema', schema } } }, 400],
  ['thinking', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
  ['stop_sequences', { stop_sequences: ['a', 'e', 'o'] }],
  ['top_p and top_k', { top_p: 0.5, top_k: 3 }],
  ['metadata', { metadata: { user_id: 'ann' } }],
  ['system as a text', { system: 'Be brief.' }],
  ['no max_tokens', { max_tokens: undefined, stop_sequences: ['a', 'e', 'o'] }],
  ['no answer', { max_tokens: 0 }],
  ['parts', { messages: user([{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'b' }]) }],
  ['tool_choice', { tools: [{ name: 'weather', input_schema: weather.parameters }], tool_choice: { type: 'auto' } }],
  ['tool_choice any', { tools: [{ name: 'weather', input_schema: weather.parameters }], tool_choice: { type: 'any' }, max_tokens: 40 }],
  ['call and result', { messages: [...user('Hi'), { role: 'assistant', content: [{ type: 'text', text: 'I look.' },
    { type: 'tool_use', id: 't', name: 'weather', input: { city: 'Lima' } }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'cold' }] }] }] }],
  ['earlier thinking', { messages: [...user('Hi'), { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm', signature: 's' }, { type: 'text', text: 'a' }] },
    ...user('x')] }],
  ['an image', { messages: user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aaaa' } }]) }, 400],
  ['a document', { messages: user([{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }]) }, 400],
  ['no messages', { messages: undefined }, 400],
  ['prompt too long', { messages: user('word '.repeat(9000)) }, 400],
]).concat(of('POST', '/v1/messages/count_tokens', { messages: user('Hi') }, [['plain', {}]]));

const ollama = [
  ...get('/api/tags'), ...get('/api/ps'), ...get('/api/version'), ...get('/api/nosuch', 404),
  ...of('POST', '/api/show', { model: 'any' }, [['plain', {}]]),
  ...of('POST', '/api/chat', { messages: user('Hi'), options: { num_predict: 3 }, stream: false }, [
    ['plain', {}], ['stream', { stream: true }], ['logprobs', { logprobs: true, top_logprobs: 2 }],
  ]),
  ...of('POST', '/api/generate', { prompt: 'Hi', options: { num_predict: 3 }, stream: false }, [
    ['plain', {}], ['context', { context: [300, 301] }], ['logprobs', { logprobs: true }],
  ]),
];

const properties = [
  ...get('/health'), ...get('/props'), ...get('/slots'), ...get('/v1/models'), ...get('/models'), ...get('/nosuch', 404),
  ...get('/lora-adapters'), ...get('/v1/models/nosuch', 404), ...get('/v1/health'), ...get('/metrics'), ...get('/tools', 404), ...get('/cors-proxy', 404),
  ...get('/completion', 405), ...get('/v1/stream?conv_id=x', 404), ...of('DELETE', '/v1/stream?conv_id=x', {}, [['', {}, 404]]),
  ...of('POST', '/v1/streams/lookup', { conversation_ids: ['x'] }, [['plain', {}]]),
  ...of('POST', '/v1/chat/completions/control', { id: 'x', action: 'reasoning_end' }, [['plain', {}]]),
  ...of('POST', '/props', {}, [['', {}, 501]]), ...of('POST', '/models/load', { model: 'x' }, [['', {}, 501]]),
  ...of('POST', '/slots/0?action=nosuch', {}, [['', {}, 400]]), ...of('POST', '/infill', { input_prefix: 'a', input_suffix: 'b' }, [['', {}, 400]]),
  ...of('POST', '/rerank', { query: 'a', documents: ['b'] }, [['', {}, 400]]), ...of('POST', '/embedding', { content: 'a' }, [['', {}]]),
  ...of('POST', '/v1/embeddings', { input: ['a', [300, 301]], encoding_format: 'float' }, [['', {}]]), ...of('POST', '/v1/audio/transcriptions', {}, [['', {}, 400]]),
];

export const bodies = [
  ...chat, ...completions, ...native, ...texts, ...responses, ...anthropic, ...ollama, ...properties,
];

// The answer as JSON, or the events of a stream as an array of it.
export function parsed(text) {
  const events = text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
  if (events.length > 0) return events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event));
  const lines = text.trim().split('\n');
  try {
    return lines.length > 1 && lines[0].endsWith('}') ? lines.map((line) => JSON.parse(line)) : JSON.parse(text);
  } catch {
    return text;
  }
}
