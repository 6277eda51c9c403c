// What a model writes, as a document that can neither run nor call home: HTML in it is shown as text, images become
// links, and everything goes through DOMPurify. Only what changed is made anew, so a long answer streams as smoothly as
// a short one.
import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { Marked } from 'marked';

import { escapeHtml, h, icon, say } from './dom.js';
import { dressFormulas, formulas, mathAttributes, mathTags } from './formulas.js';

const languages = { bash, c, cpp, css, diff, go, ini, java, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    // Below the page's own title and the names of who speaks.
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    code({ text, lang }) {
      const name = (lang ?? '').trim().split(/\s/)[0];
      const known = name && hljs.getLanguage(name);
      const html = known ? hljs.highlight(text, { language: name, ignoreIllegals: true }).value : escapeHtml(text);
      return `<pre data-language="${escapeHtml(name)}"><code>${html}</code></pre>`;
    },
  },
}, formulas);

const allowed = {
  ALLOWED_TAGS: ['a', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'li', 'ol', 'p',
    'pre', 'span', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul',
    ...mathTags],
  ALLOWED_ATTR: ['href', 'class', 'start', 'align', 'data-language', ...mathAttributes],
  RETURN_DOM_FRAGMENT: true,
};

DOMPurify.addHook('afterSanitizeAttributes', (element) => {
  if (element.tagName !== 'A') return;
  element.setAttribute('target', '_blank');
  element.setAttribute('rel', 'noopener noreferrer');
});

export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers give no clipboard to pages without TLS on other hosts.
    const area = h('textarea', { class: 'unseen', value: text, 'aria-hidden': 'true' });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  say('Copied');
  const before = [...button.childNodes];
  button.replaceChildren(icon('done'));
  setTimeout(() => button.replaceChildren(...before), 1200);
}

function dress(fragment) {
  for (const pre of fragment.querySelectorAll('pre')) {
    pre.tabIndex = 0; // it may scroll, and keys scroll what has the focus
    const copy = h('button', { type: 'button', class: 'icon', 'aria-label': 'Copy this code', title: 'Copy' }, icon('copy'));
    copy.addEventListener('click', () => copyText(pre.querySelector('code').textContent, copy));
    const box = h('div', { class: 'code' });
    pre.replaceWith(box);
    box.append(h('div', { class: 'code-head' }, h('span', {}, pre.dataset.language || 'text'), copy), pre);
  }
  for (const table of fragment.querySelectorAll('table')) {
    const box = h('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table' });
    table.replaceWith(box);
    box.append(table);
  }
  dressFormulas(fragment);
  return fragment;
}

// Keeps `element` showing `text`: show(text) may be called for every token.
export class MarkdownView {
  constructor(element) {
    this.element = element;
    this.blocks = []; // { raw, nodes }
  }

  show(text) {
    if (text === this.text) return;
    this.text = text;
    const tokens = marked.lexer(text);
    const solid = tokens.filter((token) => token.type !== 'space');
    let same = 0;
    while (same < solid.length && same < this.blocks.length && solid[same].raw === this.blocks[same].raw) ++same;
    for (const block of this.blocks.splice(same)) block.nodes.forEach((node) => node.remove());
    for (const token of solid.slice(same)) {
      const list = [token];
      list.links = tokens.links;
      const fragment = dress(DOMPurify.sanitize(marked.parser(list), allowed));
      this.blocks.push({ raw: token.raw, nodes: [...fragment.childNodes] });
      this.element.append(fragment);
    }
  }
}
