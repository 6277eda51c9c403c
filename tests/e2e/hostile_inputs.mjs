// Bodies that were the end of a server once, or of its memory, or of both threads of its pool: recursion for every byte
// of a name, work that doubles with every bracket, fifty times their bytes. Each is [name, path, body, about]: `about`
// is what its refusal must say, absent where it must be answered.
import { user } from './client.mjs';

export const MiB = 1024 * 1024;
export const chat = '/v1/chat/completions';
export const base = { messages: user('x'), max_tokens: 1, temperature: 0 };
const under = '_'.repeat(400_000);
const nested = (levels, open, close, inner) => open.repeat(levels) + inner + close.repeat(levels);
export const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
export const object = (properties, rest = {}) => ({ type: 'object', properties, ...rest });
export const tool = (parameters, name = 't') => ({ type: 'function', function: { name, description: 'd', parameters } });
const anthropic = (parameters, name = 't') => ({ name, description: 'd', input_schema: parameters });
const responses = (parameters, name = 't') => ({ type: 'function', name, parameters });

export const schemas = {
  'a property with a long name': object({ [under]: { type: 'string' } }),
  'a long name beside additionalProperties': object({ [under]: { type: 'string' } }, { additionalProperties: true }),
  'a long $ref': object({ p: { $ref: `#/${under}` } }),
};

export const cases = [];
for (const [what, schema] of Object.entries(schemas)) {
  cases.push([`${what}, chat`, chat, { ...base, tools: [tool(schema)] }, /tools\[0\]/]);
  cases.push([`${what}, required`, chat, { ...base, tools: [tool(schema)], tool_choice: 'required' }, /tools\[0\]/]);
  cases.push([`${what}, responses`, '/v1/responses', { input: 'x', max_output_tokens: 1, tools: [responses(schema)] }, /tools\[0\]/]);
  cases.push([`${what}, anthropic`, '/v1/messages', { ...base, tools: [anthropic(schema)] }, /tools\[0\]/]);
  cases.push([`${what}, count_tokens`, '/v1/messages/count_tokens', { messages: base.messages, tools: [anthropic(schema)] }, /tools\[0\]/]);
  cases.push([`${what}, ollama`, '/api/chat', { messages: base.messages, tools: [tool(schema)], stream: false }, /tools\[0\]/]);
  cases.push([`${what}, template`, '/apply-template', { messages: base.messages, tools: [tool(schema)] }, /tools\[0\]/]);
  cases.push([`${what}, session`, '/v1/sessions', { messages: base.messages, tools: [tool(schema)] }, /tools\[0\]/]);
  cases.push([`${what}, response_format`, chat,
    { ...base, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }, /response_format/]);
  cases.push([`${what}, json_schema`, '/completion', { prompt: 'x', n_predict: 1, json_schema: schema }, /json_schema/]);
  cases.push([`${what}, format`, '/api/generate', { prompt: 'x', stream: false, format: schema }, /format/]);
  cases.push([`${what}, text.format`, '/v1/responses',
    { input: 'x', text: { format: { type: 'json_schema', name: 'x', schema } } }, /text\.format/]);
}
export const stringOf = (pattern) => object({ p: { type: 'string', pattern } });
const deepPattern = `^${nested(40, '(a?', ')?', 'b')}$`;
const patterns = object(Object.fromEntries(many(180, (i) => [`p${i}`, { type: 'string', pattern: '^(a|b)*[c-z]{1,9}$' }])));
const chain = (length) => ({ $ref: '#/$defs/d0', $defs: Object.fromEntries(many(length, (i) =>
  [`d${i}`, i + 1 < length ? { $ref: `#/$defs/d${i + 1}` } : { type: 'string' }])) });
let doubled = { type: 'string' };
for (let i = 0; i < 24; ++i) doubled = { type: ['object', 'string'], allOf: [doubled] };
cases.push(
  ['a tool with a long name', chat, { ...base, tools: [tool(object({}), under)] }, /tools\[0\]/],
  ['a tool with a long name, anthropic', '/v1/messages', { ...base, tools: [anthropic(object({}), under)] }, /tools\[0\]/],
  ['a grammar of nested groups', chat, { ...base, grammar: `root ::= ${nested(40, '("a"? ', ')', '"b"')}` }],
  ['a pattern of nested groups in a tool', chat, { ...base, tools: [tool(stringOf(deepPattern))], tool_choice: 'required' }],
  ['a pattern of nested groups', chat, { ...base, json_schema: stringOf(deepPattern) }],
  ['a pattern of many states', chat, { ...base, json_schema: stringOf('a.{200}b.{200}c') }, /json_schema/],
  ['alternatives beside alternatives', chat, { ...base, json_schema: { allOf: many(20, (i) => ({
    anyOf: [{ required: [`p${i}`] }, { properties: { [`p${i}`]: {} } }] })) } }, /json_schema has too many parts|too complex/],
  ['many patterns in a tool', chat, { ...base, tools: [tool(patterns)], tool_choice: 'required' }, /the prompt \(\d+ tokens\) exceeds/],
  ['many patterns', chat, { ...base, json_schema: patterns }],
  ['20 MB of metadata', '/v1/responses', { input: 'x', max_output_tokens: 1, metadata: { a: 'x'.repeat(20 * MiB) } }, /metadata/],
  ['20 MB of control characters as metadata', '/v1/responses',
    { input: 'x', max_output_tokens: 1, metadata: { a: '\u0001'.repeat(5 * MiB) } }, /metadata/],
  ['20 MB of a tool that is skipped', '/v1/responses',
    { input: 'x', max_output_tokens: 1, tools: [{ type: 'web_search', x: 'x'.repeat(20 * MiB) }] }, /tools/],
  ['300,000 template arguments', chat,
    { ...base, chat_template_kwargs: Object.fromEntries(many(300_000, (i) => [`k${i}`, 1])) }, /chat_template_kwargs/],
  ['a large template argument', chat, { ...base, chat_template_kwargs: { k: 'x'.repeat(MiB) } }, /chat_template_kwargs/],
  ['15 MB of biases', chat, { ...base, logit_bias: many(MiB, (i) => [i % 100, 1]) }, /values|logit_bias/],
  ['many biases', chat, { ...base, logit_bias: many(100_000, (i) => [i % 100, 1]) }, /logit_bias/],
  ['a large text with a bias', chat, { ...base, logit_bias: { ['a'.repeat(MiB)]: 1 } }, /logit_bias/],
  ['windows of a million tokens for each of many answers', '/v1/completions', { prompt: many(8, () => 'x'), n: 16, max_tokens: 1, temperature: 0,
    dry_multiplier: 1, dry_penalty_last_n: 1_000_000, repeat_last_n: 1_000_000, repeat_penalty: 1.1 }],
  ['sequence breakers for each of many answers', '/v1/completions', { prompt: many(8, () => 'x'), n: 16, max_tokens: 1, temperature: 0,
    dry_multiplier: 1, dry_sequence_breakers: many(32, (i) => String.fromCharCode(97 + (i % 26)).repeat(1 + i / 26)) }],
  ['the sampler infill over the whole vocabulary', '/completion', { prompt: 'x', n_predict: 4, samplers: ['infill'], top_k: 0 }],
  ['a field many times', '/completion', { prompt: many(8, () => 'x'), n: 16, n_predict: 1,
    response_fields: many(64, () => 'generation_settings/stop'), stop: many(64, (i) => `${i}`.padEnd(250, 's')) }],
  ['long names of fields', '/completion', { prompt: 'x', n_predict: 1, response_fields: many(64, () => `timings/${'x'.repeat(100_000)}`) }, /response_fields/],
  ['128 KiB of stop strings', '/completion', { prompt: 'x', n_predict: 1, stop: many(64, (i) => `${i}`.padEnd(2000, 's')) }, /stop/],
  ['outputs of calls that there are not', '/v1/responses', { max_output_tokens: 1, input: [
    ...many(2047, (i) => ({ type: 'function_call', call_id: `c${i}`, name: 'f', arguments: '{}' })),
    ...many(2047, (i) => ({ type: 'function_call_output', call_id: `z${i}`, output: 'x' }))] }, /context|tokens/],
  ['a chain of $ref', chat, { ...base, json_schema: chain(1500) }],
  ['a chain of $ref in a tool', chat, { ...base, tools: [tool(object({ p: chain(1001) }))] }, /tools\[0\]/],
  ['an enum of many thousands', chat, { ...base, json_schema: { enum: many(12_000, (i) => i) } }, /json_schema|grammar/],
  ['alternatives in alternatives', chat, { ...base, tools: [tool(object({ p: doubled }))] }, /tools\[0\]/],
  ['many alternatives of one range', chat, { ...base, grammar: `root ::= (${many(1300, () => '[ऀ-ॿ]').join(' | ')})+` }],
  ['thousands of equal alternatives', chat, { ...base, max_tokens: 8, grammar: `root ::= (${many(4000, (i) => `"${'ab'[i % 2]}"`).join(' | ')})*` }],
  ['ways that double', chat, { ...base, max_tokens: 200, grammar: 'root ::= s\ns ::= . s "b" | . s "c" | "z"' }],
  ['a grammar for each of many prompts', '/v1/completions',
    { prompt: many(128, () => 'x'), max_tokens: 1, grammar: `root ::= ${'"a"{1,2000} '.repeat(24)}` }, /grammar/],
  ['30,000 calls and their results', '/v1/messages', { max_tokens: 1, messages: [
    { role: 'assistant', content: many(30_000, (i) => ({ type: 'tool_use', id: `c${i}`, name: 'f', input: {} })) },
    { role: 'user', content: many(30_000, () => ({ type: 'tool_result', tool_use_id: 'z', content: 'x' })) }] }, /messages/],
  ['60,000 calls', chat, { ...base, messages: [...user('x'), { role: 'assistant', content: '', tool_calls:
    many(60_000, () => ({ type: 'function', id: 'c', function: { name: 'f', arguments: '{}' } })) }, ...user('x')] }, /messages/],
  ['a large description', chat, { ...base, tools: [tool(object({ p: { type: 'string', description: 'é'.repeat(10 * MiB) } }))] }, /tools\[0\]/],
  ['references that fan out', chat, { ...base, tool_choice: 'required', tools: [tool({ $ref: '#/$defs/d0', $defs: Object.fromEntries(
    many(40, (i) => [`d${i}`, i < 39 ? { anyOf: many(2, () => ({ $ref: `#/$defs/d${i + 1}` })) } : { type: 'string' }])) })] }, /tools|prompt/],
  ['a prompt of 900,000 short texts', '/completion', { prompt: [1, ...many(900_000, () => 'a')], n_predict: 1 }, /context|tokens/],
  ['a prompt of 900,000 empty texts', '/completion', { prompt: [1, ...many(900_000, () => '')], n_predict: 1 }, /context|tokens/],
  ['content of 900,000 empty texts', '/tokenize', { content: many(900_000, () => '') }, /context|tokens/],
  ['allOf that leads back to itself', chat, { ...base, tools: [tool({ allOf: [{ $ref: '#/$defs/a' }], $defs: {
    a: object({ x: { allOf: [{ $ref: '#/$defs/a' }] } }) } })] }, /tools/],
  ['anyOf in allOf that leads back to itself', chat, { ...base, tool_choice: 'required',
    tools: [tool({ allOf: [{ anyOf: [{ $ref: '#/$defs/a' }] }], $defs: { a: object({ x: { allOf: [{ $ref: '#/$defs/a' }] } }) } })] }, /tools/],
  ['references in allOf that lead in a circle', chat, { ...base, tools: [tool({ allOf: [{ $ref: '#/$defs/b' }],
    $defs: { b: { $ref: '#/$defs/c' }, c: { $ref: '#/$defs/b' } } })] }, /tools/],
  ['a tool that is allowed 100,000 times', chat, { ...base, tools: many(200, () => tool(object({ p: { type: 'string', description: 'd'.repeat(1000) } }))),
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: many(100_000, () => ({ type: 'function', name: 't' })) } }, /tool_choice/],
  ...[['a million brackets', '['.repeat(1_000_000)], ['a million numbers', `[${'1,'.repeat(1_000_000)}`]].map(([what, text]) =>
    [`an answer that begins with ${what} in a call`, chat, { ...base, tools: [tool(object({}))], messages: [...user('x'),
      { role: 'assistant', content: `<tool_call>\n{"name": "t", "arguments": {"a": ${text}` }] }, /messages|context|tokens/]),
  ['an answer that begins a call', chat, { ...base, max_tokens: 4, tools: [tool(object({}))], messages: [...user('x'),
    { role: 'assistant', content: '<tool_call>\n{"name": "t",' }] }],
  ['ways back that grow with the text', chat, { ...base, max_tokens: 200, ignore_eos: true, grammar: 'root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]' }],
  ['an answer of a million ends of thoughts', chat, { ...base, messages: [...user('x'),
    { role: 'assistant', content: '</think>'.repeat(1_000_000) }, ...user('y')] }, /messages|context|tokens/],
  ['a repetition that ends before it begins', chat, { ...base, grammar: 'root ::= "a"{3,1}' }, /grammar/],
  ['a length that ends before it begins', chat,
    { ...base, tools: [tool(object({ p: { type: 'string', minLength: 5, maxLength: 2 } }))], tool_choice: 'required' }, /tools/],
  ['items that end before they begin', chat,
    { ...base, tools: [tool(object({ p: { type: 'array', items: { type: 'string' }, minItems: 5, maxItems: 2 } }))], tool_choice: 'required' }, /tools/],
  ['a literal many times', chat, { ...base, grammar: `root ::= "${'a'.repeat(60_000)}"{2000}` }, /grammar/],
  ['many repetitions', chat, { ...base, grammar: `root ::= ${'"a"{1,2000} '.repeat(4000)}` }, /grammar/],
  ['objects in objects with long names', chat,
    { ...base, tools: [tool(many(24, (i) => String(i)).reduce((inner, i) => object({ [i.repeat(100_000)]: inner }), object({})))] }, /tools\[0\]/],
  ['a bad pattern in a tool', chat, { ...base, tools: [tool(object({})), tool(stringOf('^(a$'), 'bad one')], tool_choice: 'required' }, /tools.*bad one/],
  ['a bad count in a tool', chat, { ...base, tools: [tool(object({ p: { type: 'string', minLength: -1 } }), 'bad one')], tool_choice: 'required' }, /tools.*bad one/],
);
