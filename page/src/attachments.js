// Files that go with a message: chosen, dropped or pasted, read and judged by what they hold, shown as chips. Text and
// the text of PDFs always, pictures and sounds where the model takes them.
import { fileName, newFile } from './conversation.js';
import { h, icon, iconButton, say, toast } from './dom.js';
import { pdfLimits, readPdf } from './pdf.js';
import { imageOf, mediaOf, readMedia } from './pictures.js';

const kib = 1024;
export const limits = { fileBytes: 1024 * kib, allBytes: 4 * 1024 * kib, files: 20, // of one message
  mediaBytes: 16 * 1024 * kib, photoBytes: 64 * 1024 * kib }; // pictures and sounds of it; one that is made smaller

export function sizeInWords(bytes) {
  if (bytes < kib) return `${bytes} B`;
  return bytes < 1024 * kib ? `${Math.round(bytes / kib)} KiB` : `${(bytes / kib / 1024).toFixed(1)} MiB`;
}

const wordsFor = { picture: 'a picture', sound: 'a sound' };

// { kind, type } of what is no text by how it begins: names and types say what the sender's system thinks.
function kindOf(bytes, claimed) {
  if (String.fromCharCode(...bytes.subarray(0, 5)) === '%PDF-') return { kind: 'pdf' };
  return mediaOf(bytes, claimed);
}

function possible(takes) {
  const more = [takes.picture && 'pictures', takes.sound && 'sounds'].filter(Boolean);
  const text = 'Text files and PDFs can be attached: notes, code, CSV, JSON, Markdown';
  return more.length > 0 ? `${text}; and ${more.join(' and ')}.` : `${text}.`;
}

function tooLarge(name, size, most) {
  return new Error(`${name} has ${sizeInWords(size)}; a file may have ${sizeInWords(most)}.`);
}

// The text of a PDF as a file, and `note`: what has to be said of it.
async function readText(file, name, reading) {
  if (file.size > pdfLimits.bytes) throw tooLarge(name, file.size, pdfLimits.bytes);
  reading.step({});
  const bytes = new Uint8Array(await file.arrayBuffer());
  const { text, unread } = await readPdf(name, bytes, limits.fileBytes, reading);
  const attachment = newFile(name, text);
  if (attachment.size > limits.fileBytes) throw tooLarge(`The text of ${name}`, attachment.size, limits.fileBytes);
  const note = unread.length > 0 && `Some text of ${name} is missing: it is in East Asian encodings ` +
    `(${unread.slice(0, 3).join(', ')}), whose tables this page does not have.`;
  return { attachment, note };
}

// { attachment }: { name, size, text }, or { name, size, type, data } of what `takes` says; throws an Error whose
// message says why the file cannot be attached. `reading`: { signal, step } of one that takes a while, see readPdf.
async function readFile(file, takes, reading) {
  const name = fileName(file.name);
  const begin = new Uint8Array(await file.slice(0, 16).arrayBuffer().catch(() => {
    throw new Error(`${name} cannot be read. Folders cannot be attached, the files in them can.`);
  }));
  const found = kindOf(begin, file.type);
  if (found?.kind === 'pdf') return readText(file, name, reading);
  if (found && !takes[found.kind]) {
    throw new Error(`${name} is ${wordsFor[found.kind]}, and the model takes none. ${possible(takes)}`);
  }
  const most = !found ? limits.fileBytes : found.kind === 'picture' ? limits.photoBytes : limits.mediaBytes;
  if (file.size > most) throw tooLarge(name, file.size, most);
  if (found) return { attachment: await readMedia(file, found, name) };
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.length === 0) throw new Error(`${name} is empty.`);
  try {
    if (bytes.includes(0)) throw new TypeError('a NUL');
    return { attachment: newFile(name, new TextDecoder('utf-8', { fatal: true }).decode(bytes)) };
  } catch {
    throw new Error(`${name} is not text in UTF-8. ${possible(takes)}`);
  }
}

// `alt` is empty where the name stands beside the picture.
const thumbnail = (attachment, alt) => attachment.data && imageOf(attachment, { class: 'thumbnail', alt });
const chip = (attachment) => [thumbnail(attachment, '') || icon('file'), h('span', { class: 'name' }, attachment.name),
  h('span', { class: 'size' }, sizeInWords(attachment.size))];

// The files of a message that was sent, folded; of a picture a small one is seen.
export function fileViews(attachments) {
  return attachments.map((attachment) => {
    if (attachment.data) return mediaView(attachment);
    const text = h('pre', { tabindex: '0' });
    const fill = () => { text.textContent = view.open ? attachment.text : ''; };
    const view = h('details', { class: 'attachment', ontoggle: fill }, h('summary', {}, chip(attachment)), text);
    return view;
  });
}

function mediaView(attachment) {
  const large = imageOf(attachment, { alt: attachment.name });
  if (!large) return h('p', { class: 'attachment sound' }, chip(attachment));
  return h('details', { class: 'attachment picture' }, h('summary', {}, chip(attachment)), large);
}

const stopped = new Error('taken away while it was read');

// The files of the message that is being written. `field` gets the focus back.
export class Tray {
  constructor(field) {
    this.field = field;
    this.list = [];
    this.takes = {}; // { picture, sound }: what the model takes beside text
    this.reading = Promise.resolve();
    this.waiting = []; // files that have not been read yet
    this.slow = null; // the chip of a file that is being read
    this.element = h('ul', { class: 'tray', 'aria-label': 'Attached files', hidden: true });
    this.input = h('input', { type: 'file', id: 'attach-files', multiple: true, hidden: true,
      'aria-label': 'Files to attach', onchange: () => this.choose() });
    this.button = iconButton('clip', 'Attach text files, PDFs', () => this.input.click(), { id: 'attach' });
    field.addEventListener('paste', (event) => this.paste(event));
    for (const name of ['dragenter', 'dragover', 'dragleave', 'drop']) {
      document.addEventListener(name, (event) => this.drag(event));
    }
  }

  // What the model takes, as /props says it.
  learn({ vision, audio } = {}) {
    this.takes = { picture: Boolean(vision), sound: Boolean(audio) };
    const more = [vision && 'pictures', audio && 'sounds'].filter(Boolean);
    const label = ['Attach text files', 'PDFs', ...more].join(', ');
    this.button.setAttribute('aria-label', label);
    this.button.title = label;
  }

  choose() {
    const files = [...this.input.files];
    this.input.value = ''; // so that the same file can be chosen again
    this.add(files);
  }

  // A text with a picture of itself, as office programs copy it, is pasted as text.
  paste(event) {
    const { files, types } = event.clipboardData;
    if (files.length === 0 || types.includes('text/plain')) return;
    event.preventDefault();
    this.add([...files]);
  }

  // Anywhere on the page: a browser would leave the page and show the file instead.
  drag(event) {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    const free = !document.querySelector('dialog[open]');
    const over = event.type === 'dragenter' || event.type === 'dragover';
    const left = event.type === 'dragleave' && event.relatedTarget !== null;
    event.dataTransfer.dropEffect = free ? 'copy' : 'none';
    document.body.classList.toggle('dropping', free && (over || left));
    if (event.type === 'drop' && free) this.add([...event.dataTransfer.files]);
  }

  // The name of the file that is being read, if one is.
  get unread() {
    return this.waiting.length > 0 ? fileName(this.waiting[0].name) : null;
  }

  // One after the other.
  add(files) {
    this.waiting.push(...files);
    this.reading = this.reading.then(() => this.addAll(files));
    return this.reading;
  }

  async addAll(files) {
    this.told = []; // what is wrong with them
    this.shown = 0; // how much of that the user has been shown
    const earlier = [...this.list];
    for (const file of files) {
      const note = await this.addOne(file).catch((error) => error !== stopped && error.message);
      this.waiting.shift();
      if (note) this.told.push(note);
    }
    this.draw();
    const added = this.list.filter((one) => !earlier.includes(one));
    this.tell();
    if (added.length === 1) say(`${added[0].name} is attached`);
    else if (added.length > 1) say(`${added.length} files are attached`);
    const active = document.activeElement; // elsewhere once the user went on while a file was read
    if ([null, document.body, this.button].includes(active) || this.element.contains(active)) this.field.focus();
  }

  tell() {
    if (this.told.length === this.shown) return;
    this.shown = this.told.length;
    const more = this.told.length > 3 ? ` And ${this.told.length - 3} more.` : '';
    toast(this.told.slice(0, 3).join(' ') + more);
  }

  // Gives what has to be said of it.
  async addOne(file) {
    if (this.list.length >= limits.files) throw new Error(`A message takes ${limits.files} files.`);
    const read = readFile(file, this.takes, this.follow(file));
    const { attachment, note } = await read.finally(() => { this.slow = null; });
    const same = this.list.filter(({ data }) => Boolean(data) === Boolean(attachment.data));
    const all = same.reduce((sum, { size }) => sum + size, attachment.size);
    const most = attachment.data ? limits.mediaBytes : limits.allBytes;
    if (all > most) {
      const what = attachment.data ? 'pictures and sounds' : 'files';
      throw new Error(`With ${attachment.name} the ${what} would have ${sizeInWords(all)}; ` +
        `those of a message may have ${sizeInWords(most)}.`);
    }
    this.list.push(attachment);
    return note;
  }

  // { signal, step } of a file that may take a while: at the first step it gets a chip, which can be taken away.
  follow(file) {
    const name = fileName(file.name);
    const ending = new AbortController();
    const done = h('span', { class: 'size', 'aria-busy': 'true' });
    const stop = () => {
      ending.abort(stopped);
      say(`${name} is removed`);
    };
    const step = ({ page, pages }) => {
      done.textContent = page ? `page ${page} of ${pages}` : 'reading';
      if (this.slow) return;
      this.slow = h('li', { class: 'chip' }, icon('file'), h('span', { class: 'name' }, name), done,
        iconButton('close', `Remove ${name}`, stop));
      this.draw();
      say(`Reading ${name}`);
      this.tell(); // what is wrong with the files before, without waiting for this one
    };
    return { signal: ending.signal, step };
  }

  remove(attachment) {
    this.list.splice(this.list.indexOf(attachment), 1);
    this.draw();
    say(`${attachment.name} is removed`);
  }

  // Gives the files to a message.
  take() {
    const list = this.list;
    this.list = [];
    this.draw();
    return list;
  }

  // The focus stays at its place in the list, or goes back to the field.
  draw() {
    const buttons = () => [...this.element.querySelectorAll('button')];
    const at = buttons().indexOf(document.activeElement);
    this.element.hidden = this.list.length === 0 && !this.slow;
    const chips = this.list.map((attachment) => h('li', { class: 'chip' }, chip(attachment),
      iconButton('close', `Remove ${attachment.name}`, () => this.remove(attachment))));
    this.element.replaceChildren(...chips, ...(this.slow ? [this.slow] : []));
    if (at >= 0) (buttons()[Math.min(at, buttons().length - 1)] ?? this.field).focus();
  }
}
