// Backends of ggml beside the binary (docs/backends.md), with libraries of tests/backend that have no device.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';

import { binary } from './server.mjs';

const libraries = path.resolve(import.meta.dirname, '../../build/test_backends');

// The binary in a folder bin of its own, so that there is a lib beside it.
function installed(t, ...kinds) {
  const prefix = mkdtempSync(path.join(os.tmpdir(), 'chasqui-backends-'));
  t.after(() => rmSync(prefix, { recursive: true, force: true }));
  const folder = path.join(prefix, 'lib/chasqui/ggml-0.5.0');
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  mkdirSync(path.join(prefix, 'bin'));
  const chasqui = path.join(prefix, 'bin/chasqui');
  try {
    linkSync(binary, chasqui);
  } catch {
    copyFileSync(binary, chasqui); // on another file system
  }
  for (const kind of kinds) {
    const file = path.join(folder, `libggml-test-${kind}.so`);
    copyFileSync(path.join(libraries, `libggml-test-${kind}.so`), file);
    chmodSync(file, 0o644);
  }
  return { chasqui, folder };
}

const findings = (chasqui) => {
  const { stdout, stderr } = spawnSync(chasqui, ['doctor', '--json', '--port', '0'], { encoding: 'utf8', timeout: 60_000 });
  return JSON.parse(stdout || stderr).checks.filter(({ check }) => check === 'backend');
};

describe('backends beside the binary', () => {
  it('are named by doctor, with what keeps one from being loaded', (t) => {
    const { chasqui, folder } = installed(t, 'good', 'none', 'old');
    const found = findings(chasqui);
    assert.deepEqual(found.map(({ level }) => level), ['ok', 'warning', 'warning']);
    assert.equal(found[0].found, `${folder}/libggml-test-good.so: none`);
    assert.match(found[1].found, /libggml-test-none\.so is not loaded: it is no backend of ggml/);
    assert.match(found[2].found, /libggml-test-old\.so is not loaded: it is of another ggml/);
  });

  it('are not loaded from a folder that all users may write', (t) => {
    const { chasqui, folder } = installed(t, 'good');
    chmodSync(folder, 0o777);
    assert.match(findings(chasqui)[0].found, /may be written by all users/);
  });

  it('stand in the log of a start, which goes on without those that are not loaded', async (t) => {
    const { chasqui, folder } = installed(t, 'good', 'none');
    const server = spawn(chasqui, ['serve', '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
    let log = '';
    server.stderr.setEncoding('utf8').on('data', (text) => { log += text; });
    for await (const text of server.stdout.setEncoding('utf8')) if (text.includes('serving ')) break;
    server.kill('SIGTERM');
    const [code] = await once(server, 'close');
    assert.equal(code, 0, log);
    const lines = log.trim().split('\n').map((line) => JSON.parse(line));
    const good = lines.find(({ message }) => message === 'backend loaded');
    assert.deepEqual([good.level, good.library, good.devices], ['info', `${folder}/libggml-test-good.so`, 'none']);
    const bad = lines.find(({ message }) => message === 'backend not loaded');
    assert.deepEqual([bad.level, bad.library], ['warning', `${folder}/libggml-test-none.so`]);
  });
});
