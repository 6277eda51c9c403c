// The table of compatibility is true: each field is sent, and taken or refused as it says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as test from 'node:test';

import { post, refused } from './client.mjs';
import { document, table } from './compatibility.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;

describe('compatibility', async () => {
  const server = await start(test, demo);

  for (const [route, { base, rows }] of Object.entries(table)) {
    for (const [field, value, , , here] of rows) {
      it(`${route} ${field} ${JSON.stringify(value).slice(0, 40)}: ${here}`, async () => {
        const response = await post(server, route, { ...base, [field]: value });
        if (here.startsWith('refused')) {
          const text = await response.text();
          assert.equal(response.status, 400, text);
          assert.match(text, new RegExp(field.split('.')[0]), 'it names the field');
        } else if (field === 'suffix' && response.status !== 200) {
          assert.equal((await refused(response, 400)).param, 'suffix');
        } else {
          assert.equal(response.status, 200, await response.text());
          await response.text?.call(response).catch(() => {});
        }
      });
    }
  }

  it('is in the documentation', () => {
    const file = new URL('../../docs/compatibility.md', import.meta.url);
    assert.equal(readFileSync(file, 'utf8'), document(), 'write it with node compatibility.mjs');
  });
});
