// SIGTERM while both threads of the pool compute what a client has sent, fifty streams run and a worker hangs for an hour:
// the process ends, and under --supervise both do. How long that takes: node stop_hostile.mjs.
import * as test from 'node:test';

import { stopAtWorst } from './stop_hostile.mjs';

const { describe, it } = test;

describe('a server at its worst', { skip: process.platform !== 'linux' && '/proc is needed' }, async () => {
  for (const supervise of [false, true]) {
    for (const twice of [false, true]) {
      it(`ends ${twice ? 'at a second SIGTERM' : 'after its drain time'}${supervise ? ', supervised' : ''}`, async () => {
        await stopAtWorst({ supervise, twice });
      });
    }
  }
});
