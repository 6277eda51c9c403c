// Broken model files. The long run is `node gguf_mutants.mjs 3000`.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { tryMutants } from './gguf_mutants.mjs';

test.it('120 broken models are refused with a line that names the file, or served; none ends the process with a signal', async () => {
  const seen = await tryMutants(120, 7);
  assert.deepEqual(seen.wrong, []);
  assert.ok(seen.refused > 40, JSON.stringify(seen));
});
