// Reads the text of a PDF, in a worker of its own, built as pdf.js: { bytes, pages, text } comes in, the file and its
// limits; { pdf } goes out, a step { page, pages }, and in the end { text, unread } or { fault }. Both sides of PDF.js
// run in here, so that the page can end whatever a file makes of them.
import { MessageHandler, WorkerMessageHandler } from 'pdfjs-dist/legacy/build/pdf.worker.mjs';

/* global pdfjsVersion */ // build.mjs sets it
const post = (pdf) => self.postMessage({ pdf });

// Ends the reading: `fault` is a name that pdf.js of the page has words for.
class Fault extends Error {
  constructor(fault) {
    super(fault);
    this.fault = fault;
  }
}

// No pictures, no fonts, nothing from the network.
const textOnly = { maxImageSize: 0, disableFontFace: true, ignoreErrors: true, isOffscreenCanvasSupported: false,
  isImageDecoderSupported: false, canvasMaxAreaInBytes: 0, fontExtraProperties: false, useSystemFonts: true,
  useWasm: false, useWorkerFetch: false, cMapUrl: null, cMapPacked: true };

// { handler, pages } of an open document. `unread` gets the names of tables of characters that are not in here.
async function open(bytes, unread) {
  const { port1: port, port2: parser } = new MessageChannel();
  WorkerMessageHandler.setup(new MessageHandler('worker', 'main', parser), parser);
  port.start();
  parser.start();
  const main = new MessageHandler('main', 'worker', port);
  main.send('configure', { verbosity: 0 });
  const worker = await main.sendWithPromise('GetDocRequest', { docId: 'pdf', apiVersion: pdfjsVersion, data: bytes,
    password: null, disableAutoFetch: true, rangeChunkSize: 65536, docBaseUrl: null, enableXfa: false,
    evaluatorOptions: textOnly });
  const handler = new MessageHandler('pdf', worker, port);
  return new Promise((resolve, reject) => {
    handler.on('GetDoc', ({ pdfInfo }) => resolve({ handler, pages: pdfInfo.numPages }));
    handler.on('DocException', () => reject(new Fault('broken')));
    handler.on('PasswordRequest', () => {
      reject(new Fault('password'));
      return new Promise(() => {}); // it stays unanswered
    });
    handler.on('FetchBinaryData', ({ kind, filename }) => {
      if (kind === 'cMapUrl') unread.add(filename.replace('.bcmap', ''));
      throw new Error(`${filename} is not in here`);
    });
    for (const name of ['commonobj', 'obj', 'DocProgress', 'DataLoaded']) handler.on(name, () => {});
    handler.send('Ready', null);
  });
}

async function textOfPage(handler, index, most) {
  const items = handler.sendWithStream('GetTextContent',
    { pageId: index, pageIndex: index, includeMarkedContent: false, disableNormalization: false },
    { highWaterMark: 100, size: (content) => content.items.length }).getReader();
  let text = '';
  for (let part = await items.read(); !part.done; part = await items.read()) {
    for (const { str, hasEOL } of part.value.items) text += hasEOL ? `${str}\n` : str;
    if (text.length > most) throw new Fault('long');
  }
  return tidied(text);
}

// What a file may cost, in bytes. PDF.js asks before it makes room (pdfjs.mjs adds that), and what objects take is
// estimated from what Chromium gives them.
const mib = 1024 * 1024;
const most = { unpacked: 64 * mib, // buffers of a page; they are garbage with the next one
  held: 256 * mib, // what stays until the file is read: objects, names, tables of letters, fonts
  operator: 64 * mib, // what one operator of a page shows; it is garbage with the next one
  token: 8 * mib, // a string or a name
  saved: 10_000 }; // states of drawing, one in another
const used = { unpacked: 0, held: 0, operator: 0 };

function bound(kind, amount) {
  if (amount > most[kind]) self.judge.refuse('swollen');
}

function count(kind, amount) {
  used[kind] += amount;
  bound(kind, used[kind]);
}

self.judge = {
  unpack: (bytes) => count('unpacked', bytes),
  hold: (bytes) => count('held', Math.max(bytes, 0)),
  operator: () => { used.operator = 0; },
  parse(token, operand) {
    const bytes = token === '<<' ? 256 : token === '[' ? 64 : typeof token === 'string' ? 32 + token.length : 16;
    count(operand ? 'operator' : 'held', bytes);
  },
  token: (length) => bound('token', length),
  save: (depth) => bound('saved', depth),
  refuse(fault) {
    post({ fault }); // at once: PDF.js goes on with what it has of a stream
    throw new Fault(fault);
  },
};
self.DecompressionStream = undefined;

// Without what fonts that name no characters leave: control characters and halves of pairs.
function tidied(text) {
  const lines = text.replace(/\r\n?/g, '\n').replace(/[\0-\x08\v-\x1f\x7f]/g, '').split('\n');
  const whole = lines.map((line) => line.trimEnd()).join('\n');
  return new TextDecoder().decode(new TextEncoder().encode(whole)).trim();
}

// Several pages are told apart, so that a model can say on which one it found something.
function joined(texts) {
  if (texts.length === 1) return `${texts[0]}\n`;
  return texts.map((text, i) => (text ? `[Page ${i + 1}]\n${text}\n` : `[Page ${i + 1}: no text]\n`)).join('\n');
}

async function read({ bytes, pages: pagesMost, text: most }) {
  const unread = new Set();
  const { handler, pages } = await open(bytes, unread);
  if (pages > pagesMost) throw new Fault('pages');
  const texts = [];
  let length = 0;
  for (let i = 0; i < pages; ++i) {
    post({ page: i + 1, pages });
    used.unpacked = 0;
    texts.push(await textOfPage(handler, i, most - length));
    length += texts[i].length;
  }
  if (length === 0) throw new Fault(unread.size > 0 ? 'letters' : 'empty');
  return { text: joined(texts), unread: [...unread] };
}

// What no promise of ours waits for any more, after a fault.
self.addEventListener('unhandledrejection', (event) => event.preventDefault());
self.addEventListener('message', ({ data }) => {
  if (!data.bytes) return;
  read(data).then(post, (error) => post({ fault: error.fault ?? 'broken' }));
});
