// More requests than slots, and more than may wait.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, retryAfter, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

// Streams that are not read are cut after about three seconds.
const slow = [...sim, '--sim-step', '2'];

describe('a queue', async () => {
  it('lets eight requests complete on two slots', async (t) => {
    const server = await start(t, [...demo, '-np', '2']);
    const fields = { max_tokens: 20, ignore_eos: true };
    const jobs = Array.from({ length: 8 }, (_, i) => answer(server, `Hello number ${i}`, fields));
    for (const { usage } of await Promise.all(jobs)) assert.equal(usage.completion_tokens, 20);
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_requests_finished_total', { reason: 'length' }), 8);
    assert.equal(metrics.sum('chasqui_requests_refused_total'), 0);
  });

  it('that is full refuses with 503 and Retry-After, and the others complete', async (t) => {
    const server = await start(t, [...slow, '-np', '1', '-c', '500000', '--queue-requests', '1']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    const waiting = answer(server, 'say: patience is rewarded');
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
    for (const stream of [true, false]) {
      const response = await post(server, '/v1/chat/completions', { stream, messages: user('one too many') });
      const wait = retryAfter(response);
      assert.ok(wait > 0 && wait <= 60_000, `${wait} ms`);
      const error = await refused(response, 503);
      assert.equal(error.type, 'unavailable_error');
      assert.match(error.message, /waiting|retry/);
    }
    running.leave();
    assert.equal((await waiting).text, 'patience is rewarded');
    assert.equal((await server.metrics()).value('chasqui_requests_refused_total', { reason: 'queue_requests' }), 2);
    assert.equal((await answer(server, 'say: room again')).text, 'room again');
  });

  it('of zero places refuses what cannot start at once', async (t) => {
    const server = await start(t, [...slow, '-np', '1', '-c', '500000', '--queue-requests', '0']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    await refused(await post(server, '/generate', { prompt: 'x' }), 503);
    running.leave();
    await server.idle();
    assert.ok((await ask(server, '/generate', { prompt: 'x', stream: false })).usage.completion_tokens > 0);
  });

  it('serves those first who are marked urgent', async (t) => {
    const server = await start(t, [...slow, '-np', '1', '-c', '500000']);
    // Of the most urgent class, so that none of the others takes its slot.
    const running = await streamChat(server, 'go on', { ...endless, priority: 'interactive' });
    await running.nextText();
    const jobs = [];
    for (const [i, priority] of ['background', 'standard', 'interactive'].entries()) {
      jobs.push(answer(server, `say: ${priority}`, { priority }));
      await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === i + 1);
    }
    running.leave();
    const [background, standard, interactive] = (await Promise.all(jobs)).map(({ timings }) => timings.queue_ms);
    // Who came first waited longest.
    assert.ok(background > standard && standard > interactive, `${background}, ${standard}, ${interactive} ms`);
  });
});

describe('the flag --queue-timeout', async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '500000', '--queue-timeout', '1']);

  it('ends a wait for a slot: 503 where nothing was sent, else an error in the words of the stream', async () => {
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    running.readOn();
    const whole = await post(server, '/v1/chat/completions', { messages: user('too late') });
    assert.ok(retryAfter(whole) >= 1000);
    assert.match((await refused(whole, 503)).message, /^queue timeout/);
    const late = async (path, body) => (await post(server, path, { stream: true, max_tokens: 9, ...body })).text();
    const openai = await late('/v1/chat/completions', { messages: user('too late') });
    assert.match(openai, /data: \{"error":\{"code":503,"message":"queue timeout/);
    const anthropic = await late('/v1/messages', { messages: user('too late') });
    assert.match(anthropic, /^event: error\ndata: \{.*queue timeout/m);
    assert.equal((await server.metrics()).value('chasqui_queue_timeouts_total'), 3);
    running.leave();
    await server.idle();
  });

  it('does not end what has begun', async () => {
    const begun = await answer(server, 'hang: 3', { max_tokens: 4 });
    assert.ok(begun.usage.completion_tokens > 0);
  });
});

describe('a client that accepts no long wait', async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '500000']);

  for (const [how, fields, options] of [['by a field', { ttft_timeout_ms: 2000 }, {}],
    ['by a header', {}, { headers: { 'x-ttft-timeout-ms': '2000' } }]]) {
    it(`and says so ${how} is told that it would be long`, async () => {
      assert.equal((await answer(server, 'say: at once', fields, options)).text, 'at once');
      const running = await streamChat(server, 'go on', endless);
      await running.nextText();
      running.readOn();
      const response = await post(server, '/v1/chat/completions', { messages: user('x'), ...fields }, options);
      assert.ok(retryAfter(response) > 0);
      assert.match((await refused(response, 503)).message, /ttft_timeout_ms/);
      running.leave();
      await server.idle();
    });
  }

  it('has to name a number', async () => {
    for (const value of ['soon', '0', '-5']) {
      const options = { headers: { 'x-ttft-timeout-ms': value } };
      const response = await post(server, '/v1/completions', { prompt: 'x', max_tokens: 1 }, options);
      assert.equal((await refused(response, 400)).param, 'ttft_timeout_ms');
    }
  });
});

describe('a deadline', async () => {
  const server = await start(test, [...slow, '-np', '1', '-c', '500000']);

  it('ends an answer with what there is', async () => {
    const body = await answer(server, 'go on', { ...endless, timeout_ms: 1000 });
    assert.equal(body.finish, 'length');
    assert.ok(body.usage.completion_tokens > 0 && body.usage.completion_tokens < 100_000);
    assert.ok(body.text.length > 0);
    assert.equal((await server.idle()).value('chasqui_requests_finished_total', { reason: 'deadline' }), 1);
  });

  it('ends the wait in the queue, too', async () => {
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    const late = await streamChat(server, 'too late', { timeout_ms: 50 });
    await late.collect();
    assert.equal(late.text, '');
    assert.equal(late.finish, 'length');
    running.leave();
    await server.idle();
  });

  it('of all requests comes from the flag --request-timeout', async (t) => {
    const short = await start(t, [...sim, '-np', '1', '-c', '500000', '--request-timeout', '0.1']);
    const body = await answer(short, 'go on', endless);
    assert.ok(body.usage.completion_tokens < 100_000);
  });
});
