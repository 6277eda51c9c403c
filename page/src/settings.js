// The settings dialog, and what of it goes into a request. An empty field means the server's own default, which the
// field shows in grey.
import { h, iconButton, keepFocusIn, say } from './dom.js';
import { faultOfLines } from './mcp.js';
import { keepSettings } from './store.js';

const numbers = [
  ['temperature', 'Temperature', 'How freely it chooses; 0: always the likeliest word', { min: 0, max: 100, step: 'any' }],
  ['top_p', 'Top p', 'Share of the likeliest words; 1: off', { min: 0, max: 1, step: 'any' }],
  ['top_k', 'Top k', 'Number of the likeliest words; 0: off', { min: -1, max: 1000000, step: 1 }],
  ['min_p', 'Min p', 'Least likelihood, of the best word’s; 0: off', { min: 0, max: 1, step: 'any' }],
  ['repeat_penalty', 'Repeat penalty', '1: off', { min: 0.01, max: 100, step: 'any' }],
  ['max_tokens', 'Longest answer', 'Tokens; empty: until the context is full', { min: 1, max: 1000000, step: 1 }],
  ['seed', 'Seed', 'The same seed and words give the same answer', { min: -1, max: Number.MAX_SAFE_INTEGER, step: 1 }],
];

const classes = [['', 'As the server decides'], ['interactive', 'Interactive'], ['standard', 'Standard'],
  ['background', 'Background']];

// What can be kept for one model: other models answer well with other sampling.
const ownFields = [...numbers.map(([name]) => name), 'stop', 'system'];

// The settings as they are for this model; its name is '' where the server has one.
export const settingsFor = (settings, model) => ({ ...settings, ...settings.ofModels[model] });

// The fields of a request; `functions` are tools of MCP servers, in the form of a request's.
export function requestFields(settings, functions = []) {
  const fields = {};
  for (const [name] of numbers) if (settings[name] !== '') fields[name] = Number(settings[name]);
  if (settings.priority) fields.priority = settings.priority;
  const stops = settings.stop.split('\n').filter((line) => line !== '');
  if (stops.length > 0) fields.stop = stops;
  const tools = [...(settings.tools.trim() ? JSON.parse(settings.tools) : []), ...functions];
  if (tools.length > 0) fields.tools = tools;
  return settings.more.trim() ? { ...fields, ...JSON.parse(settings.more) } : fields;
}

// What is wrong with a text that is to be JSON, or nothing.
function faultOf(text, wanted) {
  if (!text.trim()) return '';
  try {
    const value = JSON.parse(text);
    if (wanted === 'array') return Array.isArray(value) ? '' : 'This is to be a JSON array: [{"type":"function", …}]';
    const object = value !== null && typeof value === 'object' && !Array.isArray(value);
    return object ? '' : 'This is to be a JSON object: {"field": value}';
  } catch (error) {
    return `Not JSON: ${error.message}`;
  }
}

function field(id, label, hint, control) {
  control.id = id;
  if (hint) control.setAttribute('aria-describedby', `${id}-hint`);
  return h('div', { class: 'field' }, h('label', { for: id }, label), control,
    hint && h('p', { class: 'hint', id: `${id}-hint` }, hint));
}

export class SettingsDialog {
  // `defaults` is default_generation_settings.params of /props, when it came.
  constructor(settings, changed) {
    this.settings = settings;
    this.changed = changed;
    this.defaults = {};
    this.dialog = h('dialog', { id: 'settings', 'aria-labelledby': 'settings-title' });
    document.body.append(this.dialog);
    keepFocusIn(this.dialog);
  }

  // `model` is the one that answers; '' where there is no choice.
  open(conversation, model) {
    this.conversation = conversation;
    this.model = model;
    const shown = settingsFor(this.settings, model);
    const form = h('form', { method: 'dialog', onsubmit: (event) => this.submit(event) },
      h('header', {}, h('h2', { id: 'settings-title' }, 'Settings'),
        iconButton('close', 'Close without saving', () => this.dialog.close())),
      h('div', { class: 'fields' },
        field('set-system', 'System prompt of this conversation', 'Also the beginning of every new conversation.',
          h('textarea', { rows: 4, value: conversation.system })),
        h('fieldset', {}, h('legend', {}, 'Sampling'),
          h('div', { class: 'grid' }, numbers.map((row) => this.number(row, shown)))),
        field('set-stop', 'Stop at', 'One string on each line.', h('textarea', { rows: 2, value: shown.stop })),
        model && this.own(),
        field('set-priority', 'Class', 'Who goes first under load.', this.select()),
        field('set-tools', 'Tools', 'A JSON array of functions that the model may call; you give the results.',
          this.json('tools', 'array', 4)),
        this.mcp(),
        field('set-more', 'More fields', 'A JSON object that goes into every request, such as {"ignore_eos": true}.',
          this.json('more', 'object', 2)),
        field('set-key', 'API key', 'Kept in this browser, sent to this server only.',
          h('input', { type: 'password', autocomplete: 'off', value: this.settings.key }))),
      h('footer', {}, h('button', { type: 'button', onclick: () => this.clear() }, 'Server’s defaults'),
        h('button', { type: 'submit', class: 'primary' }, 'Save')));
    this.dialog.replaceChildren(form);
    this.dialog.showModal();
  }

  // Whether what can be kept for one model is. The fields follow, so that nothing of one model is saved for all.
  own() {
    const { settings, model } = this;
    const box = h('input', { type: 'checkbox', id: 'set-own', checked: Boolean(settings.ofModels[model]),
      'aria-describedby': 'set-own-hint' });
    box.addEventListener('change', () => {
      const from = box.checked ? settings.ofModels[model] : settings;
      if (from) for (const name of ownFields) this.input(name).value = from[name];
    });
    return h('div', { class: 'field' }, h('label', { class: 'check' }, box, `Keep for ${model} alone`),
      h('p', { class: 'hint', id: 'set-own-hint' },
        'The system prompt of new conversations, sampling and stop strings. Else they hold for all models.'));
  }

  number([name, label, hint, limits], shown) {
    const known = this.defaults[name];
    const placeholder = known === undefined ? '' : String(known);
    return field(`set-${name}`, label, hint,
      h('input', { type: 'number', inputmode: 'decimal', ...limits, placeholder, value: shown[name] }));
  }

  json(name, wanted, rows) {
    const check = (event) => event.target.setCustomValidity(faultOf(event.target.value, wanted));
    return h('textarea', { rows, class: 'mono', spellcheck: 'false', value: this.settings[name], oninput: check });
  }

  mcp() {
    const { mcp, runTools } = this.settings;
    const check = (event) => event.target.setCustomValidity(faultOfLines(event.target.value));
    return h('fieldset', {}, h('legend', {}, 'MCP'),
      field('set-mcp', 'MCP servers', 'An address on each line, such as http://127.0.0.1:3000/mcp, and behind it a token if it wants one. ' +
        'This browser asks them; the server has to allow it (--webui-mcp-origins).',
      h('textarea', { rows: 2, class: 'mono', spellcheck: 'false', value: mcp, oninput: check })),
      h('div', { class: 'field' }, h('label', { class: 'check' },
        h('input', { type: 'checkbox', id: 'set-runTools', checked: runTools }), 'Run their tools without asking')));
  }

  select() {
    const options = classes.map(([value, label]) =>
      h('option', { value, selected: value === this.settings.priority }, label));
    return h('select', {}, options);
  }

  clear() {
    for (const [name] of numbers) this.input(name).value = '';
    for (const name of ['stop', 'priority', 'tools', 'more', 'mcp']) {
      this.input(name).value = '';
      this.input(name).setCustomValidity?.('');
    }
  }

  input(name) {
    return this.dialog.querySelector(`#set-${name}`);
  }

  submit() {
    const { settings, model } = this;
    const own = Object.fromEntries(ownFields.map((name) => [name, this.input(name).value]));
    if (model && this.input('own').checked) {
      settings.ofModels[model] = own;
    } else {
      delete settings.ofModels[model];
      Object.assign(settings, own);
    }
    for (const name of ['priority', 'tools', 'more', 'mcp', 'key']) settings[name] = this.input(name).value;
    settings.runTools = this.input('runTools').checked;
    settings.key = settings.key.trim();
    this.conversation.system = own.system;
    keepSettings(this.settings);
    this.changed();
    say('Settings saved');
  }
}

// Asks for the API key; gives false when the person does not want to tell it.
export function askForKey(settings, wrong) {
  return new Promise((resolve) => {
    const input = h('input', { type: 'password', id: 'key', autocomplete: 'off', required: true, autofocus: true,
      'aria-describedby': 'key-hint' });
    const close = () => dialog.close('');
    const dialog = h('dialog', { id: 'key-dialog', 'aria-labelledby': 'key-title' },
      h('form', { method: 'dialog' },
        h('header', {}, h('h2', { id: 'key-title' }, 'This server asks for a key'), iconButton('close', 'Not now', close)),
        h('div', { class: 'fields' },
          wrong && h('p', { class: 'fault', role: 'alert' }, 'The server does not know this key.'),
          h('div', { class: 'field' }, h('label', { for: 'key' }, 'API key'), input,
            h('p', { class: 'hint', id: 'key-hint' }, 'Kept in this browser, sent to this server only.'))),
        h('footer', {}, h('button', { type: 'button', onclick: close }, 'Not now'),
          h('button', { type: 'submit', class: 'primary', value: 'ok' }, 'Use it'))));
    dialog.addEventListener('close', () => {
      const key = dialog.returnValue === 'ok' ? input.value.trim() : '';
      dialog.remove();
      if (key) {
        settings.key = key;
        keepSettings(settings);
      }
      resolve(Boolean(key));
    });
    document.body.append(dialog);
    keepFocusIn(dialog);
    dialog.showModal();
    input.focus(); // not the close button, which stands first: Enter would close, and the key go into the chat
  });
}
