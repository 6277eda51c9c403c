// The live feed of steps: connects while the view is open and the page is visible, comes back by itself after a break.
import { Refusal, ask, readEvents } from './server.js';

const pauses = [500, 1000, 2000, 5000]; // milliseconds before each new attempt

export class Feed {
  // `settings.key` and model() may change; askForKey(wrong) says whether there is a new one; onState('live' | 'off' | 'away', why).
  constructor({ settings, model, askForKey, onMessage, onState }) {
    Object.assign(this, { settings, model, askForKey, onMessage, onState });
    document.addEventListener('visibilitychange', () => (document.hidden ? this.cut() : this.wanted && this.connect()));
  }

  start() {
    this.wanted = true;
    this.connect();
  }

  stop() {
    this.wanted = false;
    this.cut();
    this.onState('off');
  }

  // The model is another one now.
  again() {
    if (!this.controller) return;
    this.cut();
    this.connect();
  }

  cut() {
    clearTimeout(this.timer);
    this.controller?.abort();
    this.controller = null;
  }

  async connect() {
    if (this.controller) return;
    const controller = new AbortController();
    this.controller = controller;
    let came = false;
    let why = 'The server has ended the feed.';
    try {
      const model = this.model();
      const response = await ask(`debug/steps${model && `?model=${encodeURIComponent(model)}`}`, { key: this.settings.key, signal: controller.signal });
      await readEvents(response, (text) => {
        came = true;
        this.tries = 0;
        this.onState('live');
        this.onMessage(JSON.parse(text));
      });
    } catch (error) {
      if (controller.signal.aborted) return;
      if (error.status === 401 && await this.askForKey(Boolean(this.settings.key))) this.tries = 0;
      else if (error.status === 401) this.wanted = false;
      why = error instanceof Refusal ? error.message : 'The server cannot be reached.';
    }
    if (this.controller !== controller) return;
    this.controller = null;
    this.onState('away', why);
    if (!this.wanted || document.hidden) return;
    this.tries = came ? 0 : (this.tries ?? 0) + 1;
    this.timer = setTimeout(() => this.connect(), pauses[Math.min(this.tries, pauses.length - 1)]);
  }
}
