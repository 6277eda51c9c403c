// What the batch view knows of the steps: the newest of one worker, what each kept a stream waiting, and sums over the
// last seconds. No element of the page is touched here.
export const classes = ['interactive', 'standard', 'background'];
export const stepsKept = 600;

// A step took longer than predicted when it took that much of its prediction, and that many milliseconds, more.
const overrun = { share: 0.1, ms: 1 };

const sum = (list) => list.reduce((total, value) => total + value, 0);
export const rowsOf = (step) => sum(step.decode) + sum(step.prompt);

export class Steps {
  // `most` of each worker are kept.
  constructor(most = stepsKept) {
    this.most = most;
    this.promise = null; // slots, cells, targets
    this.workers = new Map(); // number → { steps, last decode's end by class }
    this.missed = 0;
  }

  // One event of the feed. True when there are new steps.
  take(message) {
    if (!message.steps) {
      this.promise = message;
      return false;
    }
    this.missed += message.missed;
    for (const step of message.steps) this.add(step);
    return message.steps.length > 0;
  }

  add(step) {
    const worker = this.workers.get(step.worker) ?? { steps: [], since: null, meanwhile: nothing() };
    this.workers.set(step.worker, worker);
    step.end = step.t + step.ms;
    const before = worker.steps.at(-1);
    // Streams wait from the end of their last token's step on. `waited` is for how long they had when the step began.
    const waiting = before ? sum(before.streams) > 0 : false;
    if (!waiting || worker.since === null) worker.since = null;
    step.waited = worker.since === null ? 0 : Math.max(0, step.t - worker.since);
    step.heldUp = worker.since !== null;
    step.target = waiting || sum(step.decode) > 0 ? this.targetOf(before, step) : null;
    if (!step.heldUp) worker.meanwhile = nothing();
    note(worker.meanwhile, step);
    if (sum(step.decode) > 0 && !step.cut) {
      step.gap = step.heldUp ? step.end - worker.since : null;
      step.late = this.lateness(step);
      if (step.late.length > 0) step.meanwhile = worker.meanwhile;
      worker.since = step.end;
      worker.meanwhile = nothing();
    } else if (sum(step.streams) > 0 && worker.since === null) {
      worker.since = step.end; // its prompt has just been read: its first token came with this step
      worker.meanwhile = nothing();
    }
    worker.steps.push(step);
    if (worker.steps.length > this.most) worker.steps.splice(0, worker.steps.length - this.most);
  }

  // What the most urgent of those who wait was promised.
  targetOf(before, step) {
    if (!this.promise) return null;
    const counts = classes.map((_, c) => (before?.streams[c] ?? 0) + step.decode[c]);
    const c = counts.findIndex((count) => count > 0);
    return c < 0 ? null : this.promise.targets[classes[c]].next_token_ms;
  }

  // The classes whose tokens came later with this step than promised, with the milliseconds.
  lateness(step) {
    if (step.gap === null || !this.promise) return [];
    const late = classes.map((name) => ({ name, by: step.gap - this.promise.targets[name].next_token_ms }));
    return late.filter(({ by }, c) => by > 0 && step.decode[c] > 0);
  }

  of(worker) {
    return this.workers.get(worker)?.steps ?? [];
  }

  // Over the last `span` milliseconds of steps. Made once for each last step: a recording has many.
  summary(worker, span = 3000) {
    const last = this.of(worker).at(-1);
    if (!last) return null;
    if (this.summed?.last !== last) this.summed = { last, sums: this.sums(this.of(worker), last, span) };
    return this.summed.sums;
  }

  sums(steps, last, span) {
    const recent = steps.filter((step) => step.end > last.end - span);
    const time = Math.max(last.end - recent[0].t, 1) / 1000;
    const gaps = steps.filter((step) => step.gap != null && step.target !== null);
    return {
      running: last.running, waiting: last.waiting, cells: last.cells,
      tokens: sum(recent.map((step) => sum(step.decode))) / time,
      prompt: sum(recent.map((step) => sum(step.prompt))) / time,
      computed: sum(steps.map((step) => sum(step.prompt))),
      restored: sum(steps.map((step) => step.restored)),
      gaps: gaps.length,
      kept: gaps.filter((step) => step.gap <= step.target).length,
      worst: gaps.reduce((most, step) => Math.max(most, step.gap), 0),
    };
  }
}

// What streams have waited for since their last token: rows of prompts by class, steps that were cut, and the step that
// took longest beyond its prediction.
const nothing = () => ({ prompt: [0, 0, 0], cuts: 0, lost: 0, slow: null });

function note(meanwhile, step) {
  if (step.cut) {
    meanwhile.cuts += 1;
    meanwhile.lost += step.ms;
    return; // its rows were not computed
  }
  step.prompt.forEach((rows, c) => { meanwhile.prompt[c] += rows; });
  const over = step.ms - step.predicted_ms;
  const slow = step.predicted_ms > 0 && over >= Math.max(overrun.ms, overrun.share * step.predicted_ms);
  if (slow && over > (meanwhile.slow?.over ?? 0)) meanwhile.slow = { n: step.n, over };
}

const few = (value) => (value < 10 ? value.toFixed(1) : Math.round(value).toString());

// By how much a token was late, for whom, and what filled the time.
function sayLate({ n, late, meanwhile }) {
  const whom = late.map(({ name, by }) => `${few(by)} ms (${name})`).join(' and ');
  const rows = classes.flatMap((name, c) => (meanwhile.prompt[c] > 0 ? [`${meanwhile.prompt[c]} ${name}`] : []));
  const why = [];
  if (rows.length > 0) why.push(`${rows.join(' and ')} prompt rows were read meanwhile`);
  if (meanwhile.cuts > 0) {
    const steps = meanwhile.cuts === 1 ? 'a step was' : `${meanwhile.cuts} steps were`;
    why.push(`${steps} cut after ${few(meanwhile.lost)} ms`);
  }
  if (meanwhile.slow) {
    const which = meanwhile.slow.n === n ? 'this step' : `step ${meanwhile.slow.n}`;
    why.push(`${which} took ${few(meanwhile.slow.over)} ms longer than predicted`);
  }
  return `late by ${whom}${why.length > 0 ? `: ${why.join(', ')}` : ''}`;
}

// One step in words.
export function describe(step) {
  const kind = rowsOf(step) === 0 ? 'copies' : step.kind === 'decode' ? 'decodes' : 'reads prompts';
  const parts = [`Step ${step.n} ${kind}, ${few(step.ms)} ms`];
  if (step.predicted_ms > 0) parts.push(`${few(step.predicted_ms)} ms predicted`);
  classes.forEach((name, c) => {
    if (step.decode[c] > 0) parts.push(`${step.decode[c]} ${name} ${step.decode[c] === 1 ? 'stream' : 'streams'}`);
    if (step.prompt[c] > 0) parts.push(`${step.prompt[c]} ${name} prompt ${step.prompt[c] === 1 ? 'row' : 'rows'}`);
  });
  if (step.gap != null) parts.push(`a token ${few(step.gap)} ms after the last one${step.target ? `, target ${few(step.target)} ms` : ''}`);
  if (step.late?.length > 0) parts.push(sayLate(step));
  if (step.restored > 0) parts.push(`${step.restored} tokens from the cache`);
  if (step.saved > 0) parts.push(`${step.saved} tokens copied to the cache`);
  if (step.cut) parts.push('cut, to be computed again');
  const waiting = sum(step.waiting);
  if (waiting > 0) parts.push(`${waiting} waiting`);
  return parts.join(' · ');
}
