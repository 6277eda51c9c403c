// OpenAI's own client, unmodified.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import OpenAI from 'openai';
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { endless, streamChat } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const messages = [{ role: 'user', content: 'What is Chasqui?' }];
const clientOf = (server, options = {}) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'unused', ...options });

describe('the openai client', async () => {
  // Room for answers that do not end before they are left.
  const server = await start(test, [...demo, '-np', '4', '-c', '65536']);
  const client = clientOf(server, { maxRetries: 0 });
  const model = 'chasqui-demo';

  it('lists the model', async () => {
    const all = [];
    for await (const one of client.models.list()) all.push(one);
    assert.equal(all.length, 1);
    assert.equal(all[0].id, model);
    assert.equal(all[0].object, 'model');
  });

  it('chats, streamed and whole', async () => {
    const whole = await client.chat.completions.create({ model, messages, temperature: 0 });
    assert.match(whole.choices[0].message.content, /server|language models?/i);
    assert.equal(whole.choices[0].finish_reason, 'stop');
    const stream = await client.chat.completions.create(
      { model, messages, temperature: 0, stream: true, stream_options: { include_usage: true } });
    let text = '';
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    const { prompt_tokens_details: _, ...counts } = whole.usage;  // the second finds the first in the prefix cache
    assert.deepEqual({ ...usage, prompt_tokens_details: undefined }, { ...counts, prompt_tokens_details: undefined });
  });

  it('gathers a stream with its own runner', async () => {
    const runner = client.chat.completions.stream({ model, messages, temperature: 0, max_tokens: 10 });
    const pieces = [];
    runner.on('content', (delta) => pieces.push(delta));
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, pieces.join(''));
    assert.equal(final.choices[0].finish_reason, 'length');
  });

  it('completes text', async () => {
    const body = await client.completions.create({ model, prompt: 'Once upon a time', max_tokens: 8, temperature: 0 });
    assert.ok(body.choices[0].text.length > 0);
    const stream = await client.completions.create(
      { model, prompt: 'Once upon a time', max_tokens: 8, temperature: 0, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? '';
    assert.equal(text, body.choices[0].text);
  });

  it('sends the fields that it knows, and they are accepted', async () => {
    const body = await client.chat.completions.create({
      model, messages, max_completion_tokens: 4, n: 1, user: 'a user', metadata: {}, store: false, seed: 1,
      top_p: 0.9, frequency_penalty: 0.1, presence_penalty: 0.1, response_format: { type: 'text' },
      service_tier: 'auto', parallel_tool_calls: false, logprobs: false, stop: null, logit_bias: {},
    });
    assert.equal(body.usage.completion_tokens, 4);
  });

  it('takes the name of the wrong field out of the error', async () => {
    await assert.rejects(client.chat.completions.create({ model, messages, temperature: -1 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.status, 400);
      assert.equal(error.param, 'temperature');
      assert.equal(error.type, 'invalid_request_error');
      assert.match(error.message, /temperature must be a number between 0 and/);
      return true;
    });
    await assert.rejects(client.moderations.create({ model, input: 'x' }), OpenAI.NotFoundError);
  });

  it('aborts a stream, and the cells come back', async () => {
    const stream = await client.chat.completions.create({ model, messages, stream: true, ...endless });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta?.content) break; // leaving the loop aborts the request
    }
    await server.idle();

    const controller = new AbortController();
    const whole = client.chat.completions.create({ model, messages, ...endless }, { signal: controller.signal });
    await server.until((metrics) => metrics.value('chasqui_kv_cells_used') > 0);
    controller.abort();
    await assert.rejects(whole, OpenAI.APIUserAbortError);
    await server.until((metrics) => metrics.value('chasqui_requests_finished_total', { reason: 'cancelled' }) === 2);
  });
});

describe('the openai client, tools and structures', async () => {
  const server = await start(test, demo);
  const client = clientOf(server, { maxRetries: 0 });
  const model = 'chasqui-demo';
  const place = z.object({ city: z.enum(['Lima', 'Cusco']) });
  const person = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(150), home: place, nick: z.string().max(4).nullable() });
  const wish = [{ role: 'user', content: 'Describe a person.' }];
  const random = { temperature: 1.2, seed: 2, max_tokens: 400 };

  // The demo model stops after one call. It may not before so many tokens, and the grammar leaves it only a second call.
  it('runs a loop of tools with two calls at once', async () => {
    const asked = [];
    const weather = zodFunction({
      name: 'weather', description: 'Tells the weather.', parameters: place,
      function: ({ city }) => { asked.push(city); return `sunny in ${city}`; },
    });
    for (const stream of [false, true]) {
      asked.length = 0;
      const runner = client.chat.completions.runTools(
        { model, messages, tools: [weather], tool_choice: 'required', temperature: 0, max_tokens: 100, min_tokens: 35, stream },
        { maxChatCompletions: 1 });
      await runner.done();
      const [call, ...results] = runner.messages.slice(messages.length);
      assert.equal(call.tool_calls.length, 2);
      assert.equal(new Set(call.tool_calls.map((one) => one.id)).size, 2);
      assert.deepEqual(asked, call.tool_calls.map((one) => JSON.parse(one.function.arguments).city));
      assert.deepEqual(results.map((one) => [one.role, one.tool_call_id, one.content]),
        call.tool_calls.map((one, i) => ['tool', one.id, `sunny in ${asked[i]}`]));
      const first = await client.chat.completions.create({ model, messages, tools: [weather], max_tokens: 1 });
      const next = await client.chat.completions.create(
        { model, messages: runner.messages, tools: [weather], tool_choice: 'none', max_tokens: 8, temperature: 0 });
      assert.ok(next.choices[0].message.content.length > 0);
      assert.ok(next.usage.prompt_tokens > first.usage.prompt_tokens + 20, 'the calls and their results are in the prompt');
    }
  });

  it('gives what a Zod schema says, parsed', async () => {
    const made = await client.chat.completions.parse(
      { model, messages: wish, ...random, response_format: zodResponseFormat(person, 'person') });
    assert.deepEqual(person.parse(made.choices[0].message.parsed), made.choices[0].message.parsed);
    const stream = client.chat.completions.stream(
      { model, messages: wish, ...random, response_format: zodResponseFormat(person, 'person') });
    const [{ message }] = (await stream.finalChatCompletion()).choices;
    assert.deepEqual(person.parse(message.parsed), message.parsed);
  });

  it('gives what a Zod schema says as a response', async () => {
    const made = await client.responses.parse(
      { model, input: 'Describe a person.', temperature: 1.2, max_output_tokens: 400, text: { format: zodTextFormat(person, 'person') } });
    assert.deepEqual(person.parse(made.output_parsed), made.output_parsed);
  });

  it('parses the arguments of a strict function', async () => {
    const tools = [zodFunction({ name: 'weather', parameters: place })];
    const made = await client.chat.completions.parse(
      { model, messages, tools, tool_choice: 'required', parallel_tool_calls: false, temperature: 0, max_tokens: 100 });
    const { parsed_arguments } = made.choices[0].message.tool_calls[0].function;
    assert.deepEqual(place.parse(parsed_arguments), parsed_arguments);
  });
});

describe('the openai client and a key', async () => {
  const server = await start(test, [...sim, '--api-key', 'first-key,second-key']);
  server.key = 'first-key';

  it('is refused with a wrong one, and served with a right one', async () => {
    const wrong = clientOf(server, { apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(wrong.models.list(), (error) => {
      assert.ok(error instanceof OpenAI.AuthenticationError);
      assert.equal(error.type, 'authentication_error');
      return true;
    });
    for (const apiKey of ['first-key', 'second-key']) {
      const body = await clientOf(server, { apiKey }).chat.completions.create(
        { model: 'any', messages: [{ role: 'user', content: 'say: welcome' }] });
      assert.equal(body.choices[0].message.content, 'welcome');
    }
  });
});

describe('the openai client and a full queue', async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '0']);

  it('tries again after 503, and gets its answer', async () => {
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    const statuses = [];
    const watched = async (...request) => {
      const response = await fetch(...request);
      statuses.push(response.status);
      if (response.status === 503) running.leave();
      return response;
    };
    const client = clientOf(server, { fetch: watched });
    const body = await client.chat.completions.create(
      { model: 'any', messages: [{ role: 'user', content: 'say: at last' }] });
    assert.equal(body.choices[0].message.content, 'at last');
    assert.deepEqual(statuses, [503, 200]);
  });
});
