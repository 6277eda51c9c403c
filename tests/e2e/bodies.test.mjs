// Every body that tests/compare sends to two servers is taken, or refused, here as its list says; and with the headers
// that change how an answer is delivered it is answered, too.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { bodies, parsed } from './bodies.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

describe('the bodies of the comparison with llama-server', async () => {
  const server = await start(test, [...demo, '--slots', '-c', '4096', '-np', '2']);
  for (const { name, method, path, body, status } of bodies) {
    it(`${name}: ${status}`, async () => {
      const headers = { 'content-type': 'application/json' };
      const response = await server.fetch(path, { method, headers, body: body && JSON.stringify(body) });
      const text = await response.text();
      assert.equal(response.status, status, text);
      if (status >= 400) assert.ok(parsed(text).error, text);
    });
  }
});

// Whatever a route makes of them.
const headersOf = (number) => ({
  'content-type': 'application/json', 'accept-encoding': 'gzip', traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`,
  'x-request-id': `number-${number}`, 'x-session-id': 'one', 'x-ttft-timeout-ms': '60000',
  ...(number % 2 ? { 'idempotency-key': `key-${number}` } : {}), ...(number % 3 ? { 'x-resumable': '1' } : {}),
  ...(number % 5 ? {} : { 'x-conversation-id': `conversation-${number}` }),
});

describe('the bodies with headers that change the delivery, as streams and whole', async () => {
  const server = await start(test, [...demo, '--slots', '-c', '4096', '-np', '2']);
  for (const stream of [true, false]) {
    let number = 0;
    for (const { name, method, path, body } of bodies.filter((each) => each.body && typeof each.body === 'object')) {
      const headers = headersOf(++number + (stream ? 0 : 10_000));
      it(`${name}, ${stream ? 'streamed' : 'whole'}, ${Object.keys(headers).slice(6).join(', ')}`, async () => {
        const response = await server.fetch(path, { method, headers, body: JSON.stringify({ ...body, stream }) });
        const text = await response.text();
        assert.ok(response.status < 500 || response.status === 501, `${response.status}: ${text}`);
        assert.equal((await server.fetch('/health')).status, 200);
      });
    }
  }
});
