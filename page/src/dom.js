// Elements without a framework: h('button', { class: 'x', onclick: f }, 'text', child). Properties that start with "on"
// are listeners; null, undefined and false leave an attribute away.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const escapeHtml = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

const svgSpace = 'http://www.w3.org/2000/svg';
const shapes = {
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 6h16M4 12h16M4 18h16',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4',
  retry: 'M20 11a8 8 0 1 0-2.3 6.3M20 4v7h-7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  done: 'M5 12.5l4.5 4.5L19 7.5',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
  batch: 'M4 20V12M9 20V5M14 20v-9M19 20V8',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 4.5v5M8 14.5v5',
  theme: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  close: 'M6 6l12 12M18 6L6 18',
  left: 'M14 6l-6 6 6 6',
  right: 'M10 6l6 6-6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  more: 'M5 12h12M12 6l6 6-6 6',
  clip: 'M20 11l-8.4 8.4a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.8-7.8',
  file: 'M7 3h7l5 5v13H7zM14 3v5h5',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l12 7-12 7z',
};

export function icon(name) {
  const svg = document.createElementNS(svgSpace, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(svgSpace, 'path');
  path.setAttribute('d', shapes[name]);
  svg.append(path);
  return svg;
}

// A button that shows an icon and says what it does.
export function iconButton(name, label, onclick, attributes = {}) {
  return h('button', { type: 'button', class: 'icon', 'aria-label': label, title: label, onclick, ...attributes },
    icon(name));
}

export const find = (selector) => document.querySelector(selector);

// For screen readers.
export function say(text) {
  find('#say').textContent = text;
}

// Tab walks in a circle inside a dialog; browsers by themselves let it leave for their own toolbar.
export function keepFocusIn(dialog) {
  dialog.addEventListener('keydown', (event) => {
    if (event.key !== 'Tab') return;
    const stops = [...dialog.querySelectorAll('button, input, textarea, select')].filter((element) => !element.disabled);
    const [from, to] = event.shiftKey ? [stops[0], stops.at(-1)] : [stops.at(-1), stops[0]];
    if (document.activeElement !== from) return;
    event.preventDefault();
    to.focus();
  });
}

let toastTimer;
export function toast(text, action = null) {
  const box = find('#toast');
  box.replaceChildren(h('span', {}, text));
  if (action) {
    box.append(h('button', { type: 'button', onclick: () => { box.replaceChildren(); action.run(); } }, action.label));
  }
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.replaceChildren(), 8000);
}

// What has to be read: it stays until it is closed.
export function warn(text) {
  const box = find('#warning');
  box.replaceChildren(h('p', {}, text), h('button', { type: 'button', onclick: () => box.replaceChildren() }, 'Close'));
}
