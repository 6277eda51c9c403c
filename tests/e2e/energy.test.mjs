// The energy of GPUs in `joules` (docs/tracing.md): a backend that says it is a GPU (tests/backend/gpu.c), and in the
// place of NVIDIA's library one whose counters go on by 10 J at each reading (tests/libraries/fake_nvml.c).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';

import { binary } from './server.mjs';

const build = path.resolve(import.meta.dirname, '../../build');
const metric = 'chasqui_energy_joules_total';

// A server with that GPU, and with NVML of this kind; without one there is none.
async function serve(t, { nvml, gpu = true, flags = [] }) {
  const prefix = mkdtempSync(path.join(os.tmpdir(), 'chasqui-energy-'));
  t.after(() => rmSync(prefix, { recursive: true, force: true }));
  const chasqui = path.join(prefix, 'bin/chasqui');
  const backends = path.join(prefix, 'lib/chasqui/ggml-0.5.0');
  mkdirSync(backends, { recursive: true, mode: 0o755 });
  mkdirSync(path.dirname(chasqui));
  try {
    linkSync(binary, chasqui);
  } catch {
    copyFileSync(binary, chasqui); // on another file system
  }
  const backend = path.join(backends, 'libggml-test-gpu.so');
  if (gpu) {
    copyFileSync(path.join(build, 'test_backends/libggml-test-gpu.so'), backend);
    chmodSync(backend, 0o644);
  }
  if (nvml) copyFileSync(path.join(build, `test_libraries/nvml_${nvml}.so`), path.join(prefix, 'lib/libnvidia-ml.so.1'));
  const child = spawn(chasqui, ['serve', '--port', '0', '-t', '1', '-np', '2', '--no-log-requests', ...flags], {
    env: { PATH: process.env.PATH, LD_LIBRARY_PATH: path.join(prefix, 'lib'), CHASQUI_NO_TUNING_CACHE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const server = { child, log: '', url: '' };
  child.stderr.setEncoding('utf8').on('data', (text) => { server.log += text; });
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += text;
    if (said.includes('serving ')) break;
  }
  child.stdout.resume();
  server.url = /listening on (http\S+)/.exec(said)?.[1];
  assert.ok(server.url, server.log);
  return server;
}

async function ask(server, tokens) {
  const response = await fetch(`${server.url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'The sun', max_tokens: tokens, ignore_eos: true }),
  });
  return (await response.json()).timings;
}

const counted = async (server) => {
  const text = await (await fetch(`${server.url}/metrics?names=chasqui`)).text();
  return new RegExp(`^${metric} (\\S+)$`, 'm').exec(text)?.[1];
};

async function stop(server) {
  server.child.kill('SIGTERM');
  const [code] = await once(server.child, 'close');
  assert.equal(code, 0, server.log);
  return server.log.trim().split('\n').map((line) => JSON.parse(line));
}

const threads = (server) => readdirSync(`/proc/${server.child.pid}/task`)
  .map((task) => readFileSync(`/proc/${server.child.pid}/task/${task}/comm`, 'utf8').trim());
const maps = (server) => readFileSync(`/proc/${server.child.pid}/maps`, 'utf8');

// Where this user may read RAPL, requests have joules without a GPU, too.
const packages = (() => {
  try {
    return readFileSync('/sys/class/powercap/intel-rapl:0/energy_uj').length > 0;
  } catch {
    return false;
  }
})();

describe('the energy of GPUs', () => {
  it('is in the joules of requests and in the metric where a model is on one', async (t) => {
    const server = await serve(t, { nvml: 'growing' });
    let joules = 0;
    for (let asked = 0; joules < 30 && asked < 1000; ++asked) joules += (await ask(server, 40)).joules ?? 0;
    assert.ok(Number(await counted(server)) >= 30, 'the sum of all requests');
    assert.match(maps(server), /libnvidia-ml\.so\.1/);
    assert.ok(threads(server).includes('gpu-energy'));
    const lines = await stop(server);
    assert.ok(lines.some(({ device }) => /Fake0/.test(device)), server.log);
    assert.ok(!lines.some(({ message }) => message.includes('the energy of a GPU')), server.log);
  });

  it('is left out, which the log says, where NVML is missing', async (t) => {
    const server = await serve(t, {});
    const timings = await ask(server, 40);
    assert.equal('joules' in timings, packages);
    assert.equal(await counted(server) !== undefined, packages);
    const lines = await stop(server);
    const said = lines.find(({ message }) => message === 'the energy of a GPU is not counted');
    assert.equal(said.gpu, '0000:c1:00.0');
    assert.match(said.why, /there is no NVML on this machine .*it comes with NVIDIA's driver/);
  });

  it('is nothing to a server without a GPU, or with no part of a model on one', async (t) => {
    for (const [name, shape] of Object.entries({ none: { gpu: false }, unused: { flags: ['--device', 'none'] } })) {
      const server = await serve(t, { nvml: 'growing', ...shape });
      assert.equal('joules' in await ask(server, 40), packages, name);
      assert.doesNotMatch(maps(server), /libnvidia-ml/, name);
      assert.equal(threads(server).includes('gpu-energy'), name === 'unused', name);
      await stop(server);
    }
  });
});
