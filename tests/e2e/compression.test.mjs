// Answers in gzip for clients that ask for it: large ones that do not stream, and nothing else.
import assert from 'node:assert/strict';
import http from 'node:http';
import * as test from 'node:test';
import { gunzipSync } from 'node:zlib';

import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

// Without what fetch does by itself: the answer as it was sent.
function send(server, method, path, headers = {}, body = undefined) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port: server.port, method, path, headers }, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) }));
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const json = { 'content-type': 'application/json' };
const gzip = { 'accept-encoding': 'br, gzip' };
const post = (server, path, body, headers = {}) => send(server, 'POST', path, { ...json, ...headers }, body);

describe('compression', async () => {
  const server = await start(test, demo);
  const texts = (count) => ({ input: Array.from({ length: count }, (_, i) => `text ${i}`) });

  it('is done where it is asked for', async () => {
    for (const count of [16, 200]) {  // on the loop, and in the pool
      const plain = await post(server, '/v1/embeddings', texts(count));
      assert.equal(plain.headers['content-encoding'], undefined);
      assert.equal(plain.headers.vary, 'Accept-Encoding');
      const zipped = await post(server, '/v1/embeddings', texts(count), gzip);
      assert.equal(zipped.headers['content-encoding'], 'gzip');
      assert.equal(Number(zipped.headers['content-length']), zipped.body.length);
      assert.ok(zipped.body.length < plain.body.length * 0.7, `${zipped.body.length} of ${plain.body.length}`);
      assert.deepEqual(JSON.parse(gunzipSync(zipped.body)), JSON.parse(plain.body));
    }
    const metrics = await server.metrics();
    assert.ok(metrics.sum('chasqui_http_compressed_total') >= 2);
    assert.ok(metrics.sum('chasqui_http_compressed_saved_bytes_total') > 10_000);
  });

  it('is left out where nothing is to be had from it', async () => {
    for (const [method, path, headers, body] of [
      ['GET', '/health', gzip], ['GET', '/metrics', gzip], ['GET', '/openapi.json', { 'accept-encoding': 'gzip;q=0' }], ['GET', '/openapi.json', { 'accept-encoding': 'identity' }],
      ['HEAD', '/openapi.json', gzip], ['POST', '/v1/chat/completions', { ...json, ...gzip }, { messages: [{ role: 'user', content: 'x' }], stream: true, max_tokens: 200 }],
    ]) {
      const answer = await send(server, method, path, headers, body);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-encoding'], undefined, `${method} ${path}`);
    }
  });

  it('takes nothing from the answers of a connection that is kept', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 5; ++i) {
      const text = await new Promise((resolve, reject) => {
        http.get({ host: '127.0.0.1', port: server.port, path: '/openapi.json', headers: gzip, agent }, (response) => {
          const pieces = [];
          response.on('data', (piece) => pieces.push(piece)).on('end', () => resolve(gunzipSync(Buffer.concat(pieces)).toString()));
        }).on('error', reject);
      });
      assert.equal(JSON.parse(text).openapi.slice(0, 2), '3.');
    }
    agent.destroy();
  });

  it('is no answer to a compressed request, which stays refused', async () => {
    const answer = await send(server, 'POST', '/v1/chat/completions', { ...json, 'content-encoding': 'gzip' }, {});
    assert.equal(answer.status, 415);
  });
});

describe('--no-compression', async () => {
  const server = await start(test, [...sim, '--no-compression']);

  it('sends answers as they are', async () => {
    assert.equal((await send(server, 'GET', '/openapi.json', gzip)).headers['content-encoding'], undefined);
  });
});
