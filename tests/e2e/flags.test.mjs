// The reference of flags is what the binary says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as test from 'node:test';

import { run } from './server.mjs';

const { describe, it } = test;
const document = readFileSync(new URL('../../docs/flags.md', import.meta.url), 'utf8');

describe('the reference of flags', async () => {
  it('is what the binary prints, whatever is set', async () => {
    const { code, stdout } = await run(['config', '--flags']);
    assert.equal(code, 0);
    assert.equal(stdout, document);
    const other = await run(['config', '--flags', '--port', '1234'], { CHASQUI_QUEUE_REQUESTS: '7' });
    assert.equal(other.stdout, document);
  });

  it('has every flag and every variable of the help', async () => {
    const { stdout: help } = await run(['serve', '--help']);
    const flags = [...help.matchAll(/^  (-\S+)/gm)].flatMap(([, names]) => names.split(','));
    const variables = [...help.matchAll(/\(Env:(\w+)\)/g)].map(([, name]) => name);
    assert.ok(flags.length > 100 && variables.length > 90, 'the help was read');
    for (const flag of flags) {
      if (!['-h', '--help', '--usage', '--version'].includes(flag)) assert.ok(document.includes(`\`${flag}\``), flag);
    }
    for (const name of variables) assert.ok(document.includes(`\`${name}\``), name);
  });

  it('gives what each takes, and its default', () => {
    assert.match(document, /^\| `--port` \| `PORT`, 0 to 65535 \| `8080` \| `LLAMA_ARG_PORT` \| /m);
    assert.match(document, /^\| `--checkpoint-every` \| `N`, 0 or 64 to \d+ \| `4096` \| /m);
    assert.match(document, /^\| `--flash-attn` \| `auto\\\|off\\\|on` \| `auto` \| /m);
    assert.ok(!document.includes('`[]`'));
  });
});
