// Every body that tests/compare sends to two servers is taken, or refused, here as its list says.
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
