// What the server says of each request when it has ended: in the answer, in a header, in the log; and never the prompt.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import * as test from 'node:test';

import { answer, endless, post, refused, streamChat, user } from './client.mjs';
import { collect, startWithSocket } from './frames.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const secret = 'the treasure lies under the third fig tree';

// The line of the request that ended last, as key → value. Log lines come before the answer's last byte or soon after.
async function lines(server, wish, prefix = ' I request ') {
  for (;;) {
    const found = server.stderr.split('\n').filter((line) => line.includes(prefix)).map(
      (line) => Object.fromEntries([...line.matchAll(/(\w+)=("(?:[^"\\]|\\.)*"|\S+)/g)].map(([, key, value]) => [key, value])));
    const good = found.filter(wish);
    if (good.length > 0) return good;
    await server.metrics();
  }
}

describe('a request that has ended', async () => {
  const server = await start(test, [...demo, '-np', '2']);

  // What the process has computed, in milliseconds, by a clock with ticks of 10 ms.
  const computed = (one = server) => {
    const fields = fs.readFileSync(`/proc/${one.child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  };

  it('does not pay for what the server does while it has none', async (t) => {
    const fresh = await start(t, []);
    let [before, since] = [computed(fresh), Date.now()]; // compute threads spin a while for the next step
    while (Date.now() - since < 100) {
      const now = computed(fresh);
      if (now !== before) [before, since] = [now, Date.now()];
    }
    const { timings } = await answer(fresh, 'the first request', { max_tokens: 2 });
    const most = computed(fresh) - before + 20;
    assert.ok(timings.cpu_ms > 0 && timings.cpu_ms <= most, `${timings.cpu_ms} of ${most} ms`);
  });

  it('has a receipt in its answer and in Server-Timing', async () => {
    const response = await post(server, '/v1/chat/completions', { messages: user('Hello'), max_tokens: 6, ignore_eos: true });
    const { timings, usage } = await response.json();
    assert.equal(timings.prompt_n + timings.cache_n, usage.prompt_tokens);
    assert.equal(timings.predicted_n, 6);
    assert.ok(timings.steps >= 6 && timings.steps_shared === 0 && timings.preemptions === 0, JSON.stringify(timings));
    const parts = response.headers.get('server-timing').split(', ').map((part) => part.split(';dur='));
    assert.deepEqual(parts.map(([name]) => name), ['queue', 'prefill', 'decode']);
    for (const [i, name] of ['queue_ms', 'prompt_ms', 'predicted_ms'].entries()) {
      assert.ok(Math.abs(Number(parts[i][1]) - timings[name]) < 0.002, name);
    }
  });

  it('tells its share of the processor time, and all shares are the time of the process', async () => {
    await answer(server, 'begin', { max_tokens: 1 });
    const before = computed();
    const load = await Promise.all(Array.from({ length: 12 }, (_, i) =>
      answer(server, `${i} ${'tell me more '.repeat(20 * (i % 3))}`, { max_tokens: 400 * (1 + i % 2), ignore_eos: true })));
    const shares = load.map(({ timings }) => timings.cpu_ms);
    const whole = computed() - before;
    const sum = shares.reduce((all, one) => all + one, 0);
    assert.ok(Math.min(...shares) > 0, `${shares}`);
    // What follows the last step is no request's any more.
    assert.ok(Math.abs(sum - whole) <= 0.02 * whole + 40, `${sum} ms of ${whole} ms`);
    const [longer, shorter] = [1, 0].map((kind) => shares.filter((_, i) => i % 2 === kind).reduce((all, one) => all + one, 0));
    assert.ok(longer > shorter, 'twice as many tokens cost more');
  });

  it('counts the steps that it shared with others', async () => {
    const fields = { max_tokens: 40, ignore_eos: true };
    const both = await Promise.all([answer(server, 'One', fields), answer(server, 'Two', fields)]);
    assert.ok(both.some(({ timings }) => timings.steps_shared > 0), JSON.stringify(both.map(({ timings }) => timings)));
  });

  it('is one line in the log, which explains it', async () => {
    const { timings, usage } = await answer(server, secret, { max_tokens: 3, ignore_eos: true });
    const [line] = await lines(server, (one) => one.completion_tokens === '3');
    assert.equal(line.route, '/v1/chat/completions');
    assert.match(line.client, /^127\.0\.0\.1:\d+$/);
    assert.equal(line.status, '200');
    assert.equal(line.finish, 'length');
    assert.equal(line.class, 'standard');
    assert.equal(Number(line.prompt_tokens), usage.prompt_tokens);
    assert.equal(Number(line.cached_tokens), timings.cache_n);
    for (const [name, field] of [['queue_ms', 'queue_ms'], ['prefill_ms', 'prompt_ms'], ['decode_ms', 'predicted_ms']]) {
      assert.ok(Math.abs(Number(line[name]) - timings[field]) < 0.002, name);
    }
    assert.doesNotMatch(server.stderr, /treasure/);
  });

  it('says when its client left', async () => {
    const stream = await streamChat(server, 'go on', endless);
    await stream.nextText();
    stream.leave();
    const [line] = await lines(server, (one) => one.status === '499');
    assert.equal(line.finish, 'cancelled');
    assert.ok(Number(line.completion_tokens) > 0);
  });

  it('says when it was refused', async () => {
    await refused(await post(server, '/v1/completions', { prompt: 'x', temperature: -3 }), 400);
    const [line] = await lines(server, (one) => one.status === '400');
    assert.equal(line.finish, 'refused');
    assert.equal(line.error, 'invalid_request');
    assert.equal(line.route, '/v1/completions');
  });

  it('names the trace that it belongs to', async () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await answer(server, 'Hello', { max_tokens: 1 }, { headers: { traceparent: `00-${trace}-00f067aa0ba902b7-01` } });
    assert.ok((await lines(server, (one) => one.trace === trace)).length === 1);
  });
});

describe('the log', () => {
  it('is JSON when asked, and has prompts only when asked, with control characters escaped', async (t) => {
    const server = await start(t, [...sim, '--log-format', 'json', '--log-prompts']);
    await answer(server, `${secret}\n\u001b[31m`, { max_tokens: 2 });
    while (!server.stderr.includes('"message":"request"')) await server.metrics();
    const all = server.stderr.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    assert.ok(all.find(({ message }) => message === 'prompt').body.includes('treasure'));
    const line = all.find(({ message }) => message === 'request');
    assert.equal(line.completion_tokens, 2);
    assert.match(line.client, /^127\.0\.0\.1:\d+$/);
    assert.ok(!server.stderr.includes('\u001b'));
  });

  it('has a short line for each request unless more is asked for', async (t) => {
    const server = await startWithSocket(t, [...sim, '--alias', 'tiny'], { CHASQUI_REQUEST_LOG_FORM: '' });
    const fields = { max_tokens: 2, ignore_eos: true };
    await answer(server, secret, fields, { headers: { 'x-request-id': 'mine' } });
    await server.says(/Z I 200 \d+(ms|\.\ds) \d+→2 tok chat "tiny" from 127\.0\.0\.1:\d+ id=mine\n/);
    await refused(await post(server, '/v1/completions', { prompt: 'x', temperature: -3 }), 400);
    await server.says(/Z I 400 \d+ms 0→0 tok completion "tiny" from 127\.0\.0\.1:\d+ id=req_\w+ error=invalid_request\n/);
    const client = await server.client(t);
    await collect(client.generate({ prompt: secret, ...fields }));
    await server.says(/Z I 200 \d+(ms|\.\ds) \d+→2 tok generate "tiny" from unix id=\d+\n/);
    assert.doesNotMatch(server.stderr, /treasure| I request /);
  });

  it('is JSON with all fields also where its lines would be short', async (t) => {
    const server = await start(t, [...sim, '--log-format', 'json', '--request-log-form', 'short']);
    await answer(server, 'Hello', { max_tokens: 2 });
    await server.says(/"message":"request",.*"client":"127\.0\.0\.1:\d+",.*"forced_tokens":0}/);
  });

  it('takes the forms that there are', async () => {
    const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--request-log-form', 'tiny']);
    assert.equal(code, 2);
    assert.match(stderr, /--request-log-form.*long.*short/);
  });

  it('has no lines of requests when they are not wanted', async (t) => {
    const server = await start(t, sim, { CHASQUI_LOG_REQUESTS: '0' });
    await answer(server, 'Hello', { max_tokens: 2 });
    await server.idle();
    assert.doesNotMatch(server.stderr, / request | tok /);
  });
});
