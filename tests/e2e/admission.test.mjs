// Who is refused, what they are told, and that those who do as they are told get in.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';

import OpenAI from 'openai';

import { answer, ask, endless, post, refused, retryAfter, stream, streamChat, user } from './client.mjs';
import { run, sim, start } from './server.mjs';

const { describe, it } = test;
const bearer = (key) => ({ headers: { authorization: `Bearer ${key}` } });
const sha256 = { abc: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' };

function keyFile(context, content) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
  context.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  const file = path.join(folder, 'keys');
  writeFileSync(file, content);
  return { path: file, write: (text) => writeFileSync(file, text) };
}

// Waits for a line of the server's log that was not there yet; each turn waits for an answer, never for a clock.
async function logged(server, pattern, from) {
  while (!pattern.test(server.stderr.slice(from))) await server.metrics();
}

async function reload(server, pattern) {
  const from = server.stderr.length;
  server.signal('SIGHUP');
  await logged(server, pattern, from);
}

// One slot and one place to wait, both taken.
async function full(t, flags = []) {
  const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '1', ...flags]);
  const running = await streamChat(server, 'go on', endless);
  await running.nextText();
  const waiting = await streamChat(server, 'go on, too', endless);
  await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
  running.readOn();
  return { server, running, waiting };
}

describe('a request that is refused', async () => {
  it('and waits as told gets in, and fresh ones do not take its place', async (t) => {
    const { server, running, waiting } = await full(t);
    const body = { messages: user('say: patience'), temperature: 0 };
    const response = await post(server, '/v1/chat/completions', body);
    const ms = retryAfter(response);
    const error = await refused(response, 503);
    assert.equal(error.type, 'unavailable_error');
    assert.match(error.message, /^too many requests are waiting; retry in \d+\.\d s/);
    assert.equal((await server.metrics()).value('chasqui_retry_reservations_open'), 1);
    waiting.leave();
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 0);
    await wait(ms);
    await refused(await post(server, '/generate', { prompt: 'a newcomer' }), 503);
    const job = ask(server, '/v1/chat/completions', body);
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
    running.leave();
    assert.equal((await job).choices[0].message.content, 'patience');
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_retry_reservations_total', { state: 'claimed' }), 1);
    assert.equal(metrics.value('chasqui_requests_refused_total', { reason: 'queue_requests' }), 2);
  });

  it('and comes back too early is told the rest', async (t) => {
    const { server, running, waiting } = await full(t);
    const other = await post(server, '/generate', { prompt: 'the one before' });
    retryAfter(other);
    await refused(other, 503);
    const first = await post(server, '/generate', { prompt: 'impatient' });
    const ms = retryAfter(first);
    await refused(first, 503);
    await wait(300);
    const second = await post(server, '/generate', { prompt: 'impatient' });
    assert.ok(retryAfter(second) <= ms - 300, `${ms} ms, then ${retryAfter(second)} ms`);
    await refused(second, 503);
    assert.equal((await server.metrics()).value('chasqui_retry_reservations_total', { state: 'made' }), 2);
    running.leave();
    waiting.leave();
  });

  it('is told a later time than the one before', async (t) => {
    const { server, running, waiting } = await full(t);
    let before = 0;
    for (let i = 0; i < 10; ++i) {
      const response = await post(server, '/generate', { prompt: `number ${i}` });
      const ms = retryAfter(response);
      await refused(response, 503);
      assert.ok(ms > before, `${ms} ms after ${before} ms`);
      before = ms;
    }
    running.leave();
    waiting.leave();
  });

  it('is repeated by the openai client itself, which succeeds', async (t) => {
    const { server, running, waiting } = await full(t);
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'unused', maxRetries: 5 });
    const job = client.chat.completions.create({ model: 'sim', messages: user('say: here I am'), temperature: 0 });
    await server.until((metrics) => metrics.value('chasqui_retry_reservations_open') === 1);
    running.leave();
    waiting.leave();
    assert.equal((await job).choices[0].message.content, 'here I am');
    assert.ok((await server.idle()).sum('chasqui_requests_refused_total') >= 1);
  });

  it('for its tokens is told so, too', async (t) => {
    const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-tokens', '2000']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    running.readOn();
    const waiting = await streamChat(server, 'x '.repeat(1500), endless);
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
    const response = await post(server, '/v1/chat/completions', { messages: user('y '.repeat(1500)) });
    assert.ok(retryAfter(response) > 0);
    assert.match((await refused(response, 503)).message, /tokens/);
    assert.equal((await server.metrics()).value('chasqui_requests_refused_total', { reason: 'queue_tokens' }), 1);
    running.leave();
    waiting.leave();
  });
});

describe('a stream that waits for a slot', async () => {
  it('says in comments where it stands', async (t) => {
    const server = await start(t, [...sim, '-np', '1', '-c', '500000']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    running.readOn();
    const routes = { '/v1/chat/completions': { messages: user('x') }, '/v1/completions': { prompt: 'x' },
      '/generate': { prompt: 'x' } };
    for (const [route, body] of Object.entries(routes)) {
      const waiting = await post(server, route, { stream: true, ...body });
      assert.equal(waiting.status, 200);
      let text = '';
      const decoder = new TextDecoder();
      for await (const bytes of waiting.body) {
        text += decoder.decode(bytes, { stream: true });
        if (text.includes('\n\n')) break;
      }
      assert.match(text, /^: queued position=0( wait=\d+\.\ds)?\n\n/);
      await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 0, 'it left');
    }
    running.leave();
  });
});

describe('a tenant', async () => {
  const file = keyFile(test, `sha256:${sha256.abc} name=alice in_flight=1\nalice-too name=alice\nbob class=background\n`);
  const server = await start(test, [...sim, '-np', '4', '-c', '2000000', '--api-key-file', file.path]);
  server.key = 'bob';

  it('has a quota of its own, with all its keys together', async () => {
    const running = await streamChat(server, 'go on', endless, bearer('abc'));
    await running.nextText();
    running.readOn();
    for (const key of ['abc', 'alice-too']) {
      const response = await post(server, '/generate', { prompt: 'x' }, bearer(key));
      const ms = retryAfter(response);
      assert.ok(ms > 0 && ms <= 60_000);
      const error = await refused(response, 429);
      assert.equal(error.type, 'rate_limit_error');
      assert.match(error.message, /limit is 1/);
    }
    await ask(server, '/generate', { prompt: 'x', stream: false }, bearer('bob'));
    running.leave();
    await server.idle();
    await ask(server, '/generate', { prompt: 'x', stream: false }, bearer('alice-too'));
    const metrics = await server.metrics();
    assert.equal(metrics.value('chasqui_requests_refused_total', { reason: 'tenant_requests' }), 2);
    assert.equal(metrics.value('chasqui_tenant_requests_in_flight_max'), 0);
  });

  it('shows in no metric by name', async () => {
    assert.doesNotMatch((await server.metrics()).text, /alice|bob/);
  });

  it('cannot ask for a priority that does not exist', async () => {
    const response = await post(server, '/v1/completions', { prompt: 'x', priority: 'gold' }, bearer('bob'));
    const error = await refused(response, 400);
    assert.equal(error.param, 'priority');
    assert.match(error.message, /interactive, standard or background/);
  });

  it('asks for nothing with a service_tier that other servers have', async () => {
    const response = await post(server, '/v1/completions', { prompt: 'x', service_tier: 'scale' }, bearer('bob'));
    assert.equal(response.status, 200);
  });

  it('is served in the class of its key at most', async (t) => {
    const small = await start(t, [...sim, '-np', '1', '-c', '500000', '--api-key-file', file.path]);
    small.key = 'bob';
    const running = await streamChat(small, 'go on', endless, bearer('bob'));
    await running.nextText();
    running.readOn();
    const fields = { messages: user('say: x'), service_tier: 'priority' };
    const job = ask(small, '/v1/chat/completions', fields, bearer('bob'));
    const metrics = await small.until((m) => m.sum('chasqui_requests_waiting') === 1);
    assert.equal(metrics.value('chasqui_requests_waiting', { class: 'background' }), 1);
    running.leave();
    await job;
  });
});

describe('the flag --tenant-requests', async () => {
  it('limits everybody together where there are no keys', async (t) => {
    const server = await start(t, [...sim, '-np', '4', '-c', '2000000', '--tenant-requests', '1']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    running.readOn();
    const response = await post(server, '/generate', { prompt: 'x' });
    assert.ok(retryAfter(response) > 0);
    await refused(response, 429);
    running.leave();
    await server.idle();
    await answer(server, 'say: x');
  });

  it('comes from the environment as well, with the other limits', async (t) => {
    const server = await start(t, sim, { CHASQUI_TENANT_REQUESTS: '7', CHASQUI_QUEUE_REQUESTS: '6',
      CHASQUI_QUEUE_TOKENS: '5000', CHASQUI_QUEUE_WAIT: '4.5', CHASQUI_QUEUE_TIMEOUT: '90' });
    const { limits } = await (await server.fetch('/props')).json();
    assert.equal(limits.tenant_requests, 7);
    assert.equal(limits.queue_requests, 6);
    assert.equal(limits.queue_tokens, 5000);
    assert.equal(limits.queue_timeout_seconds, 90);
    assert.deepEqual(limits.queue_wait_seconds, { interactive: 4.5, standard: 4.5, background: 4.5 });
  });

  it('refuses nothing for its wait, unless told to', async (t) => {
    const waits = async (...flags) => {
      const server = await start(t, [...sim, ...flags]);
      const { limits } = await (await server.fetch('/props')).json();
      await server.stop();
      return Object.values(limits.queue_wait_seconds);
    };
    assert.deepEqual(await waits(), [0, 0, 0]);
    assert.deepEqual(await waits('--queue-wait', '3'), [3, 3, 3]);
    assert.deepEqual(await waits('--queue-wait', '2,7,0'), [2, 7, 0]);
  });
});

describe('the key file', async () => {
  it('is read again on SIGHUP, and running requests go on', async (t) => {
    const file = keyFile(t, 'old name=alice\nstays\n');
    const server = await start(t, [...sim, '-np', '2', '-c', '1000000', '--api-key-file', file.path]);
    server.key = 'stays';
    const running = await stream(server, '/generate', { prompt: 'go on', ...endless }, bearer('old'));
    await running.nextText();
    let heard = 0;
    running.readOn(() => ++heard);
    await refused(await post(server, '/tokenize', { content: 'x' }, bearer('new')), 401);
    file.write('new name=alice\nstays\n');
    await reload(server, /keys reloaded/);
    await ask(server, '/tokenize', { content: 'x' }, bearer('new'));
    await refused(await post(server, '/generate', { prompt: 'x' }, bearer('old')), 401);
    const then = heard;
    await server.until(() => heard > then, 'the stream goes on');
    running.leave();
  });

  it('with a mistake is logged, and the old keys stay', async (t) => {
    const file = keyFile(t, 'good\n');
    const server = await start(t, [...sim, '--api-key-file', file.path]);
    server.key = 'good';
    for (const [text, message] of [['good\nbad weight=none\n', /not reloaded.*line 2: weight must be/], ['', /no keys/]]) {
      file.write(text);
      await reload(server, message);
      await ask(server, '/tokenize', { content: 'x' }, bearer('good'));
    }
    assert.doesNotMatch(server.stderr, /bad/, 'no key is logged');
    file.write('good\nbetter\n');
    await reload(server, /keys reloaded/);
    await ask(server, '/tokenize', { content: 'x' }, bearer('better'));
  });

  it('that is a pipe by then is not waited for', async (t) => {
    const file = keyFile(t, 'good\n');
    const server = await start(t, [...sim, '--api-key-file', file.path]);
    server.key = 'good';
    rmSync(file.path);
    spawnSync('mkfifo', [file.path]);
    await reload(server, /not reloaded.*is not a regular file/);
    await ask(server, '/tokenize', { content: 'x' }, bearer('good'));
    rmSync(file.path);
    file.write('good\nbetter\n');
    await reload(server, /keys reloaded/);
    await ask(server, '/tokenize', { content: 'x' }, bearer('better'));
  });

  for (const [text, message] of [
    ['key class=urgent\n', /line 1: class must be interactive, standard or background/],
    ['ok\nsha256:1234\n', /line 2: sha256 must be followed by 64 hexadecimal digits/],
    ['a name=x weight=1\nb name=x weight=2\n', /line 2: weight must be the same/],
  ]) {
    it(`with a mistake is no start: ${text.trim().split('\n').at(-1)}`, async (t) => {
      const file = keyFile(t, text);
      const { code, stdout, stderr } = await run(['serve', ...sim, '--port', '0', '--api-key-file', file.path]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
      assert.ok(stderr.includes(file.path));
      assert.equal(stdout, '');
    });
  }
});
