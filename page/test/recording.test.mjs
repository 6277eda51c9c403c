// Recordings that the page reads itself: the steps are those of `chasqui replay --steps`, whatever recorded them; and
// files that are damaged, cut off, or written to do harm.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { streamChat, user } from '../../tests/e2e/client.mjs';
import { demo, run, sim, start } from '../../tests/e2e/server.mjs';
import { Fault, readRecording, recordingLimits } from '../src/recording.js';
import { readStepsFile } from '../src/steps_file.js';
import { Tab, openBrowser, small, wide } from './browser.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-recording-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const file = (name) => path.join(folder, name);
const signal = new AbortController().signal;
const magic = 'chasqui-record 6\n';
const asFile = (bytes, name = 'x.record') => new File([bytes], name);
const read = (bytes, options = {}) => readRecording(asFile(bytes), { signal, ...options });
const demoModel = path.join(import.meta.dirname, '../../models/demo/chasqui-demo.gguf');

// More requests than slots, of all classes; some with prompts that begin alike, one whose client leaves.
async function load(server, fields = {}) {
  const ask = async (i) => {
    const priority = ['interactive', 'standard', 'background'][i % 3];
    const text = `Question ${i % 4}: ${'the same words again '.repeat(10 * (i % 5))}`;
    const body = { ...fields, priority, max_tokens: 20 + 15 * (i % 4), ignore_eos: true };
    const stream = await streamChat(server, user(text), i === 5 ? { ...body, max_tokens: 1000 } : body);
    if (i !== 5) return stream.collect();
    await stream.nextText();
    return stream.leave();
  };
  await Promise.all(Array.from({ length: 14 }, (_, i) => ask(i)));
}

async function record(name, flags, loads = [{}]) {
  const server = await start(test, [...flags, '--record', file(name)]);
  await Promise.all(loads.map((fields) => load(server, fields)));
  await server.idle();
  await server.stop();
  return readFileSync(file(name));
}

async function replayed(name) {
  const { code, stdout, stderr } = await run(['replay', file(name), '--steps', file(`${name}.json`)]);
  assert.equal(code, 0, stdout + stderr);
  return { stdout, ...JSON.parse(readFileSync(file(`${name}.json`), 'utf8')) };
}

// Field by field, and each figure is somewhere more than nothing where `has` says so.
async function compare(name, bytes, has = []) {
  const { workers, cut } = await read(bytes);
  const { promise, steps, stdout } = await replayed(name);
  assert.equal(cut, 0);
  assert.equal(workers.length, promise.workers);
  assert.equal(workers.reduce((sum, one) => sum + one.promise.slots, 0), promise.slots);
  assert.equal(workers.reduce((sum, one) => sum + one.promise.cells, 0), promise.cells);
  assert.deepEqual(workers[0].promise.targets, promise.targets);
  assert.equal(workers[0].promise.prefill_step_ms, promise.prefill_step_ms);
  const names = workers.map((one) => one.name);
  assert.deepEqual(names, stdout.trimEnd().split('\n').map((line) => line.split(':')[0]));
  for (const [i, worker] of workers.entries()) {
    const theirs = steps.filter((step) => step.worker === i);
    assert.equal(worker.steps.length, theirs.length);
    assert.equal(worker.count, theirs.length);
    for (const [n, step] of worker.steps.entries()) {
      assert.deepEqual(Object.keys(step).sort(), Object.keys(theirs[n]).sort());
      assert.deepEqual(step, theirs[n], `step ${n} of ${names[i]}`);
    }
  }
  for (const field of has) {
    assert.ok(steps.some((step) => [step[field]].flat().some((figure) => figure > 0)), `no step has ${field}`);
  }
  return workers;
}

// What the demo model said to two classes and more, for tests that need any recording.
const plain = await record('plain', [...demo, '-np', '2']);

describe('a recording has the steps of chasqui replay --steps', () => {
  it('of one worker, whose requests wait, and one of which was cancelled', async () => {
    const [worker] = await compare('plain', plain, ['ms', 'compute_ms', 'predicted_ms', 'decode', 'prompt', 'waiting',
      'streams', 'running', 'cells', 'sequences']);
    for (const c of [0, 1, 2]) {
      assert.ok(worker.steps.some((step) => step.decode[c] > 0 && step.streams[c] > 0), `class ${c}`);
    }
    const { stdout } = await run(['replay', file('plain'), '--about']);
    assert.match(stdout, /: 14 requests, /);
  });

  it('of two models with two workers each', async () => {
    mkdirSync(file('models'));
    for (const name of ['alpha', 'beta']) symlinkSync(demoModel, file(`models/${name}.gguf`));
    const flags = [...demo, '-np', '4', '--workers', '2', '--models-dir', file('models')];
    const workers = await compare('several', await record('several', flags, [{ model: 'alpha' }, { model: 'beta' }]));
    assert.equal(workers.length, 4);
    assert.ok(workers.filter(({ steps }) => steps.length > 0).length >= 2);
  });

  it('with a prefix cache, with one pool of cells, with drafts, and with a context that is shifted', async () => {
    await compare('cached', await record('cached', [...sim, '-np', '2', '--sim-step', '2', '-c', '4096']), ['restored', 'saved']);
    await compare('pool', await record('pool', [...demo, '-np', '4', '-c', '1024', '--kv-unified']), ['restored', 'saved']);
    await compare('drafts', await record('drafts', [...demo, '-np', '3', '--spec-type', 'ngram']));
    const shifting = await start(test, [...demo, '-np', '1', '-c', '256', '--context-shift', '--record', file('shifted')]);
    const stream = await streamChat(shifting, user('the same words again '.repeat(8)), { max_tokens: 600, ignore_eos: true });
    await stream.collect();
    await shifting.stop();
    const [{ steps }] = await compare('shifted', readFileSync(file('shifted')));
    assert.ok(steps.length > 500 && steps.filter((step) => step.prompt[1] > 0).length < 10, 'it streams where its prompt was');
  });
});

// The places of its pieces, and of what is in each: [head, end].
function piecesOf(bytes) {
  const out = [];
  for (let at = magic.length; at < bytes.length;) {
    const end = at + 16 + bytes.readUInt32LE(at + 4);
    out.push([at, end]);
    at = end;
  }
  return out;
}

function piece(stream, ...records) {
  const body = Buffer.concat(records);
  const head = Buffer.alloc(16);
  head.writeUInt32LE(stream, 0);
  head.writeUInt32LE(body.length, 4);
  return Buffer.concat([head, body]);
}

function recordOf(kind, ...bytes) {
  const head = Buffer.from([kind, 0, 0, 0, 0]);
  head.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([head, Buffer.from(bytes)]);
}

// A number with a sign, as recordings have it.
function signed(value) {
  const bytes = [];
  let left = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
  for (; left >= 128n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return [...bytes, Number(left)];
}

// The records of a step without rows, from and to these nanoseconds.
const stepOf = (from, to) => Buffer.concat([
  recordOf(18, ...signed(from), 0, 0, 1, 0, 0, 0, 0, 0, ...Array(10).fill(0), 0, 0, 0),
  recordOf(19, 0, ...signed(to), ...Array(10).fill(0), ...Array(6).fill(0)),
  recordOf(23, ...Array(8).fill(0)),
]);
const ours = (...pieces) => Buffer.concat([Buffer.from(magic), ...pieces]);
const headPiece = plain.subarray(...piecesOf(plain)[0]);

it('the clock of a machine that has run for years is exact', async () => {
  const from = 987_654_321_987_654_321n;
  const { workers: [{ steps: [step] }] } = await read(ours(headPiece, piece(0, stepOf(from, from + 12_345_678n))));
  assert.equal(step.t, 987_654_321_987.654);
  assert.equal(step.ms, 12.345);
});

// Without damage the steps; with it, a Fault.
const outcome = (bytes, options) => read(bytes, options).catch((error) => {
  assert.ok(error instanceof Fault, error.stack);
  return error;
});

describe('a file that is not as it should be', () => {
  it('and was cut anywhere shows what is whole', async () => {
    const { workers: [whole] } = await read(plain);
    const pieces = piecesOf(plain);
    let before = 0;
    for (let length = magic.length; length < plain.length; length += Math.ceil(plain.length / 97)) {
      const { workers, cut } = await read(plain.subarray(0, length));
      const end = pieces.filter(([, last]) => last <= length).at(-1)?.[1] ?? magic.length;
      assert.equal(cut, length - end);
      const steps = workers[0]?.steps ?? [];
      assert.deepEqual(steps, whole.steps.slice(0, steps.length));
      assert.ok(steps.length >= before);
      before = steps.length;
    }
    assert.ok(before > whole.steps.length / 2, 'nearly all at the end');
  });

  it('and has other bits is refused with a place, or read, and never fails otherwise', async () => {
    let dice = 7;
    const roll = (sides) => (dice = (dice * 48271) % 2147483647) % sides;
    let refused = 0;
    for (let i = 0; i < 3000; ++i) {
      const bytes = Buffer.from(plain);
      for (let changes = 1 + roll(3); changes > 0; --changes) {
        bytes[magic.length + roll(bytes.length - magic.length)] ^= 1 << roll(8);
      }
      const result = await outcome(bytes);
      if (!(result instanceof Fault)) continue;
      assert.match(result.message, /^is damaged(, or no page can read it:)? at byte \d+|has more than 1024 workers/);
      refused += 1;
    }
    assert.ok(refused > 300, `${refused} were noticed`);
  });

  it('and says that it has more than it has costs nothing', async () => {
    const endless = Array(50_000).fill(255);
    const huge = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    const more = (...records) => ours(headPiece, piece(0, ...records));
    const faults = {
      'has no head': ours(piece(0, recordOf(18, 0))),
      'a record is not whole': ours(piece(0, recordOf(1, ...huge))),
      'it has two heads': ours(headPiece, headPiece),
      'there are no records of kind 0': more(recordOf(0)),
      'there are no records of kind 24': more(recordOf(24)),
      'a step was computed that was not planned': more(recordOf(19, 0)),
      'a step has ended that was not computed': more(recordOf(23, 0, 0, 0, 0, 0, 0, 0, 0)),
      'there is no such class': more(recordOf(2, ...Array(17).fill(0), 3)),
    };
    for (const [says, bytes] of Object.entries(faults)) {
      const { message } = await outcome(bytes);
      assert.ok(message?.includes(says), `${says}: ${message}`);
    }
    // Each count of each kind of record, in turn, is more than anybody has.
    for (const kind of [1, 2, 18, 19, 21, 23]) {
      for (let before = 0; before < 40; ++before) {
        assert.ok(await outcome(more(recordOf(kind, ...Array(before).fill(0), ...huge))));
        assert.ok(await outcome(more(recordOf(kind, ...Array(before).fill(1), ...huge))));
        assert.ok(await outcome(more(recordOf(kind, ...Array(before).fill(0), ...endless))));
      }
    }
    const long = Buffer.from(headPiece);
    long.writeUInt32LE(recordingLimits.piece + 1, 4);
    assert.match((await outcome(ours(long))).message, /at byte 17 is a piece of 16777217 bytes/);
    const crowd = Array.from({ length: recordingLimits.workers + 1 }, (_, i) => piece(i));
    assert.match((await outcome(ours(...crowd))).message, /has more than 1024 workers/);
    const two = Buffer.from(headPiece);
    two.writeUInt32LE(7, 0);
    assert.equal((await read(ours(headPiece, two))).workers.length, 2);
  });

  it('and has more steps than are kept has the newest of each worker', async () => {
    const { workers: all } = await read(plain);
    const { workers } = await read(plain, { limits: { ...recordingLimits, steps: 50 } });
    assert.equal(workers[0].count, all[0].count);
    assert.ok(all[0].count > 200, `${all[0].count}`);
    assert.deepEqual(workers[0].steps, all[0].steps.slice(-50));
  });

  it('and is no longer wanted is not read on', async () => {
    const controller = new AbortController();
    const stopped = readStepsFile(asFile(plain), { signal: controller.signal, progress: () => controller.abort() });
    await assert.rejects(stopped, { name: 'AbortError' });
  });
});

it('a file of steps that has other figures in it is refused, and one of few workers names those', async () => {
  const target = { first_token_ms: 1000, next_token_ms: 100 };
  const promise = { workers: 3, slots: 2, cells: 512, targets: { interactive: target, standard: target, background: target } };
  const none = [0, 0, 0];
  const step = { n: 1, worker: 1, kind: 'decode', t: 0, ms: 1, compute_ms: 1, predicted_ms: 0, decode: [1, 0, 0], prompt: none,
    sequences: 1, padding: 0, cut: false, restored: 0, saved: 0, running: 1, waiting: none, streams: [1, 0, 0], cells: 9 };
  const open = (changes, of = {}) => readStepsFile(asFile(Buffer.from(JSON.stringify(
    { promise: { ...promise, ...of }, steps: [{ ...step, ...changes }] }))), { signal: new AbortController().signal, progress() {} });
  assert.deepEqual((await open({})).workers.map(({ name }) => name), ['Worker 1']);
  const wrong = [{ waiting: undefined }, { streams: [1, 2] }, { ms: '<b>' }, { worker: 3 }, { worker: 0.5 }, { cut: 1 }, { cells: -1 },
    { kind: 'x' }, { t: null }];
  for (const changes of wrong) await assert.rejects(open(changes), /is neither a recording/, JSON.stringify(changes));
  for (const of of [{ slots: 0 }, { cells: 'x' }]) await assert.rejects(open({}, of), /is neither a recording/);
});

const browser = await openBrowser(test);

async function watch(t, options) {
  const server = await start(t, sim);
  const tab = await Tab.open(t, browser, server, options);
  await tab.page.click('#watch');
  await tab.until(() => document.querySelector('.state').dataset.state === 'live');
  return tab;
}

const choose = async (tab, name) => (await tab.page.$('#steps-file')).uploadFile(file(name));

async function opened(tab, name) {
  await choose(tab, name);
  await tab.until((wanted) => document.querySelector('.state').textContent === wanted, name);
}

// What the page says of each step, from the first one on.
async function walk(tab) {
  await tab.page.focus('.charts');
  await tab.page.keyboard.press('Home');
  const words = [await tab.text('#step')];
  for (;;) {
    await tab.page.keyboard.press('ArrowRight');
    const text = await tab.text('#step');
    if (text === words.at(-1)) return words;
    words.push(text);
  }
}

describe('the view of the batch', () => {
  it('shows the same of a recording as of its file of steps', async (t) => {
    const tab = await watch(t);
    await replayed('plain');
    await opened(tab, 'plain.json');
    const words = await walk(tab);
    const tiles = await tab.texts('.tile');
    await opened(tab, 'plain');
    assert.match(await tab.text('#step'), /^Move over a column/);
    assert.deepEqual(await walk(tab), words);
    assert.deepEqual(await tab.texts('.tile'), tiles);
    assert.ok(await tab.page.$eval('#batch select', (select) => select.hidden), 'there is one worker');
    await tab.page.click('#close-batch');
    await tab.page.click('#watch');
    await tab.until(() => document.querySelector('.state').dataset.state === 'live');
  });

  it('lets one choose among the workers of several models, with the keyboard', async (t) => {
    const tab = await watch(t);
    const { workers } = await read(readFileSync(file('several')));
    await tab.page.focus('#open-steps');
    const asked = tab.page.waitForFileChooser();
    await tab.frames(2); // the browser knows that it is to be asked
    await tab.page.keyboard.press('Enter');
    const chooser = await asked;
    await chooser.accept([file('several')]);
    await tab.page.waitForSelector('#batch select:not([hidden])');
    const shown = workers.filter(({ count }) => count > 0);
    assert.deepEqual(await tab.texts('#batch select option'), shown.map(({ name }) => name));
    for (const [i, { steps }] of shown.entries()) {
      await tab.page.focus('#batch select');
      if (i > 0) await tab.page.keyboard.press('ArrowDown');
      await tab.page.focus('.charts');
      await tab.page.keyboard.press('End');
      assert.match(await tab.text('#step'), new RegExp(`^Step ${steps.length} `));
      await tab.frames(2); // figures are drawn with the picture
      const { running, cells } = steps.at(-1);
      assert.ok((await tab.text('.tile:nth-child(2) .value')).startsWith(`${running} of 2`));
      assert.ok((await tab.text('.tile:nth-child(4) .note')).startsWith(cells.toLocaleString('en')));
    }
    await tab.page.click('#close-batch');
    await tab.page.click('#watch');
    await tab.until(() => document.querySelector('.state').dataset.state === 'live');
    assert.ok(await tab.page.$eval('#batch select', (select) => select.hidden), 'the server has one worker');
  });

  it('says what is wrong with a file, and stays as it was', async (t) => {
    const tab = await watch(t);
    writeFileSync(file('cut'), plain.subarray(0, plain.length - 5));
    const damaged = Buffer.from(plain);
    damaged.writeUInt32LE(77, piecesOf(plain)[1][0] + 4);
    writeFileSync(file('damaged'), damaged);
    writeFileSync(file('version'), plain.toString('latin1').replace('record 6', 'record 9'), 'latin1');
    writeFileSync(file('picture.png'), Buffer.from([137, 80, 78, 71]));
    writeFileSync(file('other.json'), '{}');
    writeFileSync(file('<img src=x onerror=alert(1)>'), 'nothing');
    writeFileSync(file('nothing'), '');
    writeFileSync(file('begun'), plain.subarray(0, piecesOf(plain)[0][1]));
    writeFileSync(file('large'), plain);
    truncateSync(file('large'), recordingLimits.bytes + 1);
    writeFileSync(file('large.json'), '{');
    truncateSync(file('large.json'), recordingLimits.bytes + 1);
    const neither = / is neither a recording of chasqui serve --record nor a file of steps/;
    const refusals = { damaged: /^damaged is damaged at byte \d+: /, version: /^version is a recording of another version/,
      'picture.png': neither, 'other.json': neither, nothing: neither, '<img src=x onerror=alert(1)>': neither,
      begun: /^begun has no steps: /,
      large: /^large has 129 MiB: the page opens files of up to 128 MiB\. chasqui replay reads longer recordings\.$/,
      'large.json': /^large\.json has 129 MiB: the page opens files of up to 128 MiB\.$/ };
    for (const [name, says] of Object.entries(refusals)) {
      await choose(tab, name);
      await tab.until((begins) => document.querySelector('#step').textContent.startsWith(`${begins} `), name);
      assert.match(await tab.text('#step'), says);
      assert.equal(await tab.page.$eval('.state', (state) => state.dataset.state), 'live', name);
    }
    await opened(tab, 'plain');
    await choose(tab, 'damaged');
    await tab.until(() => document.querySelector('#step').textContent.startsWith('damaged is damaged'));
    assert.equal(await tab.text('.state'), 'plain', 'what was open stays open');
    await opened(tab, 'cut');
    assert.match(await tab.text('#step'), /^The end of cut is cut off: its last [\d,]+ bytes are not whole, and are left out\./);
    await tab.page.focus('.charts');
    await tab.page.keyboard.press('End');
    assert.match(await tab.text('#step'), /^Step \d+ /);
  });

  for (const [size, viewport] of Object.entries({ wide, small })) {
    it(`${size}: axe finds nothing in a recording of several workers`, async (t) => {
      const tab = await watch(t, { viewport });
      await opened(tab, 'several');
      await tab.page.focus('.charts');
      await tab.page.keyboard.press('Home');
      await tab.check(`${size}-15-recording`);
    });
  }
});
