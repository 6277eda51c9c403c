// The list of conversations.
import { matches } from './conversation.js';
import { h, icon, iconButton, toast } from './dom.js';

const day = 24 * 3600 * 1000;

function ageOf(conversation, now) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (conversation.updated >= midnight) return 'Today';
  if (conversation.updated >= midnight - day) return 'Yesterday';
  return conversation.updated >= midnight - 7 * day ? 'This week' : 'Earlier';
}

export class Side {
  // `actions`: open(conversation), create(), rename(conversation, title), remove(conversation), restore(conversation),
  // exportAll(), importFrom(files), toggleSide(open); its `models` has the menu of models.
  constructor(element, actions) {
    this.actions = actions;
    this.list = h('div', { class: 'list' });
    this.search = h('input', { type: 'search', id: 'search', placeholder: 'Search', 'aria-label': 'Search in conversations',
      title: 'Alt K', oninput: () => this.draw(), onkeydown: (event) => this.key(event) });
    this.file = h('input', { type: 'file', id: 'import', accept: '.json,.md', multiple: true, hidden: true,
      'aria-label': 'Files to import', onchange: () => this.importFiles() });
    this.model = h('p', { class: 'model' });
    element.append(
      h('header', {}, h('img', { src: 'favicon.svg', alt: '', width: 26, height: 26 }), h('span', { class: 'brand' }, 'Chasqui')),
      h('button', { type: 'button', id: 'new', onclick: () => actions.create(), title: 'Alt N' }, icon('plus'), 'New conversation'),
      this.search, this.list,
      h('div', { class: 'row files' },
        h('button', { type: 'button', id: 'export', title: 'All conversations as JSON', onclick: () => actions.exportAll() },
          icon('download'), 'Export'),
        h('button', { type: 'button', id: 'open-import', title: 'Conversations from JSON or Markdown',
          onclick: () => this.file.click() }, icon('upload'), 'Import'), this.file),
      actions.models.element, this.model);
  }

  startSearch() {
    this.actions.toggleSide(true);
    this.search.focus();
  }

  key(event) {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    this.search.value = '';
    this.draw();
  }

  async importFiles() {
    const files = [...this.file.files];
    this.file.value = ''; // so that the same file can be chosen again
    await this.actions.importFrom(files);
  }

  show(conversations, current) {
    this.conversations = conversations;
    this.current = current;
    this.draw();
  }

  draw() {
    const { current } = this;
    const words = this.search.value.trim();
    const conversations = words ? this.conversations.filter((one) => matches(one, words)) : this.conversations;
    const groups = new Map();
    const now = Date.now();
    for (const conversation of [...conversations].sort((a, b) => b.updated - a.updated)) {
      const age = ageOf(conversation, now);
      groups.set(age, [...(groups.get(age) ?? []), conversation]);
    }
    const parts = [];
    for (const [age, list] of groups) {
      parts.push(h('h2', {}, age), h('ul', {}, list.map((conversation) => this.item(conversation, conversation === current))));
    }
    if (words && parts.length === 0) parts.push(h('p', { class: 'hint', role: 'status' }, 'No conversation has these words.'));
    this.list.replaceChildren(...parts);
  }

  item(conversation, current) {
    const name = conversation.title || 'New conversation';
    const open = h('button', { type: 'button', class: 'open', 'aria-current': current ? 'page' : null,
      onclick: () => this.actions.open(conversation) }, name);
    const item = h('li', { class: current ? 'current' : null }, open,
      iconButton('edit', `Rename “${name}”`, () => this.rename(conversation, item, open)),
      iconButton('trash', `Delete “${name}”`, () => this.remove(conversation)));
    return item;
  }

  rename(conversation, item, open) {
    const input = h('input', { value: conversation.title, 'aria-label': 'New name', maxlength: 120 });
    let done = false;
    const end = (keep) => {
      if (done) return;
      done = true;
      this.actions.rename(conversation, keep && input.value.trim() ? input.value.trim() : conversation.title);
    };
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') end(true);
      if (event.key === 'Escape') end(false);
    });
    input.addEventListener('blur', () => end(true));
    open.replaceWith(input);
    input.select();
  }

  remove(conversation) {
    this.actions.remove(conversation);
    toast('The conversation is deleted.', { label: 'Undo', run: () => this.actions.restore(conversation) });
  }
}
