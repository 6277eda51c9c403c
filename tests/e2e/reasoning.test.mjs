// Reasoning that is limited, and chances told of answers with reasoning and calls. The demo model does not think by
// itself; a template of ours begins for it.
import assert from 'node:assert/strict';
import * as test from 'node:test';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import Anthropic from '@anthropic-ai/sdk';

import { answer, ask, post, refused, streamChat, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

const template = `{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' and m.reasoning_content -%}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' -}}{%- endif -%}
{{- m.content + '<|im_end|>\\n' -}}{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}{%- endif -%}`;

async function startThinking(flags = []) {
  const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-reasoning-'));
  const file = path.join(folder, 'thinking.jinja');
  writeFileSync(file, template);
  return { server: await start(test, [...demo, '--chat-template-file', file, ...flags]), done: () => rmSync(folder, { recursive: true, maxRetries: 20 }) };
}

describe('reasoning', async () => {
  const { server, done } = await startThinking();
  test.after(done);
  const question = 'What is Chasqui?';
  const think = (fields) => answer(server, question, { max_tokens: 60, ignore_eos: true, ...fields });
  const tokensOf = async (content) => (await ask(server, '/tokenize', { content })).tokens.length;

  it('goes on as long as it likes without a budget', async () => {
    for (const fields of [{}, { reasoning_budget: -1 }]) {
      const { choices } = await think(fields);
      assert.ok(choices[0].message.reasoning_content.length > 50);
      assert.equal(choices[0].message.content, '');
    }
  });

  it('is counted apart, by the token', async () => {
    for (const budget of [5, 20]) {
      const { usage } = await think({ reasoning_budget: budget });
      const { reasoning_tokens: counted } = usage.completion_tokens_details;
      // Its end mark may be told as several tokens.
      assert.ok(counted >= budget && counted <= budget + 8, `${counted}`);
      assert.ok(counted < usage.completion_tokens);
    }
    const none = await think({ enable_thinking: false });
    assert.equal(none.usage.completion_tokens_details.reasoning_tokens, 0);
    const { usage } = await ask(server, '/v1/responses', { input: question, max_output_tokens: 30, ignore_eos: true });
    assert.ok(usage.output_tokens_details.reasoning_tokens > 20);
  });

  it('ends after its budget, and the answer follows', async () => {
    const whole = (await think({})).choices[0].message.reasoning_content;
    for (const name of ['reasoning_budget', 'reasoning_budget_tokens', 'thinking_budget_tokens']) {
      const { message } = (await think({ [name]: 5 })).choices[0];
      assert.ok(whole.startsWith(message.reasoning_content.trimEnd()), message.reasoning_content);
      assert.ok((await tokensOf(message.reasoning_content)) <= 6, message.reasoning_content);
      assert.ok(message.content.length > 20);
    }
  });

  it('stays reasoning where the answer ends in its end mark', async () => {
    const { choices: [{ message: whole }] } = await think({ reasoning_budget: 3, max_tokens: 16 });
    assert.ok(whole.content.length > 0, 'the mark is over');
    for (let tokens = 1; tokens < 12; ++tokens) {
      const { choices: [{ message }] } = await think({ reasoning_budget: 3, max_tokens: tokens });
      assert.ok(whole.content.startsWith(message.content), message.content);
      const stream = await streamChat(server, question, { ignore_eos: true, reasoning_budget: 3, max_tokens: tokens });
      await stream.collect();
      const told = (name) => stream.chunks.map((chunk) => chunk.choices[0]?.delta?.[name] ?? '').join('');
      assert.deepEqual([told('content'), told('reasoning_content')], [message.content, message.reasoning_content]);
    }
  });

  it('is gone on with, or what follows it is, as continue_final_message says', async () => {
    const begun = (part) => ask(server, '/apply-template', { continue_final_message: part,
      messages: [...user(question), { role: 'assistant', reasoning_content: 'Hm', content: 'It is' }] });
    assert.match((await begun('reasoning_content')).prompt, /<think>\nHm$/);
    for (const part of [true, 'content']) assert.match((await begun(part)).prompt, /Hm\n<\/think>\n\nIt is$/);
    const body = { messages: [...user(question), { role: 'assistant', content: 'It' }], continue_final_message: 'answer' };
    assert.equal((await refused(await post(server, '/v1/chat/completions', body), 400)).param, 'continue_final_message');
  });

  it('ends in a stream in the same place', async () => {
    const { message } = (await think({ reasoning_budget: 7 })).choices[0];
    const stream = await streamChat(server, question, { max_tokens: 60, ignore_eos: true, reasoning_budget: 7 });
    await stream.collect();
    const joined = (name) => stream.chunks.map((chunk) => chunk.choices[0]?.delta?.[name] ?? '').join('');
    assert.equal(joined('reasoning_content'), message.reasoning_content);
    assert.equal(joined('content'), message.content);
  });

  it('says its message before the end', async () => {
    const { message } = (await think({ reasoning_budget: 3, reasoning_budget_message: ' ... enough.' })).choices[0];
    assert.match(message.reasoning_content, /enough\.$/);
    assert.ok(message.content.length > 20);
  });

  it('is none with a budget of 0, with enable_thinking false and with an effort of none', async () => {
    for (const fields of [{ reasoning_budget: 0 }, { enable_thinking: false }, { reasoning_effort: 'none' },
      { chat_template_kwargs: { enable_thinking: false } }]) {
      const { message } = (await think(fields)).choices[0];
      assert.equal(message.reasoning_content, undefined, JSON.stringify(fields));
      assert.ok(message.content.length > 20);
    }
  });

  it('is limited for Anthropic\'s clients, too', async () => {
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const body = { model: 'x', max_tokens: 60, temperature: 0, messages: user(question) };
    const made = await anthropic.messages.create({ ...body, thinking: { type: 'enabled', budget_tokens: 6 }, ignore_eos: true });
    assert.deepEqual(made.content.map((block) => block.type), ['thinking', 'text']);
    assert.ok((await tokensOf(made.content[0].thinking)) <= 7);
  });

  it('is limited in responses and for Ollama\'s clients', async () => {
    const limit = { reasoning_budget: 6, ignore_eos: true };
    const { output, usage } = await ask(server, '/v1/responses', { input: question, max_output_tokens: 60, temperature: 0, ...limit });
    assert.ok(usage.output_tokens_details.reasoning_tokens <= 14, `${usage.output_tokens_details.reasoning_tokens}`);
    assert.ok(output.at(-1).content[0].text.length > 0);
    const options = { num_predict: 60, temperature: 0 };  // what is drawn may have bytes that are more tokens as text
    const { message } = await ask(server, '/api/chat', { messages: user(question), think: true, stream: false, options, ...limit });
    assert.ok((await tokensOf(message.thinking)) <= 7);
    assert.ok(message.content.length > 0);
  });

  it('that is wrongly limited is a 400', async () => {
    for (const budget of [-2, 1e12, 'much', 0.5]) {
      const error = await refused(await post(server, '/v1/chat/completions', { messages: user('x'), reasoning_budget: budget }), 400);
      assert.equal(error.param, 'reasoning_budget');
    }
    const long = { messages: user('x'), reasoning_budget: 1, reasoning_budget_message: 'x'.repeat(5000) };
    const error = await refused(await post(server, '/v1/chat/completions', long), 400);
    assert.equal(error.param, 'reasoning_budget_message');
  });

  it('has logprobs of all its tokens, whole and streamed', async () => {
    const fields = { reasoning_budget: 5, logprobs: true, top_logprobs: 2, max_tokens: 20 };
    const { choices, usage } = await think(fields);
    const told = choices[0].logprobs.content;
    assert.equal(told.length, usage.completion_tokens);
    assert.ok(told.every((one) => one.top_logprobs.length === 2));
    const text = Buffer.concat(told.map((one) => Buffer.from(one.bytes))).toString();
    assert.ok(text.includes('</think>') && text.includes(choices[0].message.content.trim()), text);
    const stream = await streamChat(server, question, { ignore_eos: true, ...fields });
    await stream.collect();
    const streamed = stream.chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.deepEqual(streamed.map((one) => one.token), told.map((one) => one.token));
  });
});

describe('the end of reasoning on demand', async () => {
  const { server, done } = await startThinking(['--api-key', 'a,b', '-np', '4', '-c', '65536']);
  test.after(done);
  server.key = 'a';
  const headers = { authorization: 'Bearer a' };
  const control = (body, key = 'a') =>
    post(server, '/v1/chat/completions/control', body, { headers: { authorization: `Bearer ${key}` } });

  it('comes where the request allows it, and the answer follows', async () => {
    const fields = { reasoning_control: true, ignore_eos: true, max_tokens: 3000 };
    const stream = await streamChat(server, 'What is Chasqui?', fields, { headers });
    let asked;
    let content = '';
    await stream.collect((chunk) => {
      const delta = chunk.choices[0]?.delta ?? {};
      if (delta.reasoning_content && !asked) asked = control({ id: chunk.id, action: 'reasoning_end' });
      content += delta.content ?? '';
    });
    assert.deepEqual(await (await asked).json(), { success: true });
    assert.ok(content.length > 20, content);
  });

  it('is refused for answers that do not allow it, that are others\', and that there are not', async () => {
    for (const [fields, key] of [[{}, 'a'], [{ reasoning_control: true }, 'b']]) {
      const stream = await streamChat(server, 'What is Chasqui?', { ...fields, ignore_eos: true, max_tokens: 3000 }, { headers });
      const first = (await stream[Symbol.asyncIterator]().next()).value;
      const said = await (await control({ id: first.id, action: 'reasoning_end' }, key)).json();
      assert.equal(said.success, false);
      stream.leave();
    }
    assert.equal((await (await control({ id: 'chatcmpl-none', action: 'reasoning_end' })).json()).success, false);
    assert.equal((await refused(await control({ action: 'reasoning_end' }), 400)).param, 'id');
    assert.equal((await refused(await control({ id: 'x', action: 'stop' }), 400)).param, 'action');
  });
});

describe('calls with logprobs', async () => {
  const server = await start(test, demo);
  const parameters = { type: 'object', properties: { city: { enum: ['Lima', 'Cusco'] } }, required: ['city'] };
  const fields = {
    tools: [{ type: 'function', function: { name: 'weather', parameters } }], tool_choice: 'required', parallel_tool_calls: false,
    logprobs: true, top_logprobs: 1, max_tokens: 100,
  };

  it('tell each token that the call is made of', async () => {
    const { choices } = await answer(server, 'How is the weather in Lima?', fields);
    assert.equal(choices[0].finish_reason, 'tool_calls');
    const text = Buffer.concat(choices[0].logprobs.content.map((one) => Buffer.from(one.bytes))).toString();
    assert.match(text, /"name": "weather"/);
    const stream = await streamChat(server, 'How is the weather in Lima?', fields);
    await stream.collect();
    const streamed = stream.chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.deepEqual(streamed.map((one) => one.token), choices[0].logprobs.content.map((one) => one.token));
  });

  it('tell the timings with each token, where that is wished', async () => {
    const stream = await streamChat(server, 'How is the weather in Lima?', { ...fields, timings_per_token: true });
    await stream.collect();
    assert.ok(stream.chunks.filter((chunk) => chunk.timings).length > 3);
  });
});
