// More requests than slots, and more than may wait.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, retryAfter, streamChat, user } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

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
    const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '1']);
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
    const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '0']);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    await refused(await post(server, '/generate', { prompt: 'x' }), 503);
    running.leave();
    await server.idle();
    assert.ok((await ask(server, '/generate', { prompt: 'x', stream: false })).usage.completion_tokens > 0);
  });

  it('serves those first who are marked urgent', async (t) => {
    const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-wait', '0']);
    const running = await streamChat(server, 'go on', endless);
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

describe('a deadline', async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '500000']);

  it('ends an answer with what there is', async () => {
    const body = await answer(server, 'go on', { ...endless, timeout_ms: 100 });
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
