// One answer with reasoning, content and two calls at once, in each dialect, with the clients that people use. The
// simulated engine says it (`say:` and the text in hex), in the format of a template that thinks and calls.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

import { ask, post, refused } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

// Of a raw stream: [event, data].
async function rawEvents(server, path, body) {
  const text = await (await post(server, path, { ...body, stream: true })).text();
  return text.split('\n\n').filter((event) => event.startsWith('event: ')).map((event) => {
    const [, name, data] = /^event: (\S+)\ndata: (.*)$/s.exec(event);
    return [name, JSON.parse(data)];
  });
}

describe('return_progress in streams of other dialects', async () => {
  const server = await start(test, demo);
  const long = 'Who runs over the mountains, and with what? '.repeat(100);
  const steps = (events) => events.map(([, data]) => data.prompt_progress).filter((progress) => progress);
  const check = (told) => {
    assert.ok(told.length > 2, JSON.stringify(told));
    assert.deepEqual([told[0].processed, told[0].cache], [0, 0], 'first it begins');
    assert.equal(told.at(-1).processed, told.at(-1).total);
  };

  it('responses say it with response.in_progress', async () => {
    const events = await rawEvents(server, '/v1/responses', { input: long, max_output_tokens: 4, return_progress: true, cache_prompt: false });
    assert.equal(events[0][0], 'response.created');
    check(steps(events));
    for (const [name, data] of events) if (data.prompt_progress) assert.equal(name, 'response.in_progress');
    events.forEach(([, data], i) => assert.equal(data.sequence_number, i));
    const plain = await rawEvents(server, '/v1/responses', { input: long, max_output_tokens: 4 });
    assert.deepEqual(steps(plain), []);
  });

  it('messages say it with pings', async () => {
    const body = { messages: [{ role: 'user', content: long }], max_tokens: 4, cache_prompt: false };
    const events = await rawEvents(server, '/v1/messages', { ...body, return_progress: true });
    assert.equal(events[0][0], 'message_start');
    check(steps(events));
    for (const [name, data] of events) if (data.prompt_progress) assert.equal(name, 'ping');
    assert.deepEqual(steps(await rawEvents(server, '/v1/messages', body)), []);
    const client = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const message = await client.messages.stream({ model: 'x', ...body, return_progress: true }).finalMessage();
    assert.equal(message.usage.output_tokens, 4);
  });
});

const template = `{%- if reasoning_effort is defined -%}Effort: {{ reasoning_effort }}{%- endif -%}
{%- if tools -%}<|im_start|>system
<tools>{%- for t in tools -%}{{ t | tojson }}{%- endfor -%}</tools><|im_end|>
{%- endif -%}
{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' and m.reasoning_content -%}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' -}}{%- endif -%}
{{- m.content -}}
{%- for c in m.tool_calls -%}{{- '\\n<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' -}}
{{- c.function.arguments | tojson -}}{{- '}\\n</tool_call>' -}}{%- endfor -%}
{{- '<|im_end|>\\n' -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}{%- endif -%}`;

const thought = 'I wonder: 1 < 2.';
const content = 'I look it up.';
const calls = [['weather', { city: 'Lima "Perú"' }], ['note', { text: 'one\ntwo' }]];
const asText = calls.map(([name, args]) => `\n<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`).join('');
const hex = (text) => `say:${Buffer.from(text).toString('hex')};`;
const everything = hex(`<think>\n${thought}\n</think>\n\n${content}${asText}`);
const object = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name], additionalProperties: false });
const functions = [['weather', 'Tells the weather.', object('city')], ['note', 'Writes down.', object('text')]];
const openaiTools = functions.map(([name, description, parameters]) => ({ type: 'function', function: { name, description, parameters } }));
const responseTools = functions.map(([name, description, parameters]) => (
  { type: 'function', name, description, parameters, strict: true }));
const anthropicTools = functions.map(([name, description, input_schema]) => ({ name, description, input_schema }));
const found = (list) => list.map(([name, args]) => [name, typeof args === 'string' ? JSON.parse(args) : args]);

describe('an answer with reasoning, content and two calls', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-dialects-'));
  test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  const file = path.join(folder, 'template.jinja');
  writeFileSync(file, template);
  const server = await start(test, [...sim, '--chat-template-file', file]);
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
  const ollama = new Ollama({ host: server.url });
  const messages = [{ role: 'user', content: everything }];

  it('is a chat completion, whole and streamed', async () => {
    const body = { model: 'x', messages, tools: openaiTools };
    const { choices: [{ message, finish_reason: finish }] } = await openai.chat.completions.create(body);
    assert.equal(finish, 'tool_calls');
    assert.deepEqual([message.reasoning_content.trim(), message.content.trim()], [thought, content]);
    assert.deepEqual(found(message.tool_calls.map((call) => [call.function.name, call.function.arguments])), calls);
    assert.equal(new Set(message.tool_calls.map((call) => call.id)).size, 2);
    const streamed = await openai.chat.completions.stream(body).finalChatCompletion();
    const again = streamed.choices[0].message;
    assert.deepEqual(again.content, message.content);
    assert.deepEqual(again.tool_calls.map((call) => call.function.arguments), message.tool_calls.map((call) => call.function.arguments));
  });

  it('has one call where several may not be made at once, in each dialect', async () => {
    const chat = await openai.chat.completions.create({ model: 'x', messages, tools: openaiTools, parallel_tool_calls: false });
    assert.equal(chat.choices[0].message.tool_calls.length, 1);
    const response = await openai.responses.create(
      { model: 'x', input: everything, tools: responseTools, parallel_tool_calls: false });
    assert.equal(response.output.filter((item) => item.type === 'function_call').length, 1);
    for (const [tool_choice, count] of [[{ type: 'auto', disable_parallel_tool_use: true }, 1], [{ type: 'auto' }, 2], [{ type: 'none' }, 0]]) {
      const message = await anthropic.messages.create({ model: 'x', max_tokens: 500, messages, tools: anthropicTools, tool_choice });
      assert.equal(message.content.filter((block) => block.type === 'tool_use').length, count, JSON.stringify(tool_choice));
    }
  });

  it('calls only what is allowed', async () => {
    const allowed = (mode, ...names) => ({
      type: 'allowed_tools', allowed_tools: { mode, tools: names.map((name) => ({ type: 'function', function: { name } })) },
    });
    for (const mode of ['auto', 'required']) {
      const { choices: [{ message }] } = await openai.chat.completions.create(
        { model: 'x', messages, tools: openaiTools, tool_choice: allowed(mode, 'note'), max_tokens: 200 });
      assert.ok(message.tool_calls.length > 0 && message.tool_calls.every((call) => call.function.name === 'note'), mode);
    }
    const none = await openai.chat.completions.create({ model: 'x', messages, tools: openaiTools, tool_choice: 'none' });
    assert.equal(none.choices[0].message.tool_calls, undefined);
  });

  it('knows how much thought is wished, in each dialect', async () => {
    for (const effort of ['low', 'high']) {
      const { prompt } = await ask(server, '/apply-template', { messages, reasoning_effort: effort });
      assert.ok(prompt.startsWith(`Effort: ${effort}`), prompt.slice(0, 40));
    }
    const counts = async (route, body, more) => [
      (await ask(server, route, body)).input_tokens, (await ask(server, route, { ...body, ...more })).input_tokens,
    ];
    for (const [without, withEffort] of [
      await counts('/v1/chat/completions/input_tokens', { messages }, { reasoning_effort: 'low' }),
      await counts('/v1/responses/input_tokens', { input: 'x' }, { reasoning: { effort: 'low' } }),
    ]) assert.ok(withEffort > without, `${without} ${withEffort}`);
    const [some, much] = await Promise.all([true, 'high'].map((think) => ollama.chat({ model: 'x', messages, think })));
    assert.ok(much.prompt_eval_count > some.prompt_eval_count);
    const anthropicOf = (fields) => ask(server, '/v1/messages/count_tokens', { messages, ...fields });
    const [plain, little] = await Promise.all([{}, { output_config: { effort: 'low' } }].map(anthropicOf));
    assert.ok(little.input_tokens > plain.input_tokens);
    const { prompt: silent } = await ask(server, '/apply-template', { messages, reasoning_effort: 'none' });
    assert.ok(silent.endsWith('<think>\n\n</think>\n\n'), silent.slice(-60));
  });

  it('is cut as a response after max_output_tokens, and refuses what responses here have not', async () => {
    const cut = await openai.responses.create({ model: 'x', input: hex('one two three four five six'), max_output_tokens: 3 });
    assert.deepEqual([cut.status, cut.incomplete_details.reason, cut.usage.output_tokens], ['incomplete', 'max_output_tokens', 3]);
    for (const [field, value] of [['background', 'yes'], ['conversation', 'c'], ['prompt', { id: 'p' }], ['truncation', 'always']]) {
      const error = await refused(await post(server, '/v1/responses', { model: 'x', input: 'x', [field]: value }), 400);
      assert.equal(error.param, field);
    }
  });

  it('is left as the model writes it with reasoning_format none', async () => {
    const { choices: [{ message }] } = await openai.chat.completions.create(
      { model: 'x', messages: [{ role: 'user', content: hex(`<think>\n${thought}\n</think>\n\n${content}`) }], reasoning_format: 'none' });
    assert.ok(message.content.includes('<think>') && message.content.includes(thought));
    assert.equal(message.reasoning_content, undefined);
  });

  it('is a response of OpenAI\'s, with an event for each step of each item', async () => {
    const body = { model: 'x', input: everything, tools: responseTools };
    const made = await openai.responses.create(body);
    assert.deepEqual(made.output.map((item) => item.type), ['reasoning', 'message', 'function_call', 'function_call']);
    assert.equal(made.output[0].content[0].text.trim(), thought);
    assert.equal(made.output_text.trim(), content);
    assert.deepEqual(found(made.output.slice(2).map((call) => [call.name, call.arguments])), calls);
    assert.notEqual(made.output[2].call_id, made.output[3].call_id);
    const types = [];
    const texts = {};
    let last;
    for await (const event of openai.responses.stream(body)) {
      if (types.at(-1) !== event.type) types.push(event.type);
      if (event.type.endsWith('.delta')) texts[event.output_index] = (texts[event.output_index] ?? '') + event.delta;
      last = event;
    }
    const item = (...middle) => ['output_item.added', ...middle, 'output_item.done'];
    const part = (name) => item('content_part.added', `${name}.delta`, `${name}.done`, 'content_part.done');
    const call = item('function_call_arguments.delta', 'function_call_arguments.done');
    assert.deepEqual(types, ['created', 'in_progress', ...part('reasoning_text'), ...part('output_text'), ...call, ...call, 'completed']
      .map((type) => `response.${type}`));
    assert.deepEqual(last.response.output.map((one) => one.content?.[0].text ?? one.arguments), Object.values(texts));
    assert.deepEqual(Object.values(texts), made.output.map((one) => one.content?.[0].text ?? one.arguments));
    const next = await openai.responses.create({
      model: 'x', tools: responseTools, previous_response_id: made.id, input: [
        ...made.output.slice(2).map((one) => ({ type: 'function_call_output', call_id: one.call_id, output: 'done' })),
        { role: 'user', content: hex('Thanks.') },
      ],
    });
    assert.equal(next.output_text, 'Thanks.');
  });

  it('keeps to the format of Anthropic\'s output_config', async () => {
    const body = { model: 'x', max_tokens: 200, messages: [{ role: 'user', content: 'x' }], temperature: 1 };
    const schema = { type: 'object', properties: { city: { enum: ['Lima', 'Cusco'] } }, required: ['city'], additionalProperties: false };
    const format = { type: 'json_schema', schema };
    const { content: [{ text }] } = await anthropic.messages.create({ ...body, output_config: { format } });
    assert.ok(['Lima', 'Cusco'].includes(JSON.parse(text).city), text);
    for (const [wrong, field] of [[{ type: 'xml' }, /format\.type/], [{ type: 'json_schema' }, /format\.schema/]]) {
      const response = await post(server, '/v1/messages', { ...body, output_config: { format: wrong } });
      assert.equal(response.status, 400);
      assert.match((await response.json()).error.message, field);
    }
  });

  it('is a message of Anthropic\'s, with a block for each part', async () => {
    const body = { model: 'x', max_tokens: 500, messages, tools: anthropicTools, thinking: { type: 'enabled', budget_tokens: 1024 } };
    const check = (message) => {
      assert.equal(message.stop_reason, 'tool_use');
      assert.deepEqual(message.content.map((block) => block.type), ['thinking', 'text', 'tool_use', 'tool_use']);
      assert.deepEqual([message.content[0].thinking.trim(), message.content[1].text.trim()], [thought, content]);
      assert.deepEqual(message.content.slice(2).map((call) => [call.name, call.input]), calls);
    };
    const whole = await anthropic.messages.create(body);
    check(whole);
    const kinds = [];
    const streamed = await anthropic.messages.stream(body)
      .on('streamEvent', (event) => { if (event.delta?.type) kinds.push(event.delta.type); }).finalMessage();
    check(streamed);
    for (const kind of ['thinking_delta', 'text_delta', 'input_json_delta']) assert.ok(kinds.includes(kind), `${kinds}`);
    // What was said can be said again, with results.
    const results = whole.content.slice(2).map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: 'done' }));
    const next = await anthropic.messages.create({
      ...body, messages: [...messages, { role: 'assistant', content: whole.content },
        { role: 'user', content: [...results, { type: 'text', text: hex('Thanks.') }] }],
    });
    assert.equal(next.content.at(-1).text, 'Thanks.');
  });

  it('is an answer of Ollama\'s: thinking, content and calls', async () => {
    const body = { model: 'sim', messages, tools: openaiTools, think: true };
    const check = (list) => {
      const join = (name) => list.map((part) => part.message[name] ?? '').join('').trim();
      assert.deepEqual([join('thinking'), join('content')], [thought, content]);
      const said = list.flatMap((part) => part.message.tool_calls ?? []);
      assert.deepEqual(said.map((call) => [call.function.name, call.function.arguments]), calls);
      assert.equal(list.at(-1).done, true);
    };
    check([await ollama.chat(body)]);
    const parts = [];
    for await (const part of await ollama.chat({ ...body, stream: true })) parts.push(part);
    assert.ok(parts.length > 5);
    check(parts);
    const alone = await ollama.generate({ model: 'sim', prompt: hex(`<think>\n${thought}\n</think>\n\n${content}`), think: true });
    assert.deepEqual([alone.thinking.trim(), alone.response.trim()], [thought, content]);
  });
});
