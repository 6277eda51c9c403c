// Text files that go with a message: chosen, dropped or pasted, read and judged by what they hold, shown as chips.
import { fileName, newFile } from './conversation.js';
import { h, icon, iconButton, say, toast } from './dom.js';

const kib = 1024;
export const limits = { fileBytes: 1024 * kib, allBytes: 4 * 1024 * kib, files: 20 }; // of one message

export function sizeInWords(bytes) {
  if (bytes < kib) return `${bytes} B`;
  return bytes < 1024 * kib ? `${Math.round(bytes / kib)} KiB` : `${(bytes / kib / 1024).toFixed(1)} MiB`;
}

// Pictures and PDFs by how their bytes begin: names and types say what the sender's system thinks.
const kinds = [
  ['a PDF', /^%PDF-/],
  ['a picture', /^(\x89PNG|\xff\xd8\xff|GIF8[79]a|II\*\0|MM\0\*|RIFF[^]{4}WEBP|[^]{4}ftyp(avif|hei|mif1))/],
];

function kindOf(bytes, type) {
  const begin = String.fromCharCode(...bytes.subarray(0, 16));
  const kind = kinds.find(([, form]) => form.test(begin))?.[0];
  if (kind) return kind;
  return /^image\/(?!svg)/.test(type) ? 'a picture' : '';
}

const possible = 'Text files can be attached: notes, code, CSV, JSON, Markdown.';

// { name, size, text }; throws an Error whose message says why the file cannot be attached.
export async function readTextFile(file) {
  const name = fileName(file.name);
  if (file.size > limits.fileBytes) {
    const kind = kindOf(new Uint8Array(await file.slice(0, 16).arrayBuffer()), file.type);
    if (kind) throw new Error(`${name} is ${kind}, and the server takes none. ${possible}`);
    throw new Error(`${name} has ${sizeInWords(file.size)}; a file may have ${sizeInWords(limits.fileBytes)}.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer().catch(() => {
    throw new Error(`${name} cannot be read. Folders cannot be attached, the files in them can.`);
  }));
  const kind = kindOf(bytes, file.type);
  if (kind) throw new Error(`${name} is ${kind}, and the server takes none. ${possible}`);
  if (bytes.length === 0) throw new Error(`${name} is empty.`);
  try {
    if (bytes.includes(0)) throw new TypeError('a NUL');
    return newFile(name, new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Error(`${name} is not text in UTF-8. ${possible}`);
  }
}

const chip = ({ name, size }) => [icon('file'), h('span', { class: 'name' }, name),
  h('span', { class: 'size' }, sizeInWords(size))];

// The files of a message that was sent, folded.
export function fileViews(attachments) {
  return attachments.map((attachment) => {
    const text = h('pre', { tabindex: '0' });
    const fill = () => { text.textContent = view.open ? attachment.text : ''; };
    const view = h('details', { class: 'attachment', ontoggle: fill }, h('summary', {}, chip(attachment)), text);
    return view;
  });
}

// The files of the message that is being written. `field` gets the focus back.
export class Tray {
  constructor(field) {
    this.field = field;
    this.list = [];
    this.reading = Promise.resolve();
    this.element = h('ul', { class: 'tray', 'aria-label': 'Attached files', hidden: true });
    this.input = h('input', { type: 'file', id: 'attach-files', multiple: true, hidden: true,
      'aria-label': 'Files to attach', onchange: () => this.choose() });
    this.button = iconButton('clip', 'Attach text files', () => this.input.click(), { id: 'attach' });
    field.addEventListener('paste', (event) => this.paste(event));
    for (const name of ['dragenter', 'dragover', 'dragleave', 'drop']) {
      document.addEventListener(name, (event) => this.drag(event));
    }
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

  // One after the other; `reading` ends when all have been read.
  add(files) {
    this.reading = this.reading.then(async () => {
      const faults = [];
      for (const file of files) await this.addOne(file).catch((error) => faults.push(error.message));
      this.draw();
      const more = faults.length > 3 ? ` And ${faults.length - 3} more.` : '';
      if (faults.length > 0) toast(faults.slice(0, 3).join(' ') + more);
      else say(files.length === 1 ? `${files[0].name} is attached` : `${files.length} files are attached`);
      this.field.focus();
    });
    return this.reading;
  }

  async addOne(file) {
    if (this.list.length >= limits.files) throw new Error(`A message takes ${limits.files} files.`);
    const attachment = await readTextFile(file);
    const all = this.list.reduce((sum, { size }) => sum + size, attachment.size);
    if (all > limits.allBytes) {
      throw new Error(`With ${attachment.name} the files would have ${sizeInWords(all)}; ` +
        `those of a message may have ${sizeInWords(limits.allBytes)}.`);
    }
    this.list.push(attachment);
  }

  remove(attachment) {
    const at = this.list.indexOf(attachment);
    this.list.splice(at, 1);
    this.draw();
    say(`${attachment.name} is removed`);
    const buttons = this.element.querySelectorAll('button');
    (buttons[Math.min(at, buttons.length - 1)] ?? this.field).focus();
  }

  // Gives the files to a message.
  take() {
    const list = this.list;
    this.list = [];
    this.draw();
    return list;
  }

  draw() {
    this.element.hidden = this.list.length === 0;
    this.element.replaceChildren(...this.list.map((attachment) => h('li', { class: 'chip' }, chip(attachment),
      iconButton('close', `Remove ${attachment.name}`, () => this.remove(attachment)))));
  }
}
