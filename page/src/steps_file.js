// A file that the view of the batch opens: a recording, or steps as `chasqui replay --steps` writes them. It becomes
// workers, one of which is shown at a time, or an Error in words.
import { Fault, Turns, readRecording, recordingLimits, recordingOf } from './recording.js';
import { Steps, classes } from './steps.js';

const whole = (value) => value.toLocaleString('en');
const mebibytes = (bytes) => `${whole(Math.ceil(bytes / 2 ** 20))} MiB`;

const other = 'is neither a recording of chasqui serve --record nor a file of steps of chasqui replay --steps.';
const otherVersion = 'is a recording of another version of Chasqui, which this page cannot read. chasqui replay of ' +
  'that version makes a file of steps of it, with --steps.';

const isCount = (value) => Number.isInteger(value) && value >= 0;
const figures = ['n', 'sequences', 'padding', 'restored', 'saved', 'running', 'cells'];
const ofClasses = ['decode', 'prompt', 'waiting', 'streams'];
const times = ['t', 'ms', 'compute_ms', 'predicted_ms'];

function isStep(step, workers) {
  return isCount(step.worker) && step.worker < workers && typeof step.cut === 'boolean' &&
    (step.kind === 'decode' || step.kind === 'prefill') && times.every((name) => Number.isFinite(step[name])) &&
    figures.every((name) => isCount(step[name])) &&
    ofClasses.every((name) => step[name].length === classes.length && step[name].every(isCount));
}

function readText(text) {
  const { promise, steps } = JSON.parse(text);
  const { workers, targets, slots, cells } = promise;
  const known = classes.every((name) => targets[name].next_token_ms > 0) && slots >= 1 && cells >= 1;
  if (!known || !(workers >= 1 && workers <= recordingLimits.workers)) throw new Error('another file');
  if (!steps.every((step) => isStep(step, workers))) throw new Error('another file');
  const read = new Steps(Infinity);
  read.take(promise);
  read.take({ steps, missed: 0 });
  if (steps.length === 0) throw new Error('no steps');
  const named = Array.from({ length: workers }, (_, i) => ({ name: `Worker ${i}`, number: i, steps: read }))
    .filter(({ number }) => read.of(number).length > 0);
  return { workers: named, notes: [] };
}

async function readBinary(file, { signal, progress }) {
  const { workers, cut } = await readRecording(file, { signal, progress });
  const turns = new Turns(signal);
  const out = { workers: [], notes: [] };
  const note = (text) => out.notes.push(text);
  if (cut > 0) note(`The end of ${file.name} is cut off: its last ${whole(cut)} bytes are not whole, and are left out.`);
  for (const { name, promise, steps, count, ended, worker } of workers) {
    if (ended) note(`The recording of ${name} had ended before the server did: ${ended}`);
    if (steps.length === 0) continue;
    const read = new Steps(Infinity);
    read.take(promise);
    for (let i = 0; i < steps.length; i += 1000) {
      read.take({ steps: steps.slice(i, i + 1000), missed: 0 });
      await turns.pause();
    }
    if (steps.length < count) note(`${name}: the newest ${whole(steps.length)} of ${whole(count)} steps are shown.`);
    out.workers.push({ name, number: worker, steps: read });
  }
  if (out.workers.length === 0) throw new Fault('has no steps: nothing was computed while it was recorded.');
  return out;
}

async function readAny(file, options) {
  const kind = recordingOf(new Uint8Array(await file.slice(0, 64).arrayBuffer()));
  if (kind === 'other') throw new Fault(otherVersion);
  if (file.size > recordingLimits.bytes) {
    const longer = kind ? ' chasqui replay reads longer recordings.' : '';
    const most = mebibytes(recordingLimits.bytes);
    throw new Fault(`has ${mebibytes(file.size)}: the page opens files of up to ${most}.${longer}`);
  }
  if (kind) return readBinary(file, options);
  const text = await file.text();
  options.signal.throwIfAborted();
  try {
    return readText(text);
  } catch {
    throw new Fault(other);
  }
}

// { workers: [{ name, number, steps }], notes }: `steps` are Steps, in which the worker has this number; `notes` are
// sentences. Throws what `signal` was aborted with, or an Error whose message says what is wrong.
export async function readStepsFile(file, options) {
  try {
    const read = await readAny(file, options);
    options.signal.throwIfAborted();
    return read;
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof DOMException) throw new Error(`${file.name} cannot be read: it has changed, or is gone.`);
    throw error instanceof Fault ? new Error(`${file.name} ${error.message}`) : error;
  }
}
