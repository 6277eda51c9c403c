// What the server says of each request when it has ended: in the answer, in a header, in the log; and never the prompt.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, requestLines, streamChat, user } from './client.mjs';
import { collect, startWithSocket } from './frames.mjs';
import { demo, hangAfter, run, sim, start, testModel } from './server.mjs';

const { describe, it } = test;
const secret = 'the treasure lies under the third fig tree';

// The lines of requests that are as wished. Log lines come before the answer's last byte or soon after.
async function lines(server, wish) {
  const end = Date.now() + hangAfter;
  for (;;) {
    const good = requestLines(server).filter(wish);
    if (good.length > 0) return good;
    assert.ok(Date.now() < end, `no such line: ${wish}`);
    await server.metrics();
  }
}

describe('a request that has ended', async () => {
  const server = await start(test, [...demo, '-np', '2', '-c', '32768']); // room for an answer that does not end

  // What the process has computed, in milliseconds, by a clock with ticks of 10 ms.
  const computed = (one) => {
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
    assert.equal('joules' in timings, (await server.metrics()).text.includes('chasqui_energy_joules_total'));
    assert.ok(timings.steps >= 6 && timings.steps_shared === 0 && timings.preemptions === 0, JSON.stringify(timings));
    const parts = response.headers.get('server-timing').split(', ').map((part) => part.split(';dur='));
    assert.deepEqual(parts.map(([name]) => name), ['queue', 'prefill', 'decode']);
    for (const [i, name] of ['queue_ms', 'prompt_ms', 'predicted_ms'].entries()) {
      assert.ok(Math.abs(Number(parts[i][1]) - timings[name]) < 0.002, name);
    }
  });

  it('tells its share of the processor time, and all shares are the time of the process', async () => {
    await answer(server, 'begin', { max_tokens: 1 });
    const before = server.computed();
    const load = await Promise.all(Array.from({ length: 12 }, (_, i) =>
      answer(server, `${i} ${'tell me more '.repeat(20 * (i % 3))}`, { max_tokens: 400 * (1 + i % 2), ignore_eos: true })));
    const shares = load.map(({ timings }) => timings.cpu_ms);
    const whole = server.computed() - before;
    const sum = shares.reduce((all, one) => all + one, 0);
    assert.ok(Math.min(...shares) > 0, `${shares}`);
    // What follows the last step is no request's any more.
    assert.ok(Math.abs(sum - whole) <= 0.02 * whole + 10, `${sum} ms of ${whole} ms`);
    const [longer, shorter] = [1, 0].map((kind) => shares.filter((_, i) => i % 2 === kind).reduce((all, one) => all + one, 0));
    assert.ok(longer > shorter, 'twice as many tokens cost more');
  });

  it('counts the steps that it shared with others', async () => {
    const fields = { max_tokens: 800, ignore_eos: true }; // one may come much later than the other
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
    assert.equal(line.kind, 'generation');
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

describe('a request for vectors that has ended', async () => {
  const server = await start(test, [...demo, '-np', '2']);
  const embed = (id, body) => post(server, '/v1/embeddings', body, { headers: { 'x-request-id': id } });
  const lineOf = async (id) => (await lines(server, (one) => one.request_id === id))[0];

  it('is one line in the log, with its share of the processor time', async () => {
    await (await embed('warm', { input: 'x' })).text();
    const { usage, model } = await (await embed('short', { input: ['The first', 'The second'] })).json();
    const line = await lineOf('short');
    assert.deepEqual([line.route, line.kind, line.status, line.finish, line.error, line.stream, line.model],
      ['/v1/embeddings', 'embedding', '200', 'stop', '-', 'false', model]);
    assert.equal(Number(line.prompt_tokens), usage.prompt_tokens);
    assert.equal(line.completion_tokens, '0');
    assert.equal(line.steps, '1');
    assert.ok(Number(line.cpu_ms) > 0, JSON.stringify(line));
    assert.ok(Number(line.total_ms) >= Number(line.tokenize_ms) + Number(line.queue_ms) + Number(line.prefill_ms) - 0.01, JSON.stringify(line));
    const long = await (await embed('long', { input: Array(20).fill('word '.repeat(100)) })).json();
    const other = await lineOf('long');
    assert.ok(long.usage.prompt_tokens > 50 * usage.prompt_tokens);
    assert.ok(Number(other.cpu_ms) > Number(line.cpu_ms), `${other.cpu_ms} ${line.cpu_ms}`);
    assert.ok(Number(other.steps) > 1, 'its inputs need several batches');
  });

  it('pays by its tokens for what it shares with others', async () => {
    // While the first is computed the others wait, and are computed together.
    const sizes = { first: 200, few: 20, many: 200 };
    await Promise.all(Object.entries(sizes).map(async ([id, words]) => (await embed(id, { input: 'word '.repeat(words) })).text()));
    const [few, many] = [await lineOf('few'), await lineOf('many')];
    assert.ok(Number(few.cpu_ms) < Number(many.cpu_ms), JSON.stringify([few, many]));
    const perToken = ({ cpu_ms: cpu, prompt_tokens: tokens }) => Number(cpu) / Number(tokens);
    if (few.shared_steps === '1' && many.shared_steps === '1') { // unless they came too late to be in one
      assert.ok(Math.abs(perToken(few) / perToken(many) - 1) < 0.05, JSON.stringify([few, many]));
    }
  });

  it('says when it was refused, when its client left, and when it asks for nothing', async () => {
    await refused(await embed('refused', { input: 'a', dimensions: 0 }), 400);
    const line = await lineOf('refused');
    assert.deepEqual([line.kind, line.status, line.finish, line.error], ['embedding', '400', 'refused', 'invalid_request']);
    const leave = new AbortController();
    const before = (await server.metrics()).sum('chasqui_embedding_inputs_total');
    const body = JSON.stringify({ input: Array(200).fill('word '.repeat(200)) });
    const left = server.fetch('/v1/embeddings', { method: 'POST', body, signal: leave.signal, headers: { 'x-request-id': 'left' } }).catch(() => undefined);
    await server.until((metrics) => metrics.sum('chasqui_embedding_inputs_total') > before, 'it is being computed');
    leave.abort();
    await left;
    assert.deepEqual([(await lineOf('left')).status, (await lineOf('left')).finish], ['499', 'cancelled']);
    await ask(server, '/api/embed', { input: [] }, { headers: { 'x-request-id': 'nothing' } });
    assert.deepEqual([(await lineOf('nothing')).status, (await lineOf('nothing')).prompt_tokens], ['200', '0']);
  });
});

const ranking = testModel('rank');
describe('a request for scores that has ended', { skip: !fs.existsSync(ranking) && `no ${ranking}; make test-models` }, async () => {
  const server = await start(test, [...demo, '-m', ranking, '-c', '4096']);

  it('is one line in the log', async () => {
    const { usage } = await ask(server, '/v1/rerank', { query: 'What is a slot?', documents: ['A place.', 'A coin.'] });
    const [line] = await lines(server, (one) => one.route === '/v1/rerank');
    assert.deepEqual([line.kind, line.status, line.finish], ['ranking', '200', 'stop']);
    assert.equal(Number(line.prompt_tokens), usage.prompt_tokens);
    assert.ok(Number(line.cpu_ms) > 0, JSON.stringify(line));
    await refused(await post(server, '/score', { text_1: 'a' }), 400);
    assert.equal((await lines(server, (one) => one.route === '/score'))[0].kind, 'ranking');
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
