// Tools and the other dialects of a chat, with the clients that people use, unmodified. The demo model does not call
// tools by itself: `tool_choice` makes it, through a grammar.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

import { ask, post, refused, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

const cities = { type: 'object', properties: { city: { type: 'string', enum: ['Lima', 'Cusco'] } }, required: ['city'] };
const weather = { type: 'function', function: { name: 'weather', description: 'Tells the weather.', parameters: cities } };
const time = { type: 'function', function: { name: 'time', description: 'Tells the time.', parameters: cities } };
const base = { model: 'x', temperature: 0, max_tokens: 100, messages: user('How is the weather in Lima?') };

function checkCity(text) {
  const parsed = JSON.parse(text);
  assert.deepEqual(Object.keys(parsed), ['city']);
  assert.ok(['Lima', 'Cusco'].includes(parsed.city));
}

describe('OpenAI chat with tools', async () => {
  const server = await start(test, demo);
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });

  it('calls a tool where one is required, and goes on with its result', async () => {
    const first = await openai.chat.completions.create({ ...base, tools: [weather], tool_choice: 'required', parallel_tool_calls: false });
    const [choice] = first.choices;
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.equal(choice.message.tool_calls[0].function.name, 'weather');
    checkCity(choice.message.tool_calls[0].function.arguments);
    const result = { role: 'tool', tool_call_id: choice.message.tool_calls[0].id, content: 'sunny' };
    const second = await openai.chat.completions.create({
      ...base, max_tokens: 8, tools: [weather], tool_choice: 'none', messages: [...base.messages, choice.message, result],
    });
    assert.equal(second.choices[0].message.tool_calls, undefined);
    assert.ok(second.usage.prompt_tokens > first.usage.prompt_tokens);
  });

  it('calls the tool that is named', async () => {
    for (const name of ['weather', 'time']) {
      const tool_choice = { type: 'function', function: { name } };
      const answer = await openai.chat.completions.create({ ...base, tools: [weather, time], tool_choice, parallel_tool_calls: false });
      assert.equal(answer.choices[0].message.tool_calls[0].function.name, name);
    }
  });

  it('streams a call in pieces under one id', async () => {
    const chunks = await openai.chat.completions.create({
      ...base, tools: [weather], tool_choice: 'required', parallel_tool_calls: false, stream: true,
    });
    const ids = new Set();
    let name = '';
    let args = '';
    let finish;
    for await (const chunk of chunks) {
      const choice = chunk.choices[0];
      for (const call of choice?.delta.tool_calls ?? []) {
        assert.equal(call.index, 0);
        if (call.id) ids.add(call.id);
        name += call.function.name ?? '';
        args += call.function.arguments;
      }
      finish = choice?.finish_reason ?? finish;
    }
    assert.equal(ids.size, 1);
    assert.equal(name, 'weather');
    checkCity(args);
    assert.equal(finish, 'tool_calls');
  });

  it('shows the tools and calls none where it may not', async () => {
    const plain = await ask(server, '/v1/chat/completions', { ...base, max_tokens: 1 });
    const shown = await ask(server, '/v1/chat/completions', { ...base, max_tokens: 1, tools: [weather], tool_choice: 'none' });
    assert.ok(shown.usage.prompt_tokens > plain.usage.prompt_tokens);
    assert.equal(shown.choices[0].message.tool_calls, undefined);
  });

  it('goes on with an answer that is there already', async () => {
    const messages = [...base.messages, { role: 'assistant', content: 'The weather in Lima is' }];
    const prompts = await Promise.all([messages, base.messages].map((m) => ask(server, '/apply-template', { messages: m })));
    assert.ok(prompts[0].prompt.endsWith('The weather in Lima is'));
    assert.equal(prompts[0].prompt, `${prompts[1].prompt}The weather in Lima is`);
    const { input_tokens } = await ask(server, '/v1/chat/completions/input_tokens', { messages });
    const { usage } = await ask(server, '/v1/chat/completions', { ...base, messages, max_tokens: 1 });
    assert.equal(input_tokens, usage.prompt_tokens);
  });

  it('names what is wrong with the tools', async () => {
    for (const [fields, param] of [
      [{ tool_choice: 'maybe' }, 'tool_choice'],
      [{ tool_choice: { type: 'function', function: { name: 'x' } } }, 'tool_choice.function.name'],
      [{ tools: [weather], tool_choice: { type: 'function', function: { name: 'x' } } }, 'tool_choice.function.name'],
      [{ tools: [weather], parallel_tool_calls: 'yes' }, 'parallel_tool_calls'],
      [{ reasoning_format: 'x' }, 'reasoning_format'],
      [{ reasoning_effort: 'x' }, 'reasoning_effort'],
      [{ reasoning_budget: -5 }, 'reasoning_budget'],
      [{ chat_template_kwargs: { enable_thinking: 'no' } }, 'chat_template_kwargs.enable_thinking'],
    ]) {
      const error = await refused(await post(server, '/v1/chat/completions', { ...base, ...fields }), 400);
      assert.equal(error.param, param);
    }
  });
});

describe('Anthropic messages', async () => {
  const server = await start(test, demo);
  const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
  const ask = { model: 'x', max_tokens: 40, temperature: 0, messages: user('What is Chasqui?') };
  const tools = [{ name: 'weather', description: 'Tells the weather.', input_schema: cities }];

  it('answers', async () => {
    const message = await anthropic.messages.create({ ...ask, system: [{ type: 'text', text: 'Be brief.' }] });
    assert.equal(message.type, 'message');
    assert.equal(message.role, 'assistant');
    assert.ok(message.content[0].text.length > 0);
    assert.ok(['end_turn', 'max_tokens'].includes(message.stop_reason));
    assert.ok(message.usage.input_tokens + message.usage.cache_read_input_tokens > 0);
    assert.ok(message.usage.output_tokens > 0);
  });

  it('streams every kind of event in order, and the same text', async () => {
    const whole = await anthropic.messages.create(ask);
    const events = [];
    const message = await anthropic.messages.stream(ask).on('streamEvent', (event) => events.push(event.type)).finalMessage();
    assert.equal(message.content[0].text, whole.content[0].text);
    assert.equal(message.stop_reason, whole.stop_reason);
    assert.equal(message.usage.output_tokens, whole.usage.output_tokens);
    assert.equal(events[0], 'message_start');
    const rest = events.filter((type) => type !== 'content_block_delta' && type !== 'ping');
    assert.deepEqual(rest, ['message_start', 'content_block_start', 'content_block_stop', 'message_delta', 'message_stop']);
  });

  it('stops at a sequence and says which', async () => {
    const whole = await anthropic.messages.create(ask);
    const stop = whole.content[0].text.slice(8, 12);
    const message = await anthropic.messages.create({ ...ask, stop_sequences: [stop] });
    assert.equal(message.stop_reason, 'stop_sequence');
    assert.equal(message.stop_sequence, stop);
    assert.ok(whole.content[0].text.startsWith(message.content[0].text));
  });

  it('calls tools, and takes their results', async () => {
    for (const wish of [{ type: 'any' }, { type: 'tool', name: 'weather' }]) {
      const tool_choice = { ...wish, disable_parallel_tool_use: true };
      const message = await anthropic.messages.stream({ ...ask, max_tokens: 100, tools, tool_choice }).finalMessage();
      assert.equal(message.stop_reason, 'tool_use');
      const call = message.content.at(-1);
      assert.equal(call.type, 'tool_use');
      assert.equal(call.name, 'weather');
      checkCity(JSON.stringify(call.input));
      const answered = await anthropic.messages.create({
        ...ask, max_tokens: 4, tools, messages: [...ask.messages, { role: 'assistant', content: message.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }] }],
      });
      assert.ok(answered.usage.output_tokens > 0);
    }
  });

  it('counts tokens as it uses them', async () => {
    const body = { model: 'x', system: 'Be brief.', messages: ask.messages, tools };
    const { input_tokens } = await anthropic.messages.countTokens(body);
    const { usage } = await anthropic.messages.create({ ...body, max_tokens: 1 });
    assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  });

  it('refuses in its own words', async () => {
    for (const [fields, name] of [
      [{ messages: [] }, 'messages'],
      [{ messages: [{ role: 'user', content: [{ type: 'image' }] }] }, 'messages[0].content[0]: this model takes no pictures'],
      [{ messages: [{ role: 'user', content: [{ type: 'film' }] }] }, 'messages[0].content[0].type'],
      [{ tools: [{ name: 'x' }] }, 'tools[0].input_schema'],
      [{ tool_choice: { type: 'tool', name: 'x' } }, 'tool_choice.name'],
      [{ thinking: { type: 'x' } }, 'thinking.type'],
      [{ stop_sequences: [3] }, 'stop_sequences'],
    ]) {
      await assert.rejects(anthropic.messages.create({ ...ask, ...fields }), (error) => {
        assert.equal(error.status, 400);
        assert.equal(error.error.type, 'error');
        assert.equal(error.error.error.type, 'invalid_request_error');
        assert.ok(error.error.error.message.includes(name), error.message);
        return true;
      });
    }
    const locked = await start(test, [...sim, '--api-key', 'secret']);
    locked.key = 'secret';
    const client = new Anthropic({ baseURL: locked.url, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(client.messages.create(ask), (error) => error.status === 401 && error.error.error.type === 'authentication_error');
    assert.ok(await new Anthropic({ baseURL: locked.url, apiKey: 'secret' }).messages.create(ask));
  });
});
