// What a neighbour has asked cannot be found out by asking the same: neither from what the server says nor from the time
// that it takes. Counts are exact; of times only this is used: when it makes no difference which of two prompts the
// neighbour has asked, then which of the two is answered sooner is a coin, whatever else the machine is doing.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask, stream } from './client.mjs';
import { random } from './random.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;
const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });
const keys = ['--api-key', 'alice,bob'];
const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;

// Prompts of equal length in tokens, of which no two with different numbers begin alike.
const prompt = (dice, number, tokens = 3000) => [number, ...Array.from({ length: tokens - 1 }, () => dice.below(250))];
const body = (tokens) => ({ prompt: tokens, max_tokens: 1, temperature: 0 });

async function timed(server, text, key) {
  const started = performance.now();
  const answer = await ask(server, '/v1/completions', body(text), as(key));
  return { ms: performance.now() - started, answer };
}

// Wilcoxon's signed ranks, as a number of standard deviations: how surely the differences lean to one side.
function lean(differences) {
  const ranked = differences.filter((d) => d !== 0).sort((a, b) => Math.abs(a) - Math.abs(b));
  const n = ranked.length;
  const above = ranked.reduce((sum, d, i) => sum + (d > 0 ? i + 1 : 0), 0);
  return (above - (n * (n + 1)) / 4) / Math.sqrt((n * (n + 1) * (2 * n + 1)) / 24);
}

// `owner` has asked one prompt of each pair; the probe asks both, in an order that is drawn. How much longer the other
// one takes.
async function probe(server, owner, pairs, onAnswer = () => {}) {
  const dice = random(20261121);
  const differences = [];
  for (let i = 0; i < pairs; ++i) {
    const [known, fresh] = [prompt(dice, 2 * i), prompt(dice, 2 * i + 1)];
    await ask(server, '/v1/completions', body(known), as(owner));
    const order = dice.next() < 0.5 ? [known, fresh] : [fresh, known];
    const took = new Map();
    for (const text of order) {
      const { ms, answer } = await timed(server, text, 'bob');
      took.set(text, ms);
      onAnswer(answer);
    }
    differences.push(took.get(fresh) - took.get(known));
  }
  return differences;
}

async function folder(t) {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
  return dir;
}

async function startKeyed(t, ...flags) {
  const server = await start(t, [...sim, ...keys, '-np', '2', '-c', '16384', ...flags]);
  server.key = 'alice';
  return server;
}

// By chance alone it leans so far once in 150,000 runs, and the runs are seeded but for the times.
const far = 4.5;
const pairs = 60;

describe('a client that probes for what a neighbour has asked', async () => {
  const places = {
    'memory': () => [],
    'the memory of one of two workers': () => ['--workers', '2'],
    'memory and files': async (t) => ['--cache-disk', await folder(t), '--slot-save-path', await folder(t)],
  };
  for (const [place, flags] of Object.entries(places)) {
    it(`learns nothing of ${place} from counts or times`, async (t) => {
      const server = await startKeyed(t, ...await flags(t));
      const before = (await server.metrics()).sum('chasqui_prompt_tokens_total');
      const differences = await probe(server, 'alice', pairs, (answer) => {
        assert.equal(cachedOf(answer), 0);
        assert.equal(answer.timings.cache_n, 0);
        assert.equal(answer.timings.prompt_n, answer.usage.prompt_tokens);
      });
      const computed = (await server.idle()).sum('chasqui_prompt_tokens_total') - before;
      const { usage } = await ask(server, '/v1/completions', body(prompt(random(1), 2 * pairs)), as('bob'));
      assert.equal(computed, 3 * pairs * usage.prompt_tokens, 'every prompt was computed, by each of the two');
      t.diagnostic(`leans by ${lean(differences).toFixed(2)}`);
      assert.ok(Math.abs(lean(differences)) < far, `leans by ${lean(differences)}: ${differences}`);
    });
  }

  it('would see it where it can be seen: in what is their own', async (t) => {
    // What is computed takes so many milliseconds more that no other work on the machine hides it.
    const server = await startKeyed(t, '--sim-step', '10');
    let hits = 0;
    const differences = await probe(server, 'bob', pairs, (answer) => (hits += cachedOf(answer) > 0));
    assert.equal(hits, pairs);
    t.diagnostic(`leans by ${lean(differences).toFixed(2)}`);
    assert.ok(lean(differences) > far, `leans by ${lean(differences)}: ${differences}`);
  });

  it('does not wait for what a neighbour is computing right now', async (t) => {
    const server = await startKeyed(t);
    const long = prompt(random(7), 0, 7000);
    const alice = await stream(server, '/v1/completions', { ...body(long), max_tokens: 500, ignore_eos: true }, as('alice'));
    const { answer } = await timed(server, long, 'bob');
    assert.equal(cachedOf(answer), 0);
    alice.leave();
    const metrics = await server.idle();
    assert.equal(metrics.sum('chasqui_prefix_waits_total'), 0);
  });
});
