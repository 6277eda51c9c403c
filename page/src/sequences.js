// Who runs and who waits, under the charts: asked for every second while the feed of steps is live and the page visible.
// Where the server does not tell it (only the operator may see what concerns others), the numbers of the steps stand there.
import { h } from './dom.js';
import { ask } from './server.js';

const askEvery = 1000; // milliseconds

const whole = (value) => value.toLocaleString('en');
const age = (ms) => (ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : ms < 120_000 ? `${Math.round(ms / 1000)} s`
  : `${Math.round(ms / 60_000)} min`);

function tokens(row) {
  if (row.state === 'writing') return `${whole(row.generated_tokens)} written`;
  return row.state === 'reading' ? `${whole(row.read_tokens)} of ${whole(row.prompt_tokens)} read` : `${whole(row.prompt_tokens)} to read`;
}

// Of those that run and those that wait, which come in this order, so many that neither hides the other.
function choose(list, most) {
  const waiting = list.filter(({ state }) => state === 'waiting');
  const running = list.filter(({ state }) => state !== 'waiting');
  const places = Math.max(Math.floor(most / 2), most - running.length); // of those that wait
  return [...running.slice(0, most - Math.min(places, waiting.length)), ...waiting.slice(0, places)];
}

export class Sequences {
  // `settings.key` may change; several() says whether the server has more than one model.
  constructor({ settings, several }) {
    Object.assign(this, { settings, several });
    this.counts = '';
    this.rows = h('tbody', {});
    this.head = h('tr', {});
    this.table = h('table', { hidden: true }, h('caption', {}, 'Who runs and who waits'), h('thead', {}, this.head), this.rows);
    this.note = h('p', { class: 'hint' });
    this.element = h('div', { class: 'who', hidden: true }, this.table, this.note);
    document.addEventListener('visibilitychange', () => this.ask());
  }

  start() {
    if (this.live) return;
    this.live = true;
    this.element.hidden = false;
    this.ask();
  }

  stop() {
    this.live = false;
    this.element.hidden = true;
    clearTimeout(this.timer);
    this.controller?.abort();
    this.controller = null;
    this.refused = null;
    this.list = null;
  }

  async ask() {
    clearTimeout(this.timer);
    if (!this.live || document.hidden) return;
    this.timer = setTimeout(() => this.ask(), askEvery);
    if (this.controller) return; // the answer takes longer than that
    const { key } = this.settings;
    if (this.refused === key) return; // it would be again
    const controller = new AbortController();
    this.controller = controller;
    try {
      const list = await (await ask('debug/sequences', { key, signal: controller.signal })).json();
      if (this.controller === controller) this.list = list;
    } catch (error) {
      if (this.controller !== controller) return;
      this.list = null;
      if (error.status === 401 || error.status === 403) this.refused = key;
    }
    this.controller = null;
    this.show();
  }

  // What the steps say, for want of more.
  count(running, waiting) {
    this.counts = `${whole(running)} ${running === 1 ? 'runs' : 'run'}, ${whole(waiting)} ${waiting === 1 ? 'waits' : 'wait'}`;
    if (!this.list) this.show();
  }

  show() {
    const { list } = this;
    this.table.hidden = !list || list.total === 0;
    if (this.table.hidden) {
      this.note.textContent = list ? 'No request runs or waits.' : this.counts;
      this.rows.replaceChildren();
      return;
    }
    const several = this.several();
    const names = ['Tenant', ...(several ? ['Model'] : []), 'Class', 'State', 'Age', 'Tokens'];
    if (this.head.cells.length !== names.length) this.head.replaceChildren(...names.map((name) => h('th', { scope: 'col' }, name)));
    const shown = choose(list.sequences, this.fits());
    this.rows.replaceChildren(...shown.map((row) => {
      const tenant = row.tenant || 'anonymous';
      const cells = [tenant, ...(several ? [row.model] : []), row.class, row.state, age(row.age_ms), tokens(row)];
      return h('tr', { class: row.state === 'waiting' ? 'waits' : null }, cells.map((text) => h('td', { title: text }, text)));
    }));
    const more = list.total - shown.length;
    this.note.textContent = more > 0 ? `and ${whole(more)} more` : '';
  }

  // As many rows as the box has room for, with the line below them.
  fits() {
    const row = this.rows.rows[0]?.offsetHeight || 22;
    const above = (this.table.caption.offsetHeight || row) + (this.head.offsetHeight || row);
    return Math.max(2, Math.floor((this.element.clientHeight - above - row) / row));
  }
}
