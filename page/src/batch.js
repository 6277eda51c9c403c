// The view of the batch: figures, four charts in which each step is a column, the step under the cursor in words, and who
// runs and waits.
import { BatchCanvas } from './batch_canvas.js';
import { h, icon, iconButton } from './dom.js';
import { Feed } from './feed.js';
import { Sequences } from './sequences.js';
import { Steps, classes, describe } from './steps.js';
import { readStepsFile } from './steps_file.js';

const byClass = (counts) => counts.flatMap((n, i) => (n > 0 ? `${n} ${classes[i]}` : [])).join(', ') || 'none';
const hint = 'Move over a column, or walk with the arrow keys.';
const whole = (value) => Math.round(value).toLocaleString('en');

class Tile {
  constructor(label, hint) {
    this.value = h('span', { class: 'value' }, '–');
    this.note = h('span', { class: 'note' }, '');
    this.bar = h('span', { class: 'fill' });
    this.element = h('div', { class: 'tile', title: hint }, h('span', { class: 'label' }, label), this.value, this.note,
      h('span', { class: 'track', 'aria-hidden': 'true' }, this.bar));
  }

  show(value, note = '', share = null) {
    if (this.value.textContent !== value) this.value.textContent = value;
    if (this.note.textContent !== note) this.note.textContent = note;
    this.bar.parentElement.hidden = share === null;
    if (share !== null) this.bar.style.width = `${Math.min(100, 100 * share).toFixed(1)}%`;
  }
}

export class BatchPanel {
  constructor(element, { settings, askForKey, model, close }) {
    this.steps = new Steps();
    this.worker = 0;
    this.paused = false;
    this.tiles = {
      promise: new Tile('Promise kept', 'Of the tokens in view, how many came within the target of their class'),
      running: new Tile('Running', 'Requests that hold a slot'),
      waiting: new Tile('Waiting', 'Requests without a slot, by class'),
      cells: new Tile('Cells', 'KV positions that hold something'),
      tokens: new Tile('Tokens a second', 'Generated, over the last three seconds of steps'),
      cache: new Tile('From the cache', 'Prompt tokens of the steps in view that were not computed again'),
    };
    this.state = h('span', { class: 'state', role: 'status' }, 'connecting');
    this.picker = h('input', { type: 'file', hidden: true, id: 'steps-file', 'aria-label': 'Recording or file of steps',
      onchange: () => this.openFile(this.picker.files[0]) });
    this.open = iconButton('file', 'Open a recording, of chasqui serve --record, or a file of steps', () => this.picker.click(), { id: 'open-steps' });
    this.pause = iconButton('pause', 'Hold the picture', () => this.togglePause(), { id: 'pause', 'aria-pressed': 'false' });
    this.workers = h('select', { 'aria-label': 'Worker', hidden: true, onchange: () => this.chooseWorker() });
    this.who = new Sequences({ settings, several: () => model() !== '' });
    this.canvas = h('canvas', { role: 'img', 'aria-label': 'Steps of the batch, the newest on the right' });
    this.words = h('p', { id: 'step', 'aria-live': 'off' }, hint);
    const charts = h('div', { class: 'charts', tabindex: '0', role: 'group', 'aria-describedby': 'step',
      'aria-label': 'Steps. Arrow keys walk from one to the next, space holds the picture.',
      onkeydown: (event) => this.key(event) }, this.canvas);
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => this.select(null));
    this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    element.append(
      h('header', { class: 'bar' }, h('h2', {}, 'The batch, live'), this.state,
        h('div', { class: 'buttons' }, this.workers, this.pause, this.picker, this.open, iconButton('close', 'Close', close, { id: 'close-batch' }))),
      h('div', { class: 'panel' }, h('div', { class: 'tiles' }, Object.values(this.tiles).map((tile) => tile.element)),
        h('ul', { class: 'legend' }, classes.map((name) => h('li', {}, h('span', { class: `swatch ${name}` }), name)),
          h('li', {}, h('span', { class: 'swatch decode' }), 'decode step'),
          h('li', {}, h('span', { class: 'swatch prefill' }), 'prompt step'),
          h('li', {}, h('span', { class: 'swatch late' }), 'late token'),
          h('li', {}, h('span', { class: 'swatch target' }), 'target'),
          h('li', {}, h('span', { class: 'swatch predicted' }), 'predicted')),
        charts, this.words, this.who.element,
        h('p', { class: 'hint' }, 'Each column is one step: a row for each stream that gets its next token, or a chunk of a ',
          'prompt. Chunks are cut so that no stream waits for a token longer than the dashed line.')));
    this.drawing = new BatchCanvas(this.canvas);
    this.feed = new Feed({ settings, model, askForKey, onMessage: (message) => this.take(message),
      onState: (state, why) => this.showState(state, why) });
    new ResizeObserver(() => this.redraw()).observe(charts);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  // Steps that were recorded, in place of those that come: until the view is opened again.
  async openFile(file) {
    this.picker.value = '';
    if (!file) return;
    this.reading?.abort();
    const reading = new AbortController();
    this.reading = reading;
    const before = this.words.textContent;
    const progress = (share) => { this.words.textContent = `Reading ${file.name}: ${Math.floor(100 * share)} %`; };
    try {
      this.showFile(file.name, await readStepsFile(file, { signal: reading.signal, progress }));
    } catch (error) {
      if (reading.signal.aborted) {
        if (this.reading === reading) this.words.textContent = before;
        return;
      }
      this.tell(error.message);
      this.redraw();
    }
  }

  showFile(name, { workers, notes }) {
    this.feed.stop();
    if (this.paused) this.togglePause();
    this.recorded = { name, workers };
    this.nameWorkers(workers.map((worker) => worker.name));
    this.workers.value = 0;
    this.chooseWorker();
    this.showState('file', name);
    this.tell([...notes, hint].join(' '));
  }

  // In place of the words for a step.
  tell(text) {
    this.selected = null;
    this.words.setAttribute('aria-live', 'polite');
    this.words.textContent = text;
  }

  // Steps of another model are other steps.
  showModel(name) {
    if (name === this.shown) return;
    this.reading?.abort();
    this.shown = name;
    this.forget();
    this.feed.again();
    this.redraw();
  }

  start() {
    if (this.recorded) this.forget();
    this.feed.start();
    this.redraw();
  }

  forget() {
    this.steps = new Steps();
    this.worker = 0;
    this.recorded = null;
    this.nameWorkers([]);
    if (this.paused) this.togglePause();
    this.end = null;
  }

  stop() {
    this.reading?.abort();
    this.feed.stop();
  }

  showState(state, why = '') {
    const text = { live: 'live', off: '', away: why, file: why }[state];
    if (this.state.textContent !== text) this.state.textContent = text;
    this.state.dataset.state = state;
    if (state === 'live') this.who.start();
    else this.who.stop();
  }

  take(message) {
    const fresh = this.steps.take(message);
    if (message.targets) this.nameWorkers(Array.from({ length: message.workers }, (_, i) => `Worker ${i}`));
    if (!fresh && this.steps.of(this.worker).length > 0) return;
    if (!this.paused) this.redraw();
  }

  nameWorkers(names) {
    this.workers.hidden = names.length < 2;
    if (names.join('\n') === [...this.workers.options].map((option) => option.text).join('\n')) return;
    this.workers.replaceChildren(...names.map((name, i) => h('option', { value: i }, name)));
  }

  chooseWorker() {
    const place = Number(this.workers.value);
    const file = this.recorded?.workers[place];
    if (file) this.steps = file.steps;
    this.worker = file?.number ?? place;
    this.selected = null;
    this.end = null;
    this.held = this.paused ? [...this.steps.of(this.worker)] : null;
    this.redraw();
  }

  togglePause() {
    this.paused = !this.paused;
    this.held = this.paused ? [...this.steps.of(this.worker)] : null;
    if (!this.recorded) this.end = null; // the newest
    this.pause.setAttribute('aria-pressed', String(this.paused));
    this.pause.setAttribute('aria-label', this.paused ? 'Go on' : 'Hold the picture');
    this.pause.replaceChildren(icon(this.paused ? 'play' : 'pause'));
    this.redraw();
  }

  // Those that do not move away by themselves can be walked through, however many fit: recorded and held ones.
  get stands() {
    return Boolean(this.recorded || this.held);
  }

  get all() {
    return this.held ?? this.steps.of(this.worker);
  }

  key(event) {
    const list = this.all; // what is held, too, when a key holds it
    const at = list.findIndex((step) => step.n === this.selected);
    const page = this.drawing.shown.length;
    const moves = { ArrowLeft: at < 0 ? list.length - 1 : at - 1, ArrowRight: at + 1, Home: 0, End: list.length - 1,
      PageUp: at < 0 ? list.length - 1 : at - page, PageDown: at + page };
    if (event.key === ' ') {
      event.preventDefault();
      this.togglePause();
    } else if (event.key in moves && list.length > 0) {
      event.preventDefault();
      if (!this.stands) this.togglePause();
      this.words.setAttribute('aria-live', 'polite');
      const to = Math.max(0, Math.min(list.length - 1, moves[event.key]));
      this.show(to);
      this.select(list[to]);
    }
  }

  // Moves the picture as little as is needed to have this step in it.
  show(at) {
    const fits = Math.max(1, this.drawing.shown.length);
    const end = Math.min(this.end ?? Infinity, this.all.length);
    this.end = at >= end ? at + 1 : Math.max(end - Math.max(0, end - fits - at), Math.min(fits, end));
  }

  wheel(event) {
    if (!this.stands) return;
    event.preventDefault();
    const fits = Math.max(1, this.drawing.shown.length);
    const all = this.all.length;
    const by = Math.sign(event.deltaY || event.deltaX) * Math.ceil(fits / 8);
    this.end = Math.max(Math.min(fits, all), Math.min(all, (this.end ?? all) + by));
    this.redraw();
  }

  point(event) {
    this.words.setAttribute('aria-live', 'off');
    this.select(this.drawing.stepAt(event.offsetX));
  }

  select(step) {
    this.selected = step?.n ?? null;
    if (step) this.words.textContent = describe(step);
    this.redraw();
  }

  redraw() {
    if (this.frame || this.canvas.closest('[hidden]')) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { all } = this;
    const steps = this.stands ? all.slice(0, this.end ?? all.length) : all;
    this.drawing.draw(steps, this.steps.promise, this.selected);
    const { promise } = this.steps;
    const sums = this.steps.summary(this.worker);
    if (!promise) return;
    const workers = promise.workers;
    const slots = Math.round(promise.slots / workers);
    const cells = Math.round(promise.cells / workers);
    const { running = 0, waiting = [0, 0, 0], cells: used = 0 } = sums ?? {};
    this.tiles.running.show(`${running} of ${slots}`, 'slots', running / slots);
    const waits = waiting.reduce((a, b) => a + b, 0);
    this.tiles.waiting.show(String(waits), byClass(waiting));
    this.who.count(running, waits);
    this.tiles.cells.show(`${Math.round((100 * used) / cells)} %`, `${whole(used)} of ${whole(cells)}`, used / cells);
    if (!sums) return;
    this.tiles.tokens.show(whole(sums.tokens), `${whole(sums.prompt)} rows of prompts`);
    const asked = sums.computed + sums.restored;
    this.tiles.cache.show(asked ? `${Math.round((100 * sums.restored) / asked)} %` : '–',
      `${whole(sums.restored)} tokens`, asked ? sums.restored / asked : 0);
    this.tiles.promise.show(sums.gaps ? `${((100 * sums.kept) / sums.gaps).toFixed(sums.kept === sums.gaps ? 0 : 1)} %` : '–',
      sums.gaps ? `longest ${whole(sums.worst)} ms` : 'no streams yet', sums.gaps ? sums.kept / sums.gaps : 0);
    this.canvas.setAttribute('aria-label', `Steps of the batch, the newest on the right. ${steps.length} steps, ` +
      `${running} requests run, ${waits} wait.`);
  }
}
