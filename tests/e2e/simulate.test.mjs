// `chasqui simulate`: the same command prints the same bytes, no promise is broken, wrong input is refused.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { run } from './server.mjs';

const traces = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../bench/traces');
const simulate = (...args) => run(['simulate', ...args]);

async function report(...args) {
  const { code, stdout, stderr } = await simulate(...args, '--json');
  assert.equal(code, 0, stdout.slice(0, 2000) + stderr);
  return JSON.parse(stdout);
}

const busy = [
  '--requests', '5000', '--rate', '3', '--prompt', '80%4-40,20%lognormal:150:0.5:1000', '--output', '0-16',
  '--classes', 'interactive:1,standard:2,background:1', '--tenants', '10,1,1:2', '--cancel', '0.15',
  '--timeouts', '0.1', '--slow', '0.05', '--unread', '4', '--fail', '0.001', '--no-room', '0.001', '--abort', '0.005',
  '--noise', '0.2', '--neighbour', '4:300:20', '--prefixes', '4', '--prefix-share', '0.2', '--prefix-tokens', '50',
];

describe('chasqui simulate', () => {
  it('prints the same bytes for the same seed, and others for another', async () => {
    const first = await simulate(...busy, '--seed', '11');
    assert.equal(first.code, 0, first.stdout.slice(0, 2000) + first.stderr);
    assert.match(first.stdout, /^policy fair, seed 11, events [0-9a-f]{16}, faults 0$/m);
    const again = await simulate(...busy, '--seed', '11');
    assert.equal(again.stdout, first.stdout);
    const other = await simulate(...busy, '--seed', '12');
    assert.notEqual(other.stdout, first.stdout);
  });

  it('ends every request once, in every way that there is', async () => {
    const { runs } = await report(...busy, '--seed', '13');
    const [all] = runs[0].groups;
    const ends = [all.ok, all.refused, all.cancelled, all.deadline, all.failed];
    assert.equal(ends.reduce((sum, count) => sum + count), 5000);
    assert.ok(all.ok > 0 && all.cancelled > 0 && all.deadline > 0 && all.failed > 0, JSON.stringify(all));
    assert.deepEqual(runs[0].faults, []);
    assert.ok(runs[0].prefix_tokens_shared > 0);
  });

  it('compares policies over the same requests', async () => {
    const { runs } = await report('--compare', 'fcfs,fair', '--trace', path.join(traces, 'long_prompt.jsonl'));
    assert.deepEqual(runs.map((each) => each.policy), ['fcfs', 'fair']);
    const [fcfs, fair] = runs.map((each) => each.groups.find((group) => group.name === 'interactive'));
    assert.equal(fcfs.requests, fair.requests);
    assert.ok(fair.ttft_ms.max < fcfs.ttft_ms.max, 'short requests pass the long prompts');
  });

  it('has the costs of large models and checks drawn loads with them', async () => {
    const load = ['--requests', '40', '--clients', '4', '--prompt', '200', '--output', '20'];
    const slow = (await report(...load, '--preset', '8b-laptop')).runs[0];
    const fast = (await report(...load, '--preset', '8b-gpu')).runs[0];
    assert.ok(slow.virtual_s > 20 * fast.virtual_s, `${slow.virtual_s} s, ${fast.virtual_s} s`);
    const { trials } = await report('--check', '3', '--preset', '1.1b-desktop,8b-gpu', '--seed', '5');
    assert.deepEqual(trials.map((each) => [each.preset, each.trials, each.broken]),
      [['1.1b-desktop', 3, 0], ['8b-gpu', 3, 0]]);
  });

  it('lets arrivals cut steps, where they may be cut', async () => {
    const load = ['--preset', '8b-desktop', '--rate', '0.05', '--requests', '200', '--prompt', '50%4000,50%20', '--output',
      '4', '--ctx-slot', '8192', '--classes', 'interactive:1'];
    const [cut, uncut] = [(await report(...load)).runs[0], (await report(...load, '--no-step-cuts')).runs[0]];
    assert.ok(cut.aborted_steps > 0);
    assert.equal(uncut.aborted_steps, 0);
  });

  it('plays back what it writes', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'chasqui-'));
    try {
      const file = path.join(folder, 'trace.jsonl');
      const drawn = ['--requests', '500', '--seed', '3', '--cancel', '0.2', '--timeouts', '0.2', '--max-tokens', '64'];
      assert.equal((await simulate(...drawn, '--write-trace', file)).code, 0);
      assert.equal((await readFile(file, 'utf8')).trim().split('\n').length, 500);
      const [fromSeed, fromTrace] = [await report(...drawn), await report('--seed', '3', '--trace', file)];
      assert.equal(fromTrace.runs[0].events, fromSeed.runs[0].events);
    } finally {
      await rm(folder, { recursive: true, maxRetries: 20 });
    }
  });

  it('refuses a wrong trace with its line and field, and wrong options', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'chasqui-'));
    try {
      const file = path.join(folder, 'bad.jsonl');
      await writeFile(file, '{"at_ms":0,"prompt":1,"output":1}\n{"at_ms":0,"prompt":0,"output":1}\n');
      const bad = await simulate('--trace', file);
      assert.equal(bad.code, 2);
      assert.match(bad.stderr, /bad\.jsonl:2: prompt: must be a number between 1 and \d+/);
    } finally {
      await rm(folder, { recursive: true, maxRetries: 20 });
    }
    for (const wrong of [['--prompt', 'x'], ['--classes', 'royal:1'], ['--tenants', '0'], ['--goodput', 'speed:1'],
      ['--compare', 'chasqui,magic'], ['--decode-cost', '1:2'], ['--trace', '/none/there'], ['--cancel', '2'],
      ['--preset', '9b-desktop'], ['--preset', 'all'], ['--itl-target', '100'], ['--prefill-step', '-1']]) {
      const { code, stderr } = await simulate(...wrong);
      assert.equal(code, 2, wrong.join(' '));
      assert.notEqual(stderr, '', wrong.join(' '));
    }
  });
});
