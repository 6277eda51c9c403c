// Bytes that are not the HTTP that they should be: refused with a status that says why, and the server is unharmed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as test from 'node:test';

import { answer, checkError, post, refused } from './client.mjs';
import { connect, exchange, parse, refusal, request } from './raw.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;
const get = (target, headers) => request('GET', target, headers);
const host = 'Host: localhost\r\n';
const inChunks = (body) => request('POST', '/tokenize', { 'Transfer-Encoding': 'chunked' }, body);

const malformed = [
  ['nonsense', 'nonsense\r\n\r\n', 400],
  ['a TLS greeting', Buffer.from('1603010200010001fc03030d0a0d0a', 'hex'), 400],
  ['no version', `GET /health\r\n${host}\r\n`, 400],
  ['HTTP/2', `GET /health HTTP/2.0\r\n${host}\r\n`, 505],
  ['an unknown method', `BREW /health HTTP/1.1\r\n${host}\r\n`, 501],
  ['no host', 'GET /health HTTP/1.1\r\n\r\n', 400],
  ['two hosts', `GET /health HTTP/1.1\r\n${host}${host}\r\n`, 400],
  ['a malformed escape', get('/%zz'), 400],
  ['a bare line feed', 'GET /health HTTP/1.1\nHost: localhost\n\n', 400],
  ['a NUL in a header', get('/health', { 'X-Odd': 'a\u0000b' }), 400],
  ['a header without a colon', `GET /health HTTP/1.1\r\n${host}oddity\r\n\r\n`, 400],
  ['a space before the colon', `GET /health HTTP/1.1\r\n${host}Odd : x\r\n\r\n`, 400],
  ['a folded header', `GET /health HTTP/1.1\r\n${host}Odd: x\r\n y\r\n\r\n`, 400],
  ['a length that is no number', request('POST', '/tokenize', { 'Content-Length': 'many' }), 400],
  ['a negative length', request('POST', '/tokenize', { 'Content-Length': '-1' }), 400],
  ['two lengths', `POST /tokenize HTTP/1.1\r\n${host}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400],
  ['a length beside chunks', inChunks('0\r\n\r\n').replace('\r\n', '\r\nContent-Length: 2\r\n'), 400],
  ['an unknown encoding', request('POST', '/tokenize', { 'Transfer-Encoding': 'gzip, chunked' }, '0\r\n\r\n'), 501],
  ['a chunk without a size', inChunks('xyz\r\n{}\r\n0\r\n\r\n'), 400],
  ['a chunk that is too long', inChunks('2\r\n{}{}\r\n0\r\n\r\n'), 400],
  ['a huge chunk size', inChunks(`${'f'.repeat(17)}\r\n`), 400],
  ['an unknown expectation', request('POST', '/tokenize', { Expect: 'miracles', 'Content-Length': 2 }, '{}'), 417],
  ['a long request line', get(`/${'x'.repeat(9000)}`), 414],
  ['a request line without end', `GET /${'x'.repeat(9000)}`, 414],
  ['a large header', get('/health', { 'X-Large': 'x'.repeat(17_000) }), 431],
  ['many headers', get('/health', Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`X-${i}`, 'x']))), 431],
  ['a body that is announced too large', request('POST', '/tokenize', { 'Content-Length': 40 * 1024 * 1024 }), 413],
];

describe('instead of HTTP', async () => {
  const server = await start(test, sim);

  for (const [what, bytes, status] of malformed) {
    it(`${what} is refused with ${status}`, async () => {
      const { error, headers } = await refusal(server, bytes, status);
      assert.equal(error.code, status);
      assert.equal(headers.connection, 'close');
      assert.equal(Number(headers['content-length']), Buffer.byteLength(JSON.stringify({ error })));
      assert.equal((await server.fetch('/health')).status, 200);
    });
  }

  it('a body that becomes too large in chunks is refused with 413, while it is sent', async () => {
    const socket = await connect(server);
    const parts = [];
    socket.on('data', (part) => parts.push(part));
    const ended = Promise.race([once(socket, 'end'), once(socket, 'close')]);
    socket.write(inChunks(''));
    const chunk = Buffer.alloc(0x100000 + 2, ' ');
    chunk.write('\r\n', 0x100000);
    for (let i = 0; i < 40 && !socket.destroyed && parts.length === 0; ++i) {
      socket.write('100000\r\n');
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), ended]);
    }
    await ended;
    socket.destroy();
    const response = parse(Buffer.concat(parts).toString());
    assert.equal(response.status, 413);
    checkError(JSON.parse(response.body), 413);
    await server.until((metrics) => metrics.value('chasqui_http_body_bytes') === 0);
  });

  it('half a request and the end of the connection are nothing', async () => {
    const whole = request('POST', '/tokenize', { 'Content-Length': 15 }, '{"content":"x"}');
    for (let cut = 1; cut < whole.length; cut += 7) {
      assert.equal(await exchange(server, whole.slice(0, cut), { end: true }), '');
    }
    await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') === 1, 'only /metrics is running');
  });

  it('a request that comes byte by byte is answered', async () => {
    const socket = await connect(server);
    socket.setNoDelay(true);
    const parts = [];
    socket.on('data', (part) => parts.push(part));
    for (const byte of request('POST', '/tokenize', { 'Content-Length': 15 }, '{"content":"x"}')) {
      await new Promise((resolve) => socket.write(byte, resolve));
    }
    await once(socket, 'end');
    assert.equal(parse(Buffer.concat(parts).toString()).status, 200);
  });

  it('100-continue is answered before the body is sent', async () => {
    const socket = await connect(server);
    socket.write(request('POST', '/tokenize', { Expect: '100-continue', 'Content-Length': 15 }));
    const [first] = await once(socket, 'data');
    assert.match(first.toString(), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    socket.write('{"content":"x"}');
    const [second] = await once(socket, 'data');
    assert.equal(parse(second.toString()).status, 200);
    socket.destroy();
  });

  it('pipelined requests are answered in their order', async () => {
    const one = (content, connection) => {
      const body = JSON.stringify({ messages: [{ role: 'user', content: `say: ${content}` }] });
      return request('POST', '/v1/chat/completions', { Connection: connection, 'Content-Length': body.length }, body);
    };
    const three = one('first', 'keep-alive') + one('second', 'keep-alive') + one('third', 'close');
    const text = await exchange(server, three);
    const contents = [...text.matchAll(/"content":"(\w+)"/g)].map((match) => match[1]);
    assert.deepEqual(contents, ['first', 'second', 'third']);
  });

  it('a stream for HTTP/1.0 has no chunks and ends with the connection', async () => {
    const body = JSON.stringify({ stream: true, messages: [{ role: 'user', content: 'say: old' }] });
    const head = `POST /v1/chat/completions HTTP/1.0\r\nContent-Length: ${body.length}\r\n\r\n`;
    const response = parse(await exchange(server, head + body));
    assert.equal(response.status, 200);
    assert.ok(!('transfer-encoding' in response.headers));
    assert.ok(response.body.startsWith('data: '));
    assert.ok(response.body.endsWith('data: [DONE]\n\n'));
  });

  it('has harmed no other client', async () => {
    assert.equal((await answer(server, 'say: unharmed')).text, 'unharmed');
  });
});

describe('a path', async () => {
  const server = await start(test, sim);

  it('that does not exist is answered with 404 in JSON', async () => {
    const targets = ['/nothing', '/v1', '/v1/chat/completion', '/health/', '/HEALTH', '/..%2fetc/passwd', '/v1/embedding'];
    for (const target of targets) {
      const error = await refused(await server.fetch(target), 404);
      assert.equal(error.type, 'not_found_error');
      await refused(await post(server, target, {}), 404);
    }
  });

  it('of another method is answered with 405, and Allow names the right ones', async () => {
    for (const [method, target, allowed] of [
      ['GET', '/v1/chat/completions', ['POST']],
      ['DELETE', '/generate', ['POST']],
      ['POST', '/health', ['GET', 'HEAD']],
      ['PUT', '/metrics', ['GET', 'HEAD']],
    ]) {
      const response = await server.fetch(target, { method });
      assert.deepEqual(response.headers.get('allow').split(', ').sort(), allowed);
      await refused(response, 405);
    }
  });

  it('may have a query, and be asked for with HEAD', async () => {
    assert.equal((await server.fetch('/health?verbose=1')).status, 200);
    const response = await server.fetch('/health', { method: 'HEAD' });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-length'), '15');
    assert.equal(await response.text(), '');
  });
});
