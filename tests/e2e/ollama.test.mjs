// Ollama's own client, unmodified, and what it does not show.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { Ollama } from 'ollama';

import { ask } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const messages = [{ role: 'user', content: 'What is Chasqui?' }];
const options = { temperature: 0, seed: 1, num_predict: 24 };
const post = (server, target, body) => server.fetch(target, { method: 'POST', body: JSON.stringify(body) });

function checkFigures(last, tokens) {
  assert.equal(last.done, true);
  assert.equal(last.eval_count, tokens);
  assert.ok(last.prompt_eval_count > 0);
  for (const name of ['total_duration', 'prompt_eval_duration', 'eval_duration']) {
    assert.ok(Number.isInteger(last[name]) && last[name] > 1000, `${name} is ${last[name]}, which are no nanoseconds`);
  }
  assert.ok(last.total_duration >= last.eval_duration);
}

describe('the ollama client', async () => {
  const server = await start(test, demo);
  const client = new Ollama({ host: server.url });
  const model = 'chasqui-demo';

  it('chats, streamed and whole, with the same words', async () => {
    const whole = await client.chat({ model, messages, options });
    assert.equal(whole.model, model);
    assert.equal(whole.message.role, 'assistant');
    assert.equal(whole.done_reason, 'length');
    checkFigures(whole, 24);
    const pieces = [];
    for await (const part of await client.chat({ model, messages, options, stream: true })) pieces.push(part);
    assert.equal(pieces.map((part) => part.message.content).join(''), whole.message.content);
    assert.ok(pieces.length > 10, 'it came in pieces');
    assert.ok(pieces.slice(0, -1).every((part) => part.done === false));
    checkFigures(pieces.at(-1), 24);
    assert.equal(pieces.at(-1).message.content, '');
  });

  it('forgets the oldest messages of a chat that is too long', async () => {
    const long = 'Who runs over the mountains, and with what? '.repeat(40);
    const chat = [{ role: 'system', content: 'Be brief.' }];
    for (let i = 0; i < 20; ++i) chat.push({ role: 'user', content: long }, { role: 'assistant', content: `It is ${i}.` });
    const last = [{ role: 'user', content: long }, { role: 'assistant', content: 'It is 19.' }, ...messages];
    const [all, near] = [[...chat, ...messages], [chat[0], ...last]];
    const cut = await client.chat({ model, messages: all, options });
    const alone = await client.chat({ model, messages: near, options });
    assert.ok(cut.prompt_eval_count >= alone.prompt_eval_count, 'as many of them as fit');
    assert.ok(cut.message.content);
    const { kv } = await (await server.fetch('/props')).json();
    assert.ok(cut.prompt_eval_count < kv.cells_per_slot - 24);
    const whole = await post(server, '/api/chat', { messages: all, options, truncate: false, stream: false });
    assert.equal(whole.status, 400);
    assert.match((await whole.json()).error, /exceeds the available context size/);
    const one = await post(server, '/api/chat', { messages: [{ role: 'user', content: long.repeat(40) }], stream: false });
    assert.equal(one.status, 400);
  });

  it('takes no tokens to predict for as many as there are', async () => {
    const { message } = await (await post(await start(test, sim), '/api/chat', {
      messages: [{ role: 'user', content: 'say: all of it' }], options: { num_predict: 0 }, stream: false,
    })).json();
    assert.equal(message.content, 'all of it');
  });

  it('generates with the template, with a system prompt, and raw', async () => {
    const chat = await client.chat({ model, messages, options });
    const same = await client.generate({ model, prompt: messages[0].content, options });
    assert.equal(same.response, chat.message.content);
    const led = await client.chat({ model, messages: [{ role: 'system', content: 'Be brief.' }, ...messages], options });
    const system = await client.generate({ model, system: 'Be brief.', prompt: messages[0].content, options });
    assert.equal(system.response, led.message.content);
    assert.ok(system.prompt_eval_count > same.prompt_eval_count);
    const raw = await client.generate({ model, prompt: messages[0].content, raw: true, options });
    assert.ok(raw.prompt_eval_count < same.prompt_eval_count, 'raw prompts have no template around them');
    let text = '';
    for await (const part of await client.generate({ model, prompt: messages[0].content, raw: true, stream: true, options })) {
      text += part.response;
    }
    assert.equal(text, raw.response);
  });

  it('ends where the model or a stop string does', async () => {
    const whole = await client.chat({ model, messages, options: { temperature: 0 } });
    assert.equal(whole.done_reason, 'stop');
    const word = whole.message.content.split(' ')[2];
    const cut = await client.chat({ model, messages, options: { temperature: 0, stop: [word] } });
    assert.equal(cut.done_reason, 'stop');
    assert.equal(cut.message.content, whole.message.content.slice(0, whole.message.content.indexOf(word)));
  });

  it('goes on with an answer that is there already', async () => {
    const begun = { role: 'assistant', content: 'Chasqui' };
    const { prompt_eval_count: short } = await client.chat({ model, messages, options });
    const { prompt_eval_count: long } = await client.chat({ model, messages: [...messages, begun], options });
    assert.ok(long > short);
  });

  it('keeps to a format', async () => {
    const schema = {
      type: 'object', properties: { colour: { enum: ['red', 'green'] }, size: { type: 'integer', maximum: 99, minimum: 0 } },
      required: ['colour', 'size'], additionalProperties: false,
    };
    const hot = { temperature: 1.5, seed: 4, num_predict: 200 };
    const shaped = JSON.parse((await client.chat({ model, messages, format: schema, options: hot })).message.content);
    assert.ok(['red', 'green'].includes(shaped.colour));
    assert.ok(Number.isInteger(shaped.size));
    const first = (await client.generate({ model, prompt: 'x', format: 'json', options: hot })).response.trimStart()[0];
    assert.equal(first, '{');
  });

  it('keeps to a grammar or a schema in the words of other routes', async () => {
    const hot = { temperature: 1.5, seed: 4 };
    const kept = { grammar: 'root ::= "yes" | "no"', json_schema: { enum: [1, 2] }, response_format: { type: 'json_schema', schema: { enum: [1, 2] } } };
    for (const [name, value] of Object.entries(kept)) {
      for (const body of [{ [name]: value, options: hot }, { options: { ...hot, [name]: value } }]) {
        const { response } = await ask(server, '/api/generate', { model, prompt: 'x', stream: false, ...body });
        assert.match(response, /^(yes|no|1|2)$/, JSON.stringify(body));
      }
    }
  });

  it('tells how likely its tokens were', async () => {
    const body = { model, messages, logprobs: true, top_logprobs: 2, options: { ...options, temperature: 0 } };
    const whole = await ask(server, '/api/chat', { ...body, stream: false });
    assert.equal(whole.logprobs.length, whole.eval_count);
    assert.equal(whole.logprobs.map(({ token }) => token).join(''), whole.message.content);
    for (const { token, logprob, bytes, top_logprobs: top } of whole.logprobs) {
      assert.deepEqual(bytes, [...Buffer.from(token)]);
      assert.ok(logprob <= 0);
      assert.equal(top.length, 2);
    }
    const lines = (await (await post(server, '/api/chat', body)).text()).trim().split('\n').map((line) => JSON.parse(line));
    const tokensOf = (list) => list.map(({ token }) => token);
    assert.deepEqual(tokensOf(lines.flatMap((line) => line.logprobs ?? [])), tokensOf(whole.logprobs));
    assert.equal((await ask(server, '/api/chat', { ...body, logprobs: false, stream: false })).logprobs, undefined);
  });

  it('goes on after the context of an answer', async () => {
    const body = { model, prompt: 'My name is Quipu.', stream: false, options };
    const first = await ask(server, '/api/generate', body);
    assert.equal(first.context.length, first.prompt_eval_count + first.eval_count);
    const second = await ask(server, '/api/generate', { ...body, prompt: 'What is my name?', context: first.context });
    const alone = await ask(server, '/api/generate', { ...body, prompt: 'What is my name?' });
    assert.equal(second.prompt_eval_count, first.context.length + alone.prompt_eval_count);
    assert.equal((await ask(server, '/api/generate', { ...body, raw: true })).context, undefined);
  });

  it('says what it has', async () => {
    const { models } = await client.list();
    assert.deepEqual(models.map((one) => one.name), [model]);
    assert.ok(models[0].size > 1e6);
    assert.match(models[0].details.parameter_size, /^\d.*M$/);
    const shown = await client.show({ model });
    assert.ok(shown.capabilities.includes('completion'));
    assert.equal(shown.model_info['general.architecture'], shown.details.family);
    assert.ok(shown.model_info[`${shown.details.family}.context_length`] > 0);
    assert.match(shown.template, /im_start|messages/);
    const running = await client.ps();
    assert.equal(running.models[0].model, model);
    assert.ok(new Date(running.models[0].expires_at) > new Date());
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
  });

  it('has the model loaded, whatever is said about that', async () => {
    assert.equal((await client.generate({ model, prompt: '' })).done_reason, 'load');
    assert.equal((await client.chat({ model, messages: [], keep_alive: 0 })).done_reason, 'unload');
    const after = await client.chat({ model, messages, options, keep_alive: '5m' });
    assert.equal(after.eval_count, 24);
  });

  it('stops when told to', async () => {
    const endless = new Ollama({ host: server.url });
    const long = { type: 'array', items: { enum: [1] }, minItems: 400 }; // by chance a free answer is two tokens
    const stream = await endless.generate({ model, prompt: 'Go on', format: long, stream: true, options: { num_predict: -1, stop: [] } });
    setImmediate(() => endless.abort());
    await assert.rejects(async () => { for await (const _ of stream); }, { name: 'AbortError' });
    await server.idle();
  });

  it('refuses in its words, naming the field', async () => {
    const cases = [
      ['/api/chat', { messages: 'x' }, /messages must be/],
      ['/api/chat', { messages: [{ role: 'the boss', content: 'x' }] }, /messages\[0\]\.role must be/],
      ['/api/chat', { messages: [{ role: 'user', content: 'x', images: ['eA=='] }] }, /messages\[0\]\.images\[0\]: this model takes no pictures/],
      ['/api/chat', { messages, format: 'xml' }, /format must be "json" or a JSON Schema/],
      ['/api/chat', { messages, format: { type: 'objekt' } }, /format\.type/],
      ['/api/chat', { messages, think: 'hardest' }, /think must be/],
      ['/api/chat', { messages, think: 3 }, /think must be/],
      ['/api/chat', { messages, stream: 'yes' }, /stream must be/],
      ['/api/chat', { messages, keep_alive: {} }, /keep_alive must be/],
      ['/api/chat', { messages, logprobs: 'yes' }, /logprobs must be/],
      ['/api/chat', { messages, logprobs: true, top_logprobs: 21 }, /top_logprobs must be between 0 and 20/],
      ['/api/chat', { messages, options: { num_predict: -3 } }, /options\.num_predict must be at least -2/],
      ['/api/chat', { messages, options: { temperature: 'hot' } }, /options\.temperature must be/],
      ['/api/chat', { messages, options: 3 }, /options must be/],
      ['/api/chat', { messages, lora: 'none' }, /lora must be left out; this server has no adapters/],
      ['/api/chat', { messages, options: { lora: 'none' } }, /options\.lora must be left out; this server has no adapters/],
      ['/api/chat', { messages, grammar: 'root := "a"' }, /grammar/],
      ['/api/chat', { messages, format: 'json', grammar: 'root ::= "a"' }, /format must be left out where grammar or json_schema/],
      ['/api/generate', { prompt: 3 }, /prompt must be/],
      ['/api/generate', { prompt: 'x', images: ['eA=='] }, /images\[0\]: this model takes no pictures/],
      ['/api/generate', { prompt: 'x', images: ['eA=='], raw: true }, /images must be left out/],
      ['/api/generate', { prompt: 'x', system: 'y', raw: true }, /system must be left out/],
      ['/api/generate', { prompt: 'x', context: ['y'] }, /context must be ids/],
      ['/api/generate', { prompt: 'x', template: '{{.}}' }, /template must be left out/],
      ['/api/show', {}, /model must be/],
    ];
    for (const [target, body, message] of cases) {
      const response = await post(server, target, body);
      const text = await response.text();
      assert.equal(response.status, 400, `${target} ${JSON.stringify(body)}: ${text}`);
      assert.match(JSON.parse(text).error, message);
    }
  });
});

describe('streams of lines', async () => {
  const server = await start(test, [...sim, '--api-key', 'secret']);
  const headers = { authorization: 'Bearer secret' };

  it('are lines of JSON and nothing else', async () => {
    const body = JSON.stringify({ prompt: 'Hello', options: { num_predict: 8 } });
    const response = await server.fetch('/api/generate', { method: 'POST', headers, body });
    assert.equal(response.headers.get('content-type'), 'application/x-ndjson');
    const lines = (await response.text()).split('\n');
    assert.equal(lines.pop(), '');
    assert.ok(lines.map((line) => JSON.parse(line)).every((line) => typeof line.response === 'string'));
  });

  it('need the key', async () => {
    const response = await server.fetch('/api/tags');
    assert.equal(response.status, 401);
    assert.equal((await response.json()).error, 'Invalid API Key');
    server.key = 'secret';
  });
});
