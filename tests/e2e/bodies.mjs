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
  ['stop', { stop: ['x', ''] }],
  ['logprobs', { logprobs: true, top_logprobs: 2 }],
  ['n', { n: 2 }],
  ['verbose', { verbose: true }],
  ['return_progress', { return_progress: true, stream: true }],
  ['timings_per_token', { timings_per_token: true, stream: true }],
  ['chat_template_kwargs', { chat_template_kwargs: { enable_thinking: false } }],
  ['no messages', { messages: undefined }, 400],
  ['temperature a text', { temperature: 'hot' }, 400],
  ['prompt too long', { messages: user('word '.repeat(9000)) }, 400],
  ['wrong value: temperature', { temperature: -1 }, 400],
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
  ['call without arguments', { messages: [...user('Hi'), { role: 'assistant', content: null,
    tool_calls: [{ ...call, function: { name: 'weather', arguments: '' } }] }, { role: 'tool', content: 'x', tool_call_id: 'call_1' }] }],
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
]);

const native = of('POST', '/completion', { prompt: 'Once', n_predict: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['prompt of ids and texts', { prompt: [300, 'b', 301] }],
  ['prompts in all forms', { prompt: ['a', [300, 'b'], { prompt_string: 'c' }] }],
  ['response_fields', { response_fields: ['content', 'timings/prompt_n', 'generation_settings/top_k', 'nosuch/one'] }],
  ['return_tokens', { return_tokens: true }],
  ['n_probs', { n_probs: 2 }],
  ['id_slot', { id_slot: 0 }],
  ['n_keep', { n_keep: 2 }],
  ['cache_prompt', { cache_prompt: false }],
  ['return_cache', { return_cache: true }],
  ['deterministic', { deterministic: true }],
  ['samplers', { samplers: ['top_k', 'temperature'] }],
  ['logit_bias', { logit_bias: [[300, -1], ['x', false]] }],
  ['grammar', { grammar: 'root ::= "a"' }],
  ['bad grammar', { grammar: 'root ::= (' }, 400],
  ['no prompt', { prompt: undefined }, 400],
]);

const texts = [
  ...of('POST', '/tokenize', { content: 'Once' }, [
    ['plain', {}], ['pieces', { with_pieces: true }], ['ids and texts', { content: ['a', 300, 'b'] }],
  ]),
  ...of('POST', '/detokenize', { tokens: [300, 301] }, [['plain', {}]]),
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
  ['no input', { input: undefined }, 400],
]);

const anthropic = of('POST', '/v1/messages', { messages: user('Hi'), max_tokens: 3, temperature: 0 }, [
  ['plain', {}],
  ['stream', { stream: true }],
  ['system', { system: [{ type: 'text', text: 'Be brief.' }] }],
  ['tools', { tools: [{ name: 'weather', input_schema: weather.parameters }] }],
  ['tools of the provider', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ['output_config.format', { output_config: { format: { type: 'json_schema', schema } } }],
  ['thinking', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
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
  ...get('/lora-adapters'), ...get('/v1/models/nosuch', 404),
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
