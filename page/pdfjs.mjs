// What build.mjs changes of PDF.js: it leaves out the decoders of pictures, which text does not need, and asks the
// judge of pdf_worker.js before it makes room for what a file wants.
import { readFile } from 'node:fs/promises';

// PDF.js has two halves that send each other messages. The half that draws weighs a third of the other and is of no use
// here, but it alone exports what both send messages with.
const exported = ['export { WorkerMessageHandler };', 'export { WorkerMessageHandler, MessageHandler };'];

const judged = (call, before) => [before, `${call};\n${before}`];

// PDF.js makes room for as much as a file asks for: one of some kB can hold streams of 16 GB, or arrays, tables of
// letters and lists of objects that are far larger than the text they are read from.
const questions = [
  judged('self.judge.unpack(size - buffer.byteLength)', '    const buffer2 = new Uint8Array(size);\n'),
  judged('self.judge.hold(128 + 2 * name.length)', '      NameCache.set(name, n);\n'),
  judged('self.judge.hold(128 + 2 * cmd.length)', '      CmdCache.set(cmd, c);\n'),
  ['      ref = new Ref(str, num, gen);\n', '      self.judge.hold(192);\n      ref = new Ref(str, num, gen);\n'],
  ['    const buf1 = this.buf1;\n    this.shift();\n', '    const buf1 = this.buf1;\n    this.shift();\n' +
    '    self.judge.parse(buf1 instanceof Cmd ? buf1.cmd : buf1, Boolean(this.lexer.knownCommands));\n'],
  judged('self.judge.operator()', '    let args = operation.args;\n    while (true) {\n'),
  judged('self.judge.save(this.stateStack.length)', '    this.stateStack.push(this.state);\n'),
  ['      if (this.#dense[code] === undefined) {\n', '      if (this.#dense[code] === undefined) {\n' +
    '        self.judge.hold(32);\n'],
  ['    if (!this.#sparse.has(code)) {\n', '    if (!this.#sparse.has(code)) {\n      self.judge.hold(256);\n'],
  judged('self.judge.hold(32 * (code - start))',
    '            for (let j = start; j <= code; j++) {\n              glyphsWidths[j] = width;\n'),
  judged('self.judge.hold(32 * (code - start))',
    '              for (let j = start; j <= code; j++) {\n                glyphsVMetrics[j] = vmetric;\n'),
  ['    if (!Number.isInteger(lastChar)) {\n', '    if (!Number.isInteger(lastChar) || lastChar > 0xffff) {\n'],
  ['    while (true) {\n      let charBuffered = false;\n', '    while (true) {\n' +
    '      self.judge.token(strBuf.length);\n      let charBuffered = false;\n'],
  ['!specialChars[ch]) {\n      if (ch === 0x23) {\n', '!specialChars[ch]) {\n' +
    '      self.judge.token(strBuf.length);\n      if (ch === 0x23) {\n'],
  judged('self.judge.hold(64 + 8 * chars.length)', '    this.#charsCache.set(chars, glyphs);\n'),
  judged('if (file) self.judge.hold(3 * file.getBytes().length), file.reset()',
    '    this.disableFontFace = evaluatorOptions.disableFontFace;\n' +
    '    this.fontExtraProperties = evaluatorOptions.fontExtraProperties;\n    this.loadedName'),
];
const entryOfXref = '        this.#entries[first + i] ??= entry;\n';

// Modules, by the comments that PDF.js is bundled with: from one up to another there stands this instead. All but that
// of JPEG are not of PDF.js, and have licences of their own.
const left = [
  ['./external/qcms/qcms_utils.js', './src/shared/math_clamp.js', ''],
  ['./src/core/icc_colorspace.js', './src/core/stream.js',
    'class IccColorSpace { static isUsable = false; static setOptions() {} }\n' +
    'class CmykICCBasedCS extends IccColorSpace {}\n'],
  ['./src/core/jpg.js', './src/core/jpeg_stream.js',
    'class JpegImage { constructor() { throw new Error("no pictures"); } }\n'],
  ['./external/brotli/decode.js', './src/core/brotli_stream.js',
    'const BrotliDecode = () => self.judge.refuse("brotli");\n'],
  ['./external/jbig2/jbig2.js', './src/core/wasm_image.js', 'const jbig2 = () => null;\n'],
  ['./external/openjpeg/openjpeg.js', './src/core/jpx.js', 'const openjpeg = () => null;\n'],
];

function replaced(text, from, to, times = 1) {
  const parts = text.split(from);
  if (parts.length !== times + 1) throw new Error(`PDF.js has this ${parts.length - 1} times, not ${times}: ${from}`);
  return parts.join(to);
}

export function changedPdfJs(source) {
  let text = source;
  for (const [from, to, stub] of left) {
    const [start, end] = [from, to].map((name) => text.indexOf(`\n;// ${name}\n`));
    if (start < 0 || end < start) throw new Error(`PDF.js has no ${from} before ${to}`);
    text = `${text.slice(0, start)}\n${stub}${text.slice(end)}`;
  }
  for (const [from, to] of [exported, ...questions]) text = replaced(text, from, to);
  return replaced(text, entryOfXref, `        self.judge.hold(64);\n${entryOfXref}`, 2);
}

export const changing = {
  name: 'changes-of-pdf-js',
  setup(set) {
    set.onLoad({ filter: /pdf\.worker\.mjs$/ }, async ({ path }) => (
      { contents: changedPdfJs(await readFile(path, 'utf8')), loader: 'js' }));
  },
};
