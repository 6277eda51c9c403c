// Every row of the error table that a client can provoke, once: status, type, and whether it says when to come back.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { ask, endless, post, refused, retryAfter, streamChat, user } from './client.mjs';
import { parse, exchange, request } from './raw.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;

// What no client can do: 403 is for folders at the start, 500 for faults of ours and of the model.
const notFromOutside = [403, 500];

describe('the error table', async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '2000', '--api-key', 'secret', '--tenant-requests', '1']);
  server.key = 'secret';
  const headers = { authorization: 'Bearer secret' };
  const send = (path, body, more = headers) => post(server, path, body, { headers: more });
  const seen = new Set();
  const row = (what, status, type, provoke, retry = false) => it(`${status} ${type}: ${what}`, async () => {
    seen.add(status);
    const response = await provoke();
    const error = await refused(response, status);
    assert.equal(error.type, type);
    if (retry) retryAfter(response);
    else assert.equal(response.headers.get('retry-after'), null);
  });

  row('a field with a wrong value', 400, 'invalid_request_error', () => send('/generate', { prompt: 'x', temperature: 'hot' }));
  row('a prompt that fits no slot', 400, 'exceed_context_size_error',
    () => send('/v1/completions', { prompt: Array(2500).fill(300) }));
  row('no key', 401, 'authentication_error', () => send('/generate', { prompt: 'x' }, {}));
  row('a wrong key', 401, 'authentication_error', () => send('/generate', { prompt: 'x' }, { 'x-api-key': 'guess' }));
  row('no such path', 404, 'not_found_error', () => server.fetch('/nowhere', { headers }));
  row('no such response', 404, 'not_found_error', () => server.fetch('/v1/responses/resp_x', { headers }));
  row('a session that is busy', 409, 'conflict_error', async () => {
    const { id } = await ask(server, '/v1/sessions', { prompt: 'x' }, { headers });
    const running = await send(`/v1/sessions/${id}/generate`, { ...endless, stream: true });
    assert.equal(running.status, 200);
    const reader = running.body.getReader();
    await reader.read();
    const response = await send(`/v1/sessions/${id}/append`, { input: 'y' });
    await reader.cancel();
    await server.idle();
    return response;
  });
  row('more requests than one tenant may have', 429, 'rate_limit_error', async () => {
    const running = await streamChat(server, 'go on', endless, { headers });
    await running.nextText();
    const response = await send('/generate', { prompt: 'x' });
    running.leave();
    await server.idle();
    return response;
  }, true);

  it('413 invalid_request_error: a body that is too large', async () => {
    seen.add(413);
    const response = parse(await exchange(server,
      request('POST', '/tokenize', { ...headers, 'Content-Length': 64 * 1024 * 1024 })));
    assert.equal(response.status, 413);
    assert.equal(JSON.parse(response.body).error.type, 'invalid_request_error');
  });

  it('503 unavailable_error: a full queue, and when to come back', async (t) => {
    seen.add(503);
    const full = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '0']);
    const running = await streamChat(full, 'go on', endless);
    await running.nextText();
    const response = await post(full, '/v1/chat/completions', { messages: user('x') });
    assert.equal((await refused(response, 503)).type, 'unavailable_error');
    retryAfter(response);
    running.leave();
    await full.idle();
  });

  it('has no other rows', async () => {
    const document = await (await server.fetch('/openapi.json')).json();
    const rows = Object.keys(document.components.responses).map((name) => Number(name.replace('Error', '')));
    assert.deepEqual(rows.filter((status) => !notFromOutside.includes(status)).sort(), [...seen].sort());
  });
});
