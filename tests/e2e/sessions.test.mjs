// Sessions: only what is new goes in, nothing is computed twice, and no tenant gets at another's.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, checkError, endless, post, refused, retryAfter, stream } from './client.mjs';
import { random } from './random.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;

const open = (server, body = {}, options) => ask(server, '/v1/sessions', body, options);
const command = (server, id, what, body = {}, options) => ask(server, `/v1/sessions/${id}/${what}`, body, options);
const say = (content) => ({ message: { role: 'user', content } });
const bearer = (key) => ({ headers: { authorization: `Bearer ${key}` } });
const greedy = { temperature: 0, max_tokens: 24 };

async function show(server, id, options) {
  const response = await server.fetch(`/v1/sessions/${id}`, options);
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
}

async function list(server, options) {
  const body = await (await server.fetch('/v1/sessions', options)).json();
  assert.equal(body.object, 'list');
  return body.data;
}

function remove(server, id, options = {}) {
  return server.fetch(`/v1/sessions/${id}`, { ...options, method: 'DELETE' });
}

// A session whose model speaks and does not stop.
async function speaking(server, question = 'go on') {
  const { id } = await open(server, { messages: [{ role: 'user', content: question }] });
  const running = await stream(server, `/v1/sessions/${id}/generate`,
    { temperature: 0, ...endless, stream_options: { include_usage: true } });
  await running.nextText();
  return { id, running };
}

// Each turn asks the server again, never a clock.
async function untilIdle(server, id) {
  for (;;) {
    const session = await show(server, id);
    if (session.state === 'idle') return session;
  }
}

const usageOf = (running) => running.chunks.find((chunk) => chunk.usage).usage;
const computed = (usage) => usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens;

describe('a conversation in a session', async () => {
  const server = await start(test, demo);
  const questions = ['What is Chasqui?', 'How do I stream answers?', 'Who are you?', 'How do I see the metrics?',
    'What is a slot?', 'What is the prefix cache?', 'Tell me a short story.', 'What is Chasqui?', 'Thank you.', 'Bye.'];

  it('computes only what is new, and is the conversation that is sent whole', async () => {
    const { id } = await open(server, { messages: [{ role: 'system', content: 'You are helpful.' }] });
    const messages = [{ role: 'system', content: 'You are helpful.' }];
    let known = 0;
    for (const [turn, question] of questions.entries()) {
      const appended = await command(server, id, 'append', say(question));
      assert.equal(appended.state, 'idle');
      const answer = await command(server, id, 'generate', greedy);
      const { usage } = answer;
      assert.ok(usage.prompt_tokens >= appended.tokens);
      assert.ok(computed(usage) <= usage.prompt_tokens - known + 8,
        `turn ${turn}: ${computed(usage)} computed, ${usage.prompt_tokens - known} are new`);
      known = usage.prompt_tokens + usage.completion_tokens;
      assert.equal((await show(server, id)).tokens, known, 'what was sent and said is what is kept');

      messages.push({ role: 'user', content: question });
      const whole = await ask(server, '/v1/chat/completions', { messages, ...greedy, cache_prompt: false });
      assert.equal(answer.choices[0].message.content, whole.choices[0].message.content, `turn ${turn}`);
      assert.equal(answer.choices[0].finish_reason, whole.choices[0].finish_reason);
      assert.equal(usage.prompt_tokens, whole.usage.prompt_tokens, `turn ${turn}`);
      messages.push(whole.choices[0].message);
    }
  });

  it('streams like a chat', async () => {
    const { id } = await open(server, { messages: [{ role: 'user', content: 'What is Chasqui?' }] });
    const fork = (await command(server, id, 'fork')).id;
    const whole = await command(server, id, 'generate', greedy);
    assert.equal(whole.object, 'chat.completion');
    const running = await stream(server, `/v1/sessions/${fork}/generate`, greedy);
    await running.collect();
    assert.equal(running.chunks[0].object, 'chat.completion.chunk');
    assert.equal(running.text, whole.choices[0].message.content);
    assert.equal((await show(server, fork)).tokens, (await show(server, id)).tokens);
  });

  it('goes on with an answer that was cut, when nothing comes between', async () => {
    const question = { messages: [{ role: 'user', content: 'Tell me a long story.' }] };
    const { id } = await open(server, question);
    const first = await command(server, id, 'generate', { temperature: 0, max_tokens: 10 });
    const second = await command(server, id, 'generate', { temperature: 0, max_tokens: 10 });
    const whole = await ask(server, '/v1/chat/completions', { ...question, temperature: 0, max_tokens: 20 });
    const text = (answer) => answer.choices[0].message.content;
    assert.equal(text(first) + text(second), text(whole));
    assert.equal(second.usage.prompt_tokens, first.usage.prompt_tokens + 10);
  });

  it('may be plain text, or tokens', async () => {
    const prompt = '<|im_start|>user\nWhat is Chasqui?<|im_end|>\n<|im_start|>assistant\n';
    const text = await open(server, { prompt, parse_special: true });
    assert.equal(text.kind, 'text');
    const { tokens } = await ask(server, '/tokenize', { content: prompt });
    const ids = await open(server, {});
    assert.equal(ids.kind, 'empty');
    await command(server, ids.id, 'append', { tokens: tokens.slice(0, 3) });
    await command(server, ids.id, 'append', { tokens: tokens.slice(3) });
    const whole = await ask(server, '/v1/completions', { prompt, ...greedy });
    for (const { id } of [text, ids]) {
      const answer = await command(server, id, 'generate', greedy);
      assert.equal(answer.object, 'text_completion');
      assert.equal(answer.choices[0].text, whole.choices[0].text);
    }
    const literal = await open(server, { prompt });
    assert.ok(literal.tokens > text.tokens, 'control tokens are text unless they are to be parsed');
  });

  it('ends at a stop string and with its context', async () => {
    const { id } = await open(server, { messages: [{ role: 'user', content: 'What is Chasqui?' }] });
    const answer = await command(server, id, 'generate', { ...greedy, stop: [' '] });
    assert.equal(answer.choices[0].finish_reason, 'stop');
    const full = await command(server, id, 'generate', endless);
    assert.equal(full.choices[0].finish_reason, 'length');
    const error = await refused(await post(server, `/v1/sessions/${id}/generate`, {}), 400);
    assert.equal(error.type, 'exceed_context_size_error');
    await refused(await post(server, `/v1/sessions/${id}/append`, say('more')), 400);
    assert.equal((await show(server, id)).state, 'idle');
  });
});

describe('a session that generates', async () => {
  // At a pace at which no stream is cut as unread while a test does something else.
  const server = await start(test, [...sim, '--sim-step', '2', '-np', '4', '-c', '200000']);

  it('is closed to other requests meanwhile', async () => {
    const { id, running } = await speaking(server);
    assert.equal((await show(server, id)).state, 'generating');
    for (const [what, body] of [['append', say('me too')], ['generate', {}], ['generate', { stream: true }]]) {
      const error = await refused(await post(server, `/v1/sessions/${id}/${what}`, body), 409);
      assert.equal(error.type, 'conflict_error');
    }
    await command(server, id, 'cancel');
    await running.collect();
    await command(server, id, 'append', say('now'));
  });

  it('keeps what it said when it is cancelled', async () => {
    const { id, running } = await speaking(server);
    await command(server, id, 'cancel');
    await running.collect();
    assert.equal(running.finish, 'cancelled');
    const usage = usageOf(running);
    assert.ok(usage.completion_tokens > 0);
    const session = await show(server, id);
    assert.equal(session.state, 'idle');
    assert.equal(session.tokens, usage.prompt_tokens + usage.completion_tokens);
    const next = await command(server, id, 'generate', { max_tokens: 3, ignore_eos: true });
    assert.equal(next.usage.prompt_tokens, session.tokens, 'the same answer goes on');
    assert.ok(computed(next.usage) <= 8);
    const again = await command(server, id, 'cancel');
    assert.equal(again.state, 'idle', 'there is nothing to cancel, which is no mistake');
  });

  it('keeps what it said when its client leaves', async () => {
    const { id, running } = await speaking(server);
    const before = (await show(server, id)).tokens;
    running.leave();
    const session = await untilIdle(server, id);
    assert.ok(session.tokens > before);
    const next = await command(server, id, 'generate', { max_tokens: 3, ignore_eos: true });
    assert.ok(computed(next.usage) <= 8, `${computed(next.usage)} tokens computed again`);
  });

  it('whose whole answer no client waits for is cancelled as well', async () => {
    const { id } = await open(server, { messages: [{ role: 'user', content: 'go on' }] });
    const controller = new AbortController();
    const gone = assert.rejects(post(server, `/v1/sessions/${id}/generate`, endless, { signal: controller.signal }));
    await server.until((metrics) => metrics.value('chasqui_kv_cells_used') > 30);
    controller.abort();
    await gone;
    assert.ok((await untilIdle(server, id)).tokens > 30);
  });

  it('is forked at once, and nothing of its history is computed again', async () => {
    const before = await server.metrics();
    const words = Array.from({ length: 2000 }, (_, i) => `word${i}`).join(' ');
    const { id, running } = await speaking(server, words);
    const parent = await show(server, id);
    const forks = await Promise.all([1, 2, 3, 4].map(async (number) => {
      const fork = await command(server, id, 'fork');
      assert.equal(fork.tokens, parent.tokens);
      assert.notEqual(fork.id, id);
      const appended = await command(server, fork.id, 'append', say(`branch ${number}`));
      const { usage } = await command(server, fork.id, 'generate', { max_tokens: 5 });
      return { usage, fresh: usage.prompt_tokens - parent.tokens, appended };
    }));
    assert.equal((await show(server, id)).state, 'generating');
    let fresh = 0;
    for (const fork of forks) {
      assert.ok(computed(fork.usage) <= fork.fresh + 8, `${computed(fork.usage)} computed, ${fork.fresh} are new`);
      fresh += fork.fresh + 8;
    }
    await command(server, id, 'cancel');
    await running.collect();
    const after = await server.metrics();
    const all = after.value('chasqui_prompt_tokens_total') - before.value('chasqui_prompt_tokens_total');
    assert.ok(all <= usageOf(running).prompt_tokens + fresh, `${all} prompt tokens computed`);
  });

  it('ends with its session', async () => {
    const { id, running } = await speaking(server);
    const gone = await remove(server, id);
    assert.deepEqual(await gone.json(), { id, object: 'session.deleted', deleted: true });
    await running.collect();
    assert.equal(running.finish, 'cancelled');
    await refused(await server.fetch(`/v1/sessions/${id}`), 404);
    await refused(await remove(server, id), 404);
    for (const session of await list(server)) assert.equal((await remove(server, session.id)).status, 200);
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_sessions'), 0);
    assert.equal(metrics.value('chasqui_session_tokens'), 0);
  });
});

describe('sessions', async () => {
  it('that are unused expire', async (t) => {
    const server = await start(t, [...sim, '--session-ttl', '3000']);
    const { id } = await open(server, { ttl_s: 1, prompt: 'abc' });
    const other = await open(server, { prompt: 'abc' });
    assert.equal(other.ttl_s, 3000);
    assert.ok(Math.abs(other.expires_at - other.created - 3000) <= 2);
    await server.until((metrics) => metrics.value('chasqui_sessions_expired_total') === 1);
    await refused(await server.fetch(`/v1/sessions/${id}`), 404);
    assert.deepEqual((await list(server)).map((session) => session.id), [other.id]);
  });

  it('are listed in pages', async (t) => {
    const server = await start(t, sim);
    const ids = [];
    for (let i = 0; i < 5; ++i) ids.push((await open(server)).id);
    const page = async (query) => (await server.fetch(`/v1/sessions${query}`)).json();
    const first = await page('?limit=3');
    assert.deepEqual(first.data.map((session) => session.id), ids.slice(0, 3));
    assert.equal(first.has_more, true);
    const second = await page(`?limit=3&after=${ids[2]}`);
    assert.deepEqual(second.data.map((session) => session.id), ids.slice(3));
    assert.equal(second.has_more, false);
    for (const limit of ['0', '501', 'x', '']) {
      assert.equal((await refused(await server.fetch(`/v1/sessions?limit=${limit}`), 400)).param, 'limit');
    }
  });

  it('work without a cache, only slower', async (t) => {
    const server = await start(t, [...sim, '--cache-ram', '0']);
    const { id } = await open(server, { prompt: 'say something' });
    const first = await command(server, id, 'generate', { max_tokens: 20, ignore_eos: true });
    const second = await command(server, id, 'generate', { max_tokens: 5, ignore_eos: true });
    assert.equal(second.usage.prompt_tokens, first.usage.prompt_tokens + 20);
    assert.equal(second.usage.prompt_tokens_details.cached_tokens, 0);
  });

  it('of others are not there', async (t) => {
    const server = await start(t, [...sim, '--api-key', 'one,two']);
    server.key = 'one';
    const { id } = await open(server, { prompt: 'secret' }, bearer('one'));
    await refused(await server.fetch(`/v1/sessions/${id}`), 401);
    await refused(await post(server, '/v1/sessions', {}), 401);
    await refused(await server.fetch(`/v1/sessions/${id}`, bearer('two')), 404);
    await refused(await remove(server, id, bearer('two')), 404);
    for (const what of ['append', 'generate', 'cancel', 'fork']) {
      await refused(await post(server, `/v1/sessions/${id}/${what}`, { text: 'x' }, bearer('two')), 404);
    }
    assert.deepEqual(await list(server, bearer('two')), []);
    assert.deepEqual((await list(server, bearer('one'))).map((session) => session.id), [id]);
    await refused(await server.fetch(`/v1/sessions?after=${id}`, bearer('two')), 404);
    assert.equal((await show(server, id, bearer('one'))).tokens, 6);
  });

  it('are limited, in all and for each tenant', async (t) => {
    const env = { CHASQUI_SESSIONS_MAX: '3', CHASQUI_TENANT_SESSIONS: '2' };
    const server = await start(t, [...sim, '--api-key', 'one,two'], env);
    server.key = 'one';
    const { id } = await open(server, {}, bearer('one'));
    await open(server, {}, bearer('one'));
    const mine = await post(server, '/v1/sessions', {}, bearer('one'));
    retryAfter(mine);
    assert.equal((await refused(mine, 429)).type, 'rate_limit_error');
    await refused(await post(server, `/v1/sessions/${id}/fork`, {}, bearer('one')), 429);
    await open(server, {}, bearer('two'));
    const all = await post(server, '/v1/sessions', {}, bearer('two'));
    retryAfter(all);
    await refused(all, 503);
    await remove(server, id, bearer('one'));
    await open(server, {}, bearer('two'));
    const { limits } = await (await server.fetch('/props', bearer('one'))).json();
    assert.equal(limits.sessions, 3);
    assert.equal(limits.tenant_sessions, 2);
    assert.equal(limits.session_ttl_seconds, 3600);
  });

  it('refuse what they cannot take, by name', async (t) => {
    const server = await start(t, sim);
    const { id } = await open(server, { prompt: 'abc' });
    const cases = [
      ['/v1/sessions', { ttl_s: 0 }, 'ttl_s'],
      ['/v1/sessions', { ttl_s: 'x' }, 'ttl_s'],
      ['/v1/sessions', { priority: 'now' }, 'priority'],
      ['/v1/sessions', { messages: [] }, 'messages'],
      ['/v1/sessions', { messages: [{ role: 'user', content: 'x' }], prompt: 'x' }, 'prompt'],
      [`/v1/sessions/${id}/append`, {}, null],
      [`/v1/sessions/${id}/append`, { text: '' }, 'text'],
      [`/v1/sessions/${id}/append`, { text: 7 }, 'text'],
      [`/v1/sessions/${id}/append`, { tokens: [-1] }, 'tokens'],
      [`/v1/sessions/${id}/append`, say('a message in a text'), 'messages'],
      [`/v1/sessions/${id}/generate`, { temperature: -1 }, 'temperature'],
      [`/v1/sessions/${id}/generate`, { messages: [] }, 'messages'],
      [`/v1/sessions/${id}/generate`, { prompt: 'x' }, 'prompt'],
      [`/v1/sessions/${id}/generate`, { stream: 'yes' }, 'stream'],
    ];
    for (const [path, body, param] of cases) {
      const response = await post(server, path, body);
      const text = await response.text();
      assert.equal(response.status, 400, `${path} ${JSON.stringify(body)} → ${text}`);
      assert.equal(checkError(JSON.parse(text), 400).param, param, text);
    }
    await refused(await post(server, `/v1/sessions/${id}/append`, 'no json'), 400);
    await refused(await server.fetch('/v1/sessions/sess_none'), 404);
    await refused(await post(server, '/v1/sessions/sess_none/generate', {}), 404);
    await refused(await server.fetch(`/v1/sessions/${id}`, { method: 'PUT' }), 405);
    const empty = await open(server);
    await refused(await post(server, `/v1/sessions/${empty.id}/generate`, {}), 400);
    assert.equal((await show(server, id)).tokens, 3, 'no mistake has changed anything');
    assert.equal((await command(server, id, 'generate', { max_tokens: 2 })).object, 'text_completion');
  });

  it('need a time to live that makes sense', async () => {
    for (const flags of [['--session-ttl', '0'], ['--session-ttl', 'x'], ['--sessions-max', '-1']]) {
      const { code, stderr } = await run(['serve', ...sim, ...flags]);
      assert.notEqual(code, 0);
      assert.match(stderr, new RegExp(flags[0]));
    }
  });

  it('of fifty clients with twenty commands each are not mixed up', async (t) => {
    const server = await start(t, [...sim, '-np', '8', '-c', '64000']);
    const { below } = random(4242);
    const shared = await open(server, { messages: [{ role: 'user', content: 'for everybody' }] });
    const plans = Array.from({ length: 50 }, () => Array.from({ length: 20 }, () => below(8)));
    const client = async (plan, number) => {
      let { id, tokens } = await open(server, { messages: [{ role: 'user', content: `client ${number}` }] });
      for (const [turn, move] of plan.entries()) {
        if (move < 2) {
          ({ tokens } = await command(server, id, 'append', say(`turn ${turn}`)));
        } else if (move < 4) {
          const { usage } = await command(server, id, 'generate', { max_tokens: 1 + turn });
          assert.ok(usage.prompt_tokens >= tokens);
          tokens = usage.prompt_tokens + usage.completion_tokens;
        } else if (move === 4) {
          const fork = await command(server, id, 'fork');
          assert.equal(fork.tokens, tokens);
          assert.equal((await remove(server, id)).status, 200);
          id = fork.id;
        } else if (move === 5) {
          const running = await stream(server, `/v1/sessions/${id}/generate`, { ...endless, max_tokens: 3000 });
          await running.nextText();
          running.leave();
          ({ tokens } = await untilIdle(server, id));
        } else if (move === 6) {
          await command(server, id, 'cancel');
        } else {
          const response = await post(server, `/v1/sessions/${shared.id}/generate`, { max_tokens: 1 });
          await response.text();
          assert.ok([200, 409].includes(response.status), `${response.status}`);
        }
        assert.equal((await show(server, id)).tokens, tokens, `client ${number}, turn ${turn}, move ${move}`);
      }
      assert.equal((await remove(server, id)).status, 200);
    };
    await Promise.all(plans.map(client));
    assert.equal((await remove(server, shared.id)).status, 200);
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_sessions'), 0);
    assert.equal(metrics.value('chasqui_session_tokens'), 0);
  });
});
