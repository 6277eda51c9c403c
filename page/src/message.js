// One message on the page: what was said, how it was reached (reasoning, tools), what it took, and what can be done with
// it. Until reveal() it is the bare text, which costs next to nothing and is found by the browser's own search: of a
// long conversation only what is near the view is made. `actions` is who does things: edit, retry, choose,
// continueAnswer, removeMessage, answerTools, knowsTool, runTool.
import { fileViews } from './attachments.js';
import { childrenOf, filesOf } from './conversation.js';
import { h, icon, iconButton } from './dom.js';
import { MarkdownView, copyText } from './markdown.js';

const seconds = (ms) => (ms < 995 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
const count = (n, word) => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;

// What an answer took: the server's figures when it has ended, the browser's own until then.
export function figuresOf(node) {
  const figures = [];
  const { usage, timings } = node;
  if (usage) {
    figures.push(count(usage.completion_tokens, 'token'));
  } else if (node.pieces > 0) {
    figures.push(count(node.pieces, 'piece'));
  }
  const streamed = node.pieces > 1 ? (1000 * (node.pieces - 1)) / (node.elapsed_ms - node.first_ms) : 0;
  const speed = timings?.predicted_per_second || streamed;
  if (speed > 0 && Number.isFinite(speed)) figures.push(`${speed < 100 ? speed.toFixed(1) : Math.round(speed).toLocaleString('en')} a second`);
  if (node.first_ms) figures.push(`first after ${seconds(node.first_ms)}`);
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    figures.push(`prompt ${usage.prompt_tokens.toLocaleString('en')}${cached ? `, ${cached.toLocaleString('en')} cached` : ''}`);
  }
  if (timings?.queue_ms >= 1) figures.push(`queued ${seconds(timings.queue_ms)}`);
  return figures;
}

const ends = { length: 'the longest answer was reached', cancelled: 'cancelled', content_filter: 'filtered' };

export class MessageView {
  constructor(conversation, node, actions) {
    this.conversation = conversation;
    this.node = node;
    this.actions = actions;
    const who = { user: 'You', assistant: 'Answer', tool: 'Tool result' }[node.role];
    this.body = h('div', { class: 'text' });
    this.element = h('article', { class: `message later ${node.role}`, 'data-id': node.id, 'aria-label': who },
      h('h2', { class: 'unseen' }, who), this.body);
    this.revealed = false;
    this.show();
  }

  // How high it will be, more or less: what a browser takes for its height until it is laid out.
  expectHeight(columns) {
    if (this.expected) return;
    const lines = this.node.content.split('\n').reduce((sum, line) => sum + Math.ceil((line.length + 1) / columns), 0);
    this.expected = 60 + 24 * lines + 44 * filesOf(this.node).length;
    this.element.style.containIntrinsicHeight = `${this.expected}px`;
  }

  reveal() {
    if (this.revealed) return;
    this.revealed = true;
    this.body.replaceChildren();
    this.markdown = this.node.role === 'assistant' ? new MarkdownView(this.body) : null;
    this.reasoning = h('div', { class: 'thoughts' });
    this.thoughts = new MarkdownView(this.reasoning);
    this.summary = h('summary', {}, 'Reasoning');
    this.details = h('details', { class: 'reasoning' }, this.summary, this.reasoning);
    this.tools = h('div', { class: 'tools' });
    this.foot = h('footer', {});
    this.body.before(...(this.markdown ? [this.details] : fileViews(filesOf(this.node))));
    this.body.after(...(this.markdown ? [this.tools, this.foot] : [this.foot]));
    this.element.classList.remove('later');
    this.show();
  }

  show() {
    const { node } = this;
    if (!this.revealed) {
      this.body.textContent = node.content;
      return;
    }
    const streaming = node.state === 'streaming';
    this.element.classList.toggle('streaming', streaming);
    this.element.setAttribute('aria-busy', String(streaming));
    this.details.hidden = !node.reasoning;
    if (node.reasoning) this.thoughts.show(node.reasoning);
    this.details.classList.toggle('busy', streaming && !node.content);
    if (this.markdown) this.markdown.show(node.content);
    else this.body.textContent = node.content;
    this.body.hidden = !node.content && !streaming;
    this.showTools();
    this.showFoot(streaming);
  }

  showTools() {
    const { node } = this;
    const calls = node.tool_calls ?? [];
    this.tools.hidden = calls.length === 0;
    const runs = (call) => this.actions.knowsTool(call);
    const shown = JSON.stringify([calls, node.state, calls.filter(Boolean).map(runs)]);
    if (calls.length === 0 || shown === this.shownTools) return;
    this.shownTools = shown;
    const answered = childrenOf(this.conversation, node.id).length > 0;
    const asks = node.state !== 'streaming' && !answered;
    const inputs = [];
    const boxes = calls.filter(Boolean).map((call, index) => {
      const id = `tool-${node.id}-${index}`;
      const input = h('textarea', { id, rows: 2, class: 'mono', placeholder: 'What the tool gives back' });
      inputs.push([call, input]);
      return h('div', { class: 'call' },
        h('p', { class: 'call-name' }, icon('settings'), h('span', {}, 'Calls '), h('b', {}, call.function.name || '…')),
        h('pre', { tabindex: '0' }, h('code', {}, pretty(call.function.arguments))),
        asks && runs(call) && this.runButton(call, input), asks && h('label', { for: id }, 'Result'), asks && input);
    });
    const send = asks && h('button', { type: 'button', class: 'primary',
      onclick: () => this.actions.answerTools(node, inputs.map(([call, input]) => ({ call, content: input.value }))) },
    calls.length > 1 ? 'Send the results' : 'Send the result');
    this.tools.replaceChildren(...boxes, ...(send ? [send] : []));
  }

  // Has an MCP server compute the result, which can be read and changed before it is sent.
  runButton(call, input) {
    const button = h('button', { type: 'button', class: 'run', onclick: async () => {
      button.disabled = true;
      input.value = await this.actions.runTool(call);
      button.disabled = false;
      input.focus();
    } }, 'Run');
    return button;
  }

  showFoot(streaming) {
    const { node } = this;
    if (streaming) {
      const words = node.waits ? [node.waits] : figuresOf(node);
      this.foot.replaceChildren(h('span', { class: 'figures' }, words.join(' · ') || 'waiting for the first token'));
      return;
    }
    const siblings = childrenOf(this.conversation, node.parent);
    const at = siblings.indexOf(node);
    const branches = siblings.length > 1 && h('span', { class: 'branches' },
      iconButton('left', 'Previous version', () => this.actions.choose(node, -1), { disabled: at === 0 }),
      h('span', {}, `${at + 1} of ${siblings.length}`),
      iconButton('right', 'Next version', () => this.actions.choose(node, 1), { disabled: at === siblings.length - 1 }));
    const parts = [branches];
    if (node.role === 'assistant') {
      parts.push(h('span', { class: 'figures' }, figuresOf(node).join(' · ')));
      const end = node.state === 'stopped' ? 'stopped' : ends[node.finish];
      if (end) parts.push(h('span', { class: 'end' }, end));
    }
    const copy = iconButton('copy', 'Copy', () => copyText(node.content, copy));
    const buttons = h('span', { class: 'buttons' }, node.content && copy,
      node.role === 'user' && iconButton('edit', 'Edit', () => this.edit()),
      node.role === 'assistant' && iconButton('retry', 'Try again', () => this.actions.retry(node)),
      this.canContinue() && iconButton('more', 'Continue', () => this.actions.continueAnswer(node)),
      iconButton('trash', 'Delete this message and what follows', () => this.actions.removeMessage(node)));
    parts.push(buttons);
    const fault = node.error && h('p', { class: 'fault', role: 'alert' }, node.error);
    this.foot.replaceChildren(...[fault, h('div', { class: 'row' }, parts.filter(Boolean))].filter(Boolean));
  }

  // An answer that was stopped, cut off, or as long as it may be.
  canContinue() {
    const { node } = this;
    const ended = node.state === 'stopped' || node.finish === 'length';
    return node.role === 'assistant' && ended && node.content && node.tool_calls.length === 0 &&
      childrenOf(this.conversation, node.id).length === 0;
  }

  edit() {
    this.reveal();
    const { node } = this;
    const area = h('textarea', { rows: Math.min(12, node.content.split('\n').length + 1), 'aria-label': 'Edit your message',
      value: node.content });
    const close = () => {
      box.replaceWith(this.body);
      this.foot.hidden = false;
    };
    const done = () => {
      close();
      if (area.value.trim() || filesOf(node).length > 0) this.actions.edit(node, area.value);
    };
    const box = h('div', { class: 'editing' }, area, h('div', { class: 'row' },
      h('button', { type: 'button', onclick: close }, 'Leave as it was'),
      h('button', { type: 'button', class: 'primary', onclick: done }, 'Ask again')));
    area.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      }
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        done();
      }
    });
    this.body.replaceWith(box);
    this.foot.hidden = true;
    area.focus();
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
