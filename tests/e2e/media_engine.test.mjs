// Projectors: which file is used, and what is said of one that cannot be.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { hostileMedia } from './hostile_media.mjs';
import { run, start, testModel } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const model = testModel('24m-f16');
const projector = path.join(path.dirname(model), 'projectors', 'mmproj-random-24m.gguf');
const few = ['--ctx-size', '1024', '--parallel', '2'];

const families = async (server) => {
  const page = await (await fetch(`${server.url}/metrics?names=chasqui`)).text();
  return page.includes('chasqui_media_encoded_total');
};

describe('a projector', async () => {
  it('that is none is refused before the model is loaded', async () => {
    const broken = path.join(folder, 'broken.gguf');
    writeFileSync(broken, 'no projector');
    for (const [args, message] of [
      [['--mmproj', path.join(folder, 'missing.gguf')], /--mmproj: .*missing\.gguf/],
      [['--mmproj', broken], /--mmproj: .*broken\.gguf/],
      [['--mmproj', model], /--mmproj: .*is no projector but a model \(llama\)/],
      [['--mmproj', projector, '--image-min-tokens', '9', '--image-max-tokens', '3'], /--image-min-tokens must not be/],
    ]) {
      const { code, stderr } = await run(['serve', '-m', model, ...few, ...args]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });

  it('that is named is loaded, and counted', async (t) => {
    const server = await start(t, ['-m', model, ...few, '--mmproj', projector]);
    assert.ok(await families(server));
  });

  it('takes broken files for what they are', async (t) => {
    const server = await start(t, ['-m', model, '-np', '4', '-c', '8192', '--mmproj', projector, '--cache-ram', '0']);
    const { seen } = await hostileMedia(server, 200, 3);
    assert.ok(seen[200] > 0 && seen[400] > 0, JSON.stringify(seen));
  });

  it('that lies beside the only model of a folder is found, unless it is not wanted', async (t) => {
    const beside = path.join(folder, 'beside');
    mkdirSync(beside);
    copyFileSync(model, path.join(beside, 'model.gguf'));
    copyFileSync(projector, path.join(beside, 'mmproj-model.gguf'));
    const args = ['-m', path.join(beside, 'model.gguf'), ...few];
    assert.ok(await families(await start(t, args)));
    assert.ok(!(await families(await start(t, [...args, '--no-mmproj']))));
  });

  it('that was found and does not fit leaves the model as it is', async (t) => {
    const other = path.join(folder, 'other');
    mkdirSync(other);
    copyFileSync(testModel('swa'), path.join(other, 'model.gguf'));
    copyFileSync(projector, path.join(other, 'mmproj-model.gguf'));
    const server = await start(t, ['-m', path.join(other, 'model.gguf'), ...few]);
    assert.ok(!(await families(server)));
    const { code, stderr } = await run(['serve', '-m', path.join(other, 'model.gguf'), ...few, '--mmproj', projector]);
    assert.notEqual(code, 0);
    assert.match(stderr, /mismatch between text model/);
  });
});
