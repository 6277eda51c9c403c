// The conversation in the middle of the page: its messages, the field to write in, and the answer that is coming.
import { Tray } from './attachments.js';
import {
  addAnswer, addNode, choose, filesOf, lastId, messagesFor, newStream, pathOf, removeNode, tokensUsed,
} from './conversation.js';
import { h, icon, iconButton, say, toast } from './dom.js';
import { MessageView } from './message.js';
import { Break, Refusal, resumeAnswer, stopStream, streamAnswer } from './server.js';
import { requestFields, settingsFor } from './settings.js';
import { welcome } from './welcome.js';

// Made at once when a conversation is opened: so many messages, and so many screens, from its end.
const madeAtOnce = { messages: 6, screens: 1.5 };
const nearby = '150% 0px'; // of the view: what comes as near is made before it is seen
const holdsStill = CSS.supports('overflow-anchor', 'auto'); // what is seen stays where it is, whatever grows above it
const keepEvery = 500; // milliseconds between two writes of an answer that is coming
const resumePauses = [0, 0, 500, 1000, 2000, 4000, 8000]; // milliseconds; the server keeps a stream for longer
const roundsMost = 20; // of tools that run without asking, for one message

export class Chat {
  // `page` is the rest: settings, model name, askForKey, listChanged, keep, buttons for the bar.
  constructor(element, page) {
    this.page = page;
    this.running = new Map(); // conversation id → { controller, node }
    this.views = [];
    this.title = h('h1', {}, 'Chasqui');
    this.log = h('div', { id: 'log', role: 'log', 'aria-label': 'Messages', tabindex: '0', onscroll: () => this.scrolled() });
    this.jump = iconButton('down', 'To the newest message', () => this.toEnd(), { id: 'jump', hidden: true });
    this.fill = h('span', { class: 'fill' });
    this.used = h('span', {});
    this.gauge = h('div', { id: 'context', role: 'meter', 'aria-label': 'Context used', 'aria-valuemin': 0, hidden: true },
      this.used, h('div', { class: 'track' }, this.fill));
    this.prompt = h('textarea', { id: 'prompt', rows: 1, 'aria-label': 'Message', placeholder: 'Write a message',
      enterkeyhint: 'send', oninput: () => this.grow(), onkeydown: (event) => this.key(event) });
    this.tray = new Tray(this.prompt);
    this.button = h('button', { type: 'submit', id: 'send', class: 'icon', 'aria-label': 'Send', title: 'Send' }, icon('send'));
    const form = h('form', { id: 'composer', onsubmit: (event) => this.submit(event) },
      h('div', { class: 'box' }, this.tray.element, this.tray.button, this.tray.input, this.prompt,
        this.button),
      h('p', { class: 'hint' }, h('kbd', {}, 'Enter'), ' sends · ', h('kbd', {}, 'Shift Enter'), ' new line · ',
        h('kbd', {}, 'Esc'), ' stops'));
    const bar = h('header', { class: 'bar' }, page.menuButton, this.title,
      h('div', { class: 'buttons' }, this.gauge, page.barButtons));
    element.append(bar, h('div', { class: 'scroll' }, this.log, this.jump), form);
    this.follow = true;
    this.log.classList.toggle('holds-still', holdsStill);
    this.near = new IntersectionObserver((entries) => this.reveal(entries), { root: this.log, rootMargin: nearby });
  }

  get busy() {
    return this.running.get(this.conversation?.id);
  }

  open(conversation) {
    this.conversation = conversation;
    this.views = [];
    this.log.replaceChildren();
    this.draw();
    this.toEnd();
    this.prompt.focus({ preventScroll: true });
  }

  // Makes the views match the path; those of the same message stay as they are.
  draw() {
    const path = pathOf(this.conversation);
    this.showTitle();
    const before = new Map(this.views.map((view) => [view.node, view]));
    this.views = path.map((node) => before.get(node) ?? new MessageView(this.conversation, node, this));
    const list = h('div', { class: 'messages' }, this.views.map((view) => view.element));
    if (path.length === 0) list.append(welcome(this.page.modelName, (text) => this.send(text)));
    for (const view of before.values()) view.show();
    this.revealEnd();
    this.log.replaceChildren(list);
    this.showButton();
    this.showGauge();
  }

  showTitle() {
    const { title } = this.conversation;
    this.title.textContent = title || 'New conversation';
    document.title = title ? `${title} · Chasqui` : 'Chasqui';
  }

  // Another tab has changed the conversation that is open. What its reader does here goes on: nothing is drawn anew that
  // need not be, and the place and the focus stay.
  refresh() {
    const ids = (nodes) => nodes.map(({ id }) => id).join();
    const { follow, log: { scrollTop } } = this;
    const { activeElement } = document;
    if (ids(this.views.map(({ node }) => node)) === ids(pathOf(this.conversation))) {
      this.showTitle();
      this.showAll();
      this.showGauge();
      return;
    }
    this.draw();
    if (follow) this.toEnd();
    else this.log.scrollTop = scrollTop;
    if (activeElement?.isConnected) activeElement.focus({ preventScroll: true });
  }

  // The end is made at once, so that it is where it is to be; the rest when it comes near the view.
  revealEnd() {
    this.near.disconnect();
    const { clientWidth, clientHeight } = this.log; // once, for asking lays the page out
    const columns = Math.max(30, Math.min(90, clientWidth / 9));
    let [messages, height] = [0, 0];
    for (const view of this.views.toReversed()) {
      view.expectHeight(columns);
      if (messages < madeAtOnce.messages || height < madeAtOnce.screens * clientHeight) view.reveal();
      else if (!view.revealed) this.near.observe(view.element);
      messages += 1;
      height += view.expected;
    }
  }

  reveal(entries) {
    const { follow } = this;
    const top = this.log.getBoundingClientRect().top;
    const seen = holdsStill ? null : this.views.find((view) => view.element.getBoundingClientRect().bottom > top);
    const before = seen?.element.getBoundingClientRect().bottom;
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      this.near.unobserve(entry.target);
      this.views.find((view) => view.element === entry.target)?.reveal();
    }
    if (follow) this.toEnd();
    else if (seen) this.log.scrollTop += seen.element.getBoundingClientRect().bottom - before;
  }

  // How much of a slot's context the conversation fills, as the last answer said.
  showGauge() {
    const used = tokensUsed(this.conversation);
    const most = this.page.contextTokens;
    this.gauge.hidden = used === null || !most;
    if (this.gauge.hidden) return;
    const share = Math.min(1, used / most);
    const words = `${used.toLocaleString('en')} of ${most.toLocaleString('en')} tokens`;
    this.used.textContent = words;
    this.fill.style.width = `${100 * share}%`;
    this.gauge.classList.toggle('full', share >= 0.9);
    this.gauge.title = share >= 0.9 ? `The context is nearly full: ${words}` : `The context holds ${words}`;
    for (const [name, value] of [['max', most], ['now', Math.min(used, most)], ['text', words]]) {
      this.gauge.setAttribute(`aria-value${name}`, value);
    }
  }

  showButton() {
    const stops = Boolean(this.busy);
    this.button.setAttribute('aria-label', stops ? 'Stop' : 'Send');
    this.button.title = stops ? 'Stop (Esc)' : 'Send (Enter)';
    this.button.classList.toggle('stops', stops);
    this.button.replaceChildren(icon(stops ? 'stop' : 'send'));
  }

  key(event) {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!this.busy) this.submit(event);
    } else if (event.key === 'ArrowUp' && this.prompt.value === '' && !this.busy) {
      const mine = this.views.findLast((view) => view.node.role === 'user');
      if (!mine) return;
      event.preventDefault();
      mine.edit();
    }
  }

  submit(event) {
    event.preventDefault();
    if (this.busy) return this.stop();
    if (this.tray.unread) return toast(`${this.tray.unread} is still being read`);
    const text = this.prompt.value;
    if (!text.trim() && this.tray.list.length === 0) return;
    this.prompt.value = '';
    this.grow();
    this.send(text, this.tray.take());
  }

  stop(conversation = this.conversation) {
    const run = this.running.get(conversation.id);
    if (!run) return;
    run.controller.abort();
    stopStream({ key: this.page.settings.key, node: run.node }).catch(() => {}); // it ends by itself when unread
  }

  send(text, attachments = []) {
    const user = addNode(this.conversation, lastId(this.conversation), { content: text, attachments });
    this.answer(user.id);
  }

  edit(node, text) {
    if (this.busy) this.stop();
    const other = addNode(this.conversation, node.parent, { content: text, attachments: filesOf(node) });
    this.answer(other.id);
  }

  retry(node) {
    if (this.busy) return;
    this.answer(node.parent);
  }

  choose(node, step) {
    if (this.busy) return;
    choose(this.conversation, node, step);
    this.page.keep(this.conversation);
    this.draw();
  }

  // The model goes on with what is there of its answer.
  continueAnswer(node) {
    if (this.busy) return;
    Object.assign(node, { state: 'streaming', finish: '', error: '', pieces: 0, first_ms: null, usage: null, timings: null },
      newStream());
    this.run(this.conversation, node);
  }

  removeMessage(node) {
    if (this.busy) return;
    const { conversation } = this;
    const bringBack = removeNode(conversation, node);
    const changed = () => {
      this.page.keep(conversation);
      if (conversation === this.conversation) this.draw();
    };
    changed();
    toast('The message is deleted.', { label: 'Undo', run: () => { bringBack(); changed(); } });
  }

  answerTools(node, results) {
    let parent = node.id;
    for (const { call, content } of results) {
      parent = addNode(this.conversation, parent, { role: 'tool', tool_call_id: call.id, content }).id;
    }
    this.answer(parent);
  }

  answer(parent) {
    return this.run(this.conversation, addAnswer(this.conversation, parent));
  }

  // From the request to the last token. `resumes`: the request may have been sent before the page was reloaded.
  async run(conversation, node, { resumes = false } = {}) {
    const { models } = this.page;
    const controller = new AbortController();
    this.running.set(conversation.id, { controller, node });
    if (conversation === this.conversation) {
      this.draw();
      this.toEnd();
    }
    this.page.listChanged(conversation);
    // Before the request, so that a page that is reloaded knows the stream's name.
    await this.page.keep(conversation, { tells: false });
    try {
      await this.receive(conversation, node, controller.signal, resumes);
      node.state = 'done';
    } catch (error) {
      node.state = 'stopped';
      if (error.name !== 'AbortError') node.error = sayFault(error);
    }
    node.waits = '';
    if (this.running.get(conversation.id)?.node === node) this.running.delete(conversation.id);
    conversation.updated = Date.now();
    await this.page.keep(conversation);
    this.page.listChanged(conversation);
    if (conversation !== this.conversation) return;
    if (!models.isLoaded(models.of(conversation, this.page.settings))) this.page.learn();
    this.showNode(node);
    this.showButton();
    this.showGauge();
    say(node.error || (node.state === 'done' ? 'The answer is complete' : 'Stopped'));
    if (this.page.settings.runTools) await this.runTools(conversation, node);
  }

  knowsTool(call) {
    return this.page.mcp.has(call.function.name);
  }

  runTool(call, signal) {
    return this.page.mcp.run(call, signal);
  }

  // Without asking, where MCP servers have all the tools that the answer calls.
  async runTools(conversation, node) {
    const calls = node.state === 'done' ? node.tool_calls.filter(Boolean) : [];
    const path = pathOf(conversation);
    const rounds = path.slice(path.findLastIndex(({ role }) => role === 'user')).filter(({ role }) => role === 'assistant').length;
    if (calls.length === 0 || rounds > roundsMost || !calls.every((call) => this.knowsTool(call))) return;
    const results = await Promise.all(calls.map(async (call) => ({ call, content: await this.runTool(call) })));
    const stays = conversation === this.conversation && !this.busy && path.at(-1) === node && lastId(conversation) === node.id;
    if (stays) this.answerTools(node, results);
  }

  // What is known of tools has changed.
  showAll() {
    for (const view of this.views) view.show();
  }

  // Sends the request, and after a break goes on for as long as the server keeps the stream.
  async receive(conversation, node, signal, resumes) {
    let broken = resumes ? new Break('The answer was cut off: the server does not keep it any more.') : null;
    for (const pause of resumePauses) {
      if (pause > 0) await new Promise((done) => { setTimeout(done, pause); });
      signal.throwIfAborted();
      try {
        if (!broken) return void await this.ask(streamAnswer, conversation, node, signal);
        if (await this.ask(resumeAnswer, conversation, node, signal)) return;
      } catch (error) {
        if (!(error instanceof Break)) throw error;
        broken = error;
        continue;
      }
      // The server has no such stream: it expired, or the page was reloaded before the request had left.
      if (node.finish) return;
      if (node.offset > 0 || !resumes) throw broken;
      broken = null;
    }
    throw broken;
  }

  // `send` is streamAnswer or resumeAnswer; once more where the server wants a key.
  async ask(send, conversation, node, signal) {
    let kept = -keepEvery; // the first piece is kept at once, with the name of its stream
    const changed = () => {
      if (conversation === this.conversation) this.showSoon(node);
      if (performance.now() - kept < keepEvery) return;
      kept = performance.now();
      this.page.keep(conversation, { tells: false });
    };
    const { models, settings } = this.page;
    const model = models.of(conversation, settings);
    const body = { messages: messagesFor(conversation, node), stream: true, return_progress: true,
      stream_options: { include_usage: true }, ...(model && { model }),
      ...requestFields(settingsFor(settings, model), this.page.mcp.functions) };
    node.waits = models.waits(model);
    if (node.waits) changed();
    for (let wrong = false; ; wrong = true) {
      try {
        return await send({ key: this.page.settings.key, body, signal, node, changed });
      } catch (error) {
        if (error.status !== 401) throw error;
        if (!await this.page.askForKey(wrong || Boolean(this.page.settings.key))) throw error;
      }
    }
  }

  // Once for each picture that the screen shows, however fast tokens come; less often where a long answer takes long to
  // lay out, so that the page always has time for its user. A timer, because hidden pages have no frames.
  showSoon(node) {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (node.state === 'streaming') this.showNode(node);
    }, Math.max(16, Math.min(200, 2 * (this.drawing ?? 0))));
  }

  showNode(node) {
    const begun = performance.now();
    this.views.find((view) => view.node === node)?.show();
    if (this.follow) this.toEnd();
    this.drawing = performance.now() - begun;
  }

  scrolled() {
    this.follow = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 60;
    this.jump.hidden = this.follow;
  }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
    this.follow = true;
    this.jump.hidden = true;
  }

  grow() {
    this.prompt.style.height = 'auto';
    this.prompt.style.height = `${Math.min(this.prompt.scrollHeight, 240)}px`;
  }
}

function sayFault(error) {
  if (!(error instanceof Refusal)) {
    if (error instanceof Break) return error.message;
    return error instanceof TypeError ? 'The server cannot be reached.' : `Something went wrong: ${error.message}`;
  }
  const again = error.retryAfter > 0 ? ` Try again in ${error.retryAfter} s.` : '';
  return `${error.message}.${again}`.replace(/\.\./, '.');
}
