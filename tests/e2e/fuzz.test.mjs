// Mutated bodies for all POST routes. The long run is `node fuzz_bodies.mjs 100000`.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { flags, fuzz } from './fuzz_bodies.mjs';
import { start } from './server.mjs';

test.it('2,000 mutated bodies are answered with 2xx or 4xx, and the server is unharmed', async (t) => {
  const server = await start(t, flags);
  const { wrong, statuses, paths } = await fuzz(server, 2000, 1);
  assert.deepEqual(wrong, []);
  assert.ok(paths.length > 15, `${paths}`);
  assert.ok(statuses[200] > 200 && statuses[400] > 200, JSON.stringify(statuses));
});
