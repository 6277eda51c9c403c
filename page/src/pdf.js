// The text of PDFs, read by a worker (pdf_worker.js) that is loaded for each and ended after it: a file that keeps it
// busy for ever does not keep the page busy. Its memory is that of the page's process, so the worker bounds it.
const mib = 1024 * 1024;
export const pdfLimits = { bytes: 32 * mib, pages: 500, seconds: 120 };

const words = {
  password: 'is encrypted and opens with a password only. Save it without one, and attach that.',
  broken: 'is broken: it cannot be read as a PDF.',
  empty: 'has no text: its pages are pictures, as of a scanner. Text recognition (OCR) can add text to it.',
  letters: 'has text in East Asian encodings only, whose tables this page does not have. Copy it out of a viewer.',
  pages: `has too many pages: a PDF may have ${pdfLimits.pages}.`,
  long: 'has too much text: a file may have 1.0 MiB.',
  swollen: 'unpacks to more than a browser can hold.',
  brotli: 'is packed with Brotli, which this page cannot unpack. Print it to a PDF, and attach that.',
  slow: `takes too long to read: a PDF may take ${pdfLimits.seconds} s.`,
  unloaded: 'cannot be read: the server did not send the reader of PDFs. Is it still there?',
};

// { text, unread }: `unread` names encodings whose letters are missing in the text. Throws an Error whose message says
// why not, or what `signal` was aborted with. `step` is called with { page, pages } before each page.
export async function readPdf(name, bytes, textBytes, { signal, step }) {
  signal.throwIfAborted();
  const worker = new Worker('pdf.js');
  let loaded = false;
  let timer;
  const read = new Promise((resolve, reject) => {
    const fail = (fault) => reject(new Error(`${name} ${words[fault]}`));
    timer = setTimeout(() => fail('slow'), pdfLimits.seconds * 1000);
    signal.addEventListener('abort', () => reject(signal.reason));
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      fail(loaded ? 'broken' : 'unloaded');
    });
    worker.addEventListener('message', ({ data: { pdf } }) => {
      loaded = true;
      if (!pdf) return; // PDF.js greets by itself
      if (pdf.fault) fail(pdf.fault);
      else if (pdf.page) step(pdf);
      else resolve(pdf);
    });
    worker.postMessage({ bytes, pages: pdfLimits.pages, text: textBytes }, [bytes.buffer]);
  });
  return read.finally(() => {
    clearTimeout(timer);
    worker.terminate();
  });
}
