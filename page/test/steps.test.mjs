// What the view of the batch says of steps, without a browser.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Steps, describe } from '../src/steps.js';

const promise = { workers: 1, slots: 4, cells: 4096,
  targets: { interactive: { next_token_ms: 50 }, standard: { next_token_ms: 90 }, background: { next_token_ms: 900 } } };

// One interactive and one standard stream wait for their next tokens from the first step on; each step is given by what
// is other than that of a decode step of 10 ms, and begins when the last one ends.
function said(...list) {
  const steps = new Steps();
  steps.take(promise);
  let t = 1000;
  const words = [{}, ...list].map((fields, i) => {
    const step = { n: i + 1, worker: 0, kind: 'decode', t, ms: 10, predicted_ms: 10, decode: [1, 1, 0], prompt: [0, 0, 0],
      streams: [1, 1, 0], waiting: [0, 0, 0], restored: 0, saved: 0, cut: false, running: 2, cells: 64, ...fields };
    t += step.ms;
    steps.take({ missed: 0, steps: [step] });
    return describe(step);
  });
  return { words: words.at(-1), steps };
}

const reads = (prompt, fields = {}) => ({ kind: 'prefill', decode: [0, 0, 0], prompt, ms: 40, predicted_ms: 40, ...fields });

test('a token in time needs no reasons', () => {
  assert.match(said(reads([0, 32, 0], { ms: 30, predicted_ms: 30 }), {}).words,
    /a token 40 ms after the last one, target 50 ms$/);
});

test('a late token says by how much, for which class, and whose prompts were read meanwhile', () => {
  assert.match(said(reads([0, 32, 0]), reads([0, 8, 500]), {}).words,
    / · a token 90 ms after the last one, target 50 ms · late by 40 ms \(interactive\): 40 standard and 500 background prompt rows were read meanwhile$/);
  // The rows before the last token are another token's reasons.
  assert.match(said(reads([0, 700, 0]), {}, reads([0, 0, 64], { ms: 60, predicted_ms: 60 }), {}).words,
    /late by 20 ms \(interactive\): 64 background prompt rows were read meanwhile$/);
});

test('each class is measured by its own target', () => {
  assert.match(said(reads([0, 0, 9], { ms: 90, predicted_ms: 90 }), {}).words, /late by 50 ms \(interactive\) and 10 ms \(standard\): 9 /);
  assert.doesNotMatch(said({ decode: [1, 0, 0], ms: 100, predicted_ms: 100 }).words, /\(standard\)/);
});

test('a step that took longer than predicted is a reason, also the one with the token', () => {
  assert.match(said(reads([0, 16, 0], { ms: 70, predicted_ms: 30 }), {}).words,
    /late by 30 ms \(interactive\): 16 standard prompt rows were read meanwhile, step 2 took 40 ms longer than predicted$/);
  assert.match(said({ ms: 75 }).words, /late by 25 ms \(interactive\): this step took 65 ms longer than predicted$/);
  assert.match(said({ ms: 75, predicted_ms: 74 }).words, /late by 25 ms \(interactive\)$/);
});

test('rows of a step that was cut were not read, and it ends no wait', () => {
  const { words, steps } = said(reads([0, 0, 512], { ms: 55, predicted_ms: 400, cut: true }), {});
  assert.match(words, /late by 15 ms \(interactive\): a step was cut after 55 ms$/);
  assert.equal(steps.summary(0).gaps, 1);
  const again = said({ cut: true, ms: 20 }, { cut: true, ms: 25 }, {});
  assert.match(again.words, /a token 55 ms after the last one, .*late by 5.0 ms \(interactive\): 2 steps were cut after 45 ms$/);
});
