// Streams that clients come back to: cut anywhere, the bytes joined are those of the whole stream.
import assert from 'node:assert/strict';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, user } from './client.mjs';
import { connect, request } from './raw.mjs';
import { random } from './random.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));

const headers = (id, more = {}) => ({ 'content-type': 'application/json', 'x-conversation-id': id, ...more });
const chat = (fields) => JSON.stringify({ messages: user('go on'), stream: true, temperature: 0, ...fields });

// The bytes of an HTTP/1.1 body in chunks, as far as they have come.
function unchunk(bytes) {
  const parts = [];
  let at = bytes.indexOf('\r\n\r\n') + 4;
  if (at < 4) return { body: Buffer.alloc(0), ended: false };
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) break;
    const size = parseInt(bytes.subarray(at, line).toString(), 16);
    if (size === 0) return { body: Buffer.concat(parts), ended: true };
    parts.push(bytes.subarray(line + 2, Math.min(line + 2 + size, bytes.length)));
    at = line + 2 + size + 2;
    if (at > bytes.length) break;
  }
  return { body: Buffer.concat(parts), ended: false };
}

// Reads until `enough` bytes of the body have come, then cuts the socket; all of it where there are fewer.
async function readSome(server, bytes, enough) {
  const socket = await connect(server);
  socket.write(bytes);
  let all = Buffer.alloc(0);
  for await (const part of socket) {
    all = Buffer.concat([all, part]);
    const { body, ended } = unchunk(all);
    if (ended || body.length >= enough) {
      socket.destroy();
      assert.match(all.toString('latin1'), /^HTTP\/1\.1 200 /, all.toString());
      return { body: body.subarray(0, ended ? body.length : enough), ended };
    }
  }
  throw new Error(`the stream broke: ${all}`);
}

async function whole(server, id, fields) {
  const response = await server.fetch('/v1/chat/completions', { method: 'POST', headers: headers(id), body: chat(fields) });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('x-conversation-id'), id);
  return Buffer.from(await response.arrayBuffer());
}

// What differs from one answer to the next.
const plain = (bytes) => bytes.toString().replace(/"id":"[^"]+"|"created":\d+|"\w+_(ms|per_second)":[\d.e+-]+/g, '')
  .replace(/\nid: \d+/g, '').replace(/: (ping|queued)[^\n]*\n\n/g, '').replace(/,"timings":\{[^}]*\}/g, '');

describe('a stream with a name', async () => {
  const server = await start(test, [...sim, '-np', '4', '-c', '500000', '--resume-ttl', '20']);

  it('has an id on every event: the bytes up to its end', async () => {
    const bytes = await whole(server, 'ids', { max_tokens: 20 });
    let events = 0;
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf('\n\n', at) + 2;
      const event = bytes.subarray(at, end).toString();
      if (!event.startsWith(':')) {
        assert.equal(/\nid: (\d+)\n\n$/.exec(event)?.[1], String(end), event);
        ++events;
      }
      at = end;
    }
    assert.ok(events > 20);
  });

  it('is the same text as one without', async () => {
    const response = await post(server, '/v1/chat/completions', chat({ max_tokens: 30 }));
    assert.equal(response.headers.get('x-conversation-id'), null);
    const ordinary = await response.text();
    assert.ok(!ordinary.includes('\nid: '), 'who does not ask gets no ids');
    assert.equal(plain(await whole(server, 'same', { max_tokens: 30 })), plain(Buffer.from(ordinary)));
  });

  it('is a stream like any other where it has no events', async () => {
    for (const path of ['/api/chat', '/api/generate']) {
      const body = JSON.stringify({ prompt: 'x', messages: [{ role: 'user', content: 'x' }], options: { num_predict: 5 } });
      const response = await server.fetch(path, { method: 'POST', headers: headers(`lines of ${path}`.replaceAll('/', '-')), body });
      assert.equal(response.headers.get('x-conversation-id'), null);
      const lines = (await response.text()).trim().split('\n').map((line) => JSON.parse(line));
      assert.equal(lines.at(-1).done, true, path);
    }
  });

  it('is read again, byte for byte, after its end', async () => {
    const bytes = await whole(server, 'again', { max_tokens: 40 });
    const again = await server.fetch('/v1/stream?conv_id=again');
    assert.equal(again.headers.get('content-type'), 'text/event-stream');
    assert.deepEqual(Buffer.from(await again.arrayBuffer()), bytes);
    const from = Math.floor(bytes.length / 2);
    const rest = await server.fetch(`/v1/stream?conv_id=again&from=${from}`);
    assert.deepEqual(Buffer.from(await rest.arrayBuffer()), bytes.subarray(from));
    const id = Number(/\nid: (\d+)\n/.exec(bytes.toString())[1]);
    const after = await server.fetch('/v1/stream?conv_id=again', { headers: { 'last-event-id': String(id) } });
    assert.deepEqual(Buffer.from(await after.arrayBuffer()), bytes.subarray(id));
  });

  it('may be cut at any byte, 50 times', async () => {
    const { next } = random(20);
    for (let round = 0; round < 50; ++round) {
      const id = `cut-${round}`;
      const body = chat({ max_tokens: 20 + Math.floor(next() * 60) });
      const parts = [];
      let at = 0;
      let bytes = request('POST', '/v1/chat/completions',
        { ...headers(id), 'Content-Length': String(Buffer.byteLength(body)) }, body);
      for (let ended = false; !ended; ) {
        const some = await readSome(server, bytes, 1 + Math.floor(next() * 4000));
        parts.push(some.body);
        at += some.body.length;
        ended = some.ended;
        bytes = request('GET', `/v1/stream?conv_id=${id}&from=${at}`);
      }
      const all = await server.fetch(`/v1/stream?conv_id=${id}`);
      assert.deepEqual(Buffer.concat(parts), Buffer.from(await all.arrayBuffer()), `round ${round}`);
      assert.ok(Buffer.concat(parts).toString().includes('data: [DONE]'));
    }
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_kept_streams_abandoned_total'), 0);
    assert.ok(metrics.value('chasqui_kept_streams_resumed_total') > 100);
  });

  it('goes on when its request is sent again with the last id', async () => {
    const bytes = await whole(server, 'sent-again', { max_tokens: 10 });
    const id = Number(/\nid: (\d+)\n/.exec(bytes.toString())[1]);
    const before = (await server.metrics()).sum('chasqui_requests_finished_total');
    const again = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('sent-again', { 'last-event-id': String(id) }), body: chat({ max_tokens: 10 }) });
    assert.deepEqual(Buffer.from(await again.arrayBuffer()), bytes.subarray(id));
    assert.equal((await server.metrics()).sum('chasqui_requests_finished_total'), before, 'nothing was generated');
  });

  it('goes on while its session is in use', async () => {
    const { id } = await ask(server, '/v1/sessions', { text: 'go on' });
    const body = JSON.stringify({ ...endless, stream: true });
    const controller = new AbortController();
    const route = `/v1/sessions/${id}/generate`;
    const first = await server.fetch(route, { method: 'POST', headers: headers('in-session'), body, signal: controller.signal });
    assert.equal(first.status, 200);
    const reader = first.body.getReader();
    const { value } = await reader.read();
    const last = Number(/\nid: (\d+)\n/.exec(Buffer.from(value).toString())?.[1] ?? 0);
    controller.abort();
    const again = await server.fetch(route, { method: 'POST', headers: { ...headers('in-session'), 'last-event-id': String(last) }, body });
    assert.equal(again.status, 200);
    const more = await again.body.getReader().read();
    assert.match(Buffer.from(more.value).toString(), /data: /);
    await server.fetch('/v1/stream?conv_id=in-session', { method: 'DELETE' });
    await server.idle();
  });

  it('gets a name where the client has none', async () => {
    const response = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: { 'x-resumable': '1' }, body: chat({ max_tokens: 3 }) });
    const id = response.headers.get('x-conversation-id');
    assert.match(id, /^stream-\w{32}$/);
    const bytes = Buffer.from(await response.arrayBuffer());
    const again = await server.fetch(`/v1/stream?conv_id=${id}`);
    assert.deepEqual(Buffer.from(await again.arrayBuffer()), bytes);
  });

  it('can be looked up by who knows its name', async () => {
    const bytes = await whole(server, 'known', { max_tokens: 3 });
    const list = await ask(server, '/v1/streams/lookup', { conversation_ids: ['known', 'unknown'] });
    assert.equal(list.length, 1);
    const { started_at, ...rest } = list[0];
    assert.ok(Number.isInteger(started_at));
    assert.deepEqual(rest, { conversation_id: 'known', is_done: true, total_bytes: bytes.length });
    await refused(await post(server, '/v1/streams/lookup', { conversation_ids: 'known' }), 400);
  });

  it('is stopped by DELETE, and who reads it sees an end', async () => {
    const response = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('stopped'), body: chat({ ...endless, stream: true }) });
    const reader = response.body.getReader();
    await reader.read();
    assert.equal((await server.fetch('/v1/stream?conv_id=stopped', { method: 'DELETE' })).status, 204);
    let text = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value);
    assert.match(text, /data: \[DONE\]\nid: \d+\n\n$/);
    await refused(await server.fetch('/v1/stream?conv_id=stopped'), 404);
    await refused(await server.fetch('/v1/stream?conv_id=stopped', { method: 'DELETE' }), 404);
    await server.idle();
  });

  it('takes the place of one of the same name', async () => {
    const first = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('twice'), body: chat({ ...endless, stream: true }) });
    await first.body.getReader().read();
    const second = await whole(server, 'twice', { max_tokens: 3 });
    const again = await server.fetch('/v1/stream?conv_id=twice');
    assert.deepEqual(Buffer.from(await again.arrayBuffer()), second);
    await server.idle();
  });

  it('says what is wrong with a name or a place', async () => {
    await whole(server, 'place', { max_tokens: 3 });
    for (const [target, status, param] of [
      ['/v1/stream', 400, 'conv_id'],
      ['/v1/stream?conv_id=nowhere', 404, 'conv_id'],
      ['/v1/stream?conv_id=place&from=-1', 400, 'from'],
      ['/v1/stream?conv_id=place&from=99999999', 400, 'from'],
      ['/v1/stream?conv_id=place&from=x', 400, 'from'],
    ]) {
      const error = await refused(await server.fetch(target), status);
      assert.equal(error.param, param);
    }
    const long = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('x'.repeat(300)), body: chat({}) });
    assert.equal((await refused(long, 400)).param, 'X-Conversation-Id');
  });

  it('does not outlive its client when it has no name', async () => {
    const before = (await server.metrics()).value('chasqui_requests_finished_total', { reason: 'cancelled' });
    const controller = new AbortController();
    const response = await post(server, '/v1/chat/completions', chat({ ...endless, stream: true }),
      { signal: controller.signal });
    await response.body.getReader().read();
    controller.abort();
    await server.until((m) => m.value('chasqui_requests_finished_total', { reason: 'cancelled' }) === before + 1);
    await server.idle();
  });
});

describe('limits of streams with names', async () => {
  it('ends a generation that no client comes back to', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '500000', '--resume-ttl', '1']);
    const controller = new AbortController();
    const response = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('left'), body: chat({ ...endless, stream: true }), signal: controller.signal });
    await response.body.getReader().read();
    controller.abort();
    const metrics = await server.until((m) => m.value('chasqui_kept_streams_abandoned_total') === 1);
    assert.equal(metrics.sum('chasqui_requests_refused_total'), 0);
    await server.until((m) => m.value('chasqui_kept_streams') <= 1);
    await server.until((m) => m.value('chasqui_kept_streams') === 0, 'what is over is forgotten, too');
  });

  it('keeps only the last bytes, and says which', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '500000', '--resume-bytes', '1024']);
    const live = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('small'), body: chat({ max_tokens: 40 }) });
    // Who is slower than the stream is cut off, and may go on from what is left.
    await live.arrayBuffer().catch(() => {});
    let from = 0;
    const read = async () => {
      const error = await refused(await server.fetch('/v1/stream?conv_id=small&from=0'), 409);
      from = Number(/from byte (\d+) on/.exec(error.message)[1]);
      const response = await server.fetch(`/v1/stream?conv_id=small&from=${from}`);
      return response.ok ? Buffer.from(await response.arrayBuffer().catch(() => Buffer.alloc(0))) : Buffer.alloc(0);
    };
    while (!(await read()).toString().includes('data: [DONE]'));
    const rest = await read();  // all of it is there now, and nothing comes behind it
    assert.ok(from > 3000);
    assert.equal(rest.length, 1024);
    assert.ok(rest.toString().endsWith(`data: [DONE]\nid: ${from + 1024}\n\n`), rest.toString());
  });

  it('refuses more than are kept, and shows its limits', async (t) => {
    const server = await start(t, [...sim, '-np', '4', '-c', '500000', '--resume-streams', '1']);
    const { limits } = await (await server.fetch('/props')).json();
    assert.equal(limits.resume_streams, 1);
    assert.equal(limits.resume_ttl_seconds, 60);
    const running = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('one'), body: chat({ ...endless, stream: true }) });
    await running.body.getReader().read();
    const second = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('two'), body: chat({ max_tokens: 2 }) });
    assert.match((await refused(second, 503)).message, /X-Conversation-Id/);
    await server.fetch('/v1/stream?conv_id=one', { method: 'DELETE' });
    await whole(server, 'two', { max_tokens: 2 });
    await whole(server, 'three', { max_tokens: 2 });
    await refused(await server.fetch('/v1/stream?conv_id=two'), 404);
  });

  it('shows a stream to its tenant only', async (t) => {
    const file = path.join(folder, 'keys');
    writeFileSync(file, 'key-of-ann name=ann\nkey-of-bob name=bob\n');
    const server = await start(t, [...sim, '-np', '2', '-c', '500000', '--api-key-file', file]);
    server.key = 'key-of-ann';
    const as = (key, more) => ({ authorization: `Bearer ${key}`, ...more });
    const mine = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: as('key-of-ann', headers('secret')), body: chat({ max_tokens: 3 }) });
    const bytes = Buffer.from(await mine.arrayBuffer());
    for (const method of ['GET', 'DELETE']) {
      await refused(await server.fetch('/v1/stream?conv_id=secret', { method, headers: as('key-of-bob') }), 404);
    }
    await refused(await server.fetch('/v1/stream?conv_id=secret'), 401);
    const list = await post(server, '/v1/streams/lookup', { conversation_ids: ['secret'] }, { headers: as('key-of-bob') });
    assert.deepEqual(await list.json(), []);
    const again = await server.fetch('/v1/stream?conv_id=secret', { headers: as('key-of-ann') });
    assert.deepEqual(Buffer.from(await again.arrayBuffer()), bytes);
  });

  it('ends with the server, also without a reader', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '500000', '--drain-time', '1']);
    const controller = new AbortController();
    const response = await server.fetch('/v1/chat/completions',
      { method: 'POST', headers: headers('left'), body: chat({ ...endless, stream: true }), signal: controller.signal });
    await response.body.getReader().read();
    controller.abort();
    await server.until((m) => m.value('chasqui_http_clients_gone_total') === 1);
    server.signal('SIGTERM');
    assert.deepEqual(await server.ended, { code: 0, signal: null }, server.stderr);
  });
});
