// deploy/haproxy/haproxy.cfg as it is, in front of three machines: when the cable of one is cut, no request fails, and
// it gets requests again when it is there. Times are measured by bench/fleet.py, which this runs, and not judged here.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';

import { binary, hangAfter } from '../e2e/server.mjs';

it('a machine that cannot be reached is left out, and taken back', async () => {
  const script = path.join(import.meta.dirname, '../../bench/fleet.py');
  const env = { ...process.env, CHASQUI: binary, SIZE: 'tiny' };
  const { stdout } = await promisify(execFile)(script, ['partition'], { env, timeout: 2 * hangAfter });
  assert.match(stdout, /a cable is cut, 2 times/);
});
