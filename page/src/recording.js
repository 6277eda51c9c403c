// A recording of `chasqui serve --record` (docs/recordings.md), read in the browser: the steps of each worker in it,
// the same as `chasqui replay --steps` writes. No element of the page is touched here.
//
// The file may be anybody's. Nothing is made as large as it says but what the bytes are there for, and a record takes no
// longer than its bytes do, some tenths of a second for the largest. It is read in pieces, between which the page lives. Its checksums are not looked at;
// what does not fit together is damage all the same.
const mib = 1024 * 1024;
export const recordingLimits = { bytes: 128 * mib, piece: 16 * mib, workers: 1024, steps: 100_000 };

const magic = 'chasqui-record ';
const version = '6\n'; // src/record/record_format.h
const pieceHead = 16; // stream, length, checksum
const recordHead = 5; // kind, length
const atOnce = 256 * 1024; // bytes read
const most32 = 2 ** 31 - 1;
const mostNotes = 4096; // pairs of texts in a head
const pauseEvery = 64 * 1024; // bytes
const decoder = new TextDecoder();

// Ends the reading; its message goes on behind the name of the file.
export class Fault extends Error {}

// Lets the page live while much is done: pause() is to be called now and then.
export class Turns {
  constructor(signal) {
    this.signal = signal;
    this.since = performance.now();
  }

  async pause() {
    if (performance.now() - this.since < 12) return;
    await new Promise((done) => { setTimeout(done); });
    this.signal.throwIfAborted();
    this.since = performance.now();
  }
}

// Numbers as src/record/byte_stream.h writes them. `place` is where in the file `bytes` begin.
class Reader {
  constructor(bytes, place) {
    this.bytes = bytes;
    this.place = place;
    this.at = 0;
    this.end = bytes.length;
  }

  fail(what = 'a record is not whole') {
    throw new Fault(`is damaged at byte ${this.place + this.at}: ${what}.`);
  }

  jump(count) {
    if (count > this.end - this.at) this.fail();
    this.at += count;
  }

  fixed() {
    const from = this.at;
    this.jump(4);
    const [a, b, c, d] = this.bytes.subarray(from, from + 4);
    return a + b * 2 ** 8 + c * 2 ** 16 + d * 2 ** 24;
  }

  // Exact below 2^53.
  number() {
    for (let value = 0, scale = 1; scale < 2 ** 70 && this.at < this.end; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    return this.fail();
  }

  // Likewise: the sign takes a bit of what is written.
  signed() {
    const from = this.at;
    const value = this.number();
    if (value >= 2 ** 53) return Number(this.exact(from));
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  // Nanoseconds on the server's clock, all 64 bits.
  time() {
    const from = this.at;
    this.number();
    return this.exact(from);
  }

  // The signed number that begins there and has been read.
  exact(from) {
    let value = 0n;
    for (let i = from; i < this.at; i += 4) {
      let part = 0;
      for (let byte = Math.min(i + 4, this.at) - 1; byte >= i; --byte) part = part * 128 + (this.bytes[byte] & 127);
      value |= BigInt(part) << BigInt(7 * (i - from));
    }
    value = BigInt.asUintN(64, value);
    return (value >> 1n) ^ -(value & 1n);
  }

  count() {
    return this.counted(this.signed());
  }

  counted(value) {
    if (!(value >= 0 && value <= most32)) this.fail('a figure is out of its range');
    return value;
  }

  skip(numbers) {
    for (let left = numbers; left > 0;) {
      if (this.at === this.end) this.fail();
      if (this.bytes[this.at++] < 128) --left;
    }
  }

  skipText() {
    this.jump(this.number());
  }

  text() {
    const length = this.number();
    const from = this.at;
    this.jump(length);
    return decoder.decode(this.bytes.subarray(from, this.at));
  }

  rows(columns) {
    const rows = this.number();
    if (rows > (this.end - this.at) / columns) this.fail(); // a byte for each figure at least
    return rows;
  }

  // The figures of a table, row by row: each is written as the difference from the one above it.
  table(columns) {
    const figures = [];
    for (let left = this.rows(columns) * columns; left > 0; --left) {
      figures.push(this.signed() + (figures.length < columns ? 0 : figures[figures.length - columns]));
    }
    return figures;
  }

  skipTables(...widths) {
    for (const columns of widths) this.skip(this.rows(columns) * columns);
  }
}

const milliseconds = (nanoseconds) => (nanoseconds - (nanoseconds % 1000)) / 1000 / 1000;
const millisecondsOf = (time) => Number(time / 1000n) / 1000;
const perClass = (each) => [each(), each(), each()];
// What could hide in a name, or turn what stands around it.
const shown = (text, most) => text.replace(/[\p{Cc}\p{Cf}]/gu, '\u{fffd}').slice(0, most);

// src/record/recorded_head.h
function readHead(io) {
  io.skipText(); // the program
  const model = shown(io.text(), 80);
  const worker = io.number();
  const notes = io.number();
  if (notes > mostNotes) io.fail();
  for (let left = notes; left > 0; --left) { io.skipText(); io.skipText(); }
  io.skipText(); // the policy
  const slots = io.count();
  const cells = io.count();
  if (slots < 1 || slots > 2 ** 16 || cells < 1) io.fail('no scheduler can be made as it says');
  io.skip(2 + 6 + 5 + 5 + 7 + 8); // kv, the scheduler, cache, disk, reuse, speculation
  const target = () => ({ first_token_ms: io.signed() / 1e6, next_token_ms: io.signed() / 1e6 });
  const [interactive, standard, background] = perClass(target);
  const prefill_step_ms = io.signed() / 1e6;
  io.skip(18); // rules
  return { name: `${model}, worker ${worker}`,
    promise: { workers: 1, slots, cells, prefill_step_ms, targets: { interactive, standard, background } } };
}

// src/record/recorded_request.h: what is asked of it later.
function readRequest(io) {
  const id = io.number();
  io.skip(2 + 5 + 3 + 1 + 5); // lengths, times, limits and targets, drafts, what it is told
  const c = io.number();
  if (c > 2) io.fail('there is no such class');
  io.skip(1); // the tenant
  io.jump(8);
  io.skip(3);
  io.skip(io.number()); // checkpoints
  io.skip(4);
  const shifts = io.count() > 0;
  io.skip(4);
  const prompt = io.counted(io.number());
  io.jump(4 * prompt);
  io.jump(4 * io.counted(io.number())); // of the answer, generated elsewhere
  io.skip(3 * io.number()); // pictures and sounds
  io.skip(2 + 3); // grammar and seed, adapters
  for (let left = io.number(); left > 0; --left) {
    io.skip(1);
    io.jump(8);
    io.skip(1);
  }
  return [id, { c, prompt, shifts }];
}

// src/record/recorded_plan.h, and of it what describe_step() of src/engine/step_ring.cpp says.
function readPlan(io, requests) {
  const plan = { planned: io.time(), decode: [0, 0, 0], prompt: [0, 0, 0], restored: 0, saved: 0 };
  io.skipTables(2, 1); // drafts, moved texts
  const [kind] = io.table(5);
  plan.kind = kind === 1 ? 'prefill' : 'decode';
  const parts = io.table(8);
  plan.sequences = parts.length / 8;
  plan.padding = 0;
  for (let i = 0; i < parts.length; i += 8) {
    const request = requests.get(parts[i]) ?? io.fail('a step has rows of a request that has not come');
    const [position, rows, padding] = [parts[i + 2], parts[i + 3], parts[i + 6]].map((figure) => io.counted(figure));
    // A stream whose context was shifted is back where its prompt was.
    const streams = kind === 0 && request.shifts;
    const ofPrompt = streams ? 0 : Math.min(rows, Math.max(0, request.prompt - position));
    plan.prompt[request.c] += ofPrompt;
    plan.decode[request.c] += rows - ofPrompt;
    plan.padding += padding;
  }
  const saves = io.table(3);
  for (let i = 0; i < saves.length; i += 3) plan.saved += saves[i + 1] - saves[i + 2];
  io.skipTables(1); // trims
  const reuses = io.table(3);
  for (let i = 0; i < reuses.length; i += 3) plan.restored += reuses[i + 2];
  const restores = io.table(7);
  plan.restores = [];
  for (let i = 0; i < restores.length; i += 7) plan.restores.push(restores[i + 4] - restores[i + 3]);
  io.skipTables(3, 4); // moves, shifts
  const padding = io.rows(1);
  io.skip(padding);
  plan.padding += padding;
  io.skipTables(2, 3); // of the draft model
  plan.predicted = io.signed();
  io.skip(2);
  return plan;
}

// What one worker was told and has planned.
class Stream {
  constructor(worker) {
    this.worker = worker;
    this.requests = new Map(); // that have not finished
    this.steps = [];
    this.count = 0; // steps so far, those that were dropped among them
    this.ended = '';
  }

  // A record, by the places of TapKind in src/record/record_format.h. Others say nothing of steps.
  take(kind, io) {
    if ((kind === 1) === (this.name !== undefined)) io.fail(kind === 1 ? 'it has two heads' : 'it has no head');
    if (kind === 1) Object.assign(this, readHead(io));
    else if (kind === 2) this.requests.set(...readRequest(io));
    else if (kind === 18) this.plan = readPlan(io, this.requests);
    else if (kind === 19) this.computed(io);
    else if (kind === 20) this.finished(io);
    else if (kind === 21) this.ended = shown(io.text(), 300);
    else if (kind === 23) this.committed(io);
    else io.at = io.end;
    if (io.at !== io.end) io.fail();
  }

  // src/record/recorded_result.h
  computed(io) {
    const { plan } = this;
    if (!plan || this.step) io.fail('a step was computed that was not planned');
    const status = io.number();
    const took = io.time() - plan.planned;
    const compute = io.signed();
    io.skip(3 + 1 + 4 + 1);
    io.skipTables(3, 1, 2, 3); // tokens, requests put off, what prompts tell, copies
    const restored = new Set(plan.restores.keys());
    for (const place of io.table(1)) restored.delete(place);
    io.skipTables(2);
    this.step = { n: 0, worker: this.worker, kind: plan.kind, t: millisecondsOf(plan.planned),
      ms: millisecondsOf(took), compute_ms: milliseconds(compute), predicted_ms: milliseconds(plan.predicted),
      decode: plan.decode, prompt: plan.prompt, sequences: plan.sequences, padding: plan.padding, cut: status !== 0,
      restored: plan.restored, saved: plan.saved };
    for (const place of restored) this.step.restored += plan.restores[place];
    this.plan = null;
  }

  // src/record/recorded_occupancy.h
  committed(io) {
    if (!this.step) io.fail('a step has ended that was not computed');
    this.step.running = io.count();
    this.step.waiting = perClass(() => io.count());
    this.step.streams = perClass(() => io.count());
    this.step.cells = io.count();
    this.step.n = ++this.count;
    this.steps.push(this.step);
    this.step = null;
  }

  finished(io) {
    this.requests.delete(io.number());
    io.skip(1); // how
  }
}

class Recording {
  constructor(limits) {
    this.limits = limits;
    this.streams = new Map(); // by number, in the order in which they begin
    this.held = 0; // steps
  }

  // One piece: the records of one stream.
  async take(number, io, turns) {
    const stream = this.streams.get(number) ?? new Stream(this.streams.size);
    this.streams.set(number, stream);
    if (this.streams.size > this.limits.workers) throw new Fault(`has more than ${this.limits.workers} workers.`);
    const { end } = io;
    const before = stream.steps.length;
    for (let paused = 0; io.at < end;) {
      io.end = end;
      io.jump(recordHead);
      io.at -= recordHead;
      const kind = io.bytes[io.at++];
      if (kind < 1 || kind > 23) io.fail(`there are no records of kind ${kind}`);
      const length = io.fixed();
      if (length > end - io.at) io.fail();
      io.end = io.at + length;
      stream.take(kind, io);
      if (io.at - paused < pauseEvery) continue;
      paused = io.at;
      await turns.pause();
    }
    this.held += stream.steps.length - before;
    if (this.held > 2 * this.limits.steps) this.trim();
  }

  // The oldest go, of each worker as large a share.
  trim() {
    const share = this.limits.steps / this.held;
    if (!(share < 1)) return;
    this.held = 0;
    for (const { steps } of this.streams.values()) {
      steps.splice(0, steps.length - Math.ceil(steps.length * share));
      this.held += steps.length;
    }
  }
}

// What a file with these first bytes is: 'ours', 'other' (of another version), or null (no recording).
export function recordingOf(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, magic.length + version.length));
  if (!text.startsWith(magic)) return null;
  return text === magic + version ? 'ours' : 'other';
}

// { workers: [{ name, promise, steps, count, ended }], cut } of a recording: `count` of its steps there were, of which
// `steps` are the newest; `cut` bytes at the end are not whole. `progress` is called with the share that was read.
// Throws a Fault, or what `signal` was aborted with.
export async function readRecording(file, { signal, progress = () => {}, limits = recordingLimits }) {
  const turns = new Turns(signal);
  const recording = new Recording(limits);
  let at = magic.length + version.length;
  let more = 0; // bytes that the next piece has, when it is larger than what is read at once
  while (file.size - at >= Math.max(more, pieceHead)) {
    const bytes = new Uint8Array(await file.slice(at, at + Math.max(atOnce, more)).arrayBuffer());
    signal.throwIfAborted();
    more = 0;
    let from = 0;
    while (bytes.length - from >= pieceHead) {
      const head = new Reader(bytes.subarray(from), at + from);
      const number = head.fixed();
      const length = head.fixed();
      if (length > limits.piece) {
        throw new Fault(`is damaged, or no page can read it: at byte ${at + from} is a piece of ${length} bytes.`);
      }
      more = pieceHead + length;
      if (more > bytes.length - from) break;
      from += more;
      more = 0;
      const piece = bytes.subarray(from - length, from);
      await recording.take(number, new Reader(piece, at + from - length), turns);
    }
    at += from;
    progress(at / file.size);
  }
  recording.trim();
  return { workers: [...recording.streams.values()], cut: file.size - at };
}
