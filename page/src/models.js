// The models of the server, and which of them answers in a conversation: a menu where there are several.
import { h } from './dom.js';
import { ask } from './server.js';

export class Models {
  // `chosen(name)` runs when a person has chosen another one.
  constructor(chosen) {
    this.list = []; // { name, state, reason }, the server's first choice first
    this.select = h('select', { id: 'model', onchange: () => chosen(this.select.value) });
    this.element = h('label', { class: 'picker', hidden: true }, 'Model', this.select);
  }

  async learn(key) {
    const { data } = await (await ask('v1/models', { key })).json();
    this.list = data.map(({ id, status }) => ({ name: id, reason: status?.reason ?? '',
      state: status?.failed ? 'failed' : status?.value ?? 'loaded' }));
  }

  // What a request of this conversation names; nothing where there is no choice.
  of(conversation, settings) {
    if (this.list.length < 2) return '';
    const known = [conversation.model, settings.model].find((name) => this.list.some((one) => one.name === name));
    return known ?? this.list[0].name;
  }

  isLoaded(name) {
    const state = this.list.find((one) => one.name === name)?.state ?? 'loaded';
    return state === 'loaded' || state === 'draining';
  }

  // What the reader is told while a request waits for its model.
  waits(name) {
    return this.isLoaded(name) ? '' : `${name} is being loaded`;
  }

  show(name) {
    this.element.hidden = this.list.length < 2;
    const words = ({ name: each, state }) => (state === 'loaded' ? each : `${each} (${state})`);
    this.select.replaceChildren(...this.list.map((one) =>
      h('option', { value: one.name, title: one.reason, selected: one.name === name }, words(one))));
  }
}
