// Puts the page together: conversations, chat, batch, settings, keys.
import { BatchPanel } from './batch.js';
import { Chat } from './chat.js';
import { interrupted, newConversation, pathOf } from './conversation.js';
import { find, h, icon, iconButton, say, toast, warn } from './dom.js';
import { McpTools } from './mcp.js';
import { Models } from './models.js';
import { ask } from './server.js';
import { SettingsDialog, askForKey, settingsFor } from './settings.js';
import { Side } from './side.js';
import {
  allConversations, dropConversation, keepConversation, keepSettings, listen, openStore, readAgain, readSettings,
} from './store.js';
import { conversationsOf, download, fileName, toFiles, toMarkdown } from './transfer.js';

class Page {
  constructor() {
    this.settings = readSettings();
    this.applyTheme();
    this.conversations = [];
    this.mcp = new McpTools();
    this.models = new Models((name) => this.chooseModel(name));
    this.modelName = '';
    this.contextTokens = 0; // of one slot
    this.menuButton = iconButton('menu', 'Conversations', () => this.toggleSide(), { id: 'menu', 'aria-controls': 'side' });
    this.watchButton = h('button', { type: 'button', id: 'watch', 'aria-pressed': 'false', 'aria-controls': 'batch',
      title: 'The batch, live (Alt B)', onclick: () => this.toggleBatch() }, icon('batch'), 'Batch');
    this.barButtons = [this.watchButton,
      iconButton('download', 'Save this conversation as Markdown', () => this.saveMarkdown(), { id: 'save' }),
      iconButton('theme', 'Colours', () => this.nextTheme(), { id: 'theme' }),
      iconButton('settings', 'Settings', () => this.openSettings(), { id: 'open-settings' })];
    this.chat = new Chat(find('#chat'), this);
    this.side = new Side(find('#side'), this);
    this.batch = new BatchPanel(find('#batch'), { settings: this.settings, askForKey: (wrong) => this.askForKey(wrong),
      model: () => this.model, close: () => this.toggleBatch(false) });
    this.dialog = new SettingsDialog(this.settings, () => this.settingsChanged());
    if (matchMedia('(max-width: 800px)').matches) this.toggleSide(false);
    document.addEventListener('keydown', (event) => this.key(event));
    find('#chat').addEventListener('click', (event) => this.clickedChat(event));
  }

  async start() {
    await openStore(warnOfLoss);
    this.conversations = await allConversations();
    listen((id) => this.changedElsewhere(id));
    for (const conversation of this.conversations) {
      for (const node of interrupted(conversation)) this.chat.run(conversation, node, { resumes: true });
    }
    const watches = /(^#|&)batch/.test(location.hash); // before open() says where we are
    const wanted = location.hash.match(/c=([\w-]+)/)?.[1];
    this.open(this.conversations.find((one) => one.id === wanted) ?? this.conversations[0] ?? this.fresh());
    if (watches) this.toggleBatch(true);
    await Promise.all([this.learn(), this.learnTools()]);
  }

  // Which model answers in the conversation that is open; '' where the server has one.
  get model() {
    return this.models.of(this.chat.conversation, this.settings);
  }

  // What the server serves, and its defaults. A page without them works as well.
  async learn() {
    try {
      await this.models.learn(this.settings.key);
    } catch {
      // Then it has one model, as far as the page knows.
    }
    await this.learnModel();
  }

  async learnTools() {
    await this.mcp.learn(this.settings.mcp, toast);
    this.chat.showAll();
  }

  // Asking about a model would load it, so of others the name is all that is known.
  async learnModel() {
    const { model } = this;
    this.models.show(model);
    this.adoptSystem();
    try {
      if (!this.models.isLoaded(model)) return this.showModel(model, {});
      const props = await (await ask(`props${model && `?model=${encodeURIComponent(model)}`}`, { key: this.settings.key })).json();
      if (model === this.model) this.showModel(model || props.model_alias || '', props);
    } catch {
      this.side.model.textContent = '';
    }
  }

  openSettings() {
    this.dialog.open(this.chat.conversation, this.model);
  }

  // A conversation that has not begun has the system prompt that is kept for its model.
  adoptSystem() {
    const { conversation } = this.chat;
    const { system } = settingsFor(this.settings, this.model);
    if (!conversation.title) conversation.system = system;
  }

  showModel(name, { total_slots: slots, default_generation_settings: defaults, modalities }) {
    this.modelName = name;
    this.chat.tray.learn(modalities);
    this.dialog.defaults = defaults?.params ?? {};
    const size = defaults ? `${slots} slots of ${defaults.n_ctx?.toLocaleString('en')} tokens` : 'is loaded when it is asked';
    this.side.model.textContent = `${name} · ${size}`;
    this.contextTokens = defaults?.n_ctx ?? 0;
    if (pathOf(this.chat.conversation).length === 0) this.chat.draw();
    this.chat.showGauge();
  }

  // Of this conversation, and of those that are begun later.
  chooseModel(name) {
    const { conversation } = this.chat;
    conversation.model = name;
    this.settings.model = name;
    keepSettings(this.settings);
    if (Object.keys(conversation.nodes).length > 0) this.keep(conversation);
    say(`${name} answers from now on`);
    this.modelChanged();
  }

  modelChanged() {
    this.learnModel();
    this.batch.showModel(this.model);
  }

  fresh() {
    const conversation = newConversation(this.settings.system);
    this.conversations.push(conversation);
    return conversation;
  }

  open(conversation) {
    this.chat.open(conversation);
    this.showPlace();
    this.side.show(this.conversations, conversation);
    if (this.models.list.length > 1) this.modelChanged();
    if (matchMedia('(max-width: 800px)').matches) this.toggleSide(false);
  }

  showPlace() {
    const batch = find('#batch').hidden ? '' : '&batch';
    history.replaceState(null, '', `#c=${this.chat.conversation.id}${batch}`);
  }

  // One empty conversation is enough.
  create() {
    this.open(this.conversations.find((one) => Object.keys(one.nodes).length === 0) ?? this.fresh());
  }

  rename(conversation, title) {
    conversation.title = title;
    this.keep(conversation);
    this.listChanged();
    this.chat.draw();
  }

  // One that was deleted is not kept again by what still ends, as an answer that was coming.
  async keep(conversation, options) {
    if (this.conversations.includes(conversation)) await keepConversation(conversation, options);
  }

  async remove(conversation) {
    this.forget(conversation);
    await dropConversation(conversation);
  }

  forget(conversation) {
    this.chat.stop(conversation);
    this.conversations = this.conversations.filter((one) => one !== conversation);
    if (conversation === this.chat.conversation) this.open(this.conversations[0] ?? this.fresh());
    this.listChanged();
  }

  // Another tab has written a conversation, or deleted it.
  async changedElsewhere(id) {
    const mine = this.conversations.find((one) => one.id === id);
    const found = await readAgain(id, mine);
    if (mine && !this.conversations.includes(mine)) return; // deleted here, too
    if (!found) {
      if (!mine) return;
      if (mine === this.chat.conversation) toast('The conversation was deleted in another tab.');
      this.forget(mine);
      return;
    }
    if (!this.conversations.some((one) => one.id === id)) this.conversations.push(found);
    this.listChanged();
    if (found === this.chat.conversation) this.chat.refresh();
  }

  async restore(conversation) {
    this.conversations.push(conversation);
    this.open(conversation);
    await this.keep(conversation);
  }

  saveMarkdown() {
    const { conversation } = this.chat;
    download(fileName(conversation, 'md'), 'text/markdown', toMarkdown(conversation));
  }

  exportAll() {
    const list = this.conversations.filter((one) => Object.keys(one.nodes).length > 0);
    const files = toFiles(list);
    for (const { name, text } of files) download(name, 'application/json', text);
    if (files.length > 1) toast(`The conversations are in ${files.length} files. Import them together.`);
  }

  // Imported conversations stand beside those that are there, never in their place.
  async importFrom(files) {
    let found = [];
    try {
      found = await conversationsOf(files);
    } catch (error) {
      toast(error.message);
      return;
    }
    this.conversations.push(...found);
    for (const conversation of found) await this.keep(conversation);
    if (found.length > 0) this.open(found.at(-1));
    toast(found.length === 1 ? 'One conversation is imported.' : `${found.length} conversations are imported.`);
  }

  listChanged() {
    this.side.show(this.conversations, this.chat.conversation);
  }

  settingsChanged() {
    if (Object.keys(this.chat.conversation.nodes).length > 0) this.keep(this.chat.conversation);
    this.learn();
    this.learnTools();
  }

  async askForKey(wrong) {
    this.asking ??= askForKey(this.settings, wrong);
    const told = await this.asking;
    this.asking = null;
    if (told) this.learn();
    return told;
  }

  toggleSide(open = !document.body.classList.contains('side-open')) {
    document.body.classList.toggle('side-open', open);
    document.body.classList.toggle('side-shut', !open);
    this.menuButton.setAttribute('aria-expanded', String(open));
  }

  toggleBatch(open = find('#batch').hidden) {
    find('#batch').hidden = !open;
    document.body.classList.toggle('watching', open);
    this.watchButton.setAttribute('aria-pressed', String(open));
    this.showPlace();
    if (open) {
      this.batch.start();
    } else {
      this.batch.stop();
      this.watchButton.focus();
    }
  }

  applyTheme() {
    document.documentElement.dataset.theme = this.settings.theme;
  }

  nextTheme() {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    // Through both and back to what the system says.
    const order = dark ? ['auto', 'light', 'dark'] : ['auto', 'dark', 'light'];
    this.settings.theme = order[(order.indexOf(this.settings.theme) + 1) % 3];
    keepSettings(this.settings);
    this.applyTheme();
    say(`Colours: ${this.settings.theme === 'auto' ? 'as the system' : this.settings.theme}`);
    this.batch.redraw();
  }

  clickedChat(event) {
    const onSmall = matchMedia('(max-width: 800px)').matches;
    if (onSmall && document.body.classList.contains('side-open') && !event.target.closest('#menu')) this.toggleSide(false);
  }

  key(event) {
    if (document.querySelector('dialog[open]')) return;
    const does = { n: () => this.create(), b: () => this.toggleBatch(), s: () => this.toggleSide(),
      k: () => this.side.startSearch(),
      ',': () => this.openSettings() }[event.key.toLowerCase()];
    if (event.altKey && !event.ctrlKey && !event.metaKey && does) {
      event.preventDefault();
      does();
    } else if (event.key === 'Escape' && this.chat.busy) {
      this.chat.stop();
    } else if (event.key === '/' && !event.target.closest('input, textarea, select')) {
      event.preventDefault();
      this.chat.prompt.focus();
    }
  }
}

function warnOfLoss(error) {
  const why = error.name === 'QuotaExceededError' ? 'its storage is full' : 'it refuses to store them';
  warn(`This browser cannot keep new messages: ${why}. They are lost when the page is closed or reloaded. ` +
    'Export saves them as a file.');
}

const page = new Page();
page.start().then(() => {
  document.body.classList.add('ready');
  performance.mark('ready');
});
