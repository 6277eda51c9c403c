// Every row of the error table of docs/api.md is provoked once: status, type, and whether it says when to come back.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as test from 'node:test';

import { ask, endless, post, refused, retryAfter, streamChat, user } from './client.mjs';
import { refusal, request } from './raw.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;

// "status type" of each.
function documentedRows() {
  const text = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
  const table = text.slice(text.indexOf('\n## Errors\n'), text.indexOf('\n## Overload\n'));
  const rows = [...table.matchAll(/^\| ([\d, ]+) \| `(\w+)` \|/gm)];
  return rows.flatMap(([, statuses, type]) => statuses.split(', ').map((status) => `${status} ${type}`));
}

describe('the error table', async () => {
  // Slow steps: the one slot is not full before what comes second is refused.
  const server = await start(test, [...sim, '--sim-step', '10', '-np', '1', '-c', '2000', '--api-key', 'secret',
    '--tenant-requests', '1']);
  server.key = 'secret';
  const headers = { authorization: 'Bearer secret' };
  const send = (path, body, more = headers) => post(server, path, body, { headers: more });
  const seen = new Set();
  const row = (what, status, type, provoke, retry = false) => it(`${status} ${type}: ${what}`, async () => {
    seen.add(`${status} ${type}`);
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
  row('a wrong key', 401, 'authentication_error', () => send('/generate', { prompt: 'x' }, { 'x-api-key': 'wrong' }));
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
  row('an Idempotency-Key of another request', 422, 'invalid_request_error', async () => {
    const sent = (max_tokens) => send('/generate', { prompt: 'x', max_tokens }, { ...headers, 'idempotency-key': 'k' });
    const first = await sent(1);
    assert.equal(first.status, 200);
    await first.text();  // its stream has ended
    const response = await sent(2);
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

  row('a wrong method', 405, 'invalid_request_error', () => send('/health', {}));
  row('what was not asked for at the start', 501, 'not_supported_error', () => send('/slots/0?action=save', {}));

  // What no decent client sends.
  const raw = (what, status, type, bytes) => it(`${status} ${type}: ${what}`, async () => {
    seen.add(`${status} ${type}`);
    assert.equal((await refusal(server, bytes, status)).error.type, type);
  });
  raw('half a head', 408, 'invalid_request_error', 'GET /health HTTP/1.1\r\nHost: loc');
  raw('a body that is too large', 413, 'invalid_request_error',
    request('POST', '/tokenize', { ...headers, 'Content-Length': 64 * 1024 * 1024 }));
  raw('a long request line', 414, 'invalid_request_error', request('GET', `/${'x'.repeat(9000)}`));
  raw('a large header', 431, 'invalid_request_error', request('GET', '/health', { 'X-Large': 'x'.repeat(17_000) }));
  raw('a compressed body', 415, 'invalid_request_error',
    request('POST', '/tokenize', { ...headers, 'Content-Encoding': 'gzip', 'Content-Length': 1 }, 'x'));
  raw('another HTTP', 505, 'server_error', 'GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n');

  it('421 invalid_request_error: a name that leads to this machine', async (t) => {
    seen.add('421 invalid_request_error');
    const open = await start(t, sim);
    const { error } = await refusal(open, request('GET', '/health', { Host: 'evil.example' }), 421);
    assert.equal(error.type, 'invalid_request_error');
  });

  it('403 permission_error: to erase what tenants share', async (t) => {
    seen.add('403 permission_error');
    const shared = await start(t, [...sim, '--cache-shared', '--api-key', 'secret']);
    shared.key = 'secret';
    const response = await post(shared, '/slots/0?action=erase', {}, { headers });
    assert.equal((await refused(response, 403)).type, 'permission_error');
  });

  it('500 server_error: a worker that hangs', async (t) => {
    seen.add('500 server_error');
    const stuck = await start(t, [...sim, '--stuck-after', '0.5']);
    const response = await post(stuck, '/v1/chat/completions', { messages: user('hang: 2') });
    assert.equal((await refused(response, 500)).type, 'server_error');
  });

  it('503 unavailable_error: a full queue, and when to come back', async (t) => {
    seen.add('503 unavailable_error');
    const full = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '0']);
    const running = await streamChat(full, 'go on', endless);
    await running.nextText();
    running.readOn();
    const response = await post(full, '/v1/chat/completions', { messages: user('x') });
    assert.equal((await refused(response, 503)).type, 'unavailable_error');
    retryAfter(response);
    running.leave();
    await full.idle();
  });

  it('has no other rows, and neither has the OpenAPI document', async () => {
    seen.add('507 server_error'); // a full disk: session_dir.test.mjs
    assert.deepEqual([...seen].sort(), documentedRows().sort());
    const document = await (await server.fetch('/openapi.json')).json();
    for (const name of Object.keys(document.components.responses)) {
      const status = name.replace('Error', '');
      assert.ok([...seen].some((row) => row.startsWith(status)), name);
    }
  });
});
