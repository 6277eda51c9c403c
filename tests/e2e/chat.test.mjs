// A chat with the built-in model, streamed and whole.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, events, post, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const question = 'What is Chasqui?';

describe('a chat with the demo model', async () => {
  const server = await start(test, demo);

  it('streams the request of the README token by token', async () => {
    const stream = await streamChat(server, question);
    await stream.collect();
    assert.ok(stream.pieces.length > 20, `${stream.pieces.length} pieces`);
    assert.equal(stream.finish, 'stop');
    assert.deepEqual(stream.chunks[0].choices[0].delta, { role: 'assistant', content: null });
    assert.deepEqual(stream.chunks.at(-1).choices[0].delta, {});
    for (const chunk of stream.chunks) {
      assert.equal(chunk.object, 'chat.completion.chunk');
      assert.equal(chunk.id, stream.chunks[0].id);
      assert.match(chunk.id, /^chatcmpl-/);
      assert.equal(chunk.model, 'chasqui-demo');
      assert.equal(chunk.choices.length, 1);
      assert.equal(chunk.choices[0].index, 0);
      assert.ok(!('usage' in chunk));
    }
    assert.equal(stream.text, (await answer(server, question)).text, 'streamed and whole answers are the same');
  });

  it('accepts the body of the README as curl sends it, without a content type of JSON', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = '{"stream":true,"messages":[{"role":"user","content":"What is Chasqui?"}]}';
    const response = await post(server, '/v1/chat/completions', body, { headers });
    assert.equal(response.headers.get('cache-control'), 'no-cache');
    const all = [];
    for await (const event of events(response)) all.push(event);
    assert.ok(all.length > 5);
    assert.equal(all.at(-1), '[DONE]');
  });

  it('knows what it is', async () => {
    const { text, finish } = await answer(server, question);
    assert.match(text, /server|language models?/i);
    assert.equal(finish, 'stop');
  });

  it('answers whole in the shape of OpenAI, with usage and timings', async () => {
    const body = await answer(server, question);
    assert.equal(body.object, 'chat.completion');
    assert.ok(Math.abs(body.created - Date.now() / 1000) < 3600, 'created is in Unix seconds');
    assert.equal(body.choices[0].message.role, 'assistant');
    const { prompt_tokens, completion_tokens, total_tokens } = body.usage;
    assert.ok(prompt_tokens > 0 && completion_tokens > 0);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
    assert.equal(body.timings.cache_n + body.timings.prompt_n, prompt_tokens);
    assert.equal(body.timings.predicted_n, completion_tokens);
    for (const name of ['prompt_ms', 'predicted_ms', 'predicted_per_second']) assert.ok(body.timings[name] > 0, name);
  });

  it('counts the usage in a chunk of its own, and only when asked', async () => {
    const stream = await streamChat(server, question, { stream_options: { include_usage: true }, max_tokens: 12 });
    await stream.collect();
    const last = stream.chunks.at(-1);
    assert.deepEqual(last.choices, []);
    const whole = await answer(server, question, { max_tokens: 12 });
    assert.deepEqual(last.usage, whole.usage);
    assert.equal(last.usage.completion_tokens, 12);
    assert.equal(stream.chunks.filter((chunk) => chunk.usage).length, 1);
    assert.ok(stream.chunks.at(-2).timings.predicted_n === 12, 'the timings come with the finish reason');
  });

  it('counts a prompt as its template and its tokens', async () => {
    const { prompt } = await ask(server, '/apply-template', { messages: user(question) });
    const { tokens } = await ask(server, '/tokenize', { content: prompt, add_special: true, parse_special: true });
    const { usage } = await answer(server, question, { max_tokens: 1 });
    assert.equal(usage.prompt_tokens, tokens.length);
  });

  it('takes a system message and earlier turns into account', async () => {
    const bare = await answer(server, 'Hello', { max_tokens: 8 });
    const turns = [
      { role: 'system', content: 'You are a helpful server.' },
      { role: 'user', content: question },
      { role: 'assistant', content: 'A server for language models.' },
      { role: 'user', content: 'Hello' },
    ];
    const long = await answer(server, turns, { max_tokens: 8 });
    assert.ok(long.usage.prompt_tokens > bare.usage.prompt_tokens + 15);
    const again = await answer(server, turns, { max_tokens: 8 });
    assert.equal(again.text, long.text);
    const developer = await answer(server, [{ ...turns[0], role: 'developer' }, ...turns.slice(1)], { max_tokens: 8 });
    assert.equal(developer.text, long.text, 'developer is the newer name of system');
  });

  it('joins the text parts of a content with line breaks, as llama-server does', async () => {
    const parts = [{ type: 'text', text: 'What is' }, { type: 'text', text: 'Chasqui?' }];
    const joined = await answer(server, [{ role: 'user', content: parts }], { max_tokens: 16 });
    const plain = await answer(server, 'What is\nChasqui?', { max_tokens: 16 });
    assert.equal(joined.text, plain.text);
    assert.equal(joined.usage.prompt_tokens, plain.usage.prompt_tokens);
  });

  it('continues an answer that the client began', async () => {
    const whole = await answer(server, question, { max_tokens: 24 });
    const begin = whole.text.slice(0, whole.text.indexOf(' ', 8));
    const turns = [...user(question), { role: 'assistant', content: begin }];
    const rest = await answer(server, turns, { continue_final_message: true, max_tokens: 4 });
    assert.ok(whole.text.startsWith(begin + rest.text), `${whole.text} ← ${begin} + ${rest.text}`);
  });

  it('has the same routes without /v1', async () => {
    const body = { temperature: 0, max_tokens: 4, messages: user(question) };
    const short = await ask(server, '/chat/completions', body);
    const long = await ask(server, '/v1/chat/completions', body);
    assert.equal(short.choices[0].message.content, long.choices[0].message.content);
  });
});

describe('characters of several bytes', async () => {
  const server = await start(test, sim);
  // The simulated model repeats this text byte by byte, each in a token of its own.
  const text = 'ñandú, naïve, Ünïcödé, 日本語, 👩‍👩‍👧 and 🚀!';

  it('are never cut in a stream', async () => {
    const stream = await streamChat(server, `say: ${text}`);
    await stream.collect(); // each event is decoded by itself, strictly
    assert.equal(stream.text, text);
    assert.ok(stream.pieces.every((piece) => !piece.includes('\uFFFD')));
    assert.ok(stream.pieces.length > 20);
    assert.equal(stream.finish, 'stop');
  });

  it('arrive whole in a whole answer', async () => {
    assert.equal((await answer(server, `say: ${text}`)).text, text);
  });

  it('that an answer ends inside are left out', async () => {
    const stream = await streamChat(server, 'say: a🚀', { max_tokens: 3 });
    await stream.collect();
    assert.equal(stream.finish, 'length');
    assert.equal(stream.text, 'a');
    assert.equal((await answer(server, 'say: a🚀', { max_tokens: 3 })).text, 'a');
  });

  it('belong to the answer that ends them, where a session goes on', async () => {
    const { id } = await ask(server, '/v1/sessions', { messages: user('say: a🚀b') });
    const texts = [];
    for (const max_tokens of [3, 1, 20]) {
      texts.push((await ask(server, `/v1/sessions/${id}/generate`, { temperature: 0, max_tokens, stream: false })).choices[0].message.content);
    }
    assert.deepEqual(texts, ['a', '', '🚀b']);
  });

  it('are escaped when JSON wants it', async () => {
    const odd = 'quote " backslash \\ tab \t newline \n control \u0001 delete \u007f line \u2028 end';
    assert.equal((await answer(server, `say: ${odd}`)).text, odd);
    const stream = await streamChat(server, `say: ${odd}`);
    await stream.collect();
    assert.equal(stream.text, odd);
  });
});
